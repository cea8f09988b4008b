package raftfsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// Sealer encrypts and authenticates single values. It is safe for concurrent use.
type Sealer interface {
	// Seal appends the sealed form of plaintext to dst. Whoever opens it must
	// give the same aad.
	Seal(dst, aad, plaintext []byte) []byte
	// Open appends the plaintext to dst. It fails if a byte of sealed or aad is
	// another one, and if the key is gone.
	Open(dst, aad, sealed []byte) ([]byte, error)
}

// A value of raft.db is framed. For a log entry the frame stands in the entry's
// Data and also covers the fields beside it; for a stable value it covers the
// key. There are two frames; a group uses one of them and refuses the other:
//
//	byte 0     version = 1              byte 0   version = 2
//	bytes 1..4 CRC-32C, little endian   bytes 1..  what Sealer.Seal made of data,
//	bytes 5..  data                                the cover being the aad
//
// The cover of a log entry: index (8), term (8), type (1), length of extensions
// (4), all little endian, extensions. AppendedAt is outside: nothing depends on
// it. The cover of a stable value: length of key (4), key. A CRC is taken over
// the cover and the data. As aad the cover follows one byte, 'e' or 'v'.
const (
	frameSummed = 1
	frameSealed = 2
	frameHeader = 5
	// maxFrameBytes bounds one command; the page check allows several per page.
	maxFrameBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// framer makes and opens frames. Without a sealer they carry a CRC.
type framer struct{ sealer Sealer }

// sealEntry returns the framed form of an entry's data. The entry is not changed.
func (f framer) sealEntry(l *raft.Log) []byte { return f.seal(entryCover(l), l.Data) }

// openEntry checks and strips the frame of an entry read back. The error is
// ErrCorruptLog, and l is as it was.
func (f framer) openEntry(l *raft.Log) error {
	data, err := f.open(entryCover(l), l.Data)
	if err != nil {
		return fmt.Errorf("entry %d: %w", l.Index, err)
	}
	l.Data = data
	return nil
}

// sealValue frames a stable value.
func (f framer) sealValue(key, value []byte) []byte { return f.seal(valueCover(key), value) }

// openValue checks and strips the frame of a stable value. The result may be a
// part of frame. The error is ErrCorruptLog.
func (f framer) openValue(key, frame []byte) ([]byte, error) {
	data, err := f.open(valueCover(key), frame)
	if err != nil {
		return nil, fmt.Errorf("value %q: %w", key, err)
	}
	return data, nil
}

// seal takes a cover whose first byte is the aad's.
func (f framer) seal(cover, data []byte) []byte {
	if f.sealer != nil {
		return f.sealer.Seal([]byte{frameSealed}, cover, data)
	}
	out := make([]byte, frameHeader, frameHeader+len(data))
	out[0] = frameSummed
	binary.LittleEndian.PutUint32(out[1:], frameSum(cover, data))
	return append(out, data...)
}

func (f framer) open(cover, frame []byte) ([]byte, error) {
	want := byte(frameSummed)
	if f.sealer != nil {
		want = frameSealed
	}
	switch {
	case len(frame) == 0:
		return nil, fmt.Errorf("%w: an empty frame", ErrCorruptLog)
	case frame[0] != want:
		return nil, fmt.Errorf("%w: frame version %d instead of %d", ErrCorruptLog, frame[0], want)
	case f.sealer != nil:
		data, err := f.sealer.Open(nil, cover, frame[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: it cannot be opened: its storage key is gone or a byte differs: %w", ErrCorruptLog, err)
		}
		return data, nil
	case len(frame) < frameHeader:
		return nil, fmt.Errorf("%w: frame of %d bytes", ErrCorruptLog, len(frame))
	}
	data := frame[frameHeader:len(frame):len(frame)]
	if frameSum(cover, data) != binary.LittleEndian.Uint32(frame[1:]) {
		return nil, fmt.Errorf("%w: checksum differs", ErrCorruptLog)
	}
	return data, nil
}

func frameSum(cover, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(cover[1:], castagnoli), castagnoli, data)
}

func entryCover(l *raft.Log) []byte {
	out := make([]byte, 0, 22+len(l.Extensions))
	out = append(out, 'e')
	out = binary.LittleEndian.AppendUint64(out, l.Index)
	out = binary.LittleEndian.AppendUint64(out, l.Term)
	out = append(out, byte(l.Type))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(l.Extensions)))
	return append(out, l.Extensions...)
}

func valueCover(key []byte) []byte {
	out := make([]byte, 0, 5+len(key))
	out = append(out, 'v')
	out = binary.LittleEndian.AppendUint32(out, uint32(len(key)))
	return append(out, key...)
}
