package loader

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"mneme/memory"
)

// A path that was misspelt ended the import behind what stood before it.
func TestAMissingPathIsToldBeforeAnythingGoesIn(t *testing.T) {
	n := newFakeNode()
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n"})
	for _, path := range []string{filepath.Join(dir, "nowhere.md"), ""} {
		_, _, err := n.load(t, nil, dir, path)
		if memory.CodeOf(err) != memory.CodeInvalid || len(n.living("team")) != 0 {
			t.Errorf("%q: %v, left %q", path, err, texts(n.living("team")))
		}
		if path != "" && !strings.Contains(err.Error(), "nowhere.md") || path == "" && !strings.Contains(err.Error(), "a path is empty") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestAMessageNamedItsFileTwice: whatever is wrong with it.
func TestAMessageNamedItsFileTwice(t *testing.T) {
	dir := folder(t, map[string]string{"a.bin": "what is this", "z.zip": "PK\x03\x04cut", "of/q.bin": "and this"})
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, format string }{{"a.bin", ""}, {"z.zip", ""}, {"of", ""}, {"empty", ""}, {"nowhere", ""}, {"of", "chatgpt"}, {"of", "mem0"}, {"of", "memorix"}, {"of", "codex"}, {"of", "csv"}} {
		path := filepath.Join(dir, c.name)
		_, _, err := newFakeNode().load(t, func(o *Options) { o.Format = c.format }, path)
		if memory.CodeOf(err) != memory.CodeInvalid || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s as %q: %v", c.name, c.format, err)
		}
	}
}

// What cannot be read on is the fault of the file and none of the node, and what was read of it is in.
func TestAFileThatCannotBeReadOnIsInvalid(t *testing.T) {
	n := newFakeNode()
	broken := io.MultiReader(strings.NewReader("{\"text\":\"one\"}\n"), iotest.ErrReader(errors.New("the disk is gone")))
	_, said, err := n.load(t, func(o *Options) { o.Format, o.In = "jsonl", broken }, "-")
	if memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "the disk is gone") || len(n.living("team")) != 1 || !strings.Contains(said, "1 memory was sent; run") {
		t.Errorf("%v, left %q: %s", err, texts(n.living("team")), said)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	line := []byte(`{"id":"1","content":"x","state":"active","categories":[]}` + "\n" + strings.Repeat(" ", 1<<20) + "\n")
	for range 80 {
		if _, err := z.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "memories.jsonl.gz")
	put(t, file, bomb.String())
	if _, _, err := n.load(t, nil, file); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "zip bomb") {
		t.Errorf("%v", err)
	}
}
