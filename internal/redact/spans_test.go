package redact

import (
	"slices"
	"testing"
)

// TestFindsThatOverlapAreTakenOutOnce: to the end of the last one, whichever ends last; one that only
// begins where another ends is one of its own.
func TestFindsThatOverlapAreTakenOutOnce(t *testing.T) {
	for _, c := range []struct {
		spans [][2]int
		ids   []string
		want  string
		found []string
	}{
		{nil, nil, "0123456789", nil},
		{[][2]int{{1, 4}, {3, 8}}, []string{"a", "b"}, "0[redacted:a]89", []string{"a"}},
		{[][2]int{{3, 8}, {1, 4}}, []string{"b", "a"}, "0[redacted:a]89", []string{"a"}},
		{[][2]int{{1, 8}, {3, 4}}, []string{"a", "b"}, "0[redacted:a]89", []string{"a"}},
		{[][2]int{{1, 4}, {3, 6}, {5, 9}}, []string{"a", "b", "c"}, "0[redacted:a]9", []string{"a"}},
		{[][2]int{{1, 4}, {4, 8}}, []string{"a", "b"}, "0[redacted:a][redacted:b]89", []string{"a", "b"}},
		{[][2]int{{0, 10}}, []string{"a"}, "[redacted:a]", []string{"a"}},
	} {
		got, found := replaceSpans("0123456789", c.spans, c.ids)
		if got != c.want || !slices.Equal(found, c.found) {
			t.Errorf("%v: %s, %v, want %s, %v", c.spans, got, found, c.want, c.found)
		}
	}
}
