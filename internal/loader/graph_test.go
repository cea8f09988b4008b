package loader

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// entity and relation are lines of the official MCP memory server.
func entity(name string, observations ...string) map[string]any {
	return map[string]any{"type": "entity", "name": name, "entityType": "thing", "observations": observations}
}

func relation(from, to string) map[string]any {
	return map[string]any{"type": "relation", "from": from, "to": to, "relationType": "knows"}
}

// graphed imports lines into the graph, and returns what the changes hold together, in order.
func (n *fakeNode) graphed(t *testing.T, values ...any) (*Summary, map[string][]string, []string) {
	t.Helper()
	n.changes = nil
	sum, said, err := n.load(t, func(o *Options) { o.Format, o.In = "mcp-memory", lines(t, values...) }, "-")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	observations := map[string][]string{}
	var order []string
	for _, c := range n.changes {
		if err := c.Validate(); err != nil || c.Agent != me {
			t.Errorf("a change by %q: %v", c.Agent, err)
		}
		for _, op := range c.Operations {
			for _, e := range op.CreateEntities {
				observations[e.Name] = append(observations[e.Name], e.Observations...)
				order = append(order, e.Name)
			}
			for _, o := range op.AddObservations {
				observations[o.Entity] = append(observations[o.Entity], o.Contents...)
			}
			for _, r := range op.CreateRelations {
				order = append(order, r.From+" "+r.Type+" "+r.To)
			}
		}
	}
	return sum, observations, order
}

// What has no room in one change goes on in the next, in order, and each thing once.
func TestLargeGraphsAreDivided(t *testing.T) {
	var many []string
	for i := range memory.MaxGraphItems + 10 {
		many = append(many, fmt.Sprint("observation ", i))
	}
	var long []string
	for i := range 20 {
		long = append(long, fmt.Sprint(i)+strings.Repeat("x", memory.MaxObservation-10))
	}
	var small []any
	for i := range memory.MaxGraphItems {
		small = append(small, entity(fmt.Sprint("e", i), "one"))
	}
	for i := range 30 {
		small = append(small, entity(fmt.Sprint("l", i), strings.Repeat("y", memory.MaxObservation)))
	}
	small = append(small, relation("e1", "e2"), relation("e2", "many"))
	n := newFakeNode()
	sum, observations, order := n.graphed(t, slices.Concat([]any{entity("first", "a"), entity("many", many...), entity("long", long...)}, small)...)
	if !slices.Equal(observations["many"], many) || !slices.Equal(observations["long"], long) || len(observations) != len(small)+1 {
		t.Errorf("%d of %d, %d of %d observations of %d entities", len(observations["many"]), len(many), len(observations["long"]), len(long), len(observations))
	}
	if len(order) != len(small)+3 || order[0] != "first" || order[len(order)-1] != "e2 knows many" {
		t.Errorf("%d in order", len(order))
	}
	g := sum.Namespaces[0].Graph
	if g.Entities != len(small)+1 || g.Relations != 2 || g.Observations != 1+len(many)+len(long)+memory.MaxGraphItems+30 || g.Created != g.Entities+g.Relations+g.Observations {
		t.Errorf("%+v", g)
	}
	if least := (g.Created + graphItems - 1) / graphItems; len(n.changes) > 3*least {
		t.Errorf("%d changes", len(n.changes))
	}
}

// What the graph does not take is named, whatever its size, and the rest goes in.
func TestWhatTheGraphDoesNotTakeIsNamed(t *testing.T) {
	tooLong := strings.Repeat("x", memory.MaxObservation+1)
	many := slices.Repeat([]string{"fine"}, memory.MaxGraphItems)
	n := newFakeNode()
	sum, observations, order := n.graphed(t, entity("a", "one"), entity(strings.Repeat("n", memory.MaxGraphName+1), "one"), entity("long", tooLong), entity("many", append(many, tooLong)...),
		entity(strings.Repeat("n", memory.MaxGraphName+1), many...), relation("a", strings.Repeat("n", memory.MaxGraphName+1)), relation("a", "a"))
	if !slices.Equal(order, []string{"a", "a knows a"}) || len(observations) != 1 || sum.Totals().Rejected != 5 || len(sum.Problems) != 5 {
		t.Errorf("%q, %d observations, %+v", order, len(observations), sum.Problems)
	}
	for i, p := range sum.Problems {
		if p.Line != i+2 || p.Where != fmt.Sprint("line ", i+2) || p.Detail == "" {
			t.Errorf("%+v", p)
		}
	}
}

// An entity of a name that has another type already is one with that: its type was lost without a word.
func TestATypeOfAnEntityWasLost(t *testing.T) {
	other := entity("a", "two")
	other["entityType"] = "person"
	n := newFakeNode()
	sum, observations, _ := n.graphed(t, entity("a", "one"), entity("b"), other, entity("a", "three"))
	if !slices.Equal(observations["a"], []string{"one", "two", "three"}) {
		t.Errorf("observed: %q", observations)
	}
	if len(sum.Problems) != 1 || sum.Totals().Conflicts != 1 {
		t.Fatalf("%+v, %+v", sum.Totals(), sum.Problems)
	}
	if p := sum.Problems[0]; p.Line != 3 || p.Code != memory.CodeConflict || !strings.Contains(p.Detail, "line 1") {
		t.Errorf("%+v", p)
	}
}

// An entity that the graph had already kept its type, and that the file says another one was not told.
func TestATypeOfAnEntityThatWasThereWasLost(t *testing.T) {
	n := newFakeNode()
	var first, second []any
	for i := range 60 {
		first = append(first, entity(fmt.Sprint("e", i)))
	}
	n.graphed(t, append(first, entity("large"), entity("a", "one"))...)
	other := func(name string) map[string]any {
		e := entity(name, "two")
		e["entityType"] = "person"
		return e
	}
	second = append(append(second, other("new"), other("large")), first...)
	sum, _, err := n.load(t, func(o *Options) {
		o.Format, o.In = "mcp-memory", lines(t, append(second, other("a"), other("a"), other("e7"))...)
	}, "-")
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range sum.Problems {
		lines = append(lines, p.Line)
	}
	if !slices.Equal(lines, []int{65, 63, 64}) || sum.Totals().Conflicts != 3 || !strings.Contains(sum.Problems[1].Detail, `"thing"`) {
		t.Errorf("%v, %+v", lines, sum.Problems)
	}
	if len(sum.LeftOut) != 1 || sum.LeftOut[0].Count != 1 || !strings.Contains(sum.LeftOut[0].Places[0], "line 2") {
		t.Errorf("%+v", sum.LeftOut)
	}
}

// A dry run of a graph changes nothing, and counts what there is.
func TestADryRunOfAGraph(t *testing.T) {
	n := newFakeNode()
	sum, _, err := n.load(t, func(o *Options) {
		o.Format, o.In, o.DryRun = "mcp-memory", lines(t, entity("a", "one"), relation("a", "a")), true
	}, "-")
	if err != nil || sum.Totals().Found != 2 || len(n.changes) != 0 {
		t.Errorf("%+v, %v, %d changes", sum, err, len(n.changes))
	}
}
