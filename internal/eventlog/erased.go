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
)

// nats-server believes its index.db where that fits the last block, and reads a block
// only when a message of it is asked for. Else, as after a kill, it reads all blocks
// and cuts one at the first record whose checksum is wrong: a flipped bit in an old
// message would cost every message behind it. So where it is about to, what does not
// check and is followed by records that do is made one erased record, in place, after
// the block was copied aside. The log then has a gap, which everybody who reads it is
// told of, and keeps the rest.

// readsBlocks reports whether the server will read all blocks of a stream. blocks are the
// names of its files in order.
func readsBlocks(fs vfs.FS, stream string, blocks []string) (bool, error) {
	if len(blocks) == 0 {
		return false, nil
	}
	index, err := readAll(fs, fs.PathJoin(stream, "msgs", "index.db"))
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
	last, err := readAll(fs, fs.PathJoin(stream, "msgs", blocks[len(blocks)-1]))
	return err == nil && !bytes.HasSuffix(last, body[len(body)-recordHash:]), err
}

// blockHash is the server's checksum under the name of a stream, or of a block of it.
func blockHash(name string) (hash.Hash, error) {
	key := sha256.Sum256([]byte(name))
	return highwayhash.NewDigest64(key[:])
}

func readAll(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil
	}
	return b, errors.Join(err, f.Close())
}

// records reads the records of one block.
type records struct {
	b   []byte
	sum hash.Hash
	out [recordHash]byte
}

// at gives the length and the sequence of the record at an offset, if it is one and
// its checksum is right.
func (r *records) at(offset int) (length int, seq uint64, ok bool) {
	b := r.b[offset:]
	if len(b) < blockMinimum {
		return 0, 0, false
	}
	size := binary.LittleEndian.Uint32(b)
	subject := int(binary.LittleEndian.Uint16(b[20:]))
	body := blockHeader + subject
	if size&blockHeaders != 0 {
		body += 4 // the length of the headers is not covered
	}
	length = int(size &^ blockHeaders)
	if length > blockMaximum || length > len(b) || body+recordHash > length {
		return 0, 0, false
	}
	r.sum.Reset()
	for _, part := range [][]byte{b[4:20], b[blockHeader : blockHeader+subject], b[body : length-recordHash]} {
		_, _ = r.sum.Write(part)
	}
	return length, binary.LittleEndian.Uint64(b[4:]), bytes.Equal(r.sum.Sum(r.out[:0]), b[length-recordHash:length])
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
		next := at + blockMinimum
		for ; next < len(r.b); next++ {
			if _, seq, ok := r.at(next); ok && seq&seqTombstone == 0 && seq&^seqErased > last && (last == 0 || seq&^seqErased-last < plausibleHole) {
				if last == 0 {
					last = seq&^seqErased - 2 // the damage is the first that the block holds
				}
				break
			}
		}
		if next >= len(r.b) {
			return found
		}
		found = append(found, finding{offset: int64(at), fix: r.erased(at, next, last+1),
			detail: fmt.Sprintf("what follows sequence %d, at %d, does not check: %d bytes are set aside as erased", last, at, next-at)})
		at, last = next, last+1
	}
	return found
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
	_, _ = r.sum.Write(b[blockHeader : len(b)-recordHash])
	copy(b[len(b)-recordHash:], r.sum.Sum(r.out[:0]))
	return b
}

// eraseUnsound sets aside what does not check in a block that the server will read,
// after it was copied. It returns nil where there is nothing.
func eraseUnsound(fs vfs.FS, dir, stream, block string) (*damagedBlock, error) {
	b, err := readAll(fs, block)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", block, err)
	}
	sum, err := blockHash(stream + "-" + strings.TrimSuffix(fs.PathBase(block), blockSuffix))
	if err != nil {
		return nil, err
	}
	found := (&records{b: b, sum: sum}).unsound()
	if len(found) == 0 {
		return nil, nil
	}
	d := &damagedBlock{Stream: stream, Path: block, Erased: true}
	if d.Kept, err = keepCopy(fs, dir, stream, block); err != nil {
		return nil, fmt.Errorf("keep a copy of %s: %w", block, err)
	}
	var details []string
	for _, one := range found {
		details = append(details, one.detail)
	}
	d.Detail = strings.Join(details, "; ")
	if err := mendBlock(fs, block, found); err != nil {
		return nil, fmt.Errorf("mend %s: %w", block, err)
	}
	return d, nil
}
