package importer

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/samples.txt again")

// transcriptOf prints what an import of a path yields.
func transcriptOf(t *testing.T, path, shown string, opts Options) string {
	t.Helper()
	var b strings.Builder
	format, why, err := Find(path)
	fmt.Fprintf(&b, "== %s: %s: %s\n", shown, format, strings.ReplaceAll(why, path, shown))
	if err != nil {
		t.Fatalf("%s: %v", shown, err)
	}
	src, err := OpenPath(format, path, opts)
	if err != nil {
		t.Fatalf("%s: %v", shown, err)
	}
	defer func() {
		if err := src.Close(); err != nil {
			t.Errorf("close %s: %v", shown, err)
		}
	}()
	for {
		item, err := src.Next()
		var bad *ItemError
		var skip *Skip
		switch {
		case errors.Is(err, io.EOF):
			return b.String()
		case errors.As(err, &bad):
			fmt.Fprintf(&b, "BAD %s\n", bad)
		case errors.As(err, &skip):
			fmt.Fprintf(&b, "out %s\n", skip)
		case err != nil:
			fmt.Fprintf(&b, "END %v\n", err)
			return b.String()
		default:
			b.WriteString(printed(item))
		}
	}
}

func printed(item Item) string {
	if e := item.Entity; e != nil {
		return fmt.Sprintf("entity %q %q %q (%s)\n", e.Name, e.Type, e.Observations, item.Where)
	}
	if r := item.Relation; r != nil {
		return fmt.Sprintf("relation %q %q %q (%s)\n", r.From, r.Type, r.To, item.Where)
	}
	c := item.Capture
	var b strings.Builder
	fmt.Fprintf(&b, "item %s [%s]", item.Where, c.ID)
	for _, f := range []struct{ name, value string }{{"agent", c.Agent}, {"kind", string(c.Kind)}, {"role", c.Role}, {"scope", string(c.Scope)},
		{"conversation", c.Conversation}, {"uri", c.URI}, {"subject", c.Subject}, {"tags", strings.Join(c.Tags, ",")}, {"group", item.Group}} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if c.Importance != nil {
		fmt.Fprintf(&b, " importance=%g", *c.Importance)
	}
	if c.OccurredAt != nil {
		fmt.Fprintf(&b, " at=%s", c.OccurredAt.Format(time.RFC3339Nano))
	}
	fmt.Fprintf(&b, " update=%t\n", item.Update)
	fmt.Fprintf(&b, "  %s\n", c.Metadata)
	for _, line := range strings.Split(c.Text, "\n") {
		fmt.Fprintf(&b, "  | %s\n", line)
	}
	return b.String()
}

// TestSamples compares what each sample gives with testdata/samples.txt. Times of
// files are set, since they are the times of notes that say none.
func TestSamples(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(p, at, at))
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Namespace: "team-a", Agent: "ann"}
	var b strings.Builder
	for _, p := range []string{"claude-code", "codex", "chatgpt", "claude", "mem0/get_all.json", "mem0/memories.jsonl", "memorix", "memorix-export/memorix-export.json",
		"mcp-memory/memory.jsonl", "markdown", "markdown/CLAUDE.md", "obsidian", "csv/notes.csv", "csv/semicolons.csv"} {
		path := filepath.Join(dir, filepath.FromSlash(p))
		got := transcriptOf(t, path, p, opts)
		if again := transcriptOf(t, path, p, opts); again != got {
			t.Errorf("%s: a second reading gives something else", p)
		}
		b.WriteString(got)
	}
	golden := filepath.Join("testdata", "samples.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("differs from %s; look at what -rewrite changes\n%s", golden, firstDifference(got, string(want)))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// zipOf writes a zip of names and contents.
func zipOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, b := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(b)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// all reads a path to its end: items, what was malformed, what was left out, and the
// error that ended it.
func all(t *testing.T, path string, opts Options) (items []Item, bad []*ItemError, out []*Skip, end error) {
	t.Helper()
	format, _, err := Find(path)
	if err != nil {
		return nil, nil, nil, err
	}
	src, err := OpenPath(format, path, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err := src.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	return drained(src)
}

func drained(src Source) (items []Item, bad []*ItemError, out []*Skip, end error) {
	for {
		item, err := src.Next()
		var b *ItemError
		var s *Skip
		switch {
		case errors.Is(err, io.EOF):
			return items, bad, out, nil
		case errors.As(err, &b):
			bad = append(bad, b)
		case errors.As(err, &s):
			out = append(out, s)
		case err != nil:
			return items, bad, out, err
		default:
			items = append(items, item)
		}
	}
}

// TestArchivesAreTheirFolders: a zip gives what the folder gives that it was made of.
func TestArchivesAreTheirFolders(t *testing.T) {
	opts := Options{Namespace: "n", Agent: "ann", Source: "s"}
	for format, files := range map[string]map[string][]byte{
		"chatgpt": {"conversations.json": sample(t, "chatgpt/conversations.json"), "user.json": sample(t, "chatgpt/user.json")},
		"claude": {"data/conversations.json": sample(t, "claude/conversations.json"), "data/memories.json": sample(t, "claude/memories.json"),
			"data/projects.json": sample(t, "claude/projects.json")},
	} {
		path := zipOf(t, files)
		if got, _, err := Find(path); got != format || err != nil {
			t.Errorf("zip of %s: found %q, %v", format, got, err)
			continue
		}
		zipped, _, _, err := all(t, path, opts)
		if err != nil {
			t.Fatal(err)
		}
		plain, _, _, err := all(t, filepath.Join("testdata", format), opts)
		if err != nil {
			t.Fatal(err)
		}
		if len(zipped) == 0 || len(zipped) != len(plain) {
			t.Fatalf("%s: %d items of the zip, %d of the folder", format, len(zipped), len(plain))
		}
		byID := map[string]string{}
		for _, it := range plain {
			byID[it.Capture.ID] = fmt.Sprint(it.Capture.Text, string(it.Capture.Metadata))
		}
		for _, it := range zipped {
			if byID[it.Capture.ID] != fmt.Sprint(it.Capture.Text, string(it.Capture.Metadata)) {
				t.Errorf("%s: %s differs", format, it.Capture.ID)
			}
		}
	}
}

// TestConversationsInSeveralFiles: newer exports of ChatGPT are divided.
func TestConversationsInSeveralFiles(t *testing.T) {
	one := sample(t, "chatgpt/conversations.json")
	two := bytes.ReplaceAll(bytes.ReplaceAll(one, []byte(`"id":"`), []byte(`"id":"second-`)), []byte("c0ffee00"), []byte("c0ffee01"))
	items, _, _, err := all(t, zipOf(t, map[string][]byte{"x/conversations-000.json": one, "x/conversations-001.json": two, "x/chat.html": nil}), Options{Namespace: "n", Agent: "ann"})
	if err != nil || len(items) != 6 {
		t.Fatalf("%d items, %v", len(items), err)
	}
}

func TestOpenMemoryZip(t *testing.T) {
	path := zipOf(t, map[string][]byte{"memories.json": []byte(`{"user":{},"memories":[]}`), "memories.jsonl.gz": gzipped(t, sample(t, "mem0/memories.jsonl"))})
	items, bad, out, err := all(t, path, Options{Namespace: "n", Agent: "ann"})
	if err != nil || len(items) != 1 || len(bad) != 0 || len(out) != 2 || items[0].Capture.Tags[0] != "preferences" {
		t.Fatalf("%v %v %v %v", items, bad, out, err)
	}
}

// TestScopeAgentIsOnesOwn: whoever spoke, a private import is the importing agent's.
func TestScopeAgentIsOnesOwn(t *testing.T) {
	items, _, _, err := all(t, filepath.Join("testdata", "chatgpt"), Options{Namespace: "n", Agent: "ann", Scope: memory.ScopeAgent})
	if err != nil || len(items) == 0 {
		t.Fatal(items, err)
	}
	for _, it := range items {
		if it.Capture.Agent != "ann" || it.Capture.Scope != memory.ScopeAgent {
			t.Errorf("%s: agent %s, scope %s", it.Where, it.Capture.Agent, it.Capture.Scope)
		}
	}
}
