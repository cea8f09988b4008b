package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

const (
	namespace = "team"
	agent     = "agent"
)

// fate is what a client knows about one of its requests.
type fate int

const (
	refused fate = iota // not stored, whatever happens
	unknown
	acked
)

func (f fate) String() string { return [...]string{"refused", "unknown", "acked"}[f] }

// note is one record as the client that captured it knows it.
type note struct {
	text, client string // client id; may be empty
	fate         fate
	record       events.ID
	at           events.Position
	versions     map[int]string // told of
	changes      []*change
	busy         bool // a request about it is under way
	applied      bool // the client was told that it is in the state
	subject      string
	private      bool // is captured once, and may be erased
	erasing      bool // it was tried
	erased       bool // and acknowledged
	erasedAt     uint64
	lost         int // times that the log lost it before it was applied
}

// change is a revision, or a forget where text is empty.
type change struct {
	text, client string
	base         int
	fate         fate
	version      int
	at           events.Position
	tries        int
}

// request is one attempt that waits for its answer.
type request struct {
	host    *host
	pending *ingest.Pending
	note    *note
	change  *change // nil: the capture itself
	erase   bool    // of the note's subject
	wait    memory.Wait
}

// read is a linearizable read under way.
type read struct {
	r     *replica
	index uint64
	want  []expectation
	to    *replica // where it was asked for, if not at the leader
	seq   uint64   // that the state has to reach there
}

// expectation is what a read has to show: a version at least, or that a note was
// forgotten.
type expectation struct {
	note    *note
	version int
	gone    bool // a forget was acknowledged
	lost    int  // of the note, when the read began
}

// act lets a client do something.
func (w *world) act() {
	if w.site != nil && w.site.act() {
		return
	}
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		w.capture(w.newNote())
	case 3, 4:
		if n := w.some(func(n *note) bool { return n.client != "" }); n != nil {
			w.capture(n)
		}
	case 5, 6:
		if n := w.some(func(n *note) bool { return n.fate == acked }); n != nil {
			w.revise(n)
		}
	case 7:
		if n := w.some(func(n *note) bool { return n.fate == acked }); n != nil && w.rng.IntN(3) == 0 {
			w.try(n, &change{base: w.latest(n)})
		}
	case 8:
		if n := w.some(func(n *note) bool { return len(n.changes) > 0 }); n != nil {
			if c := n.changes[w.rng.IntN(len(n.changes))]; c.client != "" {
				w.try(n, c)
			}
		}
	case 9:
		w.readAtLeast()
	default:
		w.readLinear()
	}
}

func (w *world) newNote() *note {
	n := &note{text: fmt.Sprintf("note %d of the deployment", len(w.notes)), versions: map[int]string{}}
	if w.rng.IntN(4) > 0 {
		n.client = fmt.Sprint("id-", len(w.notes))
	}
	if w.site != nil {
		w.site.about(n)
	}
	w.notes = append(w.notes, n)
	return n
}

// some picks a note that nobody is busy with.
func (w *world) some(ok func(*note) bool) *note {
	var list []*note
	for _, n := range w.notes {
		if !n.busy && !n.private && ok(n) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// writer picks a replica that believes it can write.
func (w *world) writer() *host {
	var list []*host
	for _, r := range w.replicas {
		if r.host != nil && r.host.phase == "open" && r != w.alone {
			list = append(list, r.host)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 {
		w.reach("two writers believe that they are open")
		if w.rng.IntN(4) > 0 { // most clients have found the newer one
			return slices.MaxFunc(list, func(a, b *host) int { return cmp.Compare(a.w.Term(), b.w.Term()) })
		}
	}
	return list[w.rng.IntN(len(list))]
}

func (w *world) capture(n *note) {
	h := w.writer()
	if h == nil {
		return
	}
	p, err := h.w.Queue(namespace, ingest.Item{Capture: memory.Capture{Agent: agent, Text: n.text, ID: n.client, Subject: n.subject}})
	if err != nil {
		w.refuses(h, &n.fate, err)
		return
	}
	if h.w.InFlight() && n.fate == unknown {
		w.reach("sent again while a frame is in flight")
	}
	n.busy = true
	wait := []memory.Wait{memory.WaitAccepted, memory.WaitApplied}[w.rng.IntN(2)]
	w.requests = append(w.requests, &request{host: h, pending: p, note: n, wait: wait})
}

// latest is the version that a client takes for the present one.
func (w *world) latest(n *note) int {
	v := 1
	for have := range n.versions {
		v = max(v, have)
	}
	return v
}

func (w *world) revise(n *note) {
	c := &change{text: fmt.Sprintf("%s, revised %d", n.text, len(n.changes)), base: w.latest(n)}
	if w.rng.IntN(3) > 0 {
		c.client = fmt.Sprint("rev-", w.changes)
	}
	w.changes++
	w.try(n, c)
}

// try sends a revision or forget.
func (w *world) try(n *note, c *change) {
	h := w.writer()
	if h == nil {
		return
	}
	var p *ingest.Pending
	var err error
	if c.text == "" {
		p, err = h.w.QueueForget(namespace, agent, n.record.String(), c.base)
	} else {
		p, err = h.w.QueueRevision(namespace, agent, n.record.String(), memory.Revision{Text: &c.text}, c.base, c.client)
	}
	if c.tries == 0 {
		n.changes = append(n.changes, c)
	}
	c.tries++
	if err != nil {
		w.refuses(h, &c.fate, err)
		return
	}
	n.busy = true
	w.requests = append(w.requests, &request{host: h, pending: p, note: n, change: c, wait: memory.WaitApplied})
}

// know takes note of an error. That an attempt was refused says nothing about
// the attempts before it.
func (w *world) know(f *fate, err error) {
	if strings.Contains(err.Error(), "the clock stands") {
		w.reach("clock is behind")
	}
	switch code := memory.CodeOf(err); code {
	case memory.CodeUnavailable, memory.CodeNoSpace, memory.CodeOverloaded, memory.CodeConflict, memory.CodeNotFound:
	case memory.CodeOutcomeUnknown:
		*f = max(*f, unknown)
		w.reach("outcome unknown")
	case memory.CodeLogDiverged:
		if w.log.losses == 0 {
			w.fail("a client gets %s: %v", code, err)
		}
		w.reach("refused while writes are stopped")
	default:
		w.fail("a client gets %s: %v", code, err)
	}
}

// refuses takes note of a refusal. What it says of the state is so now.
func (w *world) refuses(h *host, f *fate, err error) {
	switch {
	case errors.Is(err, ingest.ErrUnconfirmed):
		w.reach("answer that could not be confirmed")
	case memory.CodeOf(err) == memory.CodeConflict, memory.CodeOf(err) == memory.CodeNotFound:
		h.tells("a refusal")
	}
	w.know(f, err)
}

// answers takes what has become of the requests.
func (w *world) answers() {
	var rest []*request
	for _, q := range w.requests {
		if !w.answer(q) {
			rest = append(rest, q)
			continue
		}
		q.note.busy = false
	}
	w.requests = rest
}

func (w *world) answer(q *request) bool {
	if q.erase {
		return w.site.erased(q)
	}
	if at, ok := q.pending.Accepted(); ok && q.wait == memory.WaitAccepted && q.change == nil {
		w.captured(q.note, q.pending.Record(), at, true)
		w.checkKept(q.note) // the acknowledgement may have been under way when the log lost it
		return true
	}
	res, err, done := q.pending.Result()
	if done && err == nil && q.pending.ByState() {
		q.host.tells("an answer of " + res.Outcome.String())
	}
	switch {
	case !done:
		return false
	case err != nil && q.change == nil:
		w.refuses(q.host, &q.note.fate, err)
	case err != nil:
		w.refuses(q.host, &q.change.fate, err)
	case q.change != nil:
		w.changed(q.note, q.change, res)
		w.ownWrite(q)
	case res.Outcome == projections.OutcomeCreated || res.Outcome == projections.OutcomeDuplicate:
		w.captured(q.note, res.Record, res.Position, res.Outcome == projections.OutcomeCreated)
		q.note.applied = true
		w.ownWrite(q)
	default:
		w.fail("%s is answered with %v", q.note.text, res.Outcome)
	}
	return true
}

// ownWrite checks that a write which was acknowledged as applied is found by the
// next read of the same replica.
func (w *world) ownWrite(q *request) {
	if q.host.r.down {
		return
	}
	want := expectation{note: q.note, version: 1, lost: q.note.lost}
	if c := q.change; c != nil {
		if c.fate != acked {
			return
		}
		want.version, want.gone = c.version, c.text == ""
	}
	v := q.host.r.state.View()
	defer v.Close()
	w.shows(v, []expectation{want}, "the read after a write")
}

// captured: a client was told that its note is stored.
func (w *world) captured(n *note, record events.ID, at events.Position, created bool) {
	w.event("%s is %s at %s, created %t", n.text, record, at, created)
	if n.record != record {
		w.checkKept(n)
	}
	switch {
	case n.fate == acked && (n.record != record || n.at != at):
		w.fail("%s is %s at %s; its client was told %s at %s before", n.text, record, at, n.record, n.at)
	case n.fate == acked && created:
		w.reach("a late duplicate is accepted") // the fold decides, and tells the original
	case n.fate == unknown && !created:
		w.reach("duplicate of a frame of unknown outcome")
	case n.fate == refused && !created:
		w.fail("%s is a duplicate of what was never stored", n.text)
	}
	if n.fate == acked && at.Epoch < w.maxEpoch {
		w.reach("duplicate over an epoch")
	}
	n.fate, n.record, n.at, n.versions[1] = acked, record, at, n.text
}

func (w *world) changed(n *note, c *change, res projections.EventResult) {
	w.event("%s: change %q ends as %v %d", n.text, c.text, res.Outcome, res.Version)
	switch res.Outcome {
	case projections.OutcomeRevised, projections.OutcomeDuplicate:
		v := int(res.Version)
		if c.fate == acked && (c.version != v || c.at != res.Position) {
			w.fail("%s: %q is version %d at %s, was %d at %s", n.text, c.text, v, res.Position, c.version, c.at)
		}
		if old, ok := n.versions[v]; ok && old != c.text {
			w.fail("%s: version %d is %q and %q", n.text, v, old, c.text)
		}
		c.fate, c.version, c.at, n.versions[v] = acked, v, res.Position, c.text
	case projections.OutcomeForgotten:
		c.fate, c.at = acked, res.Position
	case projections.OutcomeConflict, projections.OutcomeRejected:
	default:
		w.fail("%s: change %q ends as %v", n.text, c.text, res.Outcome)
	}
}

// orphan ends the requests whose writer is gone: nobody answers them.
func (w *world) orphan(h *host) {
	w.answers()
	var rest []*request
	for _, q := range w.requests {
		if q.host != h {
			rest = append(rest, q)
			continue
		}
		q.note.busy = false
		if q.erase {
			continue
		}
		if q.change != nil {
			q.change.fate = max(q.change.fate, unknown)
		} else {
			q.note.fate = max(q.note.fate, unknown)
		}
	}
	w.requests = rest
}

// expected is what a read that begins now has to show.
func (w *world) expected() []expectation {
	var out []expectation
	for _, n := range w.notes {
		if n.fate != acked {
			continue
		}
		e := expectation{note: n, version: w.latest(n), lost: n.lost}
		for _, c := range n.changes {
			if c.text == "" && c.fate == acked {
				e.gone = true
			}
		}
		out = append(out, e)
	}
	return out
}

// shows compares a view with what a read has to show.
func (w *world) shows(v *projections.View, want []expectation, what string) {
	for _, e := range want {
		if e.lost != e.note.lost {
			continue
		}
		head, ok, err := v.Head(w.home(v), e.note.record)
		w.must(err)
		if e.note.erasing {
			if e.note.erased && v.Cursor().Seq >= e.note.erasedAt && ok && head.Living {
				w.fail("%s shows %s, which was erased", what, e.note.text)
			}
			continue
		}
		forgetting := false
		for _, c := range e.note.changes {
			forgetting = forgetting || c.text == ""
		}
		switch {
		case !ok && !w.checkKept(e.note):
		case !ok:
			w.fail("%s at %d does not show %s, which was acknowledged at %s", what, v.Cursor().Seq, e.note.text, e.note.at)
		case e.gone && head.Living:
			w.fail("%s shows %s, which was forgotten", what, e.note.text)
		case !head.Living && !forgetting:
			w.fail("%s does not show %s as living", what, e.note.text)
		case head.Living && int(head.Versions) < e.version:
			w.fail("%s shows version %d of %s, %d was acknowledged", what, head.Versions, e.note.text, e.version)
		}
	}
}

// readAtLeast reads from any replica that has reached a position.
func (w *world) readAtLeast() {
	n := w.some(func(n *note) bool { return n.fate == acked })
	r := w.replicas[w.rng.IntN(len(w.replicas))]
	if n == nil || !r.serves() {
		return
	}
	v := r.state.View()
	defer v.Close()
	if v.Position().Before(n.at) {
		return
	}
	w.reach("read at least")
	w.shows(v, []expectation{{note: n, version: 1, lost: n.lost}}, "a read at its position")
}

// readLinear begins a linearizable read as the node does.
func (w *world) readLinear() {
	r := w.replicas[w.rng.IntN(len(w.replicas))]
	if w.alone != nil && w.rng.IntN(2) == 0 {
		r = w.alone
	}
	asked := r
	if w.site != nil && r.host == nil {
		r = w.site.asksLeader(r)
	}
	if r == nil || r.down || r.host == nil {
		return
	}
	gone := ended()
	if r.host.w.Settled(gone) != nil {
		return
	}
	want := w.expected()
	if r.host.phase == "open" && r == w.alone {
		w.reach("linearizable read from a leader that is cut off")
	}
	index, err := r.raft.LinearizableIndex(gone)
	if err != nil {
		w.reach("linearizable read refused")
		return
	}
	if r.raft.Term() != r.host.w.Term() {
		return
	}
	q := &read{r: r, index: index, want: want}
	if asked != r {
		q.to = asked
	}
	w.reads = append(w.reads, q)
}

// serve answers the linearizable reads whose replica has come far enough.
func (w *world) serve() {
	var rest []*read
	for _, q := range w.reads {
		switch {
		case q.r.down:
		case q.r.raft.Applied() < q.index:
			rest = append(rest, q)
		case q.to != nil:
			q.r, q.index, q.seq, q.to = q.to, 0, q.r.state.Cursor().Seq, nil
			rest = append(rest, q)
		case q.r.state.Cursor().Seq < q.seq:
			rest = append(rest, q)
		default:
			v := q.r.state.View()
			w.shows(v, q.want, "a linearizable read")
			w.must(v.Close())
			if q.seq > 0 {
				w.reach("linearizable read of a node that does not lead")
			}
			w.reach("linearizable read")
		}
	}
	w.reads = rest
}
