package natsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/api"
	"mneme/memory"
)

const subject = "mem.in.team-a.agent-7.capture"

func TestAnswerOfACapture(t *testing.T) {
	b := newBench(t, nil)
	got := string(b.ask(t, subject, `{"text":"deploys happen on Tuesdays","id":"k"}`).Data)
	want := `{"stream":"mem","seq":42,"duplicate":false,"id":"k","record_id":"` + recordID + `","position":"p0.1.42.0","status":"created"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if call := b.f.lastCall(); call != `Capture "team-a" [{"id":"k","agent":"agent-7","text":"deploys happen on Tuesdays"}] {"Origin":"capture","Source":[""]} ""` {
		t.Errorf("call %s", call)
	}
}

func TestBodies(t *testing.T) {
	const ce = `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"e1","source":"//ci","time":"2026-01-02T03:04:05Z","data":{"text":"x"}}`
	binary := []string{"ce-specversion", "1.0", "ce-type", "io.mneme.memory.captured.v1", "ce-id", "e%2F2", "Ce-Source", "/caf%C3%A9"}
	tests := []struct {
		name, body string
		headers    []string
		call       string
	}{
		{"text", "plain words", nil, `[{"agent":"agent-7","text":"plain words"}]`},
		{"JSON declared as text", `{"a":1}`, []string{"Content-Type", "text/plain"}, `[{"agent":"agent-7","text":"{\"a\":1}"}]`},
		{"broken JSON declared as text", `{"text":"a`, []string{"content-type", "text/plain; charset=utf-8"}, `[{"agent":"agent-7","text":"{\"text\":\"a"}]`},
		{"array", `["text"]`, nil, `"text":"[\"text\"]"`},
		{"capture", ` {"text":"t","kind":"fact"}`, nil, `[{"agent":"agent-7","text":"t","kind":"fact"}]`},
		{"own agent", `{"text":"t","agent":"agent-7"}`, nil, `[{"agent":"agent-7","text":"t"}]`},
		{"structured", ce, nil, `[{"id":"e1","agent":"agent-7","text":"x","occurred_at":"2026-01-02T03:04:05Z"}] {"Origin":"capture","Source":["//ci"]}`},
		{"structured, typed", ce, []string{"content-type", "application/cloudevents+json; charset=utf-8"}, `"id":"e1"`},
		{"structured, short type", ce, []string{"Content-Type", "application/cloudevents"}, `"id":"e1"`},
		{"binary", `{"text":"b"}`, binary, `[{"id":"e/2","agent":"agent-7","text":"b"}] {"Origin":"capture","Source":["/café"]}`},
		{"binary text", `hello`, append([]string{"ce-datacontenttype", "text/plain"}, binary...), `"text":"hello"`},
		{"message id wins over ce-id", `{"text":"b"}`, append([]string{"Nats-Msg-Id", "m1"}, binary...), `"id":"m1"`},
		{"message id wins over id", `{"text":"b","id":"mine"}`, []string{"Nats-Msg-Id", "m1"}, `"id":"m1"`},
		{"id", `{"text":"b","id":"mine"}`, nil, `"id":"mine"`},
		{"typed text", `{"text":"b"}`, []string{"Content-Type", "text/plain"}, `"text":"{\"text\":\"b\"}"`},
		{"typed JSON", `{"text":"b"}`, []string{"Content-Type", "application/json"}, `"text":"b"`},
		{"accepted", "x", []string{"Mneme-Wait", "accepted"}, `"accepted"`},
		{"accepted, lower case", "x", []string{"mneme-wait", "accepted"}, `"accepted"`},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := b.ask(t, subject, tt.body, tt.headers...)
			if !strings.Contains(string(answer.Data), `"status":"created"`) || !strings.Contains(b.f.lastCall(), tt.call) {
				t.Errorf("%s\ncall %s\nwant %s", answer.Data, b.f.lastCall(), tt.call)
			}
		})
	}
	if len(b.f.rejected) != 0 {
		t.Errorf("rejected %+v", b.f.rejected)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, subject, body string
		headers             []string
		want                string
	}{
		{"subject", "mem.in.team-a.capture", "x", nil, "not of the form"},
		{"subject tail", "mem.in.team-a.agent-7.store", "x", nil, "not of the form"},
		{"namespace", "mem.in.Team.agent-7.capture", "x", nil, "valid namespace"},
		{"agent", "mem.in.team-a._sys.capture", "x", nil, "valid agent"},
		{"other agent", subject, `{"text":"x","agent":"agent-8"}`, nil, `the body says "agent-8"`},
		{"unknown field", subject, `{"text":"x","txet":1}`, nil, `"txet" at byte 12`},
		{"wait", subject, "x", []string{"Mneme-Wait", "forever"}, "Mneme-Wait"},
		{"expected sequence", subject, "x", []string{"Nats-Expected-Last-Sequence", "7"}, "Nats-Expected-Last-Sequence"},
		{"expected stream", subject, "x", []string{"nats-expected-stream", "mem"}, "nats-expected-stream"},
		{"rollup", subject, "x", []string{"Nats-Rollup", "all"}, "Nats-Rollup"},
		{"ttl", subject, "x", []string{"Nats-TTL", "1h"}, "Nats-TTL"},
		{"content type", subject, "x", []string{"Content-Type", "image/png"}, "image/png"},
		{"broken content type", subject, "x", []string{"Content-Type", "a/b; ="}, "content type"},
		{"broken JSON stored as text", subject, `{"text":"looks json but broken`, nil, "text/plain"},
		{"an object that is no capture", subject, ` {"memory":"x"}`, nil, "text/plain"},
		{"typed JSON", subject, "x", []string{"Content-Type", "application/json"}, "malformed JSON"},
		{"not UTF-8", subject, "\xff\xfe", nil, "UTF-8"},
		{"CloudEvent type", subject, `{"specversion":"1.0","type":"x","id":"1","source":"s"}`, nil, "not something to remember"},
		{"half a binary CloudEvent", subject, "x", []string{"ce-id", "1"}, "specversion"},
	}
	b := newBench(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got pubError
			must(t, json.Unmarshal(b.ask(t, tt.subject, tt.body, tt.headers...).Data, &got))
			if got.Error.Code != 400 || got.Error.ErrCode != 19001 || got.Problem.Code != memory.CodeInvalid || !strings.Contains(got.Error.Description, tt.want) {
				t.Errorf("%+v, want %q", got, tt.want)
			}
			r := receive(t, b.f.arrived)
			if r.Code != memory.CodeInvalid || r.Via != "nats" || r.Size != len(tt.body) || r.Body != tt.body || r.WellFormed {
				t.Errorf("rejected %+v", r)
			}
		})
	}
	if b.f.lastCall() != "" {
		t.Errorf("called %s", b.f.lastCall())
	}
}

// The answers must be what JetStream clients take for an ack and for an error:
// the old client, the new one, and its asynchronous publisher.
func TestJetStreamClientsUnderstandTheAnswers(t *testing.T) {
	b := newBench(t, nil)
	b.f.onCapture(func(_ context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
		resp := created(items)
		for i, item := range items {
			switch item.ID {
			case "again":
				resp.Results[i].Status = memory.StatusDuplicate
			case "clash":
				resp.Results[i] = memory.CaptureResult{Status: memory.StatusConflict, Error: &memory.ItemError{Code: memory.CodeConflict, Detail: "another body", Hint: "use another id"}}
			}
		}
		return resp, nil
	})
	old, err := b.agent.JetStream()
	must(t, err)
	modern, err := jetstream.New(b.agent)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	publishers := map[string]func(id string) (stream string, seq uint64, duplicate bool, err error){
		"old": func(id string) (string, uint64, bool, error) {
			ack, err := old.Publish(subject, []byte("x"), nats.MsgId(id))
			if err != nil {
				return "", 0, false, err
			}
			return ack.Stream, ack.Sequence, ack.Duplicate, nil
		},
		"jetstream": func(id string) (string, uint64, bool, error) {
			ack, err := modern.Publish(ctx, subject, []byte("x"), jetstream.WithMsgID(id))
			if err != nil {
				return "", 0, false, err
			}
			return ack.Stream, ack.Sequence, ack.Duplicate, nil
		},
		"async": func(id string) (string, uint64, bool, error) {
			future, err := modern.PublishAsync(subject, []byte("x"), jetstream.WithMsgID(id))
			if err != nil {
				return "", 0, false, err
			}
			select {
			case ack := <-future.Ok():
				return ack.Stream, ack.Sequence, ack.Duplicate, nil
			case err := <-future.Err():
				return "", 0, false, err
			case <-ctx.Done():
				return "", 0, false, ctx.Err()
			}
		},
	}
	for name, publish := range publishers {
		for id, wantDuplicate := range map[string]bool{"first": false, "again": true} {
			stream, seq, duplicate, err := publish(id)
			if err != nil || stream != "mem" || seq != 42 || duplicate != wantDuplicate {
				t.Errorf("%s %s: %q %d %t %v", name, id, stream, seq, duplicate, err)
			}
		}
		_, _, _, err := publish("clash")
		var oldErr *nats.APIError
		var newErr *jetstream.APIError
		switch {
		case errors.As(err, &oldErr):
			if oldErr.Code != 409 || oldErr.ErrorCode != 19005 || oldErr.Description != "another body (use another id)" {
				t.Errorf("%s: %+v", name, oldErr)
			}
		case errors.As(err, &newErr):
			if newErr.Code != 409 || newErr.ErrorCode != 19005 || newErr.Description != "another body (use another id)" {
				t.Errorf("%s: %+v", name, newErr)
			}
		default:
			t.Errorf("%s: a refusal came as %v", name, err)
		}
	}
	if _, err := old.Publish(subject, []byte("x"), nats.ExpectLastSequence(3)); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("an expected sequence: %v", err)
	}
}

func TestErrorNumbersAreDistinctAndStable(t *testing.T) {
	seen := map[int]memory.Code{}
	for _, c := range memory.Codes() {
		n := errCode(c)
		if other, taken := seen[n]; taken {
			t.Errorf("%s and %s are both %d", c, other, n)
		}
		seen[n] = c
	}
	for n, c := range map[int]memory.Code{19000: "internal", 19001: "invalid", 19005: "conflict", 19011: "overloaded", 19016: "timeout"} {
		if seen[n] != c {
			t.Errorf("%d is %s, was %s", n, seen[n], c)
		}
	}
	if errCode("new") != 19000 {
		t.Error("an unknown code")
	}
}

func TestWholeFailures(t *testing.T) {
	tests := map[string]struct {
		fail func() (memory.CaptureResponse, error)
		want memory.Code
	}{
		"typed": {func() (memory.CaptureResponse, error) {
			return memory.CaptureResponse{}, memory.Errorf(memory.CodeNoSpace, "full")
		}, memory.CodeNoSpace},
		"untyped":  {func() (memory.CaptureResponse, error) { return memory.CaptureResponse{}, errors.New("secret") }, memory.CodeInternal},
		"deadline": {func() (memory.CaptureResponse, error) { return memory.CaptureResponse{}, context.DeadlineExceeded }, memory.CodeOutcomeUnknown},
		"canceled": {func() (memory.CaptureResponse, error) { return memory.CaptureResponse{}, context.Canceled }, memory.CodeOutcomeUnknown},
		"count":    {func() (memory.CaptureResponse, error) { return memory.CaptureResponse{}, nil }, memory.CodeInternal},
		"panic":    {func() (memory.CaptureResponse, error) { panic("secret") }, memory.CodeInternal},
	}
	b := newBench(t, nil)
	for name, tt := range tests {
		b.f.onCapture(func(context.Context, string, []memory.Capture) (memory.CaptureResponse, error) { return tt.fail() })
		answer := b.ask(t, subject, "x")
		var got pubError
		must(t, json.Unmarshal(answer.Data, &got))
		if got.Problem.Code != tt.want || got.Error.Code != tt.want.HTTPStatus() || strings.Contains(string(answer.Data), "secret") {
			t.Errorf("%s: %s", name, answer.Data)
		}
		if tt.want == memory.CodeOutcomeUnknown {
			continue // it may have happened: it was not refused
		}
		if r := receive(t, b.f.arrived); r.Code != tt.want || !r.WellFormed || r.Body == "" || r.Agent != "agent-7" {
			t.Errorf("%s: rejected %+v", name, r)
		}
	}
	if !strings.Contains(b.log.String(), "secret") {
		t.Error("internal errors are not in the log")
	}
}

func TestPendingVectorsAreTold(t *testing.T) {
	b := newBench(t, nil)
	b.f.onCapture(func(_ context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
		resp := created(items)
		resp.Vectors = "pending"
		return resp, nil
	})
	if got := string(b.ask(t, subject, "x", "Mneme-Wait", "searchable").Data); !strings.Contains(got, `"vectors":"pending"`) {
		t.Errorf("%s", got)
	}
}

func TestWithoutReplyRefusalsAreCounted(t *testing.T) {
	b := newBench(t, nil)
	must(t, b.agent.Publish(subject, []byte(`{"text":"x","agent":"other"}`)))
	if r := receive(t, b.f.arrived); r.Namespace != "team-a" || r.Agent != "agent-7" || r.Code != memory.CodeInvalid {
		t.Errorf("%+v", r)
	}
	b.f.onCapture(func(context.Context, string, []memory.Capture) (memory.CaptureResponse, error) {
		return memory.CaptureResponse{}, memory.Errorf(memory.CodeNotFound, "no such namespace")
	})
	must(t, b.agent.Publish(subject, []byte("x")))
	if r := receive(t, b.f.arrived); r.Code != memory.CodeNotFound {
		t.Errorf("%+v", r)
	}
}

// What one agent publishes must be written in order, together where it waits,
// while another agent's slow write holds nobody up.
func TestOrderOfOneSubject(t *testing.T) {
	const agents, each = 5, 400
	b := newBench(t, nil)
	js, err := jetstream.New(b.agent)
	must(t, err)
	var futures []jetstream.PubAckFuture
	for i := range each {
		for a := range agents {
			f, err := js.PublishAsync(fmt.Sprintf("mem.in.team-%d.agent-%d.capture", a%2, a), fmt.Appendf(nil, "%d", i))
			must(t, err)
			futures = append(futures, f)
		}
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatal("no ack")
		}
	}
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	next := map[string]int{}
	for _, batch := range b.f.batches {
		for _, item := range batch {
			if item.Text != fmt.Sprint(next[item.Agent]) {
				t.Fatalf("%s: %q came as number %d", item.Agent, item.Text, next[item.Agent])
			}
			next[item.Agent]++
		}
	}
	if len(next) != agents || next["agent-0"] != each {
		t.Errorf("written: %v", next)
	}
	t.Logf("%d messages in %d batches", agents*each, len(b.f.batches))
}

func TestBatchesDoNotMix(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Lanes = 1 })
	gate := make(chan struct{})
	var seen []string
	var mu sync.Mutex
	b.f.onCapture(func(_ context.Context, ns string, items []memory.Capture) (memory.CaptureResponse, error) {
		<-gate
		mu.Lock()
		defer mu.Unlock()
		for _, item := range items {
			seen = append(seen, ns+"/"+item.Text)
		}
		return created(items), nil
	})
	var answers sync.WaitGroup
	send := func(subject, text, wait string) {
		inbox := b.agent.NewRespInbox()
		sub, err := b.agent.SubscribeSync(inbox)
		must(t, err)
		must(t, b.agent.PublishMsg(&nats.Msg{Subject: subject, Reply: inbox, Data: []byte(text), Header: nats.Header{"Mneme-Wait": {wait}}}))
		answers.Go(func() {
			if _, err := sub.NextMsg(patience); err != nil {
				t.Error(err)
			}
		})
	}
	send("mem.in.a.x.capture", "1", "")
	send("mem.in.a.x.capture", "2", "")
	send("mem.in.b.x.capture", "3", "")
	send("mem.in.b.x.capture", "4", "accepted")
	send("mem.in.a.x.capture", "5", "accepted")
	must(t, b.agent.Flush())
	close(gate)
	answers.Wait()
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, " "); got != "a/1 a/2 b/3 b/4 a/5" {
		t.Errorf("%s", got)
	}
	for _, call := range b.f.calls {
		if strings.Contains(call, `"3"`) && strings.Contains(call, `"4"`) {
			t.Errorf("waits were mixed: %s", call)
		}
	}
}

func TestTooMuchIsRefusedAtOnce(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"messages": func(o *Options) { o.Lanes, o.LaneDepth = 1, 1 },
		"bytes":    func(o *Options) { o.MaxBytes = 10 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, change)
			gate, entered := make(chan struct{}), make(chan struct{}, 16)
			open := sync.OnceFunc(func() { close(gate) })
			t.Cleanup(open) // else the server waits for what it has taken
			b.f.onCapture(func(_ context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
				entered <- struct{}{}
				<-gate
				return created(items), nil
			})
			must(t, b.agent.Publish(subject, []byte("12345")))
			receive(t, entered)
			must(t, b.agent.Publish(subject, []byte("12345"))) // waits
			must(t, b.agent.Flush())
			answer, err := b.agent.Request(subject, []byte("12345"), 5*time.Second)
			if err != nil {
				t.Fatalf("one too many was not refused at once, while nothing else is answered: %v", err)
			}
			var got pubError
			must(t, json.Unmarshal(answer.Data, &got))
			if got.Error.Code != 429 || got.Problem.Code != memory.CodeOverloaded {
				t.Errorf("%+v", got)
			}
			open()
			receive(t, entered)
			if answer := b.ask(t, subject, "12345"); !strings.Contains(string(answer.Data), "created") {
				t.Errorf("afterwards: %s", answer.Data)
			}
		})
	}
}

func TestCloseFinishesWhatWasTaken(t *testing.T) {
	b := newBench(t, nil)
	gate, entered := make(chan struct{}), make(chan struct{}, 1)
	b.f.onCapture(func(_ context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
		entered <- struct{}{}
		<-gate
		return created(items), nil
	})
	answers, err := b.agent.SubscribeSync(b.agent.NewRespInbox())
	must(t, err)
	must(t, b.agent.PublishRequest(subject, answers.Subject, []byte("x")))
	receive(t, entered)
	closed := make(chan error, 1)
	go func() { closed <- b.s.Close(context.Background()) }()
	close(gate)
	must(t, receive(t, closed))
	m, err := answers.NextMsg(patience)
	must(t, err)
	if !strings.Contains(string(m.Data), "created") {
		t.Errorf("%s", m.Data)
	}
	if _, err := b.agent.Request(subject, []byte("x"), patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after Close: %v", err)
	}
	if err := b.s.enqueue(&intake{msg: &nats.Msg{Subject: subject}}); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("handed over after Close: %v", err)
	}
}

func TestCloseCutsShortWhenItsContextEnds(t *testing.T) {
	b := newBench(t, nil)
	entered := make(chan struct{}, 1)
	b.f.onCapture(func(ctx context.Context, _ string, _ []memory.Capture) (memory.CaptureResponse, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return memory.CaptureResponse{}, ctx.Err()
	})
	answers, err := b.agent.SubscribeSync(b.agent.NewRespInbox())
	must(t, err)
	must(t, b.agent.PublishRequest(subject, answers.Subject, []byte("x")))
	receive(t, entered)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must(t, b.s.Close(ctx))
	m, err := answers.NextMsg(patience)
	must(t, err)
	if !strings.Contains(string(m.Data), `"code":"outcome_unknown"`) {
		t.Errorf("%s", m.Data)
	}
	if len(b.f.rejected) != 0 {
		t.Errorf("rejected %+v", b.f.rejected)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(subject, "content-type", "application/json", []byte(`{"text":"x"}`))
	f.Add(subject, "ce-id", "1", []byte(`x`))
	f.Add("mem.in.a.b.capture", "Nats-Msg-Id", "k", []byte(`{"specversion":"1.0"}`))
	f.Add("mem.in", "", "", []byte(nil))
	p := newParser()
	f.Fuzz(func(t *testing.T, subject, name, value string, data []byte) {
		got, err := p.parse(&nats.Msg{Subject: subject, Header: nats.Header{name: {value}}, Data: data})
		if err == nil && (got.namespace == "" || got.agent == "" || got.item.Agent != got.agent) {
			t.Fatalf("accepted %+v", got)
		}
		if c := memory.CodeOf(err); err != nil && c != memory.CodeInvalid && c != memory.CodeTooLarge {
			t.Fatalf("%s: %v", c, err)
		}
	})
}

// TestNodeAnsweredWhereTheCallerMayNot: a reply subject that is no inbox gets
// no answer, is counted, and the surface goes on. The messages come from the
// node's own account here, where the server does not rewrite reply subjects.
func TestNodeAnsweredWhereTheCallerMayNot(t *testing.T) {
	b := newBench(t, nil)
	foreign := []string{"mem.log.0", "$JS.API.STREAM.PURGE.mneme-0", "mem.feed.team.team.captured", "as.public.mem.in.team-a.victim.capture", "_INBOXES.x", "_R", "_INBOX"}
	everything, err := b.node.SubscribeSync(">")
	must(t, err)
	must(t, b.node.Flush())
	for _, reply := range foreign {
		for _, to := range []string{"as.public." + subject, "as.public.mem.api.team-a.search"} {
			must(t, b.node.PublishRequest(to, reply, []byte(`{"text":"x"}`)))
		}
	}
	b.ask(t, subject, "the last one")
	for end := time.Now().Add(patience); b.s.ForeignReplies() < uint64(2*len(foreign)); {
		if time.Now().After(end) {
			t.Fatalf("counted %d foreign replies, want %d", b.s.ForeignReplies(), 2*len(foreign))
		}
		b.ask(t, subject, "another one")
	}
	for {
		m, err := everything.NextMsg(50 * time.Millisecond)
		if err != nil {
			break
		}
		if m.Reply == "" && !strings.HasPrefix(m.Subject, "as.") && !strings.HasPrefix(m.Subject, "_R_.") {
			t.Errorf("the node published to %s", m.Subject)
		}
	}
	for reply, want := range map[string]bool{"_INBOX.a.b": true, "_R_.a.b": true, "_INBOX.*": false, "_INBOX.>": false, "_R_.a.>": false, "mem.log.0": false, "": false} {
		if mayAnswer(reply) != want {
			t.Errorf("mayAnswer(%q) = %v", reply, !want)
		}
	}
	if got := b.s.ForeignReplies(); got != uint64(2*len(foreign)) {
		t.Errorf("counted %d foreign replies, want %d", got, 2*len(foreign))
	}
}

// Refusals were listed, on disk, by the one goroutine that takes all captures: a
// flood of malformed messages from one connection kept everybody without an answer
// long after it had ended. Here the disk does not answer at all.
func TestOneConnectionSilencedAllCaptures(t *testing.T) {
	const flood = 5000
	b := newBench(t, nil)
	disk := make(chan struct{})
	b.f.rejectOn = disk
	open := sync.OnceFunc(func() { close(disk) })
	t.Cleanup(open) // before the surface is closed
	for range flood {
		must(t, b.agent.Publish("mem.in.team-a.evil.capture", []byte(`{"txet":1}`)))
	}
	must(t, b.agent.Publish("mem.in.team-a.evil.capture", bytes.Repeat([]byte("\xff"), api.MaxRefusedBody+1)))
	all := flood + 1 + 3
	// The other agent may share a lane with the flood, which is full for a moment.
	ask := func(body string) string {
		for start := time.Now(); ; all++ { // a refusal is one more
			got := string(b.ask(t, subject, body).Data)
			if !strings.Contains(got, `"code":"overloaded"`) || time.Since(start) > patience {
				return got
			}
		}
	}
	for i := range 3 {
		if got := ask("x"); !strings.Contains(got, `"status":"created"`) {
			t.Errorf("another agent's capture: %s", got)
		}
		if got := ask(`{"txet":1}`); !strings.Contains(got, `"code":"invalid"`) {
			t.Errorf("another agent's malformed capture, %d: %s", i, got)
		}
	}
	tally := func() (listed []memory.Rejected, counted int) {
		b.f.mu.Lock()
		defer b.f.mu.Unlock()
		for _, n := range b.f.counted {
			counted += n
		}
		return slices.Clone(b.f.rejected), counted
	}
	await := func(what string, done func(listed, counted int) bool) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			listed, counted := tally()
			if done(len(listed), counted) {
				return
			}
			if time.Since(start) > patience {
				t.Fatalf("%s: %d are listed and %d counted of %d", what, len(listed), counted, all)
			}
		}
	}
	await("what does not fit into the queue", func(_, counted int) bool { return counted >= all-maxRefusals-1 })
	open()
	await("all", func(listed, counted int) bool { return listed+counted == all })
	listed, _ := tally()
	for _, r := range listed {
		if len(r.Body) > api.MaxRefusedBody {
			t.Errorf("a body of %d bytes waits to be listed", len(r.Body))
		}
	}
}

// What waited for the goroutine that takes captures was bounded by the client
// library's half million messages: one connection filled a gigabyte.
func TestCapturesThatWaitToBeTakenWereUnbounded(t *testing.T) {
	b := newBench(t, nil)
	b.s.mu.Lock() // nothing can be taken
	for range maxPending + 2000 {
		must(t, b.agent.Publish(subject, []byte("x")))
	}
	must(t, b.agent.Flush())
	for start := time.Now(); b.s.Dropped() == 0 && time.Since(start) < patience; {
		time.Sleep(5 * time.Millisecond)
	}
	waiting, _, err := b.s.taking.sub.Pending()
	b.s.mu.Unlock()
	if err != nil || waiting > maxPending || b.s.Dropped() == 0 {
		t.Errorf("%d wait, %d were dropped, %v", waiting, b.s.Dropped(), err)
	}
	// What comes while as many wait is dropped, too, and has no answer.
	for start := time.Now(); waiting > maxPending/2 && time.Since(start) < patience; time.Sleep(5 * time.Millisecond) {
		waiting, _, err = b.s.taking.sub.Pending()
		must(t, err)
	}
	if got := string(b.ask(t, subject, "x").Data); !strings.Contains(got, `"status":`) {
		t.Errorf("the next: %s", got)
	}
}
