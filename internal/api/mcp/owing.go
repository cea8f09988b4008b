package mcp

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// owing is what each side of a connection owes the other: the server answers to calls, and the
// client answers to what the server asks. It is safe for concurrent use, but for asked, which the
// reader calls, and finish, which follows it.
type owing struct {
	mu        sync.Mutex
	owed      map[any]*debt // by the id of the call
	listening int           // of them, those that stay
	writing   int           // answers that wait to be written
	held      int           // bytes of the calls and of those answers
	questions []jsonrpc.ID  // of the server
	changed   chan struct{} // that there may be one less owed, or a question more
	patience  *time.Timer   // of finish
}

func newOwing() *owing { return &owing{owed: map[any]*debt{}, changed: make(chan struct{}, 1)} }

// debt is a call that has not ended, though it may be cancelled.
type debt struct {
	bytes     int
	stays     bool // it listens for changes, until it is cancelled
	cancelled bool
}

// How much may be owed before nothing more is read, and how many calls may listen. What is read
// no more is also that a call is cancelled: it goes on to its end.
const (
	maxOwed      = 1000
	maxOwedBytes = 64 << 20
	maxListening = 100
)

// asked notes a message of the client: a call, which waits here while too much is owed, that one is
// cancelled, or an answer. It returns with which response a call is refused.
func (o *owing) asked(m jsonrpc.Message, bytes int, closed <-chan struct{}) (refused []byte) {
	req, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
		o.told(m)
	case req.IsCall():
		return o.called(req, bytes, closed)
	case req.Method == "notifications/cancelled":
		o.cancelled(req)
	}
	return nil
}

func (o *owing) called(req *jsonrpc.Request, bytes int, closed <-chan struct{}) (refused []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.owed)-o.listening+o.writing >= maxOwed || o.held >= maxOwedBytes {
		o.mu.Unlock()
		select {
		case <-o.changed:
		case <-closed:
		}
		o.mu.Lock()
		select {
		case <-closed:
			return nil
		default:
		}
	}
	id, stays := req.ID.Raw(), req.Method == "subscriptions/listen"
	if o.owed[id] != nil {
		return refusal(id, jsonrpc.CodeInvalidRequest, "a call with this id is not answered yet: give each call an id of its own")
	}
	if stays {
		if o.listening >= maxListening {
			return refusal(id, jsonrpc.CodeInvalidRequest, "100 calls of this client listen already: cancel one of them")
		}
		o.listening++
	}
	o.owed[id] = &debt{bytes: bytes, stays: stays}
	o.held += bytes
	return nil
}

func (o *owing) cancelled(req *jsonrpc.Request) {
	var of map[string]any // a struct would take names in other cases, too
	_ = json.Unmarshal(req.Params, &of)
	id, err := jsonrpc.MakeID(of["requestId"])
	if err != nil {
		return // what is none cancels nothing
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.owed[id.Raw()]; d != nil {
		d.cancelled = true
	}
}

// answering notes that a call has ended, whose id is free from now on, and that its answer of so many
// bytes waits to be written, until settle is called. It reports whether somebody waits for it: if
// not, nothing is to be written.
func (o *owing) answering(id jsonrpc.ID, bytes int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.owed[id.Raw()]
	if d == nil {
		return false
	}
	delete(o.owed, id.Raw())
	o.held -= d.bytes
	if d.stays {
		o.listening--
	}
	if d.cancelled {
		o.change()
		return false
	}
	o.writing++
	o.held += bytes
	return true
}

// settle notes that an answer is written.
func (o *owing) settle(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing--
	o.held -= bytes
	o.change()
}

func (o *owing) change() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// questioned notes what the server asks, and told that it is answered.
func (o *owing) questioned(m jsonrpc.Message) {
	req, ok := m.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.questions = append(o.questions, req.ID)
	o.change()
}

func (o *owing) told(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.questions = slices.DeleteFunc(o.questions, func(id jsonrpc.ID) bool { return id == r.ID })
}

func (o *owing) owes() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.owed {
		if !d.stays && !d.cancelled {
			return true
		}
	}
	return o.writing > 0
}

// answerPatience is how long calls may go on that wait for an answer when the input ends.
const answerPatience = 10 * time.Second

// finish waits for the answers to what was asked before the input ended. What the server asks has
// no answer any more: it returns one that says so, and is to be called again.
func (o *owing) finish(closed <-chan struct{}) jsonrpc.Message {
	if o.patience == nil {
		o.patience = time.NewTimer(answerPatience)
	}
	for o.owes() {
		if r := o.unanswered(); r != nil {
			return r
		}
		select {
		case <-o.changed:
		case <-closed:
			return nil
		case <-o.patience.C:
			return nil
		}
	}
	o.patience.Stop()
	return nil
}

func (o *owing) unanswered() jsonrpc.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.questions) == 0 {
		return nil
	}
	id := o.questions[0]
	o.questions = o.questions[1:]
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the input has ended"}}
}
