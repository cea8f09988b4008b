package hooks

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

// locked holds the lock of the hooks' folder until it is let go.
func (w *world) locked() (letGo func()) {
	w.t.Helper()
	lock := flock.New(filepath.Join(w.dir, "lock"))
	if err := lock.Lock(); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := lock.Unlock(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestAHookWithoutTheLockRecallsAndWaitsForItOnce: nothing of the conversation is known, and what is kept is spooled
// without the lock, be it free by then.
func TestAHookWithoutTheLockRecallsAndWaitsForItOnce(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(`{"session_id":"two","prompt":"Remember that deploys are made by Ann."}`))
	if err != nil {
		t.Fatal(err)
	}
	r := w.runner(ClaudeCode)
	letGo := w.locked()
	r.begin(t.Context(), &e)
	letGo()
	r.Keep(t.Context(), &e)
	if len(r.Disk.unsettled) != 1 || !isLone(filepath.Base(r.Disk.unsettled[0])) {
		t.Errorf("%q is spooled\n%s", r.Disk.unsettled, w.notes())
	}
	if out := r.Recall(t.Context(), &e); !strings.Contains(out, "Tuesdays") {
		t.Errorf("it is given %q\n%s", out, w.notes())
	}
	r.Send(t.Context())
	w.stored("Remember that deploys happen on Tuesdays.", "Remember that deploys are made by Ann.")
}

// TestWhatWasSpooledWithoutTheLockIsCounted by those who have it: the state says nothing of it.
func TestWhatWasSpooledWithoutTheLockIsCounted(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	big := entry(0)
	big.Item.Text = strings.Repeat("x", 1<<20)
	for range 3 {
		if err := spoolAll(d, big); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := d.spoolAlone(d.state(), []Entry{big}); err != nil {
			t.Fatal(err)
		}
	}
	if err := spoolAll(d, big); !errors.Is(err, errFull) {
		t.Errorf("behind 7 of 1 MiB: %v", err)
	}
}
