package eventlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// nats-server 2.15.2 trusts index.db when it opens a stream and then walks the
// blocks without looking at checksums. After one flipped bit in a length or a
// sequence it reads a sequence out of other bytes, marks everything up to it as
// deleted, one by one, and the process dies for want of memory. Without
// index.db it walks the same blocks with checksums, cuts a block at the first
// bad record and reports what it lost. So blocks are walked here first; of a
// stream with an impossible one the block is copied aside, because it is about
// to be cut, and index.db is removed.

// damagedBlock is a block of a stream that would lead the server astray.
type damagedBlock struct {
	Stream string
	Path   string
	Detail string
	Kept   string // where its copy is
}

// preflight makes a store safe to open and says what it found.
func preflight(dir string) ([]damagedBlock, error) {
	streams, err := filepath.Glob(filepath.Join(dir, "jetstream", "$G", "streams", "*"))
	if err != nil {
		return nil, err
	}
	var found []damagedBlock
	for _, stream := range streams {
		blocks, err := filepath.Glob(filepath.Join(stream, "msgs", "*.blk"))
		if err != nil {
			return nil, err
		}
		slices.Sort(blocks)
		bad := 0
		for _, block := range blocks {
			detail, err := walkFile(block)
			if err != nil {
				return nil, fmt.Errorf("inspect %s: %w", block, err)
			}
			if detail == "" {
				continue
			}
			bad++
			d := damagedBlock{Stream: filepath.Base(stream), Path: block, Detail: detail}
			if d.Kept, err = keepCopy(dir, d.Stream, block); err != nil {
				return nil, fmt.Errorf("keep a copy of %s: %w", block, err)
			}
			found = append(found, d)
		}
		if bad == 0 {
			continue
		}
		if err := os.Remove(filepath.Join(stream, "msgs", "index.db")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}

func walkFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return walkBlock(bufio.NewReaderSize(f, 256<<10))
}

const (
	blockHeader   = 22
	blockMinimum  = blockHeader + 8
	blockMaximum  = 32 << 20
	blockHeaders  = 1 << 31 // of the length: the record has headers
	seqErased     = 1 << 63
	seqTombstone  = 1 << 62
	plausibleHole = 1 << 20 // sequences the server may mark as deleted in a row
)

// walkBlock follows the records of a block and describes the first one that
// cannot be right, "" if there is none. A record that ends beyond the file is
// left to the server, which cuts it: a crash leaves such ones.
//
//	 0      4     12     20        22
//	+------+-----+------+---------+---------+----------------------+---------+
//	|length| seq | time | subject | subject | [u32 length, headers]| message |
//	| u32  | u64 | i64  | len u16 |         |                      | hash 8  |
//	+------+-----+------+---------+---------+----------------------+---------+
//
// All integers are little-endian; the length is the whole record's.
func walkBlock(r *bufio.Reader) (string, error) {
	var head [blockHeader]byte
	var last uint64
	for at := int64(0); ; {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return "", nil
			}
			return "", err
		}
		length := binary.LittleEndian.Uint32(head[0:])
		seq := binary.LittleEndian.Uint64(head[4:])
		need := uint32(blockMinimum) + uint32(binary.LittleEndian.Uint16(head[20:]))
		if length&blockHeaders != 0 {
			need += 4
		}
		length &^= blockHeaders
		if length < need || length > blockMaximum {
			return fmt.Sprintf("record at %d has length %d", at, length), nil
		}
		if seq&seqTombstone == 0 {
			seq &^= seqErased
			if last != 0 && seq > last && seq-last > plausibleHole {
				return fmt.Sprintf("record at %d has sequence %d behind %d", at, seq, last), nil
			}
			if last == 0 && seq > 1<<48 {
				return fmt.Sprintf("record at %d has sequence %d", at, seq), nil
			}
			last = max(last, seq)
		}
		if _, err := r.Discard(int(length) - blockHeader); err != nil {
			if errors.Is(err, io.EOF) {
				return "", nil
			}
			return "", err
		}
		at += int64(length)
	}
}

// keepCopy copies a block to <dir>/damaged/<stream>-<block>, numbered if that
// is there already.
func keepCopy(dir, stream, block string) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "damaged"), 0o700); err != nil {
		return "", err
	}
	in, err := os.Open(block)
	if err != nil {
		return "", err
	}
	defer in.Close()
	base := filepath.Join(dir, "damaged", stream+"-"+filepath.Base(block))
	for n := 0; ; n++ {
		path := base
		if n > 0 {
			path = fmt.Sprintf("%s.%d", base, n)
		}
		out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(out, in)
		return path, errors.Join(err, out.Sync(), out.Close())
	}
}
