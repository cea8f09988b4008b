package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// lossyFiles are the system's files, and what a power failure would leave of them: of a file
// what was synced, of a folder the names that were there when it was synced.
type lossyFiles struct {
	systemFiles
	synced  map[string][]byte          // content that is on disk, by the present name
	present map[string]map[string]bool // names in a folder
	durable map[string]map[string]bool // those that are on disk
	failAt  int                        // the operation that fails, from 1; 0 = none
	ops     int
	syncs   int // of files and folders
}

func newLossy() *lossyFiles {
	return &lossyFiles{synced: map[string][]byte{}, present: map[string]map[string]bool{}, durable: map[string]map[string]bool{}}
}

var errPower = errors.New("the power is off")

func (l *lossyFiles) op() error {
	if l.ops++; l.failAt > 0 && l.ops >= l.failAt {
		return errPower
	}
	return nil
}

func (l *lossyFiles) add(path string) {
	dir := filepath.Dir(path)
	if l.present[dir] == nil {
		l.present[dir] = map[string]bool{}
	}
	l.present[dir][filepath.Base(path)] = true
}

type lossyFile struct {
	file
	l *lossyFiles
}

func (f lossyFile) Sync() error {
	if err := f.l.op(); err != nil {
		return err
	}
	f.l.syncs++
	b, err := os.ReadFile(f.Name())
	f.l.synced[f.Name()] = b
	return err
}

func (l *lossyFiles) sync(path string) error {
	if err := l.op(); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err == nil {
		l.syncs++
		l.synced[path] = b
	}
	return err
}

func (l *lossyFiles) makeDirs(path string) error {
	if err := l.op(); err != nil {
		return err
	}
	l.add(path)
	return l.systemFiles.makeDirs(path)
}

func (l *lossyFiles) createTemp(dir string) (file, error) {
	if err := l.op(); err != nil {
		return nil, err
	}
	f, err := l.systemFiles.createTemp(dir)
	if err != nil {
		return nil, err
	}
	l.add(f.Name())
	return lossyFile{f, l}, nil
}

func (l *lossyFiles) rename(from, to string) error {
	if err := l.op(); err != nil {
		return err
	}
	delete(l.present[filepath.Dir(from)], filepath.Base(from))
	l.add(to)
	l.synced[to] = l.synced[from]
	return l.systemFiles.rename(from, to)
}

func (l *lossyFiles) remove(path string) error {
	if err := l.op(); err != nil {
		return err
	}
	delete(l.present[filepath.Dir(path)], filepath.Base(path))
	return l.systemFiles.remove(path)
}

func (l *lossyFiles) syncDir(path string) error {
	if err := l.op(); err != nil {
		return err
	}
	l.syncs++
	l.durable[path] = maps.Clone(l.present[path])
	return nil
}

// after lays out, in another folder, what is there when the power is back.
func (l *lossyFiles) after(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "after")
	var lay func(from, to string)
	lay = func(from, to string) {
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for name := range l.durable[from] {
			path := filepath.Join(from, name)
			if l.present[path] != nil || l.durable[path] != nil || name == spoolDir {
				lay(path, filepath.Join(to, name))
				continue
			}
			if err := os.WriteFile(filepath.Join(to, name), l.synced[path], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l.durable[filepath.Dir(dir)][filepath.Base(dir)] {
		lay(dir, to)
	}
	return to
}

// TestThePowerFailsAtEachStep: what the spool has taken is there afterwards, in order, and
// what it refused has left nothing that is in the way.
func TestThePowerFailsAtEachStep(t *testing.T) {
	for failAt := 1; ; failAt++ {
		l := newLossy()
		l.failAt = failAt
		dir := filepath.Join(t.TempDir(), "hooks")
		var taken []string
		d, err := openDisk(dir, l)
		for i := 0; i < 3 && err == nil; i++ {
			if err = spoolOne(d, i); err == nil {
				taken = append(taken, fmt.Sprint("text ", i))
			}
		}
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		w := newWorld(t)
		w.dir = l.after(t, dir)
		w.runner("a").Drain(t.Context(), DrainOptions{})
		got := w.node.texts()
		// One more may be there: its folder was synced, and nobody heard of it.
		if len(got) > len(taken)+1 || !slices.Equal(got[:min(len(got), len(taken))], taken) {
			t.Errorf("power off at step %d: %q were taken, %q are there", failAt, taken, got)
		}
		if left := w.disk().Waiting(); left != 0 || strings.Contains(w.notes(), "aside") {
			t.Errorf("power off at step %d: %d wait, %s", failAt, left, w.notes())
		}
		if err == nil {
			if failAt < 15 {
				t.Errorf("only %d steps", failAt)
			}
			return
		}
	}
}

// TestAHookThatEndedOutlivesThePower: what the node has taken does not wait for the disk; what it
// has not is there when the power is back.
func TestAHookThatEndedOutlivesThePower(t *testing.T) {
	for _, away := range []bool{false, true} {
		w := newWorld(t)
		l := newLossy()
		dir := filepath.Join(t.TempDir(), "hooks")
		d, err := openDisk(dir, l)
		if err != nil {
			t.Fatal(err)
		}
		w.away(away)
		before := l.syncs
		e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(`{"session_id":"one","prompt":"Remember that deploys happen on Tuesdays. "}`))
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner("a")
		r.Disk = d
		r.Keep(t.Context(), &e)
		r.Send(t.Context())
		if synced := l.syncs - before; away != (synced > 0) || len(d.unsettled) > 0 {
			t.Errorf("node away: %v: %d syncs, %q are not settled", away, synced, d.unsettled)
		}
		w.away(false)
		w.dir = l.after(t, dir)
		w.runner("a").Drain(t.Context(), DrainOptions{})
		w.stored("Remember that deploys happen on Tuesdays.")
		if strings.Contains(w.notes(), "aside") {
			t.Error(w.notes())
		}
	}
}

// TestALinkOutlivesThePower: an entry that was changed before it was sent is on disk as it was
// sent, for the same id with another body would be a conflict.
func TestALinkOutlivesThePower(t *testing.T) {
	w := newWorld(t)
	l := newLossy()
	dir := filepath.Join(t.TempDir(), "hooks")
	d, err := openDisk(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	w.prompt("one", "I prefer tabs over spaces.")
	if err := spoolAll(d, Entry{Addr: testAddr, Namespace: "team-a", Item: memory.Capture{ID: "x", Agent: "a", Text: "i prefer tabs, over spaces!"}, Nonce: "n", At: w.now}); err != nil {
		t.Fatal(err)
	}
	if err := d.Settle(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	w.node.onSend = func(item memory.Capture) {
		sent++
		there, err := OpenDisk(l.after(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range dirNames(t, there) {
			e, err := there.entry(there.entryPath(name))
			if err != nil || !sameBody(e.Item, item) || len(item.DerivedFrom) != 1 {
				t.Errorf("sent %+v, on disk is %+v, %v", item, e.Item, err)
			}
		}
	}
	r := w.runner("a")
	r.Disk = d
	if got := r.Drain(t.Context(), DrainOptions{}); got.Sent != 1 || sent != 1 {
		t.Errorf("%+v, %d\n%s", got, sent, w.notes())
	}
}

// TestTheDiskIsFull: a disk without room refuses, and leaves nothing half done.
func TestTheDiskIsFull(t *testing.T) {
	l := newLossy()
	dir := filepath.Join(t.TempDir(), "hooks")
	d, err := openDisk(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	d.files = fullFiles{l}
	if err := spoolOne(d, 1); !errors.Is(err, errPower) {
		t.Errorf("%v", err)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			t.Errorf("%s is left over", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

type fullFiles struct{ *lossyFiles }

type fullFile struct{ file }

func (fullFile) Write([]byte) (int, error) { return 0, errPower }

func (f fullFiles) createTemp(dir string) (file, error) {
	made, err := f.lossyFiles.createTemp(dir)
	return fullFile{made}, err
}
