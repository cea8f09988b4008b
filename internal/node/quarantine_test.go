package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/memory"
)

// allergic is a machine that cannot apply what the agent eve says, as a fold with a bug
// would, until that is in quarantine.
type allergic struct {
	raftfsm.Resumer
	cured map[projections.Ref]bool
}

func (m *allergic) Apply(entries []raftfsm.Entry) ([]any, error) {
	for i, e := range entries {
		at, found := m.poison(e.Data)
		if !found {
			continue
		}
		if i > 0 {
			if results, err := m.Resumer.Apply(entries[:i]); err != nil {
				return results, err
			}
		}
		return nil, &raftfsm.ApplyError{Index: e.Index, Err: &projections.PoisonError{At: at, Type: events.TypeCaptured, Cause: errors.New("boom")}}
	}
	return m.Resumer.Apply(entries)
}

func (m *allergic) poison(command []byte) (events.Position, bool) {
	rg, err := projections.DecodeRange(command)
	if err != nil {
		return events.Position{}, false
	}
	for i, rf := range rg.Frames {
		f, err := events.DecodeFrame(rf.Bytes)
		if err != nil {
			continue
		}
		for n, raw := range f.Events {
			at := projections.Ref{Seq: rg.Previous + uint64(i) + 1, Index: uint32(n)}
			if e, err := events.DecodeEnvelope(raw); err == nil && e.Agent == "eve" && e.Type == events.TypeCaptured && !m.cured[at] {
				return events.Position{Shard: f.Shard, Epoch: f.Epoch, Seq: at.Seq, Index: at.Index}, true
			}
		}
	}
	return events.Position{}, false
}

func (m *allergic) Resume(e raftfsm.Entry, halted error) bool {
	q, err := projections.DecodeQuarantine(e.Data)
	if err != nil || !m.Resumer.Resume(e, halted) {
		return false
	}
	m.cured[q.At] = true
	return true
}

// toEve has a node use such machines.
func toEve(cfg *Config) {
	cfg.Parts.Group = func(opt raftfsm.Options) (replica.Group, error) {
		opt.Machine = &allergic{opt.Machine.(raftfsm.Resumer), map[projections.Ref]bool{}}
		return raftfsm.Open(opt)
	}
}

var skull = memory.Capture{Agent: "eve", ID: "poison", Text: "a bottle with a skull on it"}

// eveSpeaks has a shard stop.
func eveSpeaks(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := n.changes.Capture(ctx, "default", []memory.Capture{skull}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err == nil && resp.Results[0].Error == nil {
		t.Fatal("what halts the shard was acknowledged")
	}
}

func (tr *trio) awaitPoison(shard uint16) (at string) {
	tr.t.Helper()
	await(tr.t, "all nodes to stop", func() bool {
		for _, n := range tr.nodes {
			p := n.served[shard].replica.Poison()
			if p == nil {
				return false
			}
			at = p.At.String()
		}
		return true
	})
	return at
}

// A shard that had stopped on all nodes at one event stayed so, and a node that was started
// then did not serve. Reads and the other shards go on; who asks hears what helps; once the
// event is in quarantine all nodes go on.
func TestPoisonEventIsPutInQuarantineOnAllNodes(t *testing.T) {
	t.Parallel()
	tr := trioOf(t, func(i int, cfg *Config) {
		if toEve(cfg); i == 0 {
			cfg.Shards = 2
		}
	})
	tr.openAll()
	tr.leader()
	ctx := t.Context()
	await(t, "another namespace", func() bool {
		_, err := tr.nodes[0].changes.CreateNamespace(ctx, memory.CreateNamespace{Name: "other"})
		return err == nil || memory.CodeOf(err) == memory.CodeConflict
	})
	before := tr.writes(0, "before", "a memory of the harbour")
	home, err := events.ParsePosition(before.Position)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := tr.nodes[0].changes.Capture(ctx, "other", []memory.Capture{{Agent: "a", Text: "elsewhere"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := events.ParsePosition(elsewhere.Position); err != nil || other.Shard == home.Shard {
		t.Fatalf("%v, %v: both namespaces are on one shard", elsewhere, err)
	}
	shard := home.Shard
	tr.same()
	tr.leadsNothingBehind()

	eveSpeaks(t, tr.nodes[1])
	at := tr.awaitPoison(shard)
	for i, n := range tr.nodes {
		if rec, err := n.reads.Get(ctx, memory.Access{Namespace: "default", As: "a"}, before.RecordID, 0); err != nil || rec.RecordID != before.RecordID {
			t.Errorf("node %d reads %+v, %v", i+1, rec, err)
		}
		tr.sends(n, "other", "meanwhile-"+tr.id(i))
		if refused := n.served[shard].refuse(); refused == nil || !strings.Contains(refused.Message, at) || !strings.Contains(refused.Hint, "memctl quarantine "+at) {
			t.Errorf("node %d refuses writes with %v", i+1, refused)
		}
		if ok, checks := n.doctor.Ready(); !ok || !slices.ContainsFunc(checks, func(c memory.Check) bool {
			return c.State == "fail" && strings.Contains(c.Detail, at) && strings.Contains(c.Hint, "memctl quarantine "+at)
		}) {
			t.Errorf("node %d is ready: %v, %+v", i+1, ok, checks)
		}
	}
	for _, n := range tr.nodes {
		await(t, "the node to say that the leader takes no writes", func() bool { // which may change
			in, err := n.operator.Cluster(ctx)
			told := in.Shards[shard].WritesStopped
			return err == nil && told != nil && told.Node != "" && strings.Contains(told.Hint, "memctl quarantine "+at) && in.Shards[1-shard].WritesStopped == nil
		})
	}
	status, err := tr.nodes[0].operator.Status(ctx, true)
	if err != nil || status.Shards[shard].StoppedAt != at || status.Shards[1-shard].Halted != "" {
		t.Errorf("%+v, %v", status.Shards, err)
	}

	// What the nodes lead goes where it is wanted, as ever.
	for _, n := range tr.nodes {
		if err := (leading{n}).eligible(); err != nil {
			t.Errorf("%s is not to lead anything: %v", n.dir.node.NodeID, err)
		}
	}
	busy := tr.leaderOf(int(1 - shard))
	await(t, "a drain", func() bool { // the log may have no leader for a moment
		_, err = tr.nodes[busy].operator.DrainNode(ctx, memory.DrainNode{})
		return err == nil
	})
	if next := tr.leaderOf(int(1 - shard)); next == busy {
		t.Error("a drained node leads the other shard")
	}
	if _, err := tr.nodes[busy].operator.DrainNode(ctx, memory.DrainNode{Undo: true}); err != nil {
		t.Error(err)
	}
	await(t, "a transfer back", func() bool {
		_, err = tr.nodes[busy].operator.TransferLead(ctx, memory.TransferLead{Node: tr.id(busy)})
		return err == nil
	})

	// One that starts then serves reads.
	lead := 0
	for i, n := range tr.nodes {
		if id, _ := n.served[shard].replica.Group().Leader(); id == n.dir.name() {
			lead = i
		}
	}
	started := (lead + 1) % 3
	n := tr.nodes[started]
	tr.nodes[started] = nil
	shut(t, n)
	await(t, "its start", func() bool { // the log may have no leader, and memnode is started again
		n, err := Open(ctx, tr.cfgs[started])
		if err == nil {
			tr.nodes[started] = n
		}
		return err == nil
	})
	if rec, err := tr.nodes[started].reads.Get(ctx, memory.Access{Namespace: "default", As: "a"}, before.RecordID, 0); err != nil || rec.RecordID != before.RecordID {
		t.Errorf("a node that was started reads %+v, %v", rec, err)
	}
	tr.awaitPoison(shard)

	ask := func(req memory.PutInQuarantine) (memory.InQuarantine, error) {
		return tr.nodes[started].operator.PutInQuarantine(ctx, req)
	}
	for position, code := range map[string]memory.Code{"p0": memory.CodeInvalid, "p7.0.1.0": memory.CodeNotFound, before.Position: memory.CodeConflict, elsewhere.Position: memory.CodeConflict} {
		var got memory.InQuarantine
		await(t, "a leader that can be asked", func() bool { // the leadership may move when nodes go
			got, err = ask(memory.PutInQuarantine{Position: position})
			return memory.CodeOf(err) != memory.CodeUnavailable
		})
		if memory.CodeOf(err) != code {
			t.Errorf("%s: %+v, %v", position, got, err)
		}
	}
	req := memory.PutInQuarantine{Position: at, By: "ops", Reason: "it crashes", DryRun: true}
	var got memory.InQuarantine
	await(t, "a leader that can be asked", func() bool {
		got, err = ask(req)
		return memory.CodeOf(err) != memory.CodeUnavailable
	})
	if err != nil || got.Position != at || got.Type != "memory.captured" || tr.nodes[started].served[shard].replica.Poison() == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	req.DryRun = false
	await(t, "the quarantine", func() bool {
		got, err = ask(req)
		return err == nil
	})
	if got.Code != projections.CodeOperator || got.Next != "" {
		t.Errorf("%+v", got)
	}
	if again, err := ask(req); err != nil || !again.Already {
		t.Errorf("once more: %+v, %v", again, err)
	}
	for i := range tr.nodes {
		tr.writes(i, "after-"+tr.id(i), "and on it goes")
	}
	tr.same()
	for i, n := range tr.nodes {
		list, err := n.operator.Quarantine(ctx)
		if err != nil || len(list.Quarantined) != 1 || list.Quarantined[0].Position != at || list.Quarantined[0].By != "ops" || list.Quarantined[0].Reason != "it crashes" || list.Quarantined[0].At == nil {
			t.Errorf("node %d has %+v in quarantine, %v", i+1, list, err)
		}
		page, err := n.reads.Audit(ctx, memory.Access{Namespace: "default", As: "eve"}, memory.AuditRequest{Limit: 100})
		if err != nil || !slices.ContainsFunc(page.Rows, func(r memory.AuditRow) bool { return r.Type == "event.quarantined" && r.Agent == "ops" }) ||
			!slices.ContainsFunc(page.Rows, func(r memory.AuditRow) bool { return r.Position == at && r.Outcome == "quarantined" }) {
			t.Errorf("node %d audits %+v, %v", i+1, page.Rows, err)
		}
	}
	resp, err := tr.nodes[started].changes.Capture(ctx, "default", []memory.Capture{skull}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err != nil || resp.Results[0].Error == nil || resp.Results[0].Error.Code != memory.CodeConflict {
		t.Errorf("sent again it is %+v, %v", resp.Results, err)
	}
	await(t, "a rebuild", func() bool { // the log may have no leader for a moment
		_, err := tr.nodes[started].operator.Rebuild(ctx, func(_, _ uint64) {})
		return err == nil
	})
	tr.same()
}

// A node on its own did not start again once an event had stopped it.
func TestPoisonEventOfANodeOnItsOwn(t *testing.T) {
	cfg := quiet(t.TempDir())
	toEve(&cfg)
	n := open(t, cfg)
	kept := must(t, n, "a memory")
	eveSpeaks(t, n)
	shut(t, n)
	n = open(t, cfg)
	rec, err := n.reads.Get(t.Context(), memory.Access{Namespace: "default", As: "tester"}, kept.RecordID, 0)
	if err != nil || rec.RecordID != kept.RecordID {
		t.Errorf("%+v, %v", rec, err)
	}
	at := shardOf(t, n).StoppedAt
	if at == "" {
		t.Fatalf("%+v", shardOf(t, n))
	}
	shut(t, n) // it ends in good order while it waits
	n = open(t, cfg)
	var got memory.InQuarantine
	put := func(patience time.Duration) error {
		await(t, "the quarantine", func() bool { // right after the start nobody leads
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			got, err = n.operator.PutInQuarantine(ctx, memory.PutInQuarantine{Position: at})
			return memory.CodeOf(err) != memory.CodeUnavailable
		})
		return err
	}
	// As long as the log does not tell of it, a state that is lost meets the event again.
	s := n.served[shard0]
	if err := s.replica.WithoutWriter(t.Context(), func() error { return put(time.Second) }); memory.CodeOf(err) != memory.CodeOutcomeUnknown || !strings.Contains(memory.AsError(err).Hint, "ask again") {
		t.Errorf("nothing can be written, and the answer is %+v, %v", got, err)
	}
	if err := put(patience); err != nil || got.Position != at || got.By != "operator" {
		t.Fatalf("%+v, %v", got, err)
	}
	where, err := events.ParsePosition(at)
	if told, terr := (putAside{s, where}).tells(); err != nil || terr != nil || !told {
		t.Errorf("it was answered before the log tells of it: %v, %v", err, terr)
	}
	await(t, "writes", func() bool {
		_, err := capture(n, "and on it goes")
		return err == nil
	})
	rebuilt, err := n.operator.Rebuild(t.Context(), func(_, _ uint64) {})
	if err != nil || shardOf(t, n).StateHash != rebuilt.Shards[0].StateHash {
		t.Errorf("%+v, %v", rebuilt, err)
	}
	list, err := n.operator.Quarantine(t.Context())
	if err != nil || len(list.Quarantined) != 1 || time.Since(*list.Quarantined[0].At) > time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
}

// A node that was away while an event was put in quarantine, and comes back with a program
// that can apply that event, applies it and stops at the command. It did not start any more,
// since it waited to have what the others have before it looked at that.
func TestAwayNodeThatCanApplyTheEventInQuarantineStarts(t *testing.T) {
	t.Parallel()
	tr := trioOf(t, func(_ int, cfg *Config) { toEve(cfg) })
	tr.openAll()
	lead := tr.leader()
	tr.writes(lead, "before", "a memory of the harbour")
	tr.same()
	away, other := (lead+1)%3, (lead+2)%3
	n := tr.nodes[away]
	tr.nodes[away] = nil
	shut(t, n)
	eveSpeaks(t, tr.nodes[lead])
	at := ""
	await(t, "the others to stop", func() bool {
		for _, i := range []int{lead, other} {
			p := tr.nodes[i].served[0].replica.Poison()
			if p == nil {
				return false
			}
			at = p.At.String()
		}
		return true
	})
	await(t, "the quarantine", func() bool {
		_, err := tr.nodes[other].operator.PutInQuarantine(t.Context(), memory.PutInQuarantine{Position: at})
		return err == nil
	})
	tr.writes(lead, "after", "and on it goes")
	tr.cfgs[away].Parts.Group = nil // another program
	tr.open(away)
	if tr.nodes[away] == nil {
		t.FailNow()
	}
	await(t, "the same position", func() bool {
		return tr.nodes[away].served[0].state.Cursor().Seq >= tr.nodes[lead].served[0].state.Cursor().Seq
	})
	tr.same()
}
