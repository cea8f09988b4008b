package raftfsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// A value of raft.db is framed. For a log entry the frame stands in the entry's
// Data, and the sum also covers the fields beside it; for a stable value it
// covers the key.
//
//	byte 0     version = 1
//	bytes 1..4 CRC-32C, little endian, of the covered bytes below
//	bytes 5..  data
//
// Covered by a log entry: index (8), term (8), type (1), length of extensions
// (4), all little endian, extensions, data. AppendedAt is outside: nothing
// depends on it. Covered by a stable value: length of key (4), key, data.
const (
	frameVersion = 1
	frameHeader  = 5
	// maxFrameBytes bounds one command; the page check allows several per page.
	maxFrameBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealEntry returns the framed form of an entry's data. The entry is not changed.
func sealEntry(l *raft.Log) []byte {
	return seal(entrySum(l, l.Data), l.Data)
}

// openEntry checks and strips the frame of an entry read back. On success l.Data
// is a part of what it was. The error is ErrCorruptLog.
func openEntry(l *raft.Log) error {
	data, sum, err := splitFrame(l.Data)
	if err != nil {
		return fmt.Errorf("entry %d: %w", l.Index, err)
	}
	if entrySum(l, data) != sum {
		return fmt.Errorf("entry %d: %w: checksum differs", l.Index, ErrCorruptLog)
	}
	l.Data = data
	return nil
}

// sealValue frames a stable value.
func sealValue(key, value []byte) []byte {
	return seal(valueSum(key, value), value)
}

// openValue checks and strips the frame of a stable value. The result is a part
// of frame. The error is ErrCorruptLog.
func openValue(key, frame []byte) ([]byte, error) {
	data, sum, err := splitFrame(frame)
	if err != nil {
		return nil, fmt.Errorf("value %q: %w", key, err)
	}
	if valueSum(key, data) != sum {
		return nil, fmt.Errorf("value %q: %w: checksum differs", key, ErrCorruptLog)
	}
	return data, nil
}

func seal(sum uint32, data []byte) []byte {
	out := make([]byte, frameHeader, frameHeader+len(data))
	out[0] = frameVersion
	binary.LittleEndian.PutUint32(out[1:], sum)
	return append(out, data...)
}

func splitFrame(frame []byte) (data []byte, sum uint32, err error) {
	if len(frame) < frameHeader {
		return nil, 0, fmt.Errorf("%w: frame of %d bytes", ErrCorruptLog, len(frame))
	}
	if frame[0] != frameVersion {
		return nil, 0, fmt.Errorf("%w: frame version %d", ErrCorruptLog, frame[0])
	}
	return frame[frameHeader:len(frame):len(frame)], binary.LittleEndian.Uint32(frame[1:]), nil
}

func entrySum(l *raft.Log, data []byte) uint32 {
	var head [21]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	binary.LittleEndian.PutUint32(head[17:], uint32(len(l.Extensions)))
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, l.Extensions)
	return crc32.Update(sum, castagnoli, data)
}

func valueSum(key, value []byte) uint32 {
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(key)))
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, value)
}
