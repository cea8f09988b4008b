package mcp

import (
	"fmt"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// say has a message come from the client.
func (o *owing) say(t *testing.T, line string) {
	t.Helper()
	m, refused := parse([]byte(line))
	if refused == nil {
		refused = o.asked(m, len(line), nil)
	}
	if refused != nil {
		t.Fatalf("%s", refused)
	}
}

const (
	callOne   = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	cancelOne = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
)

// TestACallThatNobodyWaitsForHeldUpTheEnd: one that was cancelled, but goes on, or that listens.
func TestACallThatNobodyWaitsForHeldUpTheEnd(t *testing.T) {
	for _, c := range []struct {
		lines []string
		over  bool
	}{
		{[]string{callOne}, false},
		{[]string{callOne, cancelOne}, true},
		{[]string{callOne, cancelOne, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`}, false},
		{[]string{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`}, true},
		{[]string{`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`, cancelOne, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`}, false},
	} {
		o := newOwing()
		for _, line := range c.lines {
			o.say(t, line)
			if m, _ := o.next(); m == nil {
				t.Fatalf("%s was not passed on", line)
			}
		}
		o.end()
		if m, over := o.next(); m != nil || over != c.over {
			t.Errorf("after %v: %v, over: %v", c.lines, m, over)
		}
	}
}

// TestAnAnswerThatIsWrittenIsOwed until it is, and then nothing is left of it.
func TestAnAnswerThatIsWrittenIsOwed(t *testing.T) {
	for _, method := range []string{"tools/call", "tools/list", "subscriptions/listen", "ping"} {
		o := newOwing()
		o.say(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		m, _ := o.next()
		o.end()
		held, waited := o.answering(m.(*jsonrpc.Request).ID, 10)
		if !waited {
			t.Fatalf("nobody waits for the answer to %s", method)
		}
		if _, over := o.next(); over {
			t.Errorf("it is over before the answer to %s is written", method)
		}
		o.settle(held)
		if _, over := o.next(); !over {
			t.Errorf("it is not over after %s", method)
		}
		if o.held+o.taken+o.working+o.lineBytes+o.quick+o.listening+len(o.owed) != 0 {
			t.Errorf("%s left %+v", method, o)
		}
	}
}

// TestTheEndTookWhatWaited behind calls that were cancelled and go on. A second time nobody is told so.
func TestTheEndTookWhatWaited(t *testing.T) {
	o := newOwing()
	for id := range 9 {
		o.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id))
	}
	for range 8 {
		o.next()
	}
	for id := range 8 {
		cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
		o.say(t, cancel)
		if m, _ := o.next(); m == nil {
			t.Errorf("%s was not passed on", cancel)
		}
		o.say(t, cancel)
		if m, _ := o.next(); m != nil {
			t.Errorf("%s was passed on twice", cancel)
		}
	}
	o.end()
	if _, over := o.next(); over {
		t.Error("it is over, and one waits in the line")
	}
	for id := range 8 {
		jid, _ := jsonrpc.MakeID(float64(id))
		if _, waited := o.answering(jid, 0); waited {
			t.Errorf("somebody waits for %d", id)
		}
	}
	if m, _ := o.next(); m == nil {
		t.Error("the last was not taken up")
	}
}

// TestAQuestionThatWasTakenBackWaitedForItsAnswer: it was remembered for good.
func TestAQuestionThatWasTakenBackWaitedForItsAnswer(t *testing.T) {
	o := newOwing()
	id, err := jsonrpc.MakeID(float64(1))
	if err != nil {
		t.Fatal(err)
	}
	asked := &jsonrpc.Request{ID: id, Method: "roots/list"}
	back := &jsonrpc.Request{Method: "notifications/cancelled", Params: []byte(`{"requestId":1}`)}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for n, c := range []struct {
		asked []*jsonrpc.Request
		taken bool
	}{
		{nil, false}, {[]*jsonrpc.Request{asked}, true}, {nil, false}, {[]*jsonrpc.Request{asked, back}, false},
	} {
		for _, m := range c.asked {
			o.questioned(m)
		}
		o.say(t, answer)
		if m, _ := o.next(); (m != nil) != c.taken {
			t.Errorf("%d: %v", n, m)
		}
	}
	if len(o.questions)+len(o.passing) > 0 {
		t.Errorf("left: %v %v", o.questions, o.passing)
	}
}

// TestCallsThatListenStoppedAllOthers, and refusals, where their own bytes are as many as answers may have.
func TestCallsThatListenStoppedAllOthers(t *testing.T) {
	o := newOwing()
	for id := range 20 {
		m, _ := parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"listen-%d","method":"subscriptions/listen"}`, id))
		if refused := o.asked(m, maxBody, nil); refused != nil {
			t.Fatalf("%s", refused)
		}
		if m, _ := o.next(); m == nil {
			t.Fatalf("%d of them listen", id)
		}
	}
	closed := make(chan struct{})
	close(closed)
	if !o.refuse([]byte("no"), closed) {
		t.Fatal("nothing is refused any more")
	}
	o.settle(len(o.refusal()))
	o.refusal()
	o.say(t, callOne)
	if m, _ := o.next(); m == nil {
		t.Error("no call is taken up any more")
	}
}

// TestWhatStoodBehindACancelledCallWaited on, though it needs no room: nobody looked again until something else came.
func TestWhatStoodBehindACancelledCallWaited(t *testing.T) {
	o := newOwing()
	for id := 1; id <= 9; id++ {
		o.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id))
	}
	o.say(t, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen"}`)
	for m, _ := o.next(); m != nil; m, _ = o.next() {
	}
	<-o.changed // and Read waits
	o.say(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)
	select {
	case <-o.changed:
	default:
		t.Error("nobody looks again")
	}
	if m, _ := o.next(); m == nil || m.(*jsonrpc.Request).ID.Raw() != "l" {
		t.Errorf("then comes %v", m)
	}
}

// TestGreatRefusalsHaveAnEnd: each has the id that was sent, which may be as long as a message.
func TestGreatRefusalsHaveAnEnd(t *testing.T) {
	o, closed := newOwing(), make(chan struct{})
	close(closed)
	great := make([]byte, maxBody)
	for i := range maxHeld / maxBody {
		if begin := o.refuse(great, closed); begin != (i == 0) {
			t.Errorf("refusal %d: somebody is to write them: %v", i, begin)
		}
	}
	if o.refuse(great, closed); len(o.refusals) != maxHeld/maxBody || o.held != maxHeld {
		t.Fatalf("%d are kept, of %d bytes", len(o.refusals), o.held)
	}
	o.settle(len(o.refusal()))
	select {
	case <-o.room:
	default:
		t.Error("nobody is told that there is room")
	}
	for o.refuse(great, closed); o.refusal() != nil; {
		o.settle(len(great))
	}
	if o.taken+o.held != 0 {
		t.Errorf("%d bytes of %d are left", o.held, o.taken)
	}
	if !o.refuse(great, closed) {
		t.Error("nobody is to write the next")
	}
}

// TestUnreadBytesHaveAnEnd: so many are taken up of calls whose answers nobody reads, and so many wait in the line.
func TestUnreadBytesHaveAnEnd(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for method, c := range map[string]struct{ answer, taken int }{"tools/call": {1 << 20, 32}, "ping": {2, 64}} {
		o := newOwing()
		taken := 0
		for id := range 200 { // of 1 MiB each
			m, _ := parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"%s"}`, id, method))
			if refused := o.asked(m, 1<<20, closed); refused != nil {
				t.Fatalf("%s", refused)
			}
			for m, _ := o.next(); m != nil; m, _ = o.next() {
				o.answering(m.(*jsonrpc.Request).ID, c.answer)
				taken++
			}
		}
		if taken != c.taken || o.lineBytes != maxLineBytes || len(o.line) != maxLineBytes>>20 {
			t.Errorf("%s: %d were taken up, and %d wait in the line, of %d bytes", method, taken, len(o.line), o.lineBytes)
		}
	}
}

// TestAConnectionCountsBytes of what was sent and is answered.
func TestAConnectionCountsBytes(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	conn, err := (&Stdio{In: in, Out: out}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _, _ = conn.Close(), write.Close(), read.Close() }()
	c := conn.(*stdio)
	count := func(line, held int) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lineBytes != line || c.held != held {
			t.Errorf("%d bytes are in the line, not %d, and %d are held, not %d", c.lineBytes, line, c.held, held)
		}
	}
	if _, err := io.WriteString(write, callOne+"\n"); err != nil {
		t.Fatal(err)
	}
	<-c.changed
	count(len(callOne), 0)
	m, err := conn.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count(0, len(callOne))
	const answer, refused = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"error":{"code":-32600,"message":"` + noBatches + `"},"id":null,"jsonrpc":"2.0"}`
	written := make(chan error, 1)
	go func() {
		written <- conn.Write(t.Context(), &jsonrpc.Response{ID: m.(*jsonrpc.Request).ID, Result: []byte(`{}`)})
	}()
	var first [1]byte
	if _, err := io.ReadFull(read, first[:]); err != nil { // and not the rest
		t.Fatal(err)
	}
	count(0, len(callOne)+len(answer))
	if _, err := io.ReadFull(read, make([]byte, len(answer))); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	count(0, 0)
	if _, err := io.WriteString(write, "[]\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(read, first[:]); err != nil {
		t.Fatal(err)
	}
	count(0, len(refused))
}

// TestCallsThatNobodyWaitsForAreNotUnanswered: those that were cancelled, or listen.
func TestCallsThatNobodyWaitsForAreNotUnanswered(t *testing.T) {
	o := newOwing()
	for _, line := range []string{callOne, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen"}`} {
		o.say(t, line)
		if m, _ := o.next(); m == nil {
			t.Fatalf("%s was not passed on", line)
		}
	}
	o.say(t, cancelOne)
	o.say(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call"}`) // in the line
	if n := o.unanswered(); n != 2 {
		t.Errorf("%d have no answer", n)
	}
}

// TestANoticeThatLeavesTheLineMakesRoom: no answer to it does later.
func TestANoticeThatLeavesTheLineMakesRoom(t *testing.T) {
	o := newOwing()
	o.say(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	o.next()
	select {
	case <-o.room:
	default:
		t.Error("the reader of a full line is not told")
	}
}
