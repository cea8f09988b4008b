package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// A memnode of these tests is built with the product's assertions, and writes those that it
// came by where the tests themselves do (make test).
const (
	asserted     = "-tags=enable_antithesis_sdk"
	assertionsGo = "ANTITHESIS_SDK_LOCAL_OUTPUT"
)

// built is the folder of the program, to be removed at the end.
var built string

// memnode is the program under test, built once when a test asks for it.
var memnode = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mneme-cluster-*")
	if err != nil {
		return "", err
	}
	built = dir
	out, err := exec.Command("go", "build", asserted, "-o", dir+string(filepath.Separator), "mneme/cmd/memnode").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build memnode: %w\n%s", err, out)
	}
	return filepath.Join(dir, "memnode"), nil
})

// team is several memnode processes that are one cluster.
type team struct {
	t       testing.TB
	program string
	certs   string
	nodes   []*process
	net     wire         // nil: the nodes reach each other directly
	servers []*logServer // of the external NATS that keeps the log; none: the nodes keep it
	faulty  error        // why program has no clock that jumps and no slow disk; nil: it has
}

// process is one of them.
type process struct {
	team   *team
	id     string
	dir    string
	addrs  struct{ http, nats, agents, peer, route string } // the last two as the others reach it
	listen struct{ peer, route string }                     // if that is somewhere else
	client *client.Client
	args   []string // further ones
	within string   // the namespace that it runs in
	joins  bool     // a cluster that is there, and never founds one
	expect int      // so many nodes found the cluster; 0: all of the team
	env    []string
	cmd    *exec.Cmd
	pid    atomic.Int64 // of cmd, 0 when it does not run
	out    *output
	exited chan struct{}
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

// newTeam makes n nodes with certificates and addresses, and starts none.
func newTeam(t testing.TB, n int) *team {
	t.Helper()
	return newTeamAt(t, testaddr.Reserve(t, 4*n))
}

// newTeamAt makes nodes of four addresses each: for HTTP, NATS, peers and routes.
func newTeamAt(t testing.TB, free []string) *team {
	t.Helper()
	program, err := memnode()
	must(t, err)
	tm := &team{t: t, program: program, certs: t.TempDir(), faulty: errors.New("it is built for make robustness only")}
	opt := devca.Options{Dir: tm.certs, Valid: 60 * 24 * time.Hour}
	for i := range len(free) / 4 {
		p := &process{team: tm, id: fmt.Sprintf("n%d", i+1), dir: filepath.Join(t.TempDir(), "data")}
		p.addrs.http, p.addrs.nats, p.addrs.peer, p.addrs.route = free[4*i], free[4*i+1], free[4*i+2], free[4*i+3]
		p.addrs.agents = p.addrs.nats
		p.client, err = client.New(p.addrs.http, client.Options{Agent: "tester"})
		must(t, err)
		opt.Nodes = append(opt.Nodes, p.id)
		host, _, err := net.SplitHostPort(p.addrs.peer)
		must(t, err)
		if !slices.Contains(opt.Hosts, host) {
			opt.Hosts = append(opt.Hosts, host)
		}
		tm.nodes = append(tm.nodes, p)
	}
	_, err = devca.Make(opt)
	must(t, err)
	t.Cleanup(func() {
		for _, p := range tm.nodes {
			p.kill()
			_ = p.client.Close()
			if t.Failed() && p.out != nil {
				t.Logf("%s printed:\n%s", p.id, p.out)
			}
		}
	})
	return tm
}

// newRelayedTeam makes n nodes whose connections to each other go through relays.
func newRelayedTeam(t testing.TB, n int, seed uint64) *team {
	t.Helper()
	var tm *team
	relays := newNetwork(t, seed, func() []*process { return tm.nodes })
	tm = newTeam(t, n)
	tm.net = relays
	for _, p := range tm.nodes {
		p.listen.peer, p.listen.route = p.addrs.peer, p.addrs.route
		p.addrs.peer, p.addrs.route = relays.relay(p.id, raftPlane, p.listen.peer), relays.relay(p.id, logPlane, p.listen.route)
	}
	t.Cleanup(relays.close)
	return tm
}

// begin starts the process; ready waits for it.
func (p *process) begin() {
	p.team.t.Helper()
	var join []string
	for _, other := range p.team.nodes {
		join = append(join, other.addrs.peer)
	}
	addresses := []string{"--peer-addr", p.addrs.peer, "--route-addr", p.addrs.route}
	if p.addrs.route == "" { // its log is elsewhere
		addresses = addresses[:2]
	}
	if p.listen.peer != "" {
		addresses = []string{"--peer-addr", p.listen.peer, "--peer-advertise", p.addrs.peer}
		if p.addrs.route != "" {
			addresses = append(addresses, "--route-addr", p.listen.route, "--route-advertise", p.addrs.route)
		}
	}
	expect := cmp.Or(p.expect, len(p.team.nodes))
	if p.joins {
		expect = 0
	}
	command := []string{p.team.program}
	if p.within != "" {
		command = []string{"ip", "netns", "exec", p.within, p.team.program} // it becomes the program
	}
	p.cmd = exec.Command(command[0], append(slices.Concat(command[1:], p.args, addresses), "--node-id", p.id, "--data-dir", p.dir, "--http-addr", p.addrs.http, "--nats-addr", p.addrs.nats,
		"--join", strings.Join(join, ","), "--bootstrap-expect", fmt.Sprint(expect), "--peer-certs", p.team.certs)...)
	home := p.team.t.TempDir()
	p.cmd.Env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), assertionsGo + "=" + os.Getenv(assertionsGo)}
	p.cmd.Env = append(append(p.cmd.Env, "FAULTS_FILE="+p.faultsFile()), p.env...) // only a faulty memnode reads it
	if p.out == nil {
		p.out = &output{}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	must(p.team.t, p.cmd.Start())
	p.pid.Store(int64(p.cmd.Process.Pid))
	exited := make(chan struct{})
	p.exited = exited
	cmd := p.cmd
	go func() {
		_ = cmd.Wait() // the state says how it ended
		p.pid.CompareAndSwap(int64(cmd.Process.Pid), 0)
		close(exited)
	}()
}

// ready waits until the node serves.
func (p *process) ready(ctx context.Context) {
	p.team.t.Helper()
	for {
		if _, err := p.client.Status(ctx); err == nil {
			return
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

// kill is SIGKILL; it returns when the process is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
	p.cmd = nil
}

// term is SIGTERM; the node must end well.
func (p *process) term() {
	p.team.t.Helper()
	must(p.team.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.team.t.Fatalf("%s did not end\n%s", p.id, p.out)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.team.t.Fatalf("%s ended with %d after SIGTERM\n%s", p.id, code, p.out)
	}
	p.cmd = nil
}

// start starts all and waits for them.
func (tm *team) start(ctx context.Context) {
	tm.t.Helper()
	for _, p := range tm.nodes {
		p.begin()
	}
	for _, p := range tm.nodes {
		p.ready(ctx)
	}
}

// alive are the nodes that run.
func (tm *team) alive() (out []*process) {
	for _, p := range tm.nodes {
		if p.cmd != nil {
			out = append(out, p)
		}
	}
	return out
}

// leader is the node that leads the shard, as the nodes that run say.
func (tm *team) leader(ctx context.Context) *process {
	tm.t.Helper()
	for {
		for _, p := range tm.alive() {
			st, err := p.client.Status(ctx)
			if err != nil || len(st.Shards) == 0 {
				continue
			}
			for _, other := range tm.alive() {
				if st.Shards[0].Leader == other.id {
					return other
				}
			}
		}
		select {
		case <-ctx.Done():
			tm.t.Fatal("nobody leads")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// capture sends one memory to a node until it is acknowledged, under the same id.
func (p *process) capture(ctx context.Context, id, text string) memory.CaptureResult {
	p.team.t.Helper()
	for {
		resp, err := p.client.Capture(ctx, "default", memory.Capture{Agent: "a", ID: id, Text: text}, client.CaptureOptions{})
		if err == nil {
			return resp.Results[0]
		}
		if ctx.Err() != nil {
			p.team.t.Fatalf("capture %s at %s: %v %+v\n%s", id, p.id, err, resp, p.out)
		}
		time.Sleep(20 * time.Millisecond) // as a client does
	}
}

// same waits until all nodes stand at one position, and compares their state hashes.
func (tm *team) same(ctx context.Context) {
	tm.t.Helper()
	for {
		at, hashes := map[string]bool{}, map[string]bool{}
		for _, p := range tm.alive() {
			st, err := p.client.Status(ctx)
			if err != nil {
				at[p.id] = true
				continue
			}
			var position, hash string
			for _, s := range st.Shards {
				position, hash = position+s.Position+" ", hash+s.StateHash+" "
			}
			at[position], hashes[hash] = true, true
		}
		if len(at) == 1 {
			if len(hashes) != 1 {
				tm.t.Errorf("at one position %v the hashes are %v", at, hashes)
			}
			return
		}
		select {
		case <-ctx.Done():
			tm.t.Fatalf("the nodes do not come together: %v", at)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Three memnodes form a cluster by themselves; captures are taken by any of them, also
// while the one that leads is killed; what was acknowledged is on all of them, once.
func TestThreeNodesSurviveTheirLeader(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	tm.start(ctx)
	acked := map[string]memory.CaptureResult{}
	write := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			nodes := tm.alive()
			id := fmt.Sprintf("c%03d", i)
			acked[id] = nodes[i%len(nodes)].capture(ctx, id, fmt.Sprintf("memory number %d", i))
		}
	}
	write(0, 30)
	lead := tm.leader(ctx)
	began := time.Now()
	lead.kill()
	write(30, 31)
	t.Logf("without %s, which led: written after %v", lead.id, time.Since(began).Round(time.Millisecond))
	write(31, 60)
	lead.begin()
	lead.ready(ctx)
	write(60, 75)
	tm.same(ctx)
	for _, p := range tm.nodes {
		for id, want := range acked {
			rec, err := p.client.Get(ctx, "default", want.RecordID, client.GetOptions{})
			if err != nil || rec.RecordID != want.RecordID {
				t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
	}
	list, err := tm.nodes[1].client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
	must(t, err)
	if len(list.Records) != len(acked) {
		t.Errorf("%d records, acknowledged were %d", len(list.Records), len(acked))
	}
}

// A namespace is deleted on a cluster: its words leave the files of all nodes, and all of
// them start again afterwards, with what they had.
func TestDeletedNamespaceLeavesAllNodes(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	tm.start(ctx)
	_, err := tm.nodes[1].client.CreateNamespace(ctx, memory.CreateNamespace{Name: "doomed"})
	must(t, err)
	const word = "zyzzogeton"
	for i, p := range tm.nodes {
		p.capture(ctx, fmt.Sprintf("kept%d", i), "this one is kept")
		_, err := p.client.Capture(ctx, "doomed", memory.Capture{Text: fmt.Sprintf("%s number %d", word, i)}, client.CaptureOptions{})
		must(t, err)
	}
	tm.same(ctx)
	must(t, tm.nodes[2].client.DeleteNamespace(ctx, "doomed"))
	tm.same(ctx)
	for _, p := range tm.nodes {
		p.erased(ctx)
	}
	for _, p := range tm.nodes {
		p.term()
	}
	tm.start(ctx)
	tm.same(ctx)
	for i, p := range tm.nodes {
		p.capture(ctx, fmt.Sprintf("again%d", i), "written after the restart")
		if _, err := p.client.Namespace(ctx, "doomed"); memory.CodeOf(err) != memory.CodeNotFound {
			t.Errorf("%s: the deleted namespace: %v", p.id, err)
		}
		if found, err := p.client.Search(ctx, "default", memory.SearchRequest{Query: "kept"}); err != nil || len(found.Results) == 0 {
			t.Errorf("%s: %d results: %v", p.id, len(found.Results), err)
		}
	}
}

// erased waits until the node owes nothing to what was deleted.
func (p *process) erased(ctx context.Context) {
	p.team.t.Helper()
	for {
		_, err := os.Stat(filepath.Join(p.dir, "erased.json"))
		st, serr := p.client.Status(ctx)
		if err == nil && serr == nil && st.Shards[0].Erasing == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.team.t.Fatalf("%s: what was deleted does not leave the files: %+v %v\n%s", p.id, st.Shards, serr, p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// What one connection publishes to one subject is written in its order, whichever node it
// is connected to: the responders of several nodes share the subject.
func TestAgentOverNATSKeepsItsOrder(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	tm.start(ctx)
	const each = 120
	for _, p := range tm.nodes {
		nc, err := nats.Connect(p.addrs.nats)
		must(t, err)
		defer nc.Close()
		js, err := nc.JetStream(nats.PublishAsyncMaxPending(each))
		must(t, err)
		for i := range each {
			_, err := js.PublishAsync("mem.in.default."+p.id+".capture", fmt.Appendf(nil, `{"text":"number %03d of %s"}`, i, p.id))
			must(t, err)
		}
		select {
		case <-js.PublishAsyncComplete():
		case <-ctx.Done():
			t.Fatal("not all were acknowledged")
		}
	}
	tm.same(ctx)
	texts := map[string]string{}
	for cursor, more := "", true; more; more = cursor != "" {
		list, err := tm.nodes[0].client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200, Cursor: cursor}})
		must(t, err)
		for _, rec := range list.Records {
			texts[rec.RecordID] = rec.Text
		}
		cursor = list.Cursor
	}
	next := map[string]int{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := tm.nodes[0].client.Audit(ctx, "default", client.AuditOptions{AuditRequest: memory.AuditRequest{Limit: 200, Cursor: cursor}})
		must(t, err)
		for _, row := range page.Rows {
			var i int
			var id string
			if _, err := fmt.Sscanf(texts[row.RecordID], "number %d of %s", &i, &id); err != nil {
				continue
			}
			if i != next[id] {
				t.Fatalf("%s: number %d is written where %d was to come", id, i, next[id])
			}
			next[id]++
		}
		cursor = page.Cursor
	}
	for _, p := range tm.nodes {
		if next[p.id] != each {
			t.Errorf("%s: %d were written in order, %d were published", p.id, next[p.id], each)
		}
	}
}

// pause is SIGSTOP: the process keeps its connections and answers nothing. proceed ends it.
func (p *process) pause() (proceed func()) {
	p.team.t.Helper()
	must(p.team.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	return func() { must(p.team.t, p.cmd.Process.Signal(syscall.SIGCONT)) }
}

// The node that leads everything stands still and goes on later, twice: the others write
// meanwhile, and when it wakes it neither answers for what it does not know nor writes
// under its former term.
func TestPausedLeaderComesBackAsAFollower(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	tm.start(ctx)
	acked := map[string]memory.CaptureResult{}
	n := 0
	write := func(count int, nodes ...*process) {
		t.Helper()
		for range count {
			id := fmt.Sprintf("c%03d", n)
			acked[id] = nodes[n%len(nodes)].capture(ctx, id, fmt.Sprintf("memory number %d", n))
			n++
		}
	}
	for range 2 {
		write(10, tm.nodes...)
		lead := tm.leader(ctx)
		var rest []*process
		for _, p := range tm.nodes {
			if p != lead {
				rest = append(rest, p)
			}
		}
		began := time.Now()
		proceed := lead.pause()
		write(1, rest...)
		t.Logf("%s, which led, stands still: written after %v", lead.id, time.Since(began).Round(time.Millisecond))
		write(10, rest...)
		proceed()
		write(10, lead)
	}
	tm.same(ctx)
	for _, p := range tm.nodes {
		for id, want := range acked {
			rec, err := p.client.Get(ctx, "default", want.RecordID, client.GetOptions{})
			if err != nil || rec.RecordID != want.RecordID {
				t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
	}
	list, err := tm.nodes[2].client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
	must(t, err)
	if len(list.Records) != len(acked) {
		t.Errorf("%d records, acknowledged were %d", len(list.Records), len(acked))
	}
}
