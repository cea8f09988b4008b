package natsapi

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"mneme/memory"
)

// TestEveryFieldReachesTheReader sends requests with every field set, encoded from
// the shapes of package memory.
func TestEveryFieldReachesTheReader(t *testing.T) {
	b := newBench(t, nil)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := at.Add(time.Hour)
	two, five, half := 2, 5, 0.5
	access := memory.Access{Namespace: "team", As: "ann", AtLeast: "p0.0.1.0", Consistency: memory.ConsistencyLinearizable}
	fit := memory.Fit{MaxText: &five, Fields: []string{"text", "uri"}, Budget: &five}
	timeline := memory.TimelineRequest{ID: "r", Before: &two, After: &five, Fit: fit}
	search := memory.SearchRequest{Query: "q", Syntax: memory.SyntaxPlain, As: access.As, Limit: &five, Mode: memory.ModeText, MinScore: &half, All: true, AsOf: "p0.0.1.0",
		Filter: &memory.Filter{Agents: []string{"ann"}, Kinds: []memory.Kind{memory.KindFact}, Tags: []string{"t"}, Since: &at, Until: &later,
			Scope: memory.ScopeAgent, Conversation: "k"},
		AtLeast: access.AtLeast, Consistency: access.Consistency, Explain: true, Purpose: memory.PurposeInject, Vector: []float64{1},
		Parts: map[memory.Part]bool{memory.PartDates: false}, Fit: fit}
	several := memory.SearchNamespaces{Namespaces: []string{"team", "sales"}, SearchRequest: search}
	changing := change{ID: "r", As: "ann", IfVersion: 3}
	text, tags, kind, role, sources := "new", []string{"t"}, memory.KindFact, "user", []string{"01JD0000000000000000000001"}
	metadata := json.RawMessage(`{"a":1}`)
	revision := memory.Revision{Text: &text, Kind: &kind, Role: &role, URI: &text, Tags: &tags, Conversation: &text, Importance: &half,
		OccurredAt: &at, DerivedFrom: &sources, Metadata: &metadata}
	nowhere := access
	nowhere.Namespace = ""
	for _, tt := range []struct {
		name    string
		request any
		want    []any
	}{
		{"team.search", search, []any{access, search}},
		{"search", several, []any{nowhere, several}},
		{"team.get", getRequest{access, memory.GetRequest{ID: "r", Version: 3}}, []any{access, "r", 3}},
		{"team.get", getRequest{access, memory.GetRequest{URI: "a/b"}}, []any{access, "mem://team/a/b", 0}},
		{"team.timeline", timelineRequest{access, timeline}, []any{access, timeline}},
		{"team.revise", reviseRequest{changing, revision}, []any{"team", "ann", "r", revision, 3, ""}},
		{"team.forget", forgetRequest{changing}, []any{"team", "ann", "r", 3}},
	} {
		body, err := json.Marshal(tt.request)
		must(t, err)
		answer := b.ask(t, "mem.api."+tt.name, string(body))
		b.f.mu.Lock()
		if !reflect.DeepEqual(b.f.args, tt.want) {
			t.Errorf("%s: the reader got %+v\nwant %+v\nanswer %s", tt.name, b.f.args, tt.want, answer.Data)
		}
		b.f.mu.Unlock()
	}
	for _, request := range []any{search, several, getRequest{access, memory.GetRequest{ID: "r", URI: "u", Version: 3}}, timelineRequest{access, timeline}, changing, revision} {
		v := reflect.ValueOf(request)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%T.%s has no value in this test", request, v.Type().Field(i).Name)
			}
		}
	}
}
