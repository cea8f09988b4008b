package encfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// Rewrapped says what a Rewrap did.
type Rewrapped struct {
	Files  int // headers that changed
	Passes int
	// Unreadable are files that no key opens. They are lost with or without the
	// former keys, so they do not hold back an erasure.
	Unreadable []string
}

const (
	lockName     = "LOCK"     // closing it would end the lock that the process holds
	rewrapPrefix = ".rewrap-" // hard links of files whose header is being changed
	maxPasses    = 100
)

// Rewrap wraps the key of every file below dirs, and of those among dirs that are
// files, under the current storage key, and returns when no other key is needed there
// any more: after it, and not before, former keys may be destroyed. Files may be read,
// written, made, linked, renamed and removed meanwhile. It may be cut short at any
// moment and is then run again. Files that are not made by this FS must not lie below
// dirs.
func (f *FS) Rewrap(dirs ...string) (Rewrapped, error) {
	f.rewrap.Lock()
	defer f.rewrap.Unlock()
	var done Rewrapped
	for done.Passes < maxPasses {
		done.Passes++
		done.Unreadable = nil
		before, moves := done.Files, f.moves.Load()
		for _, dir := range dirs {
			if err := f.rewrapPath(dir, &done); err != nil {
				return done, fmt.Errorf("rewrap %s: %w", dir, err)
			}
		}
		if done.Files == before && f.moves.Load() == moves {
			slices.Sort(done.Unreadable)
			return done, nil
		}
	}
	return done, fmt.Errorf("rewrap: headers under former keys may still appear after %d passes", maxPasses)
}

func (f *FS) rewrapPath(path string, done *Rewrapped) error {
	info, err := f.FS.Stat(path)
	if err == nil {
		if info.IsDir() {
			return f.rewrapDir(path, done)
		}
		err = f.rewrapFile(path, done)
	}
	if isGone(err) {
		return nil
	}
	return err
}

func (f *FS) rewrapDir(dir string, done *Rewrapped) error {
	names, err := f.FS.List(dir)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		path := f.PathJoin(dir, name)
		info, err := f.FS.Stat(path)
		switch {
		case isGone(err):
		case err != nil:
			return err
		case info.IsDir():
			err = f.rewrapDir(path, done)
		case strings.HasPrefix(name, rewrapPrefix):
			err = f.removeLink(path) // of a Rewrap that was cut short
		case name != lockName && info.Mode().IsRegular():
			err = f.rewrapFile(path, done)
		}
		if err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// rewrapFile looks at one file, and changes its header if it must.
func (f *FS) rewrapFile(path string, done *Rewrapped) error {
	r, err := f.FS.Open(path)
	if err != nil {
		return err
	}
	b, empty, err := readHeader(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	s, err := openHeader(b, f.keys)
	switch {
	case err != nil && empty:
		return nil // nothing is lost; a header that is under way is under the current key
	case errors.Is(err, storage.ErrMissingKey), errors.Is(err, storage.ErrDamaged):
		done.Unreadable = append(done.Unreadable, path)
		return nil
	case err != nil:
		return err
	}
	current, _ := f.keys.Current()
	if s.same() && s.at[s.best].keyID == current {
		return nil
	}
	if err := f.changeHeader(path, s, current); err != nil {
		return err
	}
	done.Files++
	return nil
}

// changeHeader writes the slot that does not count, syncs, and then repeats it in
// the other one. No slot is touched before the other is known to be on disk: what
// an earlier call repeated need not be. The file is opened by a link of its own,
// since a file system has no other way to open for writing that does not make a
// file that has just been removed.
func (f *FS) changeHeader(path string, s *slots, current uint32) (err error) {
	link := f.PathJoin(f.PathDir(path), rewrapPrefix+rand.Text()[:8])
	if err := f.FS.Link(path, link); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.removeLink(link)) }()
	w, err := f.FS.OpenReadWrite(link, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.SyncData(); err != nil {
		return err
	}
	next, other := s.at[s.best], 1-s.best
	if next.keyID != current {
		next = sealSlot(s.secret, next.generation+1, f.keys)
		if _, err := w.WriteAt(padded(next), int64(other)*slotSize); err != nil {
			return err
		}
		if err := w.SyncData(); err != nil {
			return err
		}
		other = s.best
	}
	_, err = w.WriteAt(padded(next), int64(other)*slotSize)
	return err
}

// padded is a slot with the zeros behind it; a base may change what it writes.
func padded(s slot) []byte {
	b := make([]byte, slotSize)
	copy(b, s.raw)
	return b
}

// removeLink removes a link that nobody else knows, if it is still there: its
// directory may be gone with all that was in it.
func (f *FS) removeLink(path string) error {
	if err := f.FS.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
