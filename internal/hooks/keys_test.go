package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// loseKeys removes the keys, and returns the one that sealed.
func (w *world) loseKeys() []byte {
	w.t.Helper()
	former, err := os.ReadFile(filepath.Join(w.dir, keyName))
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(w.dir, keyName+"*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range all {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	}
	return former
}

func (w *world) layKey(name string, key []byte) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), key, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestALostKeyDeletedWhatWaits: it is said that there is another one, nothing is removed, what others keep meanwhile is
// sent, and with the former key all is.
func TestALostKeyDeletedWhatWaits(t *testing.T) {
	w := newWorld(t)
	for i := range maxAside + 20 {
		if err := spoolAll(w.disk(), entry(i)); err != nil {
			t.Fatal(err)
		}
	}
	former := w.loseKeys()
	if lost := w.disk().KeyLost(); lost == nil || !strings.Contains(lost.Error(), "was made anew; what waited before (120 in the spool)") {
		t.Error(lost)
	}
	if lost := w.disk().KeyLost(); lost != nil { // the first one said it
		t.Error(lost)
	}
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.stored("Remember that deploys happen on Tuesdays.")
	got := w.drain("a")
	if got.Waiting != maxAside+20 || got.Aside != 0 || got.Why == nil || !strings.Contains(got.Why.Error(), "sealed under another key") || strings.Count(w.notes(), "copy the former key, from a copy of "+w.dir) != 1 {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	w.layKey("key.another", append([]byte{diskVersion}, make([]byte, keyBytes)...)) // under which nothing opens
	if got := w.drain("a"); got.Waiting != maxAside+20 {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	for _, name := range dirNames(t, w.disk()) {
		if strings.Count(name, sealedPrefix) != 1 || w.disk().opens(name) {
			t.Error(name)
		}
	}
	w.layKey("key.former", former)
	if got := w.drain("a"); got != (Drained{Sent: maxAside + 20}) {
		t.Errorf("%+v\n%s", got, w.notes())
	}
}

// TestTheFormerKeyPutBackLostWhatWaits: few captures, and what was kept meanwhile, whether it is laid beside the new
// key or takes its place.
func TestTheFormerKeyPutBackLostWhatWaits(t *testing.T) {
	for _, name := range []string{keyName, "key.former"} {
		for _, meanwhile := range []bool{false, true} { // the spool was looked through
			w := newWorld(t)
			w.away(true)
			w.prompt("one", "Remember that rule number 1 holds.")
			w.prompt("one", "Remember that rule number 2 holds.")
			former := w.loseKeys()
			if meanwhile {
				w.drain("a")
			}
			w.prompt("one", "Remember that rule number 3 holds.")
			w.layKey(name, former)
			if w.away(false); w.disk().KeyLost() != nil {
				t.Error("a key is lost")
			}
			if got := w.drain("a"); got != (Drained{Sent: 3}) {
				t.Errorf("%s: %+v\n%s", name, got, w.notes())
			}
			w.stored("Remember that rule number 1 holds.", "Remember that rule number 2 holds.", "Remember that rule number 3 holds.")
			if _, err := os.Stat(filepath.Join(w.dir, asideDir)); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}
}

// TestAKeyThatLiesBesideIsTaken where the one that seals is gone: nothing is lost then.
func TestAKeyThatLiesBesideIsTaken(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "Remember that rule number 1 holds.")
	if err := os.Remove(filepath.Join(w.dir, keyName)); err != nil {
		t.Fatal(err)
	}
	w.layKey("key.broken", []byte("short")) // is none
	if w.away(false); w.disk().KeyLost() != nil {
		t.Error("a key is lost")
	}
	if got := w.drain("a"); got != (Drained{Sent: 1}) {
		t.Errorf("%+v\n%s", got, w.notes())
	}
}

// TestAnOverwrittenKeyStoppedHooks: what waits opens under the one that lies beside it, nothing of what was there is
// deleted, and it is said once. A key that somebody copies in place of it counts all the same.
func TestAnOverwrittenKeyStoppedHooks(t *testing.T) {
	for _, garbage := range []string{"", "short", strings.Repeat("x", 1+keyBytes), strings.Repeat("long", 1<<10)} {
		w := newWorld(t)
		w.away(true)
		w.prompt("one", "Remember that rule number 1 holds.")
		w.layKey(keyName, []byte(garbage))
		d := w.disk()
		lost := d.KeyLost()
		if lost == nil || w.disk().KeyLost() != nil {
			t.Errorf("%.9q: it is not said once: %v", garbage, lost)
			continue
		}
		aside := filepath.Join(w.dir, otherKeys+"damaged-"+nameOf([]byte(garbage)))
		if b, err := os.ReadFile(aside); string(b) != garbage || !strings.Contains(lost.Error(), aside) {
			t.Errorf("%.9q: %.9q, %v, said %v", garbage, b, err, lost)
		}
		w.prompt("one", "Remember that rule number 2 holds.")
		if w.away(false); w.drain("a") != (Drained{Sent: 2}) {
			t.Errorf("%.9q: %s", garbage, w.notes())
		}
	}
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "Remember that rule number 1 holds.")
	former := w.loseKeys()
	w.prompt("one", "Remember that rule number 2 holds.")
	into, err := os.OpenFile(filepath.Join(w.dir, keyName), os.O_WRONLY|os.O_TRUNC, 0) // as a copy is begun
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = into.Close() }()
	w.prompt("one", "Remember that rule number 3 holds.")
	if _, err := into.Write(former); err != nil {
		t.Fatal(err)
	}
	w.layKey(keyName, nil) // another one is begun, and set aside beside the first, which is a key by now
	w.disk()
	if w.away(false); w.drain("a") != (Drained{Sent: 3}) {
		t.Errorf("of a copy that was under way: %s", w.notes())
	}
}

// TestKeysThatWereSetAside open once they are whole, whichever of them, beside some that are none and some that cannot be read.
func TestKeysThatWereSetAside(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	var former [][]byte
	for i := range 3 {
		w.prompt("one", fmt.Sprintf("Remember that rule number %d holds.", i+1))
		former = append(former, w.loseKeys())
	}
	w.prompt("one", "Remember that rule number 4 holds.")
	now, err := os.ReadFile(filepath.Join(w.dir, keyName))
	if err != nil {
		t.Fatal(err)
	}
	var aside []string
	for i, suffix := range []string{"", "-2", "-3", "-4"} {
		w.layKey(keyName, []byte("half"))
		aside = append(aside, otherKeys+"damaged-"+nameOf([]byte("half"))+suffix)
		if lost := w.disk().KeyLost(); lost == nil || !strings.Contains(lost.Error(), aside[i]+";") {
			t.Errorf("set aside as %v, not %s", lost, aside[i])
		}
	}
	for _, name := range []string{"damaged-folder", "damaged-0"} {
		if err := os.Mkdir(filepath.Join(w.dir, otherKeys+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(w.dir, otherKeys+"damaged-link")); err != nil {
		t.Fatal(err)
	}
	w.away(false)
	for i, want := range []Drained{{Sent: 1, Waiting: 3}, {Sent: 1, Waiting: 2}, {Sent: 1, Waiting: 1}, {Sent: 1}} {
		if i > 0 { // the second, the third and then the first become whole; the last one never
			n := []int{0, 1, 2, 0}[i]
			w.layKey(aside[n], former[n])
			if err := os.Chmod(filepath.Join(w.dir, aside[n]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := w.drain("a")
		if got.Why = nil; got != want {
			t.Errorf("with %d of them whole: %+v\n%s", i, got, w.notes())
		}
	}
	for n, name := range aside {
		path := filepath.Join(w.dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if whole := n < 3; whole && info.Mode().Perm() != 0o600 || whole == (info.Size() == 4) {
			t.Errorf("%s has mode %o and %d bytes", name, info.Mode().Perm(), info.Size())
		}
	}
	w.layKey(keyName, []byte("half")) // whichever takes its place, all open
	w.prompt("one", "Remember that rule number 5 holds.")
	w.stored("Remember that rule number 4 holds.", "Remember that rule number 2 holds.", "Remember that rule number 3 holds.", "Remember that rule number 1 holds.", "Remember that rule number 5 holds.")
	if b, err := os.ReadFile(filepath.Join(w.dir, keyName)); err != nil || !isKey(b) || len(w.disk().otherKeys()) != 4 {
		t.Errorf("%d others, %v", len(w.disk().otherKeys()), err)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, otherKeys+nameOf(now))); string(b) != string(now) {
		t.Errorf("the copy of the last one is %q, %v", b, err)
	}
	d := w.disk()
	if err := d.setKeyAside(filepath.Join(w.dir, keyName)); err != nil || d.KeyLost() != nil || len(d.otherKeys()) != 4 { // another hook was faster
		t.Errorf("a key is set aside: %v, %v", err, d.KeyLost())
	}
}

// TestAnOverwrittenKeyIsUsedAround where it cannot be set aside, and where nothing lies beside it hooks say so.
func TestAnOverwrittenKeyIsUsedAround(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "Remember that rule number 1 holds.")
	w.layKey(keyName, []byte("short"))
	l := newLossy()
	l.failAt = 1
	d, err := openDisk(w.dir, l)
	if err != nil || d.KeyLost() != nil || l.ops == 0 {
		t.Fatalf("%v, %v after %d operations", d, err, l.ops)
	}
	if names, err := d.spooled(); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	} else if _, err := d.entry(d.entryPath(names[0])); err != nil {
		t.Error(err)
	}
	w.loseKeys()
	w.layKey(keyName, []byte("short"))
	if _, err := OpenDisk(w.dir); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "is no key of hooks") {
		t.Errorf("without another one: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, keyName)); string(b) != "short" {
		t.Errorf("it is %q, %v", b, err)
	}
}

// TestWhatDoesNotOpenHeldUpOthers: a hook's own captures behind any number of such files, in the time that it has.
func TestWhatDoesNotOpenHeldUpOthers(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	for i := range 20 {
		if err := spoolOne(d, i); err != nil {
			t.Fatal(err)
		}
	}
	w.loseKeys()
	for i := range 3 {
		e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": fmt.Sprint(i), "prompt": fmt.Sprintf("Remember that rule number %d holds.", i)})))
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner(ClaudeCode)
		r.Keep(t.Context(), &e)
		if r.Send(t.Context()) {
			t.Error("another process is to send what does not open")
		}
	}
	w.stored("Remember that rule number 0 holds.", "Remember that rule number 1 holds.", "Remember that rule number 2 holds.")
	if d = w.disk(); d.Waiting(testAddr) != 20 || len(d.Elsewhere("http://other:8787")) != 0 || strings.Count(w.notes(), "do not open") != 1 {
		t.Errorf("%d wait, elsewhere %v\n%s", d.Waiting(testAddr), d.Elsewhere("http://other:8787"), w.notes())
	}
	if err := os.WriteFile(d.entryPath(entryName(1, "http://other:8787")+d.sealedMark()), d.seal(spoolDir, []byte(toJSON(entry(0)))), 0o600); err != nil || len(d.Elsewhere(testAddr)) > 0 {
		t.Errorf("they are read again for a list, %v", err)
	}
	opened := 0
	if _, err := d.drain(t.Context(), round{addrs: []string{testAddr}, note: func(string, ...any) { opened++ }}); err != nil || opened > 0 {
		t.Errorf("they are read again: %d, %v", opened, err)
	}
}

// TestWhatDoesNotOpenGrewWithoutBound, and takes no room of what does, by number and by size.
func TestWhatDoesNotOpenGrewWithoutBound(t *testing.T) {
	for _, c := range []struct{ files, size int }{{maxSpooled + 1, 1}, {9, 1 << 20}} {
		w := newWorld(t)
		d := w.disk()
		path := func(i int) string { return d.entryPath(entryName(int64(i), testAddr) + sealedPrefix + "x") }
		for i := range c.files - 1 {
			if err := os.WriteFile(path(i), make([]byte, c.size), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := spoolAll(d, entry(0), entry(1)); err != nil {
			t.Errorf("%d of %d bytes take the room of others: %v", c.files-1, c.size, err)
		}
		if err := os.WriteFile(path(c.files), make([]byte, c.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(w.dir, stateName)); err != nil { // it is lost with the key
			t.Fatal(err)
		}
		if err := spoolAll(d, entry(2)); !errors.Is(err, errFull) || !strings.Contains(memory.AsError(err).Hint, "whose names end in "+d.sealedMark()) {
			t.Errorf("%d of %d bytes: %v", c.files, c.size, err)
		}
		if err := d.change(t.Context(), testNow, func(s *state) error { d.measure(s); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range c.files - 1 {
			if err := os.Remove(path(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := spoolAll(d, entry(2)); err != nil {
			t.Errorf("they were deleted: %v", err)
		}
	}
}

// TestASetOfKeysIsNamedByThemAlone: what does not open is not read again where one has another name, or a copy.
func TestASetOfKeysIsNamedByThemAlone(t *testing.T) {
	w := newWorld(t)
	w.disk()
	one, err := os.ReadFile(filepath.Join(w.dir, keyName))
	if err != nil {
		t.Fatal(err)
	}
	another := append([]byte{diskVersion}, make([]byte, keyBytes)...)
	w.layKey("key.another", another)
	set := w.disk().keys.set
	w.layKey("key.copy", one)
	if got := w.disk().keys.set; got != set {
		t.Errorf("with a copy %s, not %s", got, set)
	}
	w.layKey(keyName, another)
	if got := w.disk().keys.set; got != set {
		t.Errorf("the other way round %s, not %s", got, set)
	}
	w.layKey("key.third", append([]byte{diskVersion}, make([]byte, keyBytes-1)...))
	if got := w.disk().keys.set; got != set {
		t.Errorf("with what is no key %s, not %s", got, set)
	}
}
