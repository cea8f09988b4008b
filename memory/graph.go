package memory

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of the knowledge graph. Strings are counted in bytes.
const (
	MaxGraphItems  = 5000     // entities, relations and observations that one change names
	MaxGraphBytes  = 1 << 20  // strings of one change, all together
	MaxGraphName   = 1024     // a name, a type, or one end of a relation
	MaxObservation = 64 << 10 // one observation
	MaxGraphEnds   = 20000    // entities, relations and observations that one change may take away
	MaxGraphAnswer = 8 << 20  // strings of one answer, and 16 more for each entity, observation and relation
	MaxGraphNames  = 1000     // that one read opens
)

// GraphEntity is a node of a namespace's knowledge graph. Its name is its identity. The
// JSON names are those of the official MCP memory server.
type GraphEntity struct {
	Name         string   `json:"name"`
	Type         string   `json:"entityType"`
	Observations []string `json:"observations"` // in the order in which they were added, each once; never nil in answers
}

// GraphRelation is an edge. Its ends need not be there. All three together are its identity.
type GraphRelation struct {
	From string `json:"from"`
	To   string `json:"to"`
	Type string `json:"relationType"`
}

// GraphObservations are observations to add to an entity that must be there.
type GraphObservations struct {
	Entity   string   `json:"entityName"`
	Contents []string `json:"contents"`
}

// GraphDeletion names observations to take from an entity.
type GraphDeletion struct {
	Entity       string   `json:"entityName"`
	Observations []string `json:"observations"`
}

// GraphOperation is one step of a change: exactly one of its fields is set, an empty list
// counts as set.
type GraphOperation struct {
	CreateEntities     []GraphEntity       `json:"create_entities,omitzero"`  // those whose names are taken are passed over
	CreateRelations    []GraphRelation     `json:"create_relations,omitzero"` // those that are there are passed over
	AddObservations    []GraphObservations `json:"add_observations,omitzero"` // those that are there are passed over; an unknown entity fails the whole change
	DeleteEntities     []string            `json:"delete_entities,omitzero"`  // with the relations at either end; unknown names are passed over
	DeleteObservations []GraphDeletion     `json:"delete_observations,omitzero"`
	DeleteRelations    []GraphRelation     `json:"delete_relations,omitzero"`
}

// GraphChange is carried out as a whole or not at all, in order, as one event.
type GraphChange struct {
	ID         string           `json:"id,omitempty"`      // the client's idempotency key
	Agent      string           `json:"agent,omitempty"`   // who changes it
	Subject    string           `json:"subject,omitempty"` // whose personal data it adds: erasing the subject erases that
	Operations []GraphOperation `json:"operations"`
}

// GraphAdded says which observations of an entity are new.
type GraphAdded struct {
	Entity string   `json:"entityName"`
	Added  []string `json:"addedObservations"`
}

// GraphResult is what one operation did; only the field of the operation is set.
type GraphResult struct {
	Entities  []GraphEntity   `json:"entities,omitzero"`  // that create_entities created
	Relations []GraphRelation `json:"relations,omitzero"` // that create_relations created
	Added     []GraphAdded    `json:"added,omitzero"`     // by add_observations, one for each element of the request
	Deleted   *GraphDeleted   `json:"deleted,omitempty"`  // by a deletion
}

// GraphDeleted counts what a deletion took away. The observations of a deleted entity are
// not counted.
type GraphDeleted struct {
	Entities     int `json:"entities,omitempty"`
	Relations    int `json:"relations,omitempty"`
	Observations int `json:"observations,omitempty"`
}

// GraphStatus is what became of a change.
type GraphStatus string

// The outcomes of a change that did not fail.
const (
	GraphApplied   GraphStatus = "applied"   // it is an event
	GraphUnchanged GraphStatus = "unchanged" // it found nothing to do, and nothing was written
	GraphDuplicate GraphStatus = "duplicate" // its id was used for the same change before; the results are those of then
)

// GraphChanged answers a change: one result an operation, in order.
type GraphChanged struct {
	Position string        `json:"position"` // of the event; where nothing was written, where the graph was read
	Status   GraphStatus   `json:"status"`
	Results  []GraphResult `json:"results"`
}

// GraphRequest selects a part of the graph. With neither a query nor names it is the whole.
type GraphRequest struct {
	// Query finds entities that hold it, as a whole and in any case, in name, type or an
	// observation. An empty query is in every entity.
	Query *string
	// Names opens the entities of these names. Unknown ones are passed over.
	Names []string
}

// Graph is a part of a knowledge graph, in the order of creation: entities and, with a query or
// names, the relations of which either end is among them.
type Graph struct {
	Entities  []GraphEntity   `json:"entities"`
	Relations []GraphRelation `json:"relations"`
	Position  string          `json:"position"`
}

// GraphLine is one line of a graph that is read as a stream: first the entities, then the
// relations, each in the order of creation. One of the two is set. Its JSON is a line of the
// official MCP memory server's file.
type GraphLine struct {
	Entity   *GraphEntity
	Relation *GraphRelation
}

// GraphEvent is the data of the event that a change of the graph is: what it made, and what it
// took away. What was made under a key that was destroyed since is not told.
type GraphEvent struct {
	Namespace           string              `json:"namespace"`
	Agent               string              `json:"agent"` // who changed it
	CreatedEntities     []GraphEntity       `json:"created_entities,omitempty"`
	CreatedRelations    []GraphRelation     `json:"created_relations,omitempty"`
	AddedObservations   []GraphObservations `json:"added_observations,omitempty"`
	DeletedEntities     []string            `json:"deleted_entities,omitempty"`
	DeletedRelations    []GraphRelation     `json:"deleted_relations,omitempty"`
	DeletedObservations []GraphDeletion     `json:"deleted_observations,omitempty"`
}

// String says for people what was made and what was taken away.
func (e *GraphEvent) String() string {
	var parts []string
	say := func(verb string, names []string) {
		if len(names) > 0 {
			parts = append(parts, verb+" "+strings.Join(names, ", "))
		}
	}
	var created, observed, lost []string
	for _, c := range e.CreatedEntities {
		created = append(created, c.Name)
	}
	edges := func(all []GraphRelation) (out []string) {
		for _, r := range all {
			out = append(out, r.From+" "+r.Type+" "+r.To)
		}
		return out
	}
	for _, o := range e.AddedObservations {
		observed = append(observed, o.Entity+": "+strings.Join(o.Contents, "; "))
	}
	for _, o := range e.DeletedObservations {
		lost = append(lost, o.Entity+": "+strings.Join(o.Observations, "; "))
	}
	say("created", created)
	say("related", edges(e.CreatedRelations))
	say("observed", observed)
	say("deleted", e.DeletedEntities)
	say("unrelated", edges(e.DeletedRelations))
	say("dropped", lost)
	return strings.Join(parts, " · ")
}

// MarshalJSON writes the fields in the order of that file.
func (l GraphLine) MarshalJSON() ([]byte, error) {
	if l.Relation != nil {
		return json.Marshal(graphRelationLine{"relation", *l.Relation})
	}
	if l.Entity != nil {
		return json.Marshal(graphEntityLine{"entity", *l.Entity})
	}
	return nil, Errorf(CodeInternal, "a line of a graph is neither an entity nor a relation")
}

// UnmarshalJSON reads a line. One of another type leaves both fields nil.
func (l *GraphLine) UnmarshalJSON(b []byte) error {
	*l = GraphLine{}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case "entity":
		return json.Unmarshal(b, &l.Entity)
	case "relation":
		return json.Unmarshal(b, &l.Relation)
	}
	return nil
}

type graphEntityLine struct {
	Line string `json:"type"`
	GraphEntity
}

type graphRelationLine struct {
	Line string `json:"type"`
	GraphRelation
}

// Values gives the request as query parameters.
func (r *GraphRequest) Values() url.Values {
	v := url.Values{}
	if r.Query != nil {
		v.Set("query", *r.Query)
	}
	for _, n := range r.Names {
		v.Add("name", n)
	}
	if r.Names != nil && len(r.Names) == 0 {
		v.Set("name", "") // no name, and not the whole
	}
	return v
}

// Validate checks what needs no namespace.
func (r *GraphRequest) Validate() *Error {
	if r.Query != nil && r.Names != nil {
		return Errorf(CodeInvalid, "the request has a query and names, one of them is allowed").WithHint("ask twice")
	}
	if r.Query != nil && len(*r.Query) > MaxQueryBytes {
		return Errorf(CodeTooLarge, "query has %d bytes, at most %d are allowed", len(*r.Query), MaxQueryBytes)
	}
	if r.Query != nil && !utf8.ValidString(*r.Query) {
		return Errorf(CodeInvalid, "query is not valid UTF-8")
	}
	if len(r.Names) > MaxGraphNames {
		return Errorf(CodeTooLarge, "%d names are given, at most %d are opened at once", len(r.Names), MaxGraphNames).WithHint("ask in several requests")
	}
	return nil
}

// Validate checks what needs no namespace.
func (c *GraphChange) Validate() *Error {
	if err := CheckName("agent", c.Agent); err != nil {
		return err.WithHint("say who is acting: as=AGENT, or the header Mneme-Agent")
	}
	if err := checkClientID(c.ID); err != nil {
		return err
	}
	if err := checkLine("subject", c.Subject, MaxSubject); err != nil {
		return err
	}
	if len(c.Operations) > MaxGraphItems {
		return Errorf(CodeTooLarge, "the change has %d operations, at most %d are allowed", len(c.Operations), MaxGraphItems).WithHint("send it in several changes")
	}
	if len(c.Operations) == 0 {
		return Errorf(CodeInvalid, "operations is empty").WithHint("a change has at least one, such as {\"create_entities\": […]}")
	}
	var n graphSize
	for i := range c.Operations {
		op := &c.Operations[i]
		if op.fields() != 1 {
			return Errorf(CodeInvalid, "operation %d has %d of its fields set, it must be one", i, op.fields()).
				WithHint("an operation is one of create_entities, create_relations, add_observations, delete_entities, delete_observations and delete_relations")
		}
		if c.Subject != "" && op.deletes() {
			return Errorf(CodeInvalid, "a change with a subject may only add").WithHint("delete in another request, without a subject: it works whoever the data is about")
		}
		if err := op.measure(&n); err != nil {
			return err
		}
	}
	return n.check()
}

func (op *GraphOperation) fields() int {
	n := 0
	for _, set := range []bool{op.CreateEntities != nil, op.CreateRelations != nil, op.AddObservations != nil,
		op.DeleteEntities != nil, op.DeleteObservations != nil, op.DeleteRelations != nil} {
		if set {
			n++
		}
	}
	return n
}

func (op *GraphOperation) deletes() bool {
	return op.DeleteEntities != nil || op.DeleteObservations != nil || op.DeleteRelations != nil
}

// graphSize is how much a change names.
type graphSize struct{ items, bytes int }

func (n *graphSize) check() *Error {
	if n.items > MaxGraphItems {
		return Errorf(CodeTooLarge, "the change names %d entities, relations and observations, at most %d are allowed", n.items, MaxGraphItems).
			WithHint("send it in several changes")
	}
	if n.bytes > MaxGraphBytes {
		return Errorf(CodeTooLarge, "the change has %d bytes of text, at most %d are allowed", n.bytes, MaxGraphBytes).
			WithHint("send it in several changes")
	}
	return nil
}

// measure checks the strings of an operation, and counts them.
func (op *GraphOperation) measure(n *graphSize) *Error {
	for i := range op.CreateEntities {
		e := &op.CreateEntities[i]
		if err := firstOf(n.name("name of an entity", e.Name), n.kind("entityType", e.Type), n.observations(e.Observations)); err != nil {
			return err
		}
		n.items++
	}
	for _, o := range op.AddObservations {
		if err := firstOf(n.name("entityName", o.Entity), n.observations(o.Contents)); err != nil {
			return err
		}
		n.items++
	}
	for _, name := range op.DeleteEntities {
		if err := n.name("name of an entity", name); err != nil {
			return err
		}
		n.items++
	}
	for _, d := range op.DeleteObservations {
		if err := firstOf(n.name("entityName", d.Entity), n.observations(d.Observations)); err != nil {
			return err
		}
		n.items++
	}
	for _, relations := range [][]GraphRelation{op.CreateRelations, op.DeleteRelations} {
		for _, r := range relations {
			if err := firstOf(n.name("from", r.From), n.name("to", r.To), n.kind("relationType", r.Type)); err != nil {
				return err
			}
			n.items++
		}
	}
	return nil
}

func firstOf(errs ...*Error) *Error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *graphSize) name(what, s string) *Error {
	if s == "" {
		return Errorf(CodeInvalid, "the %s is empty", what)
	}
	return n.kind(what, s)
}

func (n *graphSize) kind(what, s string) *Error {
	if len(s) > MaxGraphName {
		return Errorf(CodeTooLarge, "the %s has %d bytes, at most %d are allowed", what, len(s), MaxGraphName).
			WithHint("give it a shorter name, and say the rest in an observation")
	}
	return n.text(what, s)
}

func (n *graphSize) observations(texts []string) *Error {
	for _, s := range texts {
		if len(s) > MaxObservation {
			return Errorf(CodeTooLarge, "an observation has %d bytes, at most %d are allowed", len(s), MaxObservation).
				WithHint("split it into several, or keep it as a memory")
		}
		if err := n.text("observation", s); err != nil {
			return err
		}
		n.items++
	}
	return nil
}

func (n *graphSize) text(what, s string) *Error {
	n.bytes += len(s)
	if !utf8.ValidString(s) {
		return Errorf(CodeInvalid, "the %s %.40q is not valid UTF-8", what, s)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return Errorf(CodeInvalid, "the %s %.40q contains NUL bytes", what, s)
	}
	return nil
}

// NoEntity is the error for observations of an entity that is not there.
func NoEntity(name string) *Error {
	return Errorf(CodeNotFound, noEntity+"%q in the graph; nothing was changed", name).WithHint("create it first: create_entities")
}

const noEntity = "there is no entity "

// MissingEntity is the name that an error of NoEntity is about, also where the error came over
// the network; false if err is another one.
func MissingEntity(err error) (string, bool) {
	e := AsError(err)
	if e == nil {
		return "", false
	}
	rest, found := strings.CutPrefix(e.Message, noEntity)
	if !found {
		return "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", false
	}
	name, err := strconv.Unquote(quoted)
	return name, err == nil
}
