package raftmodel

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

var (
	seedFlag = flag.Uint64("model.seed", 0, "replay the run with this seed")
	runsFlag = flag.Int("model.runs", 60, "how many runs")
)

// list is a machine that keeps its commands in order. disk is what a loss of
// power leaves.
type list struct {
	State, disk listState
	fs          vfs.FS
	failAt      uint64
}

type listState struct {
	Index, Term uint64
	Items       []string
}

func (l *list) Apply(entries []raftfsm.Entry) ([]any, error) {
	out := make([]any, len(entries))
	for i, e := range entries {
		if e.Index <= l.State.Index {
			return nil, fmt.Errorf("entry %d at %d", e.Index, l.State.Index)
		}
		if e.Index == l.failAt {
			panic("boom")
		}
		l.State.Items = append(l.State.Items, string(e.Data))
		l.State.Index, l.State.Term = e.Index, e.Term
		out[i] = len(l.State.Items)
	}
	return out, nil
}

func (l *list) AppliedIndex() (uint64, uint64) { return l.State.Index, l.State.Term }

func (l *list) Flush() error {
	l.disk = l.State
	l.disk.Items = slices.Clone(l.State.Items)
	return nil
}

func (l *list) crash() *list {
	return &list{State: listState{l.disk.Index, l.disk.Term, slices.Clone(l.disk.Items)}, disk: l.disk, fs: l.fs}
}

func (l *list) Checkpoint(dir string) (uint64, error) {
	b, err := json.Marshal(l.State)
	return 0, errors.Join(err, storage.MkdirAll(l.fs, dir, 0o700), storage.ReplaceFile(l.fs, l.fs.PathJoin(dir, "list"), b, 0o600))
}

func (l *list) Restore(dir string) error {
	b, err := storage.ReadFile(l.fs, l.fs.PathJoin(dir, "list"))
	if err != nil {
		return err
	}
	l.State = listState{}
	err = json.Unmarshal(b, &l.State)
	return errors.Join(err, l.Flush())
}

func newModel(t testing.TB, seed uint64, n int, faults Faults) (*Model, []*list) {
	t.Helper()
	opt := Options{Seed: seed, Faults: faults}
	var lists []*list
	for range n {
		l := &list{fs: vfs.NewMem()}
		lists, opt.Machines, opt.Disks = append(lists, l), append(opt.Machines, l), append(opt.Disks, l.fs)
	}
	return New(opt), lists
}

func mustLead(t testing.TB, m *Model) *Replica {
	t.Helper()
	if err := m.Run(20_000, func() bool { return m.Leader() != nil }); err != nil {
		t.Fatal(err)
	}
	return m.Leader()
}

type class int

const (
	open class = iota
	done
	refused
	unknown
)

func classify(t testing.TB, f *raftfsm.Future) class {
	t.Helper()
	select {
	case <-f.Done():
	default:
		return open
	}
	_, _, err := f.Wait(context.Background())
	switch {
	case err == nil:
		return done
	case errors.Is(err, raftfsm.ErrUnknownOutcome):
		return unknown
	case errors.Is(err, raftfsm.ErrNotLeader), errors.Is(err, raftfsm.ErrRefused):
		return refused
	default:
		t.Fatal(err)
		return open
	}
}

type command struct {
	name   string
	future *raftfsm.Future
}

// storm drives a model with everything that may go wrong and returns the
// commands that were proposed.
func storm(t testing.TB, m *Model, lists []*list, rng *rand.Rand) []command {
	t.Helper()
	ctx := context.Background()
	var commands []command
	for i := range 1500 {
		r := m.Replica(rng.IntN(len(lists)))
		switch rng.IntN(60) {
		case 0, 1, 2, 3, 4, 5, 6, 7:
			name := fmt.Sprint("c", i)
			commands = append(commands, command{name, r.Propose(ctx, []byte(name))})
		case 8:
			if err := r.Snapshot(); err != nil && !r.down && !errors.Is(err, raftfsm.ErrNotCaughtUp) {
				t.Fatal(err)
			}
		case 9:
			m.Isolate(r.id)
		case 10, 11:
			m.Heal()
		case 12:
			r.StepDown()
		case 13:
			if !r.down && !slices.ContainsFunc(m.replicas, func(o *Replica) bool { return o.down }) {
				r.Crash()
			}
		case 14, 15, 16:
			restart(t, m, lists)
		case 17:
			lead := m.Leader()
			if lead == nil {
				continue
			}
			before := m.truth.last
			if index, err := lead.LinearizableIndex(ctx); err == nil && index < before {
				t.Fatalf("a linearizable read at %d, %d is committed", index, before)
			}
		default:
			if err := m.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return commands
}

// restart starts what crashed, and anew what has a disk that failed.
func restart(t testing.TB, m *Model, lists []*list) {
	t.Helper()
	for i, r := range m.replicas {
		if r.DiskFailed() && !r.down {
			r.Crash()
		}
		if r.down {
			lists[i] = lists[i].crash()
			if err := r.Restart(lists[i], lists[i].fs); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// settle ends all faults and lets every replica catch up.
func settle(t testing.TB, m *Model, lists []*list) {
	t.Helper()
	m.Heal()
	m.opt.Faults = Faults{}
	restart(t, m, lists)
	lead := mustLead(t, m)
	_ = lead.Propose(context.Background(), []byte("last"))
	if err := m.Run(100_000, func() bool {
		lead := m.Leader()
		if lead == nil {
			return false
		}
		for _, r := range m.replicas {
			if r.applied != lead.last() {
				return false
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens, replicas end alike, what was answered is there once, and what
// was refused is not.
func TestStormOnThree(t *testing.T) {
	var total [4]int
	installs := 0
	for run := range *runsFlag {
		seed := uint64(run) + 1
		if *seedFlag != 0 {
			seed = *seedFlag
		}
		t.Run(fmt.Sprint("model.seed=", seed), func(t *testing.T) {
			m, lists := newModel(t, seed, 3, Faults{Drop: 100, Duplicate: 100, Elections: 10, Disk: 2})
			commands := storm(t, m, lists, rand.New(rand.NewPCG(seed, 2)))
			settle(t, m, lists)
			installs += m.restores
			for _, l := range lists[1:] {
				if !reflect.DeepEqual(l.State, lists[0].State) {
					t.Fatalf("replicas differ:\n%+v\n%+v", lists[0].State, l.State)
				}
			}
			for _, c := range commands {
				n := 0
				for _, item := range lists[0].State.Items {
					if item == c.name {
						n++
					}
				}
				kind := classify(t, c.future)
				total[kind]++
				if n > 1 || (kind == done && n != 1) || (kind == refused && n != 0) || kind == open {
					t.Fatalf("%s, answered as %d, is there %d times", c.name, kind, n)
				}
			}
			oneLeaderATerm(t, m)
		})
	}
	t.Logf("%d done, %d refused, %d unknown, %d snapshots installed", total[done], total[refused], total[unknown], installs)
	if *seedFlag == 0 && (total[done] < 100 || total[unknown] < 20 || total[refused] < 100 || installs == 0) {
		t.Fatal("the storm does not bite")
	}
}

func oneLeaderATerm(t *testing.T, m *Model) {
	t.Helper()
	led := map[uint64]string{}
	for _, r := range m.replicas {
		var open uint64
		for len(r.leads) > 0 {
			switch l := <-r.leads; l.Kind {
			case raftfsm.TermBegan:
				if open != 0 || led[l.Term] != "" {
					t.Fatalf("%s: %+v while %d is open, led by %q", r.ID(), l, open, led[l.Term])
				}
				open, led[l.Term] = l.Term, l.LeaderID
			case raftfsm.TermEnded:
				if open != l.Term {
					t.Fatalf("%s: %+v while %d is open", r.ID(), l, open)
				}
				open = 0
			case raftfsm.LeaderKnown:
			}
		}
	}
	if len(led) == 0 {
		t.Fatal("no term began")
	}
}

// One voter that does not sync its entries: power may take what was answered, but
// what is left is a prefix, and no term comes twice.
func TestStormOnOne(t *testing.T) {
	lost := 0
	for run := range *runsFlag {
		seed := uint64(run) + 1
		m, lists := newModel(t, seed, 1, Faults{Elections: 5})
		commands := storm(t, m, lists, rand.New(rand.NewPCG(seed, 3)))
		settle(t, m, lists)
		at := 0
		for _, item := range lists[0].State.Items {
			i := slices.IndexFunc(commands[at:], func(c command) bool { return c.name == item })
			if i < 0 && item != "last" {
				t.Fatalf("seed %d: %s is there twice, or out of order", seed, item)
			}
			at += i + 1
		}
		for _, c := range commands {
			if classify(t, c.future) == done && !slices.Contains(lists[0].State.Items, c.name) {
				lost++
			}
		}
		oneLeaderATerm(t, m)
	}
	if lost == 0 {
		t.Fatal("power took nothing that was answered: the test does not bite")
	}
	t.Logf("%d answered commands were lost with the power", lost)
}

func TestSameSeedSameRun(t *testing.T) {
	trace := func() string {
		m, lists := newModel(t, 7, 3, Faults{Drop: 50, Duplicate: 50, Elections: 5})
		commands := storm(t, m, lists, rand.New(rand.NewPCG(7, 2)))
		out := fmt.Sprint(lists[0].State, lists[1].State, lists[2].State)
		for _, c := range commands {
			out += fmt.Sprint(classify(t, c.future))
		}
		return out
	}
	if trace() != trace() {
		t.Fatal("two runs of one seed differ")
	}
}

func TestDeposedLeaderAnswersUnknownAndDoesNotRead(t *testing.T) {
	m, _ := newModel(t, 3, 3, Faults{})
	ctx := context.Background()
	old := mustLead(t, m)
	if _, err := old.LinearizableIndex(ctx); err != nil {
		t.Fatal(err)
	}
	m.Isolate(old.id)
	f := old.Propose(ctx, []byte("lost"))
	if err := m.Run(20_000, func() bool { return m.Leader() != old && m.Leader() != nil }); err != nil {
		t.Fatal(err)
	}
	if old.role != leader || classify(t, f) != open {
		t.Fatal("the old leader was told")
	}
	if _, err := old.LinearizableIndex(ctx); !errors.Is(err, raftfsm.ErrNotLeader) {
		t.Fatalf("a deposed leader reads: %v", err)
	}
	m.Heal()
	if err := m.Run(20_000, func() bool { return classify(t, f) != open }); err != nil {
		t.Fatal(err)
	}
	if classify(t, f) != unknown {
		t.Fatalf("class %d", classify(t, f))
	}
}

// lagging is a group of which one replica lacks what the leader has cut from its
// log.
func lagging(t *testing.T) (m *Model, lists []*list, lead, late *Replica) {
	t.Helper()
	m, lists = newModel(t, 4, 3, Faults{})
	lead = mustLead(t, m)
	late = m.Replica((lead.id + 1) % 3)
	m.Isolate(late.id)
	var f *raftfsm.Future
	for i := range 5 {
		f = lead.Propose(context.Background(), []byte(fmt.Sprint("c", i)))
	}
	if err := m.Run(20_000, func() bool { return classify(t, f) == done }); err != nil {
		t.Fatal(err)
	}
	if err := lead.Snapshot(); err != nil {
		t.Fatal(err)
	}
	return m, lists, lead, late
}

func TestLaggingReplicaGetsTheSnapshot(t *testing.T) {
	m, lists, lead, late := lagging(t)
	m.Heal()
	if err := m.Run(20_000, func() bool { return late.applied == lead.last() && lead.match[late.id] == lead.last() }); err != nil {
		t.Fatal(err)
	}
	if m.restores != 1 || !reflect.DeepEqual(lists[late.id].State, lists[lead.id].State) {
		t.Fatalf("%d restores: %+v, want %+v", m.restores, lists[late.id].State, lists[lead.id].State)
	}
}

// The answer to a snapshot carries the term, as every answer does: a leader that
// others have deposed, and that sends nothing else, would never learn of it.
func TestAnswerToASnapshotDeposesALeaderOfThePast(t *testing.T) {
	m, lists, old, late := lagging(t)
	before := lists[late.id].State
	m.Heal()
	m.Isolate(old.id)
	m.network = nil
	late.Elect()
	m.Heal()
	m.network = nil
	old.sendState(late.id)
	late.receive(m.network[0])
	if old.role != leader || len(m.network) != 2 || !reflect.DeepEqual(lists[late.id].State, before) {
		t.Fatalf("%d messages, state %+v", len(m.network), lists[late.id].State)
	}
	old.receive(m.network[1])
	if old.role != follower || old.term != late.term {
		t.Fatalf("role %d, term %d, want %d", old.role, old.term, late.term)
	}
}

// A snapshot may come late: the replica has more by then, and says so.
func TestLateSnapshotChangesNothing(t *testing.T) {
	m, lists, lead, late := lagging(t)
	m.Heal()
	lead.sendState(late.id)
	snap := m.network[len(m.network)-1]
	f := lead.Propose(context.Background(), []byte("more"))
	if err := m.Run(20_000, func() bool { return classify(t, f) == done && late.applied == lead.last() }); err != nil {
		t.Fatal(err)
	}
	want := late.applied
	m.network = nil
	late.receive(snap)
	if answer := m.network[0]; !answer.ok || answer.index != want || !reflect.DeepEqual(lists[late.id].State, lists[lead.id].State) {
		t.Fatalf("answer %+v, state %+v, want %d, %+v", answer, lists[late.id].State, want, lists[lead.id].State)
	}
}

func TestPanicHaltsOneReplica(t *testing.T) {
	m, lists := newModel(t, 5, 3, Faults{})
	ctx := context.Background()
	lead := mustLead(t, m)
	broken := (lead.id + 1) % 3
	lists[broken].failAt = lead.last() + 1
	f := lead.Propose(ctx, []byte("a"))
	if err := m.Run(20_000, func() bool { return m.Replica(broken).Halted() != nil && classify(t, f) == done }); err != nil {
		t.Fatal(err)
	}
	var halt *raftfsm.HaltError
	if err := m.Replica(broken).Halted(); !errors.As(err, &halt) || halt.Index != lists[broken].failAt || lead.Halted() != nil {
		t.Fatalf("%v, leader %v", err, lead.Halted())
	}
}

// The checks themselves: each broken rule is noticed.
func TestChecksNotice(t *testing.T) {
	for name, breakIt := range map[string]func(*Model){
		"two leaders": func(m *Model) {
			for _, r := range m.replicas {
				r.term, r.role = 9, candidate
				m.truth.elected(r)
			}
		},
		"another past": func(m *Model) {
			m.replicas[0].add(entry{index: 1, term: 1, data: []byte("a")})
			m.replicas[0].add(entry{index: 2, term: 2})
			m.replicas[1].add(entry{index: 1, term: 1, marker: true})
			m.replicas[1].add(entry{index: 2, term: 2})
		},
		"two commits": func(m *Model) {
			for i, data := range []string{"a", "b"} {
				m.replicas[i].add(entry{index: 1, term: uint64(i + 1), data: []byte(data)})
				m.replicas[i].commitTo(1)
			}
		},
		"a leader that lacks": func(m *Model) { elects(m, 2, 1) },
	} {
		m, _ := newModel(t, 1, 3, Faults{})
		breakIt(m)
		if m.truth.err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// elects has replica 1 elected for a term without the entry that replica 0 has committed
// in another one.
func elects(m *Model, term, committed uint64) {
	first, other := m.replicas[0], m.replicas[1]
	first.term, other.term = committed, term
	first.add(entry{index: 1, term: committed})
	first.commitTo(1)
	m.truth.elected(other)
}

// A vote that arrives late makes a leader of a term that is over: others have committed
// in a later one what it lacks. It can commit nothing, and no rule is broken. (A run of
// the simulation failed for it.)
func TestALateVoteMakesALeaderOfAFormerTerm(t *testing.T) {
	m, _ := newModel(t, 1, 3, Faults{})
	if elects(m, 2, 3); m.truth.err != nil {
		t.Error(m.truth.err)
	}
}

// A single voter began its log anew, could not write the term, and used terms again after
// the next start. It does not start then.
func TestALogBegunAnewHasItsTermOrDoesNotStart(t *testing.T) {
	m, lists := newModel(t, 3, 1, Faults{})
	r := mustLead(t, m)
	f := r.Propose(context.Background(), []byte("c"))
	if err := m.Run(20_000, func() bool { return classify(t, f) == done }); err != nil {
		t.Fatal(err)
	}
	if err := lists[0].Flush(); err != nil { // the state is ahead of Raft's log, which does not sync
		t.Fatal(err)
	}
	used := r.Term()
	r.Crash()
	lists[0] = lists[0].crash()
	m.SetFaults(Faults{Disk: 1000})
	if err := r.Restart(lists[0], lists[0].fs); !errors.Is(err, raftfsm.ErrStorage) {
		t.Fatalf("started on a disk that fails: %v", err)
	}
	m.SetFaults(Faults{})
	for range 2 {
		if err := r.Restart(lists[0], lists[0].fs); err != nil {
			t.Fatal(err)
		}
		if mustLead(t, m); r.Term() <= used {
			t.Fatalf("led term %d, then term %d", used, r.Term())
		}
		used = r.Term()
		r.Crash()
		lists[0] = lists[0].crash()
	}
}
