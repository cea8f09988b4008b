package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// sharded is a configuration with several shards.
func sharded(dir string, shards int) Config {
	cfg := quiet(dir)
	cfg.Shards = shards
	return cfg
}

// makes makes namespaces and writes a memory to each. It returns the shards by name.
func makes(t *testing.T, n *Node, names ...string) map[string]uint16 {
	t.Helper()
	on := map[string]uint16{}
	for _, name := range names {
		ns, err := n.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: name})
		if err != nil || ns.Name != name || ns.Embedder.Provider == "" {
			t.Fatalf("%s: %+v %v", name, ns, err)
		}
		at, err := events.ParsePosition(captured(t, n, name, "a memory of "+name))
		if err != nil {
			t.Fatal(err)
		}
		on[name] = at.Shard
	}
	return on
}

// homeOn reports whether a namespace's home is on a shard.
func homeOn(t *testing.T, s *served, namespace string) bool {
	t.Helper()
	v := s.state.View()
	e, ok := v.Namespace(namespace)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return ok && e.Shard == s.id
}

func captured(t *testing.T, n *Node, namespace, text string) string {
	t.Helper()
	var r memory.CaptureResponse
	await(t, text+" to be written to "+namespace, func() bool { // it is sent again with its id, as clients do
		var err error
		r, err = n.changes.Capture(t.Context(), namespace, []memory.Capture{{Agent: "tester", ID: strings.ReplaceAll(text, " ", "-"), Text: text}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if err == nil && r.Results[0].Error != nil {
			err = memory.Errorf(r.Results[0].Error.Code, "%s", r.Results[0].Error.Detail)
		}
		switch memory.CodeOf(err) {
		case "":
			return true
		case memory.CodeUnavailable, memory.CodeOutcomeUnknown:
			return false // a node may just be elected
		}
		t.Fatalf("%s: %v", namespace, err)
		return false
	})
	return r.Results[0].Position
}

// holds checks that a search in each namespace finds its memory and nothing else.
func holds(t *testing.T, n *Node, names ...string) {
	t.Helper()
	for _, name := range names {
		r, err := n.reads.Search(t.Context(), memory.Access{Namespace: name}, memory.SearchRequest{Query: "memory"})
		if err != nil || len(r.Results) != 1 || r.Namespace != name || r.Results[0].Text != "a memory of "+name {
			t.Errorf("%s: %+v %v", name, r.Results, err)
		}
	}
}

func hashes(t *testing.T, n *Node) []string {
	t.Helper()
	st, err := n.operator.Status(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range st.Shards {
		out = append(out, s.StateHash)
	}
	return out
}

// Namespaces are spread over the shards of a node, each is written and read where it
// lives, and all of it is there after a start, a rebuild and a restore.
func TestNamespacesAreSpreadOverShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := open(t, sharded(dir, 3))
	names := []string{"amber", "birch", "cedar", "delta", "ember"}
	on := makes(t, n, names...)
	if want := map[string]uint16{"amber": 1, "birch": 2, "cedar": 0, "delta": 1, "ember": 2}; fmt.Sprint(on) != fmt.Sprint(want) {
		t.Fatalf("they are on %v, want %v", on, want) // default is on 0
	}
	holds(t, n, names...)
	list, err := n.reads.Namespaces(t.Context(), memory.NamespacesRequest{})
	if err != nil || len(list.Namespaces) != 6 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, ns := range list.Namespaces {
		if ns.Records != 1 && ns.Name != "default" || ns.Embedder.Provider == "" {
			t.Errorf("%+v", ns)
		}
	}
	if _, err := n.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "birch"}); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("made twice: %v", err)
	}
	before := hashes(t, n)
	if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || len(r.Shards) != 3 || slices.ContainsFunc(r.Shards, func(s memory.RebuildShard) bool { return s.Before != s.StateHash || s.StateHash != before[s.ID] }) {
		t.Errorf("rebuild: %+v %v", r, err)
	}
	if r, err := n.operator.VerifyLog(t.Context(), nil); err != nil || len(r.Shards) != 3 || slices.ContainsFunc(r.Shards, func(s memory.VerifyShard) bool { return !s.OK }) {
		t.Errorf("verify: %+v %v", r, err)
	}
	if r, err := n.operator.Doctor(t.Context()); err != nil || !r.OK {
		t.Errorf("doctor: %+v %v", r, err)
	}
	shut(t, n)

	off := Offline{Config: quiet("")}
	if r, err := off.Doctor(t.Context(), dir); err != nil || !r.OK {
		t.Errorf("doctor of the stopped node: %+v %v", r, err)
	}
	backup, restored := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	log, keys := filepath.Join(backup, "log"), filepath.Join(backup, "keys")
	if r, err := off.Backup(t.Context(), dir, log, keys, nil); err != nil || strings.Count(r.Position, ",") != 2 {
		t.Fatalf("backup: %+v %v", r, err)
	}
	if r, err := off.Restore(t.Context(), restored, log, keys, nil); err != nil || len(r.Shards) != 3 {
		t.Fatalf("restore: %+v %v", r, err)
	}
	for _, dir := range []string{dir, restored} {
		again := open(t, quiet(dir)) // takes the number that is there
		if got := hashes(t, again); !slices.Equal(got, before) {
			t.Errorf("the hashes are %v, were %v", got, before)
		}
		holds(t, again, names...)
		shut(t, again)
	}
}

// The number of shards is for ever.
func TestNumberOfShardsIsKept(t *testing.T) {
	for _, c := range []struct{ made, asked int }{{3, 1}, {3, 2}, {0, 2}} {
		dir := t.TempDir()
		shut(t, open(t, sharded(dir, c.made)))
		if e := fails(t, sharded(dir, c.asked), StartUsage); !strings.Contains(e.Message, fmt.Sprintf("has %d shards, not %d", max(c.made, 1), c.asked)) || !strings.Contains(e.Hint, "leave --shards out") {
			t.Errorf("%+v: %s; %s", c, e.Message, e.Hint)
		}
		shut(t, open(t, sharded(dir, max(c.made, 1))))
	}
}

// What was deleted is gone from the directory and from its shard, its name is free, and
// its keys are destroyed once its home has ended.
func TestDeletedNamespaceLeavesItsShard(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	if on := makes(t, n, "doomed")["doomed"]; on != 1 {
		t.Fatalf("it is on %d", on)
	}
	id := idOf(t, n, "doomed")
	at, err := n.changes.DeleteNamespace(t.Context(), "doomed")
	if err != nil || !strings.HasPrefix(at, "p1.") {
		t.Fatalf("%s %v", at, err)
	}
	if _, err := n.reads.Search(t.Context(), memory.Access{Namespace: "doomed", AtLeast: at}, memory.SearchRequest{Query: "memory"}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("it is read: %v", err)
	}
	await(t, "its keys to be destroyed", func() bool { _, err := n.keys.Namespace(id); return err != nil })
	erased(t, n)
	makes(t, n, "doomed")
	holds(t, n, "doomed")
}

func idOf(t *testing.T, n *Node, namespace string) events.ID {
	t.Helper()
	v := n.directory().state.View()
	defer v.Close()
	e, ok := v.Namespace(namespace)
	if !ok {
		t.Fatalf("there is no %s", namespace)
	}
	return e.ID
}

// A crash between the directory's event and that of the home is made good by the next
// start: what was placed is made with its settings, what was deleted ends, also what was
// placed and deleted before it was made: that was waited for in vain, and its keys stayed.
func TestHomeIsSettledAfterACrash(t *testing.T) {
	dir := t.TempDir()
	n := open(t, sharded(dir, 2))
	makes(t, n, "doomed", "stays", "also")
	w, err := n.served[0].replica.Writer()
	if err != nil {
		t.Fatal(err)
	}
	n.served[1].replica.Stop(t.Context()) // its settler ends
	if _, _, err := w.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateNamespace(t.Context(), "late", map[string]string{"retention.note": ""}, ""); err == nil {
		t.Fatal("a setting that does not exist was taken")
	}
	if _, err := w.CreateNamespace(t.Context(), "late", map[string]string{"embedder.provider": "none"}, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"more", "brief"} { // one on each shard
		if _, err := w.CreateNamespace(t.Context(), name, nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	brief := idOf(t, n, "brief")
	if _, _, err := w.DeleteNamespace(t.Context(), "brief"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.keys.Namespace(brief); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateNamespace(t.Context(), "brief", nil, ""); err != nil {
		t.Fatal(err)
	}
	s, known := n.home("late")
	if !known || s.id != 1 || homeOn(t, s, "late") || !homeOn(t, s, "doomed") {
		t.Fatal("the crash would come after the home's events")
	}
	shut(t, n)

	n = open(t, quiet(dir))
	await(t, "the shard to settle", func() bool { return homeOn(t, n.served[1], "late") && !homeOn(t, n.served[1], "doomed") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := (&others{n}).settled(ctx, projections.Entry{ID: brief, Shard: 1, Deleted: true}); err != nil {
		t.Errorf("a namespace that was deleted before its home was made: %v", err)
	}
	await(t, "its keys to be destroyed", func() bool { _, err := n.keys.Namespace(brief); return err != nil })
	second, _ := n.home("brief")
	if err := (&others{n}).settled(ctx, projections.Entry{ID: idOf(t, n, "brief"), Shard: second.id}); err != nil || second.id != 1 {
		t.Error(second.id, err)
	}
	captured(t, n, "brief", "a memory of the second one")
	captured(t, n, "late", "a memory of late")
	holds(t, n, "late", "stays")
	if ns, err := n.reads.Namespace(t.Context(), "late"); err != nil || ns.Embedder.Provider != "none" && ns.Embedder.Provider != "" {
		t.Errorf("%+v %v", ns, err)
	}
	if _, err := n.reads.Namespace(t.Context(), "doomed"); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("it is there: %v", err)
	}
}

// A shard's writer takes nothing for a namespace that its directory has deleted, although
// its own state still has it, and an event says where the directory stood.
func TestWriterAsksTheDirectory(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	makes(t, n, "doomed")
	s := n.served[1]
	v := s.state.View()
	last := v.Position()
	env, _, err := v.Envelope(refOf(last))
	if err = firstOf(err, v.Close()); err != nil || env.Directory.Seq == 0 {
		t.Errorf("the directory stood at %v: %v", env.Directory, err)
	}
	w, err := s.replica.Writer()
	if err != nil {
		t.Fatal(err)
	}
	resume, err := w.Pause(t.Context()) // its settler waits
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.served[0].replica.Writer()
	if err == nil {
		_, _, err = d.DeleteNamespace(t.Context(), "doomed")
	}
	if err != nil || !homeOn(t, s, "doomed") {
		t.Fatal("the home has ended", err)
	}
	_, err = s.changes.Capture(t.Context(), "doomed", []memory.Capture{{Agent: "a", Text: "late"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("it is taken: %v", err)
	}
	resume()
	await(t, "the home to end", func() bool { return !homeOn(t, s, "doomed") })
}

// A read waits for positions of several shards.
func TestReadWaitsForSeveralShards(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	makes(t, n, "amber")
	p0, p1 := captured(t, n, "default", "one"), captured(t, n, "amber", "two")
	r, err := n.reads.List(t.Context(), memory.Access{Namespace: "amber", AtLeast: p0 + "," + p1}, memory.ListRequest{})
	if err != nil || len(r.Records) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	far := events.Position{Seq: 1 << 40}.String()
	if _, err := n.reads.List(ctx, memory.Access{Namespace: "amber", AtLeast: p1 + "," + far}, memory.ListRequest{}); err == nil {
		t.Error("it did not wait for the other shard")
	}
	if _, err := n.reads.List(t.Context(), memory.Access{Namespace: "amber", AtLeast: "p7.0.1.0"}, memory.ListRequest{}); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("a shard that is not there: %v", err)
	}
}

// The beginning of a namespace's events is p0.0.0.0, as the README says, wherever it lies.
// It was refused for a namespace on another shard than the first.
func TestEventsFromTheBeginningOnAnotherShard(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	if on := makes(t, n, "amber"); on["amber"] != 1 {
		t.Fatal(on)
	}
	captured(t, n, "amber", "two")
	for _, from := range []string{"p0.0.0.0", "p1.0.0.0", ""} {
		seen := 0
		err := n.reads.Events(t.Context(), memory.Access{Namespace: "amber"}, from, false, func(e memory.Event) error {
			if e.Type == "io.mneme.memory.captured.v1" {
				seen++
			}
			return nil
		})
		if err != nil || seen != 2 {
			t.Errorf("from %q: %d captures, %v", from, seen, err)
		}
		if _, err := n.reads.Audit(t.Context(), memory.Access{Namespace: "amber"}, memory.AuditRequest{From: from}); err != nil {
			t.Errorf("the audit from %q: %v", from, err)
		}
	}
	if err := n.reads.Events(t.Context(), memory.Access{Namespace: "amber"}, "p0.0.1.0", false, nil); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("a position of another shard: %v", err)
	}
}

// A search goes over namespaces of all shards at once, and says where it read each of them.
func TestSearchOverShards(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	on := makes(t, n, "amber", "birch", "cedar")
	if on["amber"] == on["birch"] {
		t.Fatalf("they are on %v", on)
	}
	p0, p1 := captured(t, n, "birch", "the last one"), captured(t, n, "amber", "the very last one")
	ask := func(a memory.Access, req memory.SearchRequest, names ...string) (memory.SearchResponse, error) {
		return n.reads.SearchNamespaces(t.Context(), a, memory.SearchNamespaces{Namespaces: names, SearchRequest: req})
	}
	found := func(a memory.Access, names ...string) (hits []string) {
		t.Helper()
		r, err := ask(a, memory.SearchRequest{Query: "a memory"}, names...)
		if err != nil || r.Namespace != "" {
			t.Fatalf("%q %v", r.Namespace, err)
		}
		for _, at := range strings.Split(r.Position, ",") {
			if p, err := events.ParsePosition(at); err != nil || int(p.Shard) > 1 {
				t.Errorf("position %s", r.Position)
			}
		}
		if _, err := ask(memory.Access{AtLeast: r.Position}, memory.SearchRequest{Query: "x"}, "birch"); err != nil {
			t.Errorf("its position is not good for at_least: %v", err)
		}
		for _, h := range r.Results {
			if h.Text != "a memory of "+h.Namespace {
				t.Errorf("%q is said to be of %s", h.Text, h.Namespace)
			}
			hits = append(hits, h.Namespace)
		}
		return hits
	}
	for _, a := range []memory.Access{{}, {AtLeast: p0 + "," + p1}, {Consistency: memory.ConsistencyLinearizable}} {
		for _, names := range [][]string{{"amber", "birch", "cedar"}, {"cedar", "birch", "amber", "birch"}} {
			if got := found(a, names...); len(got) != 3 {
				t.Errorf("%+v: found in %v", a, got)
			}
		}
		if got := found(a, "amber"); !slices.Equal(got, []string{"amber"}) {
			t.Errorf("found in %v", got)
		}
	}
	_, err := ask(memory.Access{}, memory.SearchRequest{Query: "a memory"}, "amber", "nowhere")
	if memory.CodeOf(err) != memory.CodeNotFound || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	far := memory.Access{AtLeast: events.Position{Shard: on["birch"], Seq: 1 << 40}.String()}
	req := memory.SearchNamespaces{Namespaces: []string{"amber", "birch"}, SearchRequest: memory.SearchRequest{Query: "x"}}
	if _, err := n.reads.SearchNamespaces(ctx, far, req); err == nil {
		t.Error("it did not wait for the other shard")
	}
	if _, err := n.changes.DeleteNamespace(t.Context(), "birch"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.reads.SearchNamespaces(t.Context(), memory.Access{}, req); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("what was deleted is searched: %v", err)
	}
}

// A node with one shard searches several namespaces too.
func TestSearchOverNamespacesOfOneShard(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	makes(t, n, "amber", "birch")
	req := memory.SearchNamespaces{Namespaces: []string{"birch", "amber", "birch"}, SearchRequest: memory.SearchRequest{Query: "a memory"}}
	r, err := n.reads.SearchNamespaces(t.Context(), memory.Access{}, req)
	if err != nil || len(r.Results) != 2 || r.Position != n.served[shard0].stands() || !slices.Equal(r.Namespaces, []string{"amber", "birch"}) {
		t.Errorf("%+v %v", r, err)
	}
}

// What is deleted on any shard leaves the files of all.
func TestErasureGoesOverShards(t *testing.T) {
	t.Parallel()
	n := open(t, sharded(t.TempDir(), 3))
	makes(t, n, "amber", "birch")
	before, _ := n.keys.Storage().Current()
	for _, name := range []string{"amber", "birch"} {
		if _, err := n.changes.DeleteNamespace(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	erased(t, n)
	if now, _ := n.keys.Storage().Current(); now == before {
		t.Error("the storage key is the same")
	}
	for _, s := range n.served[1:] {
		if done, err := n.eraser.done(s); err != nil || done == 0 {
			t.Errorf("shard %d: %d %v", s.id, done, err)
		}
	}
	captured(t, n, "default", "life goes on")
}

func refOf(p events.Position) projections.Ref { return projections.Ref{Seq: p.Seq, Index: p.Index} }

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Each event is announced once, wherever its namespace lives, also the end of one that
// is an event on two shards.
func TestFeedOverShards(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	conn, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	sub, err := conn.SubscribeSync("mem.feed.>")
	if err = firstOf(err, conn.Flush()); err != nil {
		t.Fatal(err)
	}
	makes(t, n, "amber")
	captured(t, n, "default", "one")
	if _, err := n.changes.DeleteNamespace(t.Context(), "amber"); err != nil {
		t.Fatal(err)
	}
	captured(t, n, "default", "last")
	got := map[string]int{}
	// The end of amber is an event of the first shard, too, before its last capture.
	for got["mem.feed.default.team.captured"] < 2 || got["mem.feed.amber.team.deleted"] == 0 {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err, got)
		}
		got[m.Subject]++
	}
	want := map[string]int{"mem.feed.amber.team.created": 1, "mem.feed.amber.team.captured": 1,
		"mem.feed.amber.team.deleted": 1, "mem.feed.default.team.captured": 2}
	if got["mem.feed.default.team.created"] == 1 { // by the start, whose news may come while there is a subscriber
		delete(got, "mem.feed.default.team.created")
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A delete looked in the directory before it was decided which namespace it ends. One that
// was made in between was acknowledged as deleted with a position of the directory, and while
// its shard still held its keys.
func TestDeletedWhileItIsMade(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2)) // "default" lives on shard 0, and each "brief" on shard 1
	for range 20 {
		made := make(chan error, 1)
		go func() {
			_, err := n.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "brief"})
			made <- err
		}()
		at, err := n.changes.DeleteNamespace(t.Context(), "brief")
		for memory.CodeOf(err) == memory.CodeNotFound {
			at, err = n.changes.DeleteNamespace(t.Context(), "brief")
		}
		if err != nil || !strings.HasPrefix(at, "p1.") {
			t.Errorf("deleted at %q: %v", at, err)
		}
		if err := <-made; err != nil && memory.CodeOf(err) != memory.CodeNotFound { // it may be deleted before it can be told of
			t.Error(err)
		}
	}
}

// Once a delete has answered, the home on another shard has ended and its keys are destroyed.
func TestDeleteWaitsForTheEndOfTheHome(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	for range 5 {
		if _, err := n.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "brief"}); err != nil {
			t.Fatal(err)
		}
		id := idOf(t, n, "brief")
		if s, known := n.home("brief"); !known || s.id != 1 {
			t.Fatal("it lives on the first shard")
		}
		if _, err := n.changes.DeleteNamespace(t.Context(), "brief"); err != nil {
			t.Fatal(err)
		}
		if homeOn(t, n.served[1], "brief") {
			t.Error("it is acknowledged as deleted, and its home is there")
		}
		if _, err := n.keys.Namespace(id); !settings.IsErased(err) {
			t.Errorf("it is acknowledged as deleted, and its keys are there: %v", err)
		}
	}
}
