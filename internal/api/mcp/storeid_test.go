package mcp

import (
	"testing"
	"time"

	"mneme/memory"
)

// TestWhatAnIDIsMadeOf: what is one memory has one id, however it is written, and what is two has two.
func TestWhatAnIDIsMadeOf(t *testing.T) {
	at := func(s string) *time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	seen := map[string]int{}
	for i, same := range [][]memory.Capture{
		{{Text: "a"}, {Text: "a", Kind: memory.KindFact, Tags: []string{"t"}, Agent: "ann", Importance: new(0.5)}}, // the node tells agents apart
		{{Text: "b"}}, {{Text: "A"}}, {{Text: "a "}},
		{{Text: "a", Scope: memory.ScopeAgent}},
		{{Text: "a", URI: "x/y"}, {Text: "a", URI: "mem://team/x/y"}},
		{{Text: "a", URI: "x"}}, {{Text: "a", Conversation: "x"}}, {{Text: "a", Conversation: "xy"}}, {{Text: "ya", Conversation: "x"}},
		{{Text: "a", OccurredAt: at("2026-03-01T10:00:00Z")}, {Text: "a", OccurredAt: at("2026-03-01T11:00:00+01:00")}},
		{{Text: "a", OccurredAt: at("2026-03-01T10:00:00.000000001Z")}},
	} {
		for _, item := range same {
			id := idOf("team", &item)
			if of, ok := seen[id]; ok && of != i {
				t.Errorf("%+v has the id of %d", item, of)
			}
			seen[id] = i
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d ids", len(seen))
	}
}
