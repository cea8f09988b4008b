package projections_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/projections"
)

// Words that stand in one part of a memory each.
const (
	sealedWord  = "xylophone"  // in what only the envelope holds
	derivedWord = "clavichord" // in tags, conversation and uri, which rows hold in clear
	textWord    = "accordion"  // in the text: terms hold it in clear, nothing else does
	agentWord   = "plaintextagent"
)

// plainWorld is a log whose memories are full of those words.
func plainWorld(t *testing.T) *world {
	w := newWorld(t, 5)
	ns := w.created("team", builtinSpace)
	w.frame(ns, w.changed(ns.Namespace, map[string]string{"search.fusion": sealedWord}))
	c := events.Content{Text: textWord + " in the text, at length: " + strings.Repeat(textWord+" ", 50), Subject: sealedWord, ClientID: sealedWord,
		Source: sealedWord, Role: sealedWord, Metadata: []byte(`{"` + sealedWord + `":1}`),
		Tags: []string{derivedWord}, URI: "mem://team/" + derivedWord, Conversation: derivedWord}
	e := w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, c)
	w.frame(e)
	c.ClientID, c.URI = "", ""
	w.frame(w.content(events.Header{Type: events.TypeRevised, Namespace: ns.Namespace, Agent: "ann", Target: e.Record, BaseVersion: 1}, c))
	c.URI = "mem://team/" + derivedWord
	w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: agentWord, Scope: events.ScopeAgent}, c))
	c.URI = ""
	for range 70 { // so many that terms have postings
		w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, c))
	}
	return w
}

// TestRowsHoldInClearOnlyWhatIsDerived: rows are in clear, but what nothing was
// derived from stays sealed in the envelope, and what was stands in the rows
// that are made for it and in no others.
func TestRowsHoldInClearOnlyWhatIsDerived(t *testing.T) {
	w := plainWorld(t)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	held := map[string][]string{}
	view(t, s, func(v *projections.View) {
		must(t, projections.Rows(v, func(key, value []byte) {
			row := bytes.ToLower(append(slices.Clone(key), value...))
			for _, word := range []string{sealedWord, derivedWord, textWord} {
				if prefix := fmt.Sprintf("%02x", key[0]); bytes.Contains(row, []byte(word)) && !slices.Contains(held[word], prefix) {
					held[word] = append(held[word], prefix)
				}
			}
		}))
	})
	if got := held[sealedWord]; got != nil {
		t.Errorf("rows %v hold a word that only envelopes may hold, sealed", got)
	}
	// Postings, documents, the dictionary and its names.
	terms := []string{"40", "42", "43", "44"}
	if got := held[textWord]; !slices.Equal(got, terms) {
		t.Errorf("rows %v hold a word of the text, want %v", got, terms)
	}
	// Heads, uris, conversations, bitmaps and attributes of versions, and terms.
	if got, want := held[derivedWord], append([]string{"20", "24", "27", "30", "31"}, terms...); !slices.Equal(got, want) {
		t.Errorf("rows %v hold tags, conversation and uri, want %v", got, want)
	}
}

// TestStateIsWrittenThroughItsFS: rows are in clear, so every byte of them goes
// through the file system that the state was given, which encrypts it.
func TestStateIsWrittenThroughItsFS(t *testing.T) {
	w := plainWorld(t)
	dir, fs := t.TempDir(), vfs.NewMem()
	s, err := projections.Open(projections.Options{Dir: dir, FS: fs, CacheBytes: 1 << 20, ReserveBytes: -1})
	must(t, err)
	fold(t, w.keys, s, w.log, 1)
	for _, stage := range []string{"log", "tables"} {
		must(t, s.Flush())
		if n := countInFS(t, fs, dir, derivedWord); n == 0 {
			t.Errorf("%s: the scan finds nothing at all", stage)
		}
		must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			for _, word := range []string{sealedWord, derivedWord, textWord, agentWord} {
				if bytes.Contains(bytes.ToLower(b), []byte(word)) {
					t.Errorf("%s: %s was written past the file system and holds %q", stage, path, word)
				}
			}
			return err
		}))
		must(t, projections.FlushTables(s))
	}
	must(t, s.Close())
}

// countInFS counts a word in all files below dir.
func countInFS(t *testing.T, fs vfs.FS, dir, word string) (n int) {
	t.Helper()
	names, err := fs.List(dir)
	must(t, err)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // Pebble deletes what it has done with at any time
		}
		must(t, err)
		if info.IsDir() {
			n += countInFS(t, fs, path, word)
			continue
		}
		f, err := fs.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		b, err := io.ReadAll(f)
		must(t, err)
		must(t, f.Close())
		n += bytes.Count(bytes.ToLower(b), []byte(word))
	}
	return n
}
