package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mneme/client"
	"mneme/memory"
)

// patience bounds what would otherwise hang. No test waits for it to pass.
const patience = 60 * time.Second

// programs are the two commands under test.
type programs struct{ memnode, memctl string }

var built programs // set once by TestMain, before any test

func TestMain(m *testing.M) {
	if os.Getenv(natsVariable) != "" {
		os.Exit(natsMain(os.Args[1:]))
	}
	if os.Getenv(expireVariable) != "" {
		os.Exit(expireMain(os.Args[1:]))
	}
	if os.Getenv(nodeVariable) != "" {
		os.Exit(nodeMain())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mneme-e2e-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command("go", "build", "-tags=enable_antithesis_sdk", "-o", dir+string(filepath.Separator), "mneme/cmd/memnode", "mneme/cmd/memctl").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the commands: %v\n%s", err, out)
		return 1
	}
	built = programs{filepath.Join(dir, "memnode"), filepath.Join(dir, "memctl")}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// daemon is a running memnode.
type daemon struct {
	t          testing.TB
	cmd        *exec.Cmd
	dir        string
	http, nats string // URLs
	stdout     string // up to and with the ready lines' first
	stderr     *output
	exited     chan struct{}
	token      string
	client     *client.Client
}

// output keeps what a process prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// environment is what both programs see: nothing of the machine's settings.
func environment(home string, extra ...string) []string {
	return append([]string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, extra...)
}

// launch is how a node is started.
type launch struct {
	args []string
	env  []string
	self bool // this test program plays the node; see node_test.go
}

// attempt starts a node on free ports and returns it when it is ready, or nil
// and how it ended. Arguments given later win.
func (l launch) attempt(t testing.TB, dir string) (*daemon, ended) {
	t.Helper()
	program := built.memnode
	args := append([]string{"--data-dir", dir, "--http-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0"}, l.args...)
	env := environment(t.TempDir(), l.env...)
	if l.self {
		program, args = os.Args[0], []string{"-test.run=^$"}
		env = append(env, nodeVariable+"="+dir, "GORACE="+os.Getenv("GORACE"))
	}
	cmd := exec.Command(program, args...)
	cmd.Env = env
	d := &daemon{t: t, cmd: cmd, dir: dir, stderr: &output{}, exited: make(chan struct{})}
	cmd.Stderr = d.stderr
	first := &firstLine{found: make(chan string, 1)}
	cmd.Stdout = first
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		close(d.exited)
	}()
	t.Cleanup(func() { d.kill() })
	select {
	case line := <-first.found:
		d.ready(line)
		return d, ended{}
	case <-d.exited:
		return nil, ended{code: cmd.ProcessState.ExitCode(), err: d.stderr.String(), state: cmd.ProcessState.String()}
	case <-time.After(patience):
		d.kill()
		t.Fatalf("memnode was not ready after %s:\n%s", patience, d.stderr)
		return nil, ended{}
	}
}

// ended is how a program ended.
type ended struct {
	code     int
	out, err string
	state    string
}

// firstLine hands out the first line written.
type firstLine struct {
	b     []byte
	done  bool
	found chan string
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.b = append(f.b, p...)
	if i := bytes.IndexByte(f.b, '\n'); i >= 0 && !f.done {
		f.done = true
		f.found <- string(f.b[:i])
	}
	return len(p), nil
}

func (d *daemon) ready(line string) {
	d.t.Helper()
	d.stdout = line
	for _, word := range strings.Fields(line) {
		if v, ok := strings.CutPrefix(word, "http="); ok {
			d.http = v
		}
		if v, ok := strings.CutPrefix(word, "nats="); ok {
			d.nats = v
		}
	}
	if !strings.HasPrefix(line, "memnode ready ") || d.http == "" || d.nats == "" {
		d.t.Fatalf("first line is %q", line)
	}
	d.client = d.clientAs("tester")
}

func (d *daemon) clientAs(agent string) *client.Client {
	d.t.Helper()
	c, err := client.New(d.http, client.Options{Agent: agent, Token: d.token})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

// start fails the test unless the node gets ready.
func start(t testing.TB, dir string, args ...string) *daemon {
	t.Helper()
	return launch{args: args}.start(t, dir)
}

func (l launch) start(t testing.TB, dir string) *daemon {
	t.Helper()
	d, e := l.attempt(t, dir)
	if d == nil {
		t.Fatalf("memnode did not start: %s\n%s", e.state, e.err)
	}
	return d
}

// kill is SIGKILL; it returns when the process is gone.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.exited
}

// term is SIGTERM; the node must end well.
func (d *daemon) term() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	d.wait()
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		d.t.Fatalf("after SIGTERM memnode ended with %d:\n%s", code, d.stderr)
	}
}

func (d *daemon) wait() {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(patience):
		d.t.Fatalf("memnode did not end:\n%s", d.stderr)
	}
}

// memctl runs the command against the node.
func (d *daemon) memctl(args ...string) ended {
	d.t.Helper()
	env := []string{"MNEME_ADDR=" + d.http, "MNEME_AGENT=tester"}
	if d.token != "" {
		env = append(env, "MNEME_TOKEN="+d.token)
	}
	return memctl(d.t, "", env, args...)
}

func memctl(t testing.TB, stdin string, env []string, args ...string) ended {
	t.Helper()
	return memctlContext(context.Background(), t, stdin, env, args...)
}

// memctlContext is memctl, killed when ctx ends.
func memctlContext(ctx context.Context, t testing.TB, stdin string, env []string, args ...string) ended {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built.memctl, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Env = environment(t.TempDir(), env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ended{code: -1, state: err.Error()}
	}
	return ended{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errOut.String(), state: cmd.ProcessState.String()}
}

// must fails the test unless memctl ended well, and returns its output.
func (d *daemon) must(args ...string) string {
	d.t.Helper()
	e := d.memctl(args...)
	if e.code != 0 {
		d.t.Fatalf("memctl %s: %s\n%s", strings.Join(args, " "), e.state, e.err)
	}
	return e.out
}

// bus connects an agent to the node's NATS.
func (d *daemon) bus(opts ...nats.Option) *nats.Conn {
	d.t.Helper()
	nc, err := nats.Connect(d.nats, append([]nats.Option{nats.MaxReconnects(0)}, opts...)...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(nc.Close)
	return nc
}

// operator is the client for the operator's verbs.
func (d *daemon) operator() *client.Client {
	d.t.Helper()
	c, err := d.client.Operator(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	if c != d.client {
		d.t.Cleanup(func() { _ = c.Close() })
	}
	return c
}

// call is one raw HTTP request; it returns status and body.
func (d *daemon) call(method, path, body string, header ...string) (int, string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.http+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	return do(d.t, req)
}

func do(t testing.TB, req *http.Request) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
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

func (d *daemon) status() memory.Status {
	d.t.Helper()
	s, err := d.client.Status(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *daemon) shard() memory.ShardStatus {
	d.t.Helper()
	return d.status().Shards[0]
}

// capture remembers one text and returns its result.
func (d *daemon) capture(ns, text string) memory.CaptureResult {
	d.t.Helper()
	r, err := d.client.Capture(d.t.Context(), ns, memory.Capture{Agent: "tester", Text: text}, client.CaptureOptions{})
	if err != nil {
		d.t.Fatalf("capture %q: %v", text, err)
	}
	return r.Results[0]
}

// find searches and returns the texts of the hits.
func (d *daemon) find(ns, query string) []string {
	d.t.Helper()
	r, err := d.client.Search(d.t.Context(), ns, memory.SearchRequest{Query: query})
	if err != nil {
		d.t.Fatalf("search %q: %v", query, err)
	}
	return texts(r.Results)
}

func texts(hits []memory.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.Text
	}
	return out
}

// everything lists all records that the tester sees, oldest first.
func (d *daemon) everything(ns string) []memory.Record {
	d.t.Helper()
	var all []memory.Record
	opt := client.ListOptions{ListRequest: memory.ListRequest{Limit: memory.MaxLimit}}
	for {
		page, err := d.client.List(d.t.Context(), ns, opt)
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, page.Records...)
		if opt.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// copyDir copies a stopped node's directory.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// files lists the files below dir, relative to it, in order.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustJSON(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// plainEnd checks that a program ended with the code, in clear words: no stack
// trace, and its last lines are a message and at most one hint.
func plainEnd(t testing.TB, e ended, code int, parts ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("ended with %d (%s), want %d:\n%s", e.code, e.state, code, e.err)
	}
	noStack(t, e.err)
	if n := strings.Count(e.err, "memnode: ") + strings.Count(e.err, "memctl: "); n != 1 {
		t.Errorf("%d messages instead of one:\n%s", n, e.err)
	}
	for _, p := range parts {
		if !strings.Contains(e.err, p) {
			t.Errorf("standard error lacks %q:\n%s", p, e.err)
		}
	}
}

func noStack(t testing.TB, text string) {
	t.Helper()
	for _, bad := range []string{"goroutine ", "panic:", "fatal error:", "runtime error", "SIGSEGV", "DATA RACE"} {
		if strings.Contains(text, bad) {
			t.Errorf("a stack trace or panic was printed (%q):\n%.3000s", bad, text)
			return
		}
	}
}
