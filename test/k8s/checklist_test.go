package k8s

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reference is a file and line of the checklist, and what stands there.
var reference = regexp.MustCompile("\\| `([^`]+):([0-9]+)` \\| `([^`]+)` \\|")

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
	if *rewrite {
		if err := os.WriteFile("../../docs/operate/checklist.md", b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
