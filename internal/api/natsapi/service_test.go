package natsapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mneme/memory"
)

func TestServices(t *testing.T) {
	tests := []struct {
		name, subject, body string
		headers             []string
		call, answer        string
	}{
		{"search", "mem.api.team.search", `{"query":"q","as":"me","at_least":"p0.1.1.0","consistency":"local"}`, nil,
			`Search {"Namespace":"team","As":"me","AtLeast":"p0.1.1.0","Consistency":"local"} {"query":"q","as":"me"`, `"results":[]`},
		{"search several", "mem.api.search", `{"namespaces":["team","sales"],"query":"q"}`, []string{"Mneme-Agent", "me"},
			`SearchNamespaces {"Namespace":"","As":"me","AtLeast":"","Consistency":""} {"namespaces":["team","sales"],"query":"q","as":"me"`, `"results":[]`},
		{"search header", "mem.api.team.search", `{"query":"q"}`, []string{"mneme-agent", "you"}, `"As":"you"`, ""},
		{"get", "mem.api.team.get", `{"id":"r","version":2}`, nil, `Get {"Namespace":"team","As":"","AtLeast":"","Consistency":""} "r" 2`, `"record_id"`},
		{"get by uri", "mem.api.team.get", `{"uri":"a/b","as":"me"}`, nil, `"mem://team/a/b" 0`, ""},
		{"timeline", "mem.api.team.timeline", `{"id":"r"}`, nil, `{"id":"r"}`, `"anchor"`},
		{"timeline sides", "mem.api.team.timeline", `{"id":"r","before":0,"after":7}`, nil, `{"id":"r","before":0,"after":7}`, ""},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := b.ask(t, tt.subject, tt.body, tt.headers...)
			if answer.Header.Get(micro.ErrorHeader) != "" || !strings.Contains(b.f.lastCall(), tt.call) || !strings.Contains(string(answer.Data), tt.answer) {
				t.Errorf("%s\ncall %s\nwant %s", answer.Data, b.f.lastCall(), tt.call)
			}
		})
	}
}

func TestServiceErrors(t *testing.T) {
	tests := []struct{ name, subject, body, want string }{
		{"namespace", "mem.api.Team.search", `{"query":"q"}`, "valid namespace"},
		{"no namespaces", "mem.api.search", `{"query":"q"}`, "namespaces is empty"},
		{"body", "mem.api.team.search", `{"query":1}`, `"query" at byte 9`},
		{"limit", "mem.api.team.search", `{"query":"q","limit":0}`, "limit is 0"},
		{"agent", "mem.api.team.search", `{"query":"q","as":"Me"}`, "valid agent"},
		{"consistency", "mem.api.team.get", `{"id":"r","consistency":"x"}`, "consistency"},
		{"get body", "mem.api.team.get", ``, "empty"},
		{"get nothing", "mem.api.team.get", `{}`, "by id or by uri"},
		{"get both", "mem.api.team.get", `{"id":"a","uri":"b"}`, "by id or by uri"},
		{"get version", "mem.api.team.get", `{"id":"a","version":-1}`, "version"},
		{"get uri", "mem.api.team.get", `{"uri":"a//b"}`, "segment"},
		{"get uri elsewhere", "mem.api.team.get", `{"uri":"mem://other/b"}`, "another namespace"},
		{"timeline body", "mem.api.team.timeline", `[]`, "must be an object"},
		{"timeline agent", "mem.api.team.timeline", `{"id":"a","as":"-"}`, "valid agent"},
		{"timeline id", "mem.api.team.timeline", `{}`, "id is missing"},
		{"timeline sides", "mem.api.team.timeline", `{"id":"a","after":201}`, "between 0 and 200"},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := b.ask(t, tt.subject, tt.body)
			var p memory.Problem
			must(t, json.Unmarshal(answer.Data, &p))
			if p.Code != memory.CodeInvalid || !strings.Contains(p.Detail, tt.want) {
				t.Errorf("%+v, want %q", p, tt.want)
			}
			if answer.Header.Get(micro.ErrorCodeHeader) != "400" || answer.Header.Get(micro.ErrorHeader) == "" {
				t.Errorf("headers %v", answer.Header)
			}
		})
	}
	if b.f.lastCall() != "" {
		t.Errorf("called %s", b.f.lastCall())
	}
}

func TestReaderFailures(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		fail func(context.Context) error
		want memory.Code
	}{
		{func(context.Context) error { return memory.Errorf(memory.CodeStalePosition, "two\nlines") }, memory.CodeStalePosition},
		{func(context.Context) error { return errors.New("secret") }, memory.CodeInternal},
		{func(context.Context) error { return context.DeadlineExceeded }, memory.CodeTimeout},
		{func(context.Context) error { return context.Canceled }, memory.CodeUnavailable},
		{func(context.Context) error { panic("secret") }, memory.CodeInternal},
	} {
		b.f.onRead(tt.fail)
		answer := b.ask(t, "mem.api.team.get", `{"id":"r"}`)
		var p memory.Problem
		must(t, json.Unmarshal(answer.Data, &p))
		if p.Code != tt.want || strings.Contains(string(answer.Data), "secret") || strings.ContainsAny(answer.Header.Get(micro.ErrorHeader), "\r\n") {
			t.Errorf("%s %v", answer.Data, answer.Header)
		}
	}
	if !strings.Contains(b.log.String(), "secret") {
		t.Error("internal errors are not in the log")
	}
}

func TestServicesCanBeDiscovered(t *testing.T) {
	b := newBench(t, nil)
	var info micro.Info
	must(t, json.Unmarshal(b.ask(t, "$SRV.INFO."+ServiceName, "").Data, &info))
	got := info.Version
	for _, e := range info.Endpoints {
		got += " " + e.Name + "=" + e.Metadata["subject"] + "/" + e.QueueGroup
		if e.Subject != "as.*."+e.Metadata["subject"] {
			t.Errorf("endpoint %s listens on %s", e.Name, e.Subject)
		}
	}
	if want := "1.2.3 search=mem.api.*.search/memnode search-several=mem.api.search/memnode get=mem.api.*.get/memnode timeline=mem.api.*.timeline/memnode revise=mem.api.*.revise/memnode forget=mem.api.*.forget/memnode"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for v, want := range map[string]string{"v0.1.0": "0.1.0", "dev": "0.0.0", "": "0.0.0", "2.0.0": "2.0.0"} {
		if got := discoveryVersion(v); got != want {
			t.Errorf("discoveryVersion(%q) = %q", v, got)
		}
	}
}

func TestReadsAreBounded(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Reads = 1 })
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	b.f.onRead(func(context.Context) error {
		entered <- struct{}{}
		<-gate
		return nil
	})
	inbox := b.agent.NewRespInbox()
	first, err := b.agent.SubscribeSync(inbox)
	must(t, err)
	must(t, b.agent.PublishRequest("mem.api.team.get", inbox, []byte(`{"id":"r"}`)))
	receive(t, entered)
	answer := b.ask(t, "mem.api.team.search", `{"query":"q"}`)
	if answer.Header.Get(micro.ErrorCodeHeader) != "429" {
		t.Errorf("%v %s", answer.Header, answer.Data)
	}
	close(gate)
	m, err := first.NextMsg(patience)
	must(t, err)
	if m.Header.Get(micro.ErrorHeader) != "" {
		t.Errorf("the first: %s", m.Data)
	}
}

func TestAnswersThatCannotBeSent(t *testing.T) {
	b := newBench(t, nil)
	inbox, err := b.node.SubscribeSync("_INBOX.of.the.node")
	must(t, err)
	must(t, b.node.Flush())
	b.s.answer(t.Context(), asked{subject: "x", reply: inbox.Subject}, strings.Repeat("a", int(b.node.MaxPayload())), nil)
	b.s.answer(t.Context(), asked{subject: "x", reply: inbox.Subject}, func() {}, nil)
	b.s.answer(t.Context(), asked{subject: "x"}, "nobody asked", nil)
	for _, want := range []string{"413", "500"} {
		m, err := inbox.NextMsg(patience)
		must(t, err)
		if m.Header.Get(micro.ErrorCodeHeader) != want {
			t.Errorf("%v, want %s", m.Header, want)
		}
	}
	if got := string(encode(func() {})); !strings.Contains(got, `"err_code":19000`) {
		t.Errorf("%s", got)
	}
	b.node.Close()
	b.s.send(&nats.Msg{Subject: "_INBOX.x"})
	if !strings.Contains(b.log.String(), "answer not sent") {
		t.Error("a lost answer is not in the log")
	}
}

// feedSource yields what it is given, then fails or waits.
type feedSource struct {
	items  chan memory.Event
	broken chan error
}

func (f *feedSource) Feed(ctx context.Context, yield func(string, memory.Event) error) error {
	for {
		select {
		case ev := <-f.items:
			if err := yield("mem.feed.team.team.captured", ev); err != nil {
				return err
			}
		case err := <-f.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestFeed(t *testing.T) {
	src := &feedSource{items: make(chan memory.Event), broken: make(chan error)}
	b := newBench(t, func(o *Options) { o.Feed, o.FeedRetry = src, time.Millisecond })
	sub, err := b.agent.SubscribeSync("mem.feed.team.>")
	must(t, err)
	must(t, b.agent.Flush())
	next := func() *nats.Msg {
		t.Helper()
		m, err := sub.NextMsg(patience)
		must(t, err)
		return m
	}
	src.items <- memory.Event{SpecVersion: "1.0", ID: "1", Source: "s", Type: "t", Data: []byte(`{"text":"x"}`)}
	if m := next(); string(m.Data) != `{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"text":"x"}}` || m.Header.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("%v %s", m.Header, m.Data)
	}
	big, err := json.Marshal(strings.Repeat("a", int(b.node.MaxPayload())))
	must(t, err)
	src.items <- memory.Event{ID: "2", DataContentType: "application/json", Data: big}
	if m := next(); strings.Contains(string(m.Data), "data") || !strings.Contains(string(m.Data), `"id":"2"`) {
		t.Errorf("%.200s", m.Data)
	}
	for _, failure := range []error{errors.New("behind"), nil} {
		src.broken <- failure
	}
	src.items <- memory.Event{ID: "3", Data: []byte("{")} // cannot be encoded
	src.items <- memory.Event{ID: "4"}
	if m := next(); !strings.Contains(string(m.Data), `"id":"4"`) {
		t.Errorf("after failures: %s", m.Data)
	}
	for _, want := range []string{"behind", "it ended", "encode event 3"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestStartRefusesWhatIsIncomplete(t *testing.T) {
	if _, err := Start(Options{}); err == nil {
		t.Error("no error without parts")
	}
	b := newBench(t, nil)
	b.node.Close()
	if _, err := Start(Options{Conn: b.node, Writer: b.f, Reader: b.f}); err == nil {
		t.Error("no error on a closed connection")
	}
}

func TestClosedSurfaceRefusesReads(t *testing.T) {
	b := newBench(t, nil)
	b.s.mu.Lock()
	b.s.closed = true
	b.s.mu.Unlock()
	answer := b.ask(t, "mem.api.team.get", `{"id":"r"}`)
	if answer.Header.Get(micro.ErrorCodeHeader) != "503" {
		t.Errorf("%v", answer.Header)
	}
	b.s.mu.Lock()
	b.s.closed = false
	b.s.mu.Unlock()
}

// TestReadsAreBoundedByALimitThatChanges: of two reads side by side the second is refused, with
// a remedy, as long as one may be worked on.
func TestReadsAreBoundedByALimitThatChanges(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Reads = 1 })
	begun, end := make(chan bool, 2), make(chan bool)
	b.f.onRead(func(context.Context) error {
		begun <- true
		<-end
		return nil
	})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(end)
	ask := func() { all.Go(func() { b.ask(t, "mem.api.team.get", `{"id":"r"}`) }) }
	refused := func() {
		t.Helper()
		var p memory.Problem
		must(t, json.Unmarshal(b.ask(t, "mem.api.team.get", `{"id":"r"}`).Data, &p))
		if p.Code != memory.CodeOverloaded || p.Hint == "" {
			t.Errorf("%+v", p)
		}
	}
	ask()
	receive(t, begun)
	refused()
	b.s.SetReads(2)
	ask()
	receive(t, begun)
	refused()
	b.s.SetReads(1)
	refused()
}
