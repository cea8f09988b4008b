package projections

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime/debug"
	"sort"
	"syscall"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// A poison event is one that no replica can fold: folding it panics, or fails though the
// state can be read. An operator may put it in quarantine. The command for that comes to a
// state that has stopped in front of the event, see State.Quarantine, and to one that is
// filled from the log before it gets there, see ingest.Replay.

// CodeOperator is the code of an event that an operator put in quarantine.
const CodeOperator = "operator"

// PoisonError says which event cannot be folded. The state stands in front of the command
// that holds it.
type PoisonError struct {
	At    events.Position
	Type  events.Type
	Cause error

	stack []byte
}

// Code says in a word how folding ended: "panicked" or "failed".
func (e *PoisonError) Code() string {
	if e.stack != nil {
		return "panicked"
	}
	return "failed"
}

func (e *PoisonError) Error() string {
	return fmt.Sprintf("event %s (%s) cannot be applied, applying it %s: %v", e.At, e.Type, e.Code(), e.Cause)
}

// Unwrap returns the cause.
func (e *PoisonError) Unwrap() error { return e.Cause }

// Stack is where it panicked, nil if it did not.
func (e *PoisonError) Stack() []byte { return e.stack }

// Ref is the event's place in the log.
func (e *PoisonError) Ref() Ref { return Ref{e.At.Seq, e.At.Index} }

// MissedError says that an event which is in quarantine was folded here like any other.
// Only this replica stops: it is built again from the log, which says so.
type MissedError struct{ At Ref }

func (e *MissedError) Error() string {
	return fmt.Sprintf("event %d.%d is in quarantine and was applied here; rebuild this replica", e.At.Seq, e.At.Index)
}

// errRead is wrapped by failures to read the state's own rows.
var errRead = errors.New("the state cannot be read")

// blames reports whether an event may be why folding it failed: not the store, nor that
// this program is older than the log, nor this replica.
func blames(err error) bool {
	missed, path, system := (*MissedError)(nil), (*fs.PathError)(nil), syscall.Errno(0)
	return !errors.Is(err, errRead) && !errors.Is(err, storage.ErrHalted) && !storage.IsCorrupt(err) && !storage.IsNoSpace(err) &&
		!events.IsForeign(err) && !errors.Is(err, events.ErrNewer) && !errors.As(err, &missed) && !errors.As(err, &path) && !errors.As(err, &system)
}

// guarded folds an event and says of one that cannot be folded which it is.
func (t *tx) guarded(at Ref, raw []byte, c *Contribution) (res EventResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = t.poison(at, raw, fmt.Errorf("panic: %v", v), debug.Stack())
		}
	}()
	if res, err = t.applyEvent(at, raw, c); err != nil && blames(err) {
		err = t.poison(at, raw, err, nil)
	}
	return res, err
}

func (t *tx) poison(at Ref, raw []byte, cause error, stack []byte) *PoisonError {
	e := &PoisonError{At: t.position(at), Cause: cause, stack: stack}
	if env, err := events.DecodeEnvelope(raw); err == nil {
		e.Type = env.Type
	}
	return e
}

// finishError is why what was gathered could not be written.
type finishError struct {
	cause error
	stack []byte
}

func (e *finishError) Error() string { return e.cause.Error() }
func (e *finishError) Unwrap() error { return e.cause }

// finishGuarded is finish for what makes it panic.
func (t *tx) finishGuarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &finishError{fmt.Errorf("panic: %v", v), debug.Stack()}
		}
	}()
	if err = t.finish(); err != nil && blames(err) {
		err = &finishError{cause: err}
	}
	return err
}

// errStop ends a trial in front of the event at which it is to stop.
var errStop = errors.New("the trial ends here")

// blame says which event of a batch is why what was gathered cannot be written: that with
// which it begins to fail. It gives failed back where that is not found.
func (s *State) blame(commands []Command, failed error) error {
	why := (*finishError)(nil)
	if !errors.As(failed, &why) {
		return failed
	}
	from := s.Cursor().Events
	last := s.trial(commands, 0)
	var found *trial
	sort.Search(int(last.events-from), func(i int) bool {
		if next := s.trial(commands, from+uint64(i)+1); next.err != nil {
			found = next
			return true
		}
		return false
	})
	if found == nil || found.poison == nil {
		return failed
	}
	return &CommandError{found.index, found.poison}
}

// trial is a batch that is folded up to an event and given up.
type trial struct {
	events uint64 // folded since the beginning
	index  uint64 // of the command with the last of them
	poison *PoisonError
	err    error
}

// trial folds commands until so many events were folded since the beginning; 0 = all.
func (s *State) trial(commands []Command, stopAt uint64) *trial {
	g, t := s.begin()
	defer g.terms.Reset()
	defer t.close()
	t.stopAt = stopAt
	out := &trial{}
	for _, c := range commands {
		if c.Index <= t.cursor.RaftIndex {
			continue
		}
		out.index = c.Index
		_, err := t.command(c.Data)
		if errors.Is(err, errStop) {
			break
		}
		if err != nil {
			return &trial{events: t.cursor.Events, err: err}
		}
		if stopAt != 0 && t.cursor.Events == stopAt {
			break
		}
		t.cursor.RaftIndex, t.cursor.RaftTerm = c.Index, c.Term
	}
	out.events = t.cursor.Events
	out.err = t.finishGuarded()
	if why := (*finishError)(nil); errors.As(out.err, &why) {
		out.poison = t.poison(t.last, t.lastRaw, why.cause, why.stack)
	}
	return out
}

// Quarantine is the payload of a Raft command: an event that no replica can fold is to be
// folded as a quarantined one. It acts on a state that has stopped in front of the event.
type Quarantine struct {
	At Ref
	By string // who did it
	// Note says when and why, sealed.
	Note []byte
}

// QuarantineResult says whether the event is in quarantine, by this command or before it.
type QuarantineResult struct{ Done bool }

const quarantineVersion = 1

// Encode returns the bytes of the command:
//
//	u8 3 ‖ u8 version ‖ the payload of event.quarantined
func (q *Quarantine) Encode() []byte {
	return append([]byte{commandQuarantine, quarantineVersion}, q.Event().Encode()...)
}

// Event is what the log says of it.
func (q *Quarantine) Event() events.Quarantined {
	return events.Quarantined{Seq: q.At.Seq, Index: q.At.Index, By: q.By, Note: q.Note}
}

// QuarantineOf is what the log says, for a state.
func QuarantineOf(e events.Quarantined) Quarantine {
	return Quarantine{Ref{e.Seq, e.Index}, e.By, e.Note}
}

// IsQuarantine reports whether a command is one.
func IsQuarantine(data []byte) bool { return len(data) > 0 && data[0] == commandQuarantine }

// DecodeQuarantine parses what Encode wrote. The note aliases b.
func DecodeQuarantine(b []byte) (*Quarantine, error) {
	d := &decoder{b: b}
	if err := d.command("quarantine", commandQuarantine, quarantineVersion); err != nil {
		return nil, err
	}
	e, err := events.DecodeQuarantined(d.rest())
	if err != nil {
		return nil, err
	}
	q := QuarantineOf(e)
	return &q, nil
}

// Quarantine has the event folded as a quarantined one when it comes. It is kept in
// memory: what is written is what the event became.
func (s *State) Quarantine(q Quarantine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	marked := maps.Clone(s.marked) // transactions have the former one
	if marked == nil {
		marked = map[Ref]Quarantine{}
	}
	marked[q.At] = q
	s.marked = marked
}

// quarantine answers the command once the event was folded, or not.
func (t *tx) quarantine(q *Quarantine) (QuarantineResult, error) {
	row, err := t.get(noteKey(q.At))
	return QuarantineResult{Done: row != nil}, err
}

// Noted is an event that an operator put in quarantine.
type Noted struct {
	Quarantine
	Told bool // the log says so, behind it
}

// What a row begins with says whether the log tells of it yet. The payload of
// event.quarantined follows.
const (
	noteUntold = 0
	noteTold   = 1
)

// Noted are the events that an operator put in quarantine, oldest first.
func (v logReads) Noted() (out []Noted, err error) {
	err = eachRow(v.p.snap, []byte{prefixNote}, func(key, value []byte) error {
		if len(value) == 0 {
			return fmt.Errorf("note of a quarantined event: %w", events.ErrMalformed)
		}
		e, err := events.DecodeQuarantined(append([]byte(nil), value[1:]...))
		out = append(out, Noted{QuarantineOf(e), value[0] == noteTold})
		return err
	})
	return out, err
}

// note keeps what an operator said of an event, which the log does not tell yet.
func (l *eventLog) note(ev *event) error {
	if ev.note == nil {
		return nil
	}
	return l.t.b.Set(noteKey(ev.at), append([]byte{noteUntold}, ev.note.Event().Encode()...), nil)
}

// told notes that the log tells of it.
func (l *eventLog) told(ev *event) error {
	q, err := events.DecodeQuarantined(ev.Payload)
	if err != nil {
		return nil // of nothing
	}
	at := Ref{q.Seq, q.Index}
	row, err := l.t.get(noteKey(at))
	if err != nil {
		return err
	}
	if row == nil {
		return &MissedError{at}
	}
	return l.t.b.Set(noteKey(at), append([]byte{noteTold}, row[1:]...), nil)
}
