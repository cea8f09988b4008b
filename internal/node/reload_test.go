package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/peer/devca"
	"mneme/memory"
)

// over asks through the admin socket.
func over(t *testing.T, n *Node, method, path string) (int, []byte) {
	t.Helper()
	return overWith(t, n, method, path, "")
}

// overWith does so with a body of JSON.
func overWith(t *testing.T, n *Node, method, path, body string) (int, []byte) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.front.socket)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// fileOf is what a report says of one file.
func fileOf(r memory.ReloadReport, name string) memory.ReloadedFile {
	if i := slices.IndexFunc(r.Files, func(f memory.ReloadedFile) bool { return strings.Contains(f.Name, name) }); i >= 0 {
		return r.Files[i]
	}
	return memory.ReloadedFile{}
}

func TestReloadReadsCertificatesAndTheToken(t *testing.T) {
	cfg, certs := overTLS(t, t.TempDir(), false)
	cfg.Auth = "token"
	n := open(t, cfg)
	reload := func() memory.ReloadReport {
		t.Helper()
		r, err := n.Reload(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := reload(); fileOf(r, "clients").State != memory.FileSame || fileOf(r, "token").State != memory.FileSame {
		t.Errorf("nothing has changed: %+v", r)
	}
	before := n.front.certs.Expires()
	if _, err := devca.Make(devca.Options{Dir: certs, Nodes: []string{"mneme"}, Hosts: []string{"other.example"}, Use: devca.ForServers, Valid: 3 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(cfg.DataDir, "keys", "operator.token")
	old, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	const fresh = "another-operator-token"
	if err := os.WriteFile(token, []byte(fresh+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := reload()
	if got := fileOf(r, "token"); got.State != memory.FileRead {
		t.Errorf("%+v", got)
	}
	if got := fileOf(r, "clients"); n.front.certs.Expires().Equal(before) || got.State == memory.FileRefused {
		t.Errorf("%+v, it ends %s", got, n.front.certs.Expires())
	}
	if strings.Contains(toJSON(t, r), fresh) {
		t.Errorf("the report holds the token: %+v", r)
	}
	admits := func(token string) bool {
		req, _ := http.NewRequest("GET", "/", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		_, err := n.gate.Request(req)
		return err == nil
	}
	if !admits(fresh) || admits(strings.TrimSpace(string(old))) {
		t.Error("the token that counts is not the one in the file")
	}

	// What cannot be used leaves what counted before: a token that is cut, and one that is not there.
	for _, b := range [][]byte{old[:35], nil} {
		if err := os.Remove(token); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			if err := os.WriteFile(token, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := fileOf(reload(), "token"); got.State != memory.FileRefused || !admits(fresh) {
			t.Errorf("a token of %d bytes: %+v", len(b), got)
		}
		if _, err := os.Stat(token); b == nil && err == nil {
			t.Error("a token was made, and nobody asked for one")
		} else if b == nil {
			if err := os.WriteFile(token, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(os.WriteFile(token, []byte("short"), 0o600), os.WriteFile(filepath.Join(certs, "mneme.crt"), []byte("no certificate"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r = reload()
	if fileOf(r, "token").State != memory.FileRefused || fileOf(r, "clients").State != memory.FileRefused || fileOf(r, "clients").Detail == "" || !admits(fresh) {
		t.Errorf("%+v", r)
	}
}

func TestReloadTakesSettingsThatMayChange(t *testing.T) {
	var logged syncBuffer
	cfg := quiet(shortDir(t))
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	live, bad := Live{}, error(nil)
	cfg.Process.Reread = func() (Live, memory.ReloadReport, error) {
		return live, memory.ReloadReport{Settings: []memory.ReloadedSetting{{Name: "slow-search", From: "1s", To: "1ns", Applied: true}}}, bad
	}
	n := open(t, cfg)
	must(t, n, "the canary sings")
	find(t, n, "canary")
	if strings.Contains(logged.String(), "slow search") {
		t.Error("a search was logged before that was asked for")
	}
	host := func() int {
		r, err := http.NewRequest("GET", "http://"+n.HTTPAddr()+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "mneme.example"
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := host(); got != 403 {
		t.Errorf("another name: %d", got)
	}
	live = Live{SlowSearch: 1, AllowedHosts: []string{"mneme.example"}}
	if status, body := over(t, n, "POST", "/v1/admin/reload"); status != 200 || !strings.Contains(string(body), `"slow-search"`) {
		t.Fatalf("%d %s", status, body)
	}
	find(t, n, "canary")
	if text := logged.String(); !strings.Contains(text, "slow search") || strings.Contains(text, "canary") {
		t.Errorf("%s", grep(text, "slow search"))
	}
	if got := host(); got != 200 {
		t.Errorf("the name that was allowed: %d", got)
	}
	live, bad = Live{}, errors.New("line 3 is nonsense")
	if status, body := over(t, n, "POST", "/v1/admin/reload"); status != 400 || !strings.Contains(string(body), "nothing has changed") || host() != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// TestDebugBundleHoldsNoSecrets looks for words that must not leave the node in each file of a
// bundle: memories, queries, keys, tokens.
func TestDebugBundleHoldsNoSecrets(t *testing.T) {
	var logged syncBuffer
	cfg := quiet(shortDir(t))
	cfg.Auth, cfg.AuthToken = "token", "canary-operator-token"
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	cfg.SlowSearch = 1
	cfg.Process.Log = func() []byte { return []byte(logged.String()) }
	cfg.Process.Settings = func() any { return map[string]string{"auth-token": "[redacted]"} }
	n := open(t, cfg)
	must(t, n, "canary memory")
	find(t, n, "canary query")
	if _, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default"}, memory.SearchRequest{Query: `"canary phrase`}); err != nil {
		t.Fatal(err)
	}
	status, body := over(t, n, "GET", "/v1/admin/debug/bundle")
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	secrets := []string{"canary"}
	keys, err := filepath.Glob(filepath.Join(cfg.DataDir, "keys", "*"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, name := range keys {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for field := range strings.FieldsSeq(string(b)) {
			if len(field) >= 32 { // a key in words
				secrets = append(secrets, field)
			}
		}
	}
	files := untar(t, body)
	for name, text := range files {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s: …%s", name, text[max(0, i-60):min(len(text), i+60)])
			}
		}
	}
	for name, holds := range map[string]string{"README.txt": "format 1", "version.json": `"go"`, "settings.json": "[redacted]", "status.json": `"position"`, "cluster.json": `"shards"`,
		"doctor.json": `"checks"`, "metrics.txt": "mneme_records{", "log.txt": "slow search", "goroutines.txt": "goroutine profile", "heap.pb.gz": ""} {
		if text, ok := files["mneme-debug/"+name]; !ok || text == "" || !strings.Contains(text, holds) {
			t.Errorf("%s: %.300q", name, text)
		}
	}
}

func untar(t *testing.T, b []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

func TestProfilesAreTaken(t *testing.T) {
	n := open(t, quiet(shortDir(t)))
	for _, kind := range []string{"goroutine", "heap", "mutex"} {
		if status, b := over(t, n, "GET", "/v1/admin/debug/profile/"+kind); status != 200 || len(b) == 0 || b[0] != 0x1f {
			t.Errorf("%s: %d, %d bytes", kind, status, len(b))
		}
	}
	if status, b := over(t, n, "GET", "/v1/admin/debug/profile/cpu?seconds=1"); status != 200 || len(b) == 0 {
		t.Errorf("cpu: %d, %d bytes", status, len(b))
	}
	if status, _ := over(t, n, "GET", "/v1/admin/debug/profile/everything"); status != 404 {
		t.Errorf("a profile that is not there: %d", status)
	}
}

// TestSlowSearchesNameTheirTrace: a line leads from a trace of the caller to the shard.
func TestSlowSearchesNameTheirTrace(t *testing.T) {
	var logged syncBuffer
	cfg := quiet(t.TempDir())
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	cfg.SlowSearch = 1
	n := open(t, cfg)
	must(t, n, "something")
	const header, id, over = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "trace_id=4bf92f3577b34da6a3ce929d0e0e4736", "trace_id=aaaa2f3577b34da6a3ce929d0e0e4736"
	r, err := http.NewRequest("POST", "http://"+n.HTTPAddr()+"/v1/namespaces/default/search", strings.NewReader(`{"query":"something"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("traceparent", header)
	r.Header.Set("X-Request-Id", "mine")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	nc, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	m := nats.NewMsg("mem.api.default.search")
	m.Data, m.Header = []byte(`{"query":"something"}`), nats.Header{"traceparent": {strings.Replace(header, "4bf9", "aaaa", 1)}}
	if _, err := nc.RequestMsg(m, patience); err != nil {
		t.Fatal(err)
	}
	lines := grep(logged.String(), "slow search")
	for _, want := range []string{id, "request_id=mine", over, "shard=0"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %s in\n%s", want, lines)
		}
	}
	if text := logged.String(); !strings.Contains(grep(text, "takes writes"), "term=") || !strings.Contains(grep(text, "takes writes"), "position=p0.") {
		t.Errorf("nobody says who leads: %s", grep(text, "leads"))
	}
}

// TestReplacedTokenEndsWhatItHadOpen: an event stream and a NATS client of the former token read
// on, and wrote on, until they left by themselves.
func TestReplacedTokenEndsWhatItHadOpen(t *testing.T) {
	cfg := quiet(shortDir(t))
	cfg.Auth = "token"
	n := open(t, cfg)
	file := filepath.Join(cfg.DataDir, "keys", "operator.token")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const fresh = "another-operator-token"
	bearer := "Bearer " + strings.TrimSpace(string(old))
	if code, _ := over(t, n, "GET", "/v1/namespaces/default"); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}

	gone := make(chan struct{})
	conn, err := nats.Connect(n.NATSURL(), nats.Token(strings.TrimSpace(string(old))), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(gone) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+n.HTTPAddr()+"/v1/namespaces/default/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", bearer)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	defer resp.Body.Close()

	if err := os.WriteFile(file, []byte(fresh+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := n.Reload(t.Context())
	if err != nil || fileOf(report, "token").State != memory.FileRead {
		t.Fatalf("%+v, %v", report, err)
	}
	said, err := io.ReadAll(resp.Body) // which would not end
	if err != nil || !strings.Contains(string(said), string(memory.CodeUnauthenticated)) {
		t.Errorf("the stream ended with %q, %v", said, err)
	}
	<-gone
	again, err := nats.Connect(n.NATSURL(), nats.Token(fresh))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if ended, err := n.nats.EndCallers(); err != nil || ended != 1 {
		t.Errorf("%d connections were ended, %v: the node's own are no callers'", ended, err)
	}
	must(t, n, "the node's own connections are there")
}
