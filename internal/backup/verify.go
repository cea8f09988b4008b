package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// Verify reads everything in a place, and the keys where their place is given: each file
// against its manifest, each range against the one before it, and all against one cluster.
// What is wrong is reported; an error is that of a place.
func Verify(ctx context.Context, from, keysFrom Place, progress func(done, total uint64)) (memory.BackupVerifyReport, error) {
	started := time.Now()
	v, err := newVerifier(ctx, from, progress)
	if err != nil {
		return v.out, err
	}
	defer v.wipe()
	for i := range v.set.Backups {
		v.chosen = append(v.chosen, &v.set.Backups[i])
	}
	if err := v.all(ctx, keysFrom); err != nil {
		return v.out, err
	}
	if v.out.Leftovers, err = v.set.leftovers(ctx); err != nil {
		return v.out, err
	}
	return v.end(started), nil
}

// VerifyNewest reads of the ranges those that the newest backup is made of, and all else that
// stands in the way of restoring it: manifests, lists and keys.
func VerifyNewest(ctx context.Context, from, keysFrom Place, progress func(done, total uint64)) (memory.BackupVerifyReport, error) {
	started := time.Now()
	v, err := newVerifier(ctx, from, progress)
	if err != nil {
		return v.out, err
	}
	defer v.wipe()
	v.chosen, v.out.NewestOnly = v.set.links(v.set.newest()), true
	if err := v.all(ctx, keysFrom); err != nil {
		return v.out, err
	}
	for i := range v.set.Backups {
		if m := &v.set.Backups[i]; !slices.Contains(v.chosen, m) {
			if err := v.list(ctx, m); err != nil {
				return v.out, err
			}
		}
	}
	return v.end(started), nil
}

// links are those of a chain that are there, the full one first; nothing of nil.
func (s *Set) links(m *Manifest) (all []*Manifest) {
	for ; m != nil && len(all) < len(s.Backups); m = s.byID(m.Parent) {
		all = append(all, m)
	}
	slices.Reverse(all)
	return all
}

func noBackup(from Place) error {
	return memory.Errorf(memory.CodeNotFound, "there is no backup in %s", from).
		WithHint("look whether it is the place that was meant; memctl backup --to %s --keys-to PLACE makes one", from)
}

type verifier struct {
	set      *Set
	chosen   []*Manifest // whose ranges are read, each behind the one that it goes on from
	out      memory.BackupVerifyReport
	done     uint64 // of total, with what was read whole
	total    uint64
	progress func(done, total uint64)

	heads     []*keyring.BackupHead // of the keys that are there
	owners    []*Manifest           // with which backup each of them was made
	needs     map[string]Need       // of the range of each backup
	able      map[string][]int      // by backup: which of heads open it with all before it
	destroyed Destroyed

	// What kinds of problems concern: the backups of these ids, the keys, or any restore.
	damaged, unlisted, forged map[string]bool // log, list or chain; of them the list; the manifest
	keysWrong                 bool
	inTheWay                  bool
}

// newVerifier is one of a place that holds something.
func newVerifier(ctx context.Context, from Place, progress func(done, total uint64)) (*verifier, error) {
	set, err := ReadSet(ctx, from)
	if err != nil {
		return &verifier{}, err
	}
	v := set.verifier(progress)
	if len(set.Backups)+len(set.Bad) == 0 {
		return v, noBackup(from)
	}
	return v, nil
}

func (s *Set) verifier(progress func(done, total uint64)) *verifier {
	return &verifier{set: s, progress: progress, needs: map[string]Need{}, able: map[string][]int{}, damaged: map[string]bool{}, unlisted: map[string]bool{}, forged: map[string]bool{},
		out: memory.BackupVerifyReport{Place: s.place.String(), Backups: len(s.Backups), Problems: []memory.BackupProblem{}}}
}

func (v *verifier) wipe() {
	for _, h := range v.heads {
		h.Wipe()
	}
}

// all reads the manifests, the keys if their place is given, and the backups that were chosen.
func (v *verifier) all(ctx context.Context, keysFrom Place) error {
	for _, b := range v.set.Bad {
		v.inTheWay = true
		v.problem(b.ID, memory.BackupUnreadable, fmt.Sprintf("its manifest cannot be read: %v", b.Err))
	}
	v.eras()
	return v.read(ctx, keysFrom)
}

// read reads the keys if their place is given, and the backups that were chosen.
func (v *verifier) read(ctx context.Context, keysFrom Place) error {
	for _, m := range v.chosen {
		v.total += uint64(max(m.Log.Bytes, 0))
	}
	if keysFrom != nil {
		for _, m := range v.set.Backups {
			v.total += uint64(max(m.Keys.Bytes, 0))
		}
		if err := v.keys(ctx, keysFrom); err != nil {
			return err
		}
	}
	for _, m := range v.chosen {
		if err := v.backup(ctx, m); err != nil {
			return err
		}
	}
	if keysFrom != nil {
		v.opens(keysFrom)
	}
	v.also()
	return nil
}

// end says what came out.
func (v *verifier) end(started time.Time) memory.BackupVerifyReport {
	v.also()
	harmed := v.harmed(func(memory.BackupProblem) bool { return true })
	if m := v.set.newest(); m != nil {
		v.out.Newest, v.out.MadeAt, v.out.Position = m.ID, &m.MadeAt, m.Position()
		v.out.NewestOK = !v.inTheWay && !harmed[m.ID]
	}
	for _, m := range v.chosen {
		if !harmed[m.ID] && (!v.out.NewestOnly || v.out.NewestOK) {
			v.out.NewestIntact = m.ID
		}
	}
	v.out.OK, v.out.TookMS = len(v.out.Problems) == 0, time.Since(started).Milliseconds()
	return v.out
}

// harmed are the backups that some problems concern, with those that go on from them.
func (v *verifier) harmed(which func(memory.BackupProblem) bool) map[string]bool {
	out := map[string]bool{}
	for _, p := range v.out.Problems {
		if which(p) {
			out[p.Backup] = true
			for _, id := range p.Also {
				out[id] = true
			}
		}
	}
	return out
}

func (v *verifier) problem(id, kind, detail string) {
	v.out.Problems = append(v.out.Problems, memory.BackupProblem{Backup: id, Kind: kind, Detail: detail})
}

// eras says whose backups these are, and names those of others.
func (v *verifier) eras() {
	v.out.Eras = v.set.Eras()
	if len(v.set.Backups) == 0 {
		return
	}
	v.out.Cluster = v.set.present()
	for i := range v.set.Backups {
		if m := &v.set.Backups[i]; v.set.era(m.Cluster) == 0 {
			v.inTheWay = true
			v.problem(m.ID, memory.BackupForeign, v.set.strange(m))
		}
	}
}

// wasRead notes that a file was read, or as much as there is of it. A file counts for as many
// bytes as its manifest says, whatever it has.
func (v *verifier) wasRead(ref FileRef) {
	v.done += uint64(max(ref.Bytes, 0))
	v.reading(ref, 0)
}

// reading notes how far the reading of a file has come.
func (v *verifier) reading(ref FileRef, n int64) {
	if v.progress != nil {
		v.progress(v.done+uint64(max(min(n, ref.Bytes), 0)), v.total)
	}
}

func (v *verifier) backup(ctx context.Context, m *Manifest) error {
	before := len(v.out.Problems)
	if m.Parent == "" || v.set.byID(m.Parent) != nil {
		if p := meet(v.set.byID(m.Parent), m); p != nil {
			v.out.Problems = append(v.out.Problems, *p)
		}
	} else {
		v.problem(m.ID, memory.BackupMissing, "it goes on from "+m.Parent+", which is not here or cannot be read")
	}
	err := v.log(ctx, m)
	if err == nil {
		err = v.list(ctx, m)
	}
	if len(v.out.Problems) > before {
		v.damaged[m.ID] = true
	}
	return err
}

// list reads what was destroyed up to a backup. A restore of any other one wants to know it, too.
func (v *verifier) list(ctx context.Context, m *Manifest) error {
	b, err := readAs(ctx, v.set.place, m.destroyedName(), m.Destroyed)
	if err == nil {
		var list Destroyed
		if list, err = decodeDestroyed(b); err == nil {
			v.destroyed = list.with(v.destroyed)
			return nil
		}
	}
	if err = v.file(m, m.destroyedName(), err); err == nil {
		v.unlisted[m.ID], v.inTheWay = true, true
	}
	return err
}

// file makes a problem of what is wrong with a file; other errors stay.
func (v *verifier) file(m *Manifest, name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.problem(m.ID, memory.BackupMissing, name+" is not there")
	case errors.Is(err, ErrNotIntact):
		v.problem(m.ID, memory.BackupChanged, err.Error())
	default:
		return err
	}
	return nil
}

// log reads a range of the log. What it is in itself is told from its bytes, whatever the
// manifest says.
func (v *verifier) log(ctx context.Context, m *Manifest) error {
	defer v.wasRead(m.Log)
	r, err := v.set.place.Open(ctx, m.logName())
	if err != nil {
		return v.file(m, m.logName(), err)
	}
	sum := newSummer()
	in := io.TeeReader(r, sum)
	need := Need{}
	v.needs[m.ID] = need
	found, wrong := ReadLog(in, func(_ uint16, _ uint64, data []byte) error {
		if f, err := events.DecodeFrame(data); err == nil && len(v.heads) > 0 {
			need.See(&f)
		}
		v.reading(m.Log, sum.n)
		return ctx.Err()
	})
	_, err = io.Copy(io.Discard, in)
	if err = errors.Join(err, r.Close(), ctx.Err()); err != nil {
		return err
	}
	v.out.Bytes += sum.n
	got := sum.ref()
	if got == m.Log {
		if wrong == nil && !holds(m, found) {
			wrong = errors.New("it holds another range than its manifest says")
		}
		if wrong != nil {
			v.problem(m.ID, memory.BackupChanged, fmt.Sprintf("%s: %v", m.logName(), wrong))
		}
		return nil
	}
	kind, detail := memory.BackupChanged, notAs(m.logName(), got, m.Log).Error()
	other := slices.IndexFunc(v.set.Backups, func(o Manifest) bool { return o.Log == got })
	switch {
	case other >= 0:
		kind, detail = memory.BackupMixed, fmt.Sprintf("%s is that of %s", m.logName(), v.set.Backups[other].ID)
	case len(found) > 0 && found[0].Cluster.String() != m.Cluster:
		kind, detail = memory.BackupForeign, fmt.Sprintf("%s is of the cluster %s, not of %s", m.logName(), found[0].Cluster, m.Cluster)
	case wrong == nil:
		kind, detail = memory.BackupMixed, fmt.Sprintf("%s is a whole backup of a log, and not the one that was written there", m.logName())
	case got.Bytes < m.Log.Bytes:
		kind = memory.BackupTruncated
	}
	v.problem(m.ID, kind, detail)
	return nil
}

// holds reports whether a file holds the ranges that its manifest names.
func holds(m *Manifest, found []Section) bool {
	return slices.EqualFunc(m.Shards, found, func(r Range, s Section) bool {
		return r.After == s.After && r.End == s.End && s.Cluster.String() == m.Cluster
	})
}

// keys reads the keys that are there; those of the newest backup have to be. A manifest that
// was written without them is a problem.
func (v *verifier) keys(ctx context.Context, from Place) error {
	newest := v.set.newest()
	for i := len(v.set.Backups) - 1; i >= 0; i-- {
		m := &v.set.Backups[i]
		b, err := readAs(ctx, from, m.keysName(), m.Keys)
		v.wasRead(m.Keys)
		if errors.Is(err, fs.ErrNotExist) && m != newest {
			continue // the newest keys open it, or opens says that none do
		}
		if err == nil {
			v.out.Bytes += int64(len(b))
			head, bad := keyring.ReadBackupHead(b)
			if bad != nil {
				err = fmt.Errorf("%s: %w: %w", m.keysName(), bad, ErrNotIntact)
			} else if slices.ContainsFunc(v.heads, func(newer *keyring.BackupHead) bool { return covers(newer, head, nil) }) {
				head.Wipe() // of use to nobody; many backups have many of them
			} else {
				v.heads, v.owners = append(v.heads, head), append(v.owners, m)
			}
			clear(b)
		}
		if err != nil {
			v.keysWrong = true
			if err := v.file(m, m.keysName(), err); err != nil {
				return err
			}
		}
	}
	if len(v.heads) == 0 {
		return nil
	}
	for i := range v.set.Backups {
		m := &v.set.Backups[i]
		if !slices.ContainsFunc(v.heads, func(h *keyring.BackupHead) bool { return m.authentic(h) == nil }) {
			v.forged[m.ID], v.inTheWay = true, true
			v.problem(m.ID, memory.BackupForged, fmt.Sprintf("%s: %v", m.name(), errForged))
		}
	}
	return nil
}

// opens looks, for each chain, whether one of the keys that are there opens all of it but what
// was destroyed.
func (v *verifier) opens(from Place) {
	if len(v.heads) == 0 {
		return // which is a problem of the newest
	}
	gone := v.destroyed.set()
	for _, m := range v.chosen {
		heads := v.able[m.Parent]
		if m.Parent == "" {
			heads = make([]int, len(v.heads))
			for i := range heads {
				heads[i] = i
			}
		}
		for _, h := range heads {
			if v.needs[m.ID].open(v.heads[h], gone) {
				v.able[m.ID] = append(v.able[m.ID], h)
			}
		}
		if len(v.able[m.ID]) == 0 && (m.Parent == "" || len(heads) > 0) {
			v.keysWrong = true
			v.problem(m.ID, memory.BackupMissing, fmt.Sprintf("no keys in %s open all of its log", from))
		}
	}
}

// also names, for each problem of a chain, the backups behind it.
func (v *verifier) also() {
	for i := range v.out.Problems {
		behind := map[string]bool{v.out.Problems[i].Backup: true}
		for grew := true; grew; {
			grew = false
			for _, m := range v.set.Backups {
				if behind[m.Parent] && !behind[m.ID] {
					behind[m.ID], grew = true, true
				}
			}
		}
		delete(behind, v.out.Problems[i].Backup)
		v.out.Problems[i].Also = slices.Sorted(maps.Keys(behind))
	}
	slices.SortStableFunc(v.out.Problems, func(a, b memory.BackupProblem) int { return cmp.Compare(a.Backup, b.Backup) })
}

// leftovers are the files of a place that no manifest names.
func (s *Set) leftovers(ctx context.Context) (names []string, err error) {
	for _, folder := range []string{folderLog, folderDestroyed} {
		files, err := s.place.List(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !s.names(f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names, nil
}

// List says what a place holds, without reading the ranges of the log.
func List(ctx context.Context, from Place) (memory.BackupList, error) {
	out := memory.BackupList{Place: from.String(), Backups: []memory.BackupEntry{}, Eras: []memory.BackupEra{}}
	set, err := ReadSet(ctx, from)
	if err != nil {
		return out, err
	}
	files, err := from.List(ctx, folderLog)
	if err != nil {
		return out, err
	}
	there := sizes(files)
	out.Eras = set.Eras()
	for i := range set.Backups {
		e := set.Backups[i].entry()
		e.Era = set.era(e.Cluster)
		chain, problem := set.chain(&set.Backups[i])
		if problem == nil {
			problem = missing(chain, there)
		}
		if problem == nil && e.Era == 0 {
			problem = &memory.BackupProblem{Backup: e.ID, Detail: set.strange(&set.Backups[i])}
		}
		if problem != nil {
			e.Problem = strings.TrimPrefix(problem.Backup+": ", e.ID+": ") + problem.Detail
		}
		out.Backups = append(out.Backups, e)
	}
	for _, b := range set.Bad {
		out.Backups = append(out.Backups, memory.BackupEntry{ID: b.ID, Problem: fmt.Sprintf("its manifest cannot be read: %v", b.Err)})
	}
	return out, nil
}
