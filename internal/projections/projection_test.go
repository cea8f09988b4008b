package projections

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outlive are the rows that have a namespace in their key and stay when it ends.
var outlive = []byte{prefixHash, prefixEntry, prefixAudit}

// TestEveryPrefixBelongsToOneProjection walks the prefixes of keys.go and of
// package text. A prefix that no projection declares would outlive the namespaces
// whose rows lie below it.
func TestEveryPrefixBelongsToOneProjection(t *testing.T) {
	owner := map[byte]string{}
	for _, d := range declarations() {
		for _, r := range d.rows {
			if was, ok := owner[r.prefix]; ok {
				t.Errorf("prefix %#x belongs to %s and to %s", r.prefix, was, d.name)
			}
			owner[r.prefix] = d.name
			ends := strings.HasPrefix(r.key, "namespace16") || strings.HasPrefix(r.key, "partition4")
			if stays := r.scope == ofShard; ends && stays != slices.Contains(outlive, r.prefix) {
				t.Errorf("rows %#x of %s end with their %s, and their keys are %q: what outlives its namespace stands in outlive", r.prefix, d.name, r.scope, r.key)
			}
			begins := map[scope]string{ofNamespace: "namespace16", ofPartition: "partition4"}[r.scope]
			if !strings.HasPrefix(r.key, begins) || r.holds == "" {
				t.Errorf("rows %#x of %s end with their %s, and their keys are %q", r.prefix, d.name, r.scope, r.key)
			}
		}
	}
	consts := map[string]byte{}
	for _, file := range []string{"keys.go", "../index/text/keys.go"} {
		for name, value := range prefixesOf(t, file) {
			consts[name] = value
			if owner[value] == "" {
				t.Errorf("no projection declares %s (%#x)", name, value)
			}
			delete(owner, value)
		}
	}
	if len(consts) < 20 {
		t.Errorf("only %d prefixes were found: %v", len(consts), consts)
	}
	for prefix, name := range owner {
		t.Errorf("%s declares prefix %#x, which stands in no keys.go", name, prefix)
	}
}

// prefixesOf reads the constants of a file whose names begin with prefix.
func prefixesOf(t *testing.T, file string) map[string]byte {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]byte{}
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if !strings.HasPrefix(strings.ToLower(name.Name), "prefix") || i >= len(v.Values) {
					continue
				}
				n, err := strconv.ParseUint(v.Values[i].(*ast.BasicLit).Value, 0, 8)
				if err != nil {
					t.Fatalf("%s: %s: %v", file, name.Name, err)
				}
				out[name.Name] = byte(n)
			}
		}
	}
	return out
}

// TestSectionsHaveTagsInOrder: the codec finds a section by its tag.
func TestSectionsHaveTagsInOrder(t *testing.T) {
	for i, s := range sections {
		if int(s.tag) != i+1 || s.append == nil || s.decode == nil {
			t.Errorf("section %d has tag %d", i+1, s.tag)
		}
	}
}

const designFile = "DESIGN.md"

// TestDesignListsAllRows: the table in DESIGN.md is what the projections declare.
// With -rewrite it is written.
func TestDesignListsAllRows(t *testing.T) {
	have, err := os.ReadFile(designFile)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- rows -->\n", "<!-- end of rows -->\n"
	head, rest, ok := bytes.Cut(have, []byte(from))
	_, tail, ok2 := bytes.Cut(rest, []byte(to))
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", designFile, from, to)
	}
	want := slices.Concat(head, []byte(from), []byte(rowTable()), []byte(to), tail)
	if bytes.Equal(have, want) {
		return
	}
	if flag.Lookup("rewrite").Value.String() == "true" {
		if err := os.WriteFile(designFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the table of rows in %s is not what is declared: run with -rewrite", designFile)
}

func rowTable() string {
	var out strings.Builder
	out.WriteString("| projection | end with their | | key | value |\n|---|---|---|---|---|\n")
	for _, d := range declarations() {
		for _, r := range d.rows {
			fact := ""
			if r.fact {
				fact = "F"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | `%02x %s` | %s |\n", d.name, r.scope, fact, r.prefix, strings.ReplaceAll(r.key, "|", "\\|"), strings.ReplaceAll(r.holds, "|", "\\|"))
		}
	}
	return out.String()
}
