package rest

import (
	"cmp"
	"net/http"
	"slices"

	"mneme/internal/api"
	"mneme/memory"
)

// graphs serves the knowledge graphs of namespaces.
type graphs struct {
	*server
	changes api.JSONDecoder[memory.GraphChange]
}

func newGraphs(s *server) *graphs { return &graphs{s, api.NewJSONDecoder[memory.GraphChange]()} }

func (s *graphs) routes() []route {
	const graph = "/v1/namespaces/{ns}/graph"
	return []route{
		{method: "POST", path: graph, handle: s.change, write: true, limit: memory.MaxBatchBytes, body: typed[memory.GraphChange](),
			params:  []param{pathNS, paramAs, headerAgent, headerIdempotency},
			summary: "Change the knowledge graph, as a whole or not at all.", answers: ok[memory.GraphChanged]("What each operation did, in order.")},
		{method: "GET", path: graph, handle: s.read,
			params: append([]param{pathNS,
				{name: "query", in: "query", about: "Only entities that hold this in name, type or an observation, in any case and as a whole, with the relations of which either end is one of them.", length: memory.MaxQueryBytes},
				{name: "name", in: "query", about: "Only the entities of these names, with the relations of which either end is one of them. Unknown names are passed over.", many: true, length: memory.MaxGraphName}}, accessParams...),
			summary: "Read the knowledge graph, or a part of it.", answers: ok[memory.Graph]("Entities and relations in the order of their creation.")},
		{method: "GET", path: graph + "/export", handle: s.export, stream: true, params: append([]param{pathNS,
			{name: "after", in: "query", about: "Of the entities only those that were created after the one of this name; 404 if it is not there. What is passed over is not read.", length: memory.MaxGraphName}}, accessParams...),
			summary: "The whole knowledge graph, one JSON document a line.",
			answers: map[int]answer{200: {about: "The entities, then the relations. A stream that breaks off was not complete; its last line may be {\"error\": problem}, which says why.", body: typed[GraphLine](), media: mediaNDJSON}}},
	}
}

// GraphLine is one line of a graph that is read as a stream, an entity or a relation. Entities have
// the first three fields beside type, relations the others.
type GraphLine struct { // documents memory.GraphLine
	Type         string   `json:"type"` // entity or relation
	Name         string   `json:"name,omitempty"`
	EntityType   string   `json:"entityType,omitempty"`
	Observations []string `json:"observations,omitempty"`
	From         string   `json:"from,omitempty"`
	To           string   `json:"to,omitempty"`
	RelationType string   `json:"relationType,omitempty"`
}

func (s *graphs) change(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	actor := q.actor(r)
	if err := q.finish(); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	change, err := s.changes.Decode(body)
	if err != nil {
		return err
	}
	change.Agent, change.ID = cmp.Or(change.Agent, actor), cmp.Or(change.ID, key)
	if err := change.Validate(); err != nil {
		return err
	}
	resp, err := s.Writer.ChangeGraph(r.Context(), r.PathValue("ns"), change)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, resp)
}

func (s *graphs) read(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc := q.access(r)
	var req memory.GraphRequest
	if q.values.Has("query") {
		query := q.str("query")
		req.Query = &query
	}
	if q.values.Has("name") { // empty ones do not count: name= opens none
		req.Names = slices.DeleteFunc(slices.Clone(q.values["name"]), func(n string) bool { return n == "" })
	}
	if err := q.finish(); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	return answerRead(w, r, s.bulkheads.pages, func() (memory.Graph, error) { return s.Reader.Graph(r.Context(), acc, req) })
}

func (s *graphs) export(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc, after := q.access(r), q.str("after")
	if err := q.finish(); err != nil {
		return err
	}
	return exported(s.server, w, r, func(send func(memory.GraphLine) error) error {
		return s.Reader.StreamGraph(r.Context(), acc, after, send)
	})
}
