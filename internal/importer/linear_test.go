package importer

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"mneme/memory"
)

// What is long above sections is read once, and not once more for each of them: it takes
// as much above a thousand sections as above a hundred.
func TestWhatStandsAboveSectionsIsReadOnce(t *testing.T) {
	const size = 1 << 17
	tags := strings.Repeat("tag1,", 2500)
	one := strings.Repeat("a", len(tags)) // as much for digests, which are of all of it
	six := func(title string) string {
		var b strings.Builder
		for level := range 6 {
			b.WriteString(strings.Repeat("#", level+1) + " " + title + "\n")
		}
		return b.String()
	}
	for _, c := range []struct{ name, format, long, short string }{
		{"a heading", "markdown", "# " + strings.Repeat("word ", size/5) + "\n", "# " + strings.Repeat("word ", maxTitle/5) + "\n"},
		{"an underlined heading", "markdown", strings.Repeat("word ", size/5) + "\n===\n", strings.Repeat("word ", maxTitle/5) + "\n===\n"},
		{"six headings", "markdown", six(strings.Repeat("w", size/6)), six(strings.Repeat("w", maxTitle))},
		{"tags", "markdown", "---\ntags: [" + tags + "]\n---\n", "---\ntags: [" + one + "]\n---\n"},
		{"tags of a vault", "obsidian", "---\ntags: [" + tags + "]\n---\n", "---\ntags: [" + one + "]\n---\n"},
		{"front matter", "markdown", "---\na: " + strings.Repeat("word ", size/15) + "\n---\n", ""},
		{"a title in front matter", "markdown", "---\ntitle: " + strings.Repeat("word ", size/15) + "\n---\n", "---\ntitle: " + strings.Repeat("word ", maxTitle/5) + "\n---\n"},
		{"front matter that repeats itself", "markdown", "---\na: &a " + one + "\nb: [" + strings.Repeat("*a,", 20) + "]\n---\n", ""},
	} {
		more := func(sections int) int64 {
			below := strings.Repeat("###### x\ny\n", sections)
			return taken(t, c.format, c.long+below, sections) - taken(t, c.format, c.short+below, sections)
		}
		if few, many := more(100), more(1000); many > few+8<<20 { // what searches of a text take varies by some megabytes
			t.Errorf("%s: takes %d bytes more above 100 sections, %d above 1,000", c.name, few, many)
		}
	}
}

// The headings above sections stand in each memory, but not all memories of a file are made at once.
func TestSectionsBecomeMemoriesOneAtATime(t *testing.T) {
	six := func(title string) string {
		var b strings.Builder
		for level := range 6 {
			b.WriteString(strings.Repeat("#", level+1) + " " + title + "\n")
		}
		return b.String() + strings.Repeat("###### x\ny\n", 10000)
	}
	more := taken(t, "markdown", six(strings.Repeat("\u00e9", maxTitle)), 1) - taken(t, "markdown", six("w"), 1)
	if more > 1<<20 {
		t.Errorf("the first of 10,000 sections takes %d bytes more below long headings", more)
	}
}

// taken is how many bytes it allocates to read so many sections of a file.
func taken(t *testing.T, format, text string, sections int) int64 {
	t.Helper()
	s, err := OpenPath(format, write(t, "a.md", text), plainOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := 0; n < sections; n++ {
		var skip *Skip
		if _, err := s.Next(); errors.As(err, &skip) {
			n--
		} else if err != nil {
			t.Fatalf("section %d: %v", n, err)
		}
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Ids and digests of sections are as they were when headings and tags were cleaned for each
// section anew: a file that was imported then is not imported twice.
func TestSectionsKeepTheirIDs(t *testing.T) {
	cut := strings.Repeat("x", memory.MaxTagRunes-1) + " y" // ends in a space where it is cut
	text := "---\ntags: [\"#a\", \"##b\", b, \"c  d\", " + cut + "]\ntag: z, #w\n---\n" +
		"# A   B\t\tC\none #b #z #in\n## Ünï – \x01x\ntwo\n### " + strings.Repeat("é", maxTitle) + "\nthree\n\nİst\n  ẞ\n===\nfour\n"
	for format, want := range map[string][]string{
		"markdown": {
			"markdown/5d79ad50f2bc15a6a6d5df706f5f6aab 121f9ffc7f5d9b4d3e01874e51120363",
			"markdown/415b2fbeccecb4cae1d09d7acfcf6e9a 106d174248a48963baa0687439d2c1fb",
			"markdown/0149d257995290167f6a65dd2eca7448 c7226715c7a86aeb6ba36329c3f1dad0",
			"markdown/52eae81f0fcc2fc5dd6422c30e3d956d 3c349eda7d7189195f0b6f7be5333b72",
		},
		"obsidian": {
			"obsidian/30d221eabad9cc427ed76e336fac478a 0f7d144d11c7fe9e5ac7106b5f34aefc",
			"obsidian/415b2fbeccecb4cae1d09d7acfcf6e9a 106d174248a48963baa0687439d2c1fb",
			"obsidian/0149d257995290167f6a65dd2eca7448 c7226715c7a86aeb6ba36329c3f1dad0",
			"obsidian/52eae81f0fcc2fc5dd6422c30e3d956d 3c349eda7d7189195f0b6f7be5333b72",
		},
	} {
		s, err := OpenPath(format, write(t, "a.md", text), plainOptions)
		if err != nil {
			t.Fatal(err)
		}
		items, bad, _, err := drained(s)
		if err != nil || len(bad) > 0 || len(items) != len(want) {
			t.Fatalf("%s: %d items, %v, %v", format, len(items), bad, err)
		}
		for i, it := range items {
			if got := it.Capture.ID + " " + it.Provenance.Own(); got != want[i] {
				t.Errorf("%s, section %d: %s, want %s", format, i, got, want[i])
			}
		}
	}
}
