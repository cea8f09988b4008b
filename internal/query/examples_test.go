package query

import (
	"os"
	"strings"
	"testing"
)

// examples reads a part of docs/search.md: the memories that it lists, numbered from 1 on, and
// the cells of its table, whose first one is a query.
func examples(t *testing.T, after string) (memories []string, rows [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/search.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(page), after)
	if !found {
		t.Fatalf("docs/search.md does not say %q", after)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	for line := range strings.Lines(part) {
		number, what, listed := strings.Cut(strings.TrimSpace(line), ". ")
		if listed && number == string(rune('1'+len(memories))) {
			memories = append(memories, what)
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		cells = cells[1 : len(cells)-1]
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		cells[0] = strings.Trim(cells[0], "`")
		rows = append(rows, cells)
	}
	return memories, rows
}
