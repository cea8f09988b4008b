package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/memory"
)

// rots flips a bit in a node's own copy of the log while it runs, where sound records follow.
// part is where in the block, of 100.
func (tr *trio) rots(i, part int) {
	tr.t.Helper()
	blocks, err := filepath.Glob(filepath.Join(tr.cfgs[i].DataDir, "nats", "jetstream", "*", "streams", "*", "msgs", "1.blk"))
	if err != nil || len(blocks) != 1 {
		tr.t.Fatalf("blocks of node %d: %v %v", i+1, blocks, err)
	}
	f, err := os.OpenFile(blocks[0], os.O_RDWR, 0)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	b, at := make([]byte, 1), int64(0)
	if err == nil {
		at = info.Size() * int64(part) / 100
		_, err = f.ReadAt(b, at)
	}
	if err == nil {
		_, err = f.WriteAt([]byte{b[0] ^ 4}, at)
	}
	if err != nil {
		tr.t.Fatal(err)
	}
}

// restarts opens each node again that ends to start again, as memnode does, until the
// returned function is called, which says how often each did.
func (tr *trio) restarts() (end func() []int) { return tr.restartsOf(0, 1, 2) }

func (tr *trio) restartsOf(some ...int) (end func() []int) {
	ctx, stop := context.WithCancel(tr.t.Context())
	var watching sync.WaitGroup
	times := make([]int, len(tr.nodes))
	for _, i := range some {
		watching.Go(func() {
			for {
				n := tr.nodes[i]
				select {
				case <-ctx.Done():
					return
				case <-n.Done():
				}
				if !errors.Is(n.Err(), ErrRestart) {
					tr.t.Errorf("node %d ended with %v", i+1, n.Err())
					return
				}
				shut(tr.t, n)
				times[i]++
				tr.open(i)
				if tr.nodes[i] == n {
					return // it says so
				}
			}
		})
	}
	return func() []int {
		stop()
		watching.Wait()
		return times
	}
}

// checked has each node check its copy often.
func checked(_ int, cfg *Config) { cfg.ScrubEvery, cfg.ScrubRate = 200*time.Millisecond, 1<<30 }

// healed waits until nodes have other names than they had, and all copies are whole and sound.
// ask is a node that does not start again.
func (tr *trio) healed(ask int, former map[int]string) {
	tr.t.Helper()
	began := time.Now()
	await(tr.t, "copies to be taken from the others", func() bool {
		st, err := tr.nodes[ask].operator.Cluster(tr.t.Context())
		if err != nil || len(st.Nodes) != len(tr.nodes) || len(st.Shards[0].Replicas) != len(tr.nodes) || st.Shards[0].Copies.Have != len(tr.nodes) {
			return false
		}
		for _, n := range st.Nodes {
			for i, name := range former {
				if n.ID == tr.id(i) && n.Name == name || n.Role != memory.RoleVoter {
					return false
				}
			}
		}
		return !slices.ContainsFunc(st.Shards[0].Replicas, func(r memory.ClusterReplica) bool { return r.Log.Damage != "" || r.Behind > 0 })
	})
	tr.t.Logf("all copies are whole after %v", time.Since(began).Round(time.Millisecond))
}

// Rot in a follower's copy was found by nobody: every reading of the log asks its leader. It
// added up over the nodes, and after a stop of all two of three waited for each other, for ever.
// Of two that rot at once each takes its copy from the others, one after the other, and the
// leader's own copy is no other: what it cannot read stops writes for a moment only.
func TestRotInOwnCopiesOfTheLog(t *testing.T) {
	t.Parallel()
	for what, pick := range map[string]func(lead int) []int{
		"one follower":            func(lead int) []int { return []int{(lead + 1) % 3} },
		"both followers":          func(lead int) []int { return []int{(lead + 1) % 3, (lead + 2) % 3} },
		"the leader":              func(lead int) []int { return []int{lead} },
		"the leader, and another": func(lead int) []int { return []int{lead, (lead + 1) % 3} },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tr := trioOf(t, checked)
			tr.openAll()
			acked := map[string]string{}
			for i := range 30 {
				id := fmt.Sprintf("m%d", i)
				acked[id] = tr.writes(i%3, id, "a memory of the harbour").RecordID
			}
			tr.same()
			lead := tr.leader()
			rotten := pick(lead)
			former, sound := map[int]string{}, 0
			for i := range tr.nodes {
				if slices.Contains(rotten, i) {
					former[i] = tr.nodes[i].dir.name()
				} else {
					sound = i
				}
			}
			end := tr.restarts()
			for k, i := range rotten {
				tr.rots(i, 20+30*k) // in different places: each byte is whole on two nodes
			}
			tr.healed(sound, former)
			for i, n := range end() {
				if _, was := former[i]; was != (n == 1) || n > 1 {
					t.Errorf("node %d started again %d times", i+1, n)
				}
			}
			for i := range tr.nodes {
				id := fmt.Sprintf("then%d", i)
				acked[id] = tr.writes(i, id, "and it goes on").RecordID
			}
			tr.same()
			// The stop of all that took the cluster down.
			tr.stop()
			tr.start()
			tr.leader()
			for i := range tr.nodes {
				tr.holds(i, acked)
				tr.eventually(i, func() error {
					report, err := tr.nodes[i].operator.VerifyLog(t.Context(), nil)
					if err == nil && (!report.Shards[0].OK || report.Copy == nil || !report.Copy.OK || report.Copy.Files == 0) {
						err = fmt.Errorf("%+v, %+v", report, report.Copy)
					}
					return err
				})
			}
		})
	}
}

// Where a copy cannot be taken from the others it is told, by what names it, and the node goes
// on with it, leads nothing, and says for what it waits.
func TestRotInAnOwnCopyIsTold(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	for i := range 10 {
		tr.writes(i%3, fmt.Sprintf("m%d", i), "a memory of the harbour")
	}
	tr.same()
	lead := tr.leader()
	rotten, away := (lead+1)%3, (lead+2)%3
	gone := tr.nodes[away]
	tr.nodes[away] = nil
	shut(t, gone)
	tr.rots(rotten, 40)
	n := tr.nodes[rotten]
	tr.eventually(rotten, func() error {
		report, err := n.operator.VerifyLog(t.Context(), nil)
		if err == nil && (report.Copy.OK || !strings.Contains(report.Copy.Problem, "1.blk does not check at ") || report.Copy.Hint == "") {
			err = fmt.Errorf("%+v", report.Copy)
		}
		return err
	})
	await(t, "the reason why it is not taken anew", func() bool { return strings.Contains(n.upkeep.copy.Status().Waits, tr.id(away)+" does not answer") })
	report, err := n.operator.Doctor(t.Context())
	if err != nil || report.OK || !slices.ContainsFunc(report.Checks, func(c memory.Check) bool {
		return c.Name == "own copy of the log" && c.State == "fail" && strings.Contains(c.Detail, "1.blk does not check at ") && strings.Contains(c.Detail, "does not answer") && c.Hint != ""
	}) {
		t.Errorf("%+v, %v", report, err)
	}
	st, err := tr.nodes[lead].operator.Cluster(t.Context())
	if err != nil || st.Shards[0].Copies.Have != 1 || !slices.ContainsFunc(st.Shards[0].Replicas, func(r memory.ClusterReplica) bool {
		return r.Node == tr.id(rotten) && strings.Contains(r.Log.Damage, "does not check at ")
	}) {
		t.Errorf("%+v, %v", st, err)
	}
	report, err = tr.nodes[lead].operator.Doctor(t.Context())
	if err != nil || !slices.ContainsFunc(report.Checks, func(c memory.Check) bool {
		return c.Name == "copies of the log" && c.State == "warn" && strings.Contains(c.Detail, "files of "+tr.id(rotten)+" are damaged")
	}) {
		t.Errorf("%+v, %v", report, err)
	}
	if err := n.served[0].unfit(); err == nil || !strings.Contains(err.Error(), "its own copy of the log is damaged") {
		t.Errorf("it may lead: %v", err)
	}
	former := n.dir.name()
	end := tr.restartsOf(rotten)
	tr.open(away)
	tr.healed(lead, map[int]string{rotten: former})
	end()
}
