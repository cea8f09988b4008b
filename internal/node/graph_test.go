package node

import (
	"errors"
	"reflect"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

func graphOps(ops ...memory.GraphOperation) memory.GraphChange {
	return memory.GraphChange{Agent: "tester", Operations: ops}
}

func sampleEntity(name string) memory.GraphOperation {
	return memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: name, Type: "person", Observations: []string{"likes Go"}}}}
}

// TestGraphOfANode: the first change raises the log's level by itself; feeds and audit tell of
// it; a restart and a rebuild give the same graph and the same hash; the namespace takes its own
// with it.
func TestGraphOfANode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := quiet(dir)
	cfg.Namespaces = []string{"default", "other"}
	n := open(t, cfg)
	ctx := t.Context()
	access := memory.Access{Namespace: "default"}
	if at := n.served[0].state.Cursor(); at.FeatureLevel() != events.BaseLevel {
		t.Fatalf("level %d", at.FeatureLevel())
	}
	changed, err := n.changes.ChangeGraph(ctx, "default", graphOps(sampleEntity("Alice"), memory.GraphOperation{CreateRelations: []memory.GraphRelation{{From: "Alice", To: "Ghost", Type: "knows"}}}))
	if err != nil || changed.Status != memory.GraphApplied {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := n.changes.ChangeGraph(ctx, "other", graphOps(sampleEntity("Bob"))); err != nil {
		t.Fatal(err)
	}
	want, err := gather{n}.Graph(ctx, access, memory.GraphRequest{})
	if err != nil || len(want.Entities) != 1 || want.Entities[0].Name != "Alice" || len(want.Relations) != 1 {
		t.Fatalf("%+v, %v", want, err)
	}
	told := 0
	if err := (gather{n}).Events(ctx, access, "", false, func(e memory.Event) error {
		if e.Type == events.TypeGraphChanged.CloudEventType() {
			told++
			if e.Position != changed.Position {
				t.Errorf("it is told at %s, and was answered at %s", e.Position, changed.Position)
			}
		}
		return nil
	}); err != nil || told != 1 {
		t.Errorf("%d events, %v", told, err)
	}
	page, err := gather{n}.Audit(ctx, access, memory.AuditRequest{Actor: "tester"})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Type != "graph.changed" || page.Rows[0].Outcome != "applied" {
		t.Errorf("%+v, %v", page.Rows, err)
	}
	hash := func(n *Node) string {
		v := n.served[0].state.View()
		defer v.Close()
		return v.Hash().String()
	}
	before := hash(n)
	shut(t, n)
	n = open(t, cfg)
	if _, err := n.operator.Rebuild(ctx, func(uint64, uint64) {}); err != nil {
		t.Fatal(err)
	}
	got, err := gather{n}.Graph(ctx, access, memory.GraphRequest{})
	if got.Position, want.Position = "", ""; err != nil || !reflect.DeepEqual(got, want) || hash(n) != before {
		t.Errorf("after a restart and a rebuild: %+v, %v, hash %s, was %s", got, err, hash(n), before)
	}
	if _, err := n.changes.DeleteNamespace(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	if _, err := (gather{n}).Graph(ctx, access, memory.GraphRequest{}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("of a deleted namespace: %v", err)
	}
}

// TestGraphOfACluster: changes go to the node that leads from whichever node; a log that this
// leader has begun takes them at once, and of one that was there before, the level is awaited.
func TestGraphOfACluster(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	ctx := t.Context()
	change := func(i int, c memory.GraphChange) (err error) {
		await(t, "the change is carried out", func() bool {
			_, err = tr.nodes[i].changes.ChangeGraph(ctx, "default", c)
			switch memory.CodeOf(err) {
			case memory.CodeOutcomeUnknown, memory.CodeTimeout:
				return false
			}
			return true
		})
		return err
	}
	lead := tr.leader()
	at := tr.nodes[lead].served[0].state.Cursor()
	if first, err := beganNow(tr.nodes[lead]); err != nil {
		t.Fatal(err)
	} else if !first || at.FeatureLevel() >= events.GraphLevel { // the lead has moved since the log was begun
		if err := change(lead, graphOps(sampleEntity("too soon"))); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("before the level: %v", err)
		}
		await(t, "the upgrade is finished", func() bool {
			_, err := tr.nodes[lead].operator.FinishUpgrade(ctx)
			return err == nil
		})
	}
	for i, name := range []string{"Alice", "Bob", "Eve"} {
		if err := change(i, graphOps(sampleEntity(name))); err != nil {
			t.Fatalf("at n%d: %v", i+1, err)
		}
		g, err := gather{tr.nodes[i]}.Graph(ctx, memory.Access{Namespace: "default"}, memory.GraphRequest{})
		if err != nil || len(g.Entities) != i+1 {
			t.Errorf("at n%d: %+v, %v", i+1, g, err)
		}
		err = change(i, graphOps(memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: "Nobody", Contents: []string{"x"}}}}))
		if missing, ok := memory.MissingEntity(err); !ok || missing != "Nobody" {
			t.Errorf("at n%d: %v", i+1, err)
		}
	}
	tr.same()
}

func beganNow(n *Node) (bool, error) {
	w, err := n.served[0].replica.Writer()
	if err != nil {
		return false, err
	}
	v := n.served[0].state.View()
	first, err := v.Frame(1)
	if err = errors.Join(err, v.Close()); err != nil {
		return false, err
	}
	f, err := events.DecodeFrame(first)
	return f.Term == w.Term(), err
}
