package backup

import (
	"context"
	"slices"
	"time"

	"mneme/memory"
)

// Keep says which backups stay. The newest of the present era always does, and what one goes on
// from stays with it.
type Keep struct {
	Newest int           // so many, those of later eras first
	Within time.Duration // and those that were made since
	// Damaged keeps all that check, and lets the others go: those whose files are not what was
	// written, and what goes on from them.
	Damaged bool
	// WithoutUnreadable lets go, of the damaged, also those that alone may know that something
	// was destroyed: it comes back.
	WithoutUnreadable bool

	Now      func() time.Time
	DryRun   bool
	Progress func(done, total uint64)                   // of reading
	Confirm  func(would memory.BackupPruneReport) error // nil goes on
}

// Prune removes the other backups, and all keys but the newest and those that hold more. Before
// that it reads the newest backup with all that it goes on from, or everything where the damaged
// go: where the newest that stays does not check, nothing is removed. Manifests go first, each
// before the one that it goes on from, so that one that is killed leaves whole backups only.
// Errors: CodeLogDiverged where nothing may go, CodeConflict where other runs changed what would.
func Prune(ctx context.Context, in, keysIn Place, keep Keep) (memory.BackupPruneReport, error) {
	p, err := planPrune(ctx, in, keysIn, keep)
	if err != nil || keep.DryRun || len(p.out.Removed) == 0 {
		return p.out, err
	}
	if keep.Confirm != nil {
		if err := keep.Confirm(p.out); err != nil {
			return p.out, err
		}
	}
	if err := p.again(ctx, keysIn, keep); err != nil {
		return p.out, err
	}
	if _, err := remove(ctx, in, p.manifests); err != nil {
		return p.out, err
	}
	_, err = p.left.tidy(ctx, p.waste, keysIn, keep.Now())
	return p.out, err
}

// pruning is what would go, and what would be left.
type pruning struct {
	set, left *Set
	manifests []Info
	waste     waste
	out       memory.BackupPruneReport
}

func planPrune(ctx context.Context, in, keysIn Place, keep Keep) (p pruning, err error) {
	p.out = memory.BackupPruneReport{Kept: []string{}, Pruned: []string{}, Removed: []string{}, DryRun: keep.DryRun}
	if p.set, err = ReadSet(ctx, in); err != nil {
		return p, err
	}
	var stays map[string]bool
	if keep.Damaged {
		stays, p.out.Checked, err = p.set.undamaged(ctx, keysIn, keep)
	} else {
		stays, p.out.Checked, err = p.set.stays(ctx, keysIn, keep)
	}
	if err != nil {
		return p, err
	}
	p.left = &Set{place: in, pruned: map[string]Manifest{}, lineage: p.set.lineage, keepKeys: keep.Damaged}
	var gone []Manifest
	for _, b := range p.set.Bad { // of which it is not known what they go on from
		gone = append(gone, Manifest{ID: b.ID})
	}
	for _, m := range p.set.Backups {
		if stays[m.ID] {
			p.left.Backups = append(p.left.Backups, m)
		} else {
			gone = append(gone, m)
		}
	}
	for _, m := range gone {
		p.left.pruned[m.ID] = m
	}
	p.out.Pruned = append(p.out.Pruned, ids(gone)...)
	if p.manifests, err = manifestsOf(ctx, in, gone); err != nil {
		return p, err
	}
	return p, p.files(ctx, keysIn, keep)
}

// files finds which files go.
func (p *pruning) files(ctx context.Context, keysIn Place, keep Keep) (err error) {
	if p.waste, err = p.left.waste(ctx, keysIn, keep.Now(), !keep.Damaged); err != nil {
		return err
	}
	p.out.Kept, p.out.KeysKept, p.out.Keys = append([]string{}, ids(p.left.Backups)...), p.waste.kept, len(p.waste.keys)
	p.out.Removed, p.out.Bytes = []string{}, 0
	for _, f := range slices.Concat(p.manifests, p.waste.files, p.waste.keys) {
		p.out.Removed, p.out.Bytes = append(p.out.Removed, f.Name), p.out.Bytes+f.Size
	}
	p.out.Files = len(p.out.Removed)
	return nil
}

// again looks what other runs did while this one read and asked: what they made stays, and
// nothing goes where that changes what may.
func (p *pruning) again(ctx context.Context, keysIn Place, keep Keep) error {
	now, err := ReadSet(ctx, p.left.place)
	if err != nil {
		return err
	}
	same, found := len(now.Bad) == len(p.set.Bad), 0
	left := *p.left
	left.Backups, left.lineage = nil, now.lineage
	for _, m := range now.Backups {
		if p.set.byID(m.ID) != nil {
			found++
		} else if _, gone := p.left.pruned[m.Parent]; gone {
			same = false // it goes on from what would go
		}
		if _, gone := p.left.pruned[m.ID]; !gone {
			left.Backups = append(left.Backups, m)
		}
	}
	if !same || found != len(p.set.Backups) {
		return memory.Errorf(memory.CodeConflict, "nothing was pruned: another run changed meanwhile what %s holds", now.place).WithHint("run it again")
	}
	p.left = &left
	return p.files(ctx, keysIn, keep)
}

func ids(of []Manifest) (out []string) {
	for _, m := range of {
		out = append(out, m.ID)
	}
	return out
}

// prunable refuses a place in which it is not known what goes on from what.
func (s *Set) prunable(without bool) error {
	if len(s.Bad) > 0 && !without {
		b := s.Bad[0]
		return memory.Errorf(memory.CodeLogDiverged, "nothing was pruned: the manifest of %s cannot be read, and what it goes on from is not known: %v", b.ID, b.Err).
			WithHint("put it back from a copy; memctl backup prune --damaged --without-unreadable removes it, and what it alone knew as forgotten comes back")
	}
	if len(s.Backups)+len(s.Bad) == 0 {
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

// stays finds what stays, and reads the newest backup with all that it goes on from. The keys
// that open that stay with the backup that they were made with.
func (s *Set) stays(ctx context.Context, keysIn Place, keep Keep) (stays map[string]bool, newest string, err error) {
	if err := s.prunable(false); err != nil {
		return nil, "", err
	}
	v := s.verifier(keep.Progress)
	defer v.wipe()
	v.chosen = s.links(s.newest())
	if err := v.read(ctx, keysIn); err != nil {
		return nil, "", err
	}
	for _, p := range v.out.Problems {
		if slices.ContainsFunc(v.chosen, func(m *Manifest) bool { return m.ID == p.Backup }) {
			return nil, "", memory.Errorf(memory.CodeLogDiverged, "nothing was pruned: the newest backup, %s, does not check, and the others may be needed: %s: %s: %s", s.newest().ID, p.Backup, p.Kind, p.Detail).
				WithHint("put back from a copy what is named; where there is none, memctl backup --full makes a backup that needs none of it, and memctl backup prune --damaged removes what does not check")
		}
	}
	stays = map[string]bool{}
	keepWhole := func(m *Manifest) {
		for _, one := range s.links(m) {
			stays[one.ID] = true
		}
	}
	since := keep.Now().Add(-keep.Within)
	for i := range s.Backups {
		m := &s.Backups[i]
		if from := len(s.Backups) - i; from == 1 || from <= keep.Newest || keep.Within > 0 && !m.MadeAt.Before(since) {
			keepWhole(m)
		}
	}
	newest = s.newest().ID
	keepWhole(v.owners[v.able[newest][0]])
	return stays, newest, nil
}
