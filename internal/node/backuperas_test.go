package node

import (
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// A schedule of backups goes on in its places when its node becomes three, when most of these
// are lost and a cluster is recovered from one, and when a backup of long ago is restored: each
// time an era begins. What was forgotten in one of them stays forgotten in all.
func TestBackupsGoOnWhenTheClusterIsAnotherOne(t *testing.T) {
	t.Parallel()
	tr, p := trioOf(t, nil), newPlaces(t)
	dir := tr.cfgs[0].DataDir
	n := open(t, quiet(dir))
	ids := doomedSubject(t, n)
	p.backup(runs{n})
	must(t, n, "the last one that it writes alone")
	alone := p.backup(runs{n})
	first := n.dir.node.ClusterID
	shut(t, n)
	if alone.Parent == "" {
		t.Errorf("%+v", alone)
	}
	if _, err := tr.inits(Offline{}, dir, InitOptions{}); err != nil {
		t.Fatal(err)
	}
	tr.start()
	tr.writes(1, "first", "a memory that three have") // the log is written
	tr.same()
	three := tr.nodes[1].dir.node.ClusterID
	begun := tr.backs(p, 1) // a node that joined knows it, too
	if begun.Parent != "" || begun.Cluster != three || !strings.Contains(begun.Begun, first) {
		t.Errorf("%+v", begun)
	}
	tr.eventually(0, func() error { return tr.nodes[0].Erase(t.Context(), "default", "ada") })
	tr.same()
	tr.writes(2, "later", "another one")
	tr.same()
	newest := tr.backs(p, 2)
	if newest.Parent != begun.ID || newest.Destroyed == 0 {
		t.Errorf("%+v", newest)
	}
	p.drills("", 2, newest.ID)
	p.drills(alone.ID, 1, alone.ID)
	tr.stop()

	if r, err := tr.recovers(1, RecoverOptions{}); err != nil || !r.Recovered {
		t.Fatalf("%+v, %v", r, err)
	}
	tr.anew(0)
	tr.anew(2)
	tr.start()
	tr.writes(2, "last", "a memory of the recovered ones")
	tr.same()
	recovered := tr.backs(p, 0)
	if recovered.Parent != "" || !strings.Contains(recovered.Begun, three) || recovered.Unknown > 0 {
		t.Errorf("%+v", recovered)
	}
	if former := tr.nodes[0].dir.former(); !slices.Equal(former, []string{first, three}) {
		t.Errorf("a node that joined goes on from %v", former)
	}
	if made := tr.backs(p, 2); made.Parent != recovered.ID {
		t.Errorf("%+v", made)
	}
	p.drills("", 3, "")
	tr.stop()

	// The era of before the erasure is restored: it is gone there, too, and its next backups go on.
	restored, r := p.restore(p.choose(alone.ID), Until{})
	if r.Era != 1 || len(r.Eras) != 3 || r.DestroyedLiving > 0 || r.Destroyed != newest.Destroyed {
		t.Errorf("%+v", r)
	}
	n = open(t, quiet(restored))
	onlyOthersAreFound(t, n, ids)
	if id := n.dir.node.ClusterID; id == first || id == three || id == recovered.Cluster {
		t.Errorf("what was restored from a former era is the cluster %s again", id)
	}
	made := p.backup(runs{n})
	if made.Parent != "" || made.Begun == "" || made.Unknown > 0 {
		t.Errorf("%+v", made)
	}
	must(t, n, "and it goes on")
	if next := p.backup(runs{n}); next.Parent != made.ID {
		t.Errorf("%+v", next)
	}
	shut(t, n)
	p.drills("", 4, "")

	// The present one is restored as the cluster that it was.
	restored, _ = p.restore(p.choose(""), Until{})
	n = open(t, quiet(restored))
	if n.dir.node.ClusterID != made.Cluster || len(n.dir.former()) != 3 {
		t.Errorf("%s goes on from %v", n.dir.node.ClusterID, n.dir.former())
	}
	if next := p.backup(runs{n}); next.Parent == "" {
		t.Errorf("%+v", next)
	}
	shut(t, n)

	other := open(t, quiet(t.TempDir()))
	if _, err := p.try(runs{other}, true); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("a foreign cluster: %v", err)
	}
	shut(t, other)
}

// backs makes a backup of a node.
func (tr *trio) backs(p *places, i int) (made memory.BackupMade) {
	tr.t.Helper()
	tr.eventually(i, func() (err error) {
		made, err = p.try(runs{tr.nodes[i]}, false)
		return err
	})
	return made
}

// drills restores a backup of an era on trial.
func (p *places) drills(id string, era int, want string) {
	p.t.Helper()
	r, err := p.drill(id)
	if err != nil || !r.OK || r.Era != era || want != "" && r.Backup != want {
		p.t.Errorf("a drill of %q: %+v, %v", id, r, err)
	}
}
