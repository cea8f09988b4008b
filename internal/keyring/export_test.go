package keyring

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestBackup(t *testing.T) {
	c, id := filled(t)
	k := mustOpen(t, c.opt(2))
	var plain, full bytes.Buffer
	if err := errors.Join(k.Export(&plain), k.ExportWithMaster(&full)); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(plain.Bytes(), k.master[:]) || !bytes.Contains(full.Bytes(), k.master[:]) {
		t.Fatal("the master key is where it should not be")
	}
	want := probe(k.lookup.keys[id])
	check := func(c *disk) {
		t.Helper()
		opt := c.opt(3)
		opt.AllowCreate, opt.AllowNewStorage = false, true // storage keys are in no backup
		if d := must[*DataKey](t)(mustOpen(t, opt).KeyByID(id)); probe(d) != want {
			t.Fatal("another key came back")
		}
	}
	empty := newDisk()
	wantErr(t, Import(empty.opt(4), bytes.NewReader(plain.Bytes())), ErrMasterKeyLost)
	if len(empty.files()) != 0 {
		t.Fatal("a failed import left files")
	}
	if err := Import(empty.opt(4), bytes.NewReader(full.Bytes())); err != nil {
		t.Fatal(err)
	}
	check(empty)
	wantErr(t, Import(empty.opt(4), bytes.NewReader(full.Bytes())), ErrExists)

	keyOnly := newDisk()
	keyOnly.put(c.path(masterName), c.get(c.path(masterName)))
	// Damaged copies are no keyring to keep.
	keyOnly.put(c.path(primaryName), []byte("junk"))
	if err := Import(keyOnly.opt(4), bytes.NewReader(plain.Bytes())); err != nil {
		t.Fatal(err)
	}
	check(keyOnly)

	wrong := newDisk()
	wrong.put(c.path(masterName), encodeMaster(fixedKey(1).raw))
	wantErr(t, Import(wrong.opt(4), bytes.NewReader(full.Bytes())), ErrMasterKeyLost)
}

func TestBackupDamage(t *testing.T) {
	c, _ := filled(t)
	var full bytes.Buffer
	if err := mustOpen(t, c.opt(2)).ExportWithMaster(&full); err != nil {
		t.Fatal(err)
	}
	raw := full.Bytes()
	imported := func(b []byte) error { return Import(newDisk().opt(5), bytes.NewReader(b)) }
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x10
		wantErr(t, imported(bad), ErrDamaged)
		wantErr(t, imported(raw[:i]), ErrDamaged)
	}
	wantErr(t, imported(withVersion(raw, 8, backupVersion+1)), ErrNewerFormat)
	wantErr(t, imported(withVersion(raw, 8, 0)), ErrOlderFormat)
	wantErr(t, imported(withVersion(raw, 9, 3)), ErrDamaged)
	image := len(raw) - len(must[*BackupHead](t)(decodeBackup(raw)).image) - sha256.Size
	wantErr(t, imported(withVersion(raw, image+1, 'x')), ErrMasterKeyLost)
	wantErr(t, imported(withVersion(raw, len(raw)-40, raw[len(raw)-40]+1)), ErrDamaged)
	wantErr(t, imported(withVersion(raw, image+1+fingerprintSize, 'x')), ErrDamaged)
	_, err := decodeBackup(withVersion(raw[:backupHeader+40], 9, 1))
	wantErr(t, err, ErrDamaged)
	wantErr(t, Import(newDisk().opt(5), iotest.ErrReader(errFault)), errFault)
	k := mustOpen(t, c.opt(2))
	wantErr(t, k.Export(failWriter{}), errFault)
}

type failWriter struct{}

func (failWriter) Write([]byte) (int, error) { return 0, errFault }

// The head of a backup tells what lives in it, and authenticates what lies beside it, whatever
// was created or destroyed in between and whether its master key is in it.
func TestBackupHead(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
	if err != nil {
		t.Fatal(err)
	}
	both := must[*DataKey](t)(k.Combine(ids))
	head := func(export func(io.Writer) error) *BackupHead {
		t.Helper()
		var b bytes.Buffer
		if err := export(&b); err != nil {
			t.Fatal(err)
		}
		h := must[*BackupHead](t)(ReadBackupHead(b.Bytes()))
		clear(b.Bytes())
		return h
	}
	before := head(k.Export)
	for _, id := range [][16]byte{nsA, ids[0], ids[1], both.ID(), k.Cluster().ID()} {
		if !before.Holds(id) {
			t.Errorf("%x lives and is not told", id)
		}
	}
	if err := k.Destroy(ids[0]); err != nil {
		t.Fatal(err)
	}
	after := head(k.ExportWithMaster)
	if after.Holds(ids[0]) || after.Holds(both.ID()) || !after.Holds(ids[1]) || !before.Complete() || !after.Complete() || len(after.IDs()) != len(before.IDs())-2 {
		t.Errorf("%d ids, before %d", len(after.IDs()), len(before.IDs()))
	}
	mac := before.MAC("label", []byte("data"))
	if mac != after.MAC("label", []byte("data")) || mac == before.MAC("label", []byte("other")) || mac == before.MAC("other", []byte("data")) || mac == [32]byte{} {
		t.Error("the MAC is not that of the cluster")
	}
	if other := head(mustOpen(t, newDisk().opt(2)).Export); other.MAC("label", []byte("data")) == mac {
		t.Error("another cluster authenticates")
	}
}

// What earlier programs wrote is still read; it tells nothing.
func TestBackupOfVersion3IsRead(t *testing.T) {
	c, _ := filled(t)
	var full bytes.Buffer
	if err := mustOpen(t, c.opt(2)).ExportWithMaster(&full); err != nil {
		t.Fatal(err)
	}
	h := must[*BackupHead](t)(decodeBackup(full.Bytes()))
	old := append([]byte(backupMagic), 3, backupWithMaster)
	old = append(append(old, h.master[:]...), h.image...)
	sum := sha256.Sum256(old)
	old = append(old, sum[:]...)
	if err := Import(newDisk().opt(4), bytes.NewReader(old)); err != nil {
		t.Error(err)
	}
	if h := must[*BackupHead](t)(ReadBackupHead(old)); h.Complete() || len(h.IDs()) > 0 {
		t.Errorf("%+v", h)
	}
}
