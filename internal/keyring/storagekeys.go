package keyring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Storage keys encrypt what this node writes to its own disk: files of the
// state, Raft log, snapshots. They never leave the node, are in no backup and
// in no command: what they protect is built again from the log. Their file is
// wrapped for the label "storage keys"; its content is one or more times
// u32 id ‖ key 32, ids ascending; the last is current.
const (
	storageVersion = 1
	storageLabel   = "storage keys"
	storageEntry   = 4 + 32
)

// StorageKeys are the node's storage keys. Current and Key are safe for
// concurrent use, wait for nothing, and go on during Rotate and DestroyBefore.
type StorageKeys struct {
	redacted
	ring  *Keyring
	file  *journal
	table atomic.Pointer[storageTable] // nil once the keyring is closed
}

// storageTable is never changed. Keys are copied out of it, so that a table
// that was replaced cannot be wiped while somebody reads it.
type storageTable struct {
	redacted
	entries []storageKey
}

type storageKey struct {
	redacted
	id  uint32
	key secret
}

// Storage gives the keys for files that belong to this node alone.
func (k *Keyring) Storage() *StorageKeys { return k.storage }

// Current gives the key for what is written now. It panics once the keyring is
// closed: nothing may be written then, least of all under a key of zeros.
func (s *StorageKeys) Current() (id uint32, key [32]byte) {
	t := s.table.Load()
	if t == nil {
		panic("keyring: a storage key was asked for after Close")
	}
	e := &t.entries[len(t.entries)-1]
	return e.id, e.key
}

// Key gives the key with an id; false if it was destroyed, was never made, or
// the keyring is closed.
func (s *StorageKeys) Key(id uint32) (key [32]byte, ok bool) {
	t := s.table.Load()
	if t == nil {
		return key, false
	}
	for i := range t.entries {
		if t.entries[i].id == id {
			return t.entries[i].key, true
		}
	}
	return key, false
}

// Rotate makes a new key durable beside the others and then makes it current.
// After an error the former one is current still. Errors: ErrClosed, the store's.
func (s *StorageKeys) Rotate() error {
	s.ring.write.Lock()
	defer s.ring.write.Unlock()
	old := s.table.Load()
	if old == nil {
		return fmt.Errorf("rotate storage key: %w", ErrClosed)
	}
	last := old.entries[len(old.entries)-1].id
	next, err := old.with(last+1, s.ring.rand)
	if err == nil {
		err = s.save(next)
	}
	if err != nil {
		return fmt.Errorf("rotate storage key: %w", err)
	}
	s.table.Store(next)
	return nil
}

// DestroyBefore ends all keys older than id for good: they are in no copy, and
// what remains is wrapped under a new node secret, so that an older copy stays
// shut. The current key always stays. The caller has seen to it that nothing
// needs the older keys. After an error it must be called again; until then they
// are there. Errors: ErrClosed, ErrNotDestroyable for an id past the current
// one, the store's.
func (s *StorageKeys) DestroyBefore(id uint32) error {
	s.ring.write.Lock()
	defer s.ring.write.Unlock()
	old := s.table.Load()
	if old == nil {
		return fmt.Errorf("destroy storage keys before %d: %w", id, ErrClosed)
	}
	if last := old.entries[len(old.entries)-1].id; id > last {
		return fmt.Errorf("destroy storage keys before %d, the current one is %d: %w", id, last, ErrNotDestroyable)
	}
	next := new(storageTable)
	for _, e := range old.entries {
		if e.id >= id {
			next.entries = append(next.entries, e)
		}
	}
	if len(next.entries) == len(old.entries) && !s.ring.secrets.unfinished() {
		return nil
	}
	if err := s.ring.renew(&s.ring.state, next); err != nil {
		return fmt.Errorf("destroy storage keys before %d: %w", id, err)
	}
	s.table.Store(next)
	return nil
}

func (t *storageTable) with(id uint32, rand io.Reader) (*storageTable, error) {
	key, err := newSecret(rand)
	if err != nil {
		return nil, err
	}
	next := &storageTable{entries: make([]storageKey, 0, len(t.entries)+1)}
	next.entries = append(append(next.entries, t.entries...), storageKey{id: id, key: *key})
	key.wipe()
	return next, nil
}

// save seals t under the current node secret and stores it.
func (s *StorageKeys) save(t *storageTable) error {
	plain := t.encode()
	defer clear(plain)
	image, err := s.ring.secrets.wrap(storageVersion, storageLabel, plain)
	if err != nil {
		return err
	}
	return s.file.cut(image)
}

// openStorage reads the keys, or makes the first one where that is allowed.
func (k *Keyring) openStorage(file *journal, create bool) error {
	s := &StorageKeys{ring: k, file: file}
	k.storage = s
	image, _, err := file.load()
	if err != nil {
		return fmt.Errorf("open storage keys: %w", lostStorageKeys(err))
	}
	var t *storageTable
	switch {
	case image != nil:
		t, err = openStorageImage(image, k.secrets)
		err = lostStorageKeys(err)
	case create:
		if t, err = new(storageTable).with(1, k.rand); err == nil {
			err = s.save(t)
		}
	default:
		err = fmt.Errorf("%w: no %s", ErrStorageKeysLost, storageFormat.name)
	}
	if err != nil {
		return fmt.Errorf("open storage keys: %w", err)
	}
	s.table.Store(t)
	return nil
}

// lostStorageKeys says of storage keys that do not open that they are lost. The
// keyring has opened, so the master key is right, and the file is damaged or that
// of another node or day.
func lostStorageKeys(err error) error {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrMasterKeyLost) {
		return fmt.Errorf("%w: %s does not belong to the keyring or is damaged: %w", ErrStorageKeysLost, storageFormat.name, err)
	}
	return err
}

func openStorageImage(image []byte, secrets *nodeSecrets) (*storageTable, error) {
	plain, err := secrets.unwrap(storageVersion, storageLabel, image)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	return decodeStorage(plain)
}

func (t *storageTable) encode() []byte {
	b := make([]byte, 0, len(t.entries)*storageEntry)
	for i := range t.entries {
		b = binary.BigEndian.AppendUint32(b, t.entries[i].id)
		b = append(b, t.entries[i].key[:]...)
	}
	return b
}

func decodeStorage(plain []byte) (*storageTable, error) {
	if len(plain) == 0 || len(plain)%storageEntry != 0 {
		return nil, fmt.Errorf("%w: storage keys of %d bytes", ErrDamaged, len(plain))
	}
	t := new(storageTable)
	last := uint32(0)
	for ; len(plain) > 0; plain = plain[storageEntry:] {
		e := storageKey{id: binary.BigEndian.Uint32(plain), key: secret(plain[4:storageEntry])}
		if e.id <= last {
			return nil, fmt.Errorf("%w: storage keys out of order", ErrDamaged)
		}
		last = e.id
		t.entries = append(t.entries, e)
	}
	return t, nil
}
