package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// The records of a manifest lie in blocks, as chunks (the log format of LevelDB):
//
//	checksum, 4 bytes little endian | length, 2 | part of a record, 1 | content
//
// The checksum is the masked CRC-32C of the part and the content. Where no head fits into
// what is left of a block there are zeros.
const (
	manifestBlock = 32 << 10
	chunkHead     = 7
	chunkParts    = 4 // 1 to 4: a whole record, its first part, one between, its last
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkManifest returns ErrDamaged where the present manifest has changed. Pebble takes the first
// record in it that does not match its checksum for its end: it opens the database as it was
// before that record, without a word, and what was flushed since is gone, for the logs that
// held it are deleted. A record that is cut short by the end of the file is one whose writing
// was cut short, and nothing rests on it yet.
func checkManifest(f vfs.FS, dir string) error {
	name, err := atomicfs.ReadMarker(f, dir, "manifest")
	if err != nil || name == "" {
		return nil // none yet, or damage that Pebble reports better
	}
	path := f.PathJoin(dir, name)
	b, err := ReadFile(f, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return typed("open", path, err)
	}
	if at, ok := chunks(b); !ok {
		return fmt.Errorf("open %s: %w: the record at byte %d of %d differs from its checksum", path, ErrDamaged, at, len(b))
	}
	return nil
}

// chunks goes through a manifest up to its end, or to what is none of its chunks.
func chunks(b []byte) (at int, ok bool) {
	for at < len(b) {
		block := at / manifestBlock * manifestBlock
		left := block + manifestBlock - at
		if left < chunkHead {
			at += left
			continue
		}
		if len(b)-at < chunkHead {
			return at, true
		}
		head := b[at : at+chunkHead]
		part, end := head[6], at+chunkHead+int(binary.LittleEndian.Uint16(head[4:]))
		sum := binary.LittleEndian.Uint32(head)
		switch {
		case part == 0 || part > chunkParts || end > block+manifestBlock:
			return at, false
		case end > len(b):
			return at, !matchesSome(b[at+chunkHead-1:], sum)
		case sum != masked(crc32.Checksum(b[at+chunkHead-1:end], castagnoli)):
			return at, false
		}
		at = end
	}
	return at, true
}

// matchesSome reports whether a checksum is that of some beginning of b: then the chunk is whole,
// and its length, which is not under the checksum, has changed.
func matchesSome(b []byte, sum uint32) bool {
	crc := uint32(0)
	for i := range b {
		if crc = crc32.Update(crc, castagnoli, b[i:i+1]); masked(crc) == sum {
			return true
		}
	}
	return false
}

// masked is how a checksum is stored, so that one over bytes that hold checksums is not weak.
func masked(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }
