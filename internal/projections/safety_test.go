package projections_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestHashSeesEveryFact changes one fact at a time and looks at the hash.
func TestHashSeesEveryFact(t *testing.T) {
	h := newHistory(t, 6, 120)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, h.keys, s, h.log, 10)
	view(t, s, func(v *projections.View) {
		kinds := map[byte]int{}
		must(t, projections.FactRows(v, func(_ events.ID, key, value []byte) {
			kinds[key[0]]++
			was := projections.FactHash(key, value)
			for i := range key {
				other := bytes.Clone(key)
				other[i] ^= 1
				if projections.FactHash(other, value) == was {
					t.Fatalf("key %x: byte %d does not count", key, i)
				}
			}
			for i := range value {
				other := bytes.Clone(value)
				other[i] ^= 1
				if projections.FactHash(key, other) == was {
					t.Fatalf("row %x: byte %d does not count", key, i)
				}
			}
		}))
		for _, prefix := range []byte{0x10, 0x12, 0x16, 0x20, 0x21, 0x23, 0x24, 0x25, 0x31, 0x42, 0x50, 0x60} {
			if kinds[prefix] == 0 {
				t.Errorf("no fact under %#x", prefix)
			}
		}
	})
}

// TestHashSeesEveryEvent: a log in which one event differs has another hash;
// control events make no difference.
func TestHashSeesEveryEvent(t *testing.T) {
	type change struct {
		name string
		do   func(w *world, ns events.ID, h *events.Header, c *events.Content)
	}
	hash := func(ch change) projections.StateHash {
		w := newWorld(t, 9)
		ns := w.created("team", builtinSpace)
		w.frame(ns)
		h, c := events.Header{Namespace: ns.Namespace, Agent: "ann", OccurredAt: 5}, events.Content{Text: "deploy on tuesday", Tags: []string{"ops"},
			URI: "mem://team/a", Conversation: "c", ClientID: "k", OccurredSet: true}
		if ch.do != nil {
			ch.do(w, ns.Namespace, &h, &c)
		}
		w.frame(w.content(h, c))
		s := openState(t, t.TempDir())
		defer s.Close()
		fold(t, w.keys, s, w.log, 10)
		var out projections.StateHash
		view(t, s, func(v *projections.View) { out = v.Hash() })
		return out
	}
	was := hash(change{})
	seen := map[projections.StateHash]string{was: "nothing"}
	for _, ch := range []change{
		{"text", func(_ *world, _ events.ID, _ *events.Header, c *events.Content) { c.Text += " at noon" }},
		{"tag", func(_ *world, _ events.ID, _ *events.Header, c *events.Content) { c.Tags = []string{"dev"} }},
		{"uri", func(_ *world, _ events.ID, _ *events.Header, c *events.Content) { c.URI = "mem://team/b" }},
		{"conversation", func(_ *world, _ events.ID, _ *events.Header, c *events.Content) { c.Conversation = "d" }},
		{"client id", func(_ *world, _ events.ID, _ *events.Header, c *events.Content) { c.ClientID = "l" }},
		{"agent", func(_ *world, _ events.ID, h *events.Header, _ *events.Content) { h.Agent = "bob" }},
		{"scope", func(_ *world, _ events.ID, h *events.Header, _ *events.Content) { h.Scope = events.ScopeAgent }},
		{"kind", func(_ *world, _ events.ID, h *events.Header, _ *events.Content) { h.Kind = 2 }},
		{"time", func(_ *world, _ events.ID, h *events.Header, _ *events.Content) { h.OccurredAt++ }},
		{"one event more", func(w *world, ns events.ID, _ *events.Header, _ *events.Content) {
			now, ids := w.now, w.ids
			w.frame(w.changed(ns, nil))
			w.now, w.ids = now, ids
		}},
	} {
		got := hash(ch)
		if other, ok := seen[got]; ok {
			t.Errorf("another %s has the hash of %s", ch.name, other)
		}
		seen[got] = ch.name
	}

	w := newWorld(t, 9)
	w.frame(w.created("team", builtinSpace))
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	before := hashOf(t, s)
	w.term++
	w.frame(w.began())
	w.message([]byte("void"))
	w.epoch++
	w.frame(w.seal(events.Header{Type: events.TypeEpochBegan}, nil, nil))
	fold(t, w.keys, s, w.log, 1)
	if hashOf(t, s) != before {
		t.Error("control events are facts")
	}
}

func hashOf(t testing.TB, s *projections.State) (h projections.StateHash) {
	view(t, s, func(v *projections.View) { h = v.Hash() })
	return h
}

// TestCrash cuts the power at random moments: what is left is the state at an
// earlier cursor, and going on from there leads to the same state.
func TestCrash(t *testing.T) {
	eachSeed(t, 100, func(t *testing.T, h *history, rnd *rand.Rand) {
		ref := openState(t, t.TempDir())
		fold(t, h.keys, ref, h.log, 10)
		want := dump(t, ref)
		must(t, ref.Close())
		lost := 0
		for range 4 {
			dir, flushed := t.TempDir(), uint64(0)
			mem := vfs.NewCrashableMem()
			syncedDirs(t, mem, dir)
			s := openOn(t, mem, dir)
			for s.Cursor().Seq < h.seq() && rnd.IntN(30) != 0 {
				fold(t, h.keys, s, h.log[:s.Cursor().Seq+1], 1)
				if rnd.IntN(10) == 0 {
					must(t, s.Flush())
					flushed = s.Cursor().Seq
				}
			}
			had := s.Cursor()
			left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
			must(t, s.Close())
			s = openOn(t, left, dir)
			got := s.Cursor()
			if got.Seq > had.Seq {
				t.Fatalf("the crash brought it from %d to %d", had.Seq, got.Seq)
			}
			if got.Seq < flushed {
				t.Fatalf("the crash brought it to %d, Flush had promised %d", got.Seq, flushed)
			}
			lost += int(had.Seq - got.Seq)
			view(t, s, func(v *projections.View) { checkFacts(t, v) })
			fold(t, h.keys, s, h.log, 7)
			if d := dump(t, s); d != want {
				t.Errorf("after a crash at %d, reopened at %d: %s", had.Seq, got.Seq, firstDifference(d, want))
			}
			must(t, s.Close())
		}
		if lost == 0 && *oneSeed == 0 {
			t.Error("no crash lost anything: it did not bite")
		}
	})
}

func openOn(t testing.TB, fs vfs.FS, dir string) *projections.State {
	t.Helper()
	s, err := projections.Open(projections.Options{Dir: dir, FS: fs, CacheBytes: 64 << 20, ReserveBytes: -1})
	must(t, err)
	return s
}

// syncedDirs makes dir in fs so that a crash keeps it.
func syncedDirs(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	must(t, fs.MkdirAll(dir, 0o700))
	for d := dir; ; d = fs.PathDir(d) {
		f, err := fs.OpenDir(d)
		must(t, err)
		must(t, errors.Join(f.Sync(), f.Close()))
		if d == fs.PathDir(d) {
			return
		}
	}
}

// TestReadersWhileApplying: views are consistent while the state moves and is
// swapped, and what a view reads stays until it is closed.
func TestReadersWhileApplying(t *testing.T) {
	h := newHistory(t, 8, 150)
	dir := t.TempDir()
	s := openState(t, dir)
	fold(t, h.keys, s, h.log[:2], 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for last := uint64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				v := s.View()
				c := v.Cursor()
				if c.Seq < last {
					t.Errorf("the state went back from %d to %d", last, c.Seq)
				}
				last = c.Seq
				checkFacts(t, v)
				if f, err := v.Frame(c.Seq); err != nil || !bytes.Equal(f, h.log[c.Seq-1]) {
					t.Errorf("frame %d is not there: %v", c.Seq, err)
				}
				if f, err := v.Frame(c.Seq + 1); err != nil || f != nil {
					t.Errorf("frame %d is there too soon: %v", c.Seq+1, err)
				}
				checkLive(t, v)
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for s.Cursor().Seq < h.seq() {
		moved := s.Moved()
		fold(t, h.keys, s, h.log[:s.Cursor().Seq+1], 1)
		select {
		case <-moved:
		default:
			t.Fatal("nobody is told that the state moved")
		}
		if s.Cursor().Seq%20 == 0 {
			beside, err := s.Sibling()
			must(t, err)
			fold(t, h.keys, beside, h.log[:s.Cursor().Seq], 50)
			must(t, s.Swap(beside))
		}
	}
	close(stop)
	wg.Wait()
	if err := s.Fault(); err != nil {
		t.Error(err)
	}
	if n := generations(t, dir); n != 1 {
		t.Errorf("%d generations are left", n)
	}
	must(t, s.Close())
}

// TestViewBeforePublish: a view that is opened between a commit and its
// publication shows the position before as a whole. It once took a forgotten
// document for alive.
func TestViewBeforePublish(t *testing.T) {
	w := newWorld(t, 1)
	ns := w.created("team", embed.Space{})
	h := events.Header{Namespace: ns.Namespace, Agent: "ann", Scope: events.ScopeTeam}
	one, two, three := w.content(h, events.Content{Text: "x"}), w.content(h, events.Content{Text: "y"}), w.content(h, events.Content{Text: "z"})
	w.frame(ns, one, two, three)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	forget, revise, private := h, h, h
	forget.Target, revise.Target, private.Scope = one.Record, two.Record, events.ScopeAgent
	revise.Type, revise.BaseVersion = events.TypeRevised, 1
	w.frame(w.forgotten(forget), w.content(revise, events.Content{Text: "y2"}), w.content(private, events.Content{Text: "mine"}))
	projections.BetweenCommitAndPublish(s, func() { fold(t, w.keys, s, w.log, 1) }, func() {
		view(t, s, func(v *projections.View) {
			checkLive(t, v)
			team, _ := v.PartitionByID(0)
			if _, ok := v.PartitionByID(1); ok || v.Cursor().Seq != 1 || v.LiveCount(team) != 3 {
				t.Errorf("at %d, %d documents live", v.Cursor().Seq, v.LiveCount(team))
			}
			if at, err := v.Frame(2); at != nil || err != nil {
				t.Error("a row of the next position is there", err)
			}
		})
	})
	view(t, s, func(v *projections.View) {
		checkLive(t, v)
		team, _ := v.PartitionByID(0)
		mine, _ := v.PartitionByID(1)
		if v.LiveCount(team) != 2 || v.LiveCount(mine) != 1 {
			t.Errorf("%d living documents, want 2, and %d, want 1", v.LiveCount(team), v.LiveCount(mine))
		}
	})
}

// checkLive: a view's live sets say what its rows say, whatever was committed
// since the view was opened.
func checkLive(t testing.TB, v *projections.View) {
	for id := range v.Cursor().Partitions {
		p, ok := v.PartitionByID(id)
		if !ok {
			continue
		}
		live := v.Live(p)
		if live.Contains(p.NextDoc) {
			t.Error("a document of the future lives")
		}
		if err := v.Docs(id, p.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
			if d.Living() != live.Contains(doc) {
				t.Errorf("document %d: the row says living %v, the live set %v", doc, d.Living(), !d.Living())
			}
			return true, nil
		}); err != nil {
			t.Error(err)
		}
	}
}

func generations(t testing.TB, dir string) int {
	all, err := filepath.Glob(filepath.Join(dir, "gen-*"))
	must(t, err)
	return len(all)
}

// TestOldGenerationLivesWhileRead: a view keeps its generation's files until
// it is closed, through restore and rebuild.
func TestOldGenerationLivesWhileRead(t *testing.T) {
	h := newHistory(t, 2, 60)
	dir := t.TempDir()
	s := openState(t, dir)
	defer func() { must(t, s.Close()) }()
	fold(t, h.keys, s, h.log[:5], 2)
	old, again := s.View(), s.View()
	want := old.Hash()
	beside, err := s.Sibling()
	must(t, err)
	fold(t, h.keys, beside, h.log, 9)
	must(t, s.Swap(beside))
	if generations(t, dir) != 2 || s.Cursor().Seq != h.seq() || old.Cursor().Seq != 5 {
		t.Errorf("%d generations, state at %d, view at %d", generations(t, dir), s.Cursor().Seq, old.Cursor().Seq)
	}
	must(t, again.Close())
	if f, err := old.Frame(5); err != nil || old.Hash() != want || !bytes.Equal(f, h.log[4]) {
		t.Error("an old view changed", err)
	}
	must(t, old.Close())
	if generations(t, dir) != 1 {
		t.Errorf("%d generations are left", generations(t, dir))
	}
}

// TestOnApply: what is announced is what was done.
func TestOnApply(t *testing.T) {
	h := newHistory(t, 3, 200)
	h.message([]byte("void"))
	var heard []projections.Applied
	s, err := projections.Open(projections.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, ReserveBytes: -1,
		OnApply: func(a *projections.Applied) { heard = append(heard, *a) }})
	must(t, err)
	defer s.Close()
	results := fold(t, h.keys, s, h.log, 3)
	var voids, docs, deaths, quarantined, vectors int
	var evs []projections.AppliedEvent
	for _, a := range heard {
		voids, docs, deaths = voids+len(a.Voids), docs+len(a.Docs), deaths+len(a.Deaths)
		quarantined, vectors = quarantined+a.Quarantined, vectors+len(a.Vectors)
		evs = append(evs, a.Events...)
	}
	if heard[len(heard)-1].Cursor != s.Cursor() || len(evs) != len(results) || voids == 0 || vectors == 0 {
		t.Errorf("%d events, want %d; %d voids, %d vectors", len(evs), len(results), voids, vectors)
	}
	want := map[projections.Outcome]int{}
	for i, r := range results {
		if i < len(evs) && (evs[i].Row.Outcome != r.Outcome || evs[i].Version != r.Version) {
			t.Errorf("event %d announced as %+v, it was %+v", i, evs[i], r)
		}
		want[r.Outcome]++
	}
	revised, forgotten := want[projections.OutcomeRevised], want[projections.OutcomeForgotten]
	if docs != want[projections.OutcomeCreated]+revised || deaths != revised+forgotten || quarantined != want[projections.OutcomeQuarantined] {
		t.Errorf("%d docs, %d deaths, %d quarantined, outcomes %v", docs, deaths, quarantined, want)
	}
}

func TestRefusedCommands(t *testing.T) {
	w := newWorld(t, 1)
	ns := w.created("team", builtinSpace)
	w.frame(ns)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	before := dump(t, s)
	newer, unknown := w.header(), w.header()
	newer.Feature, newer.Events = events.FeatureLevel+1, [][]byte{{1}}
	strange := w.seal(events.Header{Type: 999}, nil, nil)
	unknown.Events = [][]byte{strange.Encode()}
	version, early := w.header(), w.header()
	version.Events, early.Events = [][]byte{{3, 0, 0}}, [][]byte{{1, 0, 0}}
	counted := w.header()
	began := w.began()
	counted.Events = [][]byte{began.Encode()}
	for name, c := range map[string]struct {
		frame events.Frame
		n     int
		want  error
	}{"newer feature": {newer, 0, events.ErrNewer}, "unknown type": {unknown, 1, events.ErrNewer}, "newer envelope": {version, 1, events.ErrNewer},
		"early envelope":   {early, 1, events.ErrOlder},
		"no contributions": {counted, 0, events.ErrMalformed}} {
		cur := s.Cursor()
		r := projections.NewRange(&cur)
		r.Frames = []projections.RangeFrame{{Bytes: c.frame.Encode(), Contributions: make([]*projections.Contribution, c.n)}}
		if _, err := s.ApplyLocal(r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, err := s.Apply([]projections.Command{{Index: 9, Data: r.Encode()}}); !errors.Is(err, c.want) {
			t.Errorf("%s as a command: %v, want %v", name, err, c.want)
		}
	}
	if _, err := s.Apply([]projections.Command{{Index: 9, Data: []byte{77}}}); !errors.Is(err, events.ErrNewer) {
		t.Error(err)
	}
	if d := dump(t, s); d != before {
		t.Error("a refused command changed the state: " + firstDifference(d, before))
	}
	view(t, s, func(v *projections.View) {
		if _, _, err := v.Envelope(projections.Ref{Seq: 99}); !errors.Is(err, events.ErrMalformed) {
			t.Error(err)
		}
	})
}

func TestOpenRefusals(t *testing.T) {
	if _, err := projections.Open(projections.Options{Dir: t.TempDir(), ReadOnly: true}); !errors.Is(err, storage.ErrNoDatabase) {
		t.Error(err)
	}
	damaged := t.TempDir()
	must(t, os.WriteFile(filepath.Join(damaged, "CURRENT"), []byte("../elsewhere\n"), 0o600))
	if _, err := projections.Open(projections.Options{Dir: damaged}); !errors.Is(err, storage.ErrDamaged) {
		t.Error(err)
	}
	dir := t.TempDir()
	w := newWorld(t, 1)
	w.frame(w.created("team", builtinSpace))
	s := openState(t, dir)
	fold(t, w.keys, s, w.log, 1)
	if _, err := projections.Open(projections.Options{Dir: dir}); !errors.Is(err, storage.ErrInUse) {
		t.Error(err)
	}
	if err := s.Restore(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing checkpoint was restored")
	}
	want := dump(t, s)
	must(t, s.Close())
	must(t, os.MkdirAll(filepath.Join(dir, "gen-999999"), 0o700)) // of a rebuild that was cut short
	r, err := projections.Open(projections.Options{Dir: dir, ReadOnly: true, CacheBytes: 1 << 20})
	must(t, err)
	if dump(t, r) != want || generations(t, dir) != 2 {
		t.Error("a read-only state differs, or tidied up")
	}
	must(t, r.Close())
	s = openState(t, dir)
	if generations(t, dir) != 1 {
		t.Error("the rest of a rebuild is still there")
	}
	must(t, s.Close())
}

// TestRecordUnderRevisionIsInOneView: a view that was opened before a revision
// still has the old version alive. Its live set once was the newest one, so that a
// search between the two found neither version.
func TestRecordUnderRevisionIsInOneView(t *testing.T) {
	w := newWorld(t, 1)
	ns := w.created("team", embed.Space{})
	h := events.Header{Namespace: ns.Namespace, Agent: "ann", Scope: events.ScopeTeam}
	one := w.content(h, events.Content{Text: "x"})
	w.frame(ns, one)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, w.keys, s, w.log, 1)
	before := s.View()
	defer before.Close()
	revise := h
	revise.Type, revise.Target, revise.BaseVersion = events.TypeRevised, one.Record, 1
	w.frame(w.content(revise, events.Content{Text: "y"}))
	fold(t, w.keys, s, w.log, 1)
	checkLive(t, before)
	view(t, s, func(v *projections.View) { checkLive(t, v) })
	part, ok := before.PartitionByID(0)
	if !ok || !before.Live(part).Contains(0) || before.LiveCount(part) != 1 {
		t.Error("the version that the view has is dead in it")
	}
}
