package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mneme/internal/api/mcp"
)

// flood sends lines, each with its number, which nobody answers to yet, and more than are taken: least to most, and
// what the reader's buffer holds. It returns how many there are in all.
func (p *piped) flood(line string, least, most int64) (all int64) {
	p.t.Helper()
	var sent atomic.Int64
	inBuffer := int64((64<<10)/len(line)) + 3
	all = most + inBuffer + 20
	go func() {
		for i := range all {
			if _, err := fmt.Fprintf(p.in, line, i); err != nil {
				p.t.Error(err)
				return
			}
			sent.Add(1)
		}
	}()
	synctest.Wait()
	if n := sent.Load(); n < least || n > most+inBuffer {
		p.t.Errorf("%d were taken of %d", n, all)
	}
	return all
}

// TestUnreadAnswersGrewWithoutBound: each call of a client that did not read was taken, and its answer
// kept. Nothing is lost of what comes once it reads. TestUnreadBytesHaveAnEnd counts bytes.
func TestUnreadAnswersGrewWithoutBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1000 + 10_000
		p := newPiped(t)
		p.send(hello)
		p.receive()
		all := p.flood(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", most-8, most)
		seen := map[any]bool{}
		for range all {
			r := p.receive()
			if r.Error != nil || seen[r.ID] {
				t.Fatalf("%+v", r)
			}
			seen[r.ID] = true
		}
	})
}

// TestCallsOfOneIDWereNotAnswered: but for the first, and the end of the input waited for them.
func TestCallsOfOneIDWereNotAnswered(t *testing.T) {
	caller, asked, answer := stalled(t)
	p := newPipedTo(t, "", caller, nil)
	p.send(hello + searchLine)
	p.receive()
	<-asked
	for range 2 {
		p.send(strings.Replace(searchLine, `"id":2,`, `"id":2.0,`, 1))
		if r := p.receive(); r.ID != 2.0 || r.Error == nil || r.Error.Code != -32600 || !strings.Contains(r.Error.Message, "an id of its own") {
			t.Errorf("%+v", r)
		}
	}
	answer()
	if r := p.receive(); r.ID != 2.0 || r.Error != nil {
		t.Errorf("%+v", r)
	}
	p.send(searchLine) // which is free again
	if r := p.receive(); r.ID != 2.0 || r.Error != nil {
		t.Errorf("%+v", r)
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	if line, err := p.out.ReadString('\n'); err == nil {
		t.Errorf("then %s", line)
	}
}

// listenLine is a call that listens for changes.
func listenLine(id string) string {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	return `{"jsonrpc":"2.0","id":"` + id + `","method":"subscriptions/listen","params":{` + meta + `,"notifications":{"resourceSubscriptions":["memory://knowledge-graph"]}}}` + "\n"
}

// TestListeningHasAnEnd: a call that listens for changes is not among those that are waited for, and
// there are no more than so many.
func TestListeningHasAnEnd(t *testing.T) {
	p := newPipedWith(t, mcp.Options{Profile: mcp.ProfileGraph, Sessions: true, Connect: func(context.Context, http.Header, []string) (mcp.Caller, error) {
		return mcp.Caller{}, errors.New("no node")
	}})
	for i := range 100 {
		p.send(listenLine(fmt.Sprint("listen-", i)))
		if r := p.receive(); r.Error != nil || r.ID != nil {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	p.send(listenLine("more"))
	if r := p.receive(); r.ID != "more" || r.Error == nil || !strings.Contains(r.Error.Message, "cancel one") {
		t.Errorf("%+v", r)
	}
	p.send(pingLine)
	if r := p.receive(); r.ID != "next" || r.Error != nil && r.Error.Code != -32601 {
		t.Errorf("%+v %+v", r, r.Error)
	}
}

// TestTheEndOfTheInputWasNoAnswer to what the server had asked: it waited for it, and so did the call.
func TestTheEndOfTheInputWasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedWith(t, mcp.Options{Folders: true, Connect: func(context.Context, http.Header, []string) (mcp.Caller, error) {
			return mcp.Caller{}, errors.New("no node")
		}})
		began := time.Now()
		p.send(strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1) + searchLine)
		p.receive()
		if r := p.receive(); r.Error != nil || r.ID == 2.0 { // it is asked for its folders
			t.Errorf("%+v", r)
		}
		if err := p.in.Close(); err != nil {
			t.Fatal(err)
		}
		if r := p.receive(); r.ID != 2.0 || r.Error != nil {
			t.Errorf("%+v", r)
		}
		if _, err := p.out.ReadByte(); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("then %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited %v for an answer", took)
		}
	})
}

// TestNamesInOtherCasesWereTaken for those of the protocol: a call was refused under no id, or under
// another one.
func TestNamesInOtherCasesWereTaken(t *testing.T) {
	p := newPiped(t)
	for _, c := range []struct {
		line string
		id   any
		code int
	}{
		{`{"jsonrpc":"2.0","id":7,"ID":{},"method":"ping"}`, 7.0, 0},
		{`{"jsonrpc":"2.0","ID":{},"id":7,"method":"ping","Method":5}`, 7.0, 0},
		{`{"jsonrpc":"1.0","id":8,"ID":9,"method":"ping"}`, 8.0, -32600},
	} {
		p.send(c.line + "\n")
		r := p.receive()
		if r.ID != c.id || (r.Error != nil) != (c.code != 0) || r.Error != nil && r.Error.Code != c.code {
			t.Errorf("%s: %+v %+v", c.line, r, r.Error)
		}
	}
}

// TestHalfAPairOfSurrogatesWasAnotherText: it was kept as U+FFFD.
func TestHalfAPairOfSurrogatesWasAnotherText(t *testing.T) {
	p := newPiped(t)
	for text, refused := range map[string]bool{
		`\ud800`: true, `\uD800x`: true, `\udfff`: true, `\ud800\ud800`: true, `\ude00\ud83d`: true, `\ud83d\n\ude00`: true, `\\\udc00`: true, `\ud83d\ude00\ud83d`: true, `\ud83d\\ude00`: true,
		`\ud83d\ude00`: false, `\uD83D\uDE00`: false, `\\ud800`: false, `\ud7ff\ue000\uffff`: false, `\n\"\\`: false, "😀": false,
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + text + `"}}` + "\n")
		if r := p.receive(); r.ID != 1.0 || (r.Error != nil) != refused || refused && r.Error.Code != -32600 {
			t.Errorf("%s: %+v %+v", text, r, r.Error)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}` + "\n")
	if r := p.receive(); r.ID != nil || r.Error == nil || r.Error.Code != -32600 {
		t.Errorf("an id: %+v", r)
	}
}
