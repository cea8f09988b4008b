package backup

import (
	"context"
	"slices"
	"time"

	"mneme/memory"
)

// Keep says which backups stay. The newest of the present era always does, and the newest that
// is whole, as far as is seen without reading it; what one goes on from stays with it.
type Keep struct {
	Newest int           // so many, those of later eras first
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
	if err := set.prunable(); err != nil {
		return out, err
	}
	stays, err := set.stays(ctx, keep)
	if err != nil {
		return out, err
	}
	left := &Set{place: in, pruned: map[string]Manifest{}, lineage: set.lineage}
	var gone []Manifest
	for _, m := range set.Backups {
		if stays[m.ID] {
			left.Backups, out.Kept = append(left.Backups, m), append(out.Kept, m.ID)
			continue
		}
		gone, out.Pruned, left.pruned[m.ID] = append(gone, m), append(out.Pruned, m.ID), m
	}
	manifests, err := manifestsOf(ctx, in, gone)
	if err != nil {
		return out, err
	}
	w, err := left.waste(ctx, keysIn, keep.Now(), true)
	if err != nil {
		return out, err
	}
	out.KeysKept = w.kept
	if !keep.DryRun {
		if _, err := remove(ctx, in, manifests); err != nil {
			return out, err
		}
		if _, err := left.tidy(ctx, w, keysIn, keep.Now()); err != nil {
			return out, err
		}
	}
	for _, f := range slices.Concat(manifests, w.files, w.keys) {
		out.Removed, out.Bytes = append(out.Removed, f.Name), out.Bytes+f.Size
	}
	out.Files, out.Keys = len(out.Removed), len(w.keys)
	return out, nil
}

// prunable refuses a place in which it is not known what goes on from what.
func (s *Set) prunable() error {
	if len(s.Bad) > 0 {
		b := s.Bad[0]
		return memory.Errorf(memory.CodeLogDiverged, "nothing was pruned: the manifest of %s cannot be read, and what it goes on from is not known: %v", b.ID, b.Err).
			WithHint("memctl backup verify --from %s says more; put it back from a copy or remove it", s.place)
	}
	if len(s.Backups) == 0 {
		return noBackup(s.place)
	}
	if m := s.foreign(); m != nil {
		return memory.Errorf(memory.CodeLogDiverged, "nothing was pruned: of the backup %s %s", m.ID, s.strange(m)).
			WithHint("memctl backup verify --from %s says more; take out what is another cluster's", s.place)
	}
	return nil
}

// manifestsOf are the manifests of backups, later ones first.
func manifestsOf(ctx context.Context, in Place, gone []Manifest) (out []Info, err error) {
	files, err := in.List(ctx, folderManifests)
	if err != nil {
		return nil, err
	}
	there := sizes(files)
	for _, m := range slices.Backward(gone) {
		out = append(out, Info{Name: m.name(), Size: there[m.name()]})
	}
	return out, nil
}

func (s *Set) stays(ctx context.Context, keep Keep) (map[string]bool, error) {
	files, err := s.place.List(ctx, folderLog)
	if err != nil {
		return nil, err
	}
	there, whole := sizes(files), -1
	for i := range slices.Backward(s.Backups) {
		chain, problem := s.chain(&s.Backups[i])
		if problem == nil && missing(chain, there) == nil {
			whole = i
			break
		}
	}
	stays, since := map[string]bool{}, keep.Now().Add(-keep.Within)
	for i, m := range s.Backups {
		if from := len(s.Backups) - i; i != whole && from > 1 && from > keep.Newest && (keep.Within <= 0 || m.MadeAt.Before(since)) {
			continue
		}
		for one := &m; one != nil && !stays[one.ID]; one = s.byID(one.Parent) {
			stays[one.ID] = true
		}
	}
	return stays, nil
}
