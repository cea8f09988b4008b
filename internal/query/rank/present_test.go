package rank

import (
	"strings"
	"testing"
)

func TestWithoutPresent(t *testing.T) {
	for _, c := range []struct{ query, rest string }{ // "" = it does not ask
		{"current backup schedule", "backup schedule"},
		{"Which Python is ledgerline on these days?", "Which Python is ledgerline on ?"},
		{"nightly load: Current start time", "nightly load: start time"},
		{"postgres version, current", "postgres version,"},
		{"is it still so right now", "is it so"},
		{"runner count, up-to-date", "runner count,"},
		{"the latest, please", "the , please"},
		{"still still waters", "waters"},
		{"预订现在保留多少分钟", "预订 保留多少分钟"},
		{"electric current", ""},
		{"a heating current.", ""},
		{"violates restricted:latest", ""},
		{"current_user of select now()", ""},
		{"what is known", ""},
		{"now", ""},
		{"latest?", ""},
		{"最新的", ""},
		{"", ""},
		{"a pasted line\nwith the current state", ""},
	} {
		rest, asks := WithoutPresent(c.query)
		switch {
		case asks != (c.rest != ""):
			t.Errorf("%q: asks for the present %v", c.query, asks)
		case !asks && rest != c.query:
			t.Errorf("%q became %q", c.query, rest)
		case asks && strings.Join(strings.Fields(rest), " ") != c.rest:
			t.Errorf("%q became %q, want %q", c.query, rest, c.rest)
		}
	}
}

func FuzzWithoutPresent(f *testing.F) {
	f.Add("is it still current, now?")
	f.Fuzz(func(t *testing.T, query string) {
		rest, asks := WithoutPresent(query)
		if !asks && rest != query || asks && strings.TrimSpace(rest) == "" || len(rest) > len(query)+len(query)/2 {
			t.Errorf("%q became %q, %v", query, rest, asks)
		}
	})
}
