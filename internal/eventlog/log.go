package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/events"
)

// Log is the log of one shard: the stream that counts, and how another one takes
// its place. As a Stream it is the one that counts.
type Log struct {
	nc  *nats.Conn
	cfg StreamConfig // but for the stream
	now atomic.Pointer[JetStream]
}

var _ Stream = (*Log)(nil)

// NewLog returns the log of a shard, before any stream of it was chosen. The
// connection stays the caller's.
func NewLog(nc *nats.Conn, cfg StreamConfig) *Log { return &Log{nc: nc, cfg: cfg} }

// Present lists the streams of the shard, by epoch.
func (l *Log) Present(ctx context.Context) ([]events.StreamRef, error) {
	js, err := jetstream.New(l.nc)
	if err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	var found []events.StreamRef
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		if shard, epoch, ok := events.ParseStreamName(info.Config.Name); ok && shard == l.cfg.Shard {
			found = append(found, events.StreamRef{Epoch: epoch, Identity: info.Config.Metadata[metaIdentity]})
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	slices.SortFunc(found, func(a, b events.StreamRef) int { return cmp.Compare(a.Epoch, b.Epoch) })
	return found, nil
}

// Open opens a stream of the shard that is there, or was: one that is not there
// holds nothing and takes nothing.
func (l *Log) Open(ctx context.Context, ref events.StreamRef) (*JetStream, error) {
	return l.open(ctx, ref, true)
}

// Create makes a stream of the shard, unless it is there.
func (l *Log) Create(ctx context.Context, ref events.StreamRef) (*JetStream, error) {
	return l.open(ctx, ref, false)
}

func (l *Log) open(ctx context.Context, ref events.StreamRef, mustExist bool) (*JetStream, error) {
	cfg := l.cfg
	cfg.Ref, cfg.MustExist = ref, mustExist
	return OpenStream(ctx, l.nc, cfg)
}

// Soundest is the stream among those present from which a state can be built: the
// one that holds most of the log from its beginning on, the later one if two hold
// the same. Where another stream goes further it is that one and a *GapError: a repair
// that was killed has filled its stream only in part, and none holds the log.
func (l *Log) Soundest(ctx context.Context, present []events.StreamRef) (best events.StreamRef, err error) {
	var most, last, furthest uint64 // of the best: sound up to, and its end; the end of any
	var longest events.StreamRef
	for _, ref := range present {
		s, err := l.Open(ctx, ref)
		if err != nil {
			return best, err
		}
		r, err := Scrub(ctx, s, Tail{Shard: l.cfg.Shard}, nil, nil)
		if err != nil {
			return best, err
		}
		end := r.Tail.Seq
		if d := r.Diverged(); d != nil {
			end = max(d.Seq, 1) - 1
		}
		if end >= most {
			best, most, last = ref, end, r.To
		}
		if r.To >= furthest {
			longest, furthest = ref, r.To
		}
	}
	if furthest > last {
		return longest, &GapError{Want: most + 1, Detail: fmt.Sprintf("%s is sound and ends before it, another stream goes on up to %d but is damaged",
			events.StreamName(l.cfg.Shard, best.Epoch), furthest)}
	}
	return best, nil
}

// Assume makes a stream the one that counts without asking for it: it is there, or
// is made by whoever leads first.
func (l *Log) Assume(ref events.StreamRef) error {
	cfg := l.cfg
	cfg.Ref = ref
	s, err := newStream(l.nc, cfg)
	if err == nil {
		l.Use(s)
	}
	return err
}

// Use makes a stream the one that counts.
func (l *Log) Use(s *JetStream) { l.now.Store(s) }

// Ref names the stream that counts.
func (l *Log) Ref() events.StreamRef { return l.now.Load().Ref() }

// Seal lets the stream that counts take nothing any more.
func (l *Log) Seal(ctx context.Context) error { return l.now.Load().Seal(ctx) }

// Sealed reports whether the stream that counts takes nothing any more.
func (l *Log) Sealed() bool { return l.now.Load().sealed.Load() }

// RemoveReplaced deletes the streams whose place the one that counts has taken:
// those of earlier epochs, once its own has begun, which the caller says. One that
// goes further stays, for then something is wrong, and so do those of other clusters.
func (l *Log) RemoveReplaced(ctx context.Context, begun events.StreamRef) error {
	if begun != l.Ref() {
		return nil
	}
	found, err := l.Present(ctx)
	if err != nil {
		return err
	}
	now, err := l.Info(ctx)
	if err != nil {
		return err
	}
	for _, ref := range found {
		if ref.Epoch >= begun.Epoch {
			continue
		}
		old, oerr := l.Open(ctx, ref)
		if errors.Is(oerr, ErrOtherCluster) {
			continue
		}
		if oerr == nil {
			var info Info
			if info, oerr = old.Info(ctx); oerr == nil && info.Last > now.Last {
				oerr = fmt.Errorf("%s goes on up to %d, the log ends at %d", old.name, info.Last, now.Last)
			}
		}
		if oerr == nil {
			oerr = l.Remove(ctx, ref)
		}
		err = errors.Join(err, oerr)
	}
	return err
}

// Remove deletes a stream of the shard, if it is there.
func (l *Log) Remove(ctx context.Context, ref events.StreamRef) error {
	js, err := jetstream.New(l.nc)
	if err != nil {
		return err
	}
	name := events.StreamName(l.cfg.Shard, ref.Epoch)
	if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// Info implements Stream.
func (l *Log) Info(ctx context.Context) (Info, error) { return l.now.Load().Info(ctx) }

// Append implements Stream.
func (l *Log) Append(ctx context.Context, data []byte, last uint64) error {
	return l.now.Load().Append(ctx, data, last)
}

// Read implements Stream.
func (l *Log) Read(ctx context.Context, from, to uint64, fn func(Message) error) error {
	return l.now.Load().Read(ctx, from, to, fn)
}

// Get implements Stream.
func (l *Log) Get(ctx context.Context, seq uint64) (Message, error) {
	return l.now.Load().Get(ctx, seq)
}

// Close implements Stream.
func (l *Log) Close() error {
	if s := l.now.Load(); s != nil {
		return s.Close()
	}
	return nil
}
