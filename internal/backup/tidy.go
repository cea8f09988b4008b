package backup

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// leftoverAge is how long files that no manifest names are left alone: they may be those of
// a run that has not ended.
const leftoverAge = 24 * time.Hour

// tidy removes what no backup needs: keys that were written before the last erasure, or, if
// only the newest are to stay, all older ones; and what killed runs left. It returns the
// names, of keys too.
func (s *Set) tidy(ctx context.Context, keysTo Place, now time.Time, newestKeys bool) (removed []string, err error) {
	before := now.Add(-leftoverAge)
	var gone []Info
	for _, folder := range []string{folderLog, folderDestroyed} {
		files, err := s.place.List(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !s.names(f.Name) && f.Changed.Before(before) {
				gone = append(gone, f)
			}
		}
	}
	if removed, err = remove(ctx, s.place, gone); err != nil {
		return removed, err
	}
	if err := s.place.Sweep(ctx, before); err != nil || keysTo == nil {
		return removed, err
	}
	keys, err := s.oldKeys(ctx, keysTo, before, newestKeys)
	if err != nil {
		return removed, err
	}
	more, err := remove(ctx, keysTo, keys)
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

// oldKeys finds the keys that are of no use: the newest open every backup.
func (s *Set) oldKeys(ctx context.Context, keysTo Place, before time.Time, newestOnly bool) (old []Info, err error) {
	newest := s.newest()
	if newest == nil {
		return nil, nil
	}
	files, err := keysTo.List(ctx, folderKeys)
	if err != nil || !slices.ContainsFunc(files, func(f Info) bool { return f.Name == newest.keysName() && f.Size == newest.Keys.Bytes }) {
		return nil, err // older ones are better than none
	}
	for _, f := range files {
		id, is := strings.CutSuffix(path.Base(f.Name), ".keys")
		if !is || !validID.MatchString(id) || id == newest.ID {
			continue
		}
		m := s.byID(id)
		switch {
		case m == nil && !s.pruned[id] && !f.Changed.Before(before): // of a run that may not have ended
		case m == nil, newestOnly, m.Destroyed != newest.Destroyed:
			old = append(old, f)
		}
	}
	return old, nil
}
