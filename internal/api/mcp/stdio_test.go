package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mneme/client"
	"mneme/internal/api/mcp"
)

// piped is a server at the other end of two pipes.
type piped struct {
	t      *testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	raw    io.Reader // what out reads
	cancel func()
	ended  chan error
}

func newPiped(t *testing.T) *piped {
	t.Helper()
	return newPipedTo(t, "", mcp.Caller{}, errors.New("no node"))
}

func newPipedTo(t *testing.T, profile mcp.Profile, caller mcp.Caller, refused error) *piped {
	t.Helper()
	return newPipedWith(t, mcp.Options{Profile: profile, Connect: func(context.Context, http.Header, []string) (mcp.Caller, error) { return caller, refused }})
}

func newPipedWith(t *testing.T, opt mcp.Options) *piped {
	t.Helper()
	server, err := mcp.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		err := server.Run(ctx, &mcp.Stdio{In: in, Out: out})
		_ = out.CloseWithError(errors.Join(errors.New("the server ended"), err))
		_ = in.CloseWithError(errors.Join(errors.New("the server ended"), err))
		ended <- err
	}()
	t.Cleanup(func() {
		_ = write.Close()
		cancel()
		<-ended
	})
	return &piped{t, write, bufio.NewReader(read), read, cancel, ended}
}

func (p *piped) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

type response struct {
	ID     any
	Method string // of what the server asks
	Error  *struct {
		Code    int
		Message string
	}
}

func (p *piped) receive() response {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	var r response
	if err := json.Unmarshal(line, &r); err != nil {
		p.t.Fatalf("%v in %s", err, line)
	}
	return r
}

// stalled is a node that answers nothing until it is told to, and the caller that asks it.
func stalled(t *testing.T) (caller mcp.Caller, asked chan struct{}, answer func()) {
	t.Helper()
	asked, open := make(chan struct{}, 100), make(chan struct{})
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-open:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(node.Close)
	answer = sync.OnceFunc(func() { close(open) })
	t.Cleanup(answer)
	api, err := client.New(node.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return mcp.Caller{Client: api, Namespace: "team", Agent: "ann"}, asked, answer
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	searchLine = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"x"}}}` + "\n"
)

// TestTheEndOfTheInputTookAnswers: of what came before the end of the input some was not answered,
// so that a shell which pipes messages in saw nothing.
func TestTheEndOfTheInputTookAnswers(t *testing.T) {
	caller, asked, answer := stalled(t)
	p := newPipedTo(t, "", caller, nil)
	p.send(hello + searchLine)
	p.receive()
	<-asked
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	answer()
	if r := p.receive(); r.ID != 2.0 || r.Error != nil {
		t.Errorf("%+v", r)
	}
	if line, err := p.out.ReadString('\n'); err == nil || !strings.Contains(err.Error(), "the server ended") {
		t.Errorf("then %q, %v", line, err)
	}
}

// TestAnUnreadAnswerHeldUpTheEnd: a program that is told to end does, whether or not somebody reads
// what it writes.
func TestAnUnreadAnswerHeldUpTheEnd(t *testing.T) {
	p := newPiped(t)
	p.send(pingLine)
	if _, err := io.ReadFull(p.raw, make([]byte, 1)); err != nil { // and then nobody reads
		t.Fatal(err)
	}
	p.cancel()
	p.ended <- <-p.ended // the error is that of the context, or that nobody reads: whichever the SDK sees first
}

// TestACancelledCallWasAnswered: by an error, which its client did not wait for any more.
func TestACancelledCallWasAnswered(t *testing.T) {
	caller, asked, _ := stalled(t)
	p := newPipedTo(t, "", caller, nil)
	p.send(hello)
	p.receive()
	p.send(`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"recall","arguments":{"task":"x"}}}` + "\n")
	<-asked
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}` + "\n" + pingLine)
	if r := p.receive(); r.ID != "next" || r.Error != nil {
		t.Errorf("%+v", r)
	}
	if err := p.in.Close(); err != nil { // which waits for none that was cancelled
		t.Fatal(err)
	}
	if line, err := p.out.ReadString('\n'); err == nil {
		t.Errorf("it was answered all the same: %s", line)
	}
}

const pingLine = `{"jsonrpc":"2.0","id":"next","method":"ping"}` + "\n"

// TestOneBadLineEndedTheServer: the SDK's transport gave up at the first line that was no message,
// without a word, and what followed a line that was cut short waited for its end.
func TestOneBadLineEndedTheServer(t *testing.T) {
	const parse, invalid, params = -32700, -32600, -32602
	for _, c := range []struct {
		line string
		code int
		id   any
	}{
		{"{", parse, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"pi`, parse, nil},
		{"\x00", parse, nil},
		{"nonsense", parse, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"} more`, parse, nil},
		{strings.Repeat("[", 20000), invalid, nil}, // a batch, whatever is in it
		{"null", invalid, nil},
		{"{}", invalid, nil},
		{"[]", invalid, nil},
		{"[" + strings.TrimSpace(pingLine) + "]", invalid, nil},
		{`"ping"`, invalid, nil},
		{`{"jsonrpc":"2.0"}`, invalid, nil},
		{`{"jsonrpc":"1.0","id":7,"method":"ping"}`, invalid, 7.0},
		{`{"jsonrpc":"1.0","id":"a","method":"ping"}`, invalid, "a"},
		{`{"jsonrpc":"1.0","id":7,"result":{}}`, invalid, nil},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, invalid, nil},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, invalid, 1.0},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, invalid, nil},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, invalid, 1.5},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, invalid, 9007199254740993.0},
		{`{"jsonrpc":"2.0","id":-1e300,"method":"ping"}`, invalid, -1e300},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", parse, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, invalid, 1.0}, // before initialize
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, invalid, 1.0},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, params, 1.0},
		{`{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, invalid, 1.0},
		{`{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":1}}`, invalid, 1.0},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", 5<<20) + `"}}`, invalid, nil},
	} {
		p := newPiped(t)
		p.send(c.line + "\n")
		if r := p.receive(); r.Error == nil || r.Error.Code != c.code || r.ID != c.id {
			t.Errorf("%.60q: %+v, want %d for %v", c.line, r, c.code, c.id)
		}
		p.send(pingLine) // calls that are taken up together end in any order
		if r := p.receive(); r.Error != nil || r.ID != "next" {
			t.Errorf("after %.60q: %+v", c.line, r)
		}
	}
}

// TestErrorsHadNoCode: a second initialize was answered by an error of code 0.
func TestErrorsHadNoCode(t *testing.T) {
	p := newPiped(t)
	for n, code := range []int{0, -32600} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n", n))
		if r := p.receive(); r.ID != float64(n) || (r.Error != nil) != (code != 0) || r.Error != nil && r.Error.Code != code {
			t.Errorf("%+v, want the code %d", r.Error, code)
		}
	}
}

// TestAGraphThatCannotBeReadHadNoCode: the resource, of a node that refuses.
func TestAGraphThatCannotBeReadHadNoCode(t *testing.T) {
	node := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(node.Close)
	api, err := client.New(node.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	p := newPipedTo(t, mcp.ProfileGraph, mcp.Caller{Client: api, Namespace: "team"}, nil)
	p.send(hello)
	p.receive()
	p.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"memory://knowledge-graph"}}` + "\n")
	if r := p.receive(); r.ID != 2.0 || r.Error == nil || r.Error.Code != -32603 {
		t.Errorf("%+v", r.Error)
	}
}

// Ids come back as they were sent.
func TestIDsComeBack(t *testing.T) {
	p := newPiped(t)
	for _, id := range []string{`0`, `-1`, `9007199254740991`, `""`, `"a\u2028\"b"`, `"9007199254740993"`} {
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n")
		var want any
		if err := json.Unmarshal([]byte(id), &want); err != nil {
			t.Fatal(err)
		}
		if r := p.receive(); r.Error != nil || r.ID != want {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// Marks of byte order, ends of lines as on Windows and empty lines are passed over.
func TestLinesOfOtherSystems(t *testing.T) {
	p := newPiped(t)
	for _, before := range []string{"\ufeff", "\r\n\n\n  ", "\t"} {
		p.send(before + strings.TrimSpace(pingLine) + "\r\n")
		if r := p.receive(); r.Error != nil || r.ID != "next" {
			t.Errorf("after %q: %+v", before, r)
		}
	}
}
