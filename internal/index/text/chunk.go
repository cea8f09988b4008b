package text

import (
	"encoding/binary"
	"fmt"
)

// A chunk holds up to 128 postings, in columns of fixed width, so that any one of
// them can be read without those before it:
//
//	02 | count-1 1 | sizes 1 | pairs 1 | pairs × (tf uvarint, length uvarint) |
//	count × document 2 | count × tf | count × length
//
// documents are DocIDs within the block, little endian like all columns. sizes has
// the bytes of a tf in its low four bits (0: all are 1; 1 and 4: tf-1) and those of
// a length in its high ones (1 and 4: less the smallest length of the pairs).
//
// The pairs bound what a posting of the chunk can score, whatever the statistics
// become: every posting has a pair with no smaller tf and no greater length, and
// the smallest length is that of a posting. They are the chunk's own extreme
// postings, if those are at most maxPairs.
const (
	chunkVersion = 0x02
	chunkSize    = 128
	chunkHeader  = 4
	maxPairs     = 6
)

// pair is a frequency and a length.
type pair struct{ tf, length uint32 }

func (p pair) covers(o pair) bool { return p.tf >= o.tf && p.length <= o.length }

// extremes keeps the pairs that no other covers, tf descending.
type extremes struct {
	pairs [maxPairs + 1]pair
	n     int
}

func (e *extremes) add(p pair) {
	at := e.n
	for i := range e.n {
		if e.pairs[i].covers(p) {
			return
		}
		if at == e.n && e.pairs[i].tf <= p.tf {
			at = i
		}
	}
	end := at // of those that p covers
	for end < e.n && p.covers(e.pairs[end]) {
		end++
	}
	copy(e.pairs[at+1:], e.pairs[end:e.n])
	e.pairs[at] = p
	e.n += 1 - (end - at)
	if e.n > maxPairs { // the last two become one that covers both
		e.n--
		e.pairs[e.n-1].length = e.pairs[e.n].length
	}
}

// chunk is a chunk's header, read.
type chunk struct {
	ub          float64 // the most that a posting scores; of the search
	pairs       uint32  // where the pairs begin in the bytes
	docs, tfs   uint32  // where those begin
	lens, end   uint32
	minLen      uint32
	first, last uint16
	n           uint8 // postings
	nPairs      uint8
	bt, bl      uint8 // bytes of a tf and of a length
}

// sizeFor is the bytes of a column whose greatest number is x.
func sizeFor(x uint32) uint8 {
	if x <= 0xFF {
		return 1
	}
	return 4
}

func appendColumn(dst []byte, size uint8, x uint32) []byte {
	switch size {
	case 0:
		return dst
	case 1:
		return append(dst, byte(x))
	}
	return binary.LittleEndian.AppendUint32(dst, x)
}

// appendChunk packs ps, 1 to 128 ascending postings of one block.
func appendChunk(dst []byte, ps []posting) []byte {
	var e extremes
	maxTF, minLen, maxLen := uint32(0), uint32(MaxLength), uint32(0)
	for _, p := range ps {
		tf, length := p.tf(), p.length()
		maxTF, minLen, maxLen = max(maxTF, tf), min(minLen, length), max(maxLen, length)
		e.add(pair{tf, length})
	}
	bt, bl := sizeFor(maxTF-1), sizeFor(maxLen-minLen)
	if maxTF == 1 {
		bt = 0
	}
	dst = append(dst, chunkVersion, byte(len(ps)-1), bl<<4|bt, byte(e.n))
	for _, p := range e.pairs[:e.n] {
		dst = binary.AppendUvarint(dst, uint64(p.tf))
		dst = binary.AppendUvarint(dst, uint64(p.length))
	}
	for _, p := range ps {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(p.local()))
	}
	if bt > 0 {
		for _, p := range ps {
			dst = appendColumn(dst, bt, p.tf()-1)
		}
	}
	for _, p := range ps {
		dst = appendColumn(dst, bl, p.length()-minLen)
	}
	return dst
}

var errChunk = fmt.Errorf("%w: chunk", ErrCorrupt)

// readChunk reads the header at v[i:], behind its version byte. It checks what
// makes reading the postings safe, and their ends.
func readChunk(v []byte, i int) (c chunk, err error) {
	const fixed = chunkHeader - 1
	if len(v)-i < fixed {
		return c, errChunk
	}
	c.n, c.bt, c.bl, c.nPairs = v[i]+1, v[i+1]&15, v[i+1]>>4, v[i+2]
	if v[i] >= chunkSize || c.bt != 0 && c.bt != 1 && c.bt != 4 || c.bl != 1 && c.bl != 4 || c.nPairs == 0 || c.nPairs > maxPairs {
		return c, errChunk
	}
	i += fixed
	c.pairs, c.minLen = uint32(i), MaxLength
	for range c.nPairs {
		var tf, length uint32
		if tf, i = readUvarint(v, i); i < 0 || tf == 0 || tf > MaxTF {
			return c, errChunk
		}
		if length, i = readUvarint(v, i); i < 0 || length > MaxLength {
			return c, errChunk
		}
		c.minLen = min(c.minLen, length)
	}
	n := uint32(c.n)
	c.docs = uint32(i)
	c.tfs = c.docs + 2*n
	c.lens = c.tfs + uint32(c.bt)*n
	c.end = c.lens + uint32(c.bl)*n
	if uint64(c.end) > uint64(len(v)) {
		return c, errChunk
	}
	c.first, c.last = binary.LittleEndian.Uint16(v[c.docs:]), binary.LittleEndian.Uint16(v[c.tfs-2:])
	if c.last < c.first {
		return c, errChunk
	}
	return c, nil
}

func (c *chunk) doc(v []byte, i int) uint32 {
	return uint32(binary.LittleEndian.Uint16(v[int(c.docs)+2*i:]))
}

func (c *chunk) tf(v []byte, i int) uint32 {
	switch c.bt {
	case 0:
		return 1
	case 1:
		return 1 + uint32(v[int(c.tfs)+i])
	}
	return 1 + binary.LittleEndian.Uint32(v[int(c.tfs)+4*i:])
}

func (c *chunk) length(v []byte, i int) uint32 {
	if c.bl == 1 {
		return c.minLen + uint32(v[int(c.lens)+i])
	}
	return c.minLen + binary.LittleEndian.Uint32(v[int(c.lens)+4*i:])
}

// seek finds the first posting whose document is at least local.
func (c *chunk) seek(v []byte, local uint32) (at int) {
	if local <= uint32(c.first) {
		return 0
	}
	docs := v[c.docs:c.tfs]
	for n := int(c.n); n > 0; { // the answer lies in at to at+n
		half := (n + 1) >> 1
		if uint32(binary.LittleEndian.Uint16(docs[2*(at+half-1):])) < local {
			at += half
			n -= half
		} else {
			n = half - 1
		}
	}
	return at
}

// appendPostings unpacks and checks a whole chunk.
func (c *chunk) appendPostings(dst []posting, v []byte) ([]posting, error) {
	next := uint32(0)
	for i := range int(c.n) {
		local, tf, length := c.doc(v, i), c.tf(v, i), c.length(v, i)
		if local < next || tf > MaxTF || tf == 0 || length > MaxLength || length < c.minLen {
			return dst, fmt.Errorf("%w: chunk postings", ErrCorrupt)
		}
		dst = append(dst, makePosting(local, tf, length))
		next = local + 1
	}
	return dst, nil
}
