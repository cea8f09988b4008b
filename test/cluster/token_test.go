package cluster

import (
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/memory"
)

// answersReady waits until a node that asks for a token serves.
func (p *process) answersReady(ctx context.Context) {
	p.team.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+p.addrs.http+"/readyz", nil)
		must(p.team.t, err)
		if resp, err := c.Do(req); err == nil {
			must(p.team.t, resp.Body.Close())
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-p.exited:
			p.team.t.Fatalf("%s ended: %s\n%s", p.id, p.cmd.ProcessState, p.out)
		case <-ctx.Done():
			p.team.t.Fatalf("%s was not ready: %v\n%s", p.id, ctx.Err(), p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// token is the operator token as a node keeps it.
func (p *process) token() string {
	p.team.t.Helper()
	file := filepath.Join(p.dir, "keys", "operator.token")
	b, err := os.ReadFile(file)
	must(p.team.t, err)
	info, err := os.Stat(file)
	must(p.team.t, err)
	if info.Mode().Perm() != fs.FileMode(0o600) {
		p.team.t.Errorf("%s has mode %o", file, info.Mode().Perm())
	}
	return strings.TrimSpace(string(b))
}

// A cluster has one operator token, drawn at its founding: each node takes it over HTTP and
// NATS and for what only the operator may do. A node that is given another one is refused,
// and one that has lost it takes it from the others.
func TestOneOperatorTokenACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	tm := newTeam(t, 3)
	for _, p := range tm.nodes {
		p.args = []string{"--auth", "token"}
		p.begin()
	}
	for _, p := range tm.nodes {
		p.answersReady(ctx)
	}
	token := tm.nodes[0].token()
	for _, p := range tm.nodes {
		if other := p.token(); other != token {
			t.Fatalf("%s has another token than %s", p.id, tm.nodes[0].id)
		}
		for given, want := range map[string]memory.Code{token: "", token + "x": memory.CodeUnauthenticated} {
			c, err := client.New(p.addrs.http, client.Options{Agent: "tester", Token: given})
			must(t, err)
			if _, err := c.Doctor(ctx); memory.CodeOf(err) != want {
				t.Errorf("%s, the operator over HTTP: %v, want %q", p.id, err, want)
			}
			if _, err := c.Capture(ctx, "default", memory.Capture{Text: "with the token at " + p.id}, client.CaptureOptions{}); memory.CodeOf(err) != want {
				t.Errorf("%s, a capture over HTTP: %v, want %q", p.id, err, want)
			}
			must(t, c.Close())
			nc, err := nats.Connect("nats://"+p.addrs.nats, nats.Token(given), nats.MaxReconnects(0))
			if (err == nil) != (want == "") {
				t.Errorf("%s over NATS: %v, want %q", p.id, err, want)
			}
			if err == nil {
				if _, err := nc.RequestWithContext(ctx, "mem.in.default.bus.capture", []byte("over NATS")); err != nil {
					t.Errorf("%s, a capture over NATS: %v", p.id, err)
				}
				nc.Close()
			}
		}
	}
	last := tm.nodes[2]
	last.term()
	last.env = []string{"MNEME_AUTH_TOKEN=another-token-of-24-letters"}
	last.begin()
	select {
	case <-last.exited:
	case <-ctx.Done():
		t.Fatalf("a node with another token goes on:\n%s", last.out)
	}
	if code, said := last.cmd.ProcessState.ExitCode(), last.out.String(); code != 2 || !strings.Contains(said, "is not the one that the cluster has: MNEME_AUTH_TOKEN") ||
		!strings.Contains(said, "stop all nodes") || strings.Contains(said, "another-token-of-24-letters") || strings.Contains(said, token) {
		t.Errorf("ended with %d:\n%s", code, said)
	}
	last.env = nil
	must(t, os.Remove(filepath.Join(last.dir, "keys", "operator.token")))
	last.begin()
	last.answersReady(ctx)
	if last.token() != token {
		t.Errorf("%s drew another token", last.id)
	}
}
