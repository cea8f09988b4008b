package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// copyOf keeps the data directory of a node that is stopped as it is now.
func (p *process) copyOf() string {
	p.team.t.Helper()
	dir := filepath.Join(p.team.t.TempDir(), "copy")
	must(p.team.t, os.CopyFS(dir, os.DirFS(p.dir)))
	return dir
}

// put replaces the data directory of a node that is stopped.
func (p *process) put(dir string) {
	p.team.t.Helper()
	must(p.team.t, os.RemoveAll(p.dir))
	must(p.team.t, os.CopyFS(p.dir, os.DirFS(dir)))
	closed(p.team.t, p.dir)
}

// closed takes the rights of others from what is in a folder.
func closed(t testing.TB, dir string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&0o700)
	}))
}

// says waits until the node has printed something.
func (p *process) says(ctx context.Context, words string) {
	p.team.t.Helper()
	for !strings.Contains(p.out.String(), words) {
		select {
		case <-ctx.Done():
			p.team.t.Fatalf("%s does not say %q:\n%s", p.id, words, p.out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// writer captures memories at one node after the other and knows which were
// acknowledged.
type writer struct {
	tm    *team
	acked map[string]string // record ids by the caller's
}

func (w *writer) write(ctx context.Context, count int, nodes ...*process) {
	w.tm.t.Helper()
	for range count {
		id := fmt.Sprintf("c%04d", len(w.acked))
		w.acked[id] = nodes[len(w.acked)%len(nodes)].capture(ctx, id, "memory "+id).RecordID
	}
}

// whole checks that all that run hold what was acknowledged, once.
func (w *writer) whole(ctx context.Context) {
	w.tm.t.Helper()
	w.tm.same(ctx)
	for _, p := range w.tm.alive() {
		lost := 0
		for _, record := range w.acked {
			if rec, err := p.client.Get(ctx, "default", record, client.GetOptions{}); err != nil || rec.RecordID != record {
				lost++
			}
		}
		list, err := p.client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
		if err != nil || len(list.Records) != len(w.acked) || lost > 0 {
			w.tm.t.Errorf("%s has %d records, acknowledged were %d, of which it lacks %d: %v", p.id, len(list.Records), len(w.acked), lost, err)
		}
	}
}

// n2 comes back with an older copy of its data directory, while n3 was away and lacks
// what n1 and n2 acknowledged since. n2 would make a majority with n3 that knows nothing
// of it; it takes no part instead, and joins again with nothing.
func TestAnOlderCopyTakesNoPart(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	tm.start(ctx)
	n1, n2, n3 := tm.nodes[0], tm.nodes[1], tm.nodes[2]
	for _, p := range tm.nodes {
		p.voter(ctx, n1)
	}
	w := &writer{tm, map[string]string{}}
	w.write(ctx, 30, tm.nodes...)
	tm.same(ctx)
	n2.term()
	older := n2.copyOf()
	n2.begin()
	n2.ready(ctx)
	tm.same(ctx)
	n3.kill()
	w.write(ctx, 40, n1, n2)
	n2.kill()
	n2.put(older)
	n2.begin()
	n2.says(ctx, "this data directory is older than what n1 remembers")
	n2.says(ctx, "it comes back with nothing once 2 others take part, of which 1 do")
	n3.begin()
	n2.ready(ctx)
	n3.ready(ctx)
	n2.voter(ctx, n1)
	w.write(ctx, 10, tm.nodes...)
	w.whole(ctx)
	aside, err := os.ReadDir(filepath.Join(n2.dir, "aside"))
	if err != nil || len(aside) != 1 {
		t.Errorf("what n2 had lies aside: %v %v", aside, err)
	}
	tm.leader(ctx).kill()
	w.write(ctx, 10, tm.alive()...)
	w.whole(ctx)
}

// A node that had a vote and lost the files of a group, or finds them or its copy of the
// log damaged, does not vote again: it joins anew with nothing, and what the others
// acknowledged is on it.
func TestANodeWithoutItsRaftFilesJoinsAnew(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	tm.start(ctx)
	n1, n3 := tm.nodes[0], tm.nodes[2]
	for _, p := range tm.nodes {
		p.voter(ctx, n1)
	}
	w := &writer{tm, map[string]string{}}
	for _, damage := range []struct {
		says string
		do   func() error
	}{
		{"the Raft files of the group 0 are gone", func() error { return os.RemoveAll(filepath.Join(n3.dir, "shards")) }},
		{"the Raft files of the group keys are damaged", func() error {
			return os.WriteFile(filepath.Join(n3.dir, "keys", "raft", "raft.db"), make([]byte, 64<<10), 0o600)
		}},
		{"the Raft files of the group log are damaged", func() error {
			blocks, err := filepath.Glob(filepath.Join(n3.dir, "nats", "jetstream", "NODE", "streams", "mneme-0", "msgs", "*.blk"))
			var block string
			var largest []byte
			for _, name := range blocks {
				b, rerr := os.ReadFile(name)
				err = errors.Join(err, rerr)
				if len(b) > len(largest) {
					block, largest = name, b
				}
			}
			if err != nil || block == "" {
				return fmt.Errorf("the log's blocks: %w", err)
			}
			// One field of a record, of four bytes, is mended at the start: two bits are not in it.
			largest[len(largest)/2] ^= 1
			largest[len(largest)/2+8] ^= 1
			return os.WriteFile(block, largest, 0o600)
		}},
	} {
		w.write(ctx, 10, tm.nodes...)
		n3.term()
		must(t, damage.do())
		w.write(ctx, 10, tm.alive()...)
		n3.begin()
		n3.says(ctx, damage.says)
		n3.ready(ctx)
		n3.voter(ctx, n1)
		w.whole(ctx)
	}
}

// A node with the keys of another cluster does not start, and loses nothing of its own.
func TestKeysOfAnotherClusterAreRefused(t *testing.T) {
	t.Parallel()
	tm, other := newTeam(t, 3), newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	other.start(ctx)
	for _, p := range other.nodes {
		p.kill()
	}
	tm.start(ctx)
	n1, n2 := tm.nodes[0], tm.nodes[1]
	for _, p := range tm.nodes {
		p.voter(ctx, n1)
	}
	w := &writer{tm, map[string]string{}}
	w.write(ctx, 10, tm.nodes...)
	n2.term()
	own := n2.copyOf()
	must(t, os.RemoveAll(filepath.Join(n2.dir, "keys")))
	must(t, os.CopyFS(filepath.Join(n2.dir, "keys"), os.DirFS(filepath.Join(other.nodes[1].dir, "keys"))))
	closed(t, n2.dir)
	n2.out = nil
	n2.begin()
	n2.ends(ctx, 7, "another cluster's", "put keys/ and shards/ back")
	must(t, os.RemoveAll(filepath.Join(n2.dir, "keys")))
	n2.out = nil
	n2.begin()
	n2.ends(ctx, 7, "no keyring", "the other nodes have every key: memctl cluster remove n2-")
	if _, err := os.Stat(filepath.Join(n2.dir, "keys")); err == nil {
		t.Error("without its keys the node began another keys/, in whose place they are to be put back")
	}
	n2.put(own)
	n2.begin()
	n2.ready(ctx)
	w.write(ctx, 10, tm.nodes...)
	w.whole(ctx)
}
