package node

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/api"
	"mneme/memory"
)

// inits makes a directory the first node of the trio's cluster.
func (tr *trio) inits(off Offline, dir string, opt InitOptions) (memory.InitReport, error) {
	off.Config = tr.cfgs[0]
	off.Config.Cluster = nil
	if opt.NodeID == "" {
		opt.NodeID = tr.id(0)
	}
	opt.Certs = tr.cfgs[0].Cluster.Certs
	return off.Init(tr.t.Context(), dir, opt, nil)
}

// sent is a memory that was acknowledged.
type sent struct{ namespace, id, subject string }

// send captures what was sent before, or for the first time.
func (s sent) to(t *testing.T, n *Node) (out memory.CaptureResult) {
	t.Helper()
	awaitNil(t, s.id+" to be written", func() error {
		c := memory.Capture{Agent: "tester", ID: s.id, Subject: s.subject, Text: "a memory of the harbour, " + s.id}
		r, err := n.changes.Capture(t.Context(), s.namespace, []memory.Capture{c}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if err == nil {
			out = r.Results[0]
		}
		return err
	})
	return out
}

// lone makes the directory that a node on its own leaves that is killed: with two shards,
// an erasure that is owed, and shards/ older than its log. It returns what was acknowledged.
func lone(t *testing.T) (dir string, acked map[sent]memory.CaptureResult) {
	t.Helper()
	cfg := sharded(t.TempDir(), 2)
	reached, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	cfg.Parts.EraseStep = func(step string) {
		if step == eraseTables {
			once.Do(func() { close(reached) })
			<-proceed
		}
	}
	n := open(t, cfg)
	makes(t, n, "amber")
	acked = map[sent]memory.CaptureResult{}
	write := func(s sent) {
		t.Helper()
		acked[s] = s.to(t, n)
		if acked[s].Error != nil {
			t.Fatalf("%+v: %+v", s, acked[s])
		}
	}
	for i := range 3 {
		write(sent{"default", fmt.Sprint("d-", i), "bob"})
		write(sent{"amber", fmt.Sprint("a-", i), ""})
	}
	gone := sent{"default", "of-ada", "ada"}
	write(gone)
	if err := n.Erase(t.Context(), "default", "ada"); err != nil {
		t.Fatal(err)
	}
	delete(acked, gone)
	<-reached
	older := image(t, cfg.DataDir)
	write(sent{"default", "d-late", ""})
	write(sent{"amber", "a-late", ""})
	dir = image(t, cfg.DataDir)
	putBack(t, filepath.Join(older, "shards"), filepath.Join(dir, "shards"))
	close(proceed)
	shut(t, n)
	return dir, acked
}

// A node on its own becomes the first of three: what it had is on all nodes, in its place.
// The init may be killed before each step, and called again; until it is done no memnode
// opens the directory.
func TestOneNodeBecomesThree(t *testing.T) {
	t.Parallel()
	source, acked := lone(t)
	tr := trioOf(t, nil)
	alone := tr.cfgs[0]
	alone.Cluster = nil
	killed := errors.New("killed")
	var last string
	var steps []string
	for n, done := 0, false; !done; n++ {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(source, dir); err != nil {
			t.Fatal(err)
		}
		tr.cfgs[0].DataDir, alone.DataDir = dir, dir
		if n == 0 {
			if seen, err := tr.inits(Offline{}, dir, InitOptions{DryRun: true}); err != nil || seen.Done || len(seen.Shards) != 2 {
				t.Fatalf("looked at: %+v %v", seen, err)
			}
		}
		left := n
		off := Offline{step: func(name string) error {
			if left--; left < 0 {
				last = name
				return killed
			}
			return nil
		}}
		_, err := tr.inits(off, dir, InitOptions{})
		done = err == nil
		if !done && !errors.Is(err, killed) {
			t.Fatalf("after %d steps: %v", n, err)
		}
		steps = append(steps, last)
		if !done && n > 0 {
			for _, cfg := range []Config{alone, tr.cfgs[0]} {
				var refused *StartError
				if _, err := Open(t.Context(), cfg); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "memctl cluster init") {
					t.Errorf("a node opens what an init has left before %q: %v", last, err)
				}
			}
			if _, err := tr.inits(Offline{}, dir, InitOptions{NodeID: "n2"}); memory.CodeOf(err) != memory.CodeInvalid {
				t.Errorf("another name, after it was killed before %q: %v", last, err)
			}
		}
		report, err := tr.inits(Offline{}, dir, InitOptions{})
		if err != nil || !report.Done || report.Before != done || report.ClusterID == "" {
			t.Fatalf("again, after it was killed before %q: %+v %v", last, report, err)
		}
		for _, gone := range []string{"nats", "shards/0/raft.db", "shards/1/raft.db", "shards/1/membership"} {
			if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
				t.Errorf("killed before %q: %s is there", last, gone)
			}
		}
	}
	if last != "found" || !slices.Contains(steps, "mark") {
		t.Errorf("the steps were %q", steps)
	}
	var refused *StartError
	if _, err := Open(t.Context(), alone); !errors.As(err, &refused) || !strings.Contains(refused.Message, "belongs to node n1 of a cluster") {
		t.Errorf("it is opened as a node on its own: %v", err)
	}
	said := &lockedLog{}
	tr.cfgs[0].Logger = slog.New(slog.NewTextHandler(said, nil))
	tr.start()
	for s, want := range acked {
		got := s.to(t, tr.nodes[1])
		if got.Error != nil || got.Status != memory.StatusDuplicate || got.RecordID != want.RecordID || got.Position != want.Position {
			t.Errorf("%+v is sent again: %+v, was %+v", s, got, want)
		}
	}
	if _, err := tr.inits(Offline{}, tr.cfgs[0].DataDir, InitOptions{}); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("an init beside the node that runs: %v", err)
	}
	if !said.has(firstLog) || said.has("was interrupted") {
		t.Error("the node does not say that it writes its first log, or speaks of an interrupted repair")
	}
	was, err := readNodeFile(vfs.Default, filepath.Join(source, nodeJSON))
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range tr.nodes {
		if former := n.dir.former(); !slices.Equal(former, []string{was.ClusterID}) || n.dir.node.ClusterID == was.ClusterID || n.dir.node.Format != nodeFormat || was.Format != nodeFormatFrom {
			t.Errorf("node %d is of %s, made of %v, not of %s", i+1, n.dir.node.ClusterID, former, was.ClusterID)
		}
	}
	fresh := sent{"amber", "new", ""}
	acked[fresh] = fresh.to(t, tr.nodes[2])
	tr.same()
	tr.becomeOne(acked)
	for i, n := range tr.nodes {
		for s, want := range acked {
			rec, err := n.reads.Get(t.Context(), memory.Access{Namespace: s.namespace, As: "tester"}, want.RecordID, 0)
			if err != nil || !strings.Contains(rec.Text, s.id) {
				t.Errorf("node %d: %+v: %+v %v", i+1, s, rec, err)
			}
		}
		var report memory.VerifyReport
		tr.eventually(i, func() (err error) {
			report, err = n.operator.VerifyLog(t.Context(), nil)
			return err
		})
		if len(report.Shards) != 2 || !report.Shards[0].OK || !report.Shards[1].OK {
			t.Errorf("node %d: %+v", i+1, report)
		}
		page, err := n.reads.Audit(t.Context(), memory.Access{Namespace: "default", As: "tester"}, memory.AuditRequest{Limit: 100})
		if err != nil || len(page.Rows) < 4 {
			t.Errorf("node %d: an audit of %d entries: %v", i+1, len(page.Rows), err)
		}
		erased(t, n)
	}
	older := image(t, tr.cfgs[0].DataDir)
	if on := makes(t, tr.nodes[0], "late-0", "late-1"); on["late-1"] != 1 {
		t.Errorf("made on shards %v", on)
	}
	tr.same()
	tr.stop()
	tr.backUpStopped(older, acked)
	if _, err := tr.inits(Offline{}, tr.cfgs[0].DataDir, InitOptions{}); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "already") {
		t.Errorf("an init of a node of a cluster: %v", err)
	}
}

// backUpStopped makes a node on its own of a stopped one of three, and says which
// namespaces a node lacks whose copy of the directory is older than that of their shard.
func (tr *trio) backUpStopped(older string, acked map[sent]memory.CaptureResult) {
	t := tr.t
	t.Helper()
	log, keys := backUp(t, tr.cfgs[2].DataDir)
	tr.restores(log, keys, acked)
	behind := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(copyStopped(tr.cfgs[0].DataDir, behind), os.RemoveAll(filepath.Join(behind, "nats"))); err != nil {
		t.Fatal(err)
	}
	putBack(t, filepath.Join(older, "shards", "0"), filepath.Join(behind, "shards", "0"))
	report, err := (Offline{Config: quiet("")}).Backup(t.Context(), behind, log, keys, nil)
	if err != nil || len(report.Stopped.Lacks) != 1 || !strings.Contains(report.Stopped.Lacks[0], "entry of namespace late-1,") {
		t.Errorf("%+v %+v", report, err)
	}
}

// eventually asks a node again where its log has no leader for a moment, or one whose writer has not
// begun, or is still being written from the state.
func (tr *trio) eventually(i int, ask func() error) {
	tr.t.Helper()
	var err error
	awaitNil(tr.t, "an answer of "+tr.id(i), func() error {
		err = ask()
		if err != nil && slices.ContainsFunc([]string{"has no leader", "its writer has not begun", "already running"}, func(s string) bool { return strings.Contains(err.Error(), s) }) {
			return err
		}
		return nil
	})
	if err != nil {
		tr.t.Errorf("node %d: %v", i+1, err)
	}
}

// becomeOne makes a node on its own of a backup, which each node writes, whether it leads or follows.
func (tr *trio) becomeOne(acked map[sent]memory.CaptureResult) {
	t := tr.t
	t.Helper()
	frames := uint64(0)
	dir := t.TempDir()
	log, keys := filepath.Join(dir, "log"), filepath.Join(dir, "keys")
	for i, n := range tr.nodes {
		var l, k bytes.Buffer
		tr.eventually(i, func() error {
			l.Reset()
			report, err := n.operator.BackupLog(t.Context(), &l, "")
			if err == nil && report.Frames < frames { // a change of leaders may have added some
				t.Errorf("node %d backs up %d frames, another one had %d", i+1, report.Frames, frames)
			}
			frames = max(frames, report.Frames)
			return err
		})
		tr.eventually(i, func() error {
			k.Reset()
			_, err := n.operator.BackupKeys(t.Context(), &k, true)
			return err
		})
		if err := errors.Join(os.WriteFile(log, l.Bytes(), 0o600), os.WriteFile(keys, k.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tr.restores(log, keys, acked)
	tr.backsUpInTurn()
}

// backsUpInTurn makes backups in one place, each by another node, which go on from each other.
func (tr *trio) backsUpInTurn() {
	t := tr.t
	t.Helper()
	p := newPlaces(t)
	for i, n := range tr.nodes {
		tr.eventually(i, func() error {
			made, err := p.try(runs{n}, false)
			if err == nil && (made.Parent == "") != (i == 0) {
				t.Errorf("node %d: %+v", i+1, made)
			}
			return err
		})
	}
	if r, err := p.drill(""); err != nil || !r.OK || r.NotCompared != "" || len(r.Shards) != 2 {
		t.Errorf("what three nodes backed up in turn: %+v, %v", r, err)
	}
}

// restores makes a node on its own of a backup, which could become a cluster again.
func (tr *trio) restores(log, keys string, acked map[sent]memory.CaptureResult) {
	t := tr.t
	t.Helper()
	one := filepath.Join(t.TempDir(), "one")
	if _, err := (Offline{Config: quiet("")}).Restore(t.Context(), one, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(one))
	for s, want := range acked {
		if got := s.to(t, n); got.Status != memory.StatusDuplicate || got.RecordID != want.RecordID || got.Position != want.Position {
			t.Errorf("%+v is sent to the one that was three: %+v, was %+v", s, got, want)
		}
	}
	shut(t, n)
	if report, err := tr.inits(Offline{}, one, InitOptions{DryRun: true}); err != nil || len(report.Shards) != 2 {
		t.Errorf("what was restored cannot become a cluster: %+v %v", report, err)
	}
}

// What an init cannot begin from is refused, left as it is, and said with what helps.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	n := open(t, quiet(source))
	must(t, n, "a memory")
	shut(t, n)
	tr := trioOf(t, nil)
	for what, c := range map[string]struct {
		change func(dir string) error
		opt    InitOptions
		code   memory.Code
	}{
		"a damaged state": {change: func(dir string) error {
			markers, err := filepath.Glob(filepath.Join(dir, "shards/0/state/gen-*/marker.manifest.*"))
			for _, name := range markers {
				err = errors.Join(err, os.Remove(name))
			}
			return err
		}, code: memory.CodeLogDiverged},
		"a lost log":    {change: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "nats")) }, code: memory.CodeLogDiverged},
		"a lost state":  {change: func(dir string) error { return os.RemoveAll(filepath.Join(dir, "shards")) }, code: memory.CodeLogDiverged},
		"no such name":  {opt: InitOptions{NodeID: "N 1"}, code: memory.CodeInvalid},
		"no such certs": {opt: InitOptions{NodeID: "n9"}, code: memory.CodeInvalid},
		"nothing":       {change: os.RemoveAll, code: memory.CodeInvalid},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(source, dir); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
		}
		report, err := tr.inits(Offline{}, dir, c.opt)
		if e := memory.AsError(err); e == nil || e.Code != c.code || e.Hint == "" || report.Done {
			t.Errorf("%s: %+v %+v", what, report, e)
		}
		if c.change == nil { // it is a node's on its own, as before
			again := open(t, quiet(dir))
			shut(t, again)
		}
	}
}
