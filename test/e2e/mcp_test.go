package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// laptop is a user's machine: nothing runs there until an agent is started.
type laptop struct {
	t          *testing.T
	home, addr string
	env        []string
}

func newLaptop(t *testing.T) *laptop {
	t.Helper()
	addrs := testaddr.Reserve(t, 2)
	l := &laptop{t: t, home: t.TempDir(), addr: addrs[0]}
	l.env = environment(l.home, "MNEME_NATS_ADDR="+addrs[1])
	t.Cleanup(func() { // after the agents have gone
		pid, err := l.nodePID()
		if err != nil {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		l.await("the node ends", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	})
	return l
}

// await waits for what has to come.
func (l *laptop) await(what string, done func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("it never came: %s", what)
		}
	}
}

// nodePID is the process that has the data directory.
func (l *laptop) nodePID() (int, error) {
	found, err := exec.Command("pgrep", "-f", "^"+built.memnode+" --http-addr "+l.addr).Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(found)))
}

// agent starts an agent's client, which starts memctl mcp.
func (l *laptop) agent(name string, args ...string) *mcp.ClientSession {
	l.t.Helper()
	cmd := exec.Command(built.memctl, append([]string{"mcp", "--start", "always", "--addr", l.addr}, args...)...)
	cmd.Env = l.env
	stderr := &output{}
	cmd.Stderr = stderr
	s, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil).Connect(l.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		l.t.Fatalf("%v\n%s", err, stderr)
	}
	l.t.Cleanup(func() { _ = s.Close() })
	return s
}

// tool calls a tool and returns the text of its answer.
func (l *laptop) tool(s *mcp.ClientSession, name string, args map[string]any) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if res.IsError {
		l.t.Errorf("%s: %s", name, text)
	}
	return text
}

// Agents of one machine share one node, which the first of them starts; when it is gone, the
// next call starts it again.
func TestAgentsShareTheNodeThatTheyStart(t *testing.T) {
	l := newLaptop(t)
	var wg sync.WaitGroup
	for _, name := range []string{"Claude Code", "cursor", "codex"} {
		wg.Go(func() {
			s := l.agent(name)
			l.tool(s, "memory_store", map[string]any{"text": name + " was here: the staging database is called heron"})
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	var pid int
	l.await("one node is left of those that were started", func() (one bool) {
		found, err := l.nodePID()
		pid = found
		return err == nil
	})
	c, err := client.New(l.addr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.List(t.Context(), "default", client.ListOptions{ListRequest: memory.ListRequest{Filter: memory.Filter{Agents: []string{"claude-code", "cursor", "codex"}}}})
	if err != nil || len(all.Records) != 3 {
		t.Fatalf("%d of 3 memories, %v", len(all.Records), err)
	}

	later := l.agent("gemini")
	if got := l.tool(later, "memory_search", map[string]any{"query": "name of the staging database"}); !strings.Contains(got, "heron") {
		t.Error(got)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.await("the node is gone", func() bool { // whose name goes before what it listens at
		_, err := l.nodePID()
		c, listens := net.Dial("tcp", l.addr)
		if listens == nil {
			_ = c.Close()
		}
		return err != nil && errors.Is(listens, syscall.ECONNREFUSED)
	})
	if got := l.tool(later, "memory_search", map[string]any{"query": "name of the staging database"}); !strings.Contains(got, "heron") {
		t.Error(got)
	}
	if again, err := l.nodePID(); err != nil || again == pid {
		t.Errorf("%d, %v", again, err)
	}
	if info, err := os.Stat(filepath.Join(l.home, "mneme", "memnode.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its log: %v, %v", info, err)
	}
}

// A node is there as soon as an agent's program is, for the hooks of its first prompt.
func TestANodeIsStartedBeforeTheFirstCall(t *testing.T) {
	l := newLaptop(t)
	l.agent("Claude Code")
	l.await("a node", func() bool { _, err := l.nodePID(); return err == nil })
}

// After a start of the machine the first hook finds no node. It says nothing, ends well, and has
// one started: what it was told is kept, and the next prompt is answered.
func TestAHookHasTheNodeStarted(t *testing.T) {
	l := newLaptop(t)
	hook := func(event, prompt string, args ...string) ended {
		in := `{"session_id":"s` + prompt + `","prompt":"` + prompt + `"}`
		e := memctl(t, in, append(slices.Clone(l.env), "MNEME_NAMESPACE=default"), append([]string{"hook", "--agent", "claude-code", "--event", event, "--addr", l.addr}, args...)...)
		if e.code != 0 {
			t.Errorf("%s ends with %d: %s", event, e.code, e.err)
		}
		return e
	}
	if e := hook("SessionStart", "", "--start", "never"); strings.Contains(e.err, "is being started") {
		t.Error(e.err)
	}
	if e := hook("SessionStart", ""); strings.Contains(e.err, "is being started") { // at an address that was given
		t.Error(e.err)
	}
	var wg sync.WaitGroup
	said := make([]string, 4)
	for i := range said {
		wg.Go(func() {
			said[i] = hook("UserPromptSubmit", "Remember that the heron nests in April, as number "+strconv.Itoa(i)+" said.", "--start", "always").err
		})
	}
	wg.Wait()
	if all := strings.Join(said, ""); strings.Count(all, "one is being started") != 1 {
		t.Errorf("the hooks say %s", all)
	}
	l.await("a node", func() bool { _, err := l.nodePID(); return err == nil })
	l.await("the next prompt is answered", func() bool {
		return strings.Contains(hook("UserPromptSubmit", "When does the heron nest?").out, "April")
	})
}

// What an agent's program sends by mistake ends nothing but itself.
func TestMCPBadInput(t *testing.T) {
	d := start(t, t.TempDir())
	args := []string{"mcp", "--addr", d.http, "--start", "never"}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, in := range map[string]string{
		"nothing":          "",
		"garbage":          "\x00\xff{{{{\n",
		"half a message":   `{"jsonrpc":"2.0","id":1,"meth`,
		"an array":         "[1,2,3]\n",
		"gone in the call": hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"x"}}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if e := memctlContext(ctx, t, in, environment(t.TempDir()), args...); ctx.Err() != nil || strings.Contains(e.err, "goroutine ") {
				t.Errorf("it hangs or panics: %+v", e)
			}
		})
	}
	bad := memctl(t, "", environment(t.TempDir()), "mcp", "--profile", "huge")
	plainEnd(t, bad, 2, "micro, lite, full and graph")
	away := memctl(t, "", environment(t.TempDir()), "mcp", "--start", "always", "--addr", "mneme.example:1")
	plainEnd(t, away, 2, "loopback")
}

// Two hundred calls at once are all answered, though a node works on fewer side by side.
func TestMCPManyCallsAtOnce(t *testing.T) {
	l := newLaptop(t)
	s := l.agent("busy")
	l.tool(s, "memory_store", map[string]any{"text": "the harbour opens at six"})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if got := l.tool(s, "memory_search", map[string]any{"query": "when does the harbour open"}); !strings.Contains(got, "six") {
				t.Error(got)
			}
		})
	}
	wg.Wait()
}

// Without a node, and without one to start, a call says so and what to do.
func TestMCPWithoutANode(t *testing.T) {
	addr := testaddr.Reserve(t, 1)[0]
	cmd := exec.Command(built.memctl, "mcp", "--start", "never", "-n", "team", "--addr", addr)
	cmd.Env = environment(t.TempDir())
	cmd.Stderr = &bytes.Buffer{}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !res.IsError || !strings.Contains(text, "unavailable: ") || !strings.Contains(text, "memnode") {
		t.Errorf("%v %s", res.IsError, text)
	}
}
