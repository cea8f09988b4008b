package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

func TestBackupsGoOnFromEachOther(t *testing.T) {
	for _, shards := range []int{1, 3} {
		r := newRig(t, shards)
		full := r.backup(false)
		r.log.write(0, 2)
		second := r.backup(false)
		third := r.backup(false) // of nothing new
		r.log.write(shards-1, 5)
		fourth := r.backup(false)
		other := r.backup(true)
		if full.Parent != "" || second.Parent != full.ID || third.Parent != second.ID || fourth.Parent != third.ID || other.Parent != "" {
			t.Errorf("parents: %q %q %q %q %q", full.Parent, second.Parent, third.Parent, fourth.Parent, other.Parent)
		}
		if full.Events != 3 || second.Events != 2 || third.Events != 0 || fourth.Events != 5 || other.Events != 10 || third.Position != second.Position {
			t.Errorf("events: %d %d %d %d %d, position %q after %q", full.Events, second.Events, third.Events, fourth.Events, other.Events, third.Position, second.Position)
		}
		for _, id := range []string{fourth.ID, other.ID, ""} {
			got := r.read(id)
			for shard := range got {
				if !slices.EqualFunc(got[shard], r.log.frames[shard], bytes.Equal) {
					t.Errorf("%q, shard %d: %d messages, not %d", id, shard, len(got[shard]), len(r.log.frames[shard]))
				}
			}
		}
		if got := r.read(second.ID); len(got[0]) != 5 {
			t.Errorf("the second holds %d messages of shard 0", len(got[0]))
		}
		list, err := List(t.Context(), r.to)
		if err != nil || len(list.Backups) != 5 || list.Backups[1].ID != second.ID || list.Backups[1].Problem != "" {
			t.Errorf("%+v, %v", list, err)
		}
		if v := r.verify(); !v.OK || v.Backups != 5 || v.Newest != other.ID || v.Bytes < other.Bytes {
			t.Errorf("%+v", v)
		}
	}
}

// Each damage that a place of backups may take is found, named, and stands in the way of a
// restore of what it concerns.
func TestDamageIsNamed(t *testing.T) {
	r := newRig(t, 1)
	var ids []string
	for i := range 4 {
		r.log.write(0, 2)
		if i == 2 {
			r.log.destroy(1)
		}
		ids = append(ids, r.backup(false).ID)
	}
	foreign := newRig(t, 1)
	foreign.log = newLog(t, 'b', 1)
	stranger := foreign.backup(false).ID
	log := func(id string) string { return "log/" + id + ".log" }
	for name, tt := range map[string]struct {
		harm   func(m *mem)
		backup string
		kind   string
		also   int
	}{
		"truncated":     {func(m *mem) { m.files[log(ids[1])] = m.files[log(ids[1])][:200] }, ids[1], memory.BackupTruncated, 2},
		"missing":       {func(m *mem) { delete(m.files, log(ids[1])) }, ids[1], memory.BackupMissing, 2},
		"changed":       {func(m *mem) { b := bytes.Clone(m.files[log(ids[0])]); b[300] ^= 1; m.files[log(ids[0])] = b }, ids[0], memory.BackupChanged, 3},
		"mixed":         {func(m *mem) { m.files[log(ids[2])] = m.files[log(ids[1])] }, ids[2], memory.BackupMixed, 1},
		"foreign range": {func(m *mem) { m.files[log(ids[2])] = foreign.to.files[log(stranger)] }, ids[2], memory.BackupForeign, 1},
		"longer":        {func(m *mem) { m.files[log(ids[3])] = append(bytes.Clone(m.files[log(ids[3])]), 0) }, ids[3], memory.BackupChanged, 0},
		"manifest cut":  {func(m *mem) { n := "backups/" + ids[1] + ".json"; m.files[n] = m.files[n][:100] }, ids[1], memory.BackupUnreadable, 2},
		"manifest changed": {func(m *mem) {
			n := "backups/" + ids[3] + ".json"
			m.files[n] = bytes.Replace(m.files[n], []byte(`"seq`), []byte(`"sEq`), 1)
			m.files[n] = bytes.Replace(m.files[n], []byte(`p0.0.`), []byte(`p0.1.`), 1)
		}, ids[3], memory.BackupUnreadable, 0},
		"manifest of other": {func(m *mem) { m.files["backups/"+ids[3]+".json"] = m.files["backups/"+ids[2]+".json"] }, ids[3], memory.BackupUnreadable, 0},
		"parent missing":    {func(m *mem) { delete(m.files, "backups/"+ids[1]+".json") }, ids[2], memory.BackupMissing, 1},
		"list missing": {func(m *mem) {
			for n := range m.files {
				if strings.HasPrefix(n, "destroyed/") && strings.Contains(string(m.files[n]), "00001") {
					delete(m.files, n)
				}
			}
		}, ids[2], memory.BackupMissing, 1},
		"foreign backup": {func(m *mem) {
			for n, b := range foreign.to.files {
				m.files[n], m.times[n] = b, r.now
			}
		}, stranger, memory.BackupForeign, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
			if v := r.verify(); !v.OK {
				t.Fatalf("before: %+v", v.Problems)
			}
			tt.harm(r.to)
			v := r.verify()
			at := slices.IndexFunc(v.Problems, func(p memory.BackupProblem) bool { return p.Backup == tt.backup && p.Kind == tt.kind })
			if v.OK || at < 0 || len(v.Problems[at].Also) != tt.also {
				t.Fatalf("want %s of %s with %d behind it: %+v", tt.kind, tt.backup, tt.also, v.Problems)
			}
			if name == "foreign backup" {
				return
			}
			c, err := Choose(t.Context(), r.to, r.keys, Which{ID: tt.backup})
			if err == nil {
				_, err = c.Log.Read(t.Context(), func(uint16, uint64, []byte) error { return nil })
			}
			if err == nil {
				t.Error("it can be restored all the same")
			}
		})
	}
}

func TestKeysAreVerified(t *testing.T) {
	r := newRig(t, 1)
	first := r.backup(false).ID
	newest := r.backup(false).ID
	delete(r.keys.files, "keys/"+first+".keys")
	if v := r.verify(); !v.OK {
		t.Errorf("without older keys: %+v", v)
	}
	name := "keys/" + newest + ".keys"
	whole := r.keys.files[name]
	for kind, b := range map[string][]byte{memory.BackupChanged: whole[:50], memory.BackupMissing: nil} {
		if r.keys.files[name] = b; b == nil {
			delete(r.keys.files, name)
		}
		if v := r.verify(); v.OK || v.Problems[0].Kind != kind || v.Problems[0].Backup != newest {
			t.Errorf("%s: %+v", kind, v.Problems)
		}
		if _, err := Choose(t.Context(), r.to, r.keys, Which{ID: ""}); err == nil {
			t.Error("a restore takes them")
		}
	}
}

// A run that ends at any moment leaves nothing that counts, and the next one makes a backup.
func TestRunThatIsCutShortLeavesNoBackup(t *testing.T) {
	cut := errors.New("killed")
	for _, at := range []string{"log/", "keys/", "destroyed/", "backups/"} {
		t.Run(path.Dir(at), func(t *testing.T) {
			r := newRig(t, 1)
			first := r.backup(false)
			r.log.write(0, 2)
			r.log.destroy(1)
			killed := func(name string, b []byte) []byte {
				if strings.HasPrefix(name, at) {
					panic(cut)
				}
				return b
			}
			r.to.lie, r.keys.lie = killed, killed
			func() {
				defer func() {
					if recover() == nil {
						t.Fatal("it was not killed")
					}
				}()
				_, _ = r.try(false)
			}()
			r.to.lie, r.keys.lie = nil, nil
			v := r.verify()
			if !v.OK || v.Backups != 1 || v.Newest != first.ID || (len(v.Leftovers) == 0) != (at == "log/") {
				t.Errorf("%+v", v)
			}
			if made := r.backup(false); made.Parent != first.ID || made.Events != 2 || len(made.Removed) != 1 { // the keys of before the erasure
				t.Errorf("%+v", made)
			}
			if v := r.verify(); !v.OK || v.Backups != 2 {
				t.Errorf("%+v", v)
			}
			r.now = r.now.Add(leftoverAge)
			r.backup(false)
			if v := r.verify(); !v.OK || v.Backups != 3 || len(v.Leftovers) > 0 || len(r.keys.files) != 2 {
				t.Errorf("a day later: %+v, keys %d", v, len(r.keys.files))
			}
		})
	}
}

// A place that keeps something else than it was sent is found out before there is a backup.
func TestPlaceThatLiesIsFoundOut(t *testing.T) {
	for name, lie := range map[string]func(b []byte) []byte{
		"short":   func(b []byte) []byte { return b[:len(b)/2] },
		"flipped": func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 8; return b },
		"empty":   func([]byte) []byte { return nil },
	} {
		for _, folder := range folders {
			r := newRig(t, 1)
			r.backup(false)
			r.log.destroy(1)
			liar := func(name string, b []byte) []byte {
				if path.Dir(name) == folder {
					return lie(b)
				}
				return b
			}
			r.to.lie, r.keys.lie = liar, liar
			if _, err := r.try(false); memory.CodeOf(err) != memory.CodeLogDiverged || memory.AsError(err).Hint == "" {
				t.Errorf("%s, %s: %v", name, folder, err)
			}
			r.to.lie, r.keys.lie = nil, nil
			if v := r.verify(); folder != folderManifests && (!v.OK || v.Backups != 1) {
				t.Errorf("%s, %s: %+v", name, folder, v)
			}
			if made := r.backup(false); made.Events != 0 {
				t.Errorf("%+v", made)
			}
		}
	}
}

func TestPlaceThatIsAwayEndsTheRun(t *testing.T) {
	r := newRig(t, 1)
	away := memory.Errorf(memory.CodeUnavailable, "nobody answers")
	for _, m := range []*mem{r.to, r.keys} {
		m.away = away
		if _, err := r.try(false); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%v", err)
		}
		m.away = nil
	}
	if _, err := Verify(t.Context(), r.to, nil, nil); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("nothing was made: %v", err)
	}
	// A log that breaks off is none either.
	r.log.fail = func(w io.Writer) error {
		_, _ = io.WriteString(w, "MNEMELOG")
		return memory.Errorf(memory.CodeUnavailable, "it broke off")
	}
	if _, err := r.try(false); memory.CodeOf(err) != memory.CodeUnavailable || len(r.to.files) != 1 { // that of the run before
		t.Errorf("%v, %d files", err, len(r.to.files))
	}
}

func TestOtherClusterAndOtherLogAreRefused(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	r.log.frames[0] = r.log.frames[0][:1] // restored from an older backup, and gone on
	r.log.write(0, 9)
	r.log.frames[0][1] = append(r.log.frames[0][1][:0:0], r.log.frames[0][2]...)
	if _, err := r.try(false); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("another log: %v", err)
	}
	if made := r.backup(true); made.Parent != "" {
		t.Errorf("%+v", made)
	}
	r.log = newLog(t, 'b', 1)
	if _, err := r.try(true); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("another cluster: %v", err)
	}
	if v := r.verify(); !v.OK || v.Backups != 2 {
		t.Errorf("%+v", v)
	}
}

// A chain that is broken is not gone on from.
func TestBrokenChainIsBegunAnew(t *testing.T) {
	r := newRig(t, 1)
	first := r.backup(false)
	r.log.write(0, 1)
	r.backup(false)
	r.to.files["log/"+first.ID+".log"] = r.to.files["log/"+first.ID+".log"][:100]
	made := r.backup(false)
	if made.Parent != "" || !strings.Contains(made.Begun, first.ID) || made.Events != 4 {
		t.Errorf("%+v", made)
	}
	if got := r.read(""); len(got[0]) != 4 {
		t.Errorf("%d messages", len(got[0]))
	}
	list, err := List(t.Context(), r.to)
	if err != nil || list.Backups[0].Problem == "" || list.Backups[1].Problem == "" || list.Backups[2].Problem != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestKeysOfBeforeAnErasureAreRemoved(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	second := r.backup(false)
	if len(second.Removed) > 0 || len(r.keys.files) != 2 {
		t.Errorf("%+v, %d keys", second, len(r.keys.files))
	}
	r.log.destroy(7)
	third := r.backup(false)
	if len(third.Removed) != 2 || len(r.keys.files) != 1 || r.keys.files["keys/"+third.ID+".keys"] == nil || third.Destroyed != 1 {
		t.Errorf("%+v, %d keys", third, len(r.keys.files))
	}
	c, err := Choose(t.Context(), r.to, r.keys, Which{ID: second.ID})
	if err != nil || c.Since != 1 || len(c.Destroyed.Keys) != 1 || !bytes.Equal(c.Keys, r.keys.files["keys/"+third.ID+".keys"]) {
		t.Errorf("the older backup with the newest keys and list: %+v, %v", c, err)
	}
	if m := c.Manifest; m.Shards[0].StateHash == "" {
		t.Error("no hash to compare with")
	}
}

// A node that came back from an older copy of itself has keys that were destroyed. Its backups
// know that, all the same.
func TestDestroyedKeysOfAnOlderCopyStayDestroyed(t *testing.T) {
	r := newRig(t, 1)
	r.log.destroy(1)
	r.backup(false)
	r.log.gone = nil
	r.log.destroy(2)
	made := r.backup(true)
	if made.Destroyed != 2 || made.Unknown != 1 {
		t.Errorf("%+v", made)
	}
	whole := r.to.clone()
	for name := range r.to.files { // a list that is lost may be the only one that knows
		if strings.HasPrefix(name, "destroyed/") && strings.Contains(string(r.to.files[name]), "0002") {
			delete(r.to.files, name)
		}
	}
	if _, err := Choose(t.Context(), r.to, r.keys, Which{ID: ""}); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a restore without the list: %v", err)
	}
	if _, err := r.try(true); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, "destroyed/") {
		t.Errorf("a backup without the list: %v", err)
	}
	if c, err := Choose(t.Context(), r.to, r.keys, Which{WithoutUnreadable: true}); err != nil || c.Destroyed.Count() != 1 {
		t.Errorf("a restore that does without the list: %+v, %v", c, err)
	}
	r.to = whole // the remedy
	if made := r.backup(true); made.Destroyed != 2 || made.Unknown != 1 {
		t.Errorf("%+v", made)
	}
	c, err := Choose(t.Context(), r.to, r.keys, Which{})
	if err != nil || c.Destroyed.Count() != 2 || c.Manifest.Shards[0].StateHash != "" {
		t.Errorf("%+v, %v", c, err)
	}
}

// An older backup whose list is not in the newest one counts, too: two runs at a time knew
// nothing of each other.
func TestDestroyedKeysOfAllListsAreDestroyed(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	r.log.destroy(1)
	r.to.lie = func(name string, b []byte) []byte { // another run, in the midst of this one
		if strings.HasPrefix(name, "keys/") || strings.HasPrefix(name, "log/") {
			r.to.lie = nil
			other := &rig{t: t, log: &logOf{cluster: r.log.cluster, frames: r.log.frames, ring: r.log.ring}, to: r.to, keys: r.keys, now: r.now}
			other.log.destroy(2)
			other.backup(false)
		}
		return b
	}
	made := r.backup(false)
	if made.Destroyed != 2 || made.Unknown != 1 {
		t.Errorf("%+v", made)
	}
	set, err := ReadSet(t.Context(), r.to)
	if err != nil || len(set.Backups) != 3 || set.newest().ID != made.ID {
		t.Fatalf("%+v, %v", set, err)
	}
	// Without the list of the newest, as a run that read the place before would have left it.
	for i := range set.Backups {
		if c, err := Choose(t.Context(), r.to, r.keys, Which{ID: set.Backups[i].ID}); err != nil || c.Destroyed.Count() != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestKeysWithTheMasterWereSuperseded by newer ones without it: of a backup that was made to save
// the master key nothing was left after the next of a schedule that leaves it out.
func TestKeysWithTheMasterWereSuperseded(t *testing.T) {
	r := newRig(t, 1)
	saved := "keys/" + r.backup(false).ID + ".keys"
	without := func() memory.BackupMade {
		t.Helper()
		r.now = r.now.Add(time.Hour)
		made, err := Make(t.Context(), r.log, r.to, r.keys, Options{Full: true, WithoutMaster: true, Now: func() time.Time { return r.now }, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	without()
	r.log.destroy(1)
	if made := without(); !slices.Equal(made.KeysKept, []string{saved}) {
		t.Errorf("%+v", made)
	}
	for _, keep := range []int{8, 1} { // the second one prunes its backup, too
		p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: keep, Now: func() time.Time { return r.now }})
		if err != nil || !slices.Equal(p.KeysKept, []string{saved}) || r.keys.files[saved] == nil {
			t.Errorf("keep %d: %+v, %v", keep, p, err)
		}
	}
	r.backup(true)
	r.now = r.now.Add(48 * time.Hour) // what no backup names is left alone for a day
	if p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 8, Now: func() time.Time { return r.now }}); err != nil || len(p.KeysKept) > 0 || len(r.keys.files) != 1 {
		t.Errorf("the newest keys hold it, too: %+v, %v, %d keys", p, err, len(r.keys.files))
	}
}

// Keys that hold more than the newest stay, whatever was destroyed since.
func TestKeysThatHoldMoreThanTheNewestStay(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	older := r.log.ring
	newer := ringLike(t, older, events.ID{7})
	r.log.ring = newer
	second := r.backup(false)
	r.log.ring = older // the copy of before was put back
	r.log.destroy(1)
	third := r.backup(true)
	name := "keys/" + second.ID + ".keys"
	if len(third.Removed) != 1 || !slices.Equal(third.KeysKept, []string{name}) || r.keys.files[name] == nil {
		t.Errorf("%+v", third)
	}
	for _, dry := range []bool{true, false} {
		p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 8, Now: func() time.Time { return r.now }, DryRun: dry})
		if err != nil || !slices.Equal(p.KeysKept, []string{name}) || r.keys.files[name] == nil {
			t.Errorf("%+v, %v", p, err)
		}
	}
	c, err := Choose(t.Context(), r.to, r.keys, Which{ID: second.ID})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[events.ID][]byte{{7}: r.keys.files[name], {8}: nil, {}: nil} {
		need := Need{}
		if id != (events.ID{}) {
			need[id] = struct{}{}
		}
		if got, err := c.KeysFor(t.Context(), need); err != nil || !bytes.Equal(got, want) {
			t.Errorf("what needs %s gets %d bytes of keys, %v", id, len(got), err)
		}
	}
	// Once it lives on, it goes on from there, and nothing is kept any more.
	r.log.ring = newer
	if made := r.backup(true); len(made.KeysKept) > 0 {
		t.Errorf("%+v", made)
	}
	// That somebody destroyed the namespace is a reason to remove them.
	r.log.ring, r.log.spaces = older, []string{events.ID{7}.String()}
	held := (&logOf{ring: older}).head(t)
	for _, id := range (&logOf{ring: newer}).head(t).IDs() {
		if !held.Holds(id) && id != (events.ID{7}) {
			r.log.gone = append(r.log.gone, keyring.KeyID(id).String())
		}
	}
	if made := r.backup(true); len(made.KeysKept) > 0 || len(r.keys.files) != 1 {
		t.Errorf("%+v, %d keys", made, len(r.keys.files))
	}
}

// Who can write to the place of the log, and has no keys, makes no restore destroy anything.
func TestForgedManifestIsRefused(t *testing.T) {
	r := newRig(t, 1)
	first := r.backup(false)
	r.log.write(0, 1)
	r.backup(false)
	set, err := ReadSet(t.Context(), r.to)
	if err != nil {
		t.Fatal(err)
	}
	list := []byte(`{"keys":["00000000000000000000000000000007"],"namespaces":[]}`)
	s := newSummer()
	_, _ = s.Write(list)
	m := *set.newest()
	m.Destroyed = s.ref()
	stranger := newLog(t, 'x', 1).head(t)
	b, err := m.encode(stranger)
	if err != nil {
		t.Fatal(err)
	}
	r.to.files[m.name()], r.to.files[m.destroyedName()] = b, list
	for _, id := range []string{"", m.ID, first.ID} {
		if _, err := Choose(t.Context(), r.to, r.keys, Which{ID: id}); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(err.Error(), m.name()) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := r.try(true); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(err.Error(), m.name()) {
		t.Errorf("a backup takes it over: %v", err)
	}
	if _, err := Make(t.Context(), r.log, r.to, r.keys, Options{WithoutUnreadable: true, Now: func() time.Time { return r.now }}); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, "--full") {
		t.Errorf("a backup goes on from it: %v", err)
	}
	c, err := Choose(t.Context(), r.to, nil, Which{}) // the keys come later
	if err != nil || c.Check(r.keys.files["keys/"+m.ID+".keys"]) == nil {
		t.Errorf("keys of a file: %v", err)
	}
	v := r.verify()
	if v.OK || !slices.ContainsFunc(v.Problems, func(p memory.BackupProblem) bool { return p.Kind == memory.BackupForged && p.Backup == m.ID }) {
		t.Errorf("%+v", v.Problems)
	}
	if c, err := Choose(t.Context(), r.to, r.keys, Which{WithoutUnreadable: true}); err != nil || c.Manifest.ID != first.ID || c.Destroyed.Count() != 0 {
		t.Errorf("without it: %+v, %v", c, err)
	}
	if made, err := Make(t.Context(), r.log, r.to, r.keys, Options{Full: true, WithoutUnreadable: true, Now: func() time.Time { return r.now }}); err != nil || made.Destroyed != 0 {
		t.Errorf("%+v, %v", made, err)
	}
}

// A backup whose parents were pruned while it was made is none, and says so.
func TestBackupWhoseParentsWerePrunedMeanwhile(t *testing.T) {
	for _, at := range []string{"log/", "backups/"} {
		r := newRig(t, 1)
		first := r.backup(false)
		r.log.write(0, 1)
		r.to.lie = func(name string, b []byte) []byte {
			if !strings.HasPrefix(name, at) {
				return b
			}
			r.to.lie = nil
			other := &rig{t: t, log: r.log, to: r.to, keys: r.keys, now: r.now}
			other.backup(true)
			if p, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 1, Now: func() time.Time { return r.now }}); err != nil || !slices.Contains(p.Pruned, first.ID) {
				t.Errorf("%+v, %v", p, err)
			}
			return b
		}
		if made, err := r.try(false); memory.CodeOf(err) != memory.CodeConflict || memory.AsError(err).Hint != "run it again" {
			t.Errorf("%s: %+v, %v", at, made, err)
		}
		if v := r.verify(); !v.OK || v.Backups != 1 {
			t.Errorf("%s: %+v", at, v)
		}
		if made := r.backup(false); made.Parent == "" { // the remedy
			t.Errorf("%+v", made)
		}
	}
}

// A hash that may be that of a state without what is destroyed now says nothing.
func TestErasureDuringABackupTakesTheHash(t *testing.T) {
	r := newRig(t, 1)
	r.to.lie = func(name string, b []byte) []byte {
		if strings.HasPrefix(name, "log/") {
			r.log.destroy(1)
		}
		return b
	}
	r.backup(false)
	set, err := ReadSet(t.Context(), r.to)
	if err != nil || set.Backups[0].Shards[0].StateHash != "" {
		t.Errorf("%+v, %v", set, err)
	}
}

func TestPruneKeepsChainsWhole(t *testing.T) {
	r := newRig(t, 1)
	var ids []string
	for i := range 7 { // two chains: 0 1 2, 3 4 5 6
		r.log.write(0, 1)
		ids = append(ids, r.backup(i == 3).ID)
	}
	at := func(is ...int) (out []string) {
		for _, i := range is {
			out = append(out, ids[i])
		}
		return out
	}
	for _, tt := range []struct {
		keep Keep
		kept []string
	}{
		{Keep{Newest: 1}, at(3, 4, 5, 6)},
		{Keep{Newest: 5}, at(0, 1, 2, 3, 4, 5, 6)},
		{Keep{Within: 90 * time.Minute}, at(3, 4, 5, 6)},
		{Keep{Within: 4*time.Hour + time.Minute}, at(0, 1, 2, 3, 4, 5, 6)},
		{Keep{Within: time.Minute}, at(3, 4, 5, 6)},
	} {
		r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
		tt.keep.Now = func() time.Time { return r.now }
		tt.keep.DryRun = true
		before := len(r.to.files) + len(r.keys.files)
		dry, err := Prune(t.Context(), r.to, r.keys, tt.keep)
		if err != nil || !slices.Equal(dry.Kept, tt.kept) || len(r.to.files)+len(r.keys.files) != before {
			t.Errorf("%+v: %+v, %v", tt.keep, dry, err)
		}
		tt.keep.DryRun = false
		done, err := Prune(t.Context(), r.to, r.keys, tt.keep)
		slices.Sort(dry.Removed)
		slices.Sort(done.Removed)
		if err != nil || !slices.Equal(done.Kept, tt.kept) || !slices.Equal(done.Removed, dry.Removed) || len(r.keys.files) != 1 {
			t.Errorf("%+v: %+v, %v", tt.keep, done, err)
		}
		if v := r.verify(); !v.OK || v.Backups != len(tt.kept) || len(v.Leftovers) > 0 {
			t.Errorf("%+v: %+v", tt.keep, v)
		}
		if got := r.read(""); len(got[0]) != 10 {
			t.Errorf("%d messages are left", len(got[0]))
		}
		if made := r.backup(false); made.Parent != ids[6] {
			t.Errorf("%+v", made)
		}
	}
}

// A prune that ends at any moment leaves whole chains.
func TestPruneThatIsCutShort(t *testing.T) {
	r := newRig(t, 1)
	for i := range 6 {
		r.log.write(0, 1)
		r.backup(i == 3)
	}
	for steps := range 10 {
		r := &rig{t: t, log: r.log, to: r.to.clone(), keys: r.keys.clone(), now: r.now}
		cut := &cutting{mem: r.to, left: steps}
		_, err := Prune(t.Context(), cut, r.keys, Keep{Newest: 1, Now: func() time.Time { return r.now }})
		if v := r.verify(); !v.OK {
			t.Errorf("after %d removals (%v): %+v", steps, err, v.Problems)
		}
		if err == nil {
			return
		}
	}
	t.Error("it never came to its end")
}

type cutting struct {
	*mem
	left int
}

func (c *cutting) Remove(ctx context.Context, name string) error {
	if c.left--; c.left < 0 {
		return errors.New("killed")
	}
	return c.mem.Remove(ctx, name)
}

func TestPruneTouchesNothingBesideAManifestItCannotRead(t *testing.T) {
	r := newRig(t, 1)
	first := r.backup(false)
	r.backup(true)
	name := "backups/" + first.ID + ".json"
	r.to.files[name] = r.to.files[name][:30]
	before := len(r.to.files)
	if _, err := Prune(t.Context(), r.to, r.keys, Keep{Newest: 1, Now: time.Now}); memory.CodeOf(err) != memory.CodeLogDiverged || len(r.to.files) != before {
		t.Errorf("%v, %d of %d files", err, len(r.to.files), before)
	}
}

// A manifest that cannot be read may name the only list that knows: it is not passed over.
func TestUnreadableNewestManifestIsNotPassedOver(t *testing.T) {
	r := newRig(t, 1)
	first := r.backup(false)
	second := r.backup(false)
	name := "backups/" + second.ID + ".json"
	r.to.files[name] = r.to.files[name][:30]
	for _, id := range []string{"", first.ID} {
		if _, err := Choose(t.Context(), r.to, r.keys, Which{ID: id}); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, name) {
			t.Errorf("%q: %v", id, err)
		}
	}
	delete(r.to.files, name) // the remedy
	if c, err := Choose(t.Context(), r.to, r.keys, Which{ID: ""}); err != nil || c.Manifest.ID != first.ID {
		t.Errorf("%+v, %v", c.Manifest, err)
	}
}

func TestClockThatWentBackMakesTheNewestAllTheSame(t *testing.T) {
	r := newRig(t, 1)
	r.backup(false)
	r.now = r.now.Add(-48 * time.Hour)
	r.log.write(0, 1)
	second := r.backup(false)
	if set, err := ReadSet(t.Context(), r.to); err != nil || set.newest().ID != second.ID || second.Parent == "" {
		t.Errorf("%+v, %v", set, err)
	}
}
