package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mneme/internal/api/mcp"
)

// slow is a server whose calls of tools are at work until they are let go, or cancelled.
type slow struct {
	*piped
	began atomic.Int64
	let   chan error // with what one ends
}

func newSlow(t *testing.T, profile mcp.Profile) *slow {
	t.Helper()
	s := &slow{let: make(chan error)}
	s.piped = newPipedWith(t, mcp.Options{Profile: profile, Sessions: true, Connect: func(ctx context.Context, _ http.Header, _ []string) (mcp.Caller, error) {
		s.began.Add(1)
		select {
		case err := <-s.let:
			return mcp.Caller{}, err
		case <-ctx.Done():
			return mcp.Caller{}, ctx.Err()
		}
	}})
	s.send(hello)
	s.receive()
	return s
}

// letGo has so many calls end, also of those that begin later.
func (s *slow) letGo(n int, with error) {
	go func() {
		for range n {
			s.let <- with
		}
	}()
}

// calls sends so many calls of a tool, whose ids go up from the first.
func (s *slow) calls(first, n int) {
	s.t.Helper()
	for id := range n {
		s.send(callLine(first + id))
	}
}

func callLine(id int) string {
	return strings.Replace(searchLine, `"id":2,`, fmt.Sprintf(`"id":%d,`, id), 1)
}

func cancelLine(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
}

// atWork waits until nothing goes on any more, and says how many calls have begun.
func (s *slow) atWork() int64 {
	synctest.Wait()
	return s.began.Load()
}

// answered reads answers until the ids that are given have theirs.
func (s *slow) answered(ids ...int) {
	s.t.Helper()
	for len(ids) > 0 {
		r := s.receive()
		i := slices.IndexFunc(ids, func(id int) bool { return r.ID == float64(id) })
		if i < 0 || r.Error != nil {
			s.t.Fatalf("%+v, want one of %v", r, ids)
		}
		ids = slices.Delete(ids, i, i+1)
	}
}

func upTo(n int) (ids []int) {
	for id := range n {
		ids = append(ids, id)
	}
	return ids
}

// TestAnswersGreaterThanTheirCallsGrewWithoutBound: a thousand calls were at work at once, and their
// answers counted when they were there. Nothing is lost of what comes once the client reads.
func TestAnswersGreaterThanTheirCallsGrewWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 12
		s := newSlow(t, "")
		s.calls(0, all)
		if n := s.atWork(); n != 8 {
			t.Errorf("%d work at once", n)
		}
		s.letGo(all, errors.New(strings.Repeat("x", 8<<20)))
		if n := s.atWork(); n != 8 { // which have ended, and nobody reads
			t.Errorf("%d were taken up, whose answers have 8 MiB each", n)
		}
		s.answered(upTo(all)...)
	})
}

// TestAGreatAnswerWasNoReasonToTakeUpFewer calls of those that come after it.
func TestAGreatAnswerWasNoReasonToTakeUpFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(0, 1)
		s.letGo(1, errors.New(strings.Repeat("x", 24<<20)))
		s.answered(0)
		s.calls(1, 20)
		if n := s.atWork() - 1; n != 3 {
			t.Errorf("%d work at once, though an answer has had 24 MiB", n)
		}
		s.letGo(20, errors.New("no node"))
		s.answered(upTo(21)[1:]...)
	})
}

// A call makes room for others once it has ended, whether or not its answer is read.
func TestShortAnswersThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(0, 12)
		if n := s.atWork(); n != 8 {
			t.Errorf("%d work at once", n)
		}
		s.letGo(12, errors.New("no node"))
		if n := s.atWork(); n != 12 {
			t.Errorf("%d have begun", n)
		}
		s.answered(upTo(12)...)
	})
}

// A call that is cancelled in the line is never taken up, and its id is free; one that is cancelled
// at work makes room once it has ended. Neither waits for others, and a ping waits for none.
func TestCallsInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(0, 11)
		s.send(pingLine)
		if r := s.receive(); r.ID != "next" || r.Error != nil {
			t.Errorf("a ping behind calls that wait: %+v", r)
		}
		s.send(callLine(9)) // a second time
		if r := s.receive(); r.ID != 9.0 || r.Error == nil || !strings.Contains(r.Error.Message, "an id of its own") {
			t.Errorf("%+v", r)
		}
		s.send(cancelLine(8) + cancelLine(9) + callLine(9))
		if n := s.atWork(); n != 8 {
			t.Errorf("%d work at once", n)
		}
		s.send(cancelLine(3) + cancelLine(3) + cancelLine(77))
		if n := s.atWork(); n != 9 {
			t.Errorf("%d have begun, once one of 8 was cancelled", n)
		}
		s.letGo(9, errors.New("no node"))
		s.answered(0, 1, 2, 4, 5, 6, 7, 9, 10)
		if n := s.atWork(); n != 10 {
			t.Errorf("%d have begun", n)
		}
	})
}

// TestThoseThatListenTookTheRoom of calls that work.
func TestThoseThatListenTookTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, mcp.ProfileFull)
		for i := range 100 {
			s.send(listenLine(fmt.Sprint("listen-", i)))
			s.receive()
		}
		for i := range 50 {
			s.send(strings.Replace(cancelLine(0), ":0}", fmt.Sprintf(`:"listen-%d"}`, i), 1))
		}
		synctest.Wait()
		for i := range 50 {
			s.send(listenLine(fmt.Sprint("again-", i)))
			if r := s.receive(); r.Error != nil {
				t.Fatalf("%d: %+v", i, r.Error)
			}
		}
		s.calls(0, 9)
		if n := s.atWork(); n != 8 {
			t.Errorf("%d work at once", n)
		}
		s.letGo(9, errors.New("no node"))
		s.answered(upTo(9)...)
	})
}

// TestTheEndOfTheInputTookWhatWaitedInTheLine: and those at work have their time, one after the other.
func TestTheEndOfTheInputTookWhatWaitedInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(0, 30)
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		s.letGo(30, errors.New("no node"))
		s.answered(upTo(30)...)
		if line, err := s.out.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "the server ended") {
			t.Errorf("then %q, %v", line, err)
		}
	})
}

// TestCallsWereGivenUpWithoutAWord: once its input had ended the server ended well, and had not answered. Calls have 10 s
// each then, from when the last was taken up, and no more.
func TestCallsWereGivenUpWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(0, 18)
		if err := s.in.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 2 {
			time.Sleep(9 * time.Second)
			s.letGo(8, errors.New("no node"))
			synctest.Wait()
		}
		s.answered(upTo(16)...)
		if line, err := s.out.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "no answer yet (2)") {
			t.Errorf("then %q, %v", line, err)
		}
		if took := time.Since(began); took != 28*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestASilentNodeSilencedWhatAsksNone: eight calls that a node does not answer had a client wait for
// the list of tools, too.
func TestASilentNodeSilencedWhatAsksNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, "")
		s.calls(10, 12)
		s.atWork()
		for i, call := range []string{
			`"tools/list"`, `"prompts/list"`, `"resources/templates/list"`, `"ping"`, `"logging/setLevel","params":{"level":"info"}`,
			`"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`,
		} {
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}`+"\n", 100+i, call))
			s.answered(100 + i)
		}
		for i, call := range []string{ // which ask one
			`"resources/read","params":{"uri":"mneme://memories/x"}`, `"prompts/get","params":{"name":"recall","arguments":{"task":"x"}}`,
			`"completion/complete","params":{"ref":{"type":"ref/resource","uri":"mneme://memories/{id}"},"argument":{"name":"id","value":"x"}}`,
		} {
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s}`+"\n", 200+i, call))
		}
		if n := s.atWork(); n != 8 {
			t.Errorf("%d calls are at work", n)
		}
		s.letGo(15, errors.New("no node"))
		for range 15 {
			s.receive()
		}
		if n := s.atWork(); n != 15 {
			t.Errorf("%d calls have begun", n)
		}
	})
}

// TestARefusalThatNobodyReadHidTheEndOfTheInput: it was written before the next line was read, so that a host which reads no more
// and waits for the end, having closed the input, waited for good.
func TestARefusalThatNobodyReadHidTheEndOfTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPiped(t)
		p.send("{\n[]\n")
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := <-p.ended
		p.ended <- err
		if took := time.Since(began); took != 10*time.Second || err == nil || !strings.Contains(err.Error(), "does not read") {
			t.Errorf("it ended after %v, with %v", took, err)
		}
	})
}

// TestUnreadRefusalsHaveAnEnd: so many are kept, in their order, and then nothing more is read.
func TestUnreadRefusalsHaveAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPiped(t)
		all := p.flood(`{"jsonrpc":"1.0","id":%d,"method":"ping"}`+"\n", 1000, 1000)
		for i := range all {
			if r := p.receive(); r.Error == nil || r.ID != float64(i) {
				t.Fatalf("%+v, want the refusal of %d", r, i)
			}
		}
	})
}
