package keyring

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	nonceSize    = 12
	tagSize      = 16
	identitySize = 16 + 4 + 4
	// Overhead is how many bytes Seal adds to the plaintext.
	Overhead = nonceSize + tagSize
)

// Identity says which value is sealed. A sealed value opens only under the
// identity it was sealed with, so no value can be passed off as another.
type Identity struct {
	Event    [16]byte // the event's id
	Part     uint32   // which value of the event
	Pipeline uint32   // version of the pipeline that made the value
}

type keyKind uint8

const (
	kindData keyKind = iota
	kindCombined
	kindCluster
	kindNode
)

// DataKey seals, opens and authenticates values. It is safe for concurrent use.
// A handle dies with its key: from Destroy or Close on, Open refuses, Seal
// gives nil and MAC gives zeros.
type DataKey struct {
	id   KeyID
	kind keyKind
	ns   NamespaceID
	tag  subjectTag // zero: the namespace's own key
	macs *macPool

	members []KeyID // of a combined key

	mu   sync.RWMutex // held for reading while the key is used, for writing while it is wiped
	raw  *secret      // nil once wiped
	gone error        // why raw is nil
	subs atomic.Pointer[subKeys]
}

// subKeys are made at first use: of a million subjects few are spoken of at a time.
type subKeys struct {
	aead  cipher.AEAD
	nonce *secret
	mac   *secret
}

// Format is for verbs that do not fit a pointer: there fmt prints what it points to.
func (s *subKeys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "redacted") }

func newSubKeys(raw *secret) *subKeys {
	enc := raw.derive("enc")
	defer enc.wipe()
	return &subKeys{aead: newGCM(enc), nonce: raw.derive("nonce"), mac: raw.derive("mac")}
}

// keysLocked gives the sub-keys; the caller holds mu for reading and raw is there.
func (d *DataKey) keysLocked() *subKeys {
	if s := d.subs.Load(); s != nil {
		return s
	}
	s := newSubKeys(d.raw)
	if !d.subs.CompareAndSwap(nil, s) {
		s.nonce.wipe()
		s.mac.wipe()
	}
	return d.subs.Load()
}

// ID returns the key's name, for clear headers.
func (d *DataKey) ID() KeyID { return d.id }

// Seal appends nonce ‖ ciphertext ‖ tag of plaintext to dst and returns the
// result, Overhead bytes longer than the two. It is AES-256-GCM with the nonce
//
//	HMAC-SHA-256(nonce key, for each x of event‖part, pipeline, aad, plaintext: len(x) ‖ x)[:12]
//
// (numbers big endian, lengths in 8 bytes), so equal input gives equal bytes.
// Event, part and pipeline are authenticated with aad. dst must not overlap the
// other slices, which are only read. Under a destroyed key it returns nil: such
// a value is erased before it was born, and its key id says so to every reader.
func (d *DataKey) Seal(dst []byte, id Identity, aad, plaintext []byte) []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.raw == nil {
		return nil
	}
	keys := d.keysLocked()
	m := d.macs.get()
	defer d.macs.put(m)
	m.aad = appendIdentity(m.aad[:0], id)
	m.begin(keys.nonce)
	m.writeLen(20)
	m.write(m.aad[:20])
	m.writeLen(4)
	m.write(m.aad[20:identitySize])
	m.writeLen(len(aad))
	m.write(aad)
	m.writeLen(len(plaintext))
	m.write(plaintext)
	copy(m.nonce[:], m.end())
	m.aad = append(m.aad, aad...)
	dst = append(slices.Grow(dst, len(plaintext)+Overhead), m.nonce[:]...)
	return keys.aead.Seal(dst, m.nonce[:], plaintext, m.aad)
}

// Open appends the plaintext of sealed to dst and returns the result. Errors:
// ErrSealBroken if anything differs from what was sealed, ErrDestroyed,
// ErrClosed. dst must not overlap the other slices, which are only read.
func (d *DataKey) Open(dst []byte, id Identity, aad, sealed []byte) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.raw == nil {
		return nil, fmt.Errorf("open sealed value under key %s: %w", d.id, d.gone)
	}
	if len(sealed) < Overhead {
		return nil, fmt.Errorf("open sealed value under key %s: %d bytes: %w", d.id, len(sealed), ErrSealBroken)
	}
	m := d.macs.get()
	defer d.macs.put(m)
	m.aad = append(appendIdentity(m.aad[:0], id), aad...)
	out, err := d.keysLocked().aead.Open(dst, sealed[:nonceSize], sealed[nonceSize:], m.aad)
	if err != nil {
		return nil, fmt.Errorf("open sealed value under key %s: %w", d.id, ErrSealBroken)
	}
	return out, nil
}

// MAC is HMAC-SHA-256(mac key, len(label) ‖ label ‖ data), the length in 8
// bytes: labels keep uses apart. Under a destroyed key it is all zeros.
func (d *DataKey) MAC(label string, data []byte) [32]byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.raw == nil {
		return [32]byte{}
	}
	return d.macs.labelled(d.keysLocked().mac, label, data)
}

// wipe ends the key, after the calls that use it now. AES's expanded key cannot
// be reached; it is left to the garbage collector.
func (d *DataKey) wipe(why error) {
	if d == nil { // a blank keyring's
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.raw == nil {
		return
	}
	d.raw.wipe()
	d.raw, d.gone = nil, why
	if s := d.subs.Swap(nil); s != nil {
		s.nonce.wipe()
		s.mac.wipe()
	}
}

// appendIdentity appends event (16) ‖ part (4) ‖ pipeline (4), big endian.
func appendIdentity(b []byte, id Identity) []byte {
	b = append(b, id.Event[:]...)
	b = binary.BigEndian.AppendUint32(b, id.Part)
	return binary.BigEndian.AppendUint32(b, id.Pipeline)
}

// String gives the key's name, nothing more.
func (d *DataKey) String() string {
	if d == nil {
		return "datakey(none)"
	}
	return "datakey(" + d.id.String() + ")"
}

// Format prints String for every verb.
func (d *DataKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// LogValue is String.
func (d *DataKey) LogValue() slog.Value { return slog.StringValue(d.String()) }

// Combined reports whether the key is made of several subjects' keys: it ends with
// any of them, and cannot be destroyed by itself.
func (d *DataKey) Combined() bool { return d.kind == kindCombined }
