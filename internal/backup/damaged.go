package backup

import (
	"context"
	"fmt"
	"slices"

	"mneme/memory"
)

// undamaged reads everything and finds what checks. It refuses where letting the others go would
// take the last good backup of the present era, keys that are needed, or what alone is known as
// destroyed.
func (s *Set) undamaged(ctx context.Context, keysIn Place, keep Keep) (stays map[string]bool, newest string, err error) {
	if err := s.prunable(keep.WithoutUnreadable); err != nil {
		return nil, "", err
	}
	v := s.verifier(keep.Progress)
	defer v.wipe()
	for i := range s.Backups {
		v.chosen = append(v.chosen, &s.Backups[i])
	}
	if err := v.read(ctx, keysIn); err != nil {
		return nil, "", err
	}
	harmed := v.harmed(func(p memory.BackupProblem) bool { return v.damaged[p.Backup] || v.forged[p.Backup] })
	stays = map[string]bool{}
	left := &Set{place: s.place, lineage: s.lineage}
	for _, m := range s.Backups {
		if !harmed[m.ID] {
			stays[m.ID] = true
			left.Backups = append(left.Backups, m)
		}
	}
	last := left.newest()
	if last == nil || last.Cluster != s.present() {
		return nil, "", nothingRemoved("no backup of the cluster checks that is here now").
			WithHint("memctl backup verify --from %s says what is wrong; memctl backup --full makes one that needs none of it, then run this again", s.place)
	}
	if err := v.leftOpens(ctx, left, keysIn); err != nil {
		return nil, "", err
	}
	for i := range s.Backups {
		if m := &s.Backups[i]; harmed[m.ID] {
			if err := s.forgets(ctx, m, left, v, keep.WithoutUnreadable); err != nil {
				return nil, "", err
			}
		}
	}
	return stays, last.ID, nil
}

func nothingRemoved(format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeLogDiverged, "nothing was removed: %s", fmt.Sprintf(format, args...))
}

// leftOpens refuses where the keys of the backups that are left do not open them.
func (v *verifier) leftOpens(ctx context.Context, left *Set, keysIn Place) error {
	then := left.verifier(nil)
	defer then.wipe()
	then.needs, then.destroyed = v.needs, v.destroyed
	if err := then.keys(ctx, keysIn); err != nil {
		return err
	}
	for i := range left.Backups {
		then.chosen = append(then.chosen, &left.Backups[i])
	}
	then.opens(keysIn)
	if len(then.out.Problems) == 0 {
		return nil
	}
	p := then.out.Problems[0]
	return nothingRemoved("what is left would lack keys: %s: %s", p.Backup, p.Detail).
		WithHint("memctl backup --full makes a backup with keys of its own; or put back from a copy of %s what is named; then run this again", keysIn)
}

// forgets refuses to let a backup go that alone knows, or may know, that something was destroyed:
// a restore of another one would bring it back. A later backup holds what all before it know.
func (s *Set) forgets(ctx context.Context, m *Manifest, left *Set, v *verifier, without bool) error {
	if !v.unlisted[m.ID] && !v.forged[m.ID] {
		list, err := s.listOf(ctx, m)
		if err != nil {
			return err
		}
		known, err := left.destroyed(ctx, false)
		if err != nil {
			return err
		}
		if n := list.with(known).Count() - known.Count(); n > 0 {
			return nothingRemoved("%s alone knows of %d that %s forgotten, and a restore of another one would bring it back", m.ID, n, wasWere(n)).
				WithHint("memctl backup --full makes a backup that knows it, too; then run this again")
		}
		return nil
	}
	at := func(id string) int { return slices.IndexFunc(s.Backups, func(o Manifest) bool { return o.ID == id }) }
	if without || !v.forged[m.ID] && at(left.newest().ID) > at(m.ID) {
		return nil
	}
	return nothingRemoved("%s may alone know that something was forgotten, and that cannot be read", m.ID).
		WithHint("put %s and %s back from a copy; --without-unreadable removes it, and what it alone knew as forgotten comes back", m.name(), m.destroyedName())
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
