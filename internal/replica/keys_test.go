package replica

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// slowKeys is a keyring that stands at an index, and moves when the test says so.
type slowKeys struct {
	index uint64
	asked chan uint64
	moved chan struct{}
}

func (k *slowKeys) AppliedIndex() (index, term uint64) { return k.index, 1 }

func (k *slowKeys) ChangedAt() uint64 { return k.index }

func (k *slowKeys) Wait(ctx context.Context, index uint64) error {
	k.asked <- index
	select {
	case <-k.moved:
		k.index = max(k.index, index)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// range1 is a command that applies one message of the log.
func range1(keys uint64) []byte {
	c := projections.Cursor{}
	r := projections.NewRange(&c)
	r.Keys, r.Frames = keys, []projections.RangeFrame{{Bytes: []byte("void")}}
	return r.Encode()
}

func keysMachine(t *testing.T, keys keysOrder) *machine {
	t.Helper()
	state, err := projections.Open(projections.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	if err := state.SetOrigin(0, 0, events.StreamRef{}); err != nil {
		t.Fatal(err)
	}
	m := newMachine(state, vfs.Default, func() {}, slog.New(slog.DiscardHandler))
	m.keys = keys
	return m
}

// A replica applied what the leader's keys had made before it had those keys itself:
// its readers found records under keys that are in no keyring, which is what a damaged
// one looks like.
func TestReplicaWaitsForTheKeysOfARange(t *testing.T) {
	keys := &slowKeys{index: 6, asked: make(chan uint64, 1), moved: make(chan struct{})}
	m := keysMachine(t, keys)
	done := make(chan error, 1)
	go func() {
		_, err := m.Apply([]raftfsm.Entry{{Index: 3, Term: 1, Data: range1(7)}})
		done <- err
	}()
	if need := receive(t, "question for the keys", keys.asked); need != 7 {
		t.Errorf("it waits for %d", need)
	}
	if at := m.state.Cursor(); at.Seq != 0 {
		t.Errorf("it was applied without: %+v", at)
	}
	close(keys.moved)
	if err := receive(t, "answer", done); err != nil || m.state.Cursor().Seq != 1 {
		t.Errorf("at %d: %v", m.state.Cursor().Seq, err)
	}
}

func TestReplicaThatWaitsForKeysCloses(t *testing.T) {
	keys := &slowKeys{index: 6, asked: make(chan uint64, 1)}
	m := keysMachine(t, keys)
	done := make(chan error, 1)
	go func() {
		_, err := m.Apply([]raftfsm.Entry{{Index: 3, Term: 1, Data: range1(7)}})
		done <- err
	}()
	receive(t, "question for the keys", keys.asked)
	close(m.closing)
	if err := receive(t, "answer", done); !errors.Is(err, context.Canceled) || storage.IsNoSpace(err) || m.state.Cursor().Seq != 0 {
		t.Errorf("at %d: %v", m.state.Cursor().Seq, err)
	}
}

// A snapshot of the state brought records whose keys the node did not have yet.
func TestSnapshotWaitsForItsKeys(t *testing.T) {
	from := keysMachine(t, &slowKeys{index: 7})
	if _, err := from.Apply([]raftfsm.Entry{{Index: 3, Term: 1, Data: range1(7)}}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if _, err := from.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	keys := &slowKeys{index: 6, asked: make(chan uint64, 1), moved: make(chan struct{})}
	m := keysMachine(t, keys)
	done := make(chan error, 1)
	go func() { done <- m.Restore(dir) }()
	if need := receive(t, "question for the keys", keys.asked); need != 7 || m.state.Cursor().Seq != 0 {
		t.Errorf("it waits for %d, at %d", need, m.state.Cursor().Seq)
	}
	close(keys.moved)
	if err := receive(t, "answer", done); err != nil || m.state.Cursor().Seq != 1 {
		t.Errorf("at %d: %v", m.state.Cursor().Seq, err)
	}
	// A node that is on its own by now has the keys that it has.
	if _, err := from.Checkpoint(dir + "2"); err != nil {
		t.Fatal(err)
	}
	alone := keysMachine(t, nil)
	if err := alone.Restore(dir + "2"); err != nil || alone.state.Cursor().Seq != 1 {
		t.Errorf("at %d: %v", alone.state.Cursor().Seq, err)
	}
	if _, err := alone.Checkpoint(dir + "3"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir+"3", keysName)); !os.IsNotExist(err) {
		t.Errorf("a node on its own names keys: %v", err)
	}
}

// A node on its own has the keys that its ranges name, or a backup's, whose indexes are
// others: it must not wait for them.
func TestReplicaThatIsAloneWaitsForNoKeys(t *testing.T) {
	for _, m := range []*machine{keysMachine(t, nil), keysMachine(t, &slowKeys{index: 7})} {
		if _, err := m.Apply([]raftfsm.Entry{{Index: 3, Term: 1, Data: range1(7)}}); err != nil || m.state.Cursor().Seq != 1 {
			t.Error(err)
		}
	}
	s := newShelf(t)
	r := s.open(t.TempDir())
	if r.machine.keys != nil {
		t.Error("a replica without peers waits for keys")
	}
}
