package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The graph file, version 2; numbers are little-endian:
//
//	offset  size  field
//	     0     4  magic "MNVG"
//	     4     1  version 2
//	     5     1  engine: 0 none, 1 mneme
//	     6     2  M
//	     8     4  EfConstruction
//	    12     4  dimension
//	    16     4  count of nodes
//	    20     4  slot of the entry point, 0 if there are no nodes
//	    24     4  count of rows above the ground
//	    28        IDs, ascending, 4 bytes each; an ID gives the level (levelOf)
//	              ground rows in slot order: 2M links of 4 bytes
//	              rows above in slot order, low layers first: M links
//	   end     4  CRC-32C of everything before
//
// A link is the slot that it leads to; bit 31 is set for links of the tree. All
// bits are set where a row has no more. The file holds no vectors and nothing
// computed from one but the links.
const (
	fileMagic      = "MNVG"
	fileVersion    = 2
	fileHeaderLen  = 28
	fileEngineNone = 0
	fileEngineOwn  = 1
	// fileStep is the number of bytes read or written at once.
	fileStep = 1 << 18
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

type fileHeader struct {
	engine byte
	params Params
	dim    int
	count  uint32
	entry  uint32
	upper  uint32
}

func (h fileHeader) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, fileMagic...)
	b = append(b, fileVersion, h.engine)
	b = le.AppendUint16(b, uint16(h.params.M))
	b = le.AppendUint32(b, uint32(h.params.EfConstruction))
	b = le.AppendUint32(b, uint32(h.dim))
	b = le.AppendUint32(b, h.count)
	b = le.AppendUint32(b, h.entry)
	return le.AppendUint32(b, h.upper)
}

// parseHeader checks that b begins a file for a set of these parameters.
func parseHeader(b []byte, dim int, p Params) (fileHeader, error) {
	le := binary.LittleEndian
	h := fileHeader{
		engine: b[5], params: p, dim: dim,
		count: le.Uint32(b[16:]), entry: le.Uint32(b[20:]), upper: le.Uint32(b[24:]),
	}
	switch {
	case string(b[:4]) != fileMagic:
		return h, errors.New("no graph file")
	case b[4] != fileVersion:
		return h, fmt.Errorf("version %d", b[4])
	case h.engine > fileEngineOwn:
		return h, fmt.Errorf("engine number %d", h.engine)
	case int(le.Uint16(b[6:])) != p.M || int(le.Uint32(b[8:])) != p.EfConstruction || int(le.Uint32(b[12:])) != dim:
		return h, errors.New("made with other parameters")
	case h.count > maxSlots || h.engine == fileEngineNone && h.count > 0:
		return h, fmt.Errorf("%d nodes", h.count)
	case h.entry >= max(h.count, 1):
		return h, fmt.Errorf("entry point %d of %d", h.entry, h.count)
	case uint64(h.upper) > maxLevel*uint64(h.count):
		return h, fmt.Errorf("%d rows above %d nodes", h.upper, h.count)
	}
	return h, nil
}

// Save writes the graph as it stands: links and IDs, no vectors. The builder
// waits meanwhile, searches do not. Engines other than mneme write a file
// without nodes.
func (s *Set) Save(w io.Writer) error {
	s.buildMu.Lock()
	defer s.buildMu.Unlock()
	h := fileHeader{engine: fileEngineNone, params: s.opt.Params, dim: s.dim}
	g, own := s.gen.Load().graph.(*hnsw)
	if own {
		h.engine, h.count, h.upper = fileEngineOwn, g.inserted(), g.upperRows
		h.entry, _ = g.entry()
	}
	out := fileWriter{w: w, buf: h.append(make([]byte, 0, fileStep))}
	if h.count > 0 {
		ids, links := g.store.ids.view(), g.view()
		out.rows(&ids, h.count)
		out.rows(&links.ground, h.count)
		out.rows(&links.upper, h.upper)
	}
	out.flush()
	out.buf = binary.LittleEndian.AppendUint32(out.buf, out.sum)
	out.flush()
	if out.err != nil {
		return fmt.Errorf("save graph: %w", out.err)
	}
	return nil
}

type fileWriter struct {
	w   io.Writer
	buf []byte
	sum uint32
	err error
}

func (o *fileWriter) flush() {
	if o.err != nil {
		return
	}
	o.sum = crc32.Update(o.sum, castagnoli(), o.buf)
	_, o.err = o.w.Write(o.buf)
	o.buf = o.buf[:0]
}

func (o *fileWriter) rows(v *view[uint32], n uint32) {
	for i := uint32(0); i < n && o.err == nil; i++ {
		if len(o.buf)+4*v.rowLen > fileStep {
			o.flush()
		}
		for _, x := range v.row(i) {
			o.buf = binary.LittleEndian.AppendUint32(o.buf, x)
		}
	}
}

// fileReader takes a file apart; what it reads is checked afterwards.
type fileReader struct {
	in  io.Reader
	sum uint32
	buf []byte
}

// bytes reads n bytes, which stay until the next call.
func (r *fileReader) bytes(n int) ([]byte, error) {
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return nil, err
	}
	r.sum = crc32.Update(r.sum, castagnoli(), b)
	return b, nil
}

// rows reads n rows into an empty slab. Memory grows with what was read, not
// with what the header promises.
func (r *fileReader) rows(to *slab[uint32], n uint32) error {
	rowBytes := 4 * to.rowLen
	for at := uint32(0); at < n; {
		some := min(n-at, uint32(max(1, fileStep/rowBytes)))
		b, err := r.bytes(int(some) * rowBytes)
		if err != nil {
			return err
		}
		to.grow(int(at+some), none)
		v := to.view()
		for range some {
			row := v.row(at)
			for i := range row {
				row[i] = binary.LittleEndian.Uint32(b[4*i:])
			}
			b = b[rowBytes:]
			at++
		}
	}
	return nil
}

// end checks the checksum and that nothing follows.
func (r *fileReader) end() error {
	want := r.sum
	b, err := r.bytes(4)
	if err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(b); got != want {
		return fmt.Errorf("checksum %08x, computed %08x", got, want)
	}
	if _, err := io.ReadFull(r.in, b[:1]); err != io.EOF {
		return errors.New("bytes after the end")
	}
	return nil
}
