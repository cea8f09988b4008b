package keyring

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// A backup of the keyring:
//
//	 0      8      9       10             10|42          n
//	├──────┼──────┼───────┼──────────────┼──────────────┼─────────┤
//	│magic │vers. │ flags │ master key   │ sealed image │ SHA-256 │
//	└──────┴──────┴───────┴──────────────┴──────────────┴─────────┘
//
// Flag 1: the master key (32 bytes) is in it; otherwise the image follows the
// flags. The hash covers everything before it.
const (
	backupMagic      = "MNEMEKB\x00"
	backupVersion    = 1
	backupHeader     = 8 + 1 + 1
	backupWithMaster = 1
)

// Export writes a backup that opens with the master key, which is not in it:
// keep keys/master.key elsewhere. Every Destroy makes earlier backups
// worthless for what it destroyed only if they are deleted: renew them.
func (k *Keyring) Export(w io.Writer) error { return k.export(w, false) }

// ExportWithMaster writes a backup that opens by itself. Whoever has it and the
// log can read everything.
func (k *Keyring) ExportWithMaster(w io.Writer) error { return k.export(w, true) }

func (k *Keyring) export(w io.Writer, withMaster bool) error {
	data, err := k.backup(withMaster)
	if err != nil {
		return fmt.Errorf("export keyring: %w", err)
	}
	defer clear(data)
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("export keyring: %w", err)
	}
	return nil
}

// backup makes the file's bytes. It seals anew, so it need not read a disk.
func (k *Keyring) backup(withMaster bool) ([]byte, error) {
	k.write.Lock()
	defer k.write.Unlock()
	if k.closed {
		return nil, ErrClosed
	}
	image, err := sealImage(k.table, k.master, k.mid, k.rand)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, backupHeader+len(secret{})+len(image)+sha256.Size)
	b = append(append(b, backupMagic...), backupVersion, 0)
	if withMaster {
		b[backupHeader-1] |= backupWithMaster
		b = append(b, k.master[:]...)
	}
	b = append(b, image...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// decodeBackup gives parts of raw; master is nil where there is none.
func decodeBackup(raw []byte) (master *secret, image []byte, err error) {
	if len(raw) < backupHeader+sha256.Size {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrDamaged, len(raw))
	}
	body := raw[:len(raw)-sha256.Size]
	if string(body[:8]) != backupMagic || sha256.Sum256(body) != [sha256.Size]byte(raw[len(body):]) {
		return nil, nil, fmt.Errorf("%w: not a keyring backup, or its checksum differs", ErrDamaged)
	}
	if v := body[8]; v > backupVersion {
		return nil, nil, fmt.Errorf("%w: backup version %d, known %d", ErrNewerFormat, v, backupVersion)
	}
	flags, image := body[9], body[backupHeader:]
	if body[8] != backupVersion || flags&^backupWithMaster != 0 {
		return nil, nil, fmt.Errorf("%w: version %d, flags %#x", ErrDamaged, body[8], flags)
	}
	if flags&backupWithMaster == 0 {
		return nil, image, nil
	}
	if len(image) < len(secret{}) {
		return nil, nil, fmt.Errorf("%w: no master key", ErrDamaged)
	}
	s := secret(image)
	return &s, image[len(s):], nil
}

// Import puts a backup in place of a keyring that is not there. A master key in
// the data directory is used and kept; else the backup's is written. Keys that
// the log says were destroyed since the backup must be destroyed again by the
// caller. Errors: ErrExists, ErrMasterKeyLost where the master key is missing
// or another, ErrDamaged, ErrNewerFormat, the file system's. After an error no
// keyring is there.
func Import(opt Options, r io.Reader) error {
	if err := importBackup(opt, r); err != nil {
		return fmt.Errorf("import keyring: %w", err)
	}
	return nil
}

func importBackup(opt Options, r io.Reader) error {
	if err := opt.fill(); err != nil {
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	defer clear(raw)
	packed, image, err := decodeBackup(raw)
	defer packed.wipe()
	if err != nil {
		return err
	}
	switch old, err := opt.Store.Load(); {
	case err != nil && !errors.Is(err, ErrDamaged):
		return err
	case old != nil:
		return ErrExists
	}
	master, err := readMaster(opt.FS, opt.keys())
	if err != nil {
		return err
	}
	defer master.wipe()
	use := master
	if use == nil {
		use = packed
	}
	if use == nil {
		return fmt.Errorf("%w: neither in the backup nor in %s", ErrMasterKeyLost, opt.keys())
	}
	if err := tryImage(image, use); err != nil {
		return err
	}
	return install(opt, image, master == nil, use)
}

// tryImage opens the image to see that it can be.
func tryImage(image []byte, master *secret) error {
	t, mid, err := openImage(image, master, new(macPool), newTermCache(2))
	if err != nil {
		return err
	}
	mid.wipe()
	t.wipe()
	return nil
}

func install(opt Options, image []byte, writeKey bool, master *secret) error {
	if err := opt.FS.MkdirAll(opt.keys()); err != nil {
		return err
	}
	if err := opt.FS.SyncDir(opt.Dir); err != nil {
		return err
	}
	if writeKey {
		if err := writeMaster(opt.FS, opt.keys(), master); err != nil {
			return err
		}
	}
	return opt.Store.Save(image)
}
