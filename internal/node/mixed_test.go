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
// it never serves one node's memories as another's, and what it says helps: whoever
// follows it has the node of the log again, with what it had.
func TestPartsOfDifferentNodesMixed(t *testing.T) {
	t.Parallel()
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
				putPart(t, nodes[from], dir, part)
			}
			const keys, shards, log, node = 0, 1, 2, 3
			steps, foreign := 0, mix[keys] != mix[log]
			for hint := refusesToMix(t, dir); hint != ""; hint = refusesToMix(t, dir) {
				if steps++; steps > 4 {
					t.Fatalf("the remedies lead nowhere, the last is %q", hint)
				}
				switch {
				case strings.Contains(hint, "put the four of the same node"):
					for part := range partsOfANode {
						putPart(t, nodes[mix[log]], dir, part)
					}
				case strings.Contains(hint, "put the data directory's keys/ folder back"),
					strings.Contains(hint, "put keys/ or shards/ back") && foreign:
					foreign = false
					putPart(t, nodes[mix[log]], dir, keys)
				case strings.Contains(hint, "move shards/ out of the data directory"):
					if err := os.Rename(filepath.Join(dir, "shards"), filepath.Join(t.TempDir(), "shards")); err != nil {
						t.Fatal(err)
					}
				default:
					t.Fatalf("hint %q", hint)
				}
			}
			n := open(t, quiet(dir))
			if status := get(t, n, "/v1/namespaces/default/records/"+records[mix[log]]); status != http.StatusOK {
				t.Errorf("with the remedies followed the record is answered by %d", status)
			}
			if mix[keys] == mix[log] && mix[log] == mix[node] && steps != 1 {
				t.Errorf("%d steps where shards/ alone is another's", steps)
			}
			must(t, n, "and it writes")
			shut(t, n)
		})
	}
}

// TestRaftFilesOfAnotherNode puts Raft files of another node into a node's shard. It
// starts, or says what helps: moving shards/ away, whereupon the log gives everything.
// Doctor says the same.
func TestRaftFilesOfAnotherNode(t *testing.T) {
	t.Parallel()
	files := []string{"raft.db", "membership", "snapshots"}
	own, other := t.TempDir(), t.TempDir()
	var record string
	for _, dir := range []string{other, own} {
		n := open(t, quiet(dir))
		record = must(t, n, "learned in "+dir).RecordID
		shut(t, n)
	}
	for bits := 1; bits < 1<<len(files); bits++ {
		t.Run(fmt.Sprintf("%03b", bits), func(t *testing.T) {
			dir := t.TempDir()
			for part := range partsOfANode {
				putPart(t, own, dir, part)
			}
			for i, name := range files {
				if bits>>i&1 == 0 {
					continue
				}
				putBack(t, filepath.Join(other, "shards", "0", name), filepath.Join(dir, "shards", "0", name))
			}
			if hint := refusesToMix(t, dir); hint != "" {
				if !strings.Contains(hint, "move shards/ out of the data directory") {
					t.Fatalf("hint %q", hint)
				}
				if err := os.Rename(filepath.Join(dir, "shards"), filepath.Join(t.TempDir(), "shards")); err != nil {
					t.Fatal(err)
				}
				if hint := refusesToMix(t, dir); hint != "" {
					t.Fatalf("with shards/ moved away: %s", hint)
				}
			}
			n := open(t, quiet(dir))
			if status := get(t, n, "/v1/namespaces/default/records/"+record); status != http.StatusOK {
				t.Errorf("with the remedy followed the record is answered by %d", status)
			}
			shut(t, n)
		})
	}
}

// refusesToMix starts a node, which refuses and says what to do, as doctor does; ""
// where it starts and writes.
func refusesToMix(t *testing.T, dir string) (hint string) {
	t.Helper()
	doctor, err := Offline{Config: quiet("")}.Doctor(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), quiet(dir))
	var s *StartError
	if errors.As(err, &s) {
		if s.Hint == "" || s.Kind == StartOther || doctor.OK {
			t.Errorf("refused as %s, hint %q, doctor %+v: %v", s.Kind, s.Hint, doctor, err)
		}
		return s.Hint
	}
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, n)
	_, err = capture(n, "not here")
	var m *memory.Error
	if errors.As(err, &m) && m.Code == memory.CodeLogDiverged {
		return m.Hint
	}
	if err != nil || !doctor.OK {
		t.Errorf("it writes: %v, and doctor says %+v", err, doctor)
	}
	return ""
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

// putPart puts a part of one node in place of another's.
func putPart(t *testing.T, from, to string, part int) {
	t.Helper()
	for _, name := range partsOfANode[part] {
		putBack(t, filepath.Join(from, name), filepath.Join(to, name))
	}
}
