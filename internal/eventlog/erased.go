package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/highwayhash"

	"mneme/internal/storage"
)

// nats-server believes its index.db where that fits the last block, and reads a block
// only when a message of it is asked for. Else, as after a kill, it reads all blocks
// and cuts one at the first record whose checksum is wrong: a flipped bit in an old
// message would cost every message behind it. So where it is about to, what does not
// check and is followed by records that do is made one erased record, in place, after
// the block was copied aside. The log then has a gap, which everybody who reads it is
// told of, and keeps the rest.

// readsBlocks reports whether the server will read all blocks of a stream.
func readsBlocks(fs vfs.FS, stream string, blocks []string) (bool, error) {
	if len(blocks) == 0 {
		return false, nil
	}
	index, err := storage.ReadFile(fs, indexFile(fs, stream))
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// … ‖ index of the last block ‖ the checksum that it ends with, 8 ‖ checksum 8
	sum, err := blockHash(fs.PathBase(stream))
	if err != nil || len(index) < 2*recordHash {
		return err == nil, err
	}
	body, own := index[:len(index)-recordHash], index[len(index)-recordHash:]
	_, _ = sum.Write(body) // a hash takes everything
	if !bytes.Equal(sum.Sum(nil), own) {
		return true, nil
	}
	last, err := storage.ReadFile(fs, blocks[len(blocks)-1])
	return err == nil && !bytes.HasSuffix(last, body[len(body)-recordHash:]), err
}

// blockHash is the server's checksum under the name of a stream, or of a block of it.
func blockHash(name string) (hash.Hash, error) {
	key := sha256.Sum256([]byte(name))
	return highwayhash.NewDigest64(key[:])
}

// records reads the records of one block.
type records struct {
	b   []byte
	sum hash.Hash
	out [recordHash]byte
}

// readRecords reads a block of a stream, or of the Raft log of a group.
func readRecords(fs vfs.FS, stream, block string) (*records, error) {
	b, err := storage.ReadFile(fs, block)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(fs.PathBase(block), ".")
	sum, err := blockHash(stream + "-" + name)
	if err != nil {
		return nil, err
	}
	return &records{b: b, sum: sum}, nil
}

// at gives the length and the sequence of the record at an offset, if it is one and
// its checksum is right.
func (r *records) at(offset int) (length int, seq uint64, ok bool) {
	b := r.b[offset:]
	if len(b) < recordMinimum {
		return 0, 0, false
	}
	head := readHead(b)
	if !head.possible() || head.length > len(b) {
		return 0, 0, false
	}
	subject, body, end := headLength+head.subject, head.least()-recordHash, head.length-recordHash
	r.sum.Reset() // it does not cover the length of the headers
	for _, part := range [][]byte{b[4:20], b[headLength:subject], b[body:end]} {
		_, _ = r.sum.Write(part)
	}
	return head.length, head.seq, bytes.Equal(r.sum.Sum(r.out[:0]), b[end:head.length])
}

// sound is how much of the block checks from its beginning on.
func (r *records) sound() (upTo int) {
	for upTo < len(r.b) {
		length, _, ok := r.at(upTo)
		if !ok {
			break
		}
		upTo += length
	}
	return upTo
}

// unsound finds what the server would cut a block for although sound records follow,
// and how to make it an erased record. What nothing sound follows is left to it: a
// crash leaves such an end.
func (r *records) unsound() (found []finding) {
	var last uint64
	for at := 0; at < len(r.b); {
		if length, seq, ok := r.at(at); ok {
			if seq&seqTombstone == 0 {
				last = max(last, seq&^seqErased)
			}
			at += length
			continue
		}
		next, end := at+recordMinimum, len(r.b)-recordMinimum
		for ; next <= end; next++ {
			if !r.follows(next, last) {
				continue
			}
			if _, seq, ok := r.at(next); ok {
				if last == 0 {
					last = seq&^seqErased - 2 // the damage is the first that the block holds
				}
				break
			}
		}
		if next > end {
			return found
		}
		found = append(found, finding{offset: int64(at), fix: r.erased(at, next, last+1),
			detail: fmt.Sprintf("what follows sequence %d, at %d, does not check: %d bytes are set aside as erased", last, at, next-at)})
		at, last = next, last+1
	}
	return found
}

// follows reports whether the head at an offset may be that of a message behind
// sequence last, or behind an unknown one if that is 0. Something can be read as a
// length at each byte of what is damaged, and hashing as much as it says, each time,
// would take quadratic time.
func (r *records) follows(offset int, last uint64) bool {
	head := readHead(r.b[offset:])
	seq := head.seq &^ seqErased
	if seq&seqTombstone != 0 || seq <= last || !head.possible() || head.length > len(r.b)-offset {
		return false
	}
	if last != 0 {
		return seq-last < plausibleHole
	}
	subject := r.b[offset+headLength:][:head.subject]
	return seq < plausibleFirst && !bytes.ContainsFunc(subject, func(c rune) bool { return c <= ' ' || c > '~' })
}

// erased is a record that takes the place of [from, to) as the server leaves one for a
// message that it removed.
func (r *records) erased(from, to int, seq uint64) []byte {
	b := bytes.Clone(r.b[from:to])
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint64(b[4:], seq|seqErased)
	binary.LittleEndian.PutUint16(b[20:], 0)
	r.sum.Reset()
	_, _ = r.sum.Write(b[4:20])
	_, _ = r.sum.Write(b[headLength : len(b)-recordHash])
	copy(b[len(b)-recordHash:], r.sum.Sum(r.out[:0]))
	return b
}

// eraseUnsound sets aside what does not check in a block that the server will read,
// after it was copied. It returns nil where there is nothing.
func eraseUnsound(fs vfs.FS, dir, stream, block string) (*damagedBlock, error) {
	r, err := readRecords(fs, stream, block)
	if err != nil {
		return nil, err
	}
	d, err := keepAndMend(fs, dir, stream, block, r.unsound())
	if d != nil {
		d.Mended, d.Erased = false, true
	}
	return d, err
}
