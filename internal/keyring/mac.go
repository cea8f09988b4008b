package keyring

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
)

// macer computes HMAC-SHA-256 (RFC 2104) for one key after the other.
// crypto/hmac binds its state to a key and so costs allocations for each of a
// million subjects' keys; this one is pooled. Tests hold it against crypto/hmac.
type macer struct {
	inner hash.Hash
	outer hash.Hash
	pad   [sha256.BlockSize]byte
	sum   [sha256.Size]byte
	word  [8]byte
	nonce [nonceSize]byte
	aad   []byte
}

type macPool struct{ pool sync.Pool }

func (p *macPool) get() *macer {
	if m, ok := p.pool.Get().(*macer); ok {
		return m
	}
	return &macer{inner: sha256.New(), outer: sha256.New()}
}

// put wipes what depends on a key before another user sees it.
func (p *macPool) put(m *macer) {
	m.inner.Reset()
	m.outer.Reset()
	clear(m.pad[:])
	clear(m.sum[:])
	p.pool.Put(m)
}

func (m *macer) begin(key *secret) {
	for i := range m.pad {
		m.pad[i] = 0x36
		if i < len(key) {
			m.pad[i] ^= key[i]
		}
	}
	m.inner.Reset()
	m.inner.Write(m.pad[:])
	for i := range m.pad {
		m.pad[i] ^= 0x36 ^ 0x5c
	}
	m.outer.Reset()
	m.outer.Write(m.pad[:])
}

func (m *macer) write(b []byte) { m.inner.Write(b) }

func (m *macer) writeString(s string) {
	// Copied through pad, which is free between begin and end, because a
	// conversion would allocate.
	for len(s) > 0 {
		n := copy(m.pad[:], s)
		m.inner.Write(m.pad[:n])
		s = s[n:]
	}
}

// writeLen writes n as 8 bytes, big endian.
func (m *macer) writeLen(n int) {
	binary.BigEndian.PutUint64(m.word[:], uint64(n))
	m.inner.Write(m.word[:])
}

// end returns the MAC; it stays valid until the macer is put back.
func (m *macer) end() []byte {
	m.outer.Write(m.inner.Sum(m.sum[:0]))
	return m.outer.Sum(m.sum[:0])
}

// labelled is HMAC(key, len(label) ‖ label ‖ data).
func (p *macPool) labelled(key *secret, label string, data []byte) (out [32]byte) {
	m := p.get()
	defer p.put(m)
	m.begin(key)
	m.writeLen(len(label))
	m.writeString(label)
	m.write(data)
	copy(out[:], m.end())
	return out
}
