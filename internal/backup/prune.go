package backup

import (
	"context"
	"slices"
	"strings"
	"time"

	"mneme/memory"
)

// Keep says which backups stay. The newest always does, and what one goes on from stays
// with it.
type Keep struct {
	Newest int           // so many
	Within time.Duration // and those that were made since
	Now    func() time.Time
	DryRun bool
}

// Prune removes the other backups, and all keys but the newest and those that hold more. Manifests go first, each
// before the one that it goes on from, so that one that is killed leaves whole backups only.
func Prune(ctx context.Context, in, keysIn Place, keep Keep) (memory.BackupPruneReport, error) {
	out := memory.BackupPruneReport{Kept: []string{}, Pruned: []string{}, Removed: []string{}, DryRun: keep.DryRun}
	set, err := ReadSet(ctx, in)
	if err != nil {
		return out, err
	}
	if len(set.Backups) == 0 {
		return out, noBackup(in)
	}
	if len(set.Bad) > 0 {
		b := set.Bad[0]
		return out, memory.Errorf(memory.CodeLogDiverged, "nothing was pruned: the manifest of %s cannot be read, and what it goes on from is not known: %v", b.ID, b.Err).
			WithHint("memctl backup verify --from %s says more; put it back from a copy or remove it", in)
	}
	stays := set.stays(keep)
	left := &Set{place: in, pruned: map[string]Manifest{}}
	var gone []Manifest
	for _, m := range set.Backups {
		if stays[m.ID] {
			left.Backups, out.Kept = append(left.Backups, m), append(out.Kept, m.ID)
			continue
		}
		gone, out.Pruned, left.pruned[m.ID] = append(gone, m), append(out.Pruned, m.ID), m
	}
	files, err := left.unnamed(ctx, gone)
	if err != nil {
		return out, err
	}
	for _, f := range files {
		out.Removed, out.Bytes = append(out.Removed, f.Name), out.Bytes+f.Size
	}
	if keep.DryRun {
		var old []Info
		if keysIn != nil {
			old, out.KeysKept, err = left.oldKeys(ctx, keysIn, keep.Now().Add(-leftoverAge), true)
		}
		for _, f := range old {
			out.Removed, out.Bytes = append(out.Removed, f.Name), out.Bytes+f.Size
		}
		return out, err
	}
	for _, m := range slices.Backward(gone) {
		if err := in.Remove(ctx, m.name()); err != nil {
			return out, err
		}
	}
	if _, err := remove(ctx, in, files); err != nil {
		return out, err
	}
	more, kept, err := left.tidy(ctx, keysIn, keep.Now(), true)
	out.Removed, out.KeysKept = append(out.Removed, more...), kept
	return out, err
}

func (s *Set) stays(keep Keep) map[string]bool {
	stays, since := map[string]bool{}, keep.Now().Add(-keep.Within)
	for i, m := range s.Backups {
		if from := len(s.Backups) - i; from > 1 && from > keep.Newest && (keep.Within <= 0 || m.MadeAt.Before(since)) {
			continue
		}
		for one := &m; one != nil && !stays[one.ID]; one = s.byID(one.Parent) {
			stays[one.ID] = true
		}
	}
	return stays
}

// unnamed finds the files of backups that go, and that none of those that stay name.
func (s *Set) unnamed(ctx context.Context, gone []Manifest) (files []Info, err error) {
	for _, folder := range []string{folderLog, folderDestroyed} {
		there, err := s.place.List(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, f := range there {
			of := slices.ContainsFunc(gone, func(m Manifest) bool { return m.logName() == f.Name || m.destroyedName() == f.Name })
			if of && !s.names(f.Name) {
				files = append(files, f)
			}
		}
	}
	slices.SortFunc(files, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}
