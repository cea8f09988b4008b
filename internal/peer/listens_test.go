package peer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
)

// listener takes connections and has each handled.
func listener(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
		}
	}()
	return l.Addr().String()
}

// An error tells whether somebody listens who may be the node that was meant.
func TestWhoListens(t *testing.T) {
	t.Parallel()
	now, past := t.TempDir(), func() time.Time { return time.Now().Add(-5 * time.Minute) }
	made := func(opt devca.Options) string {
		if _, err := devca.Make(opt); err != nil {
			t.Fatal(err)
		}
		return opt.Dir
	}
	made(devca.Options{Dir: now, Nodes: []string{"a", "b"}, Valid: time.Hour})
	port := func(dir, id, name string) *peer.Port {
		certs, err := peer.OpenCertificates(dir, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: name} }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	addr := func(dir, id, name string) string { return port(dir, id, name).Addr().String() }
	a := port(now, "a", "a-1")
	gone := port(now, "b", "b-1")
	_ = gone.Close()
	other := made(devca.Options{Dir: t.TempDir(), Nodes: []string{"b", "d"}, Valid: time.Hour})
	late := t.TempDir()
	if err := os.CopyFS(late, os.DirFS(now)); err != nil {
		t.Fatal(err)
	}
	made(devca.Options{Dir: late, Nodes: []string{"b", "d"}, Valid: time.Second, Now: past})
	for name, tc := range map[string]struct {
		addr    string
		listens bool
	}{
		"nobody":                     {gone.Addr().String(), false},
		"closes at once":             {listener(t, func(c net.Conn) { _ = c.Close() }), false},
		"resets":                     {listener(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }), false},
		"says nothing":               {listener(t, func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) }), true},
		"speaks no TLS":              {listener(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); _ = c.Close() }), false},
		"another authority":          {addr(other, "b", "b-1"), true},
		"another authority and node": {addr(other, "d", "d-1"), false},
		"out of time":                {addr(late, "b", "b-1"), true},
		"out of time, another node":  {addr(late, "d", "d-1"), false},
		"it, without the service":    {addr(now, "b", "b-1"), true},
		"another node":               {addr(now, "a", "a-2"), false},
		"another incarnation of it":  {addr(now, "b", "b-2"), false},
		"a name that is no address":  {"no-such-host.invalid:1", false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := a.Dial(ctx, tc.addr, "b-1", "s")
		cancel()
		if err == nil || errors.Is(err, peer.ErrListens) != tc.listens {
			t.Errorf("%s: %v, listens %v, want %v", name, err, !tc.listens, tc.listens)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Dial(ctx, listener(t, func(net.Conn) {}), "b-1", "s"); errors.Is(err, peer.ErrListens) {
		t.Error(err)
	}
}
