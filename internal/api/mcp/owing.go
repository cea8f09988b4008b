package mcp

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// owing is what each side of a connection owes the other: the server answers to calls, and the
// client answers to what the server asks. All that is kept for a client that does not read is
// bounded here: calls wait in line, and one is taken up when there is room for its answer. The
// reader calls asked and refuse, which wait while too much waits, Read calls next and end, and all others
// may be called concurrently.
type owing struct {
	mu        sync.Mutex
	owed      map[any]*debt     // calls that have not ended, by their ids
	listening int               // of them, those that stay
	passing   []jsonrpc.Message // goes by those that wait: answers and cancellations
	line      []waiting         // in the order in which they came
	quick     int               // of them, those that ask no node
	lineBytes int
	refusals  [][]byte      // to what was not taken, that wait to be written
	refusing  bool          // somebody writes them
	taken     int           // calls taken up, and refusals, whose answer is not written yet, but for those that stay
	working   int           // of them, those that have not ended, but for quick ones
	held      int           // bytes of the calls that were taken up, of the answers to them, and of refusals
	largest   int           // bytes that a call at work counts as: those of the greatest answer so far
	questions []jsonrpc.ID  // of the server
	ending    bool          // nothing more comes
	patience  *time.Timer   // runs from then on
	changed   chan struct{} // that next may have something, or be over
	room      chan struct{} // that there may be room in the line, or for a refusal
}

func newOwing() *owing {
	o := &owing{owed: map[any]*debt{}, largest: leastAnswer, changed: make(chan struct{}, 1), room: make(chan struct{}, 1), patience: time.NewTimer(answerPatience)}
	o.patience.Stop()
	return o
}

// debt is a call that has not ended, though it may be cancelled.
type debt struct {
	bytes     int
	stays     bool // it listens for changes, until it is cancelled
	quick     bool // it asks no node, and may go by those that do
	taken     bool
	cancelled bool
}

// waiting is a call in the line, or a notification, which owes nothing.
type waiting struct {
	m     jsonrpc.Message
	bytes int
	*debt
}

// How much may be taken up, wait in line, and listen. A call at work counts as an answer of
// leastAnswer bytes at least, so that no more than eight work at once.
const (
	maxTaken     = 1000
	maxHeld      = 64 << 20
	leastAnswer  = 8 << 20
	maxLine      = 10_000
	maxLineBytes = 64 << 20
	maxListening = 100
)

// asked takes a message of the client, or says with which response it is refused.
func (o *owing) asked(m jsonrpc.Message, bytes int, closed <-chan struct{}) (refused []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	req, _ := m.(*jsonrpc.Request)
	switch {
	case req == nil:
		o.told(m)
		return nil
	case req.Method == cancelling && !req.IsCall():
		o.cancelled(req)
		return nil
	}
	for len(o.line) >= maxLine || o.lineBytes >= maxLineBytes {
		if !o.awaitRoom(closed) {
			return nil
		}
	}
	w := waiting{m: m, bytes: bytes}
	if req.IsCall() {
		if w.debt, refused = o.called(req, bytes); refused != nil {
			return refused
		}
	}
	o.line = append(o.line, w)
	o.lineBytes += bytes
	signal(o.changed)
	return nil
}

// refuse takes a response to what is refused, once there is room for it, and reports whether somebody is to write
// those that wait.
func (o *owing) refuse(refused []byte, closed <-chan struct{}) (begin bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.taken > 0 && (o.taken >= maxTaken || o.held >= maxHeld) {
		if !o.awaitRoom(closed) {
			return false
		}
	}
	o.taken++
	o.held += len(refused)
	o.refusals = append(o.refusals, refused)
	begin, o.refusing = !o.refusing, true
	return begin
}

// refusal is the next that is to be written, and then settled; nil where none waits.
func (o *owing) refusal() (refused []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refusing = len(o.refusals) > 0; o.refusing {
		refused, o.refusals = o.refusals[0], o.refusals[1:]
	}
	return refused
}

// awaitRoom waits without the lock, and reports whether there may be room; if not, the connection is closed.
func (o *owing) awaitRoom(closed <-chan struct{}) bool {
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-o.room:
		return true
	case <-closed:
		return false
	}
}

func (o *owing) called(req *jsonrpc.Request, bytes int) (*debt, []byte) {
	id := req.ID.Raw()
	d := &debt{bytes: bytes, stays: req.Method == "subscriptions/listen", quick: quick[req.Method]}
	switch {
	case o.owed[id] != nil:
		return nil, refusal(id, jsonrpc.CodeInvalidRequest, "a call with this id is not answered yet: give each call an id of its own")
	case d.stays && o.listening >= maxListening:
		return nil, refusal(id, jsonrpc.CodeInvalidRequest, "100 calls of this client listen already: cancel one of them")
	case d.stays:
		o.listening++
	case d.quick:
		o.quick++
	}
	o.owed[id] = d
	return d, nil
}

// quick are the methods that ask no node, and are answered also while calls wait for one that is silent.
var quick = map[string]bool{"ping": true, "server/discover": true, "logging/setLevel": true, "tools/list": true, "prompts/list": true, "resources/templates/list": true}

// next is the message that is served next: nil where none is, for now or, if it is over, for good.
func (o *owing) next() (m jsonrpc.Message, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.passing) > 0:
		m, o.passing = o.passing[0], o.passing[1:]
	case len(o.line) > 0 && o.takes(o.line[0].debt):
		m = o.take(0)
	case o.quick > 0:
		i := slices.IndexFunc(o.line, func(w waiting) bool { return w.debt != nil && w.quick })
		if o.takes(o.line[i].debt) {
			m = o.take(i)
		}
	}
	switch {
	case m != nil || !o.ending:
	case !o.owes():
		return nil, true
	case len(o.questions) > 0: // no answer will come
		m = &jsonrpc.Response{ID: o.questions[0], Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the input has ended"}}
		o.questions = o.questions[1:]
	}
	return m, false
}

// takes reports whether there is room for the answer to a call. One is always at work, however
// large the answers are.
func (o *owing) takes(d *debt) bool {
	switch {
	case d == nil || d.stays || o.taken == 0:
		return true
	case o.taken >= maxTaken || o.held >= maxHeld:
		return false
	}
	return d.quick || o.held+o.working*o.largest < maxHeld
}

// take has the message at i leave the line.
func (o *owing) take(i int) jsonrpc.Message {
	w := o.leave(i)
	if d := w.debt; d != nil {
		d.taken = true
		o.held += d.bytes
		if !d.stays {
			o.taken++
		}
		if !d.stays && !d.quick {
			o.working++
		}
	}
	return w.m
}

func (o *owing) leave(i int) waiting {
	w := o.line[i]
	o.line = slices.Delete(o.line, i, i+1)
	o.lineBytes -= w.bytes
	if w.debt != nil && w.quick {
		o.quick--
	}
	signal(o.room)
	return w
}

// cancelling is the notification that a call is cancelled, of both sides.
const cancelling = "notifications/cancelled"

// cancelledBy is the id of the call that a notification cancels; what is none cancels nothing.
func cancelledBy(req *jsonrpc.Request) jsonrpc.ID {
	var of map[string]any // a struct would take names in other cases, too
	_ = json.Unmarshal(req.Params, &of)
	id, _ := jsonrpc.MakeID(of["requestId"])
	return id
}

// cancelled has a call leave the line, or passes on that it is to end. Its client waits for it no
// more: one that was taken up counts until it has ended.
func (o *owing) cancelled(req *jsonrpc.Request) {
	id := cancelledBy(req).Raw()
	d := o.owed[id]
	switch {
	case d == nil || d.cancelled:
	case d.taken:
		d.cancelled = true
		o.passing = append(o.passing, req)
		signal(o.changed)
	default:
		o.leave(slices.IndexFunc(o.line, func(w waiting) bool { return w.debt == d }))
		o.ended(id, d)
		signal(o.changed) // what stood behind it may need no room
	}
}

func (o *owing) ended(id any, d *debt) {
	delete(o.owed, id)
	if d.stays {
		o.listening--
	}
}

// answering notes that a call has ended, whose id is free from now on, and that its answer of so many
// bytes waits to be written. It returns what to call settle with then, call and answer together, since
// the SDK keeps both; and whether somebody waits for it: if not, nothing is to be written.
func (o *owing) answering(id jsonrpc.ID, bytes int) (held int, waited bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.owed[id.Raw()]
	if d == nil {
		return 0, false
	}
	o.ended(id.Raw(), d)
	o.held += bytes
	o.largest = max(o.largest, bytes)
	if d.stays {
		o.taken++ // as any other, from now on
	} else if !d.quick {
		o.working--
	}
	held = d.bytes + bytes
	if d.cancelled {
		o.settled(held)
	} else {
		o.freed()
	}
	return held, !d.cancelled
}

// settle notes that an answer is written.
func (o *owing) settle(held int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled(held)
}

func (o *owing) settled(held int) {
	o.taken--
	o.held -= held
	o.freed()
	signal(o.room)
}

// freed wakes Read where it may wait for room, or for the last answer.
func (o *owing) freed() {
	if len(o.line) > 0 || o.ending {
		signal(o.changed)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// questioned notes what the server asks, or asks no more, and told that it is answered.
func (o *owing) questioned(m jsonrpc.Message) {
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case req.IsCall():
		o.questions = append(o.questions, req.ID)
		signal(o.changed)
	case req.Method == cancelling:
		o.answered(cancelledBy(req))
	}
}

func (o *owing) told(m jsonrpc.Message) {
	if r, ok := m.(*jsonrpc.Response); ok && o.answered(r.ID) {
		o.passing = append(o.passing, m)
		signal(o.changed)
	}
}

func (o *owing) answered(id jsonrpc.ID) bool {
	i := slices.Index(o.questions, id)
	if i >= 0 {
		o.questions = slices.Delete(o.questions, i, i+1)
	}
	return i >= 0
}

// answerPatience is how long calls may go on, after the last that was taken up, once the input has ended.
const answerPatience = 10 * time.Second

// end notes that the input has ended; it may be called again. What the server asks has no answer any more: next says so to it.
func (o *owing) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
	o.patience.Reset(answerPatience)
}

// owes reports whether somebody waits for an answer.
func (o *owing) owes() bool {
	n := len(o.line) + o.taken
	for _, d := range o.owed {
		if d.taken && d.cancelled && !d.stays {
			n--
		}
	}
	return n > 0
}

// unanswered are the calls that have not ended, and whose client waits for them.
func (o *owing) unanswered() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.owed {
		if !d.stays && !d.cancelled {
			n++
		}
	}
	return n
}
