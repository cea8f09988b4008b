package backup

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/memory"
)

func clusters(eras []memory.BackupEra) (out []string) {
	for _, e := range eras {
		out = append(out, e.Cluster)
	}
	return out
}

// TestSuccessorWasRefused: once a cluster was made of another one, every backup of a schedule
// was, until a person gave it another place.
func TestSuccessorWasRefused(t *testing.T) {
	r := newRig(t, 2)
	first := r.backup(false)
	r.log.write(1, 2)
	second := r.backup(false)
	a, b := r.log, r.log.becomes('b')

	begun := r.of(b).backup(false)
	if begun.Parent != "" || begun.Cluster != b.cluster.String() || begun.Events != 6 || len(begun.Removed) > 0 || !strings.Contains(begun.Begun, a.cluster.String()) {
		t.Errorf("%+v", begun)
	}
	b.write(0, 1)
	b.destroy(1)
	newest := r.backup(false)
	if newest.Parent != begun.ID || newest.Begun != "" || newest.Events != 1 {
		t.Errorf("%+v", newest)
	}
	list, err := List(t.Context(), r.to)
	want := []memory.BackupEra{{Cluster: a.cluster.String(), Backups: 2, Newest: second.ID, MadeAt: second.MadeAt}, {Cluster: b.cluster.String(), Backups: 2, Newest: newest.ID, MadeAt: newest.MadeAt}}
	if err != nil || !slices.Equal(list.Eras, want) {
		t.Errorf("%+v, %v", list.Eras, err)
	}
	for i, e := range list.Backups {
		if e.Era != i/2+1 || e.Problem != "" {
			t.Errorf("%+v", e)
		}
	}
	if v := r.verify(); !v.OK || v.Cluster != b.cluster.String() || v.Newest != newest.ID || !slices.Equal(v.Eras, want) {
		t.Errorf("%+v", v)
	}
	for id, era := range map[string]int{"": 2, newest.ID: 2, first.ID: 1, second.ID: 1} {
		c, err := Choose(t.Context(), r.to, r.keys, Which{ID: id})
		if err != nil || c.Eras().Era != era || !slices.Equal(c.Eras().Eras, want) {
			t.Fatalf("%q: %+v, %v", id, c.Eras(), err)
		}
		// What the later era has destroyed is destroyed in what the former one left, too.
		if c.Destroyed.Count() != 1 || c.Since != 1 && era == 1 {
			t.Errorf("%q: %+v, %d since", id, c.Destroyed, c.Since)
		}
		former, anew := c.Former()
		if era == 2 && (anew || !slices.Equal(former, clusters(want[:1]))) || era == 1 && (!anew || !slices.Equal(former, clusters(want))) {
			t.Errorf("%q: what is restored goes on from %v, anew: %v", id, former, anew)
		}
	}
	if got := r.read(""); !slices.EqualFunc(got[0], b.frames[0], bytes.Equal) {
		t.Errorf("%d messages", len(got[0]))
	}

	// A node that still is the former cluster is told so, also with --full.
	for _, full := range []bool{false, true} {
		if _, err := r.of(a).try(full); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(memory.AsError(err).Hint, "took its place") {
			t.Errorf("%v", err)
		}
	}
	if v := r.verify(); !v.OK || v.Backups != 4 {
		t.Errorf("%+v", v)
	}
}

// A cluster is believed what it goes on from only where it has the keys of that one.
func TestForeignClusterIsRefusedWhateverItSays(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	a := r.log
	before := maps.Clone(r.to.files)
	twin := a.becomes('t') // of a copy of the same data, of which the next one knows nothing
	for name, tt := range map[string]struct {
		log  *logOf
		code memory.Code
	}{
		"a stranger":                {newLog(t, 'x', 1), memory.CodeConflict},
		"a stranger that says more": {func() *logOf { l := newLog(t, 'x', 1); l.former = []string{a.cluster.String()}; return l }(), memory.CodeLogDiverged},
		"one with the keys":         {func() *logOf { l := a.becomes('y'); l.former = nil; return l }(), memory.CodeConflict},
	} {
		for _, full := range []bool{false, true} {
			if _, err := r.of(tt.log).try(full); memory.CodeOf(err) != tt.code || memory.AsError(err).Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
		for file := range r.to.files {
			if strings.HasPrefix(file, folderManifests) && before[file] == nil {
				t.Errorf("%s: %s", name, file)
			}
		}
	}
	r.of(twin).backup(false)
	if _, err := r.of(a.becomes('u')).try(false); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("two clusters were made of one, and the second is taken, too: %v", err)
	}
	if v := r.verify(); !v.OK || len(v.Eras) != 2 {
		t.Errorf("%+v", v)
	}
}

// Two clusters that were made of one have no common present: nothing is restored, and nothing pruned.
func TestTwoSuccessorsInOnePlace(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	a := r.log
	one, other := r.to.clone(), r.to.clone()
	for i, to := range []*mem{one, other} {
		r.to = to
		r.of(a.becomes('b' + byte(i))).backup(false)
	}
	maps.Copy(one.files, other.files)
	r.to = one
	if v := r.verify(); v.OK || len(v.Problems) != 1 || v.Problems[0].Kind != memory.BackupForeign {
		t.Errorf("%+v", v.Problems)
	}
	if _, err := Choose(t.Context(), one, r.keys, Which{}); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
	if _, err := Prune(t.Context(), one, r.keys, Keep{Newest: 1, Now: time.Now}); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
}

// What a cluster goes on from is known from its manifests where the node has forgotten it, and
// an era of which no backup was made is passed over.
func TestErasOfErasAreKnown(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	a := r.log
	b := a.becomes('b')
	r.of(b).backup(false)
	b.former = nil // as one that was restored elsewhere
	if made := r.backup(false); made.Parent == "" {
		t.Errorf("%+v", made)
	}
	d := b.becomes('c').becomes('d') // of c there is no backup, and of a it knows nothing
	r.of(d).backup(false)
	if v := r.verify(); !v.OK || !slices.Equal(clusters(v.Eras), []string{a.cluster.String(), b.cluster.String(), d.cluster.String()}) {
		t.Errorf("%+v", v)
	}
	c, err := Choose(t.Context(), r.to, r.keys, Which{})
	if want := []string{a.cluster.String(), b.cluster.String(), events.ID{15: 'c'}.String()}; err != nil || !slices.Equal(c.Manifest.Former, want) {
		t.Errorf("%v, want %v: %v", c.Manifest.Former, want, err)
	}
	// Once the first backup of an era is gone the others still know.
	if p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 1, Now: func() time.Time { return r.now }}); err != nil || len(p.Kept) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := r.of(a).try(false); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(memory.AsError(err).Hint, "took its place") {
		t.Errorf("%v", err)
	}
}

// A run of the former cluster that ends once the next era has begun makes no backup, and which
// era is the present does not hang on clocks.
func TestRunOfTheFormerClusterEndsLate(t *testing.T) {
	for _, at := range []string{"log/", "backups/"} {
		r := newRig(t, 1)
		r.backup(false)
		a := r.log
		var begun memory.BackupMade
		r.to.lie = func(name string, b []byte) []byte {
			if strings.HasPrefix(name, at) {
				r.to.lie = nil
				begun = (&rig{t: t, log: a.becomes('b'), to: r.to, keys: r.keys, now: r.now.Add(-time.Minute)}).backup(false)
			}
			return b
		}
		if _, err := r.try(false); memory.CodeOf(err) != memory.CodeConflict {
			t.Errorf("%s: %v", at, err)
		}
		if c, err := Choose(t.Context(), r.to, r.keys, Which{}); err != nil || c.Manifest.ID != begun.ID {
			t.Errorf("%s: %+v, %v", at, c.Manifest, err)
		}
		if v := r.verify(); !v.OK || v.Backups != 2 {
			t.Errorf("%s: %+v", at, v)
		}
	}
	r := newRig(t, 1)
	r.backup(false)
	a := r.log
	late := r.to.clone()
	r.of(a.becomes('b'))
	begun := r.backup(false)
	r2 := &rig{t: t, log: a, to: late, keys: r.keys, now: r.now.Add(time.Hour)}
	r2.backup(false)
	maps.Copy(r.to.files, late.files) // as a copy that was put back, with a backup of later
	r.now = r2.now
	if c, err := Choose(t.Context(), r.to, r.keys, Which{}); err != nil || c.Manifest.ID != begun.ID {
		t.Errorf("%+v, %v", c.Manifest, err)
	}
	if made := r.backup(false); made.Parent != begun.ID {
		t.Errorf("%+v", made)
	}
}

// Who has no keys makes no cluster go on from another one.
func TestForgedFormerIsNotTakenOver(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	set, err := ReadSet(t.Context(), r.to)
	if err != nil {
		t.Fatal(err)
	}
	m := *set.newest()
	m.ID, m.Former, m.MadeAt = "20260301T050000Z-forged", []string{events.ID{15: 'x'}.String()}, r.now.Add(time.Hour)
	b, err := m.encode(newLog(t, 'x', 1).head(t))
	if err != nil {
		t.Fatal(err)
	}
	r.to.files[m.name()] = b
	made, err := Make(t.Context(), r.log, r.to, r.keys, Options{Full: true, WithoutUnreadable: true, Now: func() time.Time { return r.now.Add(2 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	if set, err = ReadSet(t.Context(), r.to); err != nil || len(set.byID(made.ID).Former) > 0 {
		t.Errorf("%+v, %v", set.byID(made.ID), err)
	}
}

// Retention goes over eras, and never takes the last whole chain of the present one.
func TestPruneOverEras(t *testing.T) {
	r := newRig(t, 1)
	var ids []string
	add := func(full bool) {
		r.log.write(0, 1)
		ids = append(ids, r.backup(full).ID)
	}
	add(false) // 0 1 | 2 3, 4 5
	add(false)
	r.of(r.log.becomes('b'))
	add(false)
	add(false)
	add(true)
	add(false)
	for name, tt := range map[string]struct {
		keep Keep
		harm string // a range of the log that is gone
		kept []string
	}{
		"the newest":                            {Keep{Newest: 1}, "", ids[4:]},
		"of the present era":                    {Keep{Newest: 4}, "", ids[2:]},
		"of both":                               {Keep{Newest: 5}, "", ids},
		"by time":                               {Keep{Within: 4*time.Hour + time.Minute}, "", ids},
		"the newest, which is not whole":        {Keep{Newest: 1}, ids[4], nil},
		"the damaged":                           {Keep{Damaged: true}, ids[4], ids[:4]},
		"the damaged of the era before":         {Keep{Damaged: true}, ids[1], slices.Concat(ids[:1], ids[2:])},
		"none of the present era that is whole": {Keep{Damaged: true}, ids[2] + ids[4], nil},
	} {
		r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
		for _, id := range ids {
			if strings.Contains(tt.harm, id) {
				delete(r.to.files, "log/"+id+".log")
			}
		}
		tt.keep.Now = func() time.Time { return r.now }
		before := len(r.to.files) + len(r.keys.files)
		p, err := Prune(t.Context(), r.to, r.keys, tt.keep)
		if tt.kept == nil {
			if memory.CodeOf(err) != memory.CodeLogDiverged || len(r.to.files)+len(r.keys.files) != before {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
			continue
		}
		if err != nil || !slices.Equal(p.Kept, tt.kept) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if v := r.verify(); !v.OK || v.Backups != len(tt.kept) || len(v.Leftovers) > 0 {
			t.Errorf("%s: %+v", name, v)
		}
		if made := r.backup(false); made.Parent != tt.kept[len(tt.kept)-1] {
			t.Errorf("%s: %+v", name, made)
		}
	}
}

// Keys that only a former era's backups need stay as long as those do.
func TestKeysOfAFormerEraStay(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	older := r.log.ring
	r.log.ring = ringLike(t, older, events.ID{7})
	second := r.backup(false)
	name := "keys/" + second.ID + ".keys"
	b := r.log.becomes('b')
	b.ring = older // recovered from a node that lacked the last keys
	b.destroy(1)
	made := r.of(b).backup(false)
	if !slices.Equal(made.KeysKept, []string{name}) {
		t.Errorf("%+v", made)
	}
	if v := r.verify(); !v.OK {
		t.Errorf("%+v", v)
	}
	b.destroy(2)
	r.backup(false)
	for keep, stay := range map[int]bool{4: true, 1: false} {
		r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
		p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: keep, Now: func() time.Time { return r.now }})
		if err != nil || slices.Contains(p.KeysKept, name) != stay || (r.keys.files[name] != nil) != stay {
			t.Errorf("keep %d: %+v, %v", keep, p, err)
		}
	}
}

// TestPruneCountedOnlyBackups: the manifests, the keys and what killed runs left went, too, and
// nobody heard of it, or of their size.
func TestPruneCountedOnlyBackups(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	r.log.destroy(1)
	r.backup(false)
	r.backup(true)
	r.to.files["log/left.log"], r.to.times["log/left.log"] = []byte("left"), firstDay.Add(-48*time.Hour)
	for _, dry := range []bool{true, false} {
		before := maps.Clone(r.to.files)
		maps.Copy(before, r.keys.files)
		p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 1, Now: func() time.Time { return r.now }, DryRun: dry})
		var size int64
		keys := 0
		for _, name := range p.Removed {
			b, there := before[name]
			if !there {
				t.Errorf("%s was not there", name)
			}
			size += int64(len(b))
			if strings.HasPrefix(name, folderKeys) {
				keys++
			}
			_, a := r.to.files[name]
			_, b2 := r.keys.files[name]
			if (a || b2) != dry {
				t.Errorf("%s, dry: %v", name, dry)
			}
		}
		// Two manifests, two ranges, the list of before the erasure, the left range, two keys.
		if err != nil || len(p.Pruned) != 2 || p.Files != len(p.Removed) || p.Files != 7 || p.Keys != keys || keys != 1 || p.Bytes != size || size == 0 {
			t.Errorf("dry %v: %+v, %d bytes, %d keys, %v", dry, p, size, keys, err)
		}
		if gone := len(before) - len(r.to.files) - len(r.keys.files); !dry && gone != p.Files {
			t.Errorf("%d files are gone: %+v", gone, p)
		}
	}
}

// TestProgressOfAVerificationRanPastItsTotal, for it counted the keys as done and not as to do.
func TestProgressOfAVerificationRanPastItsTotal(t *testing.T) {
	r := newRig(t, 1)
	var ids []string
	for range 3 {
		r.log.write(0, 40)
		ids = append(ids, r.backup(false).ID)
	}
	log := "log/" + ids[1] + ".log"
	for name, harm := range map[string]func(r *rig){
		"whole":     func(*rig) {},
		"longer":    func(r *rig) { r.to.files[log] = append(bytes.Clone(r.to.files[log]), r.to.files[log]...) },
		"truncated": func(r *rig) { r.to.files[log] = r.to.files[log][:100] },
		"missing":   func(r *rig) { delete(r.to.files, log); delete(r.keys.files, "keys/"+ids[0]+".keys") },
	} {
		for _, withKeys := range []bool{true, false} {
			r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
			harm(r)
			var keys Place
			if withKeys {
				keys = r.keys
			}
			var last, total uint64
			calls := 0
			if _, err := Verify(t.Context(), r.to, keys, func(done, of uint64) {
				if done < last || done > of || total != 0 && of != total {
					t.Errorf("%s: %d of %d, after %d of %d", name, done, of, last, total)
				}
				last, total = done, of
				calls++
			}); err != nil {
				t.Fatal(err)
			}
			if last != total || total == 0 || calls < 4 {
				t.Errorf("%s: it ends at %d of %d, told %d times", name, last, total, calls)
			}
		}
	}
}
