package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
	"mneme/memory"
)

// space watches the free space below the data directory. A fast disk fills by
// tens of megabytes between two of its questions, so that the reserve holds.
type space struct {
	fs      vfs.FS
	dir     string
	reserve uint64
	now     func() time.Time

	mu   sync.Mutex
	at   time.Time
	free uint64
	ok   bool
}

const askSpaceEvery = 20 * time.Millisecond

func (s *space) available() (free uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.at.IsZero() || now.Sub(s.at) > askSpaceEvery || now.Before(s.at) {
		s.free, s.ok = s.of(s.dir)
		s.at = now
	}
	return s.free, s.ok
}

// ample reports whether so much is free that a node that takes over writes does not give
// them away again soon.
func (s *space) ample() bool {
	free, ok := s.available()
	return !ok || free >= s.reserve+s.reserve/4
}

// of asks what is free where a directory lies.
func (s *space) of(dir string) (free uint64, ok bool) {
	u, err := s.fs.GetDiskUsage(dir)
	return u.AvailBytes, err == nil
}

// startBytes is what must be free to start: the log's first frame of a term, the
// store's files. With less the store would try for ever to write its tables.
const startBytes = 32 << 20

// checkStartSpace refuses a start that could only get stuck.
func (n *Node) checkStartSpace() error {
	if free, ok := n.space.available(); ok && n.space.reserve > 0 && free < min(startBytes, n.space.reserve) {
		return &StartError{Kind: StartOther, Message: fmt.Sprintf("only %d MiB are free on the disk of %s, a start needs %d MiB", free>>20, n.dir.path, min(startBytes, n.space.reserve)>>20),
			Hint: "free some space; nothing is lost"}
	}
	return nil
}

// roomToApply says why nothing can be applied to the state of a stopped node. A store
// that is opened for writing on a full disk may wait for ever.
func (c *core) roomToApply() error {
	need := max(c.space.reserve/2, min(startBytes, c.space.reserve))
	if free, ok := c.space.available(); ok && free < need {
		return memory.Errorf(memory.CodeNoSpace, "only %d bytes are free on the disk of %s, %d are needed to apply to the state what Raft's log holds", free, c.dir.path, need).
			WithHint("free some space on that disk, then do the same again; nothing is lost")
	}
	return nil
}

// owed is how far log and Raft's log went when a node started. The state commits without
// a sync, so that after a kill it lacks the newest of them until they are applied again,
// which takes room: as long as there is none, what was forgotten would be found again
// and what was acknowledged would not.
type owed struct{ seq, index uint64 }

// found is what the state owes before the first term writes anything.
func (s *shard) found(ctx context.Context) (owed, error) {
	info, err := s.stream.Info(ctx)
	return owed{info.Last, s.replica.Group().Stats().LastIndex}, err
}

// lacking is how many frames of the log the state does not hold, and entries of Raft's
// log, of those that were there at the start. Mostly it holds all.
func (s *served) lacking() (frames, entries uint64) {
	o := s.owed.Load()
	if o == nil {
		return 0, 0
	}
	at, applied := s.state.Cursor().Seq, s.replica.Group().Stats().AppliedIndex
	return o.seq - min(at, o.seq), o.index - min(applied, o.index)
}

// lacks says why nothing may be read from the state yet.
func (s *served) lacks() *memory.Error {
	frames, entries := s.lacking()
	if frames == 0 && entries == 0 {
		return nil
	}
	what := fmt.Sprintf("%d frames of the log", frames)
	if frames == 0 { // it has lost its end
		what = fmt.Sprintf("%d entries of Raft's log", entries)
	}
	return memory.Errorf(memory.CodeNoSpace, "the state lacks %s: the disk has no room to apply them", what).
		WithHint("free some space; nothing is lost, and reads are served once they are applied")
}

// refuse says why writes must not be taken now, before anything is written.
func (s *served) refuse() *memory.Error {
	if lacks := s.lacks(); lacks != nil {
		return lacks
	}
	if full := s.noRoom(); full != nil {
		return full
	}
	if err := s.replica.Group().Halted(); err != nil {
		return memory.Errorf(memory.CodeUnavailable, "the shard has stopped: %v", err).WithHint("%s", haltHint(err))
	}
	return s.nats.Fault()
}

// noRoom says why nothing is written to the shard for want of room on this node's disk.
func (s *shard) noRoom() *memory.Error {
	if free, ok := s.space.available(); ok && s.space.reserve > 0 && free < s.space.reserve {
		return memory.Errorf(memory.CodeNoSpace, "only %d MiB are free on the disk of %s, %d MiB are kept in reserve",
			free>>20, s.dir.path, s.space.reserve>>20).WithHint("free some space; reads go on, nothing is lost")
	}
	return s.replica.Full()
}

// haltHint says what helps a shard that has stopped applying.
func haltHint(halted error) string {
	if storage.IsNoSpace(halted) {
		return "free some space and restart the node; nothing is lost"
	}
	poison, missed := (*projections.PoisonError)(nil), (*projections.MissedError)(nil)
	switch {
	case errors.As(halted, &poison):
		return poisonHint(poison)
	case errors.As(halted, &missed):
		return "memctl rebuild builds the state again from the log"
	}
	if storage.IsCorrupt(halted) {
		return "restart the node: it builds the state again from the log"
	}
	if errors.Is(halted, storage.ErrHalted) || errors.Is(halted, raftfsm.ErrStorage) {
		return "check the disk, then restart the node; nothing is lost"
	}
	return "see the node's log; memctl doctor"
}

// faultHint says what helps against a fault of the store.
func (s *served) faultHint(fault error) string {
	switch halted := s.replica.Group().Halted(); {
	case halted != nil:
		return haltHint(halted)
	case storage.IsCorrupt(fault):
		return "check the disk; memctl rebuild builds the state again from the log"
	}
	return "check the disk, then restart the node"
}
