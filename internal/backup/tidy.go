package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"mneme/internal/keyring"
)

// leftoverAge is how long files that no manifest names are left alone: they may be those of
// a run that has not ended.
const leftoverAge = 24 * time.Hour

// waste is what no backup needs: keys that were written before the last erasure, or, if only
// the newest are to stay, all older ones; and what killed runs left.
type waste struct {
	files []Info
	keys  []Info   // in the place of the keys
	kept  []string // keys that stay because the newest do not hold what they do
}

// waste finds it, with the files of backups that are going. Without the place of the keys it
// looks for none.
func (s *Set) waste(ctx context.Context, keysTo Place, now time.Time, newestKeys bool) (w waste, err error) {
	before := now.Add(-leftoverAge)
	going := map[string]bool{}
	for _, m := range s.pruned {
		going[m.logName()], going[m.destroyedName()] = true, true
	}
	for _, folder := range []string{folderLog, folderDestroyed} {
		files, err := s.place.List(ctx, folder)
		if err != nil {
			return w, err
		}
		for _, f := range files {
			if !s.names(f.Name) && (going[f.Name] || f.Changed.Before(before)) {
				w.files = append(w.files, f)
			}
		}
	}
	if keysTo != nil {
		w.keys, w.kept, err = s.oldKeys(ctx, keysTo, before, newestKeys)
	}
	return w, err
}

// tidy removes what no backup needs, and returns the names.
func (s *Set) tidy(ctx context.Context, w waste, keysTo Place, now time.Time) (removed []string, err error) {
	before := now.Add(-leftoverAge)
	if removed, err = remove(ctx, s.place, w.files); err != nil {
		return removed, err
	}
	if err := s.place.Sweep(ctx, before); err != nil || keysTo == nil {
		return removed, err
	}
	more, err := remove(ctx, keysTo, w.keys)
	if err == nil {
		err = keysTo.Sweep(ctx, before)
	}
	return append(removed, more...), err
}

func remove(ctx context.Context, from Place, files []Info) (removed []string, err error) {
	for _, f := range files {
		if err := from.Remove(ctx, f.Name); err != nil {
			return removed, err
		}
		removed = append(removed, f.Name)
	}
	return removed, nil
}

// names reports whether a manifest names a file of the log, or a list; one that cannot be
// read may name any list.
func (s *Set) names(file string) bool {
	id := strings.TrimSuffix(path.Base(file), ".log")
	list := strings.HasPrefix(file, folderDestroyed+"/")
	return s.damaged(id) || list && len(s.Bad) > 0 ||
		slices.ContainsFunc(s.Backups, func(m Manifest) bool { return m.logName() == file || m.destroyedName() == file })
}

// oldKeys finds the keys that are of no use, because the newest hold all that lives in them
// but what was destroyed. Those that hold more stay: they hold the master key, which the
// newest leave out, or they are of another course of things, as
// where the newest backup is of a node that came back from an older copy of itself.
func (s *Set) oldKeys(ctx context.Context, keysTo Place, before time.Time, newestOnly bool) (old []Info, kept []string, err error) {
	newest := s.newest()
	if newest == nil || len(s.Bad) > 0 {
		return nil, nil, nil // what cannot be read may be the newest
	}
	b, err := readAs(ctx, keysTo, newest.keysName(), newest.Keys)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotIntact) {
		clear(b)
		return nil, nil, nil // older ones are better than none
	}
	if err != nil {
		return nil, nil, err
	}
	head, bad := keyring.ReadBackupHead(b)
	clear(b)
	if bad != nil || newest.authentic(head) != nil {
		return nil, nil, nil // verify says what is wrong
	}
	defer head.Wipe()
	list, err := s.listOf(ctx, newest)
	if err != nil {
		return nil, nil, err
	}
	gone := list.set()
	files, err := keysTo.List(ctx, folderKeys)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		id, is := strings.CutSuffix(path.Base(f.Name), ".keys")
		if !is || !validID.MatchString(id) || id == newest.ID {
			continue
		}
		m := s.byID(id)
		pruned, going := s.pruned[id]
		if m == nil && !going && !f.Changed.Before(before) || m != nil && !newestOnly && s.sameList(ctx, m, newest, list) {
			continue // of a run that may not have ended; or nothing was destroyed since
		}
		superseded := going && !s.keepKeys && !slices.ContainsFunc(s.Backups, func(o Manifest) bool { return o.MadeAt.Before(pruned.MadeAt) })
		all, master, err := holdsAll(ctx, keysTo, f, head, gone)
		if err != nil {
			return nil, nil, err
		}
		superseded = (superseded || all) && (!master || head.HoldsMaster())
		if superseded {
			old = append(old, f)
		} else {
			kept = append(kept, f.Name)
		}
	}
	return old, kept, nil
}

// sameList reports whether a backup's list names what the newest one's does. Lists name their
// cluster, so those of two eras differ in any case.
func (s *Set) sameList(ctx context.Context, m, newest *Manifest, list Destroyed) bool {
	if m.Destroyed == newest.Destroyed || m.Cluster == newest.Cluster {
		return m.Destroyed == newest.Destroyed
	}
	own, err := s.listOf(ctx, m)
	return err == nil && own.equal(list)
}

// holdsAll reports whether newer keys hold all that lives in a file of keys, but what was
// destroyed, and whether the file holds the master key. Of a file that does not tell it is not
// known.
func holdsAll(ctx context.Context, from Place, f Info, newer *keyring.BackupHead, gone map[[16]byte]bool) (all, master bool, err error) {
	r, err := from.Open(ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, false, nil
	}
	if err != nil {
		return false, false, err
	}
	b, err := io.ReadAll(io.LimitReader(r, min(f.Size, maxWhole)+1))
	defer clear(b)
	if err = errors.Join(err, r.Close()); err != nil {
		return false, false, err
	}
	head, err := keyring.ReadBackupHead(b)
	if err != nil || !head.Complete() {
		return false, false, nil //nolint:nilerr // then it is not known
	}
	defer head.Wipe()
	return covers(newer, head, gone), head.HoldsMaster(), nil
}

// covers reports whether keys hold all that lives in older ones, but what was destroyed.
func covers(newer, older *keyring.BackupHead, gone map[[16]byte]bool) bool {
	return !slices.ContainsFunc(older.IDs(), func(id [16]byte) bool { return !gone[id] && !newer.Holds(id) })
}
