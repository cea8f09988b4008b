package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// log models a server with the shard's streams as its clients see them: messages in
// order, appends that expect a last sequence, and answers that come late, never, or
// wrong. A repair adds a stream; see repair_test.go.
type log struct {
	w       *world
	streams []*stream
	appends []*appending // on their way to a stream
	answers []*appending // on their way back
	late    []*appending // their sender knows no outcome and they still may arrive
	full    bool         // there is no space
	lies    int          // messages stored at another sequence than expected
	losses  int          // times that messages were lost which had been synced
	gone    map[int]bool // replicas that do not reach the log
}

// stream is one of them. The first has no identity, as a state does not know it.
type stream struct {
	ref    events.StreamRef
	msgs   [][]byte // nil: lost
	sealed bool
}

func (s *stream) last() uint64 { return uint64(len(s.msgs)) }

// lost lists what is missing up to a sequence.
func (s *stream) lost(last uint64) (seqs []uint64) {
	for i, m := range s.msgs[:last] {
		if m == nil {
			seqs = append(seqs, uint64(i)+1)
		}
	}
	return seqs
}

// next is the first message behind a sequence, up to another; 0 = none.
func (s *stream) next(seq, last uint64) uint64 {
	for seq++; seq <= last; seq++ {
		if s.msgs[seq-1] != nil {
			return seq
		}
	}
	return 0
}

// appending is one attempt to append.
type appending struct {
	host   *host
	to     *stream
	number uint64
	data   []byte
	last   uint64
	err    error // its answer
}

// post takes an append from a writer.
func (l *log) post(a *appending) { l.appends = append(l.appends, a) }

// take removes a random element.
func take[T any](w *world, list *[]T) T {
	i := w.rng.IntN(len(*list))
	out := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return out
}

// step lets one message move, if there is one.
func (l *log) step() {
	switch {
	case len(l.answers) > 0 && l.w.rng.IntN(2) == 0:
		a := take(l.w, &l.answers)
		if a.host.gone {
			return
		}
		if a.err == nil && a.host.phase == "ended" {
			l.w.reach("late ack")
		}
		l.w.event("answer %s #%d: %v", a.host, a.number, a.err)
		a.host.w.Appended(l.w.elapsed, a.number, a.err)
	case len(l.late) > 0 && l.w.rng.IntN(3) == 0:
		l.arriveLate(take(l.w, &l.late))
	case len(l.appends) > 0:
		a := take(l.w, &l.appends)
		a.err = l.arrive(a)
		l.answers = append(l.answers, a)
	}
}

// arrive decides what becomes of an append.
func (l *log) arrive(a *appending) error {
	w := l.w
	if l.gone[a.host.r.id] {
		w.bite("log unreachable")
		return fmt.Errorf("%w: no connection", eventlog.ErrRefused)
	}
	if l.full {
		w.bite("no space")
		w.reach("no space")
		return eventlog.ErrNoSpace
	}
	if !w.faulty || w.rng.IntN(100) >= w.rates.log {
		return l.store(a)
	}
	switch w.rng.IntN(8) {
	case 0:
		w.bite("refused")
		return fmt.Errorf("%w: nobody leads the stream", eventlog.ErrRefused)
	case 1:
		w.bite("ack lost")
		w.reach("unknown append")
		_ = l.store(a)
		return eventlog.ErrUnknown
	case 2, 3:
		w.bite("late")
		w.reach("unknown append")
		l.late = append(l.late, a)
		return eventlog.ErrUnknown
	case 4:
		w.bite("append lost")
		return eventlog.ErrUnknown
	case 5:
		w.bite("unknown and no space")
		l.late = append(l.late, a)
		return fmt.Errorf("%w: %w", eventlog.ErrUnknown, eventlog.ErrNoSpace)
	case 6:
		err := l.store(a)
		if err == nil { // of what is refused the other copy is refused, too
			w.bite("stored twice") // the second copy may still arrive
			l.late = append(l.late, a)
		}
		return err
	}
	return l.lie(a)
}

// arriveLate is the arrival of a message whose sender stopped waiting for it.
func (l *log) arriveLate(a *appending) {
	if l.w.rng.IntN(4) == 0 {
		return // it never does
	}
	if l.w.faulty && l.w.rng.IntN(12) == 0 {
		_ = l.lie(a)
		return
	}
	if l.store(a) == nil {
		l.w.reach("late arrival")
	}
}

// store appends if the log ends where the sender believes.
func (l *log) store(a *appending) error {
	if a.to.sealed {
		return fmt.Errorf("%w: the stream is sealed", eventlog.ErrRefused)
	}
	if a.last != a.to.last() {
		return fmt.Errorf("%w: the last sequence is %d, not %d", eventlog.ErrRefused, a.to.last(), a.last)
	}
	l.put(a)
	return nil
}

func (l *log) put(a *appending) {
	if l.w.site != nil {
		l.w.site.agreed(a.data)
	}
	a.to.msgs = append(a.to.msgs, a.data)
	l.w.event("log %d is of %s #%d", a.to.last(), a.host, a.number)
}

// lie stores whatever the last sequence is, as a stream did whose new leader had
// not read all of its log. The acknowledgement names another sequence than the
// sender expects, so that its client takes the outcome for unknown.
func (l *log) lie(a *appending) error {
	if a.to.sealed || a.last == a.to.last() {
		return l.store(a)
	}
	l.w.bite("expected sequence ignored")
	l.lies++
	l.put(a)
	return eventlog.ErrUnknown
}

// view is a stream as one replica reads it.
type view struct {
	l    *log
	s    *stream
	r    *replica
	last uint64
	// passing is how long the one that is asked may tell what is not so.
	passing time.Duration
}

// at is a stream as it is.
func (l *log) at(s *stream, r *replica) *view { return &view{l: l, s: s, r: r, last: s.last()} }

// look begins a read: it may fail, or come from a server that lags, which shows at
// least so much as floor.
func (l *log) look(s *stream, r *replica, floor uint64) *view {
	v := l.at(s, r)
	if l.w.faulty && floor < v.last && l.w.rng.IntN(100) < l.w.rates.lag {
		v.last = floor + uint64(l.w.rng.IntN(int(v.last-floor)))
		l.w.bite("lagging read")
	}
	return v
}

// ofLeader has a view be what the leader tells of a log of several servers. One that was just
// elected, or is none any more, may know less than what its reader has seen.
func (v *view) ofLeader() *view {
	w := v.l.w
	if len(w.replicas) == 1 {
		return v
	}
	v.passing = lieFor
	if v.last > 0 && w.faulty && w.rng.IntN(100) < 2 {
		v.last = uint64(w.rng.IntN(int(v.last)))
		w.bite("a leader that knows less")
	}
	return v
}

// lieFor is how long a leader may tell what is not so.
const lieFor = 6 * time.Second

var errNoAnswer = errors.New("the log does not answer")

func (v *view) Info(context.Context) (eventlog.Info, error) {
	if v.l.gone[v.r.id] {
		v.l.w.bite("log unreachable")
		return eventlog.Info{}, errNoAnswer
	}
	lost := v.s.lost(v.last)
	return eventlog.Info{First: 1, Last: v.last, Messages: v.last - uint64(len(lost)), Lost: lost, Identity: cmp.Or(v.s.ref.Identity, "sim"), Leader: "n", Passing: v.passing}, nil
}

func (v *view) Read(_ context.Context, from, to uint64, fn func(eventlog.Message) error) error {
	if v.l.gone[v.r.id] {
		return errNoAnswer
	}
	if to == 0 {
		to = v.last
	}
	for seq := max(from, 1); seq <= to; seq++ {
		if seq > v.last || v.s.msgs[seq-1] == nil {
			return &eventlog.GapError{Want: seq, Got: v.s.next(seq, v.last)}
		}
		if err := fn(eventlog.Message{Seq: seq, Data: slices.Clone(v.s.msgs[seq-1]), Time: time.Unix(int64(seq), 0)}); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) Get(_ context.Context, seq uint64) (eventlog.Message, error) {
	if seq == 0 || seq > v.last || v.s.msgs[seq-1] == nil {
		return eventlog.Message{}, eventlog.ErrNotFound
	}
	return eventlog.Message{Seq: seq, Data: slices.Clone(v.s.msgs[seq-1])}, nil
}

// Append is how a repair fills a stream.
func (v *view) Append(_ context.Context, data []byte, last uint64) error {
	if last != v.s.last() {
		return fmt.Errorf("%w: the last sequence is %d, not %d", eventlog.ErrRefused, v.s.last(), last)
	}
	v.s.msgs = append(v.s.msgs, slices.Clone(data))
	v.last = v.s.last()
	return nil
}

func (v *view) Close() error { return nil }
