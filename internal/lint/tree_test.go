package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// modulePath is that of go.mod.
const modulePath = "mneme"

// source is one parsed file of the tree.
type source struct {
	path string // relative to the root, with slashes
	dir  string // of path; "." for the root package
	text []byte
	fset *token.FileSet
	ast  *ast.File
}

func (s *source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) isCommand() bool   { return s.ast.Name.Name == "main" }
func (s *source) isGenerated() bool { return ast.IsGenerated(s.ast) }
func (s *source) below(dir string) bool {
	return s.dir == dir || strings.HasPrefix(s.dir, dir+"/")
}

// at is a violation of s at node, with the reason and what to do.
func (s *source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// imports returns the paths that s imports.
func (s *source) imports() []string {
	var out []string
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			panic(err) // the parser accepted it
		}
		out = append(out, p)
	}
	return out
}

// nameOf returns what s calls an imported package, "" if it does not import it.
func (s *source) nameOf(importPath string) string {
	for _, i := range s.ast.Imports {
		if i.Path.Value != strconv.Quote(importPath) {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses calls found for each mention pkg.name of one of the names of an imported
// package.
func (s *source) uses(importPath string, names []string, found func(n ast.Node, name string)) {
	local := s.nameOf(importPath)
	if local == "" {
		return
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == local && slices.Contains(names, sel.Sel.Name) {
			found(n, importPath+"."+sel.Sel.Name)
		}
		return true
	})
}

// parse makes a source of a text.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, dir: path.Dir(name), text: text, fset: token.NewFileSet()}
	var err error
	s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// snippet parses code that a test made up.
func snippet(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// parsed keeps the tree, which every rule looks at and none changes.
var parsed struct {
	once sync.Once
	all  []*source
	err  error
}

// tree parses every Go file of the module, whatever its build constraints.
func tree(t *testing.T) []*source {
	t.Helper()
	top := root(t)
	parsed.once.Do(func() { parsed.all, parsed.err = parseAll(top) })
	if parsed.err != nil {
		t.Fatal(parsed.err)
	}
	if len(parsed.all) < 100 {
		t.Fatalf("only %d Go files found below %s", len(parsed.all), top)
	}
	return parsed.all
}

// nested parses the modules below the root. They have dependencies of their own
// and the shape of everything else.
func nested(t *testing.T) []*source {
	t.Helper()
	top := root(t)
	var out []*source
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || file == top {
			return err
		}
		if d.Name()[0] == '.' || d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err != nil {
			return nil
		}
		all, err := parseAll(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		for _, s := range all {
			s.path, s.dir = path.Join(filepath.ToSlash(rel), s.path), path.Join(filepath.ToSlash(rel), s.dir)
			out = append(out, s)
		}
		return fs.SkipDir
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parseAll(top string) ([]*source, error) {
	var out []*source
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != top && notOurs(file, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		rel, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		if err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

// notOurs reports whether the go command would not look into a folder either,
// or it holds a module of its own.
func notOurs(dir, name string) bool {
	if name == "testdata" || name == "vendor" || name == "node_modules" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// reportAll fails t with every violation.
func reportAll(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// expect checks that a rule finds exactly the violations with these words.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d violations, want %d: %q", len(got), len(want), got)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("violation %q does not say %q", got[i], want[i])
		}
	}
}
