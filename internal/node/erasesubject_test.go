package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/internal/keyring"
	"mneme/memory"
)

// doomedSubject fills a namespace with memories about several subjects. The words
// are said of Ada only: in her memories, in one about her and Bob, in one derived
// from hers, in a revision, in what was forgotten, in a refused message.
func doomedSubject(t *testing.T, n *Node) (ids []string) {
	t.Helper()
	w := erasedWords
	send := func(body map[string]any) string {
		t.Helper()
		body["agent"] = "tester"
		var answer memory.CaptureResponse
		if err := json.Unmarshal([]byte(postOK(t, n, "/v1/namespaces/default/events", body)), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Results[0].RecordID
	}
	for i := range 100 {
		send(map[string]any{"text": fmt.Sprintf("the gardener waters row %d", i), "subject": fmt.Sprint("bob", i%5)})
		if i%3 != 0 {
			continue
		}
		ids = append(ids, send(map[string]any{"text": fmt.Sprintf("%s saw %s, entry %d", w[0], w[1], i), "subject": "ada", "id": fmt.Sprint("ada-", i),
			"uri": fmt.Sprintf("mem://default/%s/%d", w[2], i), "tags": []string{w[3]}, "conversation": w[4]}))
	}
	// Of Bob, but derived from Ada's; and what is derived from that.
	shared := send(map[string]any{"text": "bob heard of " + w[0], "subject": "bob1", "derived_from": ids[:1]})
	ids = append(ids, shared, send(map[string]any{"text": "somebody heard that bob heard of " + w[1], "derived_from": []string{shared}}))
	text := "now " + w[5]
	if _, err := n.writes.Revise(t.Context(), "default", "tester", ids[1], memory.Revision{Text: &text}, 0, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := n.writes.Forget(t.Context(), "default", "tester", ids[2], 0); err != nil {
		t.Fatal(err)
	}
	for subject, op := range map[string]string{
		"":    `{"create_entities":[{"name":"garden","entityType":"place","observations":["has rows"]}]}`,
		"ada": `{"create_entities":[{"name":"` + w[0] + `","entityType":"` + w[1] + `","observations":["` + w[2] + `"]}]},{"create_relations":[{"from":"garden","to":"` + w[3] + `","relationType":"` + w[4] + `"}]}`,
	} {
		if status, answer := post(t, n, "/v1/namespaces/default/graph", `{"agent":"tester","subject":"`+subject+`","operations":[`+op+`]}`); status != 200 {
			t.Fatalf("a change of the graph: %d %s", status, answer)
		}
	}
	if g := graphHolds(t, n, w[2]); len(g.Entities) != 1 {
		t.Fatalf("%+v", g)
	}
	if status, answer := post(t, n, "/v1/namespaces/default/events", `{"agent":"tester","subject":"ada","text":"`+w[5]+`","kind":`); status != 400 {
		t.Fatalf("a body that is no JSON: %d %s", status, answer)
	}
	if err := n.served[0].state.Purge(t.Context()); err != nil { // writes the rows to tables
		t.Fatal(err)
	}
	return ids
}

// graphHolds searches the graph.
func graphHolds(t *testing.T, n *Node, query string) memory.Graph {
	t.Helper()
	g, err := n.reads.Graph(t.Context(), memory.Access{Namespace: "default"}, memory.GraphRequest{Query: &query})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func onlyOthersAreFound(t *testing.T, n *Node, ids []string) {
	t.Helper()
	for _, w := range erasedWords {
		for _, hit := range find(t, n, w) { // vectors find something for any word
			if !strings.HasPrefix(hit, "the gardener") {
				t.Errorf("%q still finds %q", w, hit)
			}
		}
		if g := graphHolds(t, n, w); len(g.Entities) > 0 {
			t.Errorf("%q still finds in the graph %+v", w, g)
		}
	}
	if g := graphHolds(t, n, ""); len(g.Entities) != 1 || len(g.Relations) != 0 {
		t.Errorf("the graph of the others is %+v", g)
	}
	if got := find(t, n, "gardener waters row"); len(got) < 5 {
		t.Errorf("of the others are found: %v", got)
	}
	for i, id := range ids {
		want := 410
		if i == 2 {
			want = 404 // it was forgotten before
		}
		if got := get(t, n, "/v1/namespaces/default/records/"+id+"?as=tester"); got != want {
			t.Errorf("record %d: status %d, want %d", i, got, want)
		}
	}
	status, answer := post(t, n, "/v1/namespaces/default/events", `{"agent":"tester","id":"ada-3","subject":"ada","text":"again"}`)
	if status != 410 {
		t.Errorf("an id that was used for what is erased: %d %s", status, answer)
	}
	list, err := n.operator.Rejected(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Rejected {
		if m.Body != "" {
			t.Errorf("a refused message about the erased is listed: %+v", m)
		}
	}
}

// What was about an erased subject was found in old tables, logs, snapshots and
// Raft's log, in postings that were written anew without it, and in what was
// derived from it and named somebody else.
func TestErasedSubjectLeavesTheFiles(t *testing.T) {
	dir := t.TempDir()
	n, before := openErasing(t, dir)
	ids := doomedSubject(t, n)
	older := image(t, dir)
	if err := n.Erase(t.Context(), "default", "nobody"); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("a subject that nobody spoke of: %v", err)
	}
	for range 2 { // again does nothing
		if err := n.Erase(t.Context(), "default", "ada"); err != nil {
			t.Fatal(err)
		}
	}
	erased(t, n)
	onlyOthersAreFound(t, n, ids)
	nothingLeft(t, image(t, dir), older)
	rebuiltAndClosed(t, n, dir, *before, older)
	// Today's master key and node secret open no keyring of before.
	mixed := image(t, dir)
	for _, name := range []string{"keyring.v1", "keyring.v1.copy"} {
		b, err := os.ReadFile(filepath.Join(older, "keys", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(mixed, "keys", name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if k, err := keyring.Open(keyring.Options{Dir: mixed}); err == nil {
		_ = k.Close()
		t.Error("the older keyring opens with today's master key")
	}
	n = open(t, quiet(dir))
	onlyOthersAreFound(t, n, ids)
}

// A node was killed within the erasure of a subject: the next start goes on.
func TestSubjectsErasureGoesOnAfterAKill(t *testing.T) {
	var ids []string
	erasureGoesOn(t, func(n *Node) { ids = doomedSubject(t, n) },
		func(n *Node) error { return n.Erase(t.Context(), "default", "ada") },
		func(n *Node) { onlyOthersAreFound(t, n, ids) },
		eraseKeys, eraseTables, eraseState, eraseRaft, eraseEnd)
}

// TestSharedRowsWereLeftOutOfThePurge: postings and bitmaps that were written anew
// without the erased subject leave no deletion, so the plan has to say which
// partitions hold them. In a small state the purge of the deletions rewrites them by
// chance; here that is done before.
func TestSharedRowsWereLeftOutOfThePurge(t *testing.T) {
	cfg := quiet(t.TempDir())
	var n *Node
	var before, after []string
	tables := func(name string) []string { // those that are in use
		dir := filepath.Join(t.TempDir(), name)
		err := n.served[0].state.Checkpoint(dir)
		names, globErr := filepath.Glob(filepath.Join(dir, "*.sst"))
		if err = errors.Join(err, globErr); err != nil {
			t.Error(err)
		}
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		return names
	}
	cfg.Parts.EraseStep = func(step string) {
		switch step {
		case eraseTables:
			if err := n.served[0].state.Purge(context.Background()); err != nil {
				t.Error(err)
			}
			before = tables("before")
		case eraseState:
			after = tables("after")
		}
	}
	n = open(t, cfg)
	doomedSubject(t, n)
	if err := n.Erase(t.Context(), "default", "ada"); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	if !slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(after, name) }) {
		t.Errorf("none of the tables %v was written anew: %v", before, after)
	}
}
