package lint

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// formatVersions are the places in docs/formats.md that tell a version, and the
// constant that each of them repeats.
var formatVersions = []struct{ told, dir, constant string }{
	{`pipeline\s+version \((\d+)\)`, "internal/projections", "PipelineVersion"},
	{`### Frame, version (\d+)`, "internal/events", "frameVersion"},
	{`### Envelope, version (\d+)`, "internal/events", "envelopeVersion"},
	{`\*\*Range of the log\*\*, version (\d+)`, "internal/projections", "rangeVersion"},
	{`\*\*Reservation of the next stream\*\*, version (\d+)`, "internal/projections", "reserveVersion"},
	{`\*\*Cursor\*\*, version (\d+)`, "internal/projections", "cursorVersion"},
	{`magic 4 ‖ u8 version (\d+)`, "internal/raftfsm", "documentVersion"},
	{`### Graph file [^,]+, version (\d+)`, "internal/index/vector", "fileVersion"},
	{`1  version (\d+)\n +5 +1  engine`, "internal/index/vector", "fileVersion"},
	{`"MNEF"│vers\. (\d+)│`, "internal/storage/encfs", "slotVersion"},
	{`\(` + "`Box`" + `\) is version (\d+)`, "internal/storage/encfs", "boxVersion"},
	{`"MNEME" ‖ u32 (\d+)`, "internal/storage", "FormatVersion"},
	{`\*\*Key files\*\*[^:]*, version (\d+):`, "internal/keyring", "copyVersion"},
	{`\*\*Image of .node\.secret.\*\*, version (\d+)`, "internal/keyring", "nodeSecretVersion"},
	{`\*\*Images of .keyring\.v1.\*\*, version (\d+)`, "internal/keyring", "imageVersion"},
	{`\*\*and .storage\.keys.\*\*, version (\d+)`, "internal/keyring", "storageVersion"},
	{`\*\*Command\*\*, version (\d+)`, "internal/keyring", "commandVersion"},
	{`\*\*Backup of the keyring\*\*, version (\d+)`, "internal/keyring", "backupVersion"},
	{`## Backup of the log, version (\d+)`, "internal/backup", "logVersion"},
	{`namespaces of projects, version (\d+)`, "internal/project", "mappingVersion"},
	{"`key` \\| u8 version \\((\\d+)\\)", "internal/hooks", "diskVersion"},
	{`## Manifest of a backup, format (\d+)`, "internal/backup", "manifestFormat"},
}

// constant finds an integer constant of a package; -1 if there is none.
func constant(all []*source, dir, name string) int {
	for _, s := range all {
		if s.dir != dir || s.isTest() {
			continue
		}
		for _, d := range s.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || len(v.Names) != 1 || len(v.Values) != 1 || v.Names[0].Name != name {
					continue
				}
				if lit, ok := v.Values[0].(*ast.BasicLit); ok {
					if n, err := strconv.ParseInt(lit.Value, 0, 64); err == nil {
						return int(n)
					}
				}
			}
		}
	}
	return -1
}

// checkVersions compares the versions that a text tells with the code.
func checkVersions(all []*source, text string) []string {
	var bad []string
	for _, v := range formatVersions {
		want := constant(all, v.dir, v.constant)
		found := regexp.MustCompile(v.told).FindStringSubmatch(text)
		switch {
		case want < 0:
			bad = append(bad, fmt.Sprintf("%s has no constant %s\n\tcorrect formatVersions of internal/lint", v.dir, v.constant))
		case found == nil:
			bad = append(bad, fmt.Sprintf("docs/formats.md does not tell %s of %s\n\tnothing matches %s", v.constant, v.dir, v.told))
		case found[1] != strconv.Itoa(want):
			bad = append(bad, fmt.Sprintf("docs/formats.md says %q, but %s of %s is %d\n\tdescribe the format as it is written now", found[0], v.constant, v.dir, want))
		}
	}
	return bad
}

func TestFormatsTellTheVersionsWritten(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	reportAll(t, checkVersions(tree(t), string(text)))
}

// testsOf lists the tests, benchmarks and fuzz targets of each folder.
func testsOf(all []*source) map[string][]string {
	out := map[string][]string{}
	for _, s := range all {
		if !s.isTest() {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				out[s.dir] = append(out[s.dir], f.Name.Name)
			}
		}
	}
	return out
}

var (
	testName = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w*`)
	// testOrFolder finds names of tests, and the folders before them.
	testOrFolder = regexp.MustCompile("`([a-z][a-z0-9/]*)`|" + testName.String())
)

// byFolder are the documents that tell each test with its folder, so that it can be run.
var byFolder = []string{"docs/guarantees.md", "docs/requirements.md"}

// checkTestNames finds names of tests in a document that no test has. Where folders
// is set, a name belongs to the folder that was named last before it.
func checkTestNames(name, text string, tests map[string][]string, folders bool) []string {
	var bad []string
	folder := ""
	for _, at := range testOrFolder.FindAllStringSubmatchIndex(text, -1) {
		word := text[at[0]:at[1]]
		if at[2] >= 0 {
			if word = text[at[2]:at[3]]; tests[word] != nil {
				folder = word
			}
			continue
		}
		line := 1 + strings.Count(text[:at[0]], "\n")
		if folders {
			if !slices.Contains(tests[folder], word) {
				bad = append(bad, fmt.Sprintf("%s:%d: no test %s in %q\n\tname a test that shows it, behind its folder", name, line, word, folder))
			}
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(tests)), func(of []string) bool { return slices.Contains(of, word) }) {
			bad = append(bad, fmt.Sprintf("%s:%d: there is no test %s\n\tname the one that shows it now", name, line, word))
		}
	}
	return bad
}

// TestDocumentsNameTestsThatExist: a promise whose test was renamed or deleted is
// one that nobody can check.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	top, tests, named := root(t), testsOf(append(slices.Clone(tree(t)), nested(t)...)), 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		name = filepath.ToSlash(name)
		named += len(testName.FindAllString(string(text), -1))
		reportAll(t, checkTestNames(name, string(text), tests, slices.Contains(byFolder, name)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 100 {
		t.Fatalf("only %d names of tests found", named)
	}
}

// checkTicks finds ticked items of a document that name no test.
func checkTicks(name, text string) (bad []string) {
	items := strings.Split(text, "\n- [")
	for _, item := range items[1:] {
		item, _, _ = strings.Cut(item, "\n## ")
		if title, _, _ := strings.Cut(item, ":"); strings.HasPrefix(item, "x]") && !testName.MatchString(item) {
			bad = append(bad, fmt.Sprintf("%s: nothing shows %q\n\tname a test, behind its folder, or take the tick away", name, strings.Trim(title, "x] *")))
		}
	}
	return bad
}

// TestTickedRequirementsAreShown: what is ticked in docs/requirements.md names a test, which
// TestDocumentsNameTestsThatExist looks for.
func TestTickedRequirementsAreShown(t *testing.T) {
	const name = "docs/requirements.md"
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n- [x]"); n < 12 {
		t.Errorf("%d ticks were found", n)
	}
	reportAll(t, checkTicks(name, string(text)))
}

func TestDocumentRulesBite(t *testing.T) {
	s := snippet(t, "internal/projections/command.go", "package projections\nconst PipelineVersion = 7\n")
	if bad := checkVersions([]*source{s}, "the pipeline\nversion (6)"); !strings.Contains(bad[0], "is 7") {
		t.Errorf("a wrong version is not found: %q", bad[0])
	}
	tests := map[string][]string{"a/b": {"TestOne"}, "c": {"TestTwo"}}
	expect(t, checkTestNames("x.md", "`a/b` TestOne, TestTwo", tests, false))
	expect(t, checkTestNames("x.md", "\n`a/b` TestOne/sub, TestThree", tests, false), "x.md:2: there is no test TestThree")
	expect(t, checkTestNames("x.md", "`a/b` TestOne · `c` TestTwo", tests, true))
	expect(t, checkTicks("x.md", "\n- [x] **A1: a**\n  TestOne\n- [ ] **A2: b**\n"))
	expect(t, checkTicks("x.md", "\n- [x] **A1: a**\n- [x] **A2: b** TestOne\n- [x] **A3: c**\n## TestTwo"), `nothing shows "A1"`, `nothing shows "A3"`)
	expect(t, checkTestNames("x.md", "`a/b` TestOne, TestTwo", tests, true), "no test TestTwo in \"a/b\"")
}
