package verbs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"mneme/memory"
)

// graphRoutes are those of the knowledge graph; it grows only.
func (n *fakeNode) graphRoutes(on func(string, func(http.ResponseWriter, *http.Request) error)) {
	on("POST /v1/namespaces/{ns}/graph", func(w http.ResponseWriter, r *http.Request) error {
		ns, err := n.ns(r)
		if err != nil {
			return err
		}
		var change memory.GraphChange
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			return err
		}
		done := memory.GraphChanged{Position: "p0.1.1.0", Status: memory.GraphApplied}
		for _, op := range change.Operations {
			done.Results = append(done.Results, ns.changeGraph(op))
		}
		return answer(w, done)
	})
	on("GET /v1/namespaces/{ns}/graph", func(w http.ResponseWriter, r *http.Request) error {
		ns, err := n.ns(r)
		if err != nil {
			return err
		}
		q := r.URL.Query()
		out := memory.Graph{Entities: []memory.GraphEntity{}, Relations: []memory.GraphRelation{}}
		for _, e := range ns.graph.Entities {
			text := strings.ToLower(strings.Join(append([]string{e.Name, e.Type}, e.Observations...), "\n"))
			if q.Has("query") && strings.Contains(text, strings.ToLower(q.Get("query"))) || slices.Contains(q["name"], e.Name) {
				out.Entities = append(out.Entities, e)
			}
		}
		for _, rel := range ns.graph.Relations {
			if names := entityNames(out.Entities); slices.Contains(names, rel.From) || slices.Contains(names, rel.To) {
				out.Relations = append(out.Relations, rel)
			}
		}
		return answer(w, out)
	})
	on("GET /v1/namespaces/{ns}/graph/export", func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "application/x-ndjson")
		ns, err := n.ns(r)
		if err != nil {
			return err
		}
		entities := ns.graph.Entities
		if after := r.URL.Query().Get("after"); after != "" {
			i := slices.Index(entityNames(entities), after)
			if i < 0 {
				return memory.NoEntity(after)
			}
			entities = entities[i+1:]
		}
		enc := json.NewEncoder(w)
		for _, e := range entities {
			if err := enc.Encode(memory.GraphLine{Entity: &e}); err != nil {
				return err
			}
		}
		for _, rel := range ns.graph.Relations {
			if err := enc.Encode(memory.GraphLine{Relation: &rel}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (ns *fakeNamespace) changeGraph(op memory.GraphOperation) (done memory.GraphResult) {
	for _, e := range op.CreateEntities {
		if !slices.Contains(entityNames(ns.graph.Entities), e.Name) {
			ns.graph.Entities = append(ns.graph.Entities, e)
			done.Entities = append(done.Entities, e)
		}
	}
	for _, o := range op.AddObservations {
		for i := range ns.graph.Entities {
			if e := &ns.graph.Entities[i]; e.Name == o.Entity {
				e.Observations = append(e.Observations, o.Contents...)
				done.Added = append(done.Added, memory.GraphAdded{Entity: o.Entity, Added: o.Contents})
			}
		}
	}
	ns.graph.Relations = append(ns.graph.Relations, op.CreateRelations...)
	done.Relations = op.CreateRelations
	return done
}
