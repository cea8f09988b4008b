package node

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/cluster"
	"mneme/memory"
)

// One node's clock goes forward by ten minutes while it leads. It was believed, and when it
// was right again all nodes refused to write until real time had caught up. It hands over,
// what the others write has the right time, and it may lead again when its clock is right.
func TestNodeWhoseClockRunsAheadLeadsNothing(t *testing.T) {
	t.Parallel()
	var ahead [3]atomic.Int64
	began := time.Now()
	tr := trioOf(t, func(i int, cfg *Config) {
		cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead[i].Load())) }
		cfg.Parts.SinceBoot = func() time.Duration { return time.Since(began) }
	})
	tr.openAll()
	tr.writes(0, "a", "before")
	wrong := tr.leader()
	other := (wrong + 1) % 3
	ahead[wrong].Store(int64(10 * time.Minute))
	tr.writes(other, "b", "while one clock is ahead")
	await(t, "another leader", func() bool { at := tr.leader(); return at != wrong })
	tr.writes(wrong, "c", "it takes writes, and forwards them")
	if sealed := time.Unix(0, tr.nodes[other].served[0].state.Cursor().SealedAt); time.Until(sealed) > time.Minute {
		t.Errorf("the log has the time %v", sealed)
	}
	if err := (leading{tr.nodes[wrong]}).eligible(); err == nil {
		t.Error("the node whose clock is wrong may be chosen")
	}
	for i, want := range map[int]string{wrong: "clock", other: "node " + tr.cfgs[wrong].Cluster.NodeID} {
		report, err := tr.nodes[i].doctor.Doctor(t.Context())
		if c := checkNamed(report, want); err != nil || c.State != "warn" || c.Detail == "" || c.Hint == "" || !report.OK {
			t.Errorf("doctor of %s: %+v %v", tr.cfgs[i].Cluster.NodeID, report, err)
		}
	}
	ahead[wrong].Store(0)
	await(t, "the node may lead again", func() bool { return (leading{tr.nodes[wrong]}).eligible() == nil })
	tr.writes(wrong, "d", "set right")
	tr.same()
	onlyOneIsLeft(t, tr)
}

func checkNamed(report memory.DoctorReport, name string) memory.Check {
	if i := slices.IndexFunc(report.Checks, func(c memory.Check) bool { return c.Name == name }); i >= 0 {
		return report.Checks[i]
	}
	return memory.Check{}
}

// Of the only node left of three doctor said that all was well, and status that its log went
// from 0 to 0.
func onlyOneIsLeft(t *testing.T, tr *trio) {
	t.Helper()
	report, err := tr.nodes[0].doctor.Doctor(t.Context())
	if c := checkNamed(report, "nodes"); err != nil || c.State != "ok" || c.Detail != "all 3 answer" {
		t.Errorf("%+v %v", c, err)
	}
	for _, i := range []int{2, 1} {
		want := fmt.Sprintf("%d of 3", i)
		shut(t, tr.nodes[i])
		tr.nodes[i] = nil
		report, err := tr.nodes[0].doctor.Doctor(t.Context())
		c := checkNamed(report, "nodes")
		if err != nil || !strings.HasPrefix(c.Detail, want) || !strings.Contains(c.Hint, "start n") || report.OK != (i == 2) {
			t.Errorf("%d: %+v %v", i, c, err)
		}
	}
	await(t, "the log to be gone", func() bool {
		status, err := tr.nodes[0].operator.Status(t.Context(), true)
		stopped := status.Shards[0].WritesStopped
		return err == nil && status.Shards[0].Log.Unreachable != "" && stopped != nil && strings.Contains(stopped.Why, "no node leads") && strings.Contains(stopped.Hint, "memctl doctor")
	})
}

// An outage is told once, and its end.
func TestOutageIsToldOnce(t *testing.T) {
	var o outage
	said := ""
	few, most := present{silent: make([]cluster.NodeStatus, 2), answer: []string{"n1"}}, present{silent: make([]cluster.NodeStatus, 1), answer: []string{"n1", "n2"}}
	for _, p := range []present{most, few, most, few, few, few, most, most} {
		lost, back := o.look(p)
		said += map[[2]bool]string{{true, false}: "L", {false, true}: "B", {}: "."}[[2]bool{lost, back}]
	}
	if said != "....L.B." {
		t.Error(said)
	}
}
