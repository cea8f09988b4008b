package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mneme/memory"
)

const eventsPath = "/v1/namespaces/team/events"

func TestCaptureOne(t *testing.T) {
	tests := []struct {
		name, query, body string
		headers           []string
		status            int
		call              string
	}{
		{"plain", "", `{"text":"hi","agent":"a1"}`, nil, 200, `Capture "team" [{"agent":"a1","text":"hi"}] {"Origin":"capture","Source":null} ""`},
		{"agent header", "", `{"text":"hi"}`, []string{"Mneme-Agent", "a2"}, 200, `[{"agent":"a2","text":"hi"}]`},
		{"agent parameter", "?as=a3", `{"text":"hi"}`, []string{"Mneme-Agent", "a2"}, 200, `[{"agent":"a3","text":"hi"}]`},
		{"body's agent", "?as=a3", `{"text":"hi","agent":"a1"}`, nil, 200, `[{"agent":"a1","text":"hi"}]`},
		{"key", "", `{"text":"hi"}`, []string{"Idempotency-Key", "K"}, 200, `[{"id":"K","text":"hi"}]`},
		{"body's id", "", `{"text":"hi","id":"mine"}`, []string{"Idempotency-Key", "K"}, 200, `[{"id":"mine","text":"hi"}]`},
		{"accepted", "?wait=accepted", `{"text":"hi"}`, nil, 202, `"accepted"`},
		{"searchable", "?wait=searchable", `{"text":"hi"}`, nil, 200, `"searchable"`},
		{"import", "?origin=import", `{"text":"hi"}`, nil, 200, `"Origin":"import"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			rec := b.do("POST", eventsPath+tt.query, tt.body, tt.headers...)
			if rec.Code != tt.status || !strings.Contains(b.lastCall(), tt.call) {
				t.Errorf("%d %s\ncall %s\nwant %s", rec.Code, rec.Body, b.lastCall(), tt.call)
			}
			if len(b.f.rejected) != 0 {
				t.Errorf("rejected: %+v", b.f.rejected)
			}
		})
	}
}

func TestCaptureOneFailsWithItsProblem(t *testing.T) {
	for _, code := range memory.Codes() {
		b := newBench(t, nil)
		b.f.capture = func(context.Context, []memory.Capture, memory.Wait) (memory.CaptureResponse, error) {
			return memory.CaptureResponse{Results: []memory.CaptureResult{{Status: memory.StatusRejected,
				Error: &memory.ItemError{Code: code, Detail: "because", Hint: "do this"}}}}, nil
		}
		rec := b.do("POST", eventsPath, `{"text":"secret","agent":"a1"}`)
		p := problemOf(t, rec)
		if rec.Code != code.HTTPStatus() || p.Code != code || p.Hint != "do this" {
			t.Errorf("%s: %d %+v", code, rec.Code, p)
		}
		want := memory.Rejected{Namespace: "team", Agent: "a1", Code: code, Reason: p.Detail, Size: 30, Via: "rest",
			Body: `{"text":"secret","agent":"a1"}`, WellFormed: true} // for the keys that it names
		if code == memory.CodeOutcomeUnknown {
			if len(b.f.rejected) != 0 {
				t.Errorf("what may have happened was listed as refused")
			}
			continue
		}
		if len(b.f.rejected) != 1 || b.f.rejected[0] != want {
			t.Errorf("%s: rejected %+v, want %+v", code, b.f.rejected, want)
		}
	}
}

func TestPendingVectorsAreAnsweredWith202(t *testing.T) {
	for _, resp := range []memory.CaptureResponse{
		{Vectors: "pending", Results: []memory.CaptureResult{{Status: "created"}}},
		{Results: []memory.CaptureResult{{Status: "created", Vectors: "pending"}}},
	} {
		b := newBench(t, nil)
		b.f.capture = func(context.Context, []memory.Capture, memory.Wait) (memory.CaptureResponse, error) { return resp, nil }
		if rec := b.do("POST", eventsPath+"?wait=searchable", `{"text":"x"}`); rec.Code != http.StatusAccepted || !strings.Contains(rec.Body.String(), `"vectors":"pending"`) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
}

func TestArrayIsAnsweredItemByItem(t *testing.T) {
	b := newBench(t, nil)
	rec := b.do("POST", eventsPath, ` [{"text":"a"},{"txet":"b"},{"text":""},{"text":"c","id":"own"},5]`, "Idempotency-Key", "K", "Mneme-Agent", "me")
	if rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	if want := `[{"id":"K/0","agent":"me","text":"a"},{"id":"K/2","agent":"me","text":""},{"id":"own","agent":"me","text":"c"}]`; !strings.Contains(b.lastCall(), want) {
		t.Errorf("call %s\nwant %s", b.lastCall(), want)
	}
	want := `{"position":"p0.1.42.0","results":[` +
		`{"id":"K/0","record_id":"` + recordID + `","position":"p0.1.42.0","status":"created"},` +
		`{"status":"rejected","error":{"code":"invalid","detail":"\"txet\" at byte 1 is not a known field","hint":"known fields are agent, conversation, derived_from, id, importance, kind, metadata, occurred_at, role, scope, subject, tags, text, uri"}},` +
		`{"status":"rejected","error":{"code":"invalid","detail":"text is empty"}},` +
		`{"id":"own","record_id":"` + recordID + `","position":"p0.1.42.2","status":"created"},` +
		`{"status":"rejected","error":{"code":"invalid","detail":"the JSON at byte 0 must be an object, not 5"}}]}` + "\n"
	if rec.Body.String() != want {
		t.Errorf("got  %s\nwant %s", rec.Body, want)
	}
	bodies := ""
	for _, r := range b.f.rejected {
		bodies += fmt.Sprintf("%s %s %d %q %v;", r.Agent, r.Code, r.Size, r.Body, r.WellFormed)
	}
	if want := `me invalid 12 "{\"txet\":\"b\"}" false;me invalid 1 "5" false;me invalid 11 "{\"text\":\"\"}" true;`; bodies != want {
		t.Errorf("rejected %s\nwant     %s", bodies, want)
	}
}

func TestArrayThatFailsWhollyIsStillAnswered(t *testing.T) {
	b := newBench(t, nil)
	rec := b.do("POST", eventsPath, `[{},{"x":1}]`)
	if rec.Code != http.StatusOK || strings.Count(rec.Body.String(), `"rejected"`) != 2 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	b = newBench(t, nil)
	if rec := b.do("POST", eventsPath, `[1,2]`); rec.Code != http.StatusOK || b.lastCall() != "" {
		t.Errorf("%d %s, call %s", rec.Code, rec.Body, b.lastCall())
	}
}

func TestArrayFailsAsAWholeWhenTheRequestDoes(t *testing.T) {
	b := newBench(t, nil)
	b.f.fail["Capture"] = memory.Errorf(memory.CodeNotFound, "there is no namespace %q", "team")
	if p := problemOf(t, b.do("POST", eventsPath, `[{"text":"a"}]`)); p.Code != memory.CodeNotFound {
		t.Errorf("%+v", p)
	}
	if len(b.f.rejected) != 1 {
		t.Errorf("rejected %+v", b.f.rejected)
	}
}

func TestWriterWithTheWrongNumberOfResults(t *testing.T) {
	for _, body := range []string{`{"text":"a"}`, `[{"text":"a"}]`} {
		b := newBench(t, nil)
		b.f.capture = func(context.Context, []memory.Capture, memory.Wait) (memory.CaptureResponse, error) {
			return memory.CaptureResponse{}, nil
		}
		if p := problemOf(t, b.do("POST", eventsPath, body)); p.Code != memory.CodeInternal {
			t.Errorf("%+v", p)
		}
	}
}

func TestLimitsOfCaptures(t *testing.T) {
	tests := map[string]string{
		"items": "[" + strings.Repeat(`{"text":"a"},`, memory.MaxBatchItems) + `{"text":"a"}]`,
		"bytes": `{"text":"` + strings.Repeat("a", memory.MaxBatchBytes) + `"}`,
	}
	for name, body := range tests {
		b := newBench(t, nil)
		rec := b.do("POST", eventsPath, body)
		if p := problemOf(t, rec); rec.Code != http.StatusRequestEntityTooLarge || p.Code != memory.CodeTooLarge || p.Hint == "" {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
		if b.lastCall() != "" || len(b.f.rejected) != 1 || b.f.rejected[0].Code != memory.CodeTooLarge {
			t.Errorf("%s: call %q, rejected %d", name, b.lastCall(), len(b.f.rejected))
		}
	}
	b := newBench(t, nil)
	full := "[" + strings.Repeat(`{"text":"a"},`, memory.MaxBatchItems-1) + `{"text":"a"}]`
	if rec := b.do("POST", eventsPath, full); rec.Code != http.StatusOK {
		t.Errorf("a full batch: %d", rec.Code)
	}
	if p := problemOf(t, b.do("POST", "/v1/namespaces", `{"name":"`+strings.Repeat("a", maxSmallBody)+`"}`)); p.Code != memory.CodeTooLarge {
		t.Errorf("a large small body: %+v", p)
	}
}

func FuzzCapture(f *testing.F) {
	for _, s := range []string{`{"text":"a"}`, `[{"text":"a"},{"x":1}]`, `[`, `null`, `[null]`, `[[]]`, `{"text":"a","metadata":{"a":[1]}}`, " ", `{"text":"a"}x`} {
		f.Add([]byte(s), "K", "applied")
	}
	f.Fuzz(func(t *testing.T, body []byte, key, wait string) {
		b := newBench(t, nil)
		r := newRequest(t, "POST", eventsPath, body)
		r.Header.Set("Idempotency-Key", key)
		q := r.URL.Query()
		q.Set("wait", wait)
		r.URL.RawQuery = q.Encode()
		rec := newRecorder()
		b.s.ServeHTTP(rec, r)
		switch rec.Code {
		case 200, 202:
			b.validate(typedSchema(t, typed[memory.CaptureResponse]()), rec.Body.String())
		case 400, 413:
			problemOf(t, rec)
		default:
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	})
}
