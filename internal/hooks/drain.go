package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

const (
	asideDir = "aside"
	maxAside = 100 // entries that are kept there
)

// verdict is what became of an entry that was sent.
type verdict int

const (
	taken   verdict = iota // the node has it
	refused                // the node will never take it
	blocked                // its namespace takes nothing for now; others may go on
	later                  // it alone was not taken; all others may go on
	away                   // the node is; nothing else is tried
)

// Drained is what became of what waited for a node.
type Drained struct {
	Sent    int  `json:"sent"`
	Refused int  `json:"refused"` // for good
	Aside   int  `json:"aside"`   // does not open, and was set aside
	Waiting int  `json:"waiting"` // still
	Cut     bool `json:"-"`       // time ran out before everything was tried
	// Why is what the node said last of what waits, nil where it was not asked.
	Why error `json:"-"`
}

// drain sends what is spooled for one of the nodes, oldest first, until ctx ends. Only one hook
// does so at a time. update puts an entry that was changed before it was sent in place of the
// one that is there.
func (d *Disk) drain(ctx context.Context, addrs []string, send func(ctx context.Context, e Entry, update func(Entry) error) verdict, note func(string, ...any)) (done Drained, err error) {
	lock := flock.New(filepath.Join(d.dir, "drain.lock"), flock.SetPermissions(0o600))
	patient, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	ok, err := lock.TryLockContext(patient, lockRetry)
	cancel()
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return done, nil // who has it will find what is here
		}
		return done, err
	}
	defer func() { _ = lock.Unlock() }()
	closed, tried := map[string]bool{}, map[string]bool{} // namespaces, names
	for {
		names, _, err := d.spooled()
		if err != nil {
			return done, err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return tried[n] || !forNode(n, addrs) })
		if len(names) == 0 {
			return done, nil
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return done, ctx.Err()
			}
			tried[name] = true
			e, ok := d.ready(name, &done, note)
			if !ok || closed[e.Namespace] {
				continue
			}
			switch send(ctx, e, func(e Entry) error { return d.replace(name, e) }) {
			case taken:
				done.Sent++
			case refused:
				done.Refused++
			case blocked:
				closed[e.Namespace] = true
				continue
			case later:
				continue
			case away:
				return done, nil
			}
			if err := d.files.remove(d.entryPath(name)); err != nil {
				return done, err
			}
		}
	}
}

// replace puts a changed entry in place of the one of that name, durably: what is sent
// afterwards must be the same each time.
func (d *Disk) replace(name string, e Entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return writeFile(d.files, d.entryPath(name), d.seal(spoolDir, b), true)
}

// ready reads an entry that is to be sent. What does not open is set aside; what cannot be read,
// because the disk or another user's mode is in the way, stays where it is.
func (d *Disk) ready(name string, done *Drained, note func(string, ...any)) (Entry, bool) {
	e, err := d.entry(d.entryPath(name))
	switch {
	case err == nil:
		return e, true
	case errors.Is(err, fs.ErrNotExist): // somebody deleted it
	case errors.Is(err, errSealed), errors.Is(err, errNoEntry):
		to, failed := d.setAside(name)
		if failed != nil {
			note("entry %s of the spool (%v) could not be set aside: %v", name, err, failed)
			break
		}
		done.Aside++
		note("entry %s of the spool was set aside as %s: %v", name, to, err)
	default:
		note("entry %s of the spool cannot be read, and waits: %v", name, err)
	}
	return e, false
}

// setAside moves an entry to where nobody looks for entries. The oldest there go for new ones.
func (d *Disk) setAside(name string) (string, error) {
	dir := filepath.Join(d.dir, asideDir)
	if err := makeDir(d.files, dir); err != nil {
		return "", err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, f := range old[:max(0, len(old)-maxAside+1)] {
		if err := d.files.remove(filepath.Join(dir, f.Name())); err != nil {
			return "", err
		}
	}
	to := filepath.Join(dir, name)
	return to, d.files.rename(d.entryPath(name), to)
}

// errNoEntry says that a file opens and holds something else.
var errNoEntry = errors.New("it holds no capture")

func (d *Disk) entry(path string) (Entry, error) {
	var e Entry
	b, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	if b, err = d.open(spoolDir, b); err != nil {
		return e, err
	}
	if json.Unmarshal(b, &e) != nil {
		return e, errNoEntry
	}
	return e, nil
}
