package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"mneme/internal/events"
)

// Tail is where a writer believes the log to stand: the last sequence, the
// chain after it, and under which term and epoch it writes on.
type Tail struct {
	Seq   uint64
	Chain events.Chain
	Term  uint64
	Epoch uint32
	Shard uint16
}

// WriterOptions tune a writer; the zero value is good.
type WriterOptions struct {
	// Feature is the least level of log features that a reader of the frames
	// must know. Events may ask for a higher one.
	Feature uint16
	// Identity of the stream, if known: another one is a divergence.
	Identity string
	// MaxAdopt is how many messages are adopted at a time; 0 means 1024. The
	// rest is found by the append that follows.
	MaxAdopt int
}

type writerState uint8

const (
	writerReady   writerState = iota
	writerBehind              // messages were handed out for adoption
	writerUnknown             // the tail could not be read
)

// Writer is the shard leader's end of the log: it owns sequence, chain, term
// and epoch. It is not safe for concurrent use.
type Writer struct {
	s     Stream
	opt   WriterOptions
	tail  Tail
	state writerState
}

// Appended is a frame in the log. Frame is the caller's.
type Appended struct {
	Seq   uint64
	Frame []byte
	Chain events.Chain
}

// NewWriter returns a writer that goes on at the given tail. It does no I/O.
func NewWriter(s Stream, at Tail, opt WriterOptions) *Writer {
	if opt.MaxAdopt <= 0 {
		opt.MaxAdopt = 1024
	}
	return &Writer{s: s, opt: opt, tail: at}
}

// Tail is where the writer stands.
func (w *Writer) Tail() Tail { return w.tail }

// Append puts a frame of the given encoded envelopes at Tail().Seq+1.
//
// Its errors wrap ErrRefused or ErrNoSpace (not stored), ErrAbsent (not stored
// so far), ErrUnknown (the tail cannot be read: Resync before the next append),
// ErrBehind (Resume is due) or ErrClosed, or are an *AdoptError (apply those
// messages, Resume, decide again) or a *DivergedError.
func (w *Writer) Append(ctx context.Context, encoded [][]byte) (Appended, error) {
	switch w.state {
	case writerBehind:
		return Appended{}, fmt.Errorf("append: %w", ErrBehind)
	case writerUnknown:
		return Appended{}, fmt.Errorf("append: %w: tail not read since", ErrUnknown)
	}
	if len(encoded) == 0 {
		return Appended{}, fmt.Errorf("append: %w: a frame needs an event", ErrRefused)
	}
	f := events.Frame{
		Shard: w.tail.Shard, Feature: max(w.opt.Feature, events.FeatureOf(encoded)), Epoch: w.tail.Epoch, Term: w.tail.Term,
		Seq: w.tail.Seq + 1, Previous: w.tail.Chain, Events: encoded,
	}
	data := f.Encode()
	err := w.s.Append(ctx, data, w.tail.Seq)
	switch {
	case err == nil:
		return w.advance(data), nil
	case errors.Is(err, ErrClosed), errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrUnknown):
		return Appended{}, fmt.Errorf("append %d: %w", f.Seq, err)
	}
	return w.settle(ctx, data, err)
}

func (w *Writer) advance(frame []byte) Appended {
	w.tail.Seq++
	w.tail.Chain = events.NextChain(w.tail.Chain, w.tail.Seq, frame)
	w.state = writerReady
	return Appended{Seq: w.tail.Seq, Frame: frame, Chain: w.tail.Chain}
}

// settle finds out what became of a frame whose append failed with cause.
func (w *Writer) settle(ctx context.Context, data []byte, cause error) (Appended, error) {
	seq := w.tail.Seq + 1
	found, err := w.readTail(ctx)
	switch {
	case err != nil:
		w.state = writerUnknown
		var d *DivergedError
		if errors.As(err, &d) {
			return Appended{}, fmt.Errorf("append %d: %w", seq, err)
		}
		return Appended{}, fmt.Errorf("append %d: %w: %w; then reading the tail: %w", seq, ErrUnknown, cause, err)
	case len(found) > 0 && bytes.Equal(found[0].Data, data):
		// Whatever stands behind it is found by the next append.
		return w.advance(data), nil
	case len(found) > 0:
		w.state = writerBehind
		return Appended{}, fmt.Errorf("append %d: %w", seq, &AdoptError{Messages: found, Term: w.highestTerm(found)})
	case errors.Is(cause, ErrUnknown):
		// The sequence is free, but the message may still be under way.
		return Appended{}, fmt.Errorf("append %d: %w: %s", seq, absentError{cause}, cause)
	}
	return Appended{}, fmt.Errorf("append %d: %w", seq, cause)
}

// absentError is ErrAbsent that still tells whether space was the reason, but
// no longer that the outcome is unknown.
type absentError struct{ cause error }

func (e absentError) Error() string { return ErrAbsent.Error() }
func (e absentError) Is(target error) bool {
	return target == ErrAbsent || target == ErrNoSpace && errors.Is(e.cause, ErrNoSpace)
}

// Resync reads the tail after ErrUnknown. Without messages the writer may go
// on; else they are to be applied, and Resume is due. A frame whose outcome was
// unknown is the first message, if it was stored.
func (w *Writer) Resync(ctx context.Context) ([]Message, error) {
	found, err := w.readTail(ctx)
	if err != nil {
		w.state = writerUnknown
		return nil, fmt.Errorf("resync: %w", err)
	}
	w.state = writerReady
	if len(found) > 0 {
		w.state = writerBehind
	}
	return found, nil
}

// Resume goes on from another tail, after its messages were applied.
func (w *Writer) Resume(at Tail) { w.tail, w.state = at, writerReady }

var errEnough = errors.New("enough")

// readTail returns what the log holds behind the writer's tail.
func (w *Writer) readTail(ctx context.Context) ([]Message, error) {
	info, err := w.s.Info(ctx)
	if err != nil {
		return nil, err
	}
	if w.opt.Identity != "" && info.Identity != w.opt.Identity {
		return nil, diverged(KindIdentity, 0, "stream was created again: identity %s, was %s", info.Identity, w.opt.Identity)
	}
	if info.Last < w.tail.Seq {
		return nil, diverged(KindSuffixLost, info.Last+1, "log ends at %d, the writer stands at %d", info.Last, w.tail.Seq)
	}
	if info.Last == w.tail.Seq {
		return nil, nil
	}
	var found []Message
	err = w.s.Read(ctx, w.tail.Seq+1, info.Last, func(m Message) error {
		found = append(found, m)
		if len(found) >= w.opt.MaxAdopt {
			return errEnough
		}
		return nil
	})
	var gap *GapError
	switch {
	case errors.As(err, &gap):
		return nil, diverged(KindGap, gap.Want, "%v", gap)
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	}
	return found, nil
}

func (w *Writer) highestTerm(found []Message) uint64 {
	var term uint64
	for _, m := range found {
		if f, err := events.DecodeFrame(m.Data); err == nil && f.Shard == w.tail.Shard {
			term = max(term, f.Term)
		}
	}
	return term
}
