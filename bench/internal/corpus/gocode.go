package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxGoFiles    = 100_000
	maxGoFileSize = 1 << 20
	minComment    = 60 // bytes
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// goComments reads the documentation comments of the Go tree and, if modules, of
// the module cache. A machine without Go gives nothing.
func goComments(ctx context.Context, modules bool, take func(string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "-json", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return nil
	}
	var env struct{ GOROOT, GOMODCACHE string }
	if err := json.Unmarshal(out, &env); err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	files := 0
	roots := []string{filepath.Join(env.GOROOT, "src")}
	if modules {
		roots = append(roots, env.GOMODCACHE)
	}
	for _, root := range roots {
		err := walkComments(ctx, root, &files, take)
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func walkComments(ctx context.Context, root string, files *int, take func(string) bool) error {
	began := time.Now()
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a folder that cannot be read has no texts
		}
		if ctx.Err() != nil || time.Since(began) > readBudget || *files >= maxGoFiles {
			return errEnough
		}
		if d.IsDir() {
			if d.Name() == "testdata" || d.Name() == "cache" {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err != nil || !strings.HasSuffix(path, ".go") || info.Size() > maxGoFileSize {
			return nil
		}
		*files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil
		}
		if !declComments(file, take) {
			return errEnough
		}
		return nil
	})
}

// declComments hands the comments on the package and on its declarations to
// take until it returns false.
func declComments(file *ast.File, take func(string) bool) bool {
	groups := []*ast.CommentGroup{file.Doc}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			groups = append(groups, d.Doc)
		case *ast.GenDecl:
			groups = append(groups, d.Doc)
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					groups = append(append(groups, s.Doc), fieldComments(s.Type)...)
				case *ast.ValueSpec:
					groups = append(groups, s.Doc)
				}
			}
		}
	}
	for _, g := range groups {
		// The text of a missing comment is empty.
		if text := g.Text(); len(text) >= minComment && !take(text) {
			return false
		}
	}
	return true
}

func fieldComments(t ast.Expr) []*ast.CommentGroup {
	var fields *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	var groups []*ast.CommentGroup
	for _, f := range fields.List {
		groups = append(groups, f.Doc)
	}
	return groups
}
