package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
)

// The sealed image:
//
//	 0      1             9                     69         81              n
//	├──────┼─────────────┼─────────────────────┼──────────┼───────────────┤
//	│vers. │ master key  │ intermediate key,   │ nonce    │ table, sealed │
//	│      │ fingerprint │ sealed under master │          │ under it      │
//	└──────┴─────────────┴─────────────────────┴──────────┴───────────────┘
//
// Both seals are AES-256-GCM with a random nonce, first the intermediate key's
// (nonce 12, key 32, tag 16) with bytes 0 to 8 as additional data, then the
// table's with bytes 0 to 68. Destroying a key takes a new intermediate key.
//
// The table, opened; ids are 16 bytes, keys 32, numbers big endian:
//
//	cluster key id ‖ cluster key
//	u32 namespaces, each: namespace id ‖ index key
//	    ‖ u32 keys, each: key id ‖ subject tag 16 ‖ data key
//	    ‖ u32 destroyed, each: key id ‖ subject tag 16
//	u32 combined, each: u32 members, each: key id (ascending)
//	u32 destroyed namespaces, each: namespace id
//	u32 other destroyed keys, each: key id
const (
	imageVersion     = 1
	fingerprintSize  = 8
	imageMasterEnd   = 1 + fingerprintSize
	imageWrapEnd     = imageMasterEnd + nonceSize + 32 + tagSize
	imageMinimumSize = imageWrapEnd + nonceSize + tagSize
)

func fingerprint(master *secret) []byte {
	f := master.derive("fingerprint")
	return f[:fingerprintSize]
}

func newGCM(key *secret) cipher.AEAD {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("keyring: AES refused 32 bytes: " + err.Error())
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic("keyring: GCM refused AES: " + err.Error())
	}
	return aead
}

// masterGCM is the AEAD that wraps intermediate keys.
func masterGCM(master *secret) cipher.AEAD {
	wrap := master.derive("wrap")
	defer wrap.wipe()
	return newGCM(wrap)
}

// sealImage seals t under mid, and mid under master.
func sealImage(t *table, master, mid *secret, rand io.Reader) ([]byte, error) {
	var nonces [2 * nonceSize]byte
	if _, err := io.ReadFull(rand, nonces[:]); err != nil {
		return nil, fmt.Errorf("seal keyring: read randomness: %w", err)
	}
	plain := t.encode()
	defer clear(plain)
	b := make([]byte, 0, imageMinimumSize+len(plain))
	b = append(b, imageVersion)
	b = append(b, fingerprint(master)...)
	b = append(b, nonces[:nonceSize]...)
	b = masterGCM(master).Seal(b, nonces[:nonceSize], mid[:], b[:imageMasterEnd])
	b = append(b, nonces[nonceSize:]...)
	return newGCM(mid).Seal(b, nonces[nonceSize:], plain, b[:imageWrapEnd]), nil
}

// openImage is sealImage's inverse. Errors: ErrNewerFormat, ErrMasterKeyLost
// where another master key was used, ErrDamaged.
func openImage(image []byte, master *secret, macs *macPool, cache *termCache) (*table, *secret, error) {
	if err := checkImage(image, master); err != nil {
		return nil, nil, err
	}
	wrapped := image[imageMasterEnd:imageWrapEnd]
	key, err := masterGCM(master).Open(nil, wrapped[:nonceSize], wrapped[nonceSize:], image[:imageMasterEnd])
	if err != nil {
		return nil, nil, fmt.Errorf("open keyring: intermediate key: %w", ErrDamaged)
	}
	mid := secret(key)
	clear(key)
	sealed := image[imageWrapEnd:]
	plain, err := newGCM(&mid).Open(nil, sealed[:nonceSize], sealed[nonceSize:], image[:imageWrapEnd])
	if err != nil {
		mid.wipe()
		return nil, nil, fmt.Errorf("open keyring: table: %w", ErrDamaged)
	}
	defer clear(plain)
	t, err := decodeTable(plain, macs, cache)
	if err != nil {
		mid.wipe()
		return nil, nil, fmt.Errorf("open keyring: %w", err)
	}
	return t, &mid, nil
}

func checkImage(image []byte, master *secret) error {
	if len(image) == 0 {
		return fmt.Errorf("open keyring: %w: empty image", ErrDamaged)
	}
	if v := image[0]; v > imageVersion {
		return fmt.Errorf("open keyring: %w: image version %d, known %d", ErrNewerFormat, v, imageVersion)
	}
	if image[0] != imageVersion || len(image) < imageMinimumSize {
		return fmt.Errorf("open keyring: %w: not an image", ErrDamaged)
	}
	if string(image[1:imageMasterEnd]) != string(fingerprint(master)) {
		return fmt.Errorf("open keyring: %w: it was sealed under another one", ErrMasterKeyLost)
	}
	return nil
}

func (t *table) size() int {
	n := 48 + 4*4 + len(t.deadSpaces)*16 + len(t.deadKeys)*16
	for _, s := range t.spaces {
		n += 48 + 8 + len(s.keys)*64 + len(s.dead)*32
	}
	for _, c := range t.combined {
		n += 4 + len(c.members)*16
	}
	return n
}

// encode makes room first: a growing buffer would leave keys behind.
func (t *table) encode() []byte {
	b := make([]byte, 0, t.size())
	count := func(n int) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	b = append(append(b, t.cluster.id[:]...), t.cluster.raw[:]...)
	count(len(t.spaces))
	for _, s := range t.spaces {
		b = append(append(b, s.names.id[:]...), s.names.index[:]...)
		count(len(s.keys))
		for _, d := range s.keys {
			b = append(append(append(b, d.id[:]...), d.tag[:]...), d.raw[:]...)
		}
		count(len(s.dead))
		for _, grave := range s.dead {
			b = append(append(b, grave.id[:]...), grave.tag[:]...)
		}
	}
	count(len(t.combined))
	for _, c := range t.combined {
		count(len(c.members))
		for _, id := range c.members {
			b = append(b, id[:]...)
		}
	}
	count(len(t.deadSpaces))
	for _, id := range t.deadSpaces {
		b = append(b, id[:]...)
	}
	count(len(t.deadKeys))
	for _, id := range t.deadKeys {
		b = append(b, id[:]...)
	}
	return b
}
