package text

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A chunk holds up to 128 postings, packed so that any one of them can be read
// without those before it (frame of reference):
//
//	02 | count-1 1 | first 2 | last 2 | tf width 1 | length width 1 | pairs 1 |
//	pairs × (tf uvarint, length uvarint) | documents | tfs | lengths
//
// first and last are DocIDs within the block, little endian. documents are DocIDs
// less first, of as many bits as last-first has; tfs are tf-1; lengths are less
// the smallest one, which is that of some pair. Each of the three begins at a
// byte, the lowest bits first.
//
// The pairs bound what a posting of the chunk can score, whatever the statistics
// become: every posting has a pair with no smaller tf and no greater length. They
// are the chunk's own extreme postings, if those are at most maxPairs.
const (
	chunkVersion = 0x02
	chunkSize    = 128
	chunkHeader  = 9
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
	lens        uint32
	end         uint32
	minLen      uint32
	first, last uint16
	n           uint8 // postings
	nPairs      uint8
	wd, wt, wl  uint8 // widths in bits
}

func packedBytes(n int, width uint8) uint32 { return uint32(n*int(width)+7) / 8 }

// appendChunk packs ps, 1 to 128 ascending postings of one block.
func appendChunk(dst []byte, ps []posting) []byte {
	var e extremes
	maxTF, minLen, maxLen := uint32(0), uint32(MaxLength), uint32(0)
	for _, p := range ps {
		tf, length := p.tf(), p.length()
		maxTF, minLen, maxLen = max(maxTF, tf), min(minLen, length), max(maxLen, length)
		e.add(pair{tf, length})
	}
	first, last := ps[0].local(), ps[len(ps)-1].local()
	wd, wt, wl := bits.Len32(last-first), bits.Len32(maxTF-1), bits.Len32(maxLen-minLen)
	dst = append(dst, chunkVersion, byte(len(ps)-1), byte(first), byte(first>>8), byte(last), byte(last>>8), byte(wt), byte(wl), byte(e.n))
	for _, p := range e.pairs[:e.n] {
		dst = binary.AppendUvarint(dst, uint64(p.tf))
		dst = binary.AppendUvarint(dst, uint64(p.length))
	}
	w := bitWriter{dst: dst}
	for _, p := range ps {
		w.put(p.local()-first, wd)
	}
	w.flush()
	for _, p := range ps {
		w.put(p.tf()-1, wt)
	}
	w.flush()
	for _, p := range ps {
		w.put(p.length()-minLen, wl)
	}
	w.flush()
	return w.dst
}

type bitWriter struct {
	dst  []byte
	acc  uint64
	used int
}

func (w *bitWriter) put(x uint32, width int) {
	w.acc |= uint64(x) << w.used
	if w.used += width; w.used >= 32 {
		w.dst = binary.LittleEndian.AppendUint32(w.dst, uint32(w.acc))
		w.acc >>= 32
		w.used -= 32
	}
}

func (w *bitWriter) flush() {
	for ; w.used > 0; w.used -= 8 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc >>= 8
	}
	w.acc, w.used = 0, 0
}

var errChunk = fmt.Errorf("%w: chunk", ErrCorrupt)

// readChunk reads the header at v[i:], behind its version byte. It checks what
// makes reading the postings safe, and the ends of the documents.
func readChunk(v []byte, i int) (c chunk, err error) {
	const fixed = chunkHeader - 1
	if len(v)-i < fixed {
		return c, errChunk
	}
	c.n = v[i] + 1
	c.first, c.last = binary.LittleEndian.Uint16(v[i+1:]), binary.LittleEndian.Uint16(v[i+3:])
	c.wt, c.wl, c.nPairs = v[i+5], v[i+6], v[i+7]
	if v[i] >= chunkSize || c.last < c.first || c.wt > localShift-tfShift || c.wl > tfShift || c.nPairs == 0 || c.nPairs > maxPairs {
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
	c.wd = uint8(bits.Len16(c.last - c.first))
	c.docs = uint32(i)
	c.tfs = c.docs + packedBytes(int(c.n), c.wd)
	c.lens = c.tfs + packedBytes(int(c.n), c.wt)
	c.end = c.lens + packedBytes(int(c.n), c.wl)
	if uint64(c.end) > uint64(len(v)) || (c.n == 1) != (c.first == c.last) {
		return c, errChunk
	}
	return c, nil
}

// Reading a packed number may look at up to 7 bytes behind it.
const padding = 8

// unpack reads the i-th number of a width at v[from:].
func unpack(v []byte, from uint32, width uint8, i int) uint32 {
	bit := uint(i) * uint(width)
	return uint32(binary.LittleEndian.Uint64(v[from+uint32(bit>>3):])>>(bit&7)) & (1<<width - 1)
}

func (c *chunk) doc(v []byte, i int) uint32    { return uint32(c.first) + unpack(v, c.docs, c.wd, i) }
func (c *chunk) tf(v []byte, i int) uint32     { return 1 + unpack(v, c.tfs, c.wt, i) }
func (c *chunk) length(v []byte, i int) uint32 { return c.minLen + unpack(v, c.lens, c.wl, i) }

// seek finds the first posting whose document is at least local.
func (c *chunk) seek(v []byte, local uint32) int {
	if local <= uint32(c.first) {
		return 0
	}
	want, at := local-uint32(c.first), 0
	for n := int(c.n); n > 0; { // the answer lies in at to at+n
		half := (n + 1) >> 1
		if unpack(v, c.docs, c.wd, at+half-1) < want {
			at += half
			n -= half
		} else {
			n = half - 1
		}
	}
	return at
}

// appendPostings unpacks and checks a whole chunk. v is padded.
func (c *chunk) appendPostings(dst []posting, v []byte) ([]posting, error) {
	next := uint32(c.first)
	for i := range int(c.n) {
		local, tf, length := c.doc(v, i), c.tf(v, i), c.length(v, i)
		if local < next || local > uint32(c.last) || tf > MaxTF || length > MaxLength {
			return dst, fmt.Errorf("%w: chunk postings", ErrCorrupt)
		}
		dst = append(dst, makePosting(local, tf, length))
		next = local + 1
	}
	if next != uint32(c.last)+1 || dst[len(dst)-int(c.n)].local() != uint32(c.first) {
		return dst, fmt.Errorf("%w: chunk ends", ErrCorrupt)
	}
	return dst, nil
}
