package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// schemas are those of the answers of all tools that a session has.
func schemas(t *testing.T, s *sdk.ClientSession) map[string]*jsonschema.Resolved {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Resolved{}
	for _, tool := range list.Tools {
		b, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(b, &schema); err != nil {
			t.Fatalf("%s: %v in %s", tool.Name, err, b)
		}
		if out[tool.Name], err = schema.Resolve(nil); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	return out
}

// TestAnswersFitTheirSchemas: each tool answers what its schema says, where there is nothing and
// where there is something. The server does not look at that itself.
func TestAnswersFitTheirSchemas(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&profile=full", nil)
	left := schemas(t, s)
	all := map[string]*jsonschema.Resolved{}
	for name, schema := range left {
		all[name] = schema
	}
	fits := func(name string, in map[string]any, out any) {
		t.Helper()
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
		if err != nil {
			t.Fatalf("%s %v: %v", name, in, err)
		}
		if res.IsError {
			t.Fatalf("%s %v: %v", name, in, res.Content[0].(*sdk.TextContent).Text)
		}
		if err := all[name].Validate(res.StructuredContent); err != nil {
			t.Errorf("%s %v: %v in %v", name, in, err, res.StructuredContent)
		}
		if b, err := json.Marshal(res.StructuredContent); err != nil || out != nil && json.Unmarshal(b, out) != nil {
			t.Fatalf("%s %v: %s", name, in, b)
		}
		delete(left, name)
	}
	type object = map[string]any
	texts := func(s ...string) []string { return append([]string{}, s...) }

	fits("memory_search", object{"query": "deploys"}, nil)
	fits("memory_list", object{}, nil)
	fits("memory_recall", object{"query": "deploys"}, nil)
	fits("read_graph", object{}, nil)
	fits("search_nodes", object{"query": "nobody"}, nil)
	fits("open_nodes", object{"names": texts("nobody")}, nil)

	var first, second ided
	fits("memory_store", object{"text": "Deploys happen on Tuesdays.", "tags": texts("deploy"), "conversation": "c"}, &first)
	fits("memory_store", object{"text": "The database is called heron.", "derived_from": texts(first.ID), "conversation": "c", "private": true}, &second)
	fits("memory_store", object{"text": "Deploys happen on Tuesdays.", "tags": texts("deploy"), "conversation": "c"}, nil) // a repetition
	fits("memory_search", object{"query": "When do deploys happen?"}, nil)
	fits("memory_recall", object{"query": "When do deploys happen?"}, nil)
	fits("memory_list", object{"limit": 1}, nil)
	fits("memory_get", object{"ids": texts(first.ID, second.ID, "01a00000000000000000000000000000")}, nil)
	fits("memory_timeline", object{"id": first.ID}, nil)
	fits("memory_revise", object{"id": first.ID, "text": "Deploys happen on Wednesdays."}, nil)
	fits("memory_forget", object{"id": first.ID}, nil)

	fits("create_entities", object{"entities": []object{{"name": "ann", "entityType": "person", "observations": texts()}, {"name": "heron", "entityType": "database", "observations": texts("is old")}}}, nil)
	fits("create_entities", object{"entities": []object{{"name": "ann", "entityType": "person", "observations": texts()}}}, nil)
	fits("create_relations", object{"relations": []object{{"from": "ann", "to": "heron", "relationType": "keeps"}}}, nil)
	fits("create_relations", object{"relations": []object{{"from": "ann", "to": "heron", "relationType": "keeps"}}}, nil)
	fits("add_observations", object{"observations": []object{{"entityName": "ann", "contents": texts("likes birds")}, {"entityName": "heron", "contents": texts("is old")}}}, nil)
	fits("add_observations", object{"observations": []object{}}, nil)
	fits("read_graph", object{}, nil)
	fits("search_nodes", object{"query": "birds"}, nil)
	fits("open_nodes", object{"names": texts("ann", "heron")}, nil)
	fits("delete_observations", object{"deletions": []object{{"entityName": "heron", "observations": texts("is old")}}}, nil)
	fits("delete_relations", object{"relations": []object{{"from": "ann", "to": "heron", "relationType": "keeps"}}}, nil)
	fits("delete_entities", object{"entityNames": texts("ann", "heron")}, nil)
	for name := range left {
		t.Errorf("nobody asked %s", name)
	}
}
