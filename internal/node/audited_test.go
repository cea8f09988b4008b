package node

import (
	"context"
	"strings"
	"testing"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/memory"
)

// auditing is a node, or one of several, that is asked for memories for prompts.
type auditing struct {
	t *testing.T
	n *Node
}

func (a auditing) capture(namespace string, c memory.Capture) string {
	a.t.Helper()
	resp, err := a.n.changes.Capture(a.t.Context(), namespace, []memory.Capture{c}, api.CaptureOptions{}, memory.WaitApplied)
	if err != nil || resp.Results[0].Error != nil {
		a.t.Fatalf("%+v, %v", resp, err)
	}
	return resp.Results[0].RecordID
}

// inject searches for a prompt and gives the ids of what it got.
func (a auditing) inject(as string, namespaces ...string) (ids []string, err error) {
	req := memory.SearchRequest{Query: "when do deploys happen", As: as, Purpose: memory.PurposeInject, All: true}
	var resp memory.SearchResponse
	if len(namespaces) == 1 {
		resp, err = gather{a.n}.Search(a.t.Context(), memory.Access{Namespace: namespaces[0], As: as}, req)
	} else {
		resp, err = gather{a.n}.SearchNamespaces(a.t.Context(), memory.Access{As: as}, memory.SearchNamespaces{Namespaces: namespaces, SearchRequest: req})
	}
	for _, h := range resp.Results {
		ids = append(ids, h.ID)
	}
	return ids, err
}

func (a auditing) set(namespace, value string) {
	a.t.Helper()
	if _, err := a.n.changes.ChangeNamespace(a.t.Context(), namespace, memory.PatchNamespace{Settings: map[string]*string{"audit.injections": &value}}); err != nil {
		a.t.Fatal(err)
	}
}

// told gives what is told of audited reads, newest first, each as "agent scope: ids".
func (a auditing) told(namespace, as string, req memory.AuditedReadsRequest) string {
	a.t.Helper()
	page, err := gather{a.n}.AuditedReads(a.t.Context(), memory.Access{Namespace: namespace, As: as}, req)
	if err != nil {
		a.t.Fatal(err)
	}
	var out []string
	for _, r := range page.Reads {
		var ids []string
		for _, g := range r.Given {
			ids = append(ids, g.RecordID)
		}
		out = append(out, r.Agent+" "+string(r.Scope)+": "+strings.Join(ids, " "))
	}
	return strings.Join(out, "\n")
}

// TestReadsForPromptsAreAudited where the namespace says so: each is told of before it is
// answered, by the scope of what it gave, also after what it gave was forgotten and erased,
// after a restart and after a rebuild.
func TestReadsForPromptsAreAudited(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	cfg.Namespaces = []string{"default", "other"}
	a := auditing{t, open(t, cfg)}
	ctx := t.Context()
	team := a.capture("default", memory.Capture{Agent: "ann", Text: "deploys happen on Tuesdays"})
	own := a.capture("default", memory.Capture{Agent: "ann", Text: "deploys happen without me", Scope: memory.ScopeAgent})
	hers := a.capture("default", memory.Capture{Agent: "ann", Text: "deploys happen when Ada says so", Subject: "ada"})
	elsewhere := a.capture("other", memory.Capture{Agent: "ann", Text: "deploys happen elsewhere"})
	got := func(want int, as string, namespaces ...string) {
		t.Helper()
		if ids, err := a.inject(as, namespaces...); err != nil || len(ids) != want {
			t.Fatalf("%v as %q: %q, %v", namespaces, as, ids, err)
		}
	}
	got(2, "", "default")
	if a.told("default", "ann", memory.AuditedReadsRequest{}) != "" {
		t.Fatal("a read is audited though nobody said so")
	}
	if at := a.n.served[0].state.Cursor(); at.FeatureLevel() != events.BaseLevel {
		t.Errorf("level %d", at.FeatureLevel())
	}
	a.set("default", "on")
	if at := a.n.served[0].state.Cursor(); at.FeatureLevel() < events.ReadLevel {
		t.Errorf("switched on at level %d", at.FeatureLevel())
	}
	got(2, "", "default")
	got(3, "ann", "default")
	got(4, "ann", "default", "other")
	if _, err := (gather{a.n}).Search(ctx, memory.Access{Namespace: "default"}, memory.SearchRequest{Query: "deploys"}); err != nil {
		t.Fatal(err)
	}
	if _, err := (gather{a.n}).List(ctx, memory.Access{Namespace: "default"}, memory.ListRequest{}); err != nil {
		t.Fatal(err)
	}
	page, err := gather{a.n}.AuditedReads(ctx, memory.Access{Namespace: "default", As: "ann"}, memory.AuditedReadsRequest{})
	if err != nil || len(page.Reads) != 5 {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, want := range []struct {
		agent string
		scope memory.Scope
		given []string
	}{
		{"ann", memory.ScopeAgent, []string{own}}, {"ann", memory.ScopeTeam, []string{team, hers}},
		{"ann", memory.ScopeAgent, []string{own}}, {"ann", memory.ScopeTeam, []string{team, hers}}, {"", memory.ScopeTeam, []string{team, hers}},
	} {
		r := page.Reads[i]
		if r.Agent != want.agent || r.Scope != want.scope || len(r.Given) != len(want.given) || r.QueryHash == "" || r.QueryHash != page.Reads[0].QueryHash {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
		for _, g := range r.Given {
			if !strings.Contains(strings.Join(want.given, " "), g.RecordID) || g.Version != 1 || g.RecordID == elsewhere {
				t.Errorf("%d gave %+v, want %q", i, g, want.given)
			}
		}
	}
	if got := a.told("other", "ann", memory.AuditedReadsRequest{}); got != "" {
		t.Errorf("of the namespace that has nothing audited: %s", got)
	}
	if got := a.told("default", "bob", memory.AuditedReadsRequest{Record: own}); got != "" {
		t.Errorf("another agent is told of what ann got of her own: %s", got)
	}
	rows, err := gather{a.n}.Audit(ctx, memory.Access{Namespace: "default"}, memory.AuditRequest{Actor: "ann"})
	if last := rows.Rows[len(rows.Rows)-1]; err != nil || last.Type != "memory.read" || last.Outcome != "applied" || last.Position != page.Reads[1].Position {
		t.Errorf("%+v, %v", last, err)
	}

	if _, err := a.n.changes.Forget(ctx, "default", "ann", team, 0); err != nil {
		t.Fatal(err)
	}
	if err := a.n.Erase(ctx, "default", "ada"); err != nil {
		t.Fatal(err)
	}
	before := a.told("default", "ann", memory.AuditedReadsRequest{})
	if !strings.Contains(before, team) || !strings.Contains(a.told("default", "", memory.AuditedReadsRequest{Record: hers}), hers) {
		t.Errorf("after forgetting and erasing: %s", before)
	}
	hash := func() string {
		v := a.n.served[0].state.View()
		defer v.Close()
		return v.Hash().String()
	}
	was := hash()
	shut(t, a.n)
	a.n = open(t, cfg)
	if _, err := a.n.operator.Rebuild(ctx, func(uint64, uint64) {}); err != nil {
		t.Fatal(err)
	}
	if now := a.told("default", "ann", memory.AuditedReadsRequest{}); now != before || hash() != was {
		t.Errorf("after a restart and a rebuild:\n%s\nbefore:\n%s", now, before)
	}

	// Switched off, nothing more is noted, and what was stays.
	a.set("default", "off")
	got(1, "ann", "default")
	if now := a.told("default", "ann", memory.AuditedReadsRequest{}); now != before {
		t.Errorf("switched off: %s", now)
	}
}

// TestListsForPromptsAreAudited, too: a conversation may begin with what nobody searched for.
func TestListsForPromptsAreAudited(t *testing.T) {
	t.Parallel()
	a := auditing{t, open(t, quiet(t.TempDir()))}
	a.set("default", "on")
	team := a.capture("default", memory.Capture{Agent: "ann", Kind: memory.KindDecision, Text: "we use Postgres"})
	own := a.capture("default", memory.Capture{Agent: "ann", Kind: memory.KindDecision, Text: "I use tabs", Scope: memory.ScopeAgent})
	a.capture("default", memory.Capture{Agent: "ann", Text: "deploys happen on Tuesdays"})
	req := memory.ListRequest{Filter: memory.Filter{Kinds: []memory.Kind{memory.KindDecision}}, Purpose: memory.PurposeInject}
	list := func() (memory.RecordList, error) {
		return gather{a.n}.List(t.Context(), memory.Access{Namespace: "default", As: "ann"}, req)
	}
	if got, err := list(); err != nil || len(got.Records) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, want := a.told("default", "ann", memory.AuditedReadsRequest{}), "ann agent: "+own+"\nann team: "+team; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	req.Purpose = ""
	if _, err := list(); err != nil || strings.Count(a.told("default", "ann", memory.AuditedReadsRequest{}), "\n") != 1 {
		t.Errorf("a list for nothing is audited, or %v", err)
	}
	req.Purpose = memory.PurposeInject
	a.n.draining.Store(true)
	if got, err := list(); err == nil || len(got.Records) != 0 {
		t.Errorf("without a note it gives %+v, %v", got, err)
	}
	a.n.draining.Store(false)
}

// TestAReadThatCannotBeNotedGivesNothing: where the note of a read cannot be written, it is
// refused, with a hint; reads that need none are answered.
func TestAReadThatCannotBeNotedGivesNothing(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	cfg.Namespaces, cfg.Shards = []string{"default", "other"}, 2
	a := auditing{t, open(t, cfg)}
	here, _ := a.n.home("default")
	if there, _ := a.n.home("other"); here == there {
		t.Fatal("both namespaces lie on one shard")
	}
	a.capture("default", memory.Capture{Agent: "ann", Text: "deploys happen on Tuesdays"})
	a.capture("other", memory.Capture{Agent: "ann", Text: "deploys happen on Fridays"})
	a.set("default", "on")
	if _, err := a.inject("ann", "default"); err != nil {
		t.Fatal(err)
	}
	before := a.told("default", "ann", memory.AuditedReadsRequest{})
	a.n.draining.Store(true)
	for _, namespaces := range [][]string{{"default"}, {"other", "default"}} {
		ids, err := a.inject("ann", namespaces...)
		if len(ids) != 0 {
			t.Errorf("%q were given", ids)
		}
		refusedWith(t, err, memory.CodeUnavailable, `audited in namespace "default"`, "no memory was given out")
		if memory.AsError(err).RetryAfter == 0 {
			t.Error("it does not say when to try again")
		}
	}
	if ids, err := a.inject("ann", "other"); err != nil || len(ids) != 1 {
		t.Errorf("where nothing is audited: %q, %v", ids, err)
	}
	if _, err := (gather{a.n}).Search(t.Context(), memory.Access{Namespace: "default"}, memory.SearchRequest{Query: "deploys"}); err != nil {
		t.Errorf("a read that is for no prompt: %v", err)
	}
	a.n.draining.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (gather{a.n}).Search(ctx, memory.Access{Namespace: "default"}, memory.SearchRequest{Query: "deploys", Purpose: memory.PurposeInject}); err == nil {
		t.Error("whose caller is gone is answered")
	}
	if _, err := a.inject("ann", "default"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if now := a.told("default", "ann", memory.AuditedReadsRequest{}); !strings.HasSuffix(now, before) || now == before {
		t.Errorf("noted are %s", now)
	}
}

// TestAuditingIsNotSwitchedOnBelowItsLevel, as on a cluster that is being upgraded, where every
// read for a prompt would be refused from then on; nothing is written.
func TestAuditingIsNotSwitchedOnBelowItsLevel(t *testing.T) {
	t.Parallel()
	n := open(t, quiet(t.TempDir()))
	w := *n.served[0].writes
	w.allow = func(context.Context, *ingest.Writer, uint16) error { return nil } // the hour is waited for
	before, ctx := n.served[0].stands(), t.Context()
	_, err := w.ChangeNamespace(ctx, "default", memory.PatchNamespace{Settings: map[string]*string{"audit.injections": new("on")}})
	refusedWith(t, err, memory.CodeUnavailable, "feature level 6", "memctl upgrade finish")
	_, err = w.CreateNamespace(ctx, memory.CreateNamespace{Name: "made", Settings: map[string]string{"audit.injections": "on"}})
	refusedWith(t, err, memory.CodeUnavailable, "feature level 6", "memctl upgrade finish")
	_, err = w.NoteRead(ctx, "default", events.ReadNote{Team: &events.Read{Purpose: events.ReadInject}})
	if memory.CodeOf(err) == "" {
		t.Error("a read is noted")
	}
	if now := n.served[0].stands(); now != before {
		t.Errorf("it went on from %s to %s", before, now)
	}
	if _, err := w.ChangeNamespace(ctx, "default", memory.PatchNamespace{Settings: map[string]*string{"audit.injections": new("off")}}); err != nil {
		t.Errorf("switched off: %v", err)
	}
	if _, err := n.changes.CreateNamespace(ctx, memory.CreateNamespace{Name: "made", Settings: map[string]string{"audit.injections": "on"}}); err != nil {
		t.Errorf("where nothing has to wait: %v", err)
	}
}

// TestAuditedReadsOfACluster: whichever node answers, the one that leads notes it, and all tell
// of it.
func TestAuditedReadsOfACluster(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	lead := tr.leader()
	tr.writes(lead, "one", "deploys happen on Tuesdays")
	await(t, "the upgrade is finished", func() bool {
		_, err := tr.nodes[lead].operator.FinishUpgrade(t.Context())
		return err == nil
	})
	await(t, "it is switched on", func() bool {
		_, err := tr.nodes[lead].changes.ChangeNamespace(t.Context(), "default", memory.PatchNamespace{Settings: map[string]*string{"audit.injections": new("on")}})
		return err == nil
	})
	tr.same()
	for i := range tr.nodes {
		a := auditing{t, tr.nodes[i]}
		agent := tr.cfgs[i].Cluster.NodeID
		await(t, "a node has a read noted", func() bool {
			_, err := a.inject(agent, "default")
			return err == nil
		})
		if got := a.told("default", "", memory.AuditedReadsRequest{Agent: agent}); !strings.HasPrefix(got, agent+" team: ") {
			t.Errorf("%s tells of its own read: %q", agent, got)
		}
	}
	tr.same()
	want := auditing{t, tr.nodes[0]}.told("default", "", memory.AuditedReadsRequest{})
	for i := range tr.nodes {
		if got := (auditing{t, tr.nodes[i]}).told("default", "", memory.AuditedReadsRequest{}); got != want || strings.Count(got, "team: ") < 3 {
			t.Errorf("%s tells\n%s\nthe first one\n%s", tr.cfgs[i].Cluster.NodeID, got, want)
		}
	}
}
