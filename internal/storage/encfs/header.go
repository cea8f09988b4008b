package encfs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"mneme/internal/storage"
)

// A header is two slots, each in a disk block of its own, so that no single torn
// or lost block takes both. A slot is
//
//	0       4       5    8        12           20      32           80    84     4096
//	├───────┼───────┼────┼────────┼────────────┼───────┼────────────┼─────┼───────┤
//	│ "MNEF"│version│ 0  │ key id │ generation │ nonce │ sealed key │ CRC │   0   │
//
// integers big endian. The file key is sealed with AES-256-GCM under
// HKDF-Expand(storage key with that id, "mneme file key"), with bytes 0 to 19 as
// additional data. The CRC (Castagnoli, over bytes 0 to 79) tells a damaged slot
// from one whose key is missing. Of two slots that open, the higher generation
// counts.
const (
	headerSize = 2 * slotSize
	slotSize   = 4096

	slotMagic   = "MNEF"
	slotVersion = 1
	slotAAD     = 20
	slotNonce   = 32
	slotSealed  = 80
	slotEnd     = 84

	wrapLabel = "mneme file key"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// KeySource gives storage keys by id. Both methods may be called at any time.
type KeySource interface {
	Current() (id uint32, key [32]byte)
	Key(id uint32) (key [32]byte, ok bool)
}

// slot is one wrapping of a file key.
type slot struct {
	keyID      uint32
	generation uint64
	raw        []byte // all of its bytes up to slotEnd
}

// fileKey is what encrypts one file's content.
type fileKey struct{ block cipher.Block }

// sealSlot wraps a file key under the current storage key.
func sealSlot(secret [32]byte, generation uint64, keys KeySource) slot {
	id, key := keys.Current()
	b := make([]byte, slotEnd)
	copy(b, slotMagic)
	b[4] = slotVersion
	binary.BigEndian.PutUint32(b[8:], id)
	binary.BigEndian.PutUint64(b[12:], generation)
	_, _ = rand.Read(b[slotAAD:slotNonce]) // never fails
	wrap := aead(key, wrapLabel)
	wrap.Seal(b[:slotNonce], b[slotAAD:slotNonce], secret[:], b[:slotAAD])
	binary.BigEndian.PutUint32(b[slotSealed:], crc32.Checksum(b[:slotSealed], castagnoli))
	return slot{keyID: id, generation: generation, raw: b}
}

// header lays a slot out twice, as a new file has it.
func (s slot) header() []byte {
	b := make([]byte, headerSize)
	copy(b, s.raw)
	copy(b[slotSize:], s.raw)
	return b
}

// decodeSlot reads a slot without opening it. newer says that a newer program
// may have written it.
func decodeSlot(b []byte) (s slot, newer, ok bool) {
	if len(b) < slotEnd || string(b[:4]) != slotMagic {
		return s, false, false
	}
	if b[4] != slotVersion {
		return s, b[4] > slotVersion, false
	}
	if crc32.Checksum(b[:slotSealed], castagnoli) != binary.BigEndian.Uint32(b[slotSealed:]) {
		return s, false, false
	}
	return slot{keyID: binary.BigEndian.Uint32(b[8:]), generation: binary.BigEndian.Uint64(b[12:]), raw: b[:slotEnd]}, false, true
}

// open unwraps the file key. Errors: storage.ErrMissingKey, storage.ErrDamaged.
func (s slot) open(keys KeySource) (secret [32]byte, err error) {
	key, ok := keys.Key(s.keyID)
	if !ok {
		return secret, &MissingKeyError{KeyID: s.keyID}
	}
	plain, err := aead(key, wrapLabel).Open(nil, s.raw[slotAAD:slotNonce], s.raw[slotNonce:slotSealed], s.raw[:slotAAD])
	if err != nil {
		return secret, fmt.Errorf("%w: the file's key does not open", storage.ErrDamaged)
	}
	return [32]byte(plain), nil
}

// slots of a header. best is the index of the one that counts.
type slots struct {
	at     [2]slot
	ok     [2]bool
	best   int
	secret [32]byte
}

// same reports whether both slots hold the same wrapping.
func (s *slots) same() bool { return s.ok[0] && s.ok[1] && string(s.at[0].raw) == string(s.at[1].raw) }

// openHeader finds the file key in a header. b may hold more than the header, or
// less. Errors: storage.ErrMissingKey, storage.ErrNewerFormat, storage.ErrDamaged.
func openHeader(b []byte, keys KeySource) (*slots, error) {
	s := &slots{best: -1}
	var newer bool
	err := error(nil)
	for i := range s.at {
		var later bool
		s.at[i], later, s.ok[i] = decodeSlot(b[min(i*slotSize, len(b)):])
		newer = newer || later
	}
	order := []int{0, 1}
	if s.at[1].generation > s.at[0].generation {
		order = []int{1, 0}
	}
	for _, i := range order {
		if !s.ok[i] {
			continue
		}
		secret, openErr := s.at[i].open(keys)
		if openErr == nil {
			s.best, s.secret = i, secret
			return s, nil
		}
		if err == nil {
			err = openErr // of the slot that should have counted
		}
	}
	switch {
	case err != nil:
		return nil, err
	case newer:
		return nil, fmt.Errorf("%w: the header is of a version past %d", storage.ErrNewerFormat, slotVersion)
	}
	return nil, fmt.Errorf("%w: no header of an encrypted file", storage.ErrDamaged)
}

// newFileKey makes a file's key and its first header.
func newFileKey(keys KeySource) (*fileKey, []byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return keyOf(secret), sealSlot(secret, 1, keys).header()
}

func keyOf(secret [32]byte) *fileKey {
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // only for another length
	}
	return &fileKey{block}
}

// xor encrypts or decrypts what stands at an offset of the content. dst and src
// may be the same slice.
func (k *fileKey) xor(dst, src []byte, off int64) {
	var iv, skip [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[8:], uint64(off)/aes.BlockSize)
	s := cipher.NewCTR(k.block, iv[:])
	if n := off % aes.BlockSize; n > 0 {
		s.XORKeyStream(skip[:n], skip[:n])
	}
	s.XORKeyStream(dst[:len(src)], src)
}

// aead is AES-256-GCM under a key derived from a storage key for one use.
func aead(key [32]byte, label string) cipher.AEAD {
	derived, err := hkdf.Expand(sha256.New, key[:], label, 32)
	if err != nil {
		panic(err) // only for a length that SHA-256 cannot give
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return gcm
}
