package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// OpenState opens a shard's state. Where the replica is alone, a state that is
// missing, damaged or of an older version is built from the log, and what was
// there is kept. With peers an empty state is filled by them, and the others are
// a *DamagedError.
func OpenState(ctx context.Context, opt Options) (*projections.State, error) {
	opt.setDefaults()
	state, err := opt.openState(ctx)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if state, err = opt.fillState(ctx, state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return state, nil
}

func (o *Options) openState(ctx context.Context) (*projections.State, error) {
	if err := storage.MkdirAll(o.FS, o.Dir, 0o700); err != nil {
		return nil, err
	}
	var state *projections.State
	err := o.Damaged
	if err == nil {
		state, err = projections.Open(o.StateOptions())
	}
	if storage.IsCorrupt(err) && !o.alone() {
		state, err = o.buildAmongPeers(ctx, err)
	}
	if storage.IsCorrupt(err) && o.alone() {
		if err := o.MayBuild(err); err != nil {
			return nil, err
		}
		aside, moveErr := moveAside(o.FS, o.stateDir())
		if moveErr != nil {
			return nil, errors.Join(err, moveErr)
		}
		o.Logger.Error("the state is damaged and is built again from the log", "err", err, "kept", aside)
		state, err = projections.Open(o.StateOptions())
	}
	if older := (*projections.OlderError)(nil); errors.As(err, &older) {
		if err := o.MayBuild(err); err != nil {
			return nil, err
		}
		if err := o.choose(ctx, older.Cursor, nil); err != nil {
			return nil, err
		}
		if err := o.buildOlder(ctx, older); err != nil {
			return nil, err
		}
		state, err = projections.Open(o.StateOptions())
	}
	if err != nil {
		return nil, err
	}
	v := state.View()
	chosen := o.choose(ctx, v.Cursor(), ingest.FrameHashes(v))
	if gap := (*eventlog.GapError)(nil); errors.As(chosen, &gap) && o.alone() && !filledOnce(v.Cursor()) {
		chosen = nil // fillState meets the gap and goes on with what Raft has
	}
	if err = errors.Join(o.sweepOlder(), chosen, v.Close()); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	return state, nil
}

// choose opens the stream that goes on from where a state stands.
func (o *Options) choose(ctx context.Context, at projections.Cursor, hashes func(uint64) (events.Hash, bool)) error {
	if o.Streams == nil {
		return nil
	}
	return o.Streams.Choose(ctx, at, hashes)
}

// origin is the stream that a state is built from.
func (o *Options) origin(c projections.Cursor, info eventlog.Info) events.StreamRef {
	if o.Streams == nil {
		return events.StreamRef{Epoch: c.Epoch, Identity: info.Identity}
	}
	return o.Streams.Ref()
}

// MayBuild refuses to build a state that cannot be opened from the log if there
// are, or may be, peers: what this replica has acknowledged to them is in its
// state. It gives cause back where that is no reason to build a state.
func (o *Options) MayBuild(cause error) error {
	older := (*projections.OlderError)(nil)
	if !storage.IsCorrupt(cause) && !errors.Is(cause, storage.ErrNoDatabase) && !errors.As(cause, &older) {
		return cause
	}
	found, err := raftfsm.Inspect(o.groupOptions())
	if err != nil || found.Alone && (o.alone() || found.Index > 0) {
		return err
	}
	refused := &DamagedError{Message: fmt.Sprintf("the state in %s cannot be used: %v", o.stateDir(), cause), Hint: rejoinHint, Err: errors.Join(ErrPeers, cause)}
	if o.alone() && found.Damage != nil { // nothing tells of peers
		refused.Hint = foreignHint
	}
	return refused
}

// moveAside renames a folder so that nothing of it is lost.
func moveAside(fsys vfs.FS, dir string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", dir, n)
		if _, err := fsys.Stat(name); errors.Is(err, os.ErrNotExist) {
			return name, errors.Join(fsys.Rename(dir, name), storage.SyncDir(fsys, filepath.Dir(dir)))
		}
	}
}

// filledOnce reports whether a state has its origin. One that has none is empty, or its
// filling was killed.
func filledOnce(c projections.Cursor) bool { return c.Seq > 0 && c.RaftIndex > 0 }

// fillState gives its origin to a state that has none: an empty one, or one whose
// filling was killed. Where the replica is alone, the log is folded into it before: a
// single voter's Raft log holds nothing that the event log does not, unless that was
// damaged, so the state then stands at that log's end. The state is closed when it is
// not the one that is returned.
func (o *Options) fillState(ctx context.Context, state *projections.State) (*projections.State, error) {
	if filledOnce(state.Cursor()) {
		return state, nil
	}
	var info eventlog.Info
	var err error
	if o.alone() || o.Streams == nil { // else the log may have no leader now
		info, err = o.Stream.Info(ctx)
	}
	var end uint64 // where the log ended, at least, as far as Raft knows
	if err == nil && o.alone() {
		end, err = o.RaftEnd()
	}
	switch {
	case err != nil:
	case info.Last == 0 && end == 0 && o.Begun && o.alone():
		// The log begins before the first namespace gets its keys.
		err = &DamagedError{Message: fmt.Sprintf("%s: there are keys of namespaces, but neither a log nor a state", o.Dir),
			Hint: "put nats/ or shards/ back, or memctl restore a backup into a new directory; to begin anew choose another --data-dir"}
	case state.Cursor().Seq > 0 && !o.alone(): // buildAmongPeers was cut short
		return o.goOnAmongPeers(ctx, state)
	case info.Last == 0 && end == 0 || !o.alone():
		err = state.SetOrigin(0, 0, o.origin(state.Cursor(), info))
	default:
		if err := state.Close(); err != nil {
			return nil, err
		}
		damage := o.fill(ctx, info, end)
		if gap := (*eventlog.GapError)(nil); damage != nil && !errors.As(damage, &gap) && !errors.Is(damage, errLostEnd) {
			return nil, damage
		}
		if state, err = projections.Open(o.StateOptions()); err != nil {
			return nil, err
		}
		if damage != nil {
			err = o.fillFromRaft(state, info, end, damage)
		}
	}
	if err != nil {
		return nil, errors.Join(err, state.Close())
	}
	return state, nil
}

// errLostEnd: a log ends before what was applied.
var errLostEnd = errors.New("the log has lost its end")

// fill folds the log into the state behind its cursor. One that is cut short goes on
// at the next start from what was flushed. Errors: a *eventlog.GapError or errLostEnd,
// where the log does not hold all that was applied.
func (o *Options) fill(ctx context.Context, info eventlog.Info, end uint64) error {
	opt := o.StateOptions()
	opt.Filling, opt.OnApply = true, nil
	state, err := projections.Open(opt)
	if err != nil {
		return err
	}
	o.Logger.Info("building the state from the log", "frames", info.Last)
	started := time.Now()
	n, err := replay(ctx, o.Stream, o.Keys, state, 0, nil)
	if err == nil && end > state.Cursor().Seq {
		err = errLostEnd
	}
	if err == nil {
		err = o.setOrigin(state, info)
	}
	if err = errors.Join(err, state.Close()); err != nil {
		return err
	}
	o.Logger.Info("state built", "frames", n, "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// fillFromRaft builds a state, into which the log was folded as far as it is whole,
// from the newest snapshot and Raft's log. damage is what fill said of the log. What
// that lost is then to be written again from the state: positions of what was
// acknowledged are never given out anew.
func (o *Options) fillFromRaft(state *projections.State, info eventlog.Info, end uint64, damage error) error {
	at := state.Cursor()
	o.Logger.Error("the log does not hold all that was applied; the state is built from Raft's log and snapshots", "log", at.Seq, "raft", end, "err", damage)
	err := state.SetOrigin(0, 0, o.origin(at, info))
	if err == nil {
		err = o.catchUp(state)
	}
	if c := state.Cursor(); err == nil && c.RaftIndex > 0 && c.Seq >= end && c.Seq > at.Seq {
		return nil
	}
	if !errors.Is(damage, errLostEnd) {
		return errors.Join(damage, err)
	}
	return &DamagedError{Message: fmt.Sprintf("%s: there is no state, the log ends at %d, and what was applied went to %d at least", o.Dir, at.Seq, end),
		Hint: LostEndHint, Err: err}
}

// setOrigin gives a state that was built from the whole event log the Raft index
// and term of the last entry, and the log's stream.
func (o *Options) setOrigin(state *projections.State, info eventlog.Info) error {
	raft, err := raftfsm.Inspect(o.groupOptions())
	if err != nil {
		return err
	}
	index, term := raft.Index, raft.Term
	if c := state.Cursor(); c.Term > term {
		// Raft's log is gone or older than the event log: it begins anew, and its
		// next term must be higher than that of every frame.
		index, term = max(index, 1), c.Term
	}
	return state.SetOrigin(index, term, o.origin(state.Cursor(), info))
}

// replay folds the log behind the state's cursor into it, up to a sequence (0 =
// the log's end).
func replay(ctx context.Context, stream eventlog.Stream, keys *keyring.Keyring, state *projections.State, to uint64, progress func(done, total uint64)) (uint64, error) {
	v := state.View()
	d, err := derive.New(keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return ingest.Replay(ctx, stream, state, d, to, func(r *projections.Range) error {
		res, err := state.ApplyLocal(r)
		if err == nil {
			err = Continued(r, res)
		}
		if err == nil && progress != nil {
			progress(res.Cursor.Seq, info.Last)
		}
		return err
	})
}

// Continued checks that a state took a range that was read behind its end.
func Continued(r *projections.Range, result any) error {
	res, ok := result.(projections.RangeResult)
	if !ok || !res.Done() {
		return fmt.Errorf("replay at %d is %s of the state", r.Previous+1, res.Answer)
	}
	return nil
}

// faultEvery is how often faults of the store are logged: on a full disk it
// fails a thousand times a second.
const faultEvery = 10 * time.Second

func logFault(log *slog.Logger) func(error) {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() && time.Since(last) < faultEvery {
			return
		}
		last = time.Now()
		log.Error("store reports a fault", "err", err)
	}
}
