package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/recall"
	"mneme/memory"
)

// The nine tools of the official memory server, by its names, schemas and words, over the
// namespace's knowledge graph: an agent that was set up for that server finds what it knows.

const (
	graphURI  = "memory://knowledge-graph"
	graphName = "knowledge-graph"
)

type (
	entitiesIn struct {
		Entities []memory.GraphEntity `json:"entities"`
	}
	relationsIn struct {
		Relations []memory.GraphRelation `json:"relations"`
	}
	observationsIn struct {
		Observations []memory.GraphObservations `json:"observations"`
	}
	observationsOut struct {
		Results []memory.GraphAdded `json:"results"`
	}
	entityNamesIn struct {
		EntityNames []string `json:"entityNames"`
	}
	deletionsIn struct {
		Deletions []memory.GraphDeletion `json:"deletions"`
	}
	deletedOut struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
	}
	graphIn  struct{}
	graphOut struct {
		Entities  []memory.GraphEntity   `json:"entities"`
		Relations []memory.GraphRelation `json:"relations"`
	}
	queryIn struct {
		Query string `json:"query"`
	}
	namesIn struct {
		Names []string `json:"names"`
	}
)

// graphTool is one of them. shown is what the text shows of the structured content.
type graphTool[In, Out any] struct {
	name, title, about       string
	reads, destroys, repeats bool
	in, out                  *jsonschema.Schema
	do                       func(ctx context.Context, c Caller, in In) (out Out, shown any, err error)
}

func (s *surface) addGraph(server *mcp.Server) {
	entity := object(true, field("name", text("The name of the entity")), field("entityType", text("The type of the entity")),
		field("observations", list("An array of observation contents associated with the entity", text(""))))
	relation := object(true, field("from", text("The name of the entity where the relation starts")), field("to", text("The name of the entity where the relation ends")),
		field("relationType", text("The type of the relation")))
	adding := object(true, field("entityName", text("The name of the entity to add the observations to")),
		field("contents", list("An array of observation contents to add", text(""))))
	added := object(false, field("entityName", text("")), field("addedObservations", list("", text(""))))
	deleting := object(true, field("entityName", text("The name of the entity containing the observations")),
		field("observations", list("An array of observations to delete", text(""))))
	entities, relations := list("", entity), list("", relation)
	deleted := answer(field("success", &jsonschema.Schema{Type: "boolean"}), field("message", text("")))
	graph := answer(field("entities", closed(entities)), field("relations", closed(relations)))

	addGraphTool(s, server, graphTool[entitiesIn, entitiesOut]{name: "create_entities", title: "Create Entities", about: "Create multiple new entities in the knowledge graph",
		in: question(field("entities", entities)), out: answer(field("entities", closed(entities))), do: createEntities})
	addGraphTool(s, server, graphTool[relationsIn, relationsOut]{name: "create_relations", title: "Create Relations",
		about: "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
		in:    question(field("relations", relations)), out: answer(field("relations", closed(relations))), do: createRelations})
	addGraphTool(s, server, graphTool[observationsIn, observationsOut]{name: "add_observations", title: "Add Observations", about: "Add new observations to existing entities in the knowledge graph",
		in: question(field("observations", list("", adding))), out: answer(field("results", list("", added))), do: addObservations})
	addGraphTool(s, server, graphTool[entityNamesIn, deletedOut]{name: "delete_entities", title: "Delete Entities",
		about: "Delete multiple entities and their associated relations from the knowledge graph", destroys: true, repeats: true,
		in: question(field("entityNames", list("An array of entity names to delete", text("")))), out: deleted,
		do: deletion("Entities", func(in entityNamesIn) memory.GraphOperation {
			return memory.GraphOperation{DeleteEntities: some(in.EntityNames)}
		})})
	addGraphTool(s, server, graphTool[deletionsIn, deletedOut]{name: "delete_observations", title: "Delete Observations",
		about: "Delete specific observations from entities in the knowledge graph", destroys: true, repeats: true,
		in: question(field("deletions", list("", deleting))), out: deleted,
		do: deletion("Observations", func(in deletionsIn) memory.GraphOperation {
			return memory.GraphOperation{DeleteObservations: some(in.Deletions)}
		})})
	addGraphTool(s, server, graphTool[relationsIn, deletedOut]{name: "delete_relations", title: "Delete Relations",
		about: "Delete multiple relations from the knowledge graph", destroys: true, repeats: true,
		in: question(field("relations", list("An array of relations to delete", relation))), out: deleted,
		do: deletion("Relations", func(in relationsIn) memory.GraphOperation {
			return memory.GraphOperation{DeleteRelations: some(in.Relations)}
		})})
	addGraphTool(s, server, graphTool[graphIn, graphOut]{name: "read_graph", title: "Read Graph", about: "Read the entire knowledge graph", reads: true, repeats: true,
		in: question(), out: graph, do: func(ctx context.Context, c Caller, _ graphIn) (graphOut, any, error) {
			return readGraph(ctx, c, memory.GraphRequest{})
		}})
	addGraphTool(s, server, graphTool[queryIn, graphOut]{name: "search_nodes", title: "Search Nodes", about: "Search for nodes in the knowledge graph based on a query", reads: true, repeats: true,
		in: question(field("query", text("The search query to match against entity names, types, and observation content"))), out: graph,
		do: func(ctx context.Context, c Caller, in queryIn) (graphOut, any, error) {
			return readGraph(ctx, c, memory.GraphRequest{Query: &in.Query})
		}})
	addGraphTool(s, server, graphTool[namesIn, graphOut]{name: "open_nodes", title: "Open Nodes", about: "Open specific nodes in the knowledge graph by their names", reads: true, repeats: true,
		in: question(field("names", list("An array of entity names to retrieve", text("")))), out: graph,
		do: func(ctx context.Context, c Caller, in namesIn) (graphOut, any, error) {
			return readGraph(ctx, c, memory.GraphRequest{Names: some(in.Names)})
		}})
	if !s.Profile.has(ProfileGraph) {
		return
	}
	server.AddResource(&mcp.Resource{URI: graphURI, Name: graphName, Title: "Knowledge Graph", MIMEType: "application/json",
		Description: "The full knowledge graph with all entities and relations"}, s.readGraphResource)
}

type (
	entitiesOut struct {
		Entities []memory.GraphEntity `json:"entities"`
	}
	relationsOut struct {
		Relations []memory.GraphRelation `json:"relations"`
	}
)

func addGraphTool[In, Out any](s *surface, server *mcp.Server, t graphTool[In, Out]) {
	if !s.offers(t.name, ProfileGraph) {
		return
	}
	outside := false
	mcp.AddTool(server, &mcp.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: t.in, OutputSchema: t.out,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &t.destroys, IdempotentHint: t.repeats, OpenWorldHint: &outside},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		c, err := s.caller(ctx, req)
		if err != nil {
			return nil, nil, told(err)
		}
		out, shown, err := t.do(ctx, c, in)
		if err != nil {
			return nil, nil, err
		}
		if !t.reads { // also where it found nothing to do, and before the answer, as that server does
			if err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: graphURI}); err != nil {
				s.Logger.Warn("the change of the graph was not told to who subscribes to it", "err", err)
			}
		}
		written, ok := shown.(string)
		if !ok {
			if written, err = pretty(shown); err != nil {
				return nil, nil, err
			}
		}
		res, err := result(out, written)
		return res, nil, err
	})
}

func change(ctx context.Context, c Caller, op memory.GraphOperation) (memory.GraphResult, error) {
	out, err := client.GraphOf(c.Client, c.Namespace).Change(ctx, memory.GraphChange{Agent: c.Agent, Operations: []memory.GraphOperation{op}})
	if err != nil {
		return memory.GraphResult{}, err
	}
	if len(out.Results) != 1 {
		return memory.GraphResult{}, memory.Errorf(memory.CodeInternal, "the node answered %d results for one operation", len(out.Results))
	}
	return out.Results[0], nil
}

func createEntities(ctx context.Context, c Caller, in entitiesIn) (entitiesOut, any, error) {
	r, err := change(ctx, c, memory.GraphOperation{CreateEntities: some(in.Entities)})
	if err != nil {
		return entitiesOut{}, nil, told(err)
	}
	out := entitiesOut{some(r.Entities)}
	return out, out.Entities, nil
}

func createRelations(ctx context.Context, c Caller, in relationsIn) (relationsOut, any, error) {
	r, err := change(ctx, c, memory.GraphOperation{CreateRelations: some(in.Relations)})
	if err != nil {
		return relationsOut{}, nil, told(err)
	}
	out := relationsOut{some(r.Relations)}
	return out, out.Relations, nil
}

func addObservations(ctx context.Context, c Caller, in observationsIn) (observationsOut, any, error) {
	r, err := change(ctx, c, memory.GraphOperation{AddObservations: some(in.Observations)})
	if name, unknown := memory.MissingEntity(err); unknown {
		return observationsOut{}, nil, fmt.Errorf("Entity with name %s not found", name) // in the words of that server
	}
	if err != nil {
		return observationsOut{}, nil, told(err)
	}
	out := observationsOut{some(r.Added)}
	return out, out.Results, nil
}

// deletion says that it is done whether or not there was anything to delete.
func deletion[In any](what string, op func(In) memory.GraphOperation) func(context.Context, Caller, In) (deletedOut, any, error) {
	return func(ctx context.Context, c Caller, in In) (deletedOut, any, error) {
		if _, err := change(ctx, c, op(in)); err != nil {
			return deletedOut{}, nil, told(err)
		}
		out := deletedOut{Success: true, Message: what + " deleted successfully"}
		return out, out.Message, nil
	}
}

func readGraph(ctx context.Context, c Caller, req memory.GraphRequest) (graphOut, any, error) {
	out, err := graphOf(ctx, c, req)
	if err != nil {
		return out, nil, told(err)
	}
	return out, out, nil
}

func graphOf(ctx context.Context, c Caller, req memory.GraphRequest) (graphOut, error) {
	g, err := client.GraphOf(c.Client, c.Namespace).Read(ctx, req, client.ReadOptions{As: c.Agent})
	if err != nil {
		return graphOut{}, err
	}
	out := graphOut{some(g.Entities), some(g.Relations)}
	for i := range out.Entities {
		out.Entities[i].Observations = some(out.Entities[i].Observations)
	}
	return out, nil
}

func (s *surface) readGraphResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c, err := s.caller(ctx, req)
	if err != nil {
		return nil, failed(err)
	}
	g, err := graphOf(ctx, c, memory.GraphRequest{})
	if err != nil {
		return nil, failed(err)
	}
	written, err := pretty(g)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: graphURI, MIMEType: "application/json", Text: written}}}, err
}

// some is a list that is never null.
func some[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// pretty is JSON as JavaScript prints it for people, but that what they would not see is written
// by its number: names and observations stay what they are.
func pretty(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	var out strings.Builder
	for _, r := range string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) {
		if r == '\n' || !recall.Unseen(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String(), err
}

// What the schemas of that server are made of. Its questions take what they do not know, its
// answers hold nothing else.

type named struct {
	name   string
	schema *jsonschema.Schema
}

func field(name string, s *jsonschema.Schema) named { return named{name, s} }

func text(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: about}
}

func list(about string, of *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: about, Items: of}
}

func object(open bool, fields ...named) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, f := range fields {
		s.Properties[f.name] = f.schema
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		s.Required = append(s.Required, f.name)
	}
	if !open {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	return s
}

const draft07 = "http://json-schema.org/draft-07/schema#"

func question(fields ...named) *jsonschema.Schema {
	s := object(true, fields...)
	s.Schema = draft07
	return s
}

func answer(fields ...named) *jsonschema.Schema {
	s := object(false, fields...)
	s.Schema = draft07
	return s
}

// closed is a list of objects that hold nothing else.
func closed(l *jsonschema.Schema) *jsonschema.Schema {
	out, item := *l, *l.Items
	item.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	out.Items = &item
	return &out
}
