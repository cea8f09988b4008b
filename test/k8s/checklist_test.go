package k8s

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reference is a file and line of the checklist, and what stands there.
var reference = regexp.MustCompile("\\| `([^`]+):([0-9]+)` \\| `([^`]+)` \\|")

// checking is a test that the checklist names, and its package where it is another one.
var checking = regexp.MustCompile("(?:`([a-z0-9/]+)` )?\\b(Test[A-Z]\\w+)")

var rewrite = flag.Bool("rewrite", false, "write the lines of the checklist anew where what stands there has moved")

func TestChecklistNamesLines(t *testing.T) {
	b, err := os.ReadFile("../../docs/operate/checklist.md")
	if err != nil {
		t.Fatal(err)
	}
	found := reference.FindAllStringSubmatch(string(b), -1)
	if len(found) < 40 {
		t.Fatalf("%d lines are named", len(found))
	}
	for _, r := range found {
		text, err := os.ReadFile(filepath.Join("../..", r[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		lines := strings.Split(string(text), "\n")
		if times := strings.Count(string(text), r[3]); times > 1 {
			t.Errorf("%s says %q %d times: name what stands in one line only", r[1], r[3], times)
		}
		n, _ := strconv.Atoi(r[2]) // digits
		if n > len(lines) || !strings.Contains(lines[n-1], r[3]) {
			is := "nowhere"
			for i, l := range lines {
				if strings.Contains(l, r[3]) {
					is = strconv.Itoa(i + 1)
					break
				}
			}
			if *rewrite && is != "nowhere" {
				b = []byte(strings.Replace(string(b), r[0], strings.Replace(r[0], ":"+r[2]+"`", ":"+is+"`", 1), 1))
				continue
			}
			t.Errorf("%s:%s does not say %q; that is at line %s (go test -run Checklist . -rewrite mends lines that have moved)", r[1], r[2], r[3], is)
		}
	}
	for _, named := range checking.FindAllStringSubmatch(string(b), -1) {
		dir := "test/k8s"
		if named[1] != "" {
			dir = named[1]
		}
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if dir == "test/k8s" {
			files = append(files, "apply/apply_test.go", "node/node_test.go")
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+named[2]+"(")
		}) {
			t.Errorf("%s has no %s", dir, named[2])
		}
	}
	if *rewrite {
		if err := os.WriteFile("../../docs/operate/checklist.md", b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
