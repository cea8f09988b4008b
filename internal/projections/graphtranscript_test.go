package projections_test

import (
	"fmt"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
)

// graphSteps reads the steps of a change of a graph, one a word:
//
//	+NAME/TYPE[/OBSERVATION…]  an entity is created
//	+FROM>TYPE>TO              a relation
//	REF+OBSERVATION            an observation is added
//	-REF[,REF]                 an entity ends, with relations
//	~REF                       an observation ends
//	!REF                       a relation ends
//
// A REF is SEQ.INDEX.NUMBER, or NUMBER for what the same event makes.
func graphSteps(t testing.TB, words []string) (steps []events.GraphStep) {
	refs := func(text string) (out []events.GraphRef) {
		for one := range strings.SplitSeq(text, ",") {
			var r events.GraphRef
			if _, err := fmt.Sscanf(one, "%d.%d.%d", &r.Seq, &r.Index, &r.N); err != nil {
				r = events.GraphRef{}
				_, err := fmt.Sscanf(one, "%d", &r.N)
				must(t, err)
			}
			out = append(out, r)
		}
		return out
	}
	for _, w := range words {
		var s events.GraphStep
		switch ref, text, adds := strings.Cut(w, "+"); {
		case adds && ref != "":
			s.Kind, s.Added = events.GraphObservationsAdded, []events.GraphAdded{{Entity: refs(ref)[0], Contents: []string{text}}}
		case adds && strings.Contains(text, ">"):
			r := strings.Split(text, ">")
			s.Kind, s.Relations = events.GraphRelationsCreated, []events.GraphRelation{{From: r[0], Type: r[1], To: r[2]}}
		case adds:
			e := strings.Split(text, "/")
			s.Kind, s.Entities = events.GraphEntitiesCreated, []events.GraphEntity{{Name: e[0], Type: e[1], Observations: e[2:]}}
		case w[0] == '-':
			ended := refs(w[1:])
			s.Kind, s.Ended, s.Severed = events.GraphEntitiesDeleted, ended[:1], ended[1:]
		case w[0] == '~':
			s.Kind, s.Ended = events.GraphObservationsDeleted, refs(w[1:])
		default:
			s.Kind, s.Ended = events.GraphRelationsDeleted, refs(w[1:])
		}
		steps = append(steps, s)
	}
	return steps
}

// showGraph prints the graph of a namespace.
func (x *transcript) showGraph(v *projections.View, ns events.ID, say func(string, ...any)) {
	p, ok := v.Partition(ns, events.ScopeTeam, "")
	if !ok {
		say("nothing")
		return
	}
	must(x.t, v.GraphEntities(p.ID, events.GraphRef{}, func(r events.GraphRef, e events.GraphEntity) (bool, error) {
		say("%d.%d.%d %s (%s) %q", r.Seq, r.Index, r.N, e.Name, e.Type, e.Observations)
		return true, nil
	}))
	must(x.t, v.GraphRelations(p.ID, func(r events.GraphRef, e events.GraphRelation) (bool, error) {
		say("%d.%d.%d %s %s %s", r.Seq, r.Index, r.N, e.From, e.Type, e.To)
		return true, nil
	}))
	total, err := v.GraphTotals(p.ID)
	must(x.t, err)
	say("%d entities, %d observations, %d relations, %d bytes", total.Entities, total.Observations, total.Relations, total.Bytes)
}
