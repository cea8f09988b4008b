package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// pageChecker walks the pages of a bolt file with plain reads and checks what
// bbolt takes for granted: page ids, types, bounds, order of keys, no page
// reached twice. bbolt itself cannot be asked: with NoFreelistSync it walks the
// tree at open in a goroutine of its own, where a panic or a page fault behind
// the end of the file ends the process and no recover can help.
//
// The format (bbolt 1.x, native little endian):
//
//	page    id u64, flags u16, count u16, overflow u32, elements, keys and values
//	meta    magic u32, version u32, page size u32, flags u32, root page u64,
//	        root sequence u64, freelist u64, high-water page u64, txid u64, FNV-64a u64
//	branch  pos u32, key size u32, page u64          (pos counts from the element)
//	leaf    flags u32, pos u32, key size u32, value size u32
//	bucket  root page u64, sequence u64, and, if root is 0, a page of its own
type pageChecker struct {
	r        io.ReaderAt
	size     int64
	pageSize int64
	high     uint64
	seen     map[uint64]struct{}
	// visit gets every key of every bucket, in order within a bucket.
	visit func(bucket string, key, value []byte) error
}

const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	boltPageHeader = 16
	boltElement    = 16
	boltBucket     = 16
	boltMetaBytes  = 64
	boltBranch     = 0x01
	boltLeaf       = 0x02
	boltBucketFlag = 0x01
	boltMaxDepth   = 64
	boltNoFreelist = ^uint64(0)
	maxPageRun     = 4*maxFrameBytes + 1<<20
)

var errBoltShape = errors.New("bolt file is damaged")

func shapef(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBoltShape}, args...)...)
}

// checkPages walks the file of the given size. visit's slices are valid only
// during the call. Errors: errBoltShape, a read error, or visit's.
func checkPages(r io.ReaderAt, size int64, visit func(bucket string, key, value []byte) error) error {
	c := &pageChecker{r: r, size: size, seen: make(map[uint64]struct{}), visit: visit}
	root, err := c.meta()
	if err != nil {
		return err
	}
	return c.tree(root, 0, nil, nil, c.topLevel)
}

type boltMetaPage struct {
	pageSize             uint32
	root, freelist, high uint64
	txid                 uint64
}

// meta reads both meta pages and returns the root of the newer valid one, which
// is what bbolt does.
func (c *pageChecker) meta() (uint64, error) {
	first, err1 := c.metaAt(0)
	best, ok := first, err1 == nil
	sizes := []int64{int64(first.pageSize)}
	if !ok {
		sizes = sizes[:0]
		for s := int64(1024); s <= 16<<20; s *= 2 {
			sizes = append(sizes, s)
		}
	}
	for _, s := range sizes {
		second, err := c.metaAt(s)
		if err == nil && int64(second.pageSize) == s {
			if !ok || second.txid > best.txid {
				best = second
			}
			ok = true
			break
		}
	}
	switch {
	case !ok:
		return 0, shapef("no valid meta page")
	case best.pageSize < 1024 || best.pageSize > 16<<20 || best.pageSize&(best.pageSize-1) != 0:
		return 0, shapef("page size %d", best.pageSize)
	case best.freelist != boltNoFreelist:
		return 0, shapef("unexpected free list")
	}
	c.pageSize, c.high = int64(best.pageSize), best.high
	return best.root, nil
}

// metaAt reads one meta page. Like bbolt it looks at the checksummed part only.
func (c *pageChecker) metaAt(off int64) (boltMetaPage, error) {
	var b [boltPageHeader + boltMetaBytes]byte
	if _, err := c.r.ReadAt(b[:], off); err != nil {
		return boltMetaPage{}, shapef("meta page at %d: %v", off, err)
	}
	m := b[boltPageHeader:]
	h := fnv.New64a()
	h.Write(m[:56])
	switch le := binary.LittleEndian; {
	case le.Uint32(m) != boltMagic, le.Uint32(m[4:]) != boltVersion, le.Uint64(m[56:]) != h.Sum64():
		return boltMetaPage{}, shapef("meta page at %d", off)
	default:
		return boltMetaPage{
			pageSize: le.Uint32(m[8:]), root: le.Uint64(m[16:]), freelist: le.Uint64(m[32:]),
			high: le.Uint64(m[40:]), txid: le.Uint64(m[48:]),
		}, nil
	}
}

// leafFunc takes one element of a leaf.
type leafFunc func(flags uint32, key, value []byte) error

// tree checks the page id and everything below: keys lie in [low, high).
func (c *pageChecker) tree(id uint64, depth int, low, high []byte, leaf leafFunc) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	return c.elements(page, id, depth, low, high, leaf)
}

// page reads a page with its overflow and marks its ids as used.
func (c *pageChecker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.high || id > uint64(c.size/c.pageSize) {
		return nil, shapef("page %d is out of bounds", id)
	}
	off := int64(id) * c.pageSize
	var head [boltPageHeader]byte
	if _, err := c.r.ReadAt(head[:], off); err != nil {
		return nil, shapef("page %d: %v", id, err)
	}
	over := int64(binary.LittleEndian.Uint32(head[12:]))
	run := (over + 1) * c.pageSize
	if got := binary.LittleEndian.Uint64(head[:]); got != id {
		return nil, shapef("page %d calls itself %d", id, got)
	}
	if run > c.size-off || run > maxPageRun || id+uint64(over) >= c.high {
		return nil, shapef("page %d runs over %d pages", id, over)
	}
	for i := range uint64(over) + 1 {
		if _, dup := c.seen[id+i]; dup {
			return nil, shapef("page %d is reached twice", id+i)
		}
		c.seen[id+i] = struct{}{}
	}
	page := make([]byte, run)
	if _, err := c.r.ReadAt(page, off); err != nil {
		return nil, shapef("page %d: %v", id, err)
	}
	return page, nil
}

func (c *pageChecker) elements(page []byte, id uint64, depth int, low, high []byte, leaf leafFunc) error {
	flags, count := binary.LittleEndian.Uint16(page[8:]), int(binary.LittleEndian.Uint16(page[10:]))
	switch {
	case depth > boltMaxDepth:
		return shapef("page %d lies too deep", id)
	case flags != boltBranch && flags != boltLeaf:
		return shapef("page %d has type %x", id, flags)
	case boltPageHeader+count*boltElement > len(page):
		return shapef("page %d has %d elements", id, count)
	case flags == boltBranch && count == 0:
		return shapef("branch page %d is empty", id)
	}
	keys, values, err := splitElements(page, id, flags, count)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if (low != nil && bytes.Compare(key, low) < 0) || (high != nil && bytes.Compare(key, high) >= 0) ||
			(i > 0 && bytes.Compare(keys[i-1], key) >= 0) {
			return shapef("page %d: key %d is out of order", id, i)
		}
	}
	for i, key := range keys {
		at := boltPageHeader + i*boltElement
		if flags == boltLeaf {
			if err := leaf(binary.LittleEndian.Uint32(page[at:]), key, values[i]); err != nil {
				return err
			}
			continue
		}
		next := high
		if i+1 < len(keys) {
			next = keys[i+1]
		}
		if err := c.tree(binary.LittleEndian.Uint64(page[at+8:]), depth+1, key, next, leaf); err != nil {
			return err
		}
	}
	return nil
}

// splitElements cuts a page's keys and values, each checked against the page.
func splitElements(page []byte, id uint64, flags uint16, count int) (keys, values [][]byte, err error) {
	keys, values = make([][]byte, count), make([][]byte, count)
	floor := uint64(boltPageHeader + count*boltElement)
	for i := range count {
		at := boltPageHeader + i*boltElement
		pos, ksize, vsize := binary.LittleEndian.Uint32(page[at:]), binary.LittleEndian.Uint32(page[at+4:]), uint32(0)
		if flags == boltLeaf {
			pos, ksize, vsize = ksize, binary.LittleEndian.Uint32(page[at+8:]), binary.LittleEndian.Uint32(page[at+12:])
		}
		start := uint64(at) + uint64(pos)
		mid := start + uint64(ksize)
		end := mid + uint64(vsize)
		if start < floor || ksize == 0 || end > uint64(len(page)) {
			return nil, nil, shapef("page %d: element %d is out of bounds", id, i)
		}
		floor = end // elements lie one behind the other and never share bytes
		keys[i], values[i] = page[start:mid:mid], page[mid:end:end]
	}
	return keys, values, nil
}

// topLevel takes an element of the root bucket: a bucket, on pages of its own or
// inline in its value.
func (c *pageChecker) topLevel(flags uint32, name, value []byte) error {
	if flags != boltBucketFlag || len(value) < boltBucket {
		return shapef("root element %q is no bucket", name)
	}
	bucket := string(name)
	leaf := func(flags uint32, key, value []byte) error {
		if flags != 0 {
			return shapef("bucket %q holds a nested bucket", bucket)
		}
		return c.visit(bucket, key, value)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return c.tree(root, 1, nil, nil, leaf)
	}
	inline := value[boltBucket:]
	if len(inline) < boltPageHeader || binary.LittleEndian.Uint16(inline[8:]) != boltLeaf {
		return shapef("bucket %q has no inline page", bucket)
	}
	return c.elements(inline, 0, 1, nil, nil, leaf)
}
