package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"mneme/internal/api"
	"mneme/memory"
)

// document is the part of an OpenAPI 3.1 document that Mneme uses.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Info       map[string]string               `json:"info"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components components                      `json:"components"`
	Security   []map[string][]string           `json:"security"`
}

type components struct {
	Schemas         map[string]*jsonschema.Schema `json:"schemas"`
	Responses       map[string]response           `json:"responses"`
	SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
}

type operation struct {
	OperationID string                 `json:"operationId"`
	Summary     string                 `json:"summary"`
	Description string                 `json:"description"`
	Tags        []string               `json:"tags"`
	Parameters  []parameter            `json:"parameters,omitempty"`
	RequestBody *requestBody           `json:"requestBody,omitempty"`
	Responses   map[string]response    `json:"responses"`
	Security    *[]map[string][]string `json:"security,omitempty"`
}

type parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type requestBody struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type response struct {
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Content     map[string]media `json:"content,omitempty"`
}

type media struct {
	Schema  *jsonschema.Schema `json:"schema,omitempty"`
	Example any                `json:"example,omitempty"`
}

// refPrefix is where the schemas of types live in the document.
const refPrefix = "#/components/schemas/"

// openapi builds the document from the route table and the public types.
func (s *server) openapi() ([]byte, error) {
	b := newSchemas(refPrefix)
	doc := document{
		OpenAPI: "3.1.0",
		Info: map[string]string{"title": "Mneme", "version": s.Admin.Version(),
			"description": "A memory for teams of AI agents. Errors are RFC 9457 problems with Mneme's code."},
		Paths:    map[string]map[string]operation{},
		Security: []map[string][]string{{"token": {}}, {}},
	}
	for _, rt := range s.table() {
		op, err := b.operation(&rt)
		if err != nil {
			return nil, fmt.Errorf("rest: document %s %s: %w", rt.method, rt.path, err)
		}
		path := documentPath(rt.path)
		if doc.Paths[path] == nil {
			doc.Paths[path] = map[string]operation{}
		}
		doc.Paths[path][strings.ToLower(rt.method)] = op
	}
	problem, err := b.of(typed[memory.Problem]())
	if err != nil {
		return nil, fmt.Errorf("rest: document problems: %w", err)
	}
	doc.Components = components{
		Schemas: b.named,
		Responses: map[string]response{"Problem": {Description: "An error, see code.",
			Content: map[string]media{mediaProblem: {Schema: problem}}}},
		SecuritySchemes: map[string]map[string]string{"token": {"type": "http", "scheme": "bearer",
			"description": "The operator token, if the node runs with auth."}},
	}
	return json.MarshalIndent(doc, "", "  ")
}

func (s *server) openapiJSON(w http.ResponseWriter, _ *http.Request) error {
	doc, err := s.document()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc)
	return nil
}

// documentPath is the path of a mux pattern as OpenAPI writes it.
func documentPath(path string) string { return strings.Replace(path, "{$}", "", 1) }

// schemas collects the schemas of named types by reflection.
type schemas struct {
	prefix string
	named  map[string]*jsonschema.Schema
	leaves map[reflect.Type]*jsonschema.Schema
}

func newSchemas(prefix string) *schemas {
	str := func(values ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: values} }
	codes := memory.Codes()
	slices.Sort(codes)
	var codeEnum []any
	for _, c := range codes {
		codeEnum = append(codeEnum, string(c))
	}
	return &schemas{prefix: prefix, named: map[string]*jsonschema.Schema{}, leaves: map[reflect.Type]*jsonschema.Schema{
		typed[time.Time]():          {Type: "string", Format: "date-time"},
		typed[json.RawMessage]():    {},
		typed[memory.Kind]():        str(kindEnum()...),
		typed[memory.Scope]():       str("team", "agent"),
		typed[memory.Origin]():      str("capture", "import", "hook", "derived"),
		typed[memory.Mode]():        str("hybrid", "vector", "text"),
		typed[memory.Consistency](): str("local", "linearizable"),
		typed[memory.Purpose]():     str("inject"),
		typed[memory.Syntax]():      str("plain"),
		typed[memory.ItemStatus]():  str("created", "duplicate", "conflict", "rejected"),
		typed[memory.Code]():        str(codeEnum...),
	}}
}

var typeArgument = regexp.MustCompile(`\[.*[./](\w+)\]`)

// of returns a reference to the schema of a struct type, or the schema itself
// of any other type.
func (b *schemas) of(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() != reflect.Struct || t == typed[time.Time]() {
		return jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: b.leaves})
	}
	name := typeArgument.ReplaceAllString(t.Name(), "Of$1")
	ref := &jsonschema.Schema{Ref: b.prefix + name}
	if b.named[name] != nil {
		return ref, nil
	}
	b.named[name] = &jsonschema.Schema{} // taken, while its parts are made
	known := map[reflect.Type]*jsonschema.Schema{}
	for leaf, s := range b.leaves {
		known[leaf] = s
	}
	for _, part := range structParts(t) {
		s, err := b.of(part)
		if err != nil {
			return nil, err
		}
		known[part] = s
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	nullable(s)
	if t == typed[memory.Hit]() || t == typed[memory.Record]() {
		s.Required = nil
		s.Description = "Where a request names fields, only those are there."
	}
	if slices.Contains(requests, t) {
		limit(s)
	}
	b.named[name] = s
	return ref, nil
}

// nullable repairs what inference makes of pointers to known types: a null type
// beside a reference or beside no type at all would allow nothing but null, and
// an enumeration must list null to allow it.
func nullable(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	onlyNull := len(s.Types) == 1 && s.Types[0] == "null"
	switch {
	case onlyNull && s.Ref != "":
		s.AnyOf = []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}
		s.Ref, s.Types = "", nil
	case onlyNull:
		s.Types = nil
	case len(s.Enum) > 0 && slices.Contains(s.Types, "null"):
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	for _, p := range s.Properties {
		nullable(p)
	}
	nullable(s.Items)
	nullable(s.AdditionalProperties)
}

// structParts lists the struct types that the fields of t are made of. Embedded
// ones are part of t itself.
func structParts(t reflect.Type) []reflect.Type {
	var parts []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != typed[time.Time]() && !f.Anonymous && inner.Name() != "" {
			parts = append(parts, inner)
		}
	}
	return parts
}

func (b *schemas) operation(rt *route) (operation, error) {
	say, known := descriptions[rt.method+" "+rt.path]
	if !known {
		return operation{}, errors.New("it has no description")
	}
	op := operation{OperationID: say.name, Summary: rt.summary, Description: say.about, Tags: []string{tag(rt.path)},
		Responses: map[string]response{"default": {Ref: "#/components/responses/Problem"}}}
	for _, p := range rt.params {
		op.Parameters = append(op.Parameters, parameter{Name: p.name, In: p.in, Description: p.about,
			Required: p.in == "path", Schema: p.schema()})
	}
	if rt.body != nil {
		s, err := b.of(rt.body)
		if err != nil {
			return op, err
		}
		if rt.batch {
			maxItems, minItems := memory.MaxBatchItems, 1
			s = &jsonschema.Schema{OneOf: []*jsonschema.Schema{s, {Type: "array", Items: s, MinItems: &minItems, MaxItems: &maxItems}}}
		}
		op.RequestBody = &requestBody{Required: true, Content: map[string]media{"application/json": {Schema: s, Example: json.RawMessage(say.example)}}}
	}
	for status, a := range rt.answers {
		res := response{Description: a.about}
		kind := a.media
		if kind == "" {
			kind = "application/json"
		}
		m := media{}
		if a.body != nil {
			s, err := b.of(a.body)
			if err != nil {
				return op, err
			}
			m.Schema = s
		}
		if rt.body == nil && status == http.StatusOK {
			m.Example = say.example
			if a.body != nil && kind != mediaEvents {
				m.Example = json.RawMessage(say.example)
			}
		}
		res.Content = map[string]media{kind: m}
		op.Responses[strconv.Itoa(status)] = res
	}
	if rt.right == api.RightOpen {
		op.Security = &[]map[string][]string{}
	}
	return op, nil
}

func (p *param) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Enum: p.enum}
	switch p.kind {
	case "date-time":
		s.Format = p.kind
	case "integer", "boolean":
		s.Type = p.kind
	}
	if p.to > p.from {
		s.Minimum, s.Maximum = &p.from, &p.to
	}
	if p.length > 0 {
		s.MaxLength = &p.length
	}
	if p.many {
		return &jsonschema.Schema{Type: "array", Items: s}
	}
	return s
}

// tag groups operations in the document.
func tag(path string) string {
	switch {
	case strings.Contains(path, "/records"):
		return "records"
	case strings.Contains(path, "/admin/"):
		return "admin"
	case strings.Contains(path, "/namespaces"):
		return "namespaces"
	}
	return "system"
}
