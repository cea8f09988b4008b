package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// contract is the public table of codes: HTTP status and exit code.
var contract = map[Code][2]int{
	"invalid": {400, 2}, "unauthenticated": {401, 4}, "forbidden": {403, 4}, "not_found": {404, 3}, "conflict": {409, 5},
	"stale_position": {409, 6}, "lost_position": {409, 5}, "gone": {410, 3}, "too_large": {413, 2}, "quota": {429, 4},
	"overloaded": {429, 6}, "unavailable": {503, 6}, "log_diverged": {503, 7}, "no_space": {507, 6}, "outcome_unknown": {504, 6},
	"timeout": {504, 6}, "internal": {500, 1},
}

func TestCodes(t *testing.T) {
	codes := Codes()
	slices.Sort(codes)
	if len(codes) != len(contract) || len(slices.Compact(codes)) != len(contract) {
		t.Errorf("%d codes, the contract has %d", len(codes), len(contract))
	}
	for _, c := range codes {
		want, ok := contract[c]
		if !ok || c.HTTPStatus() != want[0] || c.ExitCode() != want[1] || c.Title() == "" {
			t.Errorf("%s: status %d, exit %d, title %q, want %v", c, c.HTTPStatus(), c.ExitCode(), c.Title(), want)
		}
	}
	if c := Code("new"); c.HTTPStatus() != 500 || c.ExitCode() != 1 {
		t.Error("an unknown code is internal")
	}
}

func TestErrors(t *testing.T) {
	e := Errorf(CodeNotFound, "record %d: %w", 7, io.EOF).WithHint("try %d", 8)
	wrapped := fmt.Errorf("get: %w", e)
	if e.Error() != "record 7: EOF" || e.Hint != "try 8" || !errors.Is(wrapped, io.EOF) {
		t.Error(e, e.Hint)
	}
	if !errors.Is(wrapped, &Error{Code: CodeNotFound}) || errors.Is(wrapped, &Error{Code: CodeGone}) || errors.Is(wrapped, &Error{Code: CodeNotFound, Message: "x"}) {
		t.Error("errors.Is by code")
	}
	if CodeOf(wrapped) != CodeNotFound || CodeOf(io.EOF) != CodeInternal || CodeOf(nil) != "" {
		t.Error("CodeOf")
	}
	if AsError(wrapped) != e || AsError(nil) != nil {
		t.Error("AsError")
	}
	if got := AsError(io.EOF); got.Code != CodeInternal || !errors.Is(got, io.EOF) {
		t.Error(got)
	}
	if got := Errorf(CodeTimeout, "x").WithCause(io.ErrUnexpectedEOF); !errors.Is(got, io.ErrUnexpectedEOF) || got.Error() != "x" {
		t.Error(got)
	}
}

func TestProblemRoundTrip(t *testing.T) {
	for _, code := range Codes() {
		e := Errorf(code, "what happened").WithHint("what to do")
		raw, err := json.Marshal(ProblemOf(fmt.Errorf("op: %w", e)))
		if err != nil {
			t.Fatal(err)
		}
		var p Problem
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if p.Status != code.HTTPStatus() || p.Title != code.Title() || p.Type == "" {
			t.Errorf("%s: %s", code, raw)
		}
		got := p.Err()
		if got.Code != code || got.Hint != e.Hint || got.Message != e.Message && code != CodeInternal {
			t.Errorf("%s comes back as %+v", code, got)
		}
	}
	if p := ProblemOf(errors.New("secret path")); strings.Contains(p.Detail, "secret") || p.Status != 500 {
		t.Errorf("internal details leave the server: %+v", p)
	}
	if got := (Problem{Title: "Bad Gateway", Code: "proxy"}).Err(); got.Code != CodeInternal || got.Message != "Bad Gateway" {
		t.Errorf("%+v", got)
	}
}

// TestShapes holds the names of the JSON fields that users rely on.
func TestShapes(t *testing.T) {
	for want, v := range map[string]any{
		`{"text":"t"}`:         Capture{Text: "t"},
		`{"status":"created"}`: CaptureResult{Status: StatusCreated},
		`{"query":"q"}`:        SearchRequest{Query: "q"},
		`{"type":"about:blank","title":"Gone","status":410,"detail":"d","code":"gone"}`:               ProblemOf(Errorf(CodeGone, "d")),
		`{"record_id":"r","version":2,"position":"p"}`:                                                RevisionResponse{"r", 2, "p"},
		`{"progress":{"done":1,"total":2}}`:                                                           ProgressLine[RebuildReport]{Progress: &Progress{Done: 1, Total: 2}},
		`{"shards":[{"id":0,"position":"p","state_hash":"h","events":3,"took_ms":4}]}`:                RebuildReport{Shards: []RebuildShard{{Position: "p", StateHash: "h", Events: 3, TookMS: 4}}},
		`{"text":"t","record_id":"r","version":1,"position":"p","created_at":"0001-01-01T00:00:00Z"}`: ExportLine{Capture: Capture{Text: "t"}, RecordID: "r", Version: 1, Position: "p"},
		`{"settings":{"search.fusion":null}}`:                                                         PatchNamespace{Settings: map[string]*string{"search.fusion": nil}},
		`{"results":null,"position":"p","took_ms":0,"mode":"text"}`:                                   SearchResponse{Position: "p", Mode: ModeText},
	} {
		raw, err := json.Marshal(v)
		if err != nil || string(raw) != want {
			t.Errorf("%T is %s, want %s", v, raw, want)
		}
		back := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(raw, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), v) {
			t.Errorf("%s comes back as %+v", raw, back.Elem())
		}
	}
}
