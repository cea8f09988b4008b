package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// A repair writes the whole log once more beside the old one, and must not fill the
// disk with it. Where NATS runs in this process its disk is looked at before
// anything is reserved, and again and again while the copy is written, so that the
// reserve stays free. An external NATS does not say what is free: there a repair
// learns it from a refusal. A copy that could not be finished is removed, so that
// its room is free again; the old stream stays the log.

const (
	// messageOverhead is what the server keeps of a message beside its bytes, at most:
	// the record's head, its subject, the expected sequence, a hash.
	messageOverhead = 128
	// roomEvery is how many bytes are written before the disk is looked at again.
	roomEvery = 1 << 20
	// removeFor bounds the removal of a copy.
	removeFor = 30 * time.Second
)

// checkRoom refuses a repair whose copy would not fit beside the reserve.
func (r *repair) checkRoom(ctx context.Context) error {
	free, ok := r.free()
	if !ok {
		return nil
	}
	need, err := r.copySize()
	if err != nil {
		return err
	}
	held, err := r.copied(ctx)
	if err != nil {
		return err
	}
	need -= min(need, held)
	reserve := r.shard.space.reserve
	if need+reserve <= free {
		return nil
	}
	r.removeCopy(ctx)
	return memory.Errorf(memory.CodeNoSpace, "a repair writes %d bytes beside the log and leaves %d free, but only %d are free on the disk of %s", need, reserve, free, r.shard.dir.nats()).
		WithHint("free %d bytes more on that disk, then run memctl log repair again; nothing is lost, and reads go on", need+reserve-free)
}

// free is what is free where the log's server keeps it, as far as that can be known.
func (r *repair) free() (free uint64, ok bool) {
	if r.shard.cfg.NATSURL != "" {
		return 0, false
	}
	return r.shard.space.of(r.shard.dir.nats())
}

// copySize is how many bytes a stream takes that holds what the state keeps of the log.
func (r *repair) copySize() (bytes uint64, err error) {
	src, done := r.kept(nil)
	for seq := uint64(1); seq <= src.Last && err == nil; seq++ {
		var b []byte
		b, err = src.Frame(seq)
		bytes += uint64(len(b)) + messageOverhead
	}
	return bytes, errors.Join(err, done())
}

// copied is how many bytes of the copy an interrupted repair has written.
func (r *repair) copied(ctx context.Context) (bytes uint64, err error) {
	if !r.hasReserved() {
		return 0, nil
	}
	stream, err := r.shard.stream.Open(ctx, r.shard.state.Cursor().Next)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	return info.Bytes, err
}

// whileRoom gives the frames to be written as long as the reserve is free.
func (r *repair) whileRoom(frame func(seq uint64) ([]byte, error)) func(seq uint64) ([]byte, error) {
	since := roomEvery
	return func(seq uint64) ([]byte, error) {
		b, err := frame(seq)
		if since += len(b); err != nil || since < roomEvery {
			return b, err
		}
		since = 0
		if free, ok := r.free(); ok && free < r.shard.space.reserve {
			return nil, fmt.Errorf("%w: %d bytes are free, %d are kept in reserve", eventlog.ErrNoSpace, free, r.shard.space.reserve)
		}
		return b, nil
	}
}

// outOfRoom ends a copy for which there was no room after all. Other errors stay as
// they are.
func (r *repair) outOfRoom(ctx context.Context, failed error) error {
	if !errors.Is(failed, eventlog.ErrNoSpace) {
		return failed
	}
	r.removeCopy(ctx)
	hint := "free space where the log's server keeps it"
	if r.shard.nats.Fault() != nil {
		hint += " and restart the node" // nats-server does not write again before
	}
	return memory.Errorf(memory.CodeNoSpace, "the log could not be copied: %v", failed).
		WithHint("%s, then run memctl log repair again; nothing is lost, and reads go on", hint).WithCause(failed)
}

// removeCopy deletes the reserved stream. One that goes further than the state was
// more than a copy, and stays.
func (r *repair) removeCopy(ctx context.Context) {
	if !r.hasReserved() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeFor)
	defer cancel()
	cur := r.shard.state.Cursor()
	stream, err := r.shard.stream.Open(ctx, cur.Next)
	if err == nil {
		var info eventlog.Info
		if info, err = stream.Info(ctx); err == nil && info.Last > cur.Seq {
			err = fmt.Errorf("it goes on up to %d, the state stands at %d", info.Last, cur.Seq)
		}
	}
	if err == nil {
		err = r.shard.stream.Remove(ctx, cur.Next)
	}
	if err != nil {
		r.shard.cfg.Logger.Warn("the copy of the log that a repair had begun stays", "epoch", cur.Next.Epoch, "err", err)
	}
}
