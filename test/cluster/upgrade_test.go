package cluster

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mneme/memory"
)

var upgradeFrom = flag.String("upgrade.from", "", "commit from which TestRollingUpgrade comes; none: it is not run")

// memnodeOf builds the program of an earlier commit.
func memnodeOf(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	sources, archive := filepath.Join(dir, "sources"), filepath.Join(dir, "sources.tar")
	must(t, os.Mkdir(sources, 0o700))
	for _, c := range [][]string{
		{"git", "-C", filepath.Join("..", ".."), "archive", "--output", archive, commit},
		{"tar", "-xf", archive, "-C", sources},
		{"go", "-C", sources, "build", "-o", filepath.Join(dir, "memnode"), "./cmd/memnode"},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	return filepath.Join(dir, "memnode")
}

// A cluster of an earlier commit gets this one's program node by node, in an order by
// chance, while clients write and read: nothing that was acknowledged is lost, before,
// meanwhile or afterwards, whichever of the two leads. make upgrade FROM=COMMIT runs it; a
// commit whose formats differ is none to come from.
func TestRollingUpgrade(t *testing.T) {
	if *upgradeFrom == "" {
		t.Skip("make upgrade FROM=COMMIT runs it: it builds the program of another commit")
	}
	seed := *robustSeed
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	t.Logf("again: go test ./test/cluster -run '^TestRollingUpgrade$' -upgrade.from=%s -robust.nodes=%d -robust.seed=%d", *upgradeFrom, *robustNodes, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tm := newRelayedTeam(t, *robustNodes, seed)
	now := tm.program
	tm.program = memnodeOf(t, *upgradeFrom)
	ctx := within(t, 6*patience)
	tm.start(ctx)
	l := tm.startLoad(ctx, "upgraded", seed)
	pause(ctx, 2*time.Second)
	old := tm.program
	tm.program = now
	for i, at := range random.Perm(len(tm.nodes)) {
		p := tm.nodes[at]
		if i > 0 { // one of the earlier commit leads, as often as not
			lead, _ := tm.led(ctx, 0, nil)
			t.Logf("%s leads, which runs %s", lead.id, map[bool]string{true: "the earlier commit", false: "this one"}[lead.cmd.Path == old])
		}
		p.term()
		p.begin()
		p.ready(ctx)
		pause(ctx, time.Duration(1+random.IntN(3))*time.Second)
	}
	tm.serves(ctx)
	l.end()
	tm.serves(ctx)
	l.verify(ctx, tm.nodes[random.IntN(len(tm.nodes))])
	t.Logf("longest without an acknowledgement %v; done/refused/unknown: %s", l.gap.Round(time.Millisecond), l.summary())
	tm.verifyLogs(ctx, tm.nodes[random.IntN(len(tm.nodes))])
	for _, p := range tm.nodes {
		if p.cmd.Path == old {
			t.Errorf("%s still runs the earlier commit", p.id)
		}
	}
	tm.putBack(ctx, old, tm.nodes[random.IntN(len(tm.nodes))], tm.nodes[random.IntN(len(tm.nodes))])
}

// putBack puts a node back to the earlier program and forth again, ends the upgrade at another
// node, and sees that the earlier program, if it knows less, takes the node's place no more.
func (tm *team) putBack(ctx context.Context, old string, p, at *process) {
	tm.t.Helper()
	now := tm.program
	restart := func(program string) {
		p.term()
		p.out = nil
		tm.program = program
		p.begin()
	}
	restart(old)
	p.ready(ctx)
	tm.serves(ctx)
	op, err := p.operator(ctx)
	must(tm.t, err)
	before, err := op.Cluster().Upgrade(ctx)
	knows := err == nil && before.Known > before.Level // it has levels itself, and this commit's none that it lacks
	restart(now)
	p.ready(ctx)
	tm.serves(ctx)
	op, err = at.operator(ctx)
	must(tm.t, err)
	var st memory.UpgradeStatus
	for st, err = op.Cluster().FinishUpgrade(ctx); err != nil; st, err = op.Cluster().FinishUpgrade(ctx) {
		if ctx.Err() != nil {
			tm.t.Fatalf("the upgrade cannot be finished: %v", err)
		}
		pause(ctx, 100*time.Millisecond)
	}
	tm.t.Logf("the upgrade is finished: level %d, known %d", st.Level, st.Known)
	tm.serves(ctx)
	if knows {
		return
	}
	restart(old)
	p.ends(ctx, 7, "newer version")
	tm.program = now
	p.begin()
	p.ready(ctx)
	tm.serves(ctx)
}
