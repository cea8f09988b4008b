package client

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"mneme/memory"
)

func one() memory.CaptureResponse {
	return memory.CaptureResponse{Position: "p1", Results: []memory.CaptureResult{{RecordID: "r", Status: memory.StatusCreated}}}
}

// sentIDs returns the ids of every request's captures.
func sentIDs(t *testing.T, rec *recorder) [][]string {
	t.Helper()
	var out [][]string
	for _, r := range rec.requests() {
		var many []memory.Capture
		if strings.HasPrefix(r.Body, "[") {
			if err := json.Unmarshal([]byte(r.Body), &many); err != nil {
				t.Fatal(err)
			}
		} else {
			many = make([]memory.Capture, 1)
			if err := json.Unmarshal([]byte(r.Body), &many[0]); err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		for _, c := range many {
			ids = append(ids, c.ID)
		}
		out = append(out, ids)
	}
	return out
}

func TestEveryCaptureLeavesWithAnID(t *testing.T) {
	n := 0
	next := func() string { n++; return strings.Repeat("k", n) }
	two := memory.CaptureResponse{Results: make([]memory.CaptureResult, 2)}
	cl, rec := serve(t, Options{NewID: next, Agent: "me"}, reply(one()), reply(one()), reply(one()), reply(two), reply(two))
	ctx := t.Context()
	items := []memory.Capture{{Text: "a"}, {Text: "b", ID: "own", Agent: "x"}}
	_, _ = cl.Capture(ctx, "ns", memory.Capture{Text: "a"}, CaptureOptions{})
	_, _ = cl.Capture(ctx, "ns", memory.Capture{Text: "a", ID: "own"}, CaptureOptions{})
	_, _ = cl.Capture(ctx, "ns", memory.Capture{Text: "a"}, CaptureOptions{IdempotencyKey: "key", Wait: memory.WaitAccepted})
	_, _ = cl.CaptureBatch(ctx, "ns", items, CaptureOptions{})
	_, _ = cl.CaptureBatch(ctx, "ns", items, CaptureOptions{IdempotencyKey: "key"})
	want := [][]string{{"k"}, {"own"}, {"key"}, {"kk/0", "own"}, {"key/0", "own"}}
	if got := sentIDs(t, rec); !reflect.DeepEqual(got, want) {
		t.Errorf("ids %q, want %q", got, want)
	}
	if items[0].ID != "" || items[0].Agent != "" {
		t.Error("the caller's items were changed")
	}
	last := rec.requests()[4]
	if last.Body != `[{"id":"key/0","agent":"me","text":"a"},{"id":"own","agent":"x","text":"b"}]` || last.Agent != "" {
		t.Errorf("sent %+v", last)
	}
	if q := rec.requests()[2].Query; q != "wait=accepted" {
		t.Errorf("query %q", q)
	}
}

func TestRandomIDsDiffer(t *testing.T) {
	a, b := randomID(), randomID()
	if a == b || len(a) != 32 {
		t.Errorf("ids %q and %q", a, b)
	}
}

func TestALostAnswerIsAskedForOnceMoreUnderTheSameID(t *testing.T) {
	cl, rec := serve(t, Options{}, lose, reply(one()))
	resp, err := cl.Capture(t.Context(), "ns", memory.Capture{Text: "a"}, CaptureOptions{})
	if err != nil || resp.Results[0].RecordID != "r" {
		t.Fatalf("%+v, %v", resp, err)
	}
	ids := sentIDs(t, rec)
	if len(ids) != 2 || ids[0][0] != ids[1][0] || ids[0][0] == "" {
		t.Fatalf("ids %q", ids)
	}
}

func TestAnUnknownOutcomeStaysUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		code    memory.Code
		sent    int
	}{
		"lost twice":           {[]http.HandlerFunc{lose, lose}, memory.CodeOutcomeUnknown, 2},
		"lost, then busy":      {[]http.HandlerFunc{lose, refuse(memory.Errorf(memory.CodeOverloaded, "busy"))}, memory.CodeOutcomeUnknown, 2},
		"lost, then cut off":   {[]http.HandlerFunc{lose, text(`{"position":`)}, memory.CodeOutcomeUnknown, 2},
		"lost, then refused":   {[]http.HandlerFunc{lose, refuse(memory.Errorf(memory.CodeConflict, "no"))}, memory.CodeConflict, 2},
		"the node is not sure": {[]http.HandlerFunc{refuse(memory.Errorf(memory.CodeOutcomeUnknown, "?")), reply(one())}, "", 2},
		"busy":                 {[]http.HandlerFunc{refuse(memory.Errorf(memory.CodeOverloaded, "busy")), reply(one())}, memory.CodeOverloaded, 1},
	} {
		cl, rec := serve(t, Options{}, c.answers...)
		_, err := cl.Capture(t.Context(), "ns", memory.Capture{ID: "my-id"}, CaptureOptions{})
		if memory.CodeOf(err) != c.code || len(rec.requests()) != c.sent {
			t.Errorf("%s: %v (%s) after %d requests", name, err, memory.CodeOf(err), len(rec.requests()))
		}
		if c.code == memory.CodeOutcomeUnknown && !strings.Contains(memory.AsError(err).Hint, "sent again with the same id, my-id") {
			t.Errorf("%s: hint %q", name, memory.AsError(err).Hint)
		}
	}
}

func TestWritesThatCouldHappenTwiceAreNotRepeated(t *testing.T) {
	cl, rec := serve(t, Options{}, lose)
	_, err := cl.Revise(t.Context(), "ns", "r", memory.Revision{}, WriteOptions{})
	if memory.CodeOf(err) != memory.CodeOutcomeUnknown || len(rec.requests()) != 1 {
		t.Fatalf("%v after %d requests", err, len(rec.requests()))
	}
}

func TestBatchesMustMatchTheirAnswers(t *testing.T) {
	cl, rec := serve(t, Options{}, reply(one()))
	if _, err := cl.CaptureBatch(t.Context(), "ns", nil, CaptureOptions{}); memory.CodeOf(err) != memory.CodeInvalid || len(rec.requests()) != 0 {
		t.Errorf("empty: %v", err)
	}
	if _, err := cl.CaptureBatch(t.Context(), "ns", make([]memory.Capture, 2), CaptureOptions{}); memory.CodeOf(err) != memory.CodeInternal {
		t.Errorf("too few results: %v", err)
	}
}
