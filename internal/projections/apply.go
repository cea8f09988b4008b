package projections

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/events"
)

// EventResult is what became of one event.
type EventResult struct {
	Outcome  Outcome
	Position events.Position // of the event; for a duplicate, of the original
	Record   events.ID
	Version  uint32
}

// verdicts says who decides what becomes of an event, by its type. Deciding
// reads; the rows are written when all projections fold the event.
var verdicts = map[events.Type]func(*tx, *event) error{
	events.TypeNamespaceCreated: func(t *tx, ev *event) error { return t.directory.created(ev) },
	events.TypeNamespaceChanged: func(t *tx, ev *event) error { return t.home.changed(ev) },
	events.TypeNamespaceDeleted: func(t *tx, ev *event) error { return t.directory.deleted(ev) },
	events.TypeNamespacePlaced:  func(t *tx, ev *event) error { return t.directory.placed(ev) },
	events.TypeKeyCreated:       noted,
	events.TypeKeyDestroyed:     func(t *tx, ev *event) error { return t.dataKeys.destroyed(ev) },
	events.TypeSpaceBuilding:    func(t *tx, ev *event) error { return t.home.spaceBuilding(ev) },
	events.TypeSpaceSwitched:    func(t *tx, ev *event) error { return t.home.spaceSwitched(ev) },
	events.TypeSpaceDropped:     func(t *tx, ev *event) error { return t.home.spaceDropped(ev) },
	events.TypeCaptured:         func(t *tx, ev *event) error { return t.records.captured(ev) },
	events.TypeRevised:          func(t *tx, ev *event) error { return t.records.revised(ev) },
	events.TypeForgotten:        func(t *tx, ev *event) error { return t.records.forgotten(ev) },
	events.TypeVectorsAttached:  func(t *tx, ev *event) error { return t.vectors.attached(ev) },
	events.TypeGraphChanged:     func(t *tx, ev *event) error { return t.graph.changed(ev) },
	events.TypeRead:             (*tx).read,
	events.TypeLeaderBegan:      noted,
	events.TypeEpochBegan:       noted,
	events.TypeQuarantined:      noted,
	events.TypeLevelRaised:      (*tx).raised,
}

// noted is for events that are only kept and audited.
func noted(_ *tx, ev *event) error { return ev.is(OutcomeApplied) }

// raised lets writers use a feature level. Frames are never of a lower one than what they
// raise, so a program that does not know it has stopped before.
func (t *tx) raised(ev *event) error {
	level, err := events.DecodeLevel(ev.Payload)
	if err != nil || level <= t.cursor.FeatureLevel() {
		return ev.is(OutcomeRejected)
	}
	t.cursor.Level = level
	return ev.is(OutcomeApplied)
}

// event is one event on its way through the projections.
type event struct {
	events.Envelope
	raw          []byte // the envelope's bytes
	at           Ref
	contribution *Contribution // may be nil

	result EventResult // what became of it, once it is decided
	code   string      // of a quarantined event
	note   *Quarantine // … that an operator put there
	// What it does, if it takes effect:
	home  *Home      // its namespace's row becomes this
	space SpaceKey   // the space that is left or dropped
	keys  [][16]byte // the data keys that end
	head  Head       // of the target, before the event
	part  *Partition
	ended *version // the version whose life ends
	began *version // the version that it makes
}

// version is one version of a record.
type version struct {
	part   *Partition
	doc    uint32
	record events.ID
	number uint32
	row    Doc
}

// is decides an event.
func (ev *event) is(o Outcome) error {
	ev.result.Outcome = o
	return nil
}

// took reports whether the event is of the type and took effect.
func (ev *event) took(types ...events.Type) bool {
	return ev.result.Outcome == OutcomeApplied && slices.Contains(types, ev.Type)
}

// command carries out a Raft entry and returns its result.
func (t *tx) command(data []byte) (any, error) {
	if IsQuarantine(data) {
		q, err := DecodeQuarantine(data)
		if err != nil {
			return nil, err
		}
		return t.quarantine(q)
	}
	if len(data) > 0 && data[0] == commandReserve {
		r, err := DecodeReserve(data)
		if err != nil {
			return nil, err
		}
		if err := t.agrees(r.Applied); err != nil {
			return nil, err
		}
		return t.reserve(r), nil
	}
	r, err := DecodeRange(data)
	if err != nil {
		return nil, err
	}
	if err := t.agrees(r.Applied); err != nil {
		return nil, err
	}
	return t.applyRange(r)
}

// applyRange compares and advances: it folds the frames of a range that the
// state does not hold yet.
func (t *tx) applyRange(r *Range) (RangeResult, error) {
	known, answer, err := t.compare(r)
	if err != nil || answer != AnswerApplied {
		assert.Sometimes(answer == AnswerBehind, "a range is proposed that the state holds", nil)
		assert.Sometimes(answer == AnswerAhead, "a range is proposed that the state has not come to", nil)
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
	_, opens := events.EpochOf(&f, c.Epoch)
	return f, f.Epoch == c.Epoch || opens, nil
}

func (t *tx) applyFrame(rf *RangeFrame) ([]EventResult, error) {
	seq := t.cursor.Seq + 1
	f, valid, err := t.cursor.Valid(rf.Bytes)
	if err != nil {
		return nil, fmt.Errorf("frame %d: %w", seq, err)
	}
	chain := events.NextChain(t.cursor.Chain, seq, rf.Bytes)
	if !valid {
		assert.Reachable("a message that does not continue the log is void", nil)
		t.cursor.Seq, t.cursor.Index, t.cursor.Chain = seq, 0, chain
		return nil, errors.Join(t.log.void(seq, rf.Bytes), t.audit.void(seq, rf.Bytes))
	}
	if len(rf.Contributions) != len(f.Events) {
		return nil, fmt.Errorf("frame %d: %d contributions for %d events: %w", seq, len(rf.Contributions), len(f.Events), events.ErrMalformed)
	}
	if err := t.log.frame(seq, &f); err != nil {
		return nil, err
	}
	t.cursor.Seq = seq
	t.cursor.begin(&f)
	results := make([]EventResult, len(f.Events))
	for i, raw := range f.Events {
		at := Ref{seq, uint32(i)}
		if t.stopAt != 0 && t.cursor.Events == t.stopAt {
			return nil, errStop
		}
		t.cursor.Index, t.last, t.lastRaw = at.Index, at, raw
		if results[i], err = t.guarded(at, raw, rf.Contributions[i]); err != nil {
			return nil, fmt.Errorf("event %d.%d: %w", seq, i, err)
		}
	}
	t.cursor.Chain = chain
	return results, nil
}

func (t *tx) applyEvent(at Ref, raw []byte, c *Contribution) (EventResult, error) {
	t.cursor.Events++
	env, err := events.DecodeEnvelope(raw)
	if events.IsForeign(err) {
		return EventResult{}, err
	}
	ev := &event{Envelope: env, raw: raw, at: at, contribution: c}
	if err := t.decide(ev, err != nil); err != nil {
		return ev.result, err
	}
	if ev.result.Position.IsZero() {
		ev.result.Position = t.position(at)
	}
	if ev.took(events.TypeNamespaceDeleted) {
		if err := t.dropNamespace(ev.Namespace); err != nil {
			return ev.result, err
		}
	}
	for _, p := range t.all {
		if err := p.fold(ev); err != nil {
			return ev.result, fmt.Errorf("%s: %w", p.declared().name, err)
		}
	}
	return ev.result, nil
}

// decide says what becomes of an event. One that cannot be understood is kept and
// quarantined. That verdict is part of derive, which is a function of the event's
// bytes, so a replay reaches it again, until the key is destroyed: then the event
// folds like any other erased one. The events of a namespace that is not there
// (any more) are rejected whatever they hold: what derive can say of them depends
// on how long its keys have been gone. What an operator put in quarantine stays there,
// whatever it holds.
func (t *tx) decide(ev *event, malformed bool) error {
	if note, ok := t.marked[ev.at]; ok {
		ev.code, ev.note = CodeOperator, &note
		return ev.is(OutcomeQuarantined)
	}
	if malformed {
		ev.code = "malformed"
		return ev.is(OutcomeQuarantined)
	}
	verdict := verdicts[ev.Type]
	if verdict == nil {
		return fmt.Errorf("type %d: %w", ev.Type, events.ErrNewer)
	}
	lives := t.home.of(ev.Namespace) != nil
	if (ev.Type == events.TypeCaptured || ev.Type == events.TypeGraphChanged) && lives {
		// Whatever becomes of it, so that partitions are numbered alike
		// whether or not it can still be opened.
		var err error
		if ev.part, err = t.partitions.make(ev.Namespace, ev.Scope, ev.Agent); err != nil {
			return err
		}
	}
	if late, err := t.dataKeys.late(ev); err != nil || late && lives {
		return errors.Join(err, ev.is(OutcomeErased))
	}
	if c := ev.contribution; c != nil && c.Code != "" && (lives || ev.Type < events.TypeCaptured) {
		ev.code = c.Code
		return ev.is(OutcomeQuarantined)
	}
	t.cursor.SealedAt = max(t.cursor.SealedAt, ev.SealedAt)
	return verdict(t, ev)
}

// position is the position of an event of the present epoch.
func (t *tx) position(at Ref) events.Position {
	return events.Position{Shard: t.cursor.Shard, Epoch: t.cursor.Epoch, Seq: at.Seq, Index: at.Index}
}

// original is the position of an event of any epoch, as it was first given out.
func (t *tx) original(at Ref) events.Position {
	p := t.position(at)
	p.Epoch = t.log.epochs.Of(at.Seq)
	return p
}
