package projections

import (
	"errors"
	"fmt"

	"mneme/internal/events"
)

// EventResult is what became of one event.
type EventResult struct {
	Outcome  Outcome
	Position events.Position // of the event; for a duplicate, of the original
	Record   events.ID
	Version  uint32
}

// fold is the dispatch table: how each type of event changes the rows.
var folds = map[events.Type]func(*tx, *eventContext) (EventResult, error){
	events.TypeNamespaceCreated: (*tx).namespaceCreated,
	events.TypeNamespaceChanged: (*tx).namespaceChanged,
	events.TypeNamespaceDeleted: (*tx).namespaceDeleted,
	events.TypeKeyCreated:       (*tx).noted,
	events.TypeKeyDestroyed:     (*tx).noted,
	events.TypeSpaceBuilding:    (*tx).spaceBuilding,
	events.TypeSpaceSwitched:    (*tx).spaceSwitched,
	events.TypeSpaceDropped:     (*tx).spaceDropped,
	events.TypeCaptured:         (*tx).captured,
	events.TypeRevised:          (*tx).revised,
	events.TypeForgotten:        (*tx).forgotten,
	events.TypeVectorsAttached:  (*tx).vectorsAttached,
	events.TypeLeaderBegan:      (*tx).noted,
	events.TypeEpochBegan:       (*tx).epochBegan,
}

// eventContext is one event on its way through the fold.
type eventContext struct {
	events.Envelope
	raw          []byte // the envelope's bytes
	at           Ref
	contribution *Contribution // may be nil
}

// applyCommand folds a range that came through Raft.
func (t *tx) applyCommand(r *Range) (RangeResult, error) {
	if err := t.agrees(r.Applied); err != nil {
		return RangeResult{}, err
	}
	return t.applyRange(r)
}

// applyRange compares and advances: it folds the frames of a range that the
// state does not hold yet.
func (t *tx) applyRange(r *Range) (RangeResult, error) {
	known, answer, err := t.compare(r)
	if err != nil || answer != AnswerApplied {
		return RangeResult{Answer: answer, Cursor: t.cursor}, err
	}
	if r.Pipeline != PipelineVersion {
		return RangeResult{}, &PipelineError{r.Pipeline}
	}
	var res RangeResult
	for i := known; i < len(r.Frames); i++ {
		results, err := t.applyFrame(&r.Frames[i])
		if err != nil {
			return res, err
		}
		res.Events = append(res.Events, results...)
	}
	res.Cursor = t.cursor
	return res, nil
}

// Valid decodes a frame and says whether it continues the log at the cursor.
// A message that does not is void. ErrNewer is returned for a frame this
// program must not interpret.
func (c *Cursor) Valid(message []byte) (events.Frame, bool, error) {
	f, err := events.DecodeFrame(message)
	if errors.Is(err, events.ErrNewer) {
		return f, false, err
	}
	if err != nil || !f.Continues(c.Shard, c.Seq+1, c.Chain, c.Term) {
		return f, false, nil
	}
	return f, f.Epoch == c.Epoch || f.Epoch == c.Epoch+1 && opensEpoch(&f), nil
}

// opensEpoch reports whether the frame's first event is epoch.began.
func opensEpoch(f *events.Frame) bool {
	e, err := events.DecodeEnvelope(f.Events[0])
	return err == nil && e.Type == events.TypeEpochBegan
}

func (t *tx) applyFrame(rf *RangeFrame) ([]EventResult, error) {
	seq := t.cursor.Seq + 1
	f, valid, err := t.cursor.Valid(rf.Bytes)
	if err != nil {
		return nil, fmt.Errorf("frame %d: %w", seq, err)
	}
	chain := events.NextChain(t.cursor.Chain, seq, rf.Bytes)
	if !valid {
		t.cursor.Seq, t.cursor.Index, t.cursor.Chain = seq, 0, chain
		return nil, t.voidFrame(seq, rf.Bytes)
	}
	if len(rf.Contributions) != len(f.Events) {
		return nil, fmt.Errorf("frame %d: %d contributions for %d events: %w", seq, len(rf.Contributions), len(f.Events), events.ErrMalformed)
	}
	if err := t.b.Set(frameKey(seq), f.AppendHeader([]byte{frameValid}), nil); err != nil {
		return nil, err
	}
	t.cursor.Seq = seq
	t.cursor.begin(&f)
	results := make([]EventResult, len(f.Events))
	for i, raw := range f.Events {
		at := Ref{seq, uint32(i)}
		t.cursor.Index = at.Index
		if err := t.b.Set(envelopeKey(seq, at.Index), raw, nil); err != nil {
			return nil, err
		}
		if results[i], err = t.applyEvent(at, raw, rf.Contributions[i]); err != nil {
			return nil, fmt.Errorf("event %d.%d: %w", seq, i, err)
		}
	}
	t.cursor.Chain = chain
	return results, nil
}

const (
	frameVoid  = 0
	frameValid = 1
)

// voidFrame keeps the message verbatim and notes it; nothing else changes.
func (t *tx) voidFrame(seq uint64, message []byte) error {
	if err := t.b.Set(frameKey(seq), append([]byte{frameVoid}, message...), nil); err != nil {
		return err
	}
	row := AuditRow{At: Ref{seq, 0}, Outcome: OutcomeVoid, SealedAt: t.cursor.SealedAt, Hash: events.HashEnvelope(message)}
	t.out.Voids = append(t.out.Voids, seq)
	return t.b.Set(auditKey(events.ID{}, row.At), row.encode(), nil)
}

func (t *tx) applyEvent(at Ref, raw []byte, c *Contribution) (EventResult, error) {
	t.cursor.Events++
	env, err := events.DecodeEnvelope(raw)
	if events.IsForeign(err) {
		return EventResult{}, err
	}
	ev := &eventContext{Envelope: env, raw: raw, at: at, contribution: c}
	var res EventResult
	fold := folds[env.Type]
	switch {
	case err != nil:
		res, err = t.quarantined(ev, "malformed")
	case fold == nil:
		return EventResult{}, fmt.Errorf("type %d: %w", env.Type, events.ErrNewer)
	case c != nil && c.Code != "" && !t.inDeletedNamespace(&env):
		res, err = t.quarantined(ev, c.Code)
	default:
		t.cursor.SealedAt = max(t.cursor.SealedAt, env.SealedAt)
		res, err = fold(t, ev)
	}
	if err != nil {
		return res, err
	}
	if res.Position.IsZero() {
		res.Position = t.position(at)
	}
	return res, t.audited(ev, res)
}

// position is the position of an event of the present epoch.
func (t *tx) position(at Ref) events.Position {
	return events.Position{Shard: t.cursor.Shard, Epoch: t.cursor.Epoch, Seq: at.Seq, Index: at.Index}
}

// original is the position of an event of any epoch, as it was first given out.
func (t *tx) original(at Ref) (events.Position, error) {
	p := t.position(at)
	var err error
	p.Epoch, err = epochOf(t.get, t.cursor.Epoch, at.Seq)
	return p, err
}

// inDeletedNamespace reports whether a memory event's namespace is not there (any more).
// Its fold rejects it whatever it holds: what derive can say of it depends on
// how long its keys have been gone.
func (t *tx) inDeletedNamespace(e *events.Envelope) bool {
	return e.Type >= events.TypeCaptured && !t.namespace(e.Namespace).living()
}

// quarantined keeps an event that cannot be understood and goes on. The
// verdict is part of derive, which is a function of the event's bytes, so a
// replay reaches it again, until the key is destroyed: then the event folds
// like any other erased one, and partitions must be numbered as before.
func (t *tx) quarantined(ev *eventContext, code string) (EventResult, error) {
	t.out.Quarantined++
	if ev.Type == events.TypeCaptured {
		if _, err := t.partition(ev.Namespace, ev.Scope, ev.Agent); err != nil {
			return EventResult{}, err
		}
	}
	return EventResult{Outcome: OutcomeQuarantined}, t.b.Set(quarantineKey(ev.at), []byte(code), nil)
}

// noted is for events that have no rows beyond their audit row.
func (t *tx) noted(*eventContext) (EventResult, error) {
	return EventResult{Outcome: OutcomeApplied}, nil
}

// epochBegan opens a new epoch after a repair: positions of the old one stay
// valid up to here.
func (t *tx) epochBegan(ev *eventContext) (EventResult, error) {
	return EventResult{Outcome: OutcomeApplied}, t.b.Set(epochKey(t.cursor.Epoch), be64(nil, ev.at.Seq), nil)
}

// audited writes the one audit row of an event and announces it.
func (t *tx) audited(ev *eventContext, res EventResult) error {
	row := AuditRow{At: ev.at, Type: ev.Type, Scope: ev.Scope, Outcome: res.Outcome, SealedAt: ev.SealedAt,
		Event: ev.Event, Record: res.Record, Hash: events.HashEnvelope(ev.raw), Agent: ev.Agent}
	if row.Record == (events.ID{}) {
		row.Record = ev.Target
	}
	t.out.Events = append(t.out.Events, AppliedEvent{Row: row, Namespace: ev.Namespace, Version: res.Version})
	key, value := auditKey(ev.Namespace, ev.at), row.encode()
	if ev.Type.Control() || ev.Namespace == (events.ID{}) {
		return t.b.Set(key, value, nil)
	}
	return t.addFact(ev.Namespace, key, value)
}
