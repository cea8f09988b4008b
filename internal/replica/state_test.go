package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mneme/internal/projections"
)

// listed is what lies in a shard's folder, but for what Raft keeps for ever.
func listed(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "snapshots" { // made empty where it is missing
			names = append(names, e.Name())
		}
	}
	return names
}

// founded is the folder of a replica that has written something and is closed.
func founded(t *testing.T, s *shelf) string {
	t.Helper()
	dir := t.TempDir()
	r := s.open(dir)
	r.lead()
	r.namespace("team")
	r.mustCapture("something")
	r.close()
	return dir
}

// A damaged state of a replica that is alone is built from the log, and what was
// there is kept.
func TestDamagedStateIsBuiltFromTheLog(t *testing.T) {
	s := newShelf(t)
	dir := founded(t, s)
	damage(t, dir)
	r := s.open(dir)
	if !slices.Contains(listed(t, dir), "state.damaged-1") {
		t.Error("the damaged state is not kept")
	}
	s.sameAsLog(r.State())
}

// TestStateKilledWhileItIsFilledHasNoOrigin: the next start took it for whole, and
// it never learnt which stream it was fed from.
func TestStateKilledWhileItIsFilledHasNoOrigin(t *testing.T) {
	s := newShelf(t)
	dir := founded(t, s)
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	state, err := projections.Open(projections.Options{Dir: filepath.Join(dir, "state"), Filling: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = replay(t.Context(), s.stream, s.keys, state, 2, nil)
	if err = errors.Join(err, state.Flush()); err != nil {
		t.Fatal(err)
	}
	// What was not flushed is lost with the process.
	_, err = replay(t.Context(), s.stream, s.keys, state, 3, nil)
	killed := t.TempDir()
	if err = errors.Join(err, os.CopyFS(killed, os.DirFS(dir)), state.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := projections.Open(projections.Options{Dir: filepath.Join(killed, "state")})
	if err != nil {
		t.Fatal(err)
	}
	if c := left.Cursor(); c.Seq != 2 {
		t.Errorf("killed at 3, flushed at 2: left at %d", c.Seq)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	r := s.open(killed)
	if c := r.State().Cursor(); c.Identity == "" || c.RaftIndex == 0 {
		t.Errorf("%+v", c)
	}
	s.sameAsLog(r.State())
}

func damage(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "state", "CURRENT"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A state behind the beginning of Raft's log makes a single voter begin that log
// anew, in a term above those of the event log's frames.
func TestStateBehindRaftsLog(t *testing.T) {
	s := newShelf(t)
	dir := founded(t, s)
	older := t.TempDir()
	if err := os.CopyFS(older, os.DirFS(filepath.Join(dir, "state"))); err != nil {
		t.Fatal(err)
	}
	r := s.open(dir)
	r.stage.term.Add(100)
	r.lead()
	r.mustCapture("which the older state does not know")
	if err := r.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	term := r.stage.Term()
	r.close()
	putBack(t, dir, older)
	r = s.open(dir)
	if _, err := os.Stat(filepath.Join(dir, "raft.db.damaged-1")); err != nil {
		t.Error(err)
	}
	if r.Group().Term() <= term {
		t.Errorf("term %d, the log has %d", r.Group().Term(), term)
	}
	r.lead()
	r.mustCapture("and on")
	s.sameAsLog(r.State())
}

// putBack puts an older state into a replica's folder, without the snapshots that
// would mend it.
func putBack(t testing.TB, dir, older string) {
	t.Helper()
	for _, name := range []string{"state", "snapshots"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "state"), os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
}

// TestOlderCopyOfANodeWroteInTermsOfThePast: a node whose state and Raft log are an
// older copy led in terms that the log had seen already, so every writer met frames
// of a later term and gave up, for as many elections as were missing.
func TestOlderCopyOfANodeWroteInTermsOfThePast(t *testing.T) {
	s, dir := newShelf(t), t.TempDir()
	r := s.open(dir)
	r.stage.term.Add(^uint64(0)) // the writer's term has to be Raft's
	r.lead()
	r.namespace("team")
	r.mustCapture("before the copy")
	at := r.State().Cursor()
	r.close()
	const later = 50
	if err := s.stream.Append(t.Context(), s.foreign(at, later), at.Seq); err != nil {
		t.Fatal(err)
	}
	r = s.open(dir)
	if term := r.stage.Group.Term(); term <= later {
		t.Errorf("the group is in term %d, the log has frames of %d", term, later)
	}
	r.lead()
	r.mustCapture("behind what the copy did not know")
	s.sameAsLog(r.State())
}

// A rebuilt state was compared outside the lock: what was applied between the
// comparison and the swap was lost.
func TestRebuildWhileTheReplicaApplies(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	r.lead()
	r.namespace("team")
	r.mustCapture("first")
	var steps atomic.Int32
	_, err := r.Rebuild(t.Context(), func(_, _ uint64) {
		if steps.Add(1) <= catchUps { // the state goes on while the sibling follows
			r.mustCapture("meanwhile")
		}
	})
	if err != nil || steps.Load() <= catchUps {
		t.Fatalf("%v after %d steps", err, steps.Load())
	}
	r.mustCapture("last")
	s.sameAsLog(r.State())
	// And at any other moment.
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.mustCapture("beside it")
			}
		}
	})
	for range 5 {
		if _, err := r.Rebuild(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	s.sameAsLog(r.State())
}

// A snapshot from the leader was followed by reading all vectors in Raft's
// goroutine: nothing was applied meanwhile.
func TestRestoreDoesNotWaitForVectors(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	r.lead()
	r.namespace("team")
	r.mustCapture("in the snapshot")
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	if _, err := r.machine.Checkpoint(checkpoint); err != nil {
		t.Fatal(err)
	}
	_, before := r.views.seen()
	loading, let := r.views.hold()
	if err := r.machine.Restore(checkpoint); err != nil {
		t.Fatal(err)
	}
	receive(t, "the load", loading)
	// Nobody has let it end, and commands are applied.
	r.mustCapture("one")
	r.mustCapture("two")
	if _, now := r.views.seen(); len(now) != len(before) {
		t.Fatalf("views that are behind were given %v", now[len(before):])
	}
	close(let)
	last := r.State().Cursor().Seq
	for {
		_, now := r.views.seen()
		if got := now[len(before):]; len(got) > 0 && got[len(got)-1] == last {
			if !slices.IsSorted(got) {
				t.Errorf("out of order: %v", got)
			}
			break
		}
	}
	r.mustCapture("three")
	if _, now := r.views.seen(); now[len(now)-1] != last+1 {
		t.Errorf("the views do not follow: %v", now)
	}
}

// A state that is replaced while the views are loaded is loaded once more, and
// what belongs to the one before is forgotten.
func TestViewsOfAStateThatIsReplacedAgain(t *testing.T) {
	k := newViewKeeper(s0().Logger)
	v := newRecorder()
	ctx, cancel := context.WithCancel(t.Context())
	if err := k.start(ctx, v); err != nil {
		t.Fatal(err)
	}
	loading, let := v.hold()
	done := make(chan struct{})
	go func() { k.run(ctx); close(done) }()
	at := func(seq uint64) *projections.Applied {
		return &projections.Applied{Cursor: projections.Cursor{Seq: seq}}
	}
	k.applied(at(1))
	k.stateReplaced()
	receive(t, "the first load", loading)
	k.applied(at(2))
	k.stateReplaced()
	k.applied(at(3))
	let <- struct{}{}
	receive(t, "the second load", loading)
	let <- struct{}{}
	for _, got := v.seen(); !slices.Equal(got, []uint64{1, 3}); _, got = v.seen() {
		if len(got) > 2 || len(got) == 2 && got[1] != 3 {
			t.Fatalf("%v", got)
		}
	}
	cancel()
	<-done
}

func s0() Options {
	var o Options
	o.setDefaults()
	return o
}
