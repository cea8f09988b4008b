package encfs

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"mneme/internal/storage"
)

// Box seals single values, such as those of a Raft log, that do not lie on an FS.
// A sealed value is
//
//	0        1        5       17            n
//	├────────┼────────┼───────┼─────────────┤
//	│version │ key id │ nonce │ AES-256-GCM │
//
// under HKDF-Expand(storage key, "mneme box " ‖ label). The nonce is random: one
// storage key is good for 2^32 values of a label. A Box is safe for concurrent use.
type Box struct {
	keys   KeySource
	label  string
	cached atomic.Pointer[boxKey] // under the key that was current last
}

type boxKey struct {
	id   uint32
	aead cipher.AEAD
}

const (
	boxVersion = 1
	boxNonce   = 5
	boxSealed  = 17
	boxTag     = 16
)

// BoxOverhead is by how much a sealed value is longer than the plain one.
const BoxOverhead = boxSealed + boxTag

// NewBox gives a Box. Values of one label do not open under another.
func NewBox(keys KeySource, label string) *Box {
	return &Box{keys: keys, label: "mneme box " + label}
}

func (b *Box) current() *boxKey {
	id, key := b.keys.Current()
	if k := b.cached.Load(); k != nil && k.id == id {
		return k
	}
	k := &boxKey{id: id, aead: aead(key, b.label)}
	b.cached.Store(k)
	return k
}

// Seal appends the sealed plaintext to dst. aad must be the same at Open. dst must
// not overlap plaintext.
func (b *Box) Seal(dst, aad, plaintext []byte) []byte {
	k := b.current()
	var head [boxSealed]byte
	head[0] = boxVersion
	binary.BigEndian.PutUint32(head[1:], k.id)
	_, _ = rand.Read(head[boxNonce:]) // never fails
	return k.aead.Seal(append(dst, head[:]...), head[boxNonce:], plaintext, aad)
}

// Open appends the opened value to dst. Errors: storage.ErrMissingKey,
// storage.ErrNewerFormat, storage.ErrDamaged.
func (b *Box) Open(dst, aad, sealed []byte) ([]byte, error) {
	if len(sealed) > 0 && sealed[0] > boxVersion {
		return nil, fmt.Errorf("%w: sealed value of version %d, known %d", storage.ErrNewerFormat, sealed[0], boxVersion)
	}
	if len(sealed) < BoxOverhead || sealed[0] != boxVersion {
		return nil, fmt.Errorf("%w: not a sealed value", storage.ErrDamaged)
	}
	id := binary.BigEndian.Uint32(sealed[1:])
	k := b.current()
	if k.id != id {
		key, ok := b.keys.Key(id)
		if !ok {
			return nil, &MissingKeyError{KeyID: id}
		}
		k = &boxKey{id: id, aead: aead(key, b.label)}
	}
	out, err := k.aead.Open(dst, sealed[boxNonce:boxSealed], sealed[boxSealed:], aad)
	if err != nil {
		return nil, fmt.Errorf("%w: a sealed value does not open", storage.ErrDamaged)
	}
	return out, nil
}
