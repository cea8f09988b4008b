package mcp_test

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/memory"
)

// TestAPrivateMemoryIsItsAgentsAlone looks for a private memory of two lines through whatever reads:
// its agent is given all of it, and another one nothing, nor may that one change it.
func TestAPrivateMemoryIsItsAgentsAlone(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.connect("?namespace=team&agent=ann&profile=full", nil), w.connect("?namespace=team&agent=bob&profile=full", nil)
	const secret = "The spare key of the cellar lies under the third flowerpot.\nIts number is 4711."
	var kept ided
	if text, failed := call(t, ann, "memory_store", map[string]any{"text": secret, "private": true, "tags": []string{"key"}, "conversation": "cellar"}, &kept); failed {
		t.Fatal(text)
	}
	var shared ided
	call(t, ann, "memory_store", map[string]any{"text": "The cellar is swept on Mondays.", "conversation": "cellar"}, &shared)
	for name, c := range map[string]struct {
		tool string
		in   map[string]any
		all  bool // the whole text is given
	}{
		"search":   {"memory_search", map[string]any{"query": "where is the spare key of the cellar?"}, true},
		"tags":     {"memory_search", map[string]any{"query": "key", "tags": []string{"key"}}, true},
		"get":      {"memory_get", map[string]any{"ids": []string{kept.ID}}, true},
		"prefix":   {"memory_get", map[string]any{"ids": []string{kept.ID[:len(kept.ID)-2]}}, true},
		"timeline": {"memory_timeline", map[string]any{"id": shared.ID}, false},
		"centre":   {"memory_timeline", map[string]any{"id": kept.ID}, false},
		"list":     {"memory_list", map[string]any{}, false},
		"recall":   {"memory_recall", map[string]any{"query": "where is the spare key of the cellar?"}, true},
	} {
		text, failed := call(t, ann, c.tool, c.in, nil)
		if failed || !strings.Contains(text, "third flowerpot") || c.all && !strings.Contains(text, "4711") {
			t.Errorf("%s: its agent gets %q", name, text)
		}
		if text, _ := call(t, bob, c.tool, c.in, nil); strings.Contains(text, "flowerpot") || strings.Contains(text, "4711") {
			t.Errorf("%s: another agent gets %q", name, text)
		}
	}
	read := func(s *sdk.ClientSession) string {
		res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mneme://memories/" + kept.ID})
		if err != nil {
			return err.Error()
		}
		return res.Contents[0].Text
	}
	if text := read(ann); !strings.Contains(text, "4711") {
		t.Errorf("its agent reads %q", text)
	}
	if text := read(bob); strings.Contains(text, "flowerpot") || strings.Contains(text, "4711") {
		t.Errorf("another agent reads %q", text)
	}
	completed := func(s *sdk.ClientSession, prefix string) []string {
		res, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "mneme://memories/{id}"}, Argument: sdk.CompleteParamsArgument{Name: "id", Value: prefix}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Completion.Values
	}
	for _, prefix := range []string{kept.ID, kept.ID[:len(kept.ID)-1], strings.ToLower(kept.ID)} {
		if ids := completed(ann, prefix); len(ids) != 1 || ids[0] != kept.ID {
			t.Errorf("%s is completed to %v", prefix, ids)
		}
		if ids := completed(bob, prefix); len(ids) != 0 {
			t.Errorf("another agent has %s completed to %v", prefix, ids)
		}
	}
	for tool, in := range map[string]map[string]any{
		"memory_revise": {"id": kept.ID, "text": "moved"},
		"memory_forget": {"id": kept.ID},
	} {
		if text, failed := call(t, bob, tool, in, nil); !failed {
			t.Errorf("another agent's %s: %s", tool, text)
		}
	}
	if text, failed := call(t, ann, "memory_revise", map[string]any{"id": kept.ID, "text": "It moved.", "version": 7}, nil); !failed {
		t.Errorf("a version that it does not have: %s", text)
	}
	if text, failed := call(t, ann, "memory_get", map[string]any{"ids": []string{kept.ID}}, nil); failed || !strings.Contains(text, "4711") {
		t.Errorf("what became of it: %s", text)
	}
}

// TestAnIDIsAllThatIsToldOfAPrivateSource: its agent may have a memory of the team name a private one as
// what it was made from. Others read that id, and nothing that it names: they are answered as for an id
// that nothing has.
func TestAnIDIsAllThatIsToldOfAPrivateSource(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.connect("?namespace=team&agent=ann&profile=full", nil), w.connect("?namespace=team&agent=bob&profile=full", nil)
	const secret, nothing = "The spare key of the cellar lies under the third flowerpot.", "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	private, _ := storing(t, ann, map[string]any{"text": secret, "private": true, "tags": []string{"cellar"}, "conversation": "cellar", "uri": "keys/cellar"})
	shared, _ := storing(t, ann, map[string]any{"text": "The cellar can be opened when ann is away.", "derived_from": []string{private.ID}, "conversation": "cellar"})
	if text, failed := call(t, bob, "memory_get", map[string]any{"ids": []string{shared.ID}}, nil); failed || !strings.Contains(text, private.ID) {
		t.Errorf("where it comes from: %s", text)
	}
	tells := func(what, text string) {
		if strings.Contains(text, "flowerpot") || strings.Contains(text, "keys/cellar") {
			t.Errorf("%s tells %s", what, text)
		}
	}
	for tool, in := range map[string]map[string]any{
		"memory_get": {"ids": []string{private.ID}}, "memory_timeline": {"id": private.ID}, "memory_revise": {"id": private.ID, "text": "It moved."}, "memory_forget": {"id": private.ID},
		"memory_store": {"text": "Made from it.", "derived_from": []string{private.ID}},
	} {
		text, failed := call(t, bob, tool, in, nil)
		for k, v := range in { // what an id of nothing is answered
			if v == private.ID {
				in[k] = nothing
			} else if _, ok := v.([]string); ok {
				in[k] = []string{nothing}
			}
		}
		if none, _ := call(t, bob, tool, in, nil); !failed || text != strings.ReplaceAll(none, nothing, private.ID) {
			t.Errorf("%s: %s\nof nothing: %s", tool, text, none)
		}
		tells(tool, text)
	}
	for tool, in := range map[string]map[string]any{
		"memory_search": {"query": secret, "conversation": "cellar"}, "memory_recall": {"query": secret}, "memory_list": {"conversation": "cellar"}, "memory_timeline": {"id": shared.ID},
	} {
		text, failed := call(t, bob, tool, in, nil)
		if failed || !strings.Contains(text, "when ann is away") {
			t.Errorf("%s: %s", tool, text)
		}
		tells(tool, text)
	}
	for _, as := range []string{"", "bob"} {
		read := client.ReadOptions{As: as}
		for _, id := range []string{private.ID, nothing} {
			_, got := w.api.Get(t.Context(), "team", id, client.GetOptions{ReadOptions: read, Version: 1})
			_, history := w.api.History(t.Context(), "team", id, read)
			if memory.CodeOf(got) != memory.CodeNotFound || memory.CodeOf(history) != memory.CodeNotFound {
				t.Errorf("%q gets %v, %v", as, got, history)
			}
		}
		audit, err := w.api.Audit(t.Context(), "team", client.AuditOptions{ReadOptions: read})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range audit.Rows {
			if row.RecordID == private.ID {
				t.Errorf("%q is shown %+v", as, row)
			}
		}
	}
	// What it was made from may be added to, by others too: they need not see it.
	if _, err := w.api.Revise(t.Context(), "team", shared.ID, memory.Revision{Tags: &[]string{"keys"}}, client.WriteOptions{As: "bob"}); err != nil {
		t.Error(err)
	}
	if rec := w.record(shared.ID, "bob"); !slices.Equal(rec.DerivedFrom, []string{private.ID}) {
		t.Errorf("%+v", rec)
	}
}
