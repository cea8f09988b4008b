// Command assertreport says which of the product's assertions tests came by, and fails
// where one was violated.
//
// The product says with antithesis-sdk-go what must always hold (Always), and what tests
// should get to at times (Sometimes, Reachable). Built with the tag enable_antithesis_sdk
// it writes what it came by to the file that ANTITHESIS_SDK_LOCAL_OUTPUT names: each
// assertion once for each outcome and process. Without the tag it does nothing. Those of
// libraries (nats-server has some) are none of ours, and are left out.
//
// Not its job: running tests (the Makefile).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: assertreport FILE    (in the root of the sources)")
		os.Exit(2)
	}
	held, err := report(os.Stdout, ".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "assertreport:", err)
	}
	if err != nil || !held {
		os.Exit(1)
	}
}

// assertion is one call in the product's sources.
type assertion struct{ kind, message, place string }

const assertPackage = "github.com/antithesishq/antithesis-sdk-go/assert"

// assertionsIn are those of the Go files below a folder, by their messages. One message is
// one assertion.
func assertionsIn(root string) (map[string]assertion, error) {
	found := map[string]assertion{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil || !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(assertPackage) }) {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && err == nil {
				err = note(found, files, call)
			}
			return true
		})
		return err
	})
	return found, err
}

// note adds a call, if it is an assertion.
func note(found map[string]assertion, files *token.FileSet, call *ast.CallExpr) error {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if pkg, ok := fun.X.(*ast.Ident); !ok || pkg.Name != "assert" {
		return nil
	}
	place := files.Position(call.Pos()).String()
	for _, arg := range call.Args {
		text, ok := arg.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		message, err := strconv.Unquote(text.Value)
		if other, twice := found[message]; twice {
			return fmt.Errorf("%s: the assertion %q is at %s, too", place, message, other.place)
		}
		found[message] = assertion{fun.Sel.Name, message, place}
		return err
	}
	return fmt.Errorf("%s: an assertion needs its message in place", place)
}

// reached is what processes wrote: how often each message came with each outcome.
type reached map[string]map[bool]int

func readReached(r io.Reader) (reached, error) {
	out := reached{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e struct {
			Assertion *struct {
				Message        string
				Hit, Condition bool
			} `json:"antithesis_assert"`
		}
		// A line that a kill cut short says nothing.
		if json.Unmarshal(line, &e) == nil && e.Assertion != nil && e.Assertion.Hit {
			if out[e.Assertion.Message] == nil {
				out[e.Assertion.Message] = map[bool]int{}
			}
			out[e.Assertion.Message][e.Assertion.Condition]++
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// report compares the assertions of the sources below root with what the file at path
// holds. It returns whether those that were reached held.
func report(w io.Writer, root, path string) (held bool, err error) {
	all, err := assertionsIn(root)
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	came, err := readReached(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	violated, missing, sought := []string{}, []string{}, 0
	for message, a := range all {
		line := fmt.Sprintf("  %s (assert.%s, %s)\n", message, a.kind, a.place)
		if came[message][false] > 0 && a.kind != "Sometimes" {
			violated = append(violated, line)
		}
		if a.kind == "AlwaysOrUnreachable" || a.kind == "Unreachable" {
			continue
		}
		if sought++; came[message][true] == 0 {
			missing = append(missing, line)
		}
	}
	slices.Sort(violated)
	slices.Sort(missing)
	text := fmt.Sprintf("%d of %d assertions were reached\n", sought-len(missing), sought)
	if len(missing) > 0 {
		text += "not reached:\n" + strings.Join(missing, "")
	}
	if len(violated) > 0 {
		text += "VIOLATED:\n" + strings.Join(violated, "")
	}
	_, err = io.WriteString(w, text)
	return len(violated) == 0, err
}
