package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/cluster"
	"mneme/internal/eventlog"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// A node of several that cannot go on by itself starts again, in the same process. One
// whose disk was full, so that a part of it has stopped, does when there is room; where its
// database has halted, in a new process, for this one keeps that locked to its end. One
// whose state halted where other nodes go on, or differs from theirs, has its state built
// again by that start. A state that halts where all others do is left: the event is what
// is wrong, and the next start would meet it again.

// ErrRestart: the node has to be opened again; what is wrong with it is mended by that.
var ErrRestart = errors.New("the node starts again")

// ErrNewProcess is an ErrRestart that takes another process.
var ErrNewProcess = fmt.Errorf("%w, in a new process", ErrRestart)

type mender struct{ of *served }

const (
	mendEvery = time.Second
	// compareEvery is how often the state is compared with those of the others. They are
	// asked a few times, until they stand where this one does.
	compareEvery = time.Minute
	compareTries = 20
	comparePause = 100 * time.Millisecond
	// differsAgain is how long a state must have been as the others' before it is built
	// again once more because it differs.
	differsAgain = time.Hour
	// restartAfter keeps a node from starting again and again.
	restartAfter = 10 * time.Second
)

func (m mender) run(ctx context.Context) {
	tick, compare := time.NewTicker(mendEvery), time.NewTicker(compareEvery)
	defer tick.Stop()
	defer compare.Stop()
	gaveUp := false
	m.afterRebuild()
	for {
		var err error
		select {
		case <-tick.C:
			if !m.of.replica.Leads() {
				streams{m.of.shard}.takeUp()
			}
			err = m.look(ctx)
		case <-compare.C:
			err = m.compare(ctx)
		case <-ctx.Done():
			return
		}
		switch {
		case errors.Is(err, ErrRestart):
			m.of.log.Warn("this node starts again", "why", err)
			m.of.n.end(err)
			return
		case err != nil && !gaveUp:
			gaveUp = true
			m.of.log.Error("this node cannot be mended by itself", "err", err,
				"hint", fmt.Sprintf("memctl cluster remove %s at another node, and start this one with an empty data directory", m.of.dir.name()))
		}
	}
}

// look returns why the node has to start again, wrapped with ErrRestart, or why that
// would not help, or nil.
func (m mender) look(ctx context.Context) error {
	s := m.of
	halted := (*raftfsm.HaltError)(nil)
	if !errors.As(s.replica.Group().Halted(), &halted) {
		if damage := s.state.Fault(); storage.IsCorrupt(damage) {
			index, _ := s.state.AppliedIndex()
			return m.rebuild(index, damage)
		}
		return m.stoppedLog()
	}
	if storage.IsNoSpace(halted) || errors.Is(halted, raftfsm.ErrStorage) || errors.Is(halted, storage.ErrHalted) && !storage.IsCorrupt(halted) {
		return m.whenRoom(halted)
	}
	if !s.wentOn(ctx, halted.Index) {
		return nil
	}
	return m.rebuild(halted.Index, halted)
}

// stoppedLog looks whether the log's server on this node has met a full disk, after
// which it stores nothing.
func (m mender) stoppedLog() error {
	server, ok := m.of.nats.(*embeddedNATS)
	if !ok {
		return nil
	}
	if fault := server.WriteFault(); errors.Is(fault, eventlog.ErrNoSpace) {
		return m.whenRoom(fault)
	}
	return nil
}

func (m mender) whenRoom(why error) error {
	if m.of.noRoom() != nil || !m.of.space.ample() || time.Since(m.of.n.started) < restartAfter {
		return nil
	}
	return fmt.Errorf("%w, since there is room again: %w", restartFor(why), why)
}

// restartFor is how a node starts again that stopped for a reason.
func restartFor(why error) error {
	if errors.Is(why, storage.ErrHalted) {
		return ErrNewProcess
	}
	return ErrRestart
}

// rebuild has the next start build the state again, unless that was done before and
// came to the same.
func (m mender) rebuild(index uint64, why error) error {
	if done, err := m.of.rebuiltFor(); err != nil || done == index {
		return errors.Join(fmt.Errorf("its state was built again, and halts at the same entry: %w", why), err)
	}
	mark := fmt.Sprintf("%d\n%v\n", index, why)
	if err := storage.ReplaceFile(m.of.cfg.FS, m.of.rebuildMark(), []byte(mark), 0o600); err != nil {
		return err
	}
	assert.Reachable("a node among others builds its state again", nil)
	return fmt.Errorf("%w to build its state: %w", ErrRestart, why)
}

// compare looks whether most nodes have, where this one stands, another state.
func (m mender) compare(ctx context.Context) error {
	s := m.of
	members := s.peers.cluster.Facts().Members
	for range compareTries {
		own := s.report()
		same, differ := agreement(own, s.others(ctx, members))
		if 2*differ > len(members) {
			s.log.Error("the state differs from those of most nodes at the same position", "position", own.Replica.Position, "state", own.Replica.StateHash)
			if built, err := s.cfg.FS.Stat(s.builtMark()); err == nil && s.cfg.Now().Sub(built.ModTime()) < differsAgain {
				return fmt.Errorf("the state differs from the others' again, and was built again at %s", built.ModTime().UTC().Format(time.RFC3339))
			}
			index, _ := s.state.AppliedIndex()
			return m.rebuild(index, fmt.Errorf("at %s most nodes have another state", own.Replica.Position))
		}
		if same+differ == len(members)-1 {
			return nil
		}
		if err := sleep(ctx, comparePause); err != nil {
			return nil
		}
	}
	return nil
}

// others are the reports of other nodes on the shard, of those that answer.
func (s *served) others(ctx context.Context, members []cluster.Member) []shardReport {
	var out []shardReport
	for _, r := range s.n.operator.reports(ctx, members) {
		if r.Node.ID != "" && r.Node.ID != s.dir.node.NodeID {
			out = append(out, r.of(s.id))
		}
	}
	return out
}

// agreement counts the others that stand where a replica does, with the same state and
// with another one.
func agreement(own shardReport, others []shardReport) (same, differ int) {
	for _, r := range others {
		switch {
		case r.Replica.Position != own.Replica.Position || r.Halted:
		case r.Replica.StateHash == own.Replica.StateHash:
			same++
		default:
			differ++
		}
	}
	return same, differ
}

// rebuildMark is the file that has a start build the state again; builtMark is what is
// left of it. They begin with the index of the entry at which the state halted.
func (s *shard) rebuildMark() string { return filepath.Join(s.dir.shard(s.id), "rebuild") }
func (s *shard) builtMark() string   { return filepath.Join(s.dir.shard(s.id), "rebuilt") }

// readText is "" where there is no such file.
func readText(fsys vfs.FS, path string) (string, error) {
	b, err := storage.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// rebuiltFor is the index for which the state was built again, 0 if it never was.
func (s *shard) rebuiltFor() (uint64, error) {
	text, err := readText(s.cfg.FS, s.builtMark())
	if err != nil || text == "" {
		return 0, err
	}
	first, _, _ := strings.Cut(text, "\n")
	return strconv.ParseUint(first, 10, 64)
}

// owesRebuild says why the state is to be built again, as an earlier run has noted.
func (s *shard) owesRebuild() error {
	text, err := readText(s.cfg.FS, s.rebuildMark())
	if err != nil || text == "" {
		return err
	}
	_, why, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("%w: %s", storage.ErrDamaged, why)
}

// rebuilt ends what rebuildMark began: the state was opened.
func (s *shard) rebuilt() error {
	err := s.cfg.FS.Rename(s.rebuildMark(), s.builtMark())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, storage.SyncDir(s.cfg.FS, filepath.Dir(s.builtMark())))
}

// afterRebuild takes a snapshot where this start has built the state again: the one that
// is there may share its damage.
func (m mender) afterRebuild() {
	if m.of.keepsAside().Before(m.of.n.started) {
		return
	}
	if err := m.of.replica.Group().Snapshot(); err != nil {
		m.of.log.Warn("no snapshot was taken of the state that was built again", "err", err)
	}
}

// keepsAside is when a state was set aside that is still there; zero if none is.
func (s *shard) keepsAside() time.Time {
	opt := s.replicaOptions()
	info, err := s.cfg.FS.Stat(opt.AsideDir())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// stoppedEverywhere reports whether the shard has stopped here at an event that no node
// which answers has passed.
func (s *served) stoppedEverywhere(ctx context.Context) bool {
	halted := (*raftfsm.HaltError)(nil)
	return s.replica.Poison() != nil && errors.As(s.replica.Group().Halted(), &halted) && !s.wentOn(ctx, halted.Index)
}

// wentOn reports whether another node's state has passed an entry of Raft's log.
func (s *served) wentOn(ctx context.Context, index uint64) bool {
	return slices.ContainsFunc(s.others(ctx, s.peers.cluster.Facts().Members), func(r shardReport) bool { return !r.Halted && r.Applied >= index })
}
