package keyring

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
)

// Storage keys encrypt what this node writes to its own disk: files of the
// state, Raft log, snapshots. They never leave the node, are in no backup and
// in no command: what they protect is built again from the log. Their file's
// image is
//
//	 0      1             9             17         29              n
//	├──────┼─────────────┼─────────────┼──────────┼───────────────┤
//	│vers. │ master key  │ node secret │ nonce    │ table, sealed │
//	│      │ fingerprint │ print       │          │               │
//	└──────┴─────────────┴─────────────┴──────────┴───────────────┘
//
// sealed with AES-256-GCM under the wrapping key for the label "storage keys",
// with bytes 0 to 16 as additional data. The table, opened, is one or more
// times u32 id ‖ key 32, ids ascending; the last is current.
const (
	storageVersion = 1
	storageAAD     = 1 + fingerprintSize + secretPrintSize
	storageLabel   = "storage keys"
	storageEntry   = 4 + 32
)

// StorageKeys are the node's storage keys. Current and Key are safe for
// concurrent use, wait for nothing, and go on during Rotate and DestroyBefore.
type StorageKeys struct {
	redacted
	ring  *Keyring
	store Store
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
	secrets := s.ring.secrets
	if len(next.entries) == len(old.entries) && !secrets.unfinished() {
		return nil
	}
	err := secrets.begin()
	if err == nil {
		err = s.save(next)
	}
	if err == nil {
		err = secrets.finish()
	}
	if err != nil {
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
	secrets := s.ring.secrets
	wrap, print := secrets.wrapping(storageLabel)
	defer wrap.wipe()
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(s.ring.rand, nonce[:]); err != nil {
		return fmt.Errorf("seal storage keys: read randomness: %w", err)
	}
	plain := t.encode()
	defer clear(plain)
	b := make([]byte, 0, storageAAD+nonceSize+len(plain)+tagSize)
	b = append(append(b, storageVersion), fingerprint(secrets.master)...)
	b = append(append(b, print[:]...), nonce[:]...)
	return s.store.Save(newGCM(wrap).Seal(b, nonce[:], plain, b[:storageAAD]))
}

// openStorage reads the keys, or makes the first one where that is allowed. A
// renewal of the node's secret that was cut short is brought to its end.
func (k *Keyring) openStorage(store Store, create bool) error {
	s := &StorageKeys{ring: k, store: store}
	image, err := store.Load()
	if err != nil {
		return fmt.Errorf("open storage keys: %w", err)
	}
	var t *storageTable
	switch {
	case image != nil && len(k.secrets.all) > 0:
		t, err = openStorageImage(image, k.secrets)
	case image != nil:
		err = fmt.Errorf("%w: no %s", ErrStorageKeysLost, secretFormat.name)
	case create:
		t, err = s.first()
	default:
		err = fmt.Errorf("%w: no %s", ErrStorageKeysLost, storageFormat.name)
	}
	if err == nil && k.secrets.unfinished() {
		if err = s.save(t); err == nil {
			err = k.secrets.finish()
		}
	}
	if err != nil {
		return fmt.Errorf("open storage keys: %w", err)
	}
	s.table.Store(t)
	k.storage = s
	return nil
}

// first makes the node's secret, unless a start that was cut short left one,
// and then the first key.
func (s *StorageKeys) first() (*storageTable, error) {
	if len(s.ring.secrets.all) == 0 {
		if err := s.ring.secrets.begin(); err != nil {
			return nil, err
		}
	}
	t, err := new(storageTable).with(1, s.ring.rand)
	if err != nil {
		return nil, err
	}
	return t, s.save(t)
}

func openStorageImage(image []byte, secrets *nodeSecrets) (*storageTable, error) {
	if len(image) > 0 && image[0] > storageVersion {
		return nil, fmt.Errorf("%w: version %d, known %d", ErrNewerFormat, image[0], storageVersion)
	}
	if len(image) < storageAAD+nonceSize+tagSize || image[0] != storageVersion {
		return nil, fmt.Errorf("%w: not storage keys", ErrDamaged)
	}
	if string(image[1:1+fingerprintSize]) != string(fingerprint(secrets.master)) {
		return nil, fmt.Errorf("%w: the storage keys were sealed under another one", ErrMasterKeyLost)
	}
	wrap, err := secrets.unwrapping(storageLabel, [secretPrintSize]byte(image[1+fingerprintSize:storageAAD]))
	if err != nil {
		return nil, err
	}
	defer wrap.wipe()
	sealed := image[storageAAD:]
	plain, err := newGCM(wrap).Open(nil, sealed[:nonceSize], sealed[nonceSize:], image[:storageAAD])
	if err != nil {
		return nil, fmt.Errorf("%w: seal broken", ErrDamaged)
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
