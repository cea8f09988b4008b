package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"mneme/internal/events"
	"mneme/memory"
)

// Chosen is a backup of a place, ready to be restored.
type Chosen struct {
	Manifest  Manifest
	Log       Log
	Keys      []byte    // the newest of their place; nil where that was not given
	Destroyed Destroyed // the newest list of the place
	// Since is how many were destroyed behind this backup.
	Since int
}

// Choose finds a backup by its id, or the newest one, with what is needed to restore it. The
// log is read when it is restored. Errors: CodeNotFound, CodeLogDiverged where what is needed
// is not there or damaged; those of the places.
func Choose(ctx context.Context, from, keysFrom Place, id string) (Chosen, error) {
	set, err := ReadSet(ctx, from)
	if err != nil {
		return Chosen{}, err
	}
	newest := set.newest()
	if newest == nil && len(set.Bad) == 0 {
		return Chosen{}, noBackup(from)
	}
	// A manifest that cannot be read may be the newest, with the newest list.
	if len(set.Bad) > 0 {
		b := set.Bad[len(set.Bad)-1]
		if newest == nil || b.ID > newest.ID || b.ID == id {
			return Chosen{}, unreadable(from, b)
		}
	}
	m := newest
	if id != "" {
		if m = set.byID(id); m == nil {
			return Chosen{}, memory.Errorf(memory.CodeNotFound, "there is no backup %s in %s", id, from).WithHint("memctl backup list --from %s shows which there are", from)
		}
	}
	if m.Cluster != newest.Cluster {
		return Chosen{}, cannotRestore(from, m.ID, fmt.Errorf("it is of the cluster %s, and the newest one here, %s, is of %s", m.Cluster, newest.ID, newest.Cluster))
	}
	chain, problem := set.chain(m)
	if problem != nil {
		return Chosen{}, cannotRestore(from, problem.Backup, errors.New(problem.Detail))
	}
	out := Chosen{Manifest: *m, Log: set.log(chain)}
	list, err := set.listOf(ctx, newest)
	if err == nil {
		out.Destroyed = list
		if m.Destroyed != newest.Destroyed {
			var own Destroyed
			own, err = set.listOf(ctx, m)
			out.Since = list.Count() - own.Count()
		}
	}
	if err == nil && keysFrom != nil {
		out.Keys, err = set.newestKeys(ctx, keysFrom)
	}
	return out, err
}

func unreadable(from Place, b Bad) error {
	hint := fmt.Sprintf("put %s/%s.json back from a copy of %s; or remove it, after which the backup before it counts", folderManifests, b.ID, from)
	if errors.Is(b.Err, events.ErrNewer) {
		hint = "use the memctl that made it, or a newer one"
	}
	return memory.Errorf(memory.CodeLogDiverged, "the manifest of the backup %s cannot be read, and what was forgotten up to it is not known: %v", b.ID, b.Err).
		WithHint("%s", hint).WithCause(b.Err)
}

func cannotRestore(from Place, id string, err error) error {
	return memory.Errorf(memory.CodeLogDiverged, "the backup %s cannot be restored: %v", id, err).
		WithHint("memctl backup verify --from %s says what is wrong; another backup can be named with --backup", from).WithCause(err)
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
			WithHint("put %s back from a copy of %s; or remove %s, after which the list of the backup before counts", m.destroyedName(), s.place, m.name()).WithCause(err)
	}
	return Destroyed{}, err
}

// newestKeys reads the keys of the newest backup that has some.
func (s *Set) newestKeys(ctx context.Context, from Place) ([]byte, error) {
	for i := len(s.Backups) - 1; i >= 0; i-- {
		m := &s.Backups[i]
		b, err := readAs(ctx, from, m.keysName(), m.Keys)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, ErrNotIntact) {
			clear(b)
			return nil, memory.Errorf(memory.CodeLogDiverged, "the keys in %s are damaged: %v", from, err).
				WithHint("put %s back from a copy, or remove it, after which the keys before count; they may not open all", m.keysName()).WithCause(err)
		}
		return b, err
	}
	return nil, memory.Errorf(memory.CodeNotFound, "there are no keys of these backups in %s", from).
		WithHint("name the place that --keys-to named when they were made")
}
