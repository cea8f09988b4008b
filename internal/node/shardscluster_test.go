package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/memory"
)

// leaderOf waits until a node leads a shard, and returns its number.
func (tr *trio) leaderOf(shard int) (at int) {
	tr.t.Helper()
	await(tr.t, fmt.Sprintf("a leader of shard %d", shard), func() bool {
		at = slices.IndexFunc(tr.nodes, func(n *Node) bool { return n.served[shard].replica.Leads() })
		return at >= 0
	})
	return at
}

// moves has a node lead a shard.
func (tr *trio) moves(shard, to int) {
	tr.t.Helper()
	await(tr.t, fmt.Sprintf("node %d to lead shard %d", to+1, shard), func() bool {
		for i, n := range tr.nodes {
			if i != to && n.served[shard].candidacy().Leads() {
				_ = n.served[shard].handOver(tr.t.Context(), tr.nodes[to].dir.name()) // it is asked again
			}
		}
		return tr.nodes[to].served[shard].replica.Leads()
	})
}

// Three nodes with two shards, of which one node alone was told: any node takes any
// request, whoever leads the shard of the namespace.
func TestSeveralShardsOnSeveralNodes(t *testing.T) {
	t.Parallel()
	tr := newTrioOf(t, 2)
	names := []string{"amber", "birch", "cedar"}
	on := map[string]uint16{}
	for i, n := range tr.nodes {
		if len(n.served) != 2 {
			t.Fatalf("node %d has %d shards", i+1, len(n.served))
		}
		for name, shard := range makes(t, n, names[i]) {
			on[name] = shard
		}
	}
	if want := (map[string]uint16{"amber": 1, "birch": 0, "cedar": 1}); fmt.Sprint(on) != fmt.Sprint(want) {
		t.Errorf("they are on %v, want %v", on, want)
	}
	// The leader of the second shard is another node than that of the first.
	first := tr.leaderOf(0)
	second := (first + 1) % 3
	tr.moves(1, second)
	var positions []string
	for i, n := range tr.nodes {
		for _, name := range names {
			positions = append(positions, captured(t, n, name, fmt.Sprintf("what node %d writes to %s", i+1, name)))
		}
	}
	for i, n := range tr.nodes {
		for _, name := range names {
			r, err := n.reads.List(t.Context(), memory.Access{Namespace: name, AtLeast: strings.Join(positions, ",")}, memory.ListRequest{})
			if err != nil || len(r.Records) != 4 {
				t.Errorf("node %d, %s: %d records, %v", i+1, name, len(r.Records), err)
			}
		}
		for _, a := range []memory.Access{{AtLeast: strings.Join(positions, ",")}, {Consistency: memory.ConsistencyLinearizable}} {
			limit := 20
			req := memory.SearchNamespaces{Namespaces: names, SearchRequest: memory.SearchRequest{Query: "what node writes, a memory", All: true, Limit: &limit}}
			r, err := n.reads.SearchNamespaces(t.Context(), a, req)
			if err != nil || len(r.Results) != 12 || !strings.HasPrefix(r.Position, "p0.") || !strings.Contains(r.Position, ",p1.") {
				t.Errorf("node %d finds %d at %s in several namespaces: %v", i+1, len(r.Results), r.Position, err)
			}
		}
		list, err := n.reads.Namespaces(t.Context(), memory.NamespacesRequest{})
		if err != nil || len(list.Namespaces) != 4 {
			t.Errorf("node %d: %+v %v", i+1, list, err)
		}
	}
	third := 3 - first - second
	status, err := tr.nodes[third].operator.Cluster(t.Context())
	if err != nil || len(status.Shards) != 2 || status.Shards[0].Leader != tr.id(first) || status.Shards[1].Leader != tr.id(second) || len(status.Shards[1].Replicas) != 3 {
		t.Errorf("%+v %v", status, err)
	}
	if at, err := tr.nodes[third].changes.DeleteNamespace(t.Context(), "cedar"); err != nil || !strings.HasPrefix(at, "p1.") {
		t.Errorf("%s %v", at, err)
	}
	for i, n := range tr.nodes {
		_, err := n.reads.List(t.Context(), memory.Access{Namespace: "cedar", Consistency: memory.ConsistencyLinearizable}, memory.ListRequest{})
		if memory.CodeOf(err) != memory.CodeNotFound {
			t.Errorf("node %d reads what was deleted: %v", i+1, err)
		}
	}
	tr.same()
	if got, err := tr.nodes[third].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(third)}); err != nil || got.Leader != tr.id(third) {
		t.Fatalf("%+v %v", got, err)
	}
	if tr.leaderOf(0) != third || tr.leaderOf(1) != third {
		t.Error("not both shards were handed over")
	}
	if got, err := tr.nodes[first].operator.DrainNode(t.Context(), memory.DrainNode{Node: tr.id(third)}); err != nil || !got.Drained {
		t.Fatalf("%+v %v", got, err)
	}
	if tr.leaderOf(0) == third || tr.leaderOf(1) == third {
		t.Error("a drained node leads")
	}
}

// follows reads what happens in a namespace after a position, at one node until that
// goes away, then at another one, each time from the last position that it saw, until it
// has seen a capture with an id. It returns the ids of the captures that it saw.
func follows(ctx context.Context, namespace, from, until string, nodes ...*Node) (seen []string, err error) {
	enough := errors.New("enough")
	for at := 0; ctx.Err() == nil; at = min(at+1, len(nodes)-1) {
		err = nodes[at].reads.Events(ctx, memory.Access{Namespace: namespace}, from, true, func(e memory.Event) error {
			from = e.Position
			if e.Type != "io.mneme.memory.captured.v1" {
				return nil
			}
			var c memory.Capture
			if err := json.Unmarshal(e.Data, &c); err != nil {
				return err
			}
			if seen = append(seen, c.ID); c.ID == until {
				return enough
			}
			return nil
		})
		switch code := memory.CodeOf(err); {
		case err == enough:
			return seen, nil
		case code != memory.CodeUnavailable && code != memory.CodeStalePosition: // the node stops, or has not come so far
			return seen, err
		}
	}
	return seen, ctx.Err()
}

// A node that leads both shards is stopped while others write to both: what was
// acknowledged is there once, in order, and a namespace that was placed is made. Who follows
// events at that node goes on at another one and sees each once; a live feed announces none
// twice.
func TestLeaderOfTwoShardsIsLost(t *testing.T) {
	t.Parallel()
	tr := newTrioOf(t, 2)
	makes(t, tr.nodes[0], "amber")
	lead := tr.leaderOf(1)
	if _, err := tr.nodes[lead].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(lead)}); err != nil {
		t.Fatal(err)
	}
	writer := tr.nodes[(lead+1)%3]
	const each = 40
	conn, err := nats.Connect(writer.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	live, err := conn.SubscribeSync("mem.feed.*.team.captured")
	if err = firstOf(err, conn.Flush()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var following sync.WaitGroup
	for _, name := range []string{"default", "amber"} {
		from := captured(t, writer, name, "before")
		following.Go(func() {
			var want []string
			for i := range each {
				want = append(want, fmt.Sprintf("m-%02d", i))
			}
			got, err := follows(ctx, name, from, want[each-1], tr.nodes[lead], writer)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("who follows %s saw %v: %v", name, got, err)
			}
		})
	}
	var writing sync.WaitGroup
	half := make(chan struct{}, 2)
	for _, name := range []string{"default", "amber"} {
		writing.Go(func() {
			for i := range each {
				if i == each/4 {
					half <- struct{}{}
				}
				tr.sends(writer, name, fmt.Sprintf("m-%02d", i))
			}
		})
	}
	<-half
	<-half
	shut(t, tr.nodes[lead])
	writing.Wait()
	following.Wait()
	await(t, "a namespace to be made", func() bool {
		_, err := writer.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "late"})
		return err == nil || memory.CodeOf(err) == memory.CodeConflict // an earlier attempt was told nothing
	})
	await(t, "it to be there", func() bool { _, err := writer.reads.Namespace(t.Context(), "late"); return err == nil })
	for name, more := range map[string]int{"default": 1, "amber": 2} {
		r, err := writer.reads.List(t.Context(), memory.Access{Namespace: name, As: "tester", Consistency: memory.ConsistencyLinearizable}, memory.ListRequest{Limit: 100})
		if err != nil || len(r.Records) != each+more {
			t.Errorf("%s: %d records, %v", name, len(r.Records), err)
		}
	}
	announced := map[string]int{}
	for _, name := range []string{"default", "amber"} {
		for last := captured(t, writer, name, "after"); announced[last] == 0; {
			m, err := live.NextMsg(patience)
			if err != nil {
				t.Fatal(err)
			}
			var e memory.Event
			if err := json.Unmarshal(m.Data, &e); err != nil {
				t.Fatal(err)
			}
			if announced[e.Position]++; announced[e.Position] > 1 {
				t.Errorf("%s was announced twice", e.Position)
			}
		}
	}
	t.Logf("%d of %d captures were announced", len(announced), 2*(each+2))
	tr.nodes[lead] = nil
	tr.open(lead)
	tr.same()
}

// sends captures one memory until it is acknowledged, as a client does.
func (tr *trio) sends(n *Node, namespace, id string) {
	tr.t.Helper()
	await(tr.t, id+" in "+namespace, func() bool {
		r, err := n.changes.Capture(tr.t.Context(), namespace, []memory.Capture{{Agent: "tester", ID: id, Text: "memory " + id}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		return err == nil && r.Results[0].Error == nil
	})
}

// Who leads two shards more than another one gives it one, and nobody gives for less.
func TestLeadersAreSpread(t *testing.T) {
	members := []string{"n1", "n2", "n3"}
	for _, c := range []struct {
		leaders string
		shard   int
		heirs   string
	}{
		{"n1", 0, ""},
		{"n1 n1", 1, "n2 n3"},
		{"n1 n2", 0, ""},
		{"n1 n1 n2", 1, "n3"},
		{"n1 n1 n1 n2", 2, "n3 n2"},
		{"n1 n2 n1 n3", 0, ""},
		{"n2 n2 n2", 0, ""},
	} {
		shard, heirs := surplus("n1", strings.Fields(c.leaders), members)
		if strings.Join(heirs, " ") != c.heirs || c.heirs != "" && shard != c.shard {
			t.Errorf("%s: shard %d to %v", c.leaders, shard, heirs)
		}
	}
	if _, heirs := surplus("n1", []string{"n1", "n1", ""}, members); heirs != nil {
		t.Errorf("while a shard has no leader: %v", heirs)
	}
}

// everyWrite calls each method of changes for a namespace; what one makes the next one
// uses. The namespaces that it makes and deletes it calls by the prefix.
var everyWrite = map[string]func(ctx context.Context, c changes, namespace, prefix string) error{
	"Capture": func(ctx context.Context, c changes, namespace, prefix string) error {
		_, err := captureTo(ctx, c, namespace, prefix)
		return err
	},
	"Revise": func(ctx context.Context, c changes, namespace, prefix string) error {
		id, err := captureTo(ctx, c, namespace, prefix+"-revised")
		text := "another text"
		if err == nil {
			_, err = c.Revise(ctx, namespace, "tester", id, memory.Revision{Text: &text}, 1, prefix+"-revision")
		}
		return err
	},
	"Forget": func(ctx context.Context, c changes, namespace, prefix string) error {
		id, err := captureTo(ctx, c, namespace, prefix+"-forgotten")
		if err == nil {
			_, err = c.Forget(ctx, namespace, "tester", id, 1)
		}
		return err
	},
	"ChangeGraph": func(ctx context.Context, c changes, namespace, prefix string) error {
		_, err := c.ChangeGraph(ctx, namespace, memory.GraphChange{ID: prefix + "-graph", Agent: "tester",
			Operations: []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{{Name: prefix, Type: "test", Observations: []string{"is written"}}}}}})
		return err
	},
	"NoteRead": func(ctx context.Context, c changes, namespace, _ string) error {
		keep := "48h"
		ns, err := c.ChangeNamespace(ctx, namespace, memory.PatchNamespace{Settings: map[string]*string{"embedder.keep_old": &keep}})
		if err != nil {
			return err
		}
		id, err := events.ParseID(ns.ID)
		if err == nil {
			_, err = c.NoteRead(ctx, namespace, events.ReadNote{Namespace: id, Agent: "tester", Team: &events.Read{Purpose: events.ReadInject}})
		}
		return err
	},
	"CreateNamespace": func(ctx context.Context, c changes, _, prefix string) error {
		_, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: prefix})
		return err
	},
	"ChangeNamespace": func(ctx context.Context, c changes, namespace, _ string) error {
		keep := "48h"
		_, err := c.ChangeNamespace(ctx, namespace, memory.PatchNamespace{Settings: map[string]*string{"embedder.keep_old": &keep}})
		return err
	},
	"DeleteNamespace": func(ctx context.Context, c changes, _, prefix string) error {
		_, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: prefix + "-deleted"})
		if err == nil {
			_, err = c.DeleteNamespace(ctx, prefix+"-deleted")
		}
		return err
	},
	"SwitchEmbedder": func(ctx context.Context, c changes, namespace, _ string) error {
		_, _, err := c.SwitchEmbedder(ctx, namespace, memory.SwitchEmbedder{Provider: "builtin"})
		return err
	},
	"CancelSwitch": func(ctx context.Context, c changes, namespace, _ string) error {
		_, err := c.CancelSwitch(ctx, namespace)
		if memory.CodeOf(err) == memory.CodeConflict || memory.CodeOf(err) == memory.CodeNotFound && strings.Contains(err.Error(), "embedder") {
			return nil // there is none, says the shard of the namespace
		}
		return err
	},
	"AcceptClock": func(ctx context.Context, c changes, _, _ string) error {
		_, err := c.AcceptClock(ctx)
		return err
	},
}

func captureTo(ctx context.Context, c changes, namespace, id string) (string, error) {
	r, err := c.Capture(ctx, namespace, []memory.Capture{{Agent: "tester", ID: id, Text: "memory " + id}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err == nil && r.Results[0].Error != nil {
		err = memory.Errorf(r.Results[0].Error.Code, "%s", r.Results[0].Error.Detail)
	}
	if err != nil {
		return "", err
	}
	return r.Results[0].RecordID, nil
}

// reachedBy are the things in the registry that write, and the method of changes that each
// comes to. An import is captures; what only a leader writes of its own, such as vectors
// that a model made, is asked of nobody.
var reachedBy = map[string]string{
	"POST /v1/namespaces":                          "CreateNamespace",
	"PATCH /v1/namespaces/{ns}":                    "ChangeNamespace",
	"DELETE /v1/namespaces/{ns}":                   "DeleteNamespace",
	"POST /v1/namespaces/{ns}/embedder":            "SwitchEmbedder",
	"DELETE /v1/namespaces/{ns}/embedder/building": "CancelSwitch",
	"POST /v1/namespaces/{ns}/events":              "Capture",
	"PATCH /v1/namespaces/{ns}/records/{id}":       "Revise",
	"DELETE /v1/namespaces/{ns}/records/{id}":      "Forget",
	"POST /v1/namespaces/{ns}/graph":               "ChangeGraph",
	"POST /mcp":                                    "Capture", // and whatever else its tools ask of the routes above
	"mem.in.>":                                     "Capture",
	"mem.api.*.revise":                             "Revise",
	"mem.api.*.forget":                             "Forget",
}

// carriesOut calls one of everyWrite until it is carried out, as clients do.
func (tr *trio) carriesOut(i int, namespace, name, prefix string) {
	tr.t.Helper()
	again := false
	await(tr.t, fmt.Sprintf("%s of %s at node %d", name, namespace, i+1), func() bool {
		err := everyWrite[name](tr.t.Context(), tr.nodes[i].changes, namespace, prefix)
		switch code := memory.CodeOf(err); {
		case err == nil:
			return true
		case code == memory.CodeUnavailable || code == memory.CodeOutcomeUnknown: // a node may just be elected
			again = true
			return false
		case again && (code == memory.CodeConflict || code == memory.CodeNotFound): // the attempt before was carried out
			return true
		}
		tr.t.Errorf("%s of %s at node %d: %v", name, namespace, i+1, err)
		return true
	})
}

// Every write is carried out on the shard of its namespace, whichever node is asked: by
// followers, by the leader, and by a leader that is deposed in the middle. It is there once,
// and what an agent was acknowledged is in its order.
func TestEveryWriteOverTwoShards(t *testing.T) {
	t.Parallel()
	for m := range reflect.TypeFor[changes]().Methods() {
		if everyWrite[m.Name] == nil {
			t.Errorf("%s is a write that this test does not know", m.Name)
		}
	}
	for _, r := range api.Registry() {
		if r.Right == api.RightWrite && everyWrite[reachedBy[r.Name]] == nil {
			t.Errorf("%s writes, and this test does not know what it comes to", r.Name)
		}
	}
	tr := newTrioOf(t, 2)
	makes(t, tr.nodes[0], "amber")
	first := tr.leaderOf(0)
	tr.moves(1, (first+1)%3)
	await(t, "the logs may hold what all nodes know", func() bool { // a graph's changes, too
		st, err := tr.nodes[first].operator.FinishUpgrade(t.Context())
		return err == nil && st.Level == st.Known
	})
	methods := slices.Sorted(maps.Keys(everyWrite))
	acked := map[string][]string{"default": nil, "amber": {"a-memory-of-amber"}}
	made := map[string]int{"default": 0, "amber": 1}
	for i := range tr.nodes {
		for _, namespace := range []string{"default", "amber"} {
			for _, name := range methods {
				prefix := strings.ToLower(fmt.Sprintf("%s-%d-%s", namespace, i, name))
				tr.carriesOut(i, namespace, name, prefix)
				if name == "Capture" {
					acked[namespace] = append(acked[namespace], prefix)
				}
			}
			made[namespace] += 2
		}
	}
	for shard, namespace := range []string{"default", "amber"} {
		for _, name := range methods {
			lead := tr.leaderOf(shard)
			prefix := strings.ToLower(fmt.Sprintf("%s-deposed-%s", namespace, name))
			var deposing sync.WaitGroup
			deposing.Go(func() { tr.deposesOf(shard, lead) })
			tr.carriesOut(lead, namespace, name, prefix)
			deposing.Wait()
			if name == "Capture" {
				acked[namespace] = append(acked[namespace], prefix)
			}
		}
		made[namespace] += 2
	}
	for i, n := range tr.nodes {
		for namespace, want := range made {
			a := memory.Access{Namespace: namespace, As: "tester", Consistency: memory.ConsistencyLinearizable}
			r, err := n.reads.List(t.Context(), a, memory.ListRequest{Limit: 100})
			if err != nil || len(r.Records) != want {
				t.Errorf("node %d has %d records of %s, want %d: %v", i+1, len(r.Records), namespace, want, err)
			}
			slices.SortFunc(r.Records, func(a, b memory.Record) int { return positionOf(t, a.Position).Compare(positionOf(t, b.Position)) })
			var got []string
			for _, rec := range r.Records {
				if slices.Contains(acked[namespace], rec.ID) {
					got = append(got, rec.ID)
				}
			}
			if !slices.Equal(got, acked[namespace]) {
				t.Errorf("node %d has the captures of %s in the order %v, they were acknowledged as %v", i+1, namespace, got, acked[namespace])
			}
		}
	}
	tr.same()
}

func positionOf(t *testing.T, s string) events.Position {
	t.Helper()
	p, err := events.ParsePosition(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
