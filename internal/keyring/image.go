package keyring

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
)

// The keyring's image is wrapped, see nodeSecrets, for the label "keyring". Its
// content is the machine's state:
//
//	u64 index ‖ u64 term ‖ u64 index of the last destruction ‖ command key ‖ table
//
// The first three are zero in a blank one, which ends there. A snapshot is a version
// byte and the same, in clear, of a keyring that is not blank.
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
	imageVersion    = 3
	snapshotVersion = 2
	imageLabel      = "keyring"
	fingerprintSize = 8
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

// encode gives the image's content. It makes room first: a growing buffer would
// leave keys behind.
func (s *state) encode() []byte {
	b := make([]byte, 0, stateHead+len(secret{})+s.table.size())
	b = binary.BigEndian.AppendUint64(s.appendTo(b), s.ended)
	if s.blank() {
		return b
	}
	return s.table.appendTo(append(b, s.command[:]...))
}

const stateHead = cursorSize + 8

// decodeState is encode's inverse. Errors: ErrDamaged.
func decodeState(plain []byte, macs *macPool) (*state, error) {
	if len(plain) == stateHead && bytes.Equal(plain, make([]byte, stateHead)) {
		return blankState(), nil
	}
	if len(plain) < stateHead+len(secret{}) {
		return nil, fmt.Errorf("%w: state of %d bytes", ErrDamaged, len(plain))
	}
	s := &state{cursor: decodeCursor(plain), ended: binary.BigEndian.Uint64(plain[cursorSize:])}
	if s.blank() || s.ended > s.index {
		return nil, fmt.Errorf("%w: state at command %d, keys destroyed by command %d", ErrDamaged, s.index, s.ended)
	}
	command := secret(plain[stateHead:])
	t, err := decodeTable(plain[stateHead+len(command):], macs)
	if err != nil {
		return nil, err
	}
	s.changed, s.command, s.table = s.index, &command, t
	return s, nil
}

// blankState holds no key at all, so that none can be used by mistake.
func blankState() *state { return &state{table: new(table)} }

// decodeFilled is decodeState for a state that may not be blank.
func decodeFilled(plain []byte, macs *macPool) (*state, error) {
	s, err := decodeState(plain, macs)
	if err == nil && s.blank() {
		return nil, fmt.Errorf("%w: it holds nothing", ErrDamaged)
	}
	return s, err
}

func decodeSnapshot(snapshot []byte, macs *macPool) (*state, error) {
	if len(snapshot) == 0 {
		return nil, fmt.Errorf("%w: empty snapshot", ErrDamaged)
	}
	if v := snapshot[0]; v > snapshotVersion {
		return nil, fmt.Errorf("%w: snapshot version %d, known %d", ErrNewerFormat, v, snapshotVersion)
	} else if v != snapshotVersion {
		return nil, fmt.Errorf("%w: no snapshot", ErrDamaged)
	}
	return decodeFilled(snapshot[1:], macs)
}

// wipe ends a state that no keyring took over.
func (s *state) wipe() {
	s.command.wipe()
	s.table.wipe()
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

func (t *table) appendTo(b []byte) []byte {
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
