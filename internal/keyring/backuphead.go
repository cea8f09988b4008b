package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// BackupHead is what a backup of a keyring tells without being opened.
type BackupHead struct {
	redacted
	master *secret    // nil where the backup does not carry it, or ReadBackupHead has read it
	whole  bool       // the backup carries the master key
	mac    *secret    // derived from the cluster key; nil in version 3
	ids    [][16]byte // of all that lives, ascending; nil in version 3
	image  []byte     // a part of what was read
	macs   macPool
}

// ReadBackupHead checks the form of a backup and its checksum. It keeps no part of raw.
// Errors: ErrDamaged, ErrNewerFormat, ErrOlderFormat.
func ReadBackupHead(raw []byte) (*BackupHead, error) {
	h, err := decodeBackup(raw)
	if err != nil {
		return nil, err
	}
	h.master.wipe()
	h.master, h.image = nil, nil
	return h, nil
}

// Complete reports whether the backup lists what lives in it, and can authenticate: those of
// version 3 do neither.
func (h *BackupHead) Complete() bool { return h.mac != nil }

// HoldsMaster reports whether the backup carries the master key.
func (h *BackupHead) HoldsMaster() bool { return h.whole }

// Holds reports whether a key, or the keys of a namespace, live in the backup.
func (h *BackupHead) Holds(id [16]byte) bool {
	_, found := slices.BinarySearchFunc(h.ids, id, compareRaw)
	return found
}

// IDs are those of all keys and namespaces that live in the backup, ascending; not to be
// changed.
func (h *BackupHead) IDs() [][16]byte { return h.ids }

// MAC authenticates what lies beside the backups of one cluster: HMAC-SHA-256, as of
// DataKey.MAC, under a key that is derived from the cluster key. Of version 3 it is zero.
func (h *BackupHead) MAC(label string, data []byte) [32]byte {
	if h.mac == nil {
		return [32]byte{}
	}
	return h.macs.labelled(h.mac, label, data)
}

// Wipe ends it: from then on it holds and authenticates nothing.
func (h *BackupHead) Wipe() {
	if h == nil {
		return
	}
	h.master.wipe()
	h.mac.wipe()
	h.master, h.mac, h.ids, h.image = nil, nil, nil, nil
}

func compareRaw(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }

// living lists what a backup holds: the cluster key, namespaces, their keys, combined keys.
func (t *table) living() [][16]byte {
	ids := [][16]byte{t.cluster.id}
	for _, s := range t.spaces {
		ids = append(ids, s.names.id)
		for _, d := range s.keys {
			ids = append(ids, d.id)
		}
	}
	for _, c := range t.combined {
		ids = append(ids, c.id)
	}
	slices.SortFunc(ids, compareRaw)
	return slices.Compact(ids)
}

// appendHead appends the key of MAC and what lives.
func (t *table) appendHead(b []byte) []byte {
	t.cluster.mu.RLock()
	mac := t.cluster.raw.derive("backups")
	t.cluster.mu.RUnlock()
	b = append(b, mac[:]...)
	mac.wipe()
	ids := t.living()
	b = binary.BigEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

// decodeBackup gives parts of raw.
func decodeBackup(raw []byte) (*BackupHead, error) {
	if len(raw) < backupHeader+sha256.Size {
		return nil, fmt.Errorf("%w: %d bytes", ErrDamaged, len(raw))
	}
	body := raw[:len(raw)-sha256.Size]
	if string(body[:8]) != backupMagic || sha256.Sum256(body) != [sha256.Size]byte(raw[len(body):]) {
		return nil, fmt.Errorf("%w: not a keyring backup, or its checksum differs", ErrDamaged)
	}
	version, flags := body[8], body[9]
	if version > backupVersion {
		return nil, fmt.Errorf("%w: backup version %d, known %d", ErrNewerFormat, version, backupVersion)
	}
	if version < backupVersionFrom {
		return nil, fmt.Errorf("%w: backup version %d, known %d", ErrOlderFormat, version, backupVersion)
	}
	if flags&^backupWithMaster != 0 {
		return nil, fmt.Errorf("%w: flags %#x", ErrDamaged, flags)
	}
	h, r := &BackupHead{}, &tableReader{rest: body[backupHeader:]}
	if flags&backupWithMaster != 0 {
		h.master, h.whole = r.secret(), true
	}
	if version > 3 {
		h.mac = r.secret()
		for range r.count(16) {
			h.ids = append(h.ids, r.id())
		}
	}
	if r.short || !slices.IsSortedFunc(h.ids, compareRaw) {
		h.Wipe()
		return nil, fmt.Errorf("%w: the backup's head ends wrongly", ErrDamaged)
	}
	h.image = r.rest
	return h, nil
}
