package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// powerNote is what a client knows of one memory that it sent.
type powerNote struct {
	namespace string
	sent      memory.Capture
	told      memory.CaptureResult // zero while there was no answer
	text      string               // of the newest version that was acknowledged
	maybe     string               // of a revision without answer
	version   int
	applied   bool // so that it can be revised and forgotten
	forgotten bool
	forget    bool // a forget has no answer
}

// spaceFate is what a client knows of a namespace.
type spaceFate struct{ there, making, deleting bool }

// powerLedger is what a client was promised, and what it does not know.
type powerLedger struct {
	notes  map[string]powerNote // by the client's id
	spaces map[string]spaceFate
}

// ledgerBook keeps the present ledger apart from the one of the last cut.
type ledgerBook struct {
	mu  sync.Mutex
	now powerLedger
}

func newLedgerBook() *ledgerBook {
	return &ledgerBook{now: powerLedger{notes: map[string]powerNote{}, spaces: map[string]spaceFate{"default": {there: true}}}}
}

func (b *ledgerBook) copy() powerLedger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copyLocked()
}

func (b *ledgerBook) copyLocked() powerLedger {
	return powerLedger{maps.Clone(b.now.notes), maps.Clone(b.now.spaces)}
}

func (b *ledgerBook) note(id string, change func(n *powerNote)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.now.notes[id]
	change(&n)
	b.now.notes[id] = n
}

func (b *ledgerBook) space(name string, f spaceFate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.spaces[name] = f; f == (spaceFate{}) {
		maps.DeleteFunc(b.now.notes, func(_ string, n powerNote) bool { return n.namespace == name })
	}
}

const powerAgent = "tester"

// inSpace reads what the log holds: a write without answer may be in it, and
// must not be applied between two reads of a test that has settled it.
func inSpace(name string) memory.Access {
	return memory.Access{Namespace: name, As: powerAgent, Consistency: memory.ConsistencyLinearizable}
}

// settle finds out on a running node what had no answer, and checks everything
// that had one. Afterwards the ledger leaves nothing open.
func (l *powerLedger) settle(t *testing.T, n *Node) {
	t.Helper()
	if err := n.served[0].replica.Linear(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := n.reads.Namespaces(t.Context(), memory.NamespacesRequest{Limit: memory.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range l.spaces {
		there := slices.ContainsFunc(list.Namespaces, func(ns memory.Namespace) bool { return ns.Name == name })
		if there != f.there && !f.making && !f.deleting {
			t.Errorf("namespace %s: there %v, want %v", name, there, f.there)
		}
		l.spaces[name] = spaceFate{there: there}
		if !there {
			maps.DeleteFunc(l.notes, func(_ string, n powerNote) bool { return n.namespace == name })
		}
	}
	if len(list.Namespaces) > len(l.spaces) {
		t.Errorf("%d namespaces, of which %d were asked for", len(list.Namespaces), len(l.spaces))
	}
	for _, id := range slices.Sorted(maps.Keys(l.notes)) {
		note := l.notes[id]
		note.resend(t, n)
		note.resolve(t, n)
		l.notes[id] = note
	}
	for name, f := range l.spaces {
		if f.there {
			l.checkList(t, n, name)
		}
	}
}

// resend sends the capture once more under its id: the answer is the first one,
// or the first if there was none.
func (p *powerNote) resend(t *testing.T, n *Node) {
	t.Helper()
	r, err := n.writes.Capture(t.Context(), p.namespace, []memory.Capture{p.sent}, api.CaptureOptions{}, memory.WaitApplied)
	if err != nil || r.Results[0].Error != nil {
		t.Fatalf("%s sent again: %v %+v", p.sent.ID, err, r.Results)
	}
	got := r.Results[0]
	p.applied = true
	if p.told.RecordID == "" {
		p.told, p.text, p.version = got, p.sent.Text, 1
		return
	}
	if got.Status != memory.StatusDuplicate || got.RecordID != p.told.RecordID || got.Position != p.told.Position {
		t.Errorf("%s sent again: %+v, the first answer was %+v", p.sent.ID, got, p.told)
	}
}

// resolve reads the record and compares it with what was promised.
func (p *powerNote) resolve(t *testing.T, n *Node) {
	t.Helper()
	got, err := n.reads.Get(t.Context(), inSpace(p.namespace), p.told.RecordID, 0)
	if memory.CodeOf(err) == memory.CodeNotFound && (p.forgotten || p.forget) {
		p.forgotten, p.forget = true, false
		return
	}
	if err != nil || p.forgotten {
		t.Fatalf("%s: %v; forgotten %v", p.sent.ID, err, p.forgotten)
	}
	p.forget = false
	if p.maybe != "" && got.Text == p.maybe {
		p.text, p.version = p.maybe, p.version+1
	}
	p.maybe = ""
	if got.Text != p.text || got.Version != p.version || got.Subject != p.sent.Subject || !strings.HasSuffix(got.URI, p.sent.URI) {
		t.Errorf("%s: %+v, want version %d, %q", p.sent.ID, got, p.version, p.text)
	}
	first, err := n.reads.Get(t.Context(), inSpace(p.namespace), p.told.RecordID, 1)
	if err != nil || first.ID != p.sent.ID || first.Text != p.sent.Text || first.Position != p.told.Position {
		t.Errorf("%s, version 1: %+v, %v; want %q at %s", p.sent.ID, first, err, p.sent.Text, p.told.Position)
	}
}

// checkList compares all that a namespace shows, and a search in it, with the
// ledger.
func (l *powerLedger) checkList(t *testing.T, n *Node, namespace string) {
	t.Helper()
	left := make(map[string]powerNote) // by record
	for _, note := range l.notes {
		if note.namespace == namespace && !note.forgotten {
			left[note.told.RecordID] = note
		}
	}
	want := len(left)
	req := memory.ListRequest{Limit: 100}
	for {
		page, err := n.reads.List(t.Context(), inSpace(namespace), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if _, ok := left[r.RecordID]; !ok {
				t.Errorf("%s lists %s, which nobody asked for, or a second time: %q", namespace, r.RecordID, r.Text)
			}
			delete(left, r.RecordID)
		}
		if req.Cursor = page.Cursor; req.Cursor == "" {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("%s does not list %d of %d", namespace, len(left), want)
	}
	for id, note := range l.notes {
		if note.namespace != namespace || note.forgotten {
			continue
		}
		r, err := n.reads.Search(t.Context(), inSpace(namespace), memory.SearchRequest{Query: note.text})
		if err != nil || !slices.ContainsFunc(r.Results, func(h memory.Hit) bool { return h.ID == note.told.RecordID }) {
			t.Errorf("%s is not found by its text: %v", id, err)
		}
		break // one of each namespace
	}
}

// checkWhole compares the state with a rebuild, the log with both, and finds what
// is half-made in the files.
func checkWhole(t *testing.T, n *Node, fs *powerFS) {
	t.Helper()
	if v, err := n.operator.VerifyLog(t.Context(), nil); err != nil || !v.Shards[0].OK {
		t.Errorf("the log: %+v, %v", v, err)
	}
	if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || r.Shards[0].StateHash != r.Shards[0].Before {
		t.Errorf("rebuild: %+v, %v", r, err)
	}
	for name := range powerTree(t, fs.mem, n.dir.path) {
		for _, part := range []string{".tmp-", ".next", ".older", ".damaged-", "/restore/"} {
			if strings.Contains(name, part) {
				t.Errorf("%s is left in the data directory", name)
			}
		}
	}
}

// powerTree gives the sizes of all files below dir.
func powerTree(t *testing.T, fs lister, dir string) map[string]int64 {
	out := make(map[string]int64)
	var walk func(path string) error
	walk = func(path string) error {
		info, err := fs.Stat(path)
		if err != nil {
			return nil // removed meanwhile
		}
		if !info.IsDir() {
			out[path] = info.Size()
			return nil
		}
		names, err := fs.List(path)
		for _, name := range names {
			err = errors.Join(err, walk(path+"/"+name))
		}
		return err
	}
	if err := walk(dir); err != nil {
		t.Error(err)
	}
	return out
}
