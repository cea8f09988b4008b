package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// checkProcess keeps what belongs to the process in commands: flags,
// environment, exit, standard output.
func checkProcess(s *source) []string {
	if s.isTest() || s.isCommand() || s.below("cmd") || s.below("bench") {
		return nil
	}
	var bad []string
	for _, rule := range []struct {
		pkg   string
		names []string
		why   string
	}{
		{"os", []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Args"},
			"only commands read arguments and environment\n\ttake it as a field of an options struct"},
		{"os", []string{"Exit"}, "only commands end the process\n\treturn an error"},
		{"log", []string{"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"}, "only commands end the process\n\treturn an error"},
		{"os", []string{"Stdout", "Stderr", "Stdin"}, "standard streams belong to commands\n\ttake an io.Writer"},
		{"fmt", []string{"Print", "Printf", "Println"}, "standard output belongs to commands\n\tlog to the *slog.Logger that was passed in, or write to an io.Writer"},
		{"log", []string{"Print", "Printf", "Println", "Default"}, "there is no global logger\n\tlog to the *slog.Logger that was passed in"},
		{"log/slog", []string{"Debug", "Info", "Warn", "Error", "Default", "SetDefault"}, "there is no global logger\n\tlog to the *slog.Logger that was passed in"},
	} {
		s.uses(rule.pkg, rule.names, func(n ast.Node, name string) {
			bad = append(bad, s.at(n, "%s below cmd: %s", name, rule.why))
		})
	}
	if slices.Contains(s.imports(), "flag") {
		bad = append(bad, s.at(s.ast.Name, "flag below cmd: only commands read flags\n\ttake an options struct"))
	}
	return bad
}

// checkSleep finds waiting by the clock.
func checkSleep(s *source) []string {
	if s.isTest() || s.below("bench") || slices.Contains(sleepers(), s.path) {
		return nil
	}
	var bad []string
	s.uses("time", []string{"Sleep"}, func(n ast.Node, name string) {
		bad = append(bad, s.at(n, "%s cannot be cancelled\n\tselect on a timer and the context, or wait for what you are waiting for; "+
			"a file that really has to sleep stands in sleepers of internal/lint", name))
	})
	return bad
}

// sleepers are the files that may call time.Sleep.
func sleepers() []string {
	return []string{"internal/storage/pace.go"} // inside a write of Pebble's, which takes no context
}

// checkFiles finds files that are written past the file system that a package is
// given, so that no test could take what was not synced away from them.
func checkFiles(s *source) []string {
	if s.isTest() || s.below("bench") {
		return nil
	}
	var bad []string
	s.uses("os", []string{"WriteFile", "Create", "CreateTemp", "OpenFile", "OpenRoot", "Rename", "Remove", "RemoveAll", "Mkdir", "MkdirAll",
		"MkdirTemp", "Link", "Symlink", "Truncate", "Chmod", "CopyFS"}, func(n ast.Node, name string) {
		if slices.Contains(fileWriters()[s.path], name) {
			return
		}
		bad = append(bad, s.at(n, "%s passes by the file system of the options, on which tests cut the power\n\t"+
			"use storage.ReplaceFile, CreateFile and MkdirAll, or the vfs.FS that was passed in; a file that really needs the system's "+
			"stands in fileWriters of internal/lint", name))
	})
	return bad
}

// fileWriters are the files that may change the system's files themselves, and
// with which calls.
func fileWriters() map[string][]string {
	return map[string][]string{
		// A socket is no file that could be written or synced.
		"internal/node/adminsocket.go": {"os.Remove", "os.Chmod"},
		// A mode that an empty folder gets before anything is in it.
		"internal/node/modes.go": {"os.Chmod"},
		// What a person's programs keep on that person's disk, each file replaced as a whole:
		// no promise of a node depends on it, and memctl has no database to write it with.
		"internal/files/files.go":        {"os.MkdirAll", "os.CreateTemp", "os.Link", "os.Remove", "os.Rename"},
		"cmd/memctl/verbs/remembered.go": {"os.MkdirAll"},
		// What a started node prints is for people; no promise of a node depends on it.
		"cmd/memctl/verbs/start.go": {"os.MkdirAll", "os.OpenFile", "os.Rename"},
		// A folder that a person asked for; what it holds is in the node as well.
		"cmd/memctl/verbs/export_folder.go": {"os.MkdirAll", "os.Remove"},
		// What hooks leave to one another lies on the agent's disk, too, and they start
		// without the database that comes with package storage.
		"internal/hooks/files.go": {"os.MkdirAll", "os.Chmod", "os.CreateTemp", "os.OpenFile", "os.Remove", "os.Rename"},
		// Files of other programs on the agent's disk, each replaced by a rename.
		"internal/agentsync/files.go": {"os.MkdirAll", "os.Remove"},
		// Man pages and completions, which a release is made of.
		"cmd/internal/pages/pages.go": {"os.MkdirAll"},
		// These belong to tests and write into their temporary folders.
		"internal/embed/local/localtest/localtest.go": {"os.MkdirAll", "os.WriteFile"},
		"internal/eventlog/natstest/natstest.go":      {"os.WriteFile"},
	}
}

// checkInit finds work that is done because a package was imported.
func checkInit(s *source) []string {
	if s.isTest() {
		return nil
	}
	var bad []string
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			bad = append(bad, s.at(f, "func init runs for everybody who imports the package\n\tmake it a function that somebody calls"))
		}
	}
	return bad
}

func TestOnlyCommandsTouchTheProcess(t *testing.T) {
	for _, s := range tree(t) {
		reportAll(t, checkProcess(s))
	}
}

func TestNobodySleeps(t *testing.T) {
	for _, s := range tree(t) {
		reportAll(t, checkSleep(s))
	}
}

func TestFilesAreWrittenThroughTheSeam(t *testing.T) {
	used := make(map[string]bool)
	for _, s := range tree(t) {
		reportAll(t, checkFiles(s))
		for _, name := range fileWriters()[s.path] {
			s.uses("os", []string{strings.TrimPrefix(name, "os.")}, func(ast.Node, string) { used[s.path+name] = true })
		}
	}
	for path, names := range fileWriters() {
		for _, name := range names {
			if !used[path+name] {
				t.Errorf("%s does not call %s any more: take it out of fileWriters", path, name)
			}
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range tree(t) {
		reportAll(t, checkInit(s))
	}
}

func TestCallRulesBite(t *testing.T) {
	const text = `package x
import (
	"flag"
	"fmt"
	"log"
	sys "os"
	"time"
)
func init() {
	fmt.Println(sys.Getenv("A"), flag.Args())
	fmt.Fprintln(w, "fine")
	log.Fatal("no")
	sys.Exit(1)
	time.Sleep(1)
	sys.Rename(sys.Args[0], "b")
	sys.ReadFile("fine")
}`
	expect(t, checkProcess(snippet(t, "internal/x/x.go", text)), "os.Getenv", "os.Args", "os.Exit", "log.Fatal", "fmt.Println", "flag below cmd")
	expect(t, checkProcess(snippet(t, "internal/x/x_test.go", text)))
	expect(t, checkProcess(snippet(t, "cmd/x/x.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }")))
	expect(t, checkSleep(snippet(t, "internal/x/x.go", text)), "x.go:14: time.Sleep")
	expect(t, checkSleep(snippet(t, "internal/x/x_test.go", text)))
	expect(t, checkFiles(snippet(t, "internal/x/x.go", text)), "x.go:15: os.Rename")
	expect(t, checkFiles(snippet(t, "internal/node/adminsocket.go", text)), "adminsocket.go:15: os.Rename")
	expect(t, checkFiles(snippet(t, "internal/x/x_test.go", text)))
	expect(t, checkInit(snippet(t, "internal/x/x.go", text)), "x.go:9: func init")
	expect(t, checkProcess(snippet(t, "internal/x/y.go", "package x\ntype os struct{ Args int }\nfunc f(os os) int { return os.Args }")))
}

// checkReload finds nats-server's reloading of options, which drops the accounts that were
// registered while it ran: their clients hang.
func checkReload(s *source) []string {
	var bad []string
	if !slices.Contains(s.imports(), "github.com/nats-io/nats-server/v2/server") {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "ReloadOptions" || sel.Sel.Name == "Reload") {
			bad = append(bad, s.at(sel, "%s deletes the accounts that were registered while the server ran", sel.Sel.Name))
		}
		return true
	})
	return bad
}

func TestNoCallThatDeletesAccounts(t *testing.T) {
	for _, s := range tree(t) {
		reportAll(t, checkReload(s))
	}
	const text = `package x
import "github.com/nats-io/nats-server/v2/server"
func f(s *server.Server) { s.ReloadOptions(nil) }`
	expect(t, checkReload(snippet(t, "internal/x/x.go", text)), "x.go:3: ReloadOptions")
}

// linked are the folders of the module whose packages a program consists of.
func linked(all []*source, program string) map[string]bool {
	in := map[string]bool{}
	var walk func(dir string)
	walk = func(dir string) {
		if in[dir] {
			return
		}
		in[dir] = true
		for _, s := range all {
			if s.dir != dir || s.isTest() {
				continue
			}
			for _, p := range s.imports() {
				if inside, ours := strings.CutPrefix(p, modulePath+"/"); ours {
					walk(inside)
				}
			}
		}
	}
	walk(program)
	return in
}

// checkCompiled finds expressions that are compiled because a program starts.
func checkCompiled(s *source) []string {
	if s.isTest() {
		return nil
	}
	var bad []string
	regexp := s.nameOf("regexp")
	for _, d := range s.ast.Decls {
		if _, is := d.(*ast.GenDecl); !is || regexp == "" {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == regexp {
					bad = append(bad, s.at(sel, "the expression is compiled whenever memctl starts, which agents wait for\n\tcompile it at first use, with sync.OnceValue"))
				}
			}
			_, inside := n.(*ast.FuncLit)
			return !inside
		})
	}
	return bad
}

func TestMemctlStartsWithoutExpressions(t *testing.T) {
	all := tree(t)
	in := linked(all, "cmd/memctl")
	if !in["internal/hooks"] || in["internal/node"] {
		t.Fatalf("memctl consists of %v", in)
	}
	for _, s := range all {
		if in[s.dir] {
			reportAll(t, checkCompiled(s))
		}
	}
	const text = `package x
import ("regexp"; "sync")
var a = regexp.MustCompile("a")
var (
	b = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("b") })
	c = []*regexp.Regexp{regexp.MustCompile("c")}
)
func f() { regexp.MustCompile("d") }`
	expect(t, checkCompiled(snippet(t, "internal/x/x.go", text)), "x.go:3:", "x.go:6:")
}
