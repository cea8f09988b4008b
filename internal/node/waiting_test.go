package node

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A node of several that waits for the others accepted connections and answered nothing.
func TestNodeThatWaitsSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	w := newWaiting(waitsForNodes, waitsForNodesHint)
	w.at(l.(*net.TCPListener), func(l net.Listener) net.Listener { return l })
	if code, body := get("/livez"); code != 200 || body != "ok\n" {
		t.Errorf("livez: %d %s", code, body)
	}
	for _, path := range []string{"/readyz", "/v1/status", "/"} {
		if code, body := get(path); code != 503 || !strings.Contains(body, `"code":"unavailable"`) || !strings.Contains(body, "waits for the other nodes") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// Why, and what helps then, is for who reaches the admin socket.
	w.say(waitsForNodes, "n2 is damaged", "stop all nodes")
	if _, body := get("/v1/status"); strings.Contains(body, "n2") || strings.Contains(body, "stop all") || !strings.Contains(body, waitsForNodesHint) {
		t.Errorf("who has no token hears %s", body)
	}
	if err := w.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })}
	go func() { _ = after.Serve(l) }()
	defer after.Close()
	if code, body := get("/v1/status"); code != 200 || body != "here" {
		t.Errorf("afterwards: %d %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A node that waits speaks TLS where it will: its callers need not change.
func TestNodeThatWaitsSpeaksTLS(t *testing.T) {
	cfg, certs := overTLS(t, t.TempDir(), true)
	var f front
	if err := f.openCertificates(cfg.TLS, nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := newWaiting(waitsForNodes, waitsForNodesHint)
	w.at(l.(*net.TCPListener), f.secure)
	if body, err := fetch(t, "https://"+l.Addr().String()+"/v1/status", trusting(t, certs, "agents")); err != nil || !strings.Contains(body, "waits for the other nodes") {
		t.Errorf("%q %v", body, err)
	}
	if _, err := fetch(t, "https://"+l.Addr().String()+"/livez", trusting(t, certs, "")); err == nil {
		t.Error("it answers a client without a certificate")
	}
	if err := w.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
