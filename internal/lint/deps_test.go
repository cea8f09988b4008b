package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requirements reads the modules of a go.mod with their versions, whether
// marked as indirect or not.
func requirements(gomod []byte) map[string]string {
	out := map[string]string{}
	inside := false
	for line := range strings.Lines(string(gomod)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "require" && words[1] == "(":
			inside = true
		case len(words) == 1 && words[0] == ")":
			inside = false
		case inside && len(words) == 2:
			out[words[0]] = words[1]
		case len(words) == 3 && words[0] == "require":
			out[words[1]] = words[2]
		}
	}
	return out
}

// direct returns the modules that the tree imports from, and a violation for
// each import that no module provides.
func direct(all []*source, modules map[string]string) (used map[string]bool, bad []string) {
	used = map[string]bool{}
	for _, s := range all {
		for i, p := range s.imports() {
			if p == modulePath || strings.HasPrefix(p, modulePath+"/") || !strings.Contains(strings.Split(p, "/")[0], ".") {
				continue
			}
			best := ""
			for m := range modules {
				if (p == m || strings.HasPrefix(p, m+"/")) && len(m) > len(best) {
					best = m
				}
			}
			if best == "" {
				bad = append(bad, s.at(s.ast.Imports[i], "%s is in no module of go.mod\n\tgo get it", p))
				continue
			}
			used[best] = true
		}
	}
	return used, bad
}

// row of docs/dependencies.md: | module | version | reason | licence |
type row struct{ module, version, reason, licence string }

func rows(table []byte) []row {
	var out []row
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		cells := strings.Split(strings.TrimSpace(lines.Text()), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if strings.Contains(cells[1], ".") {
			out = append(out, row{cells[1], cells[2], cells[3], cells[4]})
		}
	}
	return out
}

// checkTable compares the table with what is used.
func checkTable(table []row, used map[string]bool, modules map[string]string) []string {
	const file = "docs/dependencies.md"
	var bad []string
	have := map[string]int{}
	for _, r := range table {
		have[r.module]++
		switch {
		case !used[r.module]:
			bad = append(bad, fmt.Sprintf("%s lists %s, which nothing imports\n\tremove the row", file, r.module))
		case r.version != modules[r.module]:
			bad = append(bad, fmt.Sprintf("%s says %s %s, go.mod says %s\n\tcorrect the row", file, r.module, r.version, modules[r.module]))
		case len(strings.Fields(r.reason)) < 3 || r.licence == "":
			bad = append(bad, fmt.Sprintf("%s gives no reason or no licence for %s\n\tsay in a line what it does for us and why it is not our own code", file, r.module))
		}
		if have[r.module] == 2 {
			bad = append(bad, fmt.Sprintf("%s lists %s twice\n\tkeep one row", file, r.module))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(used)) {
		if have[m] == 0 {
			bad = append(bad, fmt.Sprintf("%s does not list %s\n\tadd a row: | `%s` | %s | why | licence |; a dependency without a reason is not taken", file, m, m, modules[m]))
		}
	}
	return bad
}

func TestEveryDependencyHasAReason(t *testing.T) {
	top := root(t)
	gomod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(top, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	modules := requirements(gomod)
	used, bad := direct(tree(t), modules)
	reportAll(t, bad)
	reportAll(t, checkTable(rows(table), used, modules))
}

func TestDependencyRuleBites(t *testing.T) {
	modules := requirements([]byte("module m\nrequire a.b/one v1.0.0\nrequire (\n\ta.b/two/v2 v2.1.0 // indirect\n\ta.b v0.1.0\n)\n"))
	if len(modules) != 3 || modules["a.b/two/v2"] != "v2.1.0" {
		t.Fatalf("%v", modules)
	}
	used, bad := direct([]*source{snippet(t, "x.go", `package x
import (
	"fmt"
	"mneme/memory"
	"a.b/one/sub"
	"a.b/two/v2"
	"c.d/three"
)`)}, modules)
	expect(t, bad, "c.d/three is in no module")
	if !maps.Equal(used, map[string]bool{"a.b/one": true, "a.b/two/v2": true}) {
		t.Errorf("%v", used)
	}
	table := rows([]byte("| module | version | why | licence |\n|---|---|---|---|\n" +
		"| `a.b/one` | v1.0.1 | it does one thing | MIT |\n| `a.b/old` | v1.0.0 | it did one thing | MIT |\n"))
	expect(t, checkTable(table, used, modules), "go.mod says v1.0.0", "nothing imports", "does not list a.b/two/v2")
	table = []row{{"a.b/one", "v1.0.0", "because", "MIT"}, {"a.b/two/v2", "v2.1.0", "it does two things", "MIT"}, {"a.b/two/v2", "v2.1.0", "it does two things", "MIT"}}
	expect(t, checkTable(table, used, modules), "gives no reason", "twice")
}
