package node

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// TestStalledRequestFailedTheStop: one request whose body had stopped made SIGTERM
// take 21.6 s and end with "close HTTP: context deadline exceeded".
func TestStalledRequestFailedTheStop(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	for _, at := range [][2]string{{"tcp", n.HTTPAddr()}, {"unix", n.front.socket}} {
		c, err := net.Dial(at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprint(c, "POST /v1/namespaces/default/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	postOK(t, n, "/v1/namespaces/default/events", map[string]any{"agent": "tester", "text": "the connections before this one were accepted"})
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}
