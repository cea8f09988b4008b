package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// Chosen is a backup of a place, ready to be restored.
type Chosen struct {
	Manifest  Manifest
	Log       Log
	Keys      []byte    // the newest of their place; nil where that was not given
	Destroyed Destroyed // all that the backups of the place know as destroyed
	// Since is how many were destroyed behind this backup.
	Since int

	set      *Set
	keysFrom Place
}

// Which says which backup to choose, and what to pass over.
type Which struct {
	ID string // "" is the newest
	// WithoutUnreadable passes over manifests, lists and keys that cannot be read: what they
	// alone know as destroyed comes back.
	WithoutUnreadable bool
}

// Choose finds a backup with what is needed to restore it. The log is read when it is
// restored. Where the place of the keys is not given, who has the keys calls Check. Errors:
// CodeNotFound, CodeLogDiverged where what is needed is not there or damaged, or was written
// without the keys; those of the places.
func Choose(ctx context.Context, from, keysFrom Place, which Which) (out Chosen, err error) {
	set, err := ReadSet(ctx, from)
	if err != nil {
		return Chosen{}, err
	}
	if len(set.Backups)+len(set.Bad) == 0 {
		return Chosen{}, noBackup(from)
	}
	if err := set.whole(which.WithoutUnreadable); err != nil {
		return Chosen{}, err
	}
	out.set, out.keysFrom = set, keysFrom
	if keysFrom != nil {
		if out.Keys, err = set.newestKeys(ctx, keysFrom, which.WithoutUnreadable); err == nil {
			err = out.authenticate(out.Keys)
		}
		if err == nil {
			err = set.whole(which.WithoutUnreadable)
		}
		if err != nil {
			clear(out.Keys)
			return Chosen{}, err
		}
	}
	if err := out.choose(ctx, which); err != nil {
		clear(out.Keys)
		return Chosen{}, err
	}
	return out, nil
}

func (c *Chosen) choose(ctx context.Context, which Which) error {
	set, from := c.set, c.set.place
	newest := set.newest()
	if newest == nil {
		return noBackup(from)
	}
	m := newest
	if which.ID != "" {
		if m = set.byID(which.ID); m == nil {
			return memory.Errorf(memory.CodeNotFound, "there is no backup %s in %s", which.ID, from).WithHint("memctl backup list --from %s shows which there are", from)
		}
	}
	if o := set.foreign(); o != nil {
		return cannotRestore(from, m.ID, fmt.Errorf("it is of the cluster %s, and %s here is of %s", m.Cluster, o.ID, o.Cluster))
	}
	chain, problem := set.chain(m)
	if problem != nil {
		return cannotRestore(from, problem.Backup, errors.New(problem.Detail))
	}
	c.Manifest, c.Log = *m, set.log(chain)
	var err error
	if c.Destroyed, err = set.destroyed(ctx, which.WithoutUnreadable); err != nil {
		return err
	}
	own, err := set.listOf(ctx, m)
	if err == nil {
		c.Since = c.Destroyed.Count() - own.Count()
	} else if !which.WithoutUnreadable {
		return err
	}
	return nil
}

// Eras says from which era the backup is; nothing where the place holds only one.
func (c *Chosen) Eras() (out memory.BackupErasOf) {
	if len(c.set.eras) > 1 {
		out.Era, out.Eras = c.set.era(c.Manifest.Cluster), c.set.Eras()
	}
	return out
}

// Former are the clusters that a node goes on from which is restored from the backup. Where
// later eras are in the place it goes on from those, too, and may not be its cluster again: anew.
func (c *Chosen) Former() (former []string, anew bool) {
	m := &c.Manifest
	if m.Cluster == c.set.present() {
		return c.set.ancestors(m.Cluster, m.Former), false
	}
	return c.set.ancestors("", c.set.eras), true
}

// Check finds out whether the backups of the place were written by who had keys, which a
// backup of them holds. Choose has done so where it was given their place.
func (c *Chosen) Check(keys []byte) error {
	before := len(c.set.Bad)
	if err := c.authenticate(keys); err != nil {
		return err
	}
	if len(c.set.Bad) > before {
		return unreadable(c.set.place, c.set.Bad[before])
	}
	return nil
}

func (c *Chosen) authenticate(keys []byte) error {
	head, err := keyring.ReadBackupHead(keys)
	defer head.Wipe()
	if err != nil {
		return memory.Errorf(memory.CodeLogDiverged, "the keys cannot be used: %v", err).WithHint("name the backup of the keys").WithCause(err)
	}
	if !head.Complete() {
		return memory.Errorf(memory.CodeLogDiverged, "the keys were backed up by an early program and do not tell who wrote the backups of %s", c.set.place).
			WithHint("name keys that were backed up with one of the backups there")
	}
	c.set.authenticate(head)
	return nil
}

// KeysFor gives other keys than Keys, where those do not open what a log needs and there are
// some that do: they were kept for it. Else it is nil.
func (c *Chosen) KeysFor(ctx context.Context, need Need) ([]byte, error) {
	gone := c.Destroyed.set()
	if c.keysFrom == nil || need.openWith(c.Keys, gone) {
		return nil, nil
	}
	for _, m := range slices.Backward(c.set.Backups) {
		b, err := readAs(ctx, c.keysFrom, m.keysName(), m.Keys)
		if err == nil && need.openWith(b, gone) {
			return b, nil
		}
		clear(b)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotIntact) { // verify names those
			return nil, err
		}
	}
	return nil, nil
}

// whole refuses a place in which a manifest cannot be read: it may be the only one that knows
// that something was destroyed.
func (s *Set) whole(without bool) error {
	if len(s.Bad) == 0 || without {
		return nil
	}
	return unreadable(s.place, s.Bad[0])
}

// withoutHint ends the hints about what alone may know of an erasure.
const withoutHint = "--without-unreadable goes on without it, and what it alone knows as forgotten comes back"

func unreadable(in Place, b Bad) error {
	name := folderManifests + "/" + b.ID + ".json"
	hint := fmt.Sprintf("put %s back from a copy of %s, or remove it; %s", name, in, withoutHint)
	switch {
	case errors.Is(b.Err, events.ErrNewer):
		hint = "use the memctl that made it, or a newer one"
	case errors.Is(b.Err, events.ErrOlder):
		hint = "an early program made it: back up into a new place"
	case errors.Is(b.Err, errForged):
		hint = fmt.Sprintf("look who may write to %s, and whether the keys are of this cluster; then %s", in, hint)
	}
	return memory.Errorf(memory.CodeLogDiverged, "%s in %s cannot be used, and what was forgotten up to it is not known: %v", name, in, b.Err).
		WithHint("%s", hint).WithCause(b.Err)
}

func cannotRestore(from Place, id string, err error) error {
	return memory.Errorf(memory.CodeLogDiverged, "the backup %s cannot be restored: %v", id, err).
		WithHint("memctl backup verify --from %s says what is wrong; another backup can be named with --backup", from).WithCause(err)
}

// destroyed is all that the backups of a place know as destroyed. The newest need not know
// all of it: it may be of a node that came back from an older copy of itself.
func (s *Set) destroyed(ctx context.Context, without bool) (all Destroyed, err error) {
	seen := map[FileRef]bool{}
	for i := range s.Backups {
		m := &s.Backups[i]
		if seen[m.Destroyed] {
			continue
		}
		seen[m.Destroyed] = true
		one, err := s.listOf(ctx, m)
		if without && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotIntact)) {
			continue
		}
		if err != nil {
			return Destroyed{}, err
		}
		one.ClusterID = m.Cluster
		all = one.with(all)
	}
	return all, nil
}

func (s *Set) listOf(ctx context.Context, m *Manifest) (Destroyed, error) {
	b, err := readAs(ctx, s.place, m.destroyedName(), m.Destroyed)
	if err == nil {
		var d Destroyed
		if d, err = decodeDestroyed(b); err == nil {
			return d, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotIntact) {
		return Destroyed{}, memory.Errorf(memory.CodeLogDiverged, "what was forgotten up to the backup %s is not known, and a restore would bring it back: %v", m.ID, err).
			WithHint("put %s back from a copy of %s; or remove %s; %s", m.destroyedName(), s.place, m.name(), withoutHint).WithCause(err)
	}
	return Destroyed{}, err
}

// newestKeys reads the keys of the newest backup that has some.
func (s *Set) newestKeys(ctx context.Context, from Place, without bool) ([]byte, error) {
	for i := len(s.Backups) - 1; i >= 0; i-- {
		m := &s.Backups[i]
		b, err := readAs(ctx, from, m.keysName(), m.Keys)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, ErrNotIntact) {
			clear(b)
			if without {
				continue
			}
			return nil, memory.Errorf(memory.CodeLogDiverged, "the keys in %s are damaged: %v", from, err).
				WithHint("put %s back from a copy, or remove it, after which the keys before count; they may not open all", m.keysName()).WithCause(err)
		}
		return b, err
	}
	return nil, memory.Errorf(memory.CodeNotFound, "there are no keys of these backups in %s", from).
		WithHint("name the place that --keys-to named when they were made")
}
