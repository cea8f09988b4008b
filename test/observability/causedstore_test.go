package observability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/events"
	"mneme/internal/node"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
)

// many is a batch of captures whose texts are a quarter of a megabyte together.
func many(round int) (out []fields) {
	for i := range 256 {
		out = append(out, fields{"agent": "a", "text": fmt.Sprintf("%d %d %s", round, i, strings.Repeat(string(rune('a'+i%26)), 900))})
	}
	return out
}

// TestDiskThatFailsIsAlerted has the writing of tables fail for a while.
func TestDiskThatFailsIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	mended := cfg.FS.(*disk).breaks(".sst", syscall.EIO)
	for round := 0; ; round++ {
		p.ask(n, captures, many(round))
		if faults, _ := p.value(n.HTTPURL(), "mneme_store_background_faults_total"); faults > 0 {
			break
		}
		if round == 200 {
			t.Fatal("nothing was flushed")
		}
	}
	p.fired("MnemeStoreFaults")
	p.follow("MnemeStoreFaults", at(n, cfg))
	mended()
	p.recovers()
	p.captured(n, "and it goes on")
}

// TestHaltedStoreIsAlerted has the store meet an error that ends it, and starts the node again.
func TestHaltedStoreIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	mended := cfg.FS.(*disk).breaks(filepath.Join("shards", "0", "state"), syscall.EIO)
	for i := 0; p.capture(n, fmt.Sprintf("after %d", i)) == http.StatusOK; i++ {
		if i == 10_000 {
			t.Fatal("it goes on without a disk")
		}
	}
	p.fired("MnemeShardHalted", "MnemeWritesStopped", "MnemeStoreFaults")
	p.says(p.follow("MnemeShardHalted", at(n, cfg)), "restart")
	p.says(p.follow("MnemeStoreFaults", at(n, cfg)), "input/output error")
	shut(t, n)
	mended()
	// The store of this process keeps its directory locked to the end, which that of a process
	// of its own comes to here.
	again := cfg
	again.DataDir = filepath.Join(t.TempDir(), "data")
	copied(t, again.DataDir, cfg.DataDir)
	n = p.opens(again)
	p.quiet("MnemeShardHalted", "MnemeWritesStopped")
	p.recovers()
	p.captured(n, "and it goes on")
}

// TestStallingStoreIsAlerted has the disk hold tables, until writes wait for them.
func TestStallingStoreIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	p.shorten("MnemeStoreStalls", 60)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	free := make(chan struct{})
	mended := cfg.FS.(*disk).does(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			<-free
		}
		return nil
	})
	release := func() { mended(); close(free) }
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		for round := 0; ctx.Err() == nil; round++ {
			p.ask(n, captures, many(round))
		}
	}()
	defer func() { stop(); <-written }()
	p.fired("MnemeStoreStalls")
	release()
	stop()
	<-written
	p.follow("MnemeStoreStalls", at(n, cfg))
	p.recovers()
	p.quiet("MnemeStoreStalls")
}

// allergic is a machine that cannot apply what the agent eve says, as one with a defect would,
// until that is in quarantine.
type allergic struct {
	raftfsm.Resumer
	cured map[projections.Ref]bool
}

func (m *allergic) Apply(entries []raftfsm.Entry) ([]any, error) {
	for i, e := range entries {
		poison, found := m.poison(e.Data)
		if !found {
			continue
		}
		if i > 0 {
			if results, err := m.Resumer.Apply(entries[:i]); err != nil {
				return results, err
			}
		}
		return nil, &raftfsm.ApplyError{Index: e.Index, Err: &projections.PoisonError{At: poison, Type: events.TypeCaptured, Cause: errors.New("boom")}}
	}
	return m.Resumer.Apply(entries)
}

func (m *allergic) poison(command []byte) (events.Position, bool) {
	rg, err := projections.DecodeRange(command)
	if err != nil {
		return events.Position{}, false
	}
	for i, rf := range rg.Frames {
		f, err := events.DecodeFrame(rf.Bytes)
		if err != nil {
			continue
		}
		for n, raw := range f.Events {
			ref := projections.Ref{Seq: rg.Previous + uint64(i) + 1, Index: uint32(n)}
			if e, err := events.DecodeEnvelope(raw); err == nil && e.Agent == "eve" && e.Type == events.TypeCaptured && !m.cured[ref] {
				return events.Position{Shard: f.Shard, Epoch: f.Epoch, Seq: ref.Seq, Index: ref.Index}, true
			}
		}
	}
	return events.Position{}, false
}

func (m *allergic) Resume(e raftfsm.Entry, halted error) bool {
	q, err := projections.DecodeQuarantine(e.Data)
	if err != nil || !m.Resumer.Resume(e, halted) {
		return false
	}
	m.cured[q.At] = true
	return true
}

// TestEventThatCannotBeAppliedIsAlerted has a shard stop at an event, which an operator puts in
// quarantine.
func TestEventThatCannotBeAppliedIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	cfg.Parts.Group = func(opt raftfsm.Options) (replica.Group, error) {
		opt.Machine = &allergic{opt.Machine.(raftfsm.Resumer), map[projections.Ref]bool{}}
		return raftfsm.Open(opt)
	}
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	if status, answer := p.ask(n, captures, fields{"agent": "eve", "text": "a bottle with a skull on it"}); status == http.StatusOK {
		t.Fatalf("what halts the shard was acknowledged: %s", answer)
	}
	p.fired("MnemeShardHalted", "MnemeWritesStopped")
	place := at(n, cfg)
	p.says(p.follow("MnemeShardHalted", place), "memctl quarantine p")
	place.position = stoppedAt(p, n)
	p.does("MnemeShardHalted", "memctl quarantine POSITION", place, "--yes")
	p.quiet("MnemeShardHalted", "MnemeWritesStopped")
	p.recovers()
	p.captured(n, "and it goes on")
}

func stoppedAt(p *prometheus, n *node.Node) string {
	p.t.Helper()
	out := strings.TrimSpace(p.run("memctl --addr http://NODE:8787 status --json | jq -r '.shards[0].stopped_at'", place{node: n.HTTPURL()}))
	if !strings.HasPrefix(out, "p") {
		p.t.Fatalf("no event stopped the shard: %q", out)
	}
	return out
}

// TestErasureThatIsStuckIsAlerted has the disk refuse the tables that an erasure writes anew.
func TestErasureThatIsStuckIsAlerted(t *testing.T) {
	cfg, p := alone(t), watch(t)
	n := p.opens(cfg)
	if status, answer := p.ask(n, "/v1/namespaces", fields{"name": "gone"}); status/100 != 2 {
		t.Fatalf("%d %s", status, answer)
	}
	p.ask(n, "/v1/namespaces/gone/events", fields{"agent": "a", "text": "to be erased"})
	p.healthy()
	mended := cfg.FS.(*disk).breaks(".sst", syscall.ENOSPC)
	p.run("memctl --addr http://NODE:8787 namespace delete gone --yes", at(n, cfg))
	p.await("the erasure to begin", func() bool { is, _ := p.value(n.HTTPURL(), "mneme_erasing"); return is == 1 })
	p.later(65 * time.Minute)
	p.fired("MnemeErasureStuck")
	p.follow("MnemeErasureStuck", at(n, cfg))
	mended()
	p.quiet("MnemeErasureStuck")
	p.recovers()
}
