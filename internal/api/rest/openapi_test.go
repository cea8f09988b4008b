package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"mneme/memory"
)

// resolvedSchemas keeps what typedSchema made: it is slow under the race
// detector.
var resolvedSchemas sync.Map // reflect.Type → *jsonschema.Resolved

// typedSchema resolves the documented schema of a type.
func typedSchema(t *testing.T, typ reflect.Type) *jsonschema.Resolved {
	t.Helper()
	if known, ok := resolvedSchemas.Load(typ); ok {
		return known.(*jsonschema.Resolved)
	}
	b := newSchemas("#/$defs/")
	root, err := b.of(typ)
	if err != nil {
		t.Fatal(err)
	}
	root = root.CloneSchemas()
	root.Defs = b.named
	resolved, err := root.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		t.Fatalf("schema of %s: %v", typ, err)
	}
	resolvedSchemas.Store(typ, resolved)
	return resolved
}

type docView struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Parameters  []struct{ Name, In string }
		Responses   map[string]any
	} `json:"paths"`
	Components struct {
		Schemas map[string]any `json:"schemas"`
	} `json:"components"`
}

func fetchDoc(t *testing.T) (docView, string) {
	t.Helper()
	rec := newBench(t, nil).do("GET", "/openapi.json", "")
	var doc docView
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc, rec.Body.String()
}

func TestDocumentAndRoutesAreTheSame(t *testing.T) {
	doc, _ := fetchDoc(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi = %q", doc.OpenAPI)
	}
	b := newBench(t, nil)
	documented := map[string]bool{}
	ids := map[string]bool{}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			pattern := strings.ToUpper(method) + " " + path
			if path == "/" {
				pattern += "{$}"
			}
			documented[pattern] = true
			concrete := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
			if _, got := b.s.mux.Handler(httptest.NewRequest(strings.ToUpper(method), concrete, nil)); got != pattern {
				t.Errorf("documented %s is served by %q", pattern, got)
			}
			if ids[op.OperationID] {
				t.Errorf("operationId %s is used twice", op.OperationID)
			}
			ids[op.OperationID] = true
			inPath := 0
			for _, p := range op.Parameters {
				if p.In == "path" {
					inPath++
					if !strings.Contains(path, "{"+p.Name+"}") {
						t.Errorf("%s has no {%s}", pattern, p.Name)
					}
				}
			}
			if inPath != strings.Count(path, "{") {
				t.Errorf("%s documents %d path parameters", pattern, inPath)
			}
			if op.Responses["default"] == nil || len(op.Responses) < 2 {
				t.Errorf("%s documents the responses %v", pattern, op.Responses)
			}
		}
	}
	for pattern := range b.s.routes {
		if !documented[pattern] {
			t.Errorf("%s is served but not documented", pattern)
		}
	}
	for _, promised := range []string{"POST /v1/namespaces", "GET /v1/namespaces", "GET /v1/namespaces/{ns}", "PATCH /v1/namespaces/{ns}",
		"DELETE /v1/namespaces/{ns}", "POST /v1/namespaces/{ns}/events", "GET /v1/namespaces/{ns}/events", "POST /v1/namespaces/{ns}/search",
		"GET /v1/namespaces/{ns}/records", "GET /v1/namespaces/{ns}/records/{id}", "PATCH /v1/namespaces/{ns}/records/{id}",
		"DELETE /v1/namespaces/{ns}/records/{id}", "GET /v1/namespaces/{ns}/records/{id}/history", "GET /v1/namespaces/{ns}/records/{id}/timeline",
		"GET /v1/namespaces/{ns}/audit", "GET /v1/namespaces/{ns}/audit/reads", "GET /v1/namespaces/{ns}/export", "GET /v1/status", "GET /v1/cluster", "GET /livez", "GET /readyz", "GET /metrics", "GET /{$}",
		"POST /v1/admin/rebuild", "GET /v1/admin/doctor", "POST /v1/admin/log/verify", "POST /v1/admin/log/repair", "GET /v1/admin/rejected",
		"GET /v1/admin/quarantine", "GET /v1/admin/backup/log", "POST /v1/admin/backup/keys", "GET /v1/admin/backup/destroyed", "GET /v1/admin/version", "GET /openapi.json"} {
		if !documented[promised] {
			t.Errorf("%s is promised but not documented", promised)
		}
	}
}

func TestDocumentReferencesExist(t *testing.T) {
	doc, text := fetchDoc(t)
	for _, m := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if doc.Components.Schemas[m[1]] == nil {
			t.Errorf("schema %q is referred to but not there", m[1])
		}
	}
	for name := range doc.Components.Schemas {
		if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(name) {
			t.Errorf("schema name %q is not allowed", name)
		}
	}
}

// TestDocumentWasMute: operations were named after their paths and nothing said what they
// do, what their fields mean and may be, or what a request looks like.
func TestDocumentWasMute(t *testing.T) {
	_, text := fetchDoc(t)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID, Summary, Description string
			Parameters                        []struct {
				Name, In, Description string
				Schema                *jsonschema.Schema
			}
			RequestBody *struct {
				Content map[string]struct{ Example json.RawMessage }
			}
			Responses map[string]struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
		Components struct{ Schemas map[string]*jsonschema.Schema }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil)
	sentence := regexp.MustCompile(`^[A-Z0-9].*[.?]$`)
	operations := 0
	for path, ops := range doc.Paths {
		for method, op := range ops {
			operations++
			pattern := strings.ToUpper(method) + " " + path
			if path == "/" {
				pattern += "{$}"
			}
			rt := b.s.routes[pattern]
			if !regexp.MustCompile(`^[a-z]+([A-Z]+[a-z]*)+$`).MatchString(op.OperationID) {
				t.Errorf("%s is called %q: it needs a verb and what it is done to", pattern, op.OperationID)
			}
			if !sentence.MatchString(op.Summary) || !sentence.MatchString(op.Description) || op.Summary == op.Description {
				t.Errorf("%s: summary %q, description %q: both need a sentence", pattern, op.Summary, op.Description)
			}
			for _, p := range op.Parameters {
				s := p.Schema
				if p.Description == "" || s.Type == "integer" && (s.Minimum == nil || s.Maximum == nil) {
					t.Errorf("%s: parameter %s lacks a description or bounds", pattern, p.Name)
				}
				if s.Type == "string" && p.In == "path" && s.MaxLength == nil {
					t.Errorf("%s: parameter %s may have any length", pattern, p.Name)
				}
			}
			if op.RequestBody != nil {
				b.validate(typedSchema(t, rt.body), string(op.RequestBody.Content["application/json"].Example))
				continue
			}
			for kind, m := range op.Responses["200"].Content {
				if len(m.Example) == 0 {
					t.Errorf("%s has no example", pattern)
				} else if body := rt.answers[200].body; kind == mediaEvents {
					var example string
					if err := json.Unmarshal(m.Example, &example); err != nil || len(documents(kind, example)) == 0 {
						t.Errorf("%s: the example of %s is %s: %v", pattern, kind, m.Example, err)
					}
					for _, doc := range documents(kind, example) {
						b.validate(typedSchema(t, body), doc)
					}
				} else if body != nil {
					b.validate(typedSchema(t, body), string(m.Example))
				} else if m.Example[0] != '"' {
					t.Errorf("%s: the example of %s is %s", pattern, kind, m.Example)
				}
			}
		}
	}
	if operations != len(b.s.routes) || operations != len(descriptions) {
		t.Errorf("%d operations, %d routes, %d descriptions", operations, len(b.s.routes), len(descriptions))
	}
	for _, rt := range b.s.table() {
		if rt.body != nil && rt.path != mcpPath && !slices.Contains(requests, rt.body) {
			t.Errorf("%s %s: bounds of %s are not in the document", rt.method, rt.path, rt.body)
		}
	}
	used := map[string]bool{}
	for _, typ := range requests {
		for name, s := range doc.Components.Schemas[typ.Name()].Properties {
			used[name] = true
			kinds := append(s.Types, s.Type)
			switch {
			case s.Description == "":
				t.Errorf("%s.%s has no description", typ.Name(), name)
			case slices.ContainsFunc(kinds, func(k string) bool { return k == "integer" || k == "number" }) && (s.Minimum == nil || s.Maximum == nil):
				t.Errorf("%s.%s has no bounds", typ.Name(), name)
			case slices.Contains(kinds, "string") && s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "":
				t.Errorf("%s.%s may have any length", typ.Name(), name)
			case slices.Contains(kinds, "array") && s.MaxItems == nil && name != "vector":
				t.Errorf("%s.%s may have any number of items", typ.Name(), name)
			}
		}
	}
	for name := range bounds {
		if !used[name] {
			t.Errorf("no request has a field %s", name)
		}
	}
}

// TestBoundsAreThoseOfTheNode compares what the document allows with what requests are
// held to.
func TestBoundsAreThoseOfTheNode(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"query":"x","limit":200,"max_text":262144,"budget":10000000,"min_score":1}`: true,
		`{"query":"x","limit":1,"max_text":0,"budget":1,"min_score":0}`:               true,
		`{"query":"x","limit":0}`:                  false,
		`{"query":"x","limit":201}`:                false,
		`{"query":"x","max_text":-1}`:              false,
		`{"query":"x","max_text":262145}`:          false,
		`{"query":"x","budget":0}`:                 false,
		`{"query":"x","budget":10000001}`:          false,
		`{"query":"x","min_score":1.01}`:           false,
		`{"query":"x","min_score":-0.1}`:           false,
		`{"query":"x","limit":null,"budget":null}`: true,
	} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		allowed := typedSchema(t, typed[memory.SearchRequest]()).Validate(v) == nil
		rec := newBench(t, nil).do("POST", "/v1/namespaces/team/search", body)
		if allowed != ok || (rec.Code == 200) != ok {
			t.Errorf("%s: the document allows it: %v; the node answers %d %s", body, allowed, rec.Code, rec.Body)
		}
	}
}

func TestSchemasRefuseWhatTheNodeRefuses(t *testing.T) {
	b := newBench(t, nil)
	for _, rt := range b.s.table() {
		if rt.body == nil || rt.path == mcpPath { // whose messages are another protocol's
			continue
		}
		schema := typedSchema(t, rt.body)
		if err := schema.Validate(map[string]any{"no_such_field": 1}); err == nil {
			t.Errorf("%s %s: the schema allows unknown fields", rt.method, rt.path)
		}
	}
}

func TestSchemasAllowNullWhereTheNodeDoes(t *testing.T) {
	schema := typedSchema(t, typed[memory.Revision]())
	for _, field := range []string{"text", "kind", "tags", "metadata", "importance", "occurred_at"} {
		if err := schema.Validate(map[string]any{field: nil}); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	for field, value := range map[string]any{"kind": "fact", "metadata": map[string]any{"a": 1.0}, "tags": []any{"a"}} {
		if err := schema.Validate(map[string]any{field: value}); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	if schema.Validate(map[string]any{"kind": "idea"}) == nil {
		t.Error("the schema allows an unknown kind")
	}
}

func TestNewRefusesWhatIsIncomplete(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no error without parts")
	}
	b := newBench(t, nil)
	for name, change := range map[string]func(*Options){
		"listen address": func(o *Options) { o.ListenAddr = "nonsense" },
		"origin":         func(o *Options) { o.AllowedOrigins = []string{"example.com"} },
		"metrics twice":  func(o *Options) { o.Registerer = b.metrics },
	} {
		opt := b.s.Options
		opt.Registerer = nil
		change(&opt)
		if _, err := New(opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPageAndMetricsAreOptional(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Web, o.Metrics = nil, nil })
	for _, path := range []string{"/", "/metrics"} {
		if rec := b.do("GET", path, ""); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}
