package mcp

import (
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"mneme/memory"
)

// schemaOf is the schema of a type, made once at the start. A list is an array and never null,
// which some clients cannot read otherwise.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: schema of a tool: %v", err)) // types are fixed: any test meets it
	}
	plain(s)
	return s
}

func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	plain(s.Items)
	for name, p := range s.Properties {
		plain(p)
		if name == "kind" && p.Type == "string" {
			p.Enum = kinds()
		}
		if name == "kinds" && p.Items != nil {
			p.Items.Enum = kinds()
		}
	}
}

func kinds() []any {
	all := make([]any, len(memory.Kinds))
	for i, k := range memory.Kinds {
		all[i] = string(k)
	}
	return all
}
