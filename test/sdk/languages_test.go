package sdk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// asArguments are the schemas that the Python client takes apart into arguments.
var asArguments = []string{"CreateNamespace", "PatchNamespace", "Revision", "SearchNamespaces", "SearchRequest", "SwitchEmbedder"}

// asItems are those that a caller makes.
var asItems = []string{"Capture", "Filter", "GraphChange", "GraphOperation"}

// TestPythonTypes: the Python client has every schema and every field of the document.
func TestPythonTypes(t *testing.T) {
	d, said := readDocument(t, node(t).http), readComments(t)
	var b strings.Builder
	b.WriteString(`"""What the node takes and answers, written from its OpenAPI document by test/sdk. Do not edit.

Fields that a newer node adds are left out; fields that an answer leaves out are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

`)
	for _, name := range slices.Sorted(maps.Keys(enums())) {
		b.WriteString(wrap(fmt.Sprintf("%s = Literal[%s]\n", name, quoted(enums()[name], ", ")), "    "))
	}
	for _, name := range d.reachable() {
		if slices.Contains(asArguments, name) {
			continue
		}
		fmt.Fprintf(&b, "\n\n@dataclass(frozen=True, kw_only=True)\nclass %s:\n%s", name, docstring(d.about(name, said), "None"))
		for _, f := range d.fields(t, name, said) {
			if f.about != "" {
				b.WriteString("\n" + comment(strings.ReplaceAll(f.about, "nil", "None"), "    #: "))
			}
			fmt.Fprintf(&b, "    %s: %s\n", pythonName(f.name), pythonField(f, slices.Contains(asItems, name)))
		}
	}
	expect(t, "sdk/python/mneme/types.py", b.String())
}

// TestPythonOperations: the table by which the Python client makes requests is that of the
// document.
func TestPythonOperations(t *testing.T) {
	d, said := readDocument(t, node(t).http), readComments(t)
	var b strings.Builder
	b.WriteString(`"""How requests are made, written from the node's OpenAPI document by test/sdk. Do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """One operation of the document."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()  # the names that its JSON always has


OPERATIONS = {
`)
	for _, op := range d.operations {
		fmt.Fprintf(&b, "    %q: Operation(\n        %q,\n        %q,\n", op.ID, op.method, op.path)
		for _, part := range []struct {
			name  string
			names []string
		}{{"query", op.names("query")}, {"headers", op.names("header")}, {"answer", d.answer(t, op, said)}} {
			if len(part.names) > 0 {
				b.WriteString(wrap(fmt.Sprintf("        %s=(%s,),\n", part.name, quoted(part.names, ", ")), "            "))
			}
		}
		b.WriteString("    ),\n")
	}
	b.WriteString("}\n")
	expect(t, "sdk/python/mneme/_operations.py", b.String())
}

// TestTypeScriptTypes: the TypeScript client has every schema, field and parameter of the
// document.
func TestTypeScriptTypes(t *testing.T) {
	d, said := readDocument(t, node(t).http), readComments(t)
	var b strings.Builder
	b.WriteString("// What the node takes and answers, written from its OpenAPI document by test/sdk. Do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(enums())) {
		fmt.Fprintf(&b, "\nexport type %s =\n  | %s;\n", name, quoted(enums()[name], "\n  | "))
	}
	for _, name := range d.reachable() {
		fmt.Fprintf(&b, "\n%sexport interface %s {\n", jsdoc(d.about(name, said), ""), name)
		for _, f := range d.fields(t, name, said) {
			if f.about != "" {
				b.WriteString(jsdoc(strings.ReplaceAll(f.about, "nil", "null"), "  "))
			}
			f.kind.dated = f.kind.base == "date-time" && (slices.Contains(asArguments, name) || slices.Contains(asItems, name))
			b.WriteString(scriptField(f))
		}
		b.WriteString("}\n")
	}
	for _, op := range d.operations {
		var fields strings.Builder
		for _, p := range op.Parameters {
			if p.In == "path" || p.In == "header" && p.Name == "Mneme-Agent" { // the same as `as`
				continue
			}
			name := parameterName(p.Name)
			if strings.Contains(fields.String(), "  "+name+"?:") {
				continue
			}
			k := kindOf(t, p.Schema)
			k.null, k.dated = false, k.base == "date-time"
			fields.WriteString(jsdoc(p.Description, "  "))
			fmt.Fprintf(&fields, "  %s?: %s;\n", name, scriptKind(k))
		}
		if fields.Len() == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n/** What may be said beside the request of %s. */\nexport interface %s {\n%s}\n", op.ID, strings.ToUpper(op.ID[:1])+op.ID[1:]+"Options", fields.String())
	}
	expect(t, "sdk/typescript/types/wire.d.ts", b.String())
}

// TestTypeScriptOperations: the table by which the TypeScript client makes requests is that
// of the document.
func TestTypeScriptOperations(t *testing.T) {
	d, said := readDocument(t, node(t).http), readComments(t)
	var b strings.Builder
	b.WriteString("// How requests are made, written from the node's OpenAPI document by test/sdk. Do not edit.\n\nexport const operations = {\n")
	for _, op := range d.operations {
		fmt.Fprintf(&b, "  %s: {\n    method: %q,\n    path: %q,\n    query: [%s],\n    headers: [%s],\n    answer: [%s],\n  },\n", op.ID, op.method, op.path,
			quoted(op.names("query"), ", "), quoted(op.names("header"), ", "), quoted(d.answer(t, op, said), ", "))
	}
	b.WriteString("};\n")
	expect(t, "sdk/typescript/src/operations.js", b.String())
}

// about is what a type is.
func (d *document) about(name string, said comments) string {
	return strings.TrimSpace(said.types[name] + " " + d.Components.Schemas[name].Description)
}

func quoted(names []string, between string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, between)
}

// width is how long lines may get.
const width = 110

// wrap breaks a line that is too long behind commas, and indents what follows.
func wrap(line, indent string) string {
	var b strings.Builder
	length := 0
	for i, word := range strings.Split(line, ", ") {
		if i > 0 {
			if length+2+utf8.RuneCountInString(word) > width {
				b.WriteString(",\n" + indent)
				length = len(indent)
			} else {
				b.WriteString(", ")
				length += 2
			}
		}
		b.WriteString(word)
		length += utf8.RuneCountInString(word)
	}
	return b.String()
}

// comment writes a text behind a prefix, in lines that are not too long.
func comment(text, prefix string) string {
	var b strings.Builder
	line := prefix
	for _, word := range strings.Fields(text) {
		if line != prefix && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		}
		if line != prefix {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

func docstring(text, null string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "nil", null)
	if short := `    """` + text + `"""` + "\n"; len(short) <= width {
		return short
	}
	lines := comment(text, "    ")
	return `    """` + strings.TrimPrefix(lines, "    ") + `    """` + "\n"
}

func jsdoc(text, indent string) string {
	if text == "" {
		return ""
	}
	if short := indent + "/** " + text + " */\n"; len(short) <= width {
		return short
	}
	return indent + "/**\n" + comment(text, indent+" * ") + indent + " */\n"
}

// pythonName is a name that Python keeps for itself with an underscore behind it.
func pythonName(name string) string {
	if slices.Contains([]string{"and", "as", "class", "for", "from", "global", "if", "import", "in", "is", "not", "or", "pass", "return", "with"}, name) {
		return name + "_"
	}
	return name
}

func pythonKind(k kind) string {
	base := map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool", "date-time": "datetime", "any": "Any"}[k.base]
	switch {
	case k.named:
		base = k.base
	case k.base == "map":
		value := "Any"
		if k.enum != "" {
			value = pythonKind(kind{base: k.enum})
		}
		base = "dict[str, " + value + "]"
	case k.enum != "":
		base = k.enum
	case len(k.literals) > 0:
		base = "Literal[" + quoted(k.literals, ", ") + "]"
	}
	if k.many {
		base = "list[" + base + "]"
	}
	return base
}

// pythonField is the type of a field and what it is where it is not given.
func pythonField(f field, item bool) string {
	typ := pythonKind(f.kind)
	if f.kind.null && !f.kind.many {
		typ += " | None"
	}
	switch {
	case f.required:
		return typ
	case item && (f.kind.many || f.kind.base == "date-time" || f.kind.base == "any") || f.kind.named && !f.kind.many || f.kind.null && !f.kind.many:
		return strings.TrimSuffix(typ, " | None") + " | None = None"
	case item && f.kind.enum != "":
		return typ + " | None = None"
	case f.kind.many:
		return typ + " = field(default_factory=list)"
	case f.kind.base == "map":
		return typ + " = field(default_factory=dict)"
	case f.kind.base == "any":
		return typ + " = None"
	case f.kind.base == "date-time" || len(f.kind.literals) > 0:
		return typ + " | None = None"
	}
	return typ + " = " + map[string]string{"string": `""`, "integer": "0", "number": "0.0", "boolean": "False"}[f.kind.base]
}

func scriptKind(k kind) string {
	base := map[string]string{"integer": "number", "date-time": "string", "any": "unknown"}[k.base]
	switch {
	case k.base == "map":
		value := "unknown"
		if k.enum != "" {
			value = scriptKind(kind{base: k.enum})
		}
		if len(k.literals) > 0 {
			value += " | null"
		}
		base = "{ [name: string]: " + value + " }"
	case k.enum != "":
		base = k.enum
	case len(k.literals) > 0:
		base = quoted(k.literals, " | ")
	case k.dated:
		base = "string | Date"
	case base == "":
		base = k.base
	}
	if k.many && (strings.Contains(base, " ")) {
		base = "(" + base + ")"
	}
	if k.many {
		base += "[]"
	}
	return base
}

func scriptField(f field) string {
	mark := "?"
	if f.required || f.always {
		mark = ""
	}
	return fmt.Sprintf("  %s%s: %s;\n", f.name, mark, scriptKind(f.kind))
}

// parameterName is what the clients call a parameter that is a header.
func parameterName(name string) string {
	switch name {
	case "If-Match":
		return "if_version"
	case "Idempotency-Key":
		return "key"
	case "Last-Event-ID":
		return "from"
	}
	return name
}
