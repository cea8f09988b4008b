package sdk

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// schema is the part of a JSON Schema that the document uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Description string             `json:"description"`
	Type        any                `json:"type"` // a name, or several
	Format      string             `json:"format"`
	Enum        []any              `json:"enum"`
	Items       *schema            `json:"items"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
	Properties  map[string]*schema `json:"properties"`
	Values      *schema            `json:"additionalProperties"`
	Required    []string           `json:"required"`
}

// UnmarshalJSON reads true as the schema of anything, and false as none.
func (s *schema) UnmarshalJSON(b []byte) error {
	type plain schema
	if string(b) == "true" || string(b) == "false" {
		return nil
	}
	return json.Unmarshal(b, (*plain)(s))
}

type media struct {
	Schema *schema `json:"schema"`
}

type operation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Parameters []struct {
		Name        string  `json:"name"`
		In          string  `json:"in"`
		Description string  `json:"description"`
		Schema      *schema `json:"schema"`
	} `json:"parameters"`
	RequestBody *struct {
		Content map[string]media `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]media `json:"content"`
	} `json:"responses"`

	method, path string
}

// names lists the operation's parameters of one place, in the document's order.
func (o *operation) names(in string) []string {
	out := []string{}
	for _, p := range o.Parameters {
		if p.In == in {
			out = append(out, p.Name)
		}
	}
	return out
}

// document is the OpenAPI document of a node.
type document struct {
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
	operations []*operation // for agents, by name
}

// forOperators says which paths are not for agents: probes, the page, the document
// itself, and what concerns a node as a whole, which memctl and the Go client do.
func forOperators(path string) bool {
	return !strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1/admin/")
}

func readDocument(t *testing.T, url string) *document {
	t.Helper()
	resp, err := http.Get(url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the document: %s %.1000s %v", resp.Status, body, err)
	}
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if op.method, op.path = strings.ToUpper(method), path; !forOperators(path) {
				d.operations = append(d.operations, op)
			}
		}
	}
	slices.SortFunc(d.operations, func(a, b *operation) int { return strings.Compare(a.ID, b.ID) })
	if len(d.operations) == 0 {
		t.Fatalf("the document has no operations: %.2000s", body)
	}
	return &d
}

// reachable names the schemas that the operations of agents are made of, and those of
// errors.
func (d *document) reachable() []string {
	seen := map[string]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		if s == nil {
			return
		}
		if name := refName(s); name != "" && !seen[name] {
			seen[name] = true
			visit(d.Components.Schemas[name])
		}
		for _, part := range slices.Concat(s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.Properties)), []*schema{s.Items, s.Values}) {
			visit(part)
		}
	}
	visit(&schema{Ref: refPrefix + "Problem"})
	for _, op := range d.operations {
		if op.RequestBody != nil {
			for _, m := range op.RequestBody.Content {
				visit(m.Schema)
			}
		}
		for _, r := range op.Responses {
			for _, m := range r.Content {
				visit(m.Schema)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

const refPrefix = "#/components/schemas/"

func refName(s *schema) string { return strings.TrimPrefix(s.Ref, refPrefix) }

// field is one property of a schema, ready to be written in a language.
type field struct {
	name, about string
	kind        kind
	required    bool
	always      bool // there unless the request names fields
}

// kind is what a value may be.
type kind struct {
	base     string // string, integer, number, boolean, date-time, any, map, or a named schema
	named    bool   // base is a schema
	enum     string // name of the values of a string; "" = any string
	literals []string
	many     bool
	null     bool
	dated    bool // a caller may give the language's own time
}

// enums are the sets of values that have a name.
func enums() map[string][]string {
	out := map[string][]string{
		"Scope":       {"team", "agent"},
		"Origin":      {"capture", "import", "hook", "derived"},
		"Mode":        {"hybrid", "vector", "text"},
		"Consistency": {"local", "linearizable"},
		"Wait":        {"accepted", "applied", "searchable"},
		"Purpose":     {string(memory.PurposeInject)},
		"Syntax":      {string(memory.SyntaxPlain)},
		"ItemStatus":  {"created", "duplicate", "conflict", "rejected"},
	}
	for _, k := range memory.Kinds {
		out["Kind"] = append(out["Kind"], string(k))
	}
	for _, c := range memory.Codes() {
		out["Code"] = append(out["Code"], string(c))
	}
	slices.Sort(out["Code"])
	return out
}

func kindOf(t *testing.T, s *schema) kind {
	t.Helper()
	var types []string
	switch v := s.Type.(type) {
	case string:
		types = []string{v}
	case []any:
		for _, name := range v {
			types = append(types, name.(string))
		}
	}
	k := kind{null: slices.Contains(types, "null")}
	types = slices.DeleteFunc(types, func(n string) bool { return n == "null" })
	switch {
	case s.Ref != "":
		k.base, k.named = refName(s), true
	case len(s.AnyOf) > 0:
		for _, part := range s.AnyOf {
			if part.Ref != "" {
				k.base, k.named = refName(part), true
			}
		}
		k.null = true
	case len(types) == 0:
		k.base = "any"
	case types[0] == "array":
		k = kindOf(t, s.Items)
		k.many, k.null = true, k.null || s.Type != "array"
	case types[0] == "object" && len(s.Properties) == 0:
		k.base = "map"
		if s.Values != nil && s.Values.Type != nil {
			v := kindOf(t, s.Values)
			k.enum = v.base // of the values
			if v.null {
				k.literals = []string{"null"}
			}
		}
	case types[0] == "string" && s.Format == "date-time":
		k.base = "date-time"
	case types[0] == "string":
		k.base = "string"
		for _, v := range s.Enum {
			if v != nil {
				k.literals = append(k.literals, v.(string))
			}
		}
		for name, values := range enums() {
			if len(k.literals) > 0 && slices.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(k.literals))) {
				k.enum = name
			}
		}
	case slices.Contains([]string{"integer", "number", "boolean"}, types[0]):
		k.base = types[0]
	}
	if k.base == "" {
		t.Fatalf("this test cannot read the schema %+v", *s)
	}
	return k
}

// fields are the properties of a schema, as they stand in the Go type that it is made of.
func (d *document) fields(t *testing.T, name string, said comments) []field {
	t.Helper()
	s := d.Components.Schemas[name]
	var out []field
	for property, about := range s.Properties {
		if name == "SearchNamespaces" && property == "filter" { // it is written out in place there
			about = d.Components.Schemas["SearchRequest"].Properties[property]
		}
		f := field{name: property, about: about.Description, kind: kindOf(t, about), required: slices.Contains(s.Required, property)}
		f.always = f.required || len(s.Required) == 0 && s.Description != "" && !said.optional[name][property]
		if f.about == "" {
			f.about = said.fields[name][property]
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b field) int {
		order := said.order[name]
		return slices.Index(order, a.name) - slices.Index(order, b.name)
	})
	return out
}

// answer are the names that are always there in the JSON that the operation answers; none of what it answers as it goes.
func (d *document) answer(t *testing.T, o *operation, said comments) (names []string) {
	t.Helper()
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		m, ok := o.Responses[status].Content["application/json"]
		if !ok || names != nil || !strings.HasPrefix(status, "2") {
			continue
		}
		for _, f := range d.fields(t, refName(m.Schema), said) {
			if f.always {
				names = append(names, f.name)
			}
		}
	}
	return names
}

// comments is what the Go types say about themselves.
type comments struct {
	types  map[string]string
	fields map[string]map[string]string // by type and JSON name
	order  map[string][]string          // JSON names by type
	// optional are those that are left out where they are empty.
	optional map[string]map[string]bool
}

// readComments reads the vocabulary's types, and those that only the transport has.
func readComments(t *testing.T) comments {
	t.Helper()
	said := comments{map[string]string{}, map[string]map[string]string{}, map[string][]string{}, map[string]map[string]bool{}}
	embedded := map[string][]string{}
	for _, dir := range []string{"memory", "internal/api/rest"} {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() {
						said.read(ts, gen, embedded)
					}
				}
			}
		}
	}
	for name, parts := range embedded {
		for _, part := range parts {
			for property, about := range said.fields[part] {
				said.fields[name][property] = about
			}
			said.order[name] = append(said.order[name], said.order[part]...)
			for _, inner := range embedded[part] {
				maps.Copy(said.fields[name], said.fields[inner])
				said.order[name] = append(said.order[name], said.order[inner]...)
			}
		}
	}
	return said
}

func (c comments) read(ts *ast.TypeSpec, gen *ast.GenDecl, embedded map[string][]string) {
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return
	}
	name := ts.Name.Name
	c.fields[name], c.optional[name] = map[string]string{}, map[string]bool{}
	wire := map[string]string{} // JSON name by Go name
	about := map[string]string{}
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 {
			if id, ok := f.Type.(*ast.Ident); ok {
				embedded[name] = append(embedded[name], id.Name)
			}
			continue
		}
		if f.Tag == nil {
			continue
		}
		property, rest, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		wire[f.Names[0].Name] = property
		c.order[name] = append(c.order[name], property)
		c.optional[name][property] = strings.Contains(rest, "omit")
		about[property] = f.Doc.Text() + f.Comment.Text()
	}
	for property, text := range about {
		c.fields[name][property] = plain(text, wire, "")
	}
	doc := ts.Doc.Text()
	if doc == "" {
		doc = gen.Doc.Text()
	}
	c.types[name] = plain(doc, wire, name)
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// plain is a comment in one line with the names of fields as they are on the wire.
func plain(text string, wire map[string]string, typeName string) string {
	text = strings.Join(strings.Fields(text), " ")
	text = goName.ReplaceAllStringFunc(text, func(word string) string {
		if name := wire[word]; name != "" && word != typeName {
			return "`" + name + "`"
		}
		return word
	})
	return strings.TrimSpace(text)
}

// expect compares a file with what it has to hold, or writes it with -rewrite.
func expect(t *testing.T, path, want string) {
	t.Helper()
	full := filepath.Join(root, filepath.FromSlash(path))
	if *rewrite {
		if err := os.WriteFile(full, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	at := 0
	for at < min(len(gotLines), len(wantLines)) && gotLines[at] == wantLines[at] {
		at++
	}
	line := func(lines []string) string {
		if at < len(lines) {
			return lines[at]
		}
		return "(the end)"
	}
	t.Errorf("%s is not what the node's document says, from line %d on:\n\tthere:    %s\n\tdocument: %s\n\tgo test ./test/sdk -run %s -rewrite writes it; then see to the client's methods", path, at+1, line(gotLines), line(wantLines), fmt.Sprintf("'^%s$'", t.Name()))
}
