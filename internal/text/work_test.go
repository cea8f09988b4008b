package text

import (
	"strings"
	"testing"
)

func TestWork(t *testing.T) {
	for s, want := range map[string]int{"": 0, "two words": 9, "né": 1 + 4*3, "猫": 4 * 3, "\ufdfa": 4 * 33, "a\xff\xffb": 2 + 4*2, strings.Repeat("x ", 500): 1000} {
		if got := Work(s); got != want {
			t.Errorf("%.20q: %d, want %d", s, got, want)
		}
	}
}
