package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"mneme/internal/importer"
)

// TestFormats: the importer finds each file to be of its format, and as many memories in it as
// were written.
func TestFormats(t *testing.T) {
	var texts []string
	for i := range 2 * together {
		texts = append(texts, fmt.Sprintf("# %d\nis no heading", i))
	}
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), f.file)
		if err := f.write(path, texts); err != nil {
			t.Fatal(err)
		}
		if found, why, err := importer.Find(path); err != nil || found != f.name {
			t.Errorf("%s is found to be %s (%s), %v", f.name, found, why, err)
		}
		src, err := importer.OpenPath(f.name, path, importer.Options{Namespace: "bench", Agent: "bench"})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			_, err := src.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			n++
		}
		if err := src.Close(); err != nil || n != len(texts) {
			t.Errorf("%s: %d memories, %v", f.name, n, err)
		}
	}
}

func TestCheck(t *testing.T) {
	lines, graph := formats[0], formats[2]
	for _, c := range []struct {
		f     format
		said  string
		again bool
		good  bool
	}{
		{lines, `{"namespaces":[{"found":10,"created":10,"duplicates":0}]}`, false, true},
		{lines, `{"namespaces":[{"found":10,"created":10,"duplicates":0}]}`, true, false},
		{lines, `{"namespaces":[{"found":10,"created":0,"duplicates":10}]}`, true, true},
		{lines, `{"namespaces":[{"found":10,"created":9,"duplicates":0}]}`, false, false},
		{lines, `{"namespaces":[]}`, false, false},
		{lines, `nothing`, false, false},
		{graph, `{"namespaces":[{"graph":{"entities":10,"observations":10,"created":20}}]}`, false, true},
		{graph, `{"namespaces":[{"graph":{"entities":10,"observations":10,"created":0}}]}`, true, true},
		{graph, `{"namespaces":[{"graph":{"entities":10,"observations":10,"created":19}}]}`, false, false},
	} {
		if err := c.f.check([]byte(c.said), 10, c.again); (err == nil) != c.good {
			t.Errorf("%s, again %v: %v", c.said, c.again, err)
		}
	}
}

func TestParse(t *testing.T) {
	var log bytes.Buffer
	full, err := parse(nil, &log)
	if err != nil || full.records != 20_000 || full.runs != 3 {
		t.Errorf("%+v, %v", full, err)
	}
	for _, args := range [][]string{{"-records", "15"}, {"-records", "0"}, {"-runs", "0"}, {"more"}} {
		if _, err := parse(args, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
