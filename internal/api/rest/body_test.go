package rest

import (
	"bytes"
	"net/http"
	"testing"
)

// A body far above the limit was answered with a reset connection whenever the
// client was still writing.
func TestTooLongBodyGetsAnAnswer(t *testing.T) {
	_, srv := live(t, nil)
	defer http.DefaultClient.CloseIdleConnections()
	long := bytes.Repeat([]byte("x"), 24<<20)
	for range 5 {
		resp, err := http.Post(srv.URL+"/v1/namespaces/team/events", "application/json", bytes.NewReader(long))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("status %d", resp.StatusCode)
		}
		// It was read to its end: nobody was cut off while writing.
		if resp.Close {
			t.Fatal("the connection was closed on a client that was still writing")
		}
	}
}
