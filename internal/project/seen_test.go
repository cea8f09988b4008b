package project

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatWasSeenIsFoundAgain: by its folder, and where that is gone or another project's, by what was seen of it.
func TestWhatWasSeenIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	lies := func(name string, urls ...string) *Project {
		t.Helper()
		git := filepath.Join(dir, name, ".git")
		config := ""
		for i, url := range urls {
			config += "[remote \"" + []string{"origin", "upstream"}[i] + "\"]\n\turl = " + url + "\n"
		}
		for _, sub := range []string{"objects", "refs"} {
			if err := os.MkdirAll(filepath.Join(git, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": config} {
			if err := os.WriteFile(filepath.Join(git, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Find(t.Context(), filepath.Join(dir, name), Mapping{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	chosen := func(s Seen, there *Project) string {
		t.Helper()
		b, err := json.Marshal(s) // as it waits
		if err != nil {
			t.Fatal(err)
		}
		var back Seen
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		p := back.Again(there)
		if p == nil {
			return "none"
		}
		m := Mapping{Projects: map[ID]string{"github.com/acme/shop": "shop", "github.com/acme/moon": "moon"}}
		choice, err := m.Choose(p)
		if err != nil {
			return "two"
		}
		return choice.Namespace
	}
	const shop, moon = "https://github.com/acme/shop", "https://github.com/acme/moon"
	bare := lies("bare")
	for name, c := range map[string]struct {
		seen  Seen
		there *Project
		want  string
	}{
		"it is there":                       {See("", lies("a", shop)), lies("a", shop), "shop"},
		"it is gone":                        {See("", lies("a", shop)), nil, "shop"},
		"it made way for another":           {See("", lies("b", shop)), lies("c", moon), "shop"},
		"it got its remote since":           {See("", bare), lies("bare", moon), "moon"},
		"it has another remote beside":      {See("", lies("d", shop)), lies("d", moon, shop), "moon"},
		"a folder that is none":             {See(dir, nil), nil, "none"},
		"a folder that became one":          {See(dir, nil), lies("e", shop), "shop"},
		"two fit, as they did when seen":    {See("", lies("f", "https://github.com/me/shop", shop)), nil, "two"},
		"one without remote, which is gone": {See("", bare), nil, ""},
		"another one lies at its place":     {See("", lies("g", shop)), lies("g", moon), "shop"},
	} {
		if got := chosen(c.seen, c.there); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	lies("plain")
	near := lies("near", filepath.Join(dir, "plain"), shop)
	lies("far", shop)
	for name, c := range map[string]struct {
		seen *Project
		want string
	}{
		"unread, with a remote elsewhere":          {lies("h", shop), "shop"},
		"unread, with none":                        {bare, "none"},
		"unread, with one that is on this machine": {near, "none"},
		"unread, with one here that has a remote":  {lies("clone", filepath.Join(dir, "far")), "none"}, // another may have been chosen for it
		"unread, and no project":                   {nil, "none"},
	} {
		if got := chosen(SeeUnread(dir, c.seen), nil); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if s := SeeUnread("", near); chosen(s, near) != "two" || s.Dir != near.Top || !s.Unread || SeeUnread(dir, nil).Unread {
		t.Errorf("%+v", s)
	}
	if s := See("", bare); s.Dir != bare.Top {
		t.Errorf("%+v", s)
	}
}
