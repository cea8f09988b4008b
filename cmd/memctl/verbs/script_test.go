package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"mneme/cmd/memctl/direct"
	"mneme/cmd/memctl/offline"
	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// beMemctl has the test's program be memctl.
const beMemctl = "MNEME_TEST_BE_MEMCTL"

func TestMain(m *testing.M) {
	if os.Getenv(beMemctl) != "" {
		os.Exit(Main(os.Args[1:], nil))
	}
	goleak.VerifyTestMain(m)
}

// fakeOffline answers for data directories whose name is not "bad".
type fakeOffline struct{}

// fakeWork opens places of backups itself, and has a fake node.
func fakeWork(getenv func(string) string, now func() time.Time) func() (offline.Work, error) {
	env := direct.Env{Getenv: getenv, Now: now, Version: "v1.0.0"}
	return func() (offline.Work, error) {
		return direct.New(func() (direct.Node, error) { return fakeOffline{}, nil }, env), nil
	}
}

func (fakeOffline) check(dir string) error {
	if filepath.Base(dir) == "bad" {
		return memory.Errorf(memory.CodeLogDiverged, "%s is damaged", filepath.Base(dir)).WithHint("memctl doctor --data-dir DIR says more")
	}
	return nil
}

func (f fakeOffline) Doctor(_ context.Context, dir string) (memory.DoctorReport, error) {
	return memory.DoctorReport{OK: true, Checks: []memory.Check{{Name: "lock", State: "ok", Detail: "nobody uses " + dir}}}, f.check(dir)
}

func (f fakeOffline) Aside(dir string) (memory.AsideList, error) {
	return memory.AsideList{Aside: fakeAside(), Bytes: 5 << 20}, f.check(dir)
}

func (f fakeOffline) RemoveAside(_ context.Context, dir string, req memory.RemoveAside) (memory.AsideRemoval, error) {
	return memory.AsideRemoval{Removed: fakeAside(), Kept: []memory.Aside{}, Bytes: 5 << 20, DryRun: req.DryRun}, f.check(dir)
}

func (f fakeOffline) RepairLog(_ context.Context, dir string, progress func(memory.Progress)) (memory.RepairReport, error) {
	progress(memory.Progress{Done: 5, Total: 5, Unit: "frames"})
	return memory.RepairReport{Shards: []memory.RepairShard{{Epoch: 1, Restored: 2, Events: 3, Position: "p0.0.5.0", Detail: "the log that it replaces is removed when memnode starts"}}}, f.check(dir)
}

func (f fakeOffline) VerifyLog(_ context.Context, dir string, progress func(memory.Progress)) (memory.VerifyReport, error) {
	progress(memory.Progress{Done: 5, Total: 5, Unit: "frames"})
	shard := memory.VerifyShard{OK: true, First: 1, Last: 5}
	if filepath.Base(dir) == "its log" {
		shard.OK, shard.Hint = false, "memctl log repair writes it again"
	}
	return memory.VerifyReport{Shards: []memory.VerifyShard{shard}}, f.check(dir)
}

func (f fakeOffline) Backup(_ context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error) {
	progress(memory.Progress{Done: 10, Unit: "bytes"})
	r := memory.BackupReport{Log: logPath, Keys: keysPath, Position: "p0.1.5.0", Events: 5}
	if filepath.Base(dir) == "n1" {
		r.Stopped = &memory.StoppedMember{Node: "n1", Lacks: []string{"the newest entries of Raft's log of shard 0: damaged"}}
	}
	return r, f.check(dir)
}

func (f fakeOffline) BackupSource(_ context.Context, dir string, _ func(memory.Progress), use func(backup.Source) error) error {
	if err := f.check(dir); err != nil {
		return err
	}
	return use(fakeSource{became: dir == "became"})
}

func (f fakeOffline) RestoreFrom(ctx context.Context, dir string, src node.RestoreSource, progress func(memory.Progress)) (memory.RestoreReport, error) {
	progress(memory.Progress{Done: 1, Total: 1})
	n := uint64(0)
	_, err := src.Log.Read(ctx, func(uint16, uint64, []byte) error { n++; return nil })
	return memory.RestoreReport{RebuildReport: memory.RebuildReport{Shards: []memory.RebuildShard{{StateHash: "abc", Events: n, Position: src.Until.Positions}}}, Destroyed: src.Destroyed.Count(), BackupErasOf: erasOf(src.Place)}, errors.Join(err, f.check(dir))
}

// erasOf is as node has it; a backup of two files is of no place.
func erasOf(c *backup.Chosen) (of memory.BackupErasOf) {
	if c != nil {
		of = c.Eras()
	}
	return of
}

func (f fakeOffline) Drill(_ context.Context, scratch string, from backup.Chosen, progress func(memory.Progress)) (memory.BackupDrillReport, error) {
	progress(memory.Progress{Done: 1, Total: 1})
	same := filepath.Base(scratch) != "differs"
	return memory.BackupDrillReport{OK: same, Backup: from.Manifest.ID, MadeAt: from.Manifest.MadeAt, BackupErasOf: from.Eras(), Records: 2,
		Shards: []memory.BackupDrillShard{{StateHash: "abc", Want: "abd", Same: same, LogOK: true, Events: 5}}}, nil
}

func (f fakeOffline) RestoreFiles(_ context.Context, dir, _, _ string, _ node.Until, progress func(memory.Progress)) (memory.RebuildReport, error) {
	progress(memory.Progress{Done: 1, Total: 1})
	return memory.RebuildReport{Shards: []memory.RebuildShard{{StateHash: "abc", Events: 5}}}, f.check(dir)
}

func (f fakeOffline) Reach(_ context.Context, certs, id string, addrs []string) ([]error, error) {
	if filepath.Base(certs) != "certs" {
		return nil, memory.Errorf(memory.CodeInvalid, "%s has no certificate of %s", certs, id)
	}
	out := make([]error, len(addrs))
	for i, addr := range addrs {
		if addr != "n1:1" || id == "far" {
			out[i] = errors.New("connection refused")
		}
	}
	return out, nil
}

func (f fakeOffline) Recover(_ context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error) {
	r := memory.RecoverReport{Node: "n1", ClusterID: "c1", Others: []string{"n2", "n3"}, Keys: 7,
		Shards: []memory.RecoverShard{{State: "p0.0.8.0", Raft: 9, Log: 9, Reaches: 9, Term: 3}}}
	switch filepath.Base(dir) {
	case "alive":
		r.Running = []string{"n2 at n2:1 runs and serves"}
		if !dryRun {
			return r, memory.Errorf(memory.CodeConflict, "nothing was recovered, for other nodes of the cluster are there: %s", r.Running[0])
		}
	case "done":
		r.Recovered, r.Before, r.NewCluster = true, true, "c2"
	}
	if !dryRun {
		r.Recovered, r.NewCluster, r.Aside = true, "c2", dir+"/aside/n1-a"
	}
	return r, f.check(dir)
}

func (f fakeOffline) Init(_ context.Context, dir, id, _ string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error) {
	progress(memory.Progress{Done: 5, Total: 5, Unit: "frames"})
	r := memory.InitReport{Node: id, Shards: []memory.InitShard{{Position: "p0.0.5.0", Events: 7}}}
	if before := filepath.Base(dir) == "done"; before || !dryRun {
		r.Done, r.Before, r.ClusterID, r.Aside = true, before, "c1", dir+"/aside/x"
	}
	return r, f.check(dir)
}

// scriptNode is one script's node.
type scriptNode struct {
	*fakeNode
	server *httptest.Server
	input  string // standard input of the next call
}

type nodeKey struct{}

// scriptSystem is the world of one call in a script: TTY=1 makes everything a
// terminal, OFFLINE=1 gives it the offline half.
func scriptSystem(ts *testscript.TestScript, clock *atomic.Int64) system {
	n, ok := ts.Value(nodeKey{}).(*scriptNode)
	if !ok {
		ts.Fatalf("no node")
	}
	input := n.input
	n.input = ""
	sys := system{
		in: strings.NewReader(input), out: ts.Stdout(), err: ts.Stderr(),
		getenv:     ts.Getenv,
		isTerminal: func(any) bool { return ts.Getenv("TTY") == "1" },
		width:      func() int { return 90 },
		now:        func() time.Time { return fakeNow.Add(time.Duration(clock.Load())) },
		sleep: func(ctx context.Context, d time.Duration) error {
			clock.Add(int64(d))
			return ctx.Err()
		},
		configDir: func() (string, error) { return filepath.Join(ts.Getenv("WORK"), "config"), nil },
		home:      func() (string, error) { return filepath.Join(ts.Getenv("WORK"), "home"), nil },
		workDir:   func() (string, error) { return ts.MkAbs("."), nil },
		program:   func() (string, bool) { return "/opt/mneme/memctl", ts.Getenv("ONPATH") == "1" },
		userName:  func() string { return ts.Getenv("OSUSER") },
		version:   memory.VersionInfo{Version: "v1.0.0", Go: "go", OS: "os", Arch: "arch"},

		process: process{outlivePipes: func() {}, serveOne: func() {}},
	}
	if ts.Getenv("OFFLINE") == "1" {
		sys.offline = fakeWork(sys.getenv, sys.now)
	}
	return sys
}

func runScript(ts *testscript.TestScript, args []string) int {
	clock := new(atomic.Int64)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, a := range args { // files are named as the script sees them
		if strings.HasPrefix(a, "./") {
			args[i] = ts.MkAbs(a)
		}
	}
	return run(ctx, scriptSystem(ts, clock), args)
}

func cmdMemctl(ts *testscript.TestScript, neg bool, args []string) {
	code := runScript(ts, args)
	if neg == (code == 0) {
		ts.Fatalf("memctl %s: exit code %d", strings.Join(args, " "), code)
	}
}

// cmdExits is `exits CODE args…`.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code := runScript(ts, args[1:]); code != want {
		ts.Fatalf("memctl %s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// cmdNode changes the fake node or checks what it saw.
func cmdNode(ts *testscript.TestScript, _ bool, args []string) {
	n, ok := ts.Value(nodeKey{}).(*scriptNode)
	if !ok {
		ts.Fatalf("no node")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	number := func() int {
		v, err := strconv.Atoi(args[1])
		ts.Check(err)
		return v
	}
	check := func(got, want any) {
		if got != want {
			ts.Fatalf("node %s: got %v, want %v", args[0], got, want)
		}
	}
	switch args[0] {
	case "input":
		n.input = ts.ReadFile(args[1])
	case "token":
		n.token = args[1]
	case "writing":
		n.writing = number() > 0
	case "follows":
		n.stopped = &memory.WritesStopped{Node: args[1], Why: "log and state disagree", Hint: "memctl log repair"}
	case "drop":
		n.drop = number()
	case "busy":
		n.busy = number()
	case "damaged":
		n.doctorFail = true
	case "set":
		n.statuses[args[1]] = args[2]
	case "saw-batches":
		check(n.batches, number())
		n.batches = 0
	case "saw-largest":
		check(n.largest, number())
	case "saw-agent":
		check(n.as, args[1])
	case "spent-faults":
		check(n.drop+n.busy, 0)
	default:
		ts.Fatalf("node %s?", args[0])
	}
}

// cmdGenerate is `generate FILE N`: N lines for import.
func cmdGenerate(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b bytes.Buffer
	for i := range n {
		b.WriteString(`{"text":"memory ` + strconv.Itoa(i) + `"}` + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o600))
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"memctl": cmdMemctl, "exits": cmdExits, "node": cmdNode, "generate": cmdGenerate,
			"input": func(ts *testscript.TestScript, neg bool, args []string) {
				cmdNode(ts, neg, append([]string{"input"}, args...))
			},
		},
		Setup: func(env *testscript.Env) error {
			n := &scriptNode{fakeNode: newFakeNode()}
			n.server = httptest.NewUnstartedServer(n.handler())
			n.server.Config.ErrorLog = log.New(io.Discard, "", 0)
			n.server.Start()
			env.Defer(n.server.Close)
			env.Values[nodeKey{}] = n
			env.Setenv("MNEME_ADDR", n.server.URL)
			env.Setenv("OSUSER", "Ann Smith")
			return nil
		},
	})
}

func TestRunReportsAWriteErrorOnStandardOutput(t *testing.T) {
	var errs bytes.Buffer
	sys := plainSystem(&errs)
	sys.out = brokenWriter{}
	if code := run(t.Context(), sys, []string{"version"}); code != 1 {
		t.Fatalf("exit code %d, stderr %s", code, errs.String())
	}
	if !strings.Contains(errs.String(), "broken") {
		t.Fatalf("stderr %q does not name the error", errs.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// plainSystem has no terminal, no environment and no node.
func plainSystem(errs io.Writer) system {
	return system{
		in: strings.NewReader(""), out: io.Discard, err: errs,
		getenv: func(k string) string {
			if k == "MNEME_ADDR" {
				return "127.0.0.1:1"
			}
			return ""
		},
		isTerminal: func(any) bool { return false },
		width:      func() int { return 0 },
		now:        func() time.Time { return fakeNow },
		sleep:      func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		configDir:  func() (string, error) { return "", errors.New("none") },
		userName:   func() string { return "" },
		connect:    new(net.Dialer).DialContext,
		listeners:  readListeners,

		process: process{outlivePipes: func() {}, serveOne: func() {}},
	}
}
