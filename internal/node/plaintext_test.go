package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secretWords stand nowhere but in what agents said. A word may reach a file in
// capitals, in small letters, without its ending, or in UTF-16.
var secretWords = []string{"zanzibarine", "quixotropolis", "fjordwhistle", "myrmidonkey", "snollygosterly", "vexillograph", "wabbitsquash", "ytterbiumesque"}

// After a workload, no file of a node holds a word of it. Names that
// docs/security.md declares clear (namespace, agent) are not looked for.
func TestNoFileHoldsAWordOfAWorkload(t *testing.T) {
	dir := t.TempDir()
	cfg := quiet(dir)
	cfg.SnapshotThreshold = 8
	n := open(t, cfg)
	w := secretWords
	record := postOK(t, n, "/v1/namespaces/default/events", map[string]any{"agent": "tester", "text": "the " + w[0] + " met " + w[1],
		"uri": "mem://default/" + w[2], "tags": []string{w[3]}, "conversation": w[4], "subject": w[5], "metadata": map[string]any{"k": w[6]}})
	for i := range 40 {
		postOK(t, n, "/v1/namespaces/default/events", map[string]any{"agent": "tester", "text": fmt.Sprintf("%s number %d walks", w[0], i), "conversation": w[4]})
	}
	if !strings.Contains(record, "record_id") {
		t.Fatal(record)
	}
	found := postOK(t, n, "/v1/namespaces/default/search", map[string]any{"query": w[1] + " " + w[7]})
	if !strings.Contains(found, w[0]) {
		t.Fatalf("the search finds nothing: %s", found)
	}
	// What is refused is listed with its body.
	if status, answer := post(t, n, "/v1/namespaces/default/events", `{"agent":"tester","text":"`+w[7]+`","kind":`); status != 400 {
		t.Fatalf("a body that is no JSON: %d %s", status, answer)
	}
	shut(t, n)
	looked := noneHolds(t, dir, w)
	for _, part := range []string{"state", "raft.db", "snapshots", "jetstream", "keys", "rejected"} {
		if !strings.Contains(looked, part) {
			t.Errorf("no file of %s was looked at:\n%s", part, looked)
		}
	}
}

// noneHolds looks through every file below dir and lists them.
func noneHolds(t *testing.T, dir string, words []string) (looked string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked += fmt.Sprintln(path, len(b))
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if len(b) > 0 && isDerived(filepath.ToSlash(rel)) && !bytes.HasPrefix(b, []byte("MNEF")) {
			t.Errorf("%s is not encrypted", rel)
		}
		small := bytes.ToLower(b)
		for _, word := range words {
			var wide []byte
			for _, c := range []byte(word) {
				wide = append(wide, c, 0)
			}
			if bytes.Contains(small, []byte(word[:len(word)-2])) || bytes.Contains(small, wide) || strings.Contains(strings.ToLower(path), word) {
				t.Errorf("%s holds %q", path, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return looked
}

// isDerived reports whether a file of a data directory holds what is derived.
func isDerived(path string) bool {
	for _, dir := range []string{"shards/0/state/", "shards/0/vectors/", "shards/0/snapshots/", "logs/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// postOK sends a request as a client does and returns the answer.
func postOK(t *testing.T, n *Node, path string, body any) string {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := post(t, n, path, string(b))
	if status >= 300 {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
	return answer
}
