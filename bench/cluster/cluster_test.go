package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

func TestGapIsTheLongestWaitAfterTheFault(t *testing.T) {
	fault := time.Unix(1000, 0)
	w := &writer{}
	for _, ms := range []int{-5000, -10, 20, 1520, 1530, 1540} {
		w.acks = append(w.acks, fault.Add(time.Duration(ms)*time.Millisecond))
	}
	if got := w.gap(fault); got != 1500*time.Millisecond {
		t.Errorf("%v", got)
	}
	if got := (&writer{acks: w.acks[:3]}).gap(fault); got != 20*time.Millisecond {
		t.Errorf("until the first acknowledgement: %v", got)
	}
}

func TestWholeClustersOnly(t *testing.T) {
	sound := func() memory.ClusterStatus {
		st := memory.ClusterStatus{Shards: []memory.ClusterShard{{Leader: "n1"}}}
		for _, id := range []string{"n1", "n2", "n3"} {
			st.Nodes = append(st.Nodes, memory.ClusterNode{ID: id, Role: memory.RoleVoter, Reachable: true})
			st.Shards[0].Replicas = append(st.Shards[0].Replicas, memory.ClusterReplica{Node: id, Log: memory.ClusterCopy{Last: 7, Current: true}})
		}
		return st
	}
	if err := whole(sound(), nodes); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*memory.ClusterStatus){
		"a learner":        func(st *memory.ClusterStatus) { st.Nodes[1].Role = memory.RoleLearner },
		"silent":           func(st *memory.ClusterStatus) { st.Nodes[2].Reachable = false },
		"no report":        func(st *memory.ClusterStatus) { st.Shards[0].Replicas = st.Shards[0].Replicas[:2] },
		"behind":           func(st *memory.ClusterStatus) { st.Shards[0].Replicas[0].Behind = 1 },
		"the log is short": func(st *memory.ClusterStatus) { st.Shards[0].Replicas[2].Log.Last = 6 },
		"the log lags":     func(st *memory.ClusterStatus) { st.Shards[0].Replicas[2].Log.Current = false },
	} {
		st := sound()
		spoil(&st)
		if whole(st, nodes) == nil {
			t.Errorf("%s: whole", name)
		}
	}
}

func TestOptionsThatAreNoGood(t *testing.T) {
	for args, want := range map[string]string{
		"-only nothing": "is unknown", "-records 1": "at least", "-faults 0": "positive", "-kinds (": "-kinds", "extra": "unexpected argument",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	opt, err := parse([]string{"-quick", "-only", "faults"}, io.Discard)
	if err != nil || opt.faults != 1 || opt.records != 5000 {
		t.Errorf("%+v %v", opt, err)
	}
}
