package node

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// partsOfANode are what a person may copy from one data directory into another.
var partsOfANode = [][]string{{"keys"}, {"shards"}, {"nats"}, {nodeJSON, nodeCopy}}

// TestPartsOfDifferentNodesMixed puts keys, state, log and node.json of different
// nodes together. Such a node does not start, or stops writing, and says what to do;
// it never serves one node's memories as another's, and it harms nothing: with its
// own parts put back each node has what it had.
func TestPartsOfDifferentNodesMixed(t *testing.T) {
	var nodes []string
	var records []string
	for i := range len(partsOfANode) {
		dir := t.TempDir()
		n := open(t, quiet(dir))
		records = append(records, must(t, n, fmt.Sprintf("what node %d learned", i)).RecordID)
		shut(t, n)
		nodes = append(nodes, dir)
	}
	var mixes [][]int
	for bits := 1; bits < 1<<len(partsOfANode)-1; bits++ {
		var mix []int
		for part := range partsOfANode {
			mix = append(mix, bits>>part&1)
		}
		mixes = append(mixes, mix)
	}
	mixes = append(mixes, []int{0, 1, 2, 3})
	for _, mix := range mixes {
		t.Run(strings.ReplaceAll(strings.Trim(fmt.Sprint(mix), "[]"), " ", ""), func(t *testing.T) {
			dir := t.TempDir()
			for part, from := range mix {
				copyPart(t, nodes[from], dir, part)
			}
			refusesToMix(t, dir)
			for part := range partsOfANode {
				if mix[part] != mix[1] {
					clearPart(t, dir, part)
					copyPart(t, nodes[mix[1]], dir, part)
				}
			}
			n := open(t, quiet(dir))
			if status := get(t, n, "/v1/namespaces/default/records/"+records[mix[1]]); status != http.StatusOK {
				t.Errorf("with its own parts put back the record is answered by %d", status)
			}
			must(t, n, "and it writes")
			shut(t, n)
		})
	}
}

// refusesToMix starts a mixed node. It must not start, or stop writing, with a remedy.
func refusesToMix(t *testing.T, dir string) {
	t.Helper()
	n, err := Open(t.Context(), quiet(dir))
	var s *StartError
	switch {
	case errors.As(err, &s):
		if s.Hint == "" || s.Kind == StartOther {
			t.Errorf("refused as %s, hint %q: %v", s.Kind, s.Hint, err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	defer shut(t, n)
	_, err = capture(n, "not here")
	var m *memory.Error
	if !errors.As(err, &m) || m.Code != memory.CodeLogDiverged || m.Hint == "" {
		t.Errorf("a node of mixed parts takes a write: %v", err)
	}
}

func get(t *testing.T, n *Node, path string) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + n.HTTPAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func copyPart(t *testing.T, from, to string, part int) {
	t.Helper()
	for _, name := range partsOfANode[part] {
		src, dst := filepath.Join(from, name), filepath.Join(to, name)
		info, err := os.Stat(src)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = errors.Join(os.CopyFS(dst, os.DirFS(src)), keepKeysPrivate(to))
		} else {
			var b []byte
			if b, err = os.ReadFile(src); err == nil {
				err = os.WriteFile(dst, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func clearPart(t *testing.T, dir string, part int) {
	t.Helper()
	for _, name := range partsOfANode[part] {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
