package keyring

import (
	"bytes"
	"errors"
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
	wantErr(t, imported(withVersion(raw, backupHeader+33, 'x')), ErrMasterKeyLost)
	wantErr(t, imported(withVersion(raw, len(raw)-40, raw[len(raw)-40]+1)), ErrDamaged)
	wantErr(t, imported(withVersion(raw, backupHeader+32+1+fingerprintSize, 'x')), ErrDamaged)
	_, _, err := decodeBackup(withVersion(raw[:backupHeader+40], 9, 1))
	wantErr(t, err, ErrDamaged)
	wantErr(t, Import(newDisk().opt(5), iotest.ErrReader(errFault)), errFault)
	k := mustOpen(t, c.opt(2))
	wantErr(t, k.Export(failWriter{}), errFault)
}

type failWriter struct{}

func (failWriter) Write([]byte) (int, error) { return 0, errFault }
