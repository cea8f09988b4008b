package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Breadth of a type: over these, a second type hides in it, however many files
// its methods lie in.
const (
	maxMethods = 40
	maxFields  = 20
)

// broad lists the types that were over a limit when the rule came. A number is
// what the type has now; it may only shrink, and a type within the limits leaves
// the list.
var broad = map[string]breadth{
	"client.Client":                 {methods: 41},
	"internal/api/rest.server":      {methods: 59},
	"internal/index/vector.scratch": {fields: 22},
	"internal/ingest.round":         {fields: 23},
	"internal/keyring.Keyring":      {methods: 55},
	"internal/raftfsm.Group":        {methods: 42, fields: 23},
}

// breadth is how much a type has.
type breadth struct{ methods, fields int }

// measure counts the methods and fields of each type that a package declares.
func measure(all []*source) map[string]breadth {
	out := map[string]breadth{}
	for _, s := range all {
		if s.isTest() || s.isGenerated() {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := receiver(d); name != "" {
					b := out[s.dir+"."+name]
					b.methods++
					out[s.dir+"."+name] = b
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					t, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					b := out[s.dir+"."+t.Name.Name]
					b.fields += fields(t.Type)
					out[s.dir+"."+t.Name.Name] = b
				}
			}
		}
	}
	return out
}

// receiver returns the name of a method's type, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// fields counts the fields of a struct; an embedded type is one. What has exported
// fields only is data: a request, a row, options.
func fields(t ast.Expr) int {
	s, ok := t.(*ast.StructType)
	if !ok {
		return 0
	}
	n, data := 0, true
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
		for _, name := range f.Names {
			data = data && name.IsExported()
		}
	}
	if data {
		return 0
	}
	return n
}

// checkBreadth holds types to the limits, but for exceptions.
func checkBreadth(all []*source, exceptions map[string]breadth) []string {
	var bad []string
	found := measure(all)
	for name, is := range found {
		may, listed := exceptions[name]
		switch over := is.methods > maxMethods || is.fields > maxFields; {
		case !over && !listed:
		case !over:
			bad = append(bad, fmt.Sprintf("%s is within the limits now\n\ttake it off the list of exceptions", name))
		case is.methods > max(may.methods, maxMethods) || is.fields > max(may.fields, maxFields):
			bad = append(bad, fmt.Sprintf("%s has %d methods and %d fields, more than %d and %d\n\tfind the second type in it: who uses which fields, what has a life of its own",
				name, is.methods, is.fields, max(may.methods, maxMethods), max(may.fields, maxFields)))
		case is.methods < may.methods && may.methods > maxMethods || is.fields < may.fields && may.fields > maxFields:
			bad = append(bad, fmt.Sprintf("%s has shrunk to %d methods and %d fields\n\tlower its exception to that", name, is.methods, is.fields))
		}
	}
	for name := range exceptions {
		if _, ok := found[name]; !ok {
			bad = append(bad, fmt.Sprintf("%s is gone\n\ttake it off the list of exceptions", name))
		}
	}
	slices.Sort(bad)
	return bad
}

func TestBreadth(t *testing.T) {
	reportAll(t, checkBreadth(slices.Concat(tree(t), nested(t)), broad))
}

func TestBreadthBites(t *testing.T) {
	wide := func(methods, fields int) []*source {
		text := "package x\n\ntype T[P any] struct {\n"
		for i := range fields {
			text += fmt.Sprintf("\tf%d int\n", i)
		}
		text += "}\n"
		for i := range methods {
			text += fmt.Sprintf("func (t *T[P]) m%d() {}\n", i)
		}
		return []*source{snippet(t, "x/x.go", text)}
	}
	listed := func(methods, fields int) map[string]breadth { return map[string]breadth{"x.T": {methods, fields}} }
	expect(t, checkBreadth(wide(40, 20), nil))
	expect(t, checkBreadth(wide(41, 0), nil), "41 methods")
	expect(t, checkBreadth(wide(0, 21), nil), "21 fields")
	expect(t, checkBreadth(wide(50, 5), listed(50, 0)))
	expect(t, checkBreadth(wide(51, 5), listed(50, 0)), "51 methods")
	expect(t, checkBreadth(wide(49, 5), listed(50, 0)), "lower its exception")
	expect(t, checkBreadth(wide(30, 5), listed(50, 0)), "take it off the list")
	expect(t, checkBreadth(nil, listed(50, 0)), "is gone")
	data := []*source{snippet(t, "x/x.go", "package x\n\ntype T struct {\n"+strings.Repeat("\tF int\n", 30)+"}\n")}
	expect(t, checkBreadth(data, nil))
}
