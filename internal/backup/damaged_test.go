package backup

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/memory"
)

// damagedRig holds two chains, 0 1 and 2 3, and damages what a case names.
func damagedRig(t *testing.T) (r *rig, ids []string) {
	r = newRig(t, 1)
	for i := range 4 {
		r.log.write(0, 2)
		ids = append(ids, r.backup(i == 2).ID)
	}
	return r, ids
}

// flip changes one bit, which is seen only where the file is read.
func (m *mem) flip(name string) {
	b := bytes.Clone(m.files[name])
	b[len(b)/2] ^= 1
	m.files[name] = b
}

func (r *rig) copied() *rig {
	return &rig{t: r.t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
}

func (r *rig) prune(keep Keep) (memory.BackupPruneReport, error) {
	keep.Now = func() time.Time { return r.now }
	return Prune(r.t.Context(), r.to, r.keys, keep)
}

// files are those of both places.
func (r *rig) files() map[string][]byte {
	all := maps.Clone(r.to.files)
	maps.Copy(all, r.keys.files)
	return all
}

// TestPruneRemovedTheLastGoodBackup: it looked at age and order only, kept the newest one, which
// was damaged, and removed the one before.
func TestPruneRemovedTheLastGoodBackup(t *testing.T) {
	whole, ids := damagedRig(t)
	for name, harm := range map[string]func(r *rig){
		"short":           func(r *rig) { r.to.files["log/"+ids[3]+".log"] = r.to.files["log/"+ids[3]+".log"][:100] },
		"changed":         func(r *rig) { r.to.flip("log/" + ids[3] + ".log") },
		"changed, before": func(r *rig) { r.to.flip("log/" + ids[2] + ".log") },
		"list":            func(r *rig) { r.to.flip("destroyed/" + mustSet(t, r).newest().Destroyed.SHA256 + ".json") },
		"keys":            func(r *rig) { r.keys.flip("keys/" + ids[3] + ".keys") },
		"no keys":         func(r *rig) { r.keys.files = map[string][]byte{} },
		"parent":          func(r *rig) { delete(r.to.files, "backups/"+ids[2]+".json") },
	} {
		for _, keep := range []Keep{{Newest: 1}, {Newest: 2}, {Within: time.Second}} {
			r := whole.copied()
			harm(r)
			before := r.files()
			_, err := r.prune(keep)
			if memory.CodeOf(err) != memory.CodeLogDiverged || !strings.HasPrefix(err.Error(), "nothing was pruned") || !maps.EqualFunc(before, r.files(), bytes.Equal) {
				t.Errorf("%s, %+v: %v, %d of %d files", name, keep, err, len(r.files()), len(before))
			}
			if v, err := VerifyNewest(t.Context(), r.to, r.keys, nil); err != nil || v.NewestOK || v.OK {
				t.Errorf("%s: %+v, %v", name, v, err)
			}
		}
	}
	r := whole.copied()
	r.to.flip("log/" + ids[1] + ".log") // an older one does not stand in the way
	if p, err := r.prune(Keep{Newest: 1}); err != nil || !slices.Equal(p.Kept, ids[2:]) || p.Checked != ids[3] {
		t.Errorf("%+v, %v", p, err)
	}
}

func mustSet(t *testing.T, r *rig) *Set {
	set, err := ReadSet(t.Context(), r.to)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What was read before a prune is one chain, however many there are.
func TestPruneReadsOneChain(t *testing.T) {
	r, ids := damagedRig(t)
	counted := &counting{mem: r.to, opened: map[string]int{}}
	if _, err := Prune(t.Context(), counted, r.keys, Keep{Newest: 1, Now: func() time.Time { return r.now }}); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if n := counted.opened["log/"+id+".log"]; n != i/2 {
			t.Errorf("the range of %d was read %d times", i, n)
		}
	}
}

type counting struct {
	*mem
	opened map[string]int
}

func (c *counting) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	c.opened[name]++
	return c.mem.Open(ctx, name)
}

// TestDamagedOlderChainLookedLikeADamagedNewest: both ended with 7 and said the same.
func TestDamagedOlderChainLookedLikeADamagedNewest(t *testing.T) {
	whole, ids := damagedRig(t)
	for _, tt := range []struct {
		harm     int
		newestOK bool
		intact   string
		kept     []string
	}{
		{0, true, ids[3], ids[2:]},
		{1, true, ids[3], []string{ids[0], ids[2], ids[3]}},
		{2, false, ids[1], ids[:2]},
		{3, false, ids[2], ids[:3]},
	} {
		r := whole.copied()
		r.to.flip("log/" + ids[tt.harm] + ".log")
		if v := r.verify(); v.OK || v.NewestOK != tt.newestOK || v.NewestIntact != tt.intact {
			t.Errorf("%d: %+v", tt.harm, v)
		}
		if v, err := VerifyNewest(t.Context(), r.to, r.keys, nil); err != nil || v.NewestOK != tt.newestOK || v.OK != tt.newestOK {
			t.Errorf("%d: %+v, %v", tt.harm, v, err)
		}
		if p, err := r.prune(Keep{Damaged: true, DryRun: true}); err != nil || !slices.Equal(p.Kept, tt.kept) || !r.has(ids...) {
			t.Errorf("%d: %+v, %v", tt.harm, p, err)
		}
		if p, err := r.prune(Keep{Damaged: true}); err != nil || !slices.Equal(p.Kept, tt.kept) || p.Checked != tt.intact {
			t.Errorf("%d: %+v, %v", tt.harm, p, err)
		}
		if v := r.verify(); !v.OK || len(v.Leftovers) > 0 || v.Newest != tt.intact {
			t.Errorf("%d: %+v", tt.harm, v)
		}
		if made := r.backup(false); made.Parent != tt.intact { // no full one is needed
			t.Errorf("%d: %+v", tt.harm, made)
		}
	}
}

func (r *rig) has(ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return r.to.files["backups/"+id+".json"] == nil || r.to.files["log/"+id+".log"] == nil || r.keys.files["keys/"+id+".keys"] == nil
	})
}

// Nothing that is needed goes with the damaged: the last good backup, what alone is known as
// forgotten, and keys.
func TestWhatDamagedBackupsAloneHold(t *testing.T) {
	whole, ids := damagedRig(t)
	whole.log.destroy(1)
	whole.log.write(0, 1)
	before := whole.keys.clone()
	last := whole.backup(false).ID
	refused := func(r *rig, keep Keep, says string) {
		t.Helper()
		before := r.files()
		if _, err := r.prune(keep); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(err.Error(), says) || !maps.EqualFunc(before, r.files(), bytes.Equal) {
			t.Errorf("%v, want %q; %d of %d files", err, says, len(r.files()), len(before))
		}
	}
	damaged := Keep{Damaged: true}

	r := whole.copied()
	r.to.flip("log/" + ids[0] + ".log")
	r.to.flip("log/" + ids[2] + ".log")
	refused(r, damaged, "no backup of the cluster checks")

	r = whole.copied()
	r.to.flip("log/" + last + ".log") // with the keys of all, for the erasure took those before
	refused(r, damaged, "what is left would lack keys")
	maps.Copy(whole.keys.files, before.files)

	r = whole.copied()
	r.to.flip("log/" + last + ".log") // it alone knows what was destroyed
	refused(r, damaged, last+" alone knows of 1 that was forgotten")
	r.backup(true)
	if p, err := r.prune(damaged); err != nil || !slices.Equal(p.Pruned, []string{last}) {
		t.Errorf("%+v, %v", p, err)
	}
	if c, err := Choose(t.Context(), r.to, r.keys, Which{}); err != nil || c.Destroyed.Count() != 1 {
		t.Errorf("%+v, %v", c.Destroyed, err)
	}

	r = whole.copied()
	r.to.flip(mustSet(t, r).newest().destroyedName()) // and that cannot be read
	refused(r, damaged, last+" may alone know")
	if p, err := r.prune(Keep{Damaged: true, WithoutUnreadable: true}); err != nil || !slices.Equal(p.Pruned, []string{last}) {
		t.Errorf("%+v, %v", p, err)
	}

	r = whole.copied()
	name := "backups/" + ids[1] + ".json"
	r.to.files[name] = r.to.files[name][:30]
	refused(r, damaged, "the manifest of "+ids[1])
	if p, err := r.prune(Keep{Damaged: true, WithoutUnreadable: true}); err != nil || !slices.Equal(p.Pruned, ids[1:2]) || r.to.files["log/"+ids[1]+".log"] != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if v := r.verify(); !v.OK {
		t.Errorf("%+v", v)
	}

	r = whole.copied()
	delete(r.keys.files, "keys/"+last+".keys") // keys are no damage that is removed
	refused(r, damaged, "what is left would lack keys")
}

// The keys that alone open what is left stay, and so does the backup that they were made with.
func TestKeysOfAPrunedBackupWereNeeded(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	older := r.log.ring
	r.log.ring = ringLike(t, older, events.ID{7})
	f := events.Frame{Seq: 4, Term: 1, Previous: r.log.end(0, 3).Chain, Events: [][]byte{created(t, events.ID{7})}}
	r.log.frames[0] = append(r.log.frames[0], f.Encode())
	second := r.backup(false).ID
	r.log.ring = older // of a node that came back with an older copy of its keys
	newest := r.backup(true).ID
	if v := r.verify(); !v.OK {
		t.Fatalf("%+v", v)
	}
	if p, err := r.prune(Keep{Newest: 1}); err != nil || !slices.Contains(p.Kept, second) || !slices.Contains(p.Kept, newest) {
		t.Errorf("%+v, %v", p, err)
	}
	if v := r.verify(); !v.OK {
		t.Errorf("%+v", v)
	}
	r.to.flip("log/" + second + ".log")
	if _, err := r.prune(Keep{Damaged: true}); memory.CodeOf(err) != memory.CodeLogDiverged || r.keys.files["keys/"+second+".keys"] == nil {
		t.Errorf("%v", err)
	}
}

// created is the event of a namespace.
func created(t *testing.T, id events.ID) []byte {
	e := events.Envelope{Header: events.Header{Type: events.TypeNamespaceCreated, Schema: 1, Event: events.ID{1}, Namespace: id, Name: "team-a"}, Payload: []byte("sealed")}
	b := e.Encode()
	if _, err := events.DecodeEnvelope(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// A run that makes a backup while another one reads and asks is not disturbed, and what it goes
// on from stays.
func TestBackupWhileAPruneAsks(t *testing.T) {
	whole, ids := damagedRig(t)
	r := whole.copied()
	var made string
	if p, err := r.prune(Keep{Newest: 1, Confirm: func(memory.BackupPruneReport) error { made = r.backup(false).ID; return nil }}); err != nil || !slices.Equal(p.Kept, []string{ids[2], ids[3], made}) {
		t.Errorf("%+v, %v", p, err)
	}
	if v := r.verify(); !v.OK || v.Backups != 3 {
		t.Errorf("%+v", v)
	}
	r = whole.copied()
	r.to.flip("log/" + ids[3] + ".log")
	_, err := r.prune(Keep{Damaged: true, Confirm: func(memory.BackupPruneReport) error { made = r.backup(false).ID; return nil }})
	if memory.CodeOf(err) != memory.CodeConflict || !r.has(append(ids, made)...) {
		t.Errorf("%v", err)
	}
}
