package keyring

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"mneme/internal/storage"
)

// A backup of the keyring:
//
//	 0      8      9       10           10|42     +32      +4
//	├──────┼──────┼───────┼────────────┼─────────┼────────┼─────────────┼──────────────┼─────────┤
//	│magic │vers. │ flags │ master key │ MAC key │ u32 n  │ n ids of 16 │ sealed image │ SHA-256 │
//	└──────┴──────┴───────┴────────────┴─────────┴────────┴─────────────┴──────────────┴─────────┘
//
// Flag 1: the master key (32 bytes) is in it; otherwise the MAC key follows the
// flags. The MAC key is the expansion "backups" of the cluster key. The ids are
// those of all that lives, ascending. Version 3 has neither. The hash covers
// everything before it.
const (
	backupMagic       = "MNEMEKB\x00"
	backupVersion     = 4
	backupVersionFrom = 3 // the oldest that is read
	backupHeader      = 8 + 1 + 1
	backupWithMaster  = 1
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

// backup makes the file's bytes. It seals anew, without the node's
// secret, which stays on the node.
func (k *Keyring) backup(withMaster bool) ([]byte, error) {
	k.write.Lock()
	defer k.write.Unlock()
	if k.closed {
		return nil, ErrClosed
	}
	if k.state.blank() {
		return nil, ErrBlank
	}
	image, err := sealBackup(&k.state, k.master, k.rand)
	if err != nil {
		return nil, err
	}
	room := backupHeader + 2*len(secret{}) + 4 + 16*len(k.table.living()) + len(image) + sha256.Size
	b := make([]byte, 0, room) // as append leaves copies of keys behind
	b = append(append(b, backupMagic...), backupVersion, 0)
	if withMaster {
		b[backupHeader-1] |= backupWithMaster
		b = append(b, k.master[:]...)
	}
	b = append(k.table.appendHead(b), image...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

// sealBackup seals s under master alone: u8 version ‖ fingerprint ‖ nonce ‖ the
// image's content, sealed, with what is before the nonce as additional data.
func sealBackup(s *state, master *secret, rand io.Reader) ([]byte, error) {
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(rand, nonce[:]); err != nil {
		return nil, fmt.Errorf("seal backup: read randomness: %w", err)
	}
	key := master.derive("backup")
	defer key.wipe()
	plain := s.encode()
	defer clear(plain)
	b := append(append([]byte{imageVersion}, fingerprint(master)...), nonce[:]...)
	return newGCM(key).Seal(b, nonce[:], plain, b[:1+fingerprintSize]), nil
}

// openBackup is sealBackup's inverse; it gives the image's content.
func openBackup(image []byte, master *secret) ([]byte, error) {
	if len(image) > 0 && image[0] > imageVersion {
		return nil, fmt.Errorf("%w: image version %d, known %d", ErrNewerFormat, image[0], imageVersion)
	}
	aad := 1 + fingerprintSize
	if len(image) < aad+nonceSize+tagSize || image[0] != imageVersion {
		return nil, fmt.Errorf("%w: no image in the backup", ErrDamaged)
	}
	if string(image[1:aad]) != string(fingerprint(master)) {
		return nil, fmt.Errorf("%w: the backup was sealed under another one", ErrMasterKeyLost)
	}
	key := master.derive("backup")
	defer key.wipe()
	sealed := image[aad:]
	plain, err := newGCM(key).Open(nil, sealed[:nonceSize], sealed[nonceSize:], image[:aad])
	if err != nil {
		return nil, fmt.Errorf("%w: backup's seal broken", ErrDamaged)
	}
	return plain, nil
}

// IsBackup reports whether a file that begins with head is a backup of a keyring, as
// far as that tells.
func IsBackup(head []byte) bool { return strings.HasPrefix(string(head), backupMagic) }

// Import puts a backup in place of a keyring that is not there. A master key
// that Options.Master or the data directory has is used and kept; else the
// backup's is written. Keys that the log says were destroyed since the backup
// must be destroyed again by the caller. Errors: ErrExists, ErrMasterKeyLost
// where the master key is missing or another, ErrDamaged, ErrNewerFormat,
// ErrOlderFormat, the file system's. After an error no keyring is there.
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
	head, err := decodeBackup(raw)
	defer head.Wipe()
	if err != nil {
		return err
	}
	k := &Keyring{rand: opt.Rand, file: newJournal(ringFormat, &opt)}
	switch old, _, err := k.file.load(); {
	case err != nil && !errors.Is(err, ErrDamaged):
		return err
	case old != nil:
		return ErrExists
	}
	if k.master, err = importMaster(&opt, head.master, head.image); err != nil {
		return err
	}
	defer k.master.wipe()
	plain, err := openBackup(head.image, k.master)
	if err != nil {
		return err
	}
	defer clear(plain)
	s, err := decodeFilled(plain, new(macPool))
	if err != nil {
		return err
	}
	defer s.wipe()
	return k.install(&opt, s)
}

// importMaster gives the master key that a backup is used with.
func importMaster(opt *Options, packed *secret, image []byte) (*secret, error) {
	if opt.Master != nil {
		return masterKey(opt, image)
	}
	key, err := masterFile{opt}.read("")
	if key != nil || err != nil {
		return key, err
	}
	if packed == nil {
		return nil, fmt.Errorf("%w: neither in the backup nor in %s", ErrMasterKeyLost, opt.keys())
	}
	key = new(secret)
	*key = *packed
	return key, nil
}

// install makes the files; the image is the last of them.
func (k *Keyring) install(opt *Options, s *state) error {
	if err := storage.MkdirAll(opt.FS, opt.keys(), keysDirMode); err != nil {
		return err
	}
	if opt.Master == nil {
		if err := (masterFile{opt}).write(k.master); err != nil {
			return err
		}
	}
	if err := k.openSecrets(opt); err != nil {
		return err
	}
	if len(k.secrets.all) == 0 {
		if err := k.secrets.begin(); err != nil {
			return err
		}
	}
	return k.cut(s)
}
