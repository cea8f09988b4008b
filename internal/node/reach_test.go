package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mneme/client"
	"mneme/internal/api"
	"mneme/internal/eventlog"
	"mneme/memory"
)

const walkToken = "a-token-of-24-characters"

// knock sends the shortest possible request to a route and returns the status.
func knock(t *testing.T, c *http.Client, base, pattern, token string) int {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.NewReplacer("{ns}", "default", "{id}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "{$}", "", "{kind}", "heap").Replace(path)
	if strings.HasSuffix(path, "/events") && method == "GET" {
		path += "?follow=false"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// deletes says that a route would take away what the walk still needs.
func deletes(pattern string) bool { return pattern == "DELETE /v1/namespaces/{ns}" }

// TestEveryRouteAsksForItsRight walks the registry: without a token, with a
// wrong one, with the right one, and, where nobody has to be admitted, over TCP
// and over the admin socket.
func TestEveryRouteAsksForItsRight(t *testing.T) {
	closed := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: t.TempDir(), Auth: "token", AuthToken: walkToken,
		OAuth: &OAuth{Issuer: "http://127.0.0.1:1", Resource: "https://mneme.example/mcp"}})
	free := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: shortDir(t)})
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", free.front.socket)
	}}}
	walked := 0
	for _, e := range api.Registry() {
		if e.Kind != api.KindRoute {
			continue
		}
		walked++
		isOpen := e.Right == api.RightOpen
		for name, token := range map[string]string{"no token": "", "a wrong token": walkToken + "x"} {
			if got := knock(t, c, "http://"+closed.HTTPAddr(), e.Name, token); (got == 401) == isOpen {
				t.Errorf("%s (%s) with %s: %d", e.Name, e.Right, name, got)
			}
		}
		if deletes(e.Name) {
			continue
		}
		if got := knock(t, c, "http://"+closed.HTTPAddr(), e.Name, walkToken); got == 401 || (got == 403) != (e.Right == api.RightLocal) {
			t.Errorf("%s (%s) with the token: %d", e.Name, e.Right, got)
		}
		if got := knock(t, c, "http://"+free.HTTPAddr(), e.Name, ""); (got == 403) != (e.Right >= api.RightAdmin) || got == 401 {
			t.Errorf("%s (%s) with auth off, over TCP: %d", e.Name, e.Right, got)
		}
		if got := knock(t, socket, "http://localhost", e.Name, ""); got == 401 || got == 403 {
			t.Errorf("%s (%s) with auth off, over the admin socket: %d", e.Name, e.Right, got)
		}
	}
	if walked < 30 {
		t.Errorf("walked %d routes", walked)
	}
}

// TestOpenAndAdminRoutesAreTheseOnly is the literal list: whoever makes a route
// open, or takes one from the operator, has to say so here too.
func TestOpenAndAdminRoutesAreTheseOnly(t *testing.T) {
	got := map[api.Right][]string{}
	for _, e := range api.Registry() {
		if e.Kind == api.KindRoute {
			got[e.Right] = append(got[e.Right], e.Name)
		}
		if e.Right < api.RightOpen || e.Right > api.RightLocal {
			t.Errorf("%s %s has no right", e.Kind, e.Name)
		}
	}
	for right, want := range map[api.Right][]string{
		api.RightOpen: {"GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/mcp", "GET /livez", "GET /openapi.json", "GET /readyz", "GET /{$}"},
		api.RightAdmin: {"GET /v1/admin/aside", "GET /v1/admin/backup/destroyed", "GET /v1/admin/backup/log", "GET /v1/admin/doctor", "GET /v1/admin/quarantine", "GET /v1/admin/rejected", "GET /v1/admin/upgrade",
			"POST /v1/admin/aside/remove", "POST /v1/admin/backup/keys", "POST /v1/admin/clock/accept", "POST /v1/admin/cluster/drain", "POST /v1/admin/cluster/remove", "POST /v1/admin/cluster/transfer", "POST /v1/admin/log/repair", "POST /v1/admin/log/verify", "POST /v1/admin/quarantine", "POST /v1/admin/rebuild", "POST /v1/admin/reload", "POST /v1/admin/upgrade"},
		api.RightLocal: {"GET /v1/admin/debug/bundle", "GET /v1/admin/debug/profile/{kind}"},
	} {
		slices.Sort(got[right])
		if !slices.Equal(got[right], want) {
			t.Errorf("%s: %q, want %q", right, got[right], want)
		}
	}
}

// TestEverySubjectAsksForItsRight walks the captures, services and feeds: nobody
// connects without the token, and with it each is served; and what the server
// lets callers do, and what it discovers, is registered.
func TestEverySubjectAsksForItsRight(t *testing.T) {
	n := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: t.TempDir(), Auth: "token", AuthToken: walkToken})
	for name, token := range map[string]string{"no token": "", "a wrong token": walkToken + "x"} {
		if nc, err := nats.Connect(n.NATSURL(), nats.Token(token)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
			nc.Close()
		}
	}
	nc, err := nats.Connect(n.NATSURL(), nats.Token(walkToken), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { t.Errorf("refused: %v", err) }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	publish, subscribe := eventlog.PublicSubjects()
	services := map[string]bool{}
	// An answer of discovery that comes late is dropped: on a busy machine one asks again.
	ask := func(subject string) (m *nats.Msg, err error) {
		for range 10 {
			if m, err = nc.Request(subject, []byte(`{}`), patience/10); err == nil {
				break
			}
		}
		return m, err
	}
	for _, e := range api.Registry() {
		switch e.Kind {
		case api.KindCapture, api.KindService:
			services[e.Name] = true
			if !slices.ContainsFunc(publish, func(p string) bool { return p == e.Name || strings.HasPrefix(e.Name, strings.TrimSuffix(p, ">")) }) {
				t.Errorf("%s is registered, but callers may not publish to it", e.Name)
			}
			subject := strings.NewReplacer(".*.", ".default.", "mem.in.>", "mem.in.default.walker.capture", "$SRV.>", "$SRV.PING").Replace(e.Name)
			if m, err := ask(subject); err != nil || len(m.Data) == 0 {
				t.Errorf("%s: %v", subject, err)
			}
		case api.KindFeed:
			if !slices.Contains(subscribe, e.Name) {
				t.Errorf("%s is registered, but callers may not subscribe to it", e.Name)
			}
			if _, err := nc.SubscribeSync(e.Name); err != nil {
				t.Error(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mem.in.>", "mem.api.>", "$SRV.>"}; !slices.Equal(publish, want) {
		t.Errorf("callers may publish to %q", publish)
	}
	if want := []string{"_INBOX.>", "mem.feed.>"}; !slices.Equal(subscribe, want) {
		t.Errorf("callers may subscribe to %q", subscribe)
	}
	m, err := ask("$SRV.INFO.mneme")
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil {
		t.Fatal(err)
	}
	for _, e := range info.Endpoints {
		if !services[e.Metadata["subject"]] {
			t.Errorf("%s is served, but not registered", e.Metadata["subject"])
		}
	}
}

// shortDir is a temporary directory whose path leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestKeysLeftOverTCPWithoutACredential: with auth off, the keyring and its
// master key are for the user of the machine, not for whoever reaches the port.
func TestKeysLeftOverTCPWithoutACredential(t *testing.T) {
	dir := shortDir(t)
	n := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: dir})
	remote, err := client.New(n.HTTPAddr(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = remote.Close() }()
	for _, master := range []bool{false, true} {
		var b strings.Builder
		if _, err := remote.Backups().Keys(t.Context(), &b, master, nil); memory.CodeOf(err) != memory.CodeForbidden || b.Len() > 0 || !strings.Contains(memory.AsError(err).Hint, "admin socket") {
			t.Errorf("master %v: %d bytes, %v", master, b.Len(), err)
		}
	}
	status, err := remote.Status(t.Context())
	if err != nil || status.AdminSocket != filepath.Join(dir, "admin.sock") {
		t.Fatalf("status names the socket %q, %v", status.AdminSocket, err)
	}
	info, err := os.Stat(status.AdminSocket)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info, err)
	}
	local, err := remote.Operator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	var with, without strings.Builder
	if _, err := local.Backups().Keys(t.Context(), &with, true, nil); err != nil || with.Len() == 0 {
		t.Errorf("over the socket: %v", err)
	}
	if _, err := local.Backups().Keys(t.Context(), &without, false, nil); err != nil || without.Len() == 0 {
		t.Errorf("over the socket: %v", err)
	}
	if key, err := os.ReadFile(filepath.Join(dir, "keys", "master.key")); err != nil || strings.Contains(without.String(), string(key)) {
		t.Errorf("the backup without the master key holds it, %v", err)
	}
	_ = local.Close()
	_ = remote.Close()
	shut(t, n)
	if _, err := os.Stat(status.AdminSocket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there after the stop: %v", err)
	}
}

// TestStaleAdminSocketIsReplaced: a killed node leaves its socket. What is no
// socket, or answers, is left alone.
func TestStaleAdminSocketIsReplaced(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var start *StartError
	if err := clearSocket(path); !errors.As(err, &start) || start.Kind != StartInUse || start.Hint == "" {
		t.Errorf("a socket in use: %v", err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if err := clearSocket(path); err != nil {
		t.Errorf("a stale socket: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale socket is still there: %v", err)
	}
	if err := clearSocket(path); err != nil {
		t.Errorf("no socket: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := clearSocket(path); !errors.As(err, &start) || start.Kind != StartUsage || start.Hint == "" {
		t.Errorf("a file: %v", err)
	}
}

// TestLongPathOfTheAdminSocket: a data directory with a long path starts without
// a socket and says so; a long path that was asked for is a mistake.
func TestLongPathOfTheAdminSocket(t *testing.T) {
	long := filepath.Join(shortDir(t), strings.Repeat("d", 110))
	n := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: long})
	if n.front.socket != "" {
		t.Errorf("socket %s", n.front.socket)
	}
	if c := n.doctor.checkSocket(); c.State != "warn" || !strings.Contains(c.Hint, "--admin-socket") {
		t.Errorf("%+v", c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := Open(ctx, Config{DataDir: shortDir(t), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", AdminSocket: filepath.Join(long, "s")})
	var start *StartError
	if !errors.As(err, &start) || start.Kind != StartUsage || !strings.Contains(start.Hint, "--admin-socket") {
		t.Errorf("a long --admin-socket: %v", err)
	}
	short := filepath.Join(shortDir(t), "s")
	if n := open(t, Config{HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", DataDir: filepath.Join(shortDir(t), strings.Repeat("e", 110)), AdminSocket: short}); n.front.socket != short {
		t.Errorf("socket %q, want %q", n.front.socket, short)
	}
}
