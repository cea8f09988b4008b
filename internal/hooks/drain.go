package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
)

const (
	asideDir = "aside"
	maxAside = 100 // files that are kept there
)

// verdict is what became of an entry that was sent.
type verdict int

const (
	taken      verdict = iota // the node has it
	refused                   // the node will never take it
	blocked                   // its namespace takes nothing for now; others may go on
	later                     // it alone was not taken; all others may go on
	away                      // the node is; nothing else is tried
	unfinished                // the time of who sends ended; nothing is known of the node
)

// Drained is what became of what waited for a node.
type Drained struct {
	Sent    int  `json:"sent"`
	Refused int  `json:"refused"` // for good
	Aside   int  `json:"aside"`   // is nothing that hooks write, and was set aside
	Waiting int  `json:"waiting"` // still
	Cut     bool `json:"-"`       // some were not tried: there was no time, or so many were not asked for
	Away    bool `json:"-"`       // the node takes nothing for now
	Busy    bool `json:"-"`       // another one sends it
	// Why is what the node said last of what waits, or that some of it does not open; nil where neither is so.
	Why error `json:"-"`
}

// round is one go at what is spooled for some nodes, oldest first.
type round struct {
	addrs []string
	most  int  // entries that are tried; 0 is all
	wait  bool // as of DrainOptions
	yield bool
	// send says what became of an entry. update puts one that was changed before it was sent in place
	// of the one that is there.
	send func(ctx context.Context, e Entry, update func(Entry) error) verdict
	note func(string, ...any)

	closed, tried map[string]bool // by where, names
	asked         int             // entries that opened
	told          bool            // that one does not
	done          Drained
}

// drain sends until everything was tried, so much as was asked for, or ctx ends. Only one hook does
// so at a time: one that finds another at it leaves to it what it spooled before.
func (d *Disk) drain(ctx context.Context, r round) (Drained, error) {
	r.closed, r.tried = map[string]bool{}, map[string]bool{}
	lock := flock.New(filepath.Join(d.dir, "drain.lock"), flock.SetPermissions(0o600))
	defer func() { _ = lock.Close() }()
	for {
		ok, err := lock.TryLock()
		if !ok && err == nil && r.wait {
			ok, err = lock.TryLockContext(ctx, lockRetry)
		}
		if r.done.Busy = !ok; !ok {
			return r.done, err
		}
		goOn, err := d.turn(ctx, &r)
		_ = lock.Unlock()
		if !goOn || err != nil {
			return r.done, err
		}
		// Who spooled until now may have found the lock taken.
		if names, err := d.untried(&r); len(names) == 0 || err != nil {
			return r.done, err
		}
	}
}

// untried lists what may be sent and was not.
func (d *Disk) untried(r *round) ([]string, error) {
	names, err := d.spooled()
	return slices.DeleteFunc(names, func(n string) bool { return r.tried[n] || !forNode(n, r.addrs) || !d.opens(n) }), err
}

// turn sends what is there, and reports that all of it was tried. The lock is held.
func (d *Disk) turn(ctx context.Context, r *round) (all bool, err error) {
	for {
		names, err := d.untried(r)
		if len(names) == 0 || err != nil {
			return err == nil, err
		}
		for _, name := range names {
			if r.done.Cut = ctx.Err() != nil || r.most > 0 && r.asked == r.most; r.done.Cut {
				return false, nil
			}
			r.tried[name] = true
			if goOn, err := d.try(ctx, r, name); !goOn || err != nil {
				return false, err
			}
		}
	}
}

// try sends one entry, and removes what the node has, or never takes. It reports that others may be
// tried.
func (d *Disk) try(ctx context.Context, r *round, name string) (goOn bool, err error) {
	e, ok := d.ready(name, r)
	if !ok {
		return true, nil
	}
	r.asked++
	to := where(e.Namespace, e.Place)
	if r.closed[to] {
		return true, nil
	}
	switch r.send(ctx, e, func(e Entry) error { return d.replace(name, e) }) {
	case taken:
		r.done.Sent++
	case refused:
		r.done.Refused++
	case blocked:
		r.closed[to] = true
		return true, nil
	case later:
		return true, nil
	case away:
		r.done.Away = true
		return false, nil
	case unfinished:
		r.done.Cut = true
		return false, nil
	}
	return true, d.files.remove(d.entryPath(name))
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

// ready reads an entry that is to be sent. What does not open, or cannot be read because the disk or another
// user's mode is in the way, stays in the spool; what is nothing that hooks write is set aside.
func (d *Disk) ready(name string, r *round) (Entry, bool) {
	note := r.note
	e, err := d.entry(d.entryPath(name))
	switch {
	case err == nil:
		return e, true
	case errors.Is(err, fs.ErrNotExist): // somebody deleted it
	case errors.Is(err, errSealed):
		if !r.told {
			r.told = true
			why := d.sealedElsewhere()
			note("%v%s", why, hintOf(why))
		}
		if failed := d.files.rename(d.entryPath(name), d.entryPath(unmarked(name)+d.sealedMark())); failed != nil {
			note("entry %s of the spool (%v) could not be marked: %v", name, err, failed)
		}
	case errors.Is(err, errUnsealed), errors.Is(err, errNoEntry):
		to, dropped, failed := d.setAside(name)
		if dropped > 0 {
			note("of what was set aside the oldest %d were deleted: %d are kept in %s", dropped, maxAside, filepath.Dir(to))
		}
		if failed != nil {
			note("entry %s of the spool (%v) could not be set aside: %v", name, err, failed)
			break
		}
		r.done.Aside++
		note("entry %s of the spool was set aside as %s: %v", name, to, err)
	default:
		note("entry %s of the spool cannot be read, and waits: %v", name, err)
	}
	return e, false
}

// setAside moves a file to where nobody looks for entries. The oldest there go for new ones.
func (d *Disk) setAside(name string) (to string, dropped int, err error) {
	dir := filepath.Join(d.dir, asideDir)
	to = filepath.Join(dir, name)
	if err := makeDir(d.files, dir); err != nil {
		return to, 0, err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return to, 0, err
	}
	for _, f := range old[:max(0, len(old)-maxAside+1)] {
		if err := d.files.remove(filepath.Join(dir, f.Name())); err != nil {
			return to, dropped, err
		}
		dropped++
	}
	return to, dropped, d.files.rename(d.entryPath(name), to)
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
	if json.Unmarshal(b, &e) != nil || e.Namespace == "" && e.Place == nil {
		return e, errNoEntry
	}
	return e, nil
}
