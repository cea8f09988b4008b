package words

import (
	"slices"
	"strings"
	"testing"
)

func TestAliases(t *testing.T) {
	groups := Aliases()
	if len(groups) < 150 {
		t.Errorf("%d groups", len(groups))
	}
	seen := map[string]bool{}
	for _, g := range groups {
		line := strings.Join(g, " = ")
		sorted := slices.Sorted(slices.Values(g))
		if len(g) < 2 || len(slices.Compact(sorted)) != len(g) || seen[line] || line != strings.ToLower(line) {
			t.Errorf("%q: a group has at least two names, in lower case, each once", line)
		}
		seen[line] = true
		for _, name := range g {
			if name != strings.Join(strings.Fields(name), " ") || name == "" {
				t.Errorf("%q: name %q", line, name)
			}
		}
	}
}
