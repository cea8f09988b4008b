package vector

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
)

// The graph file, version 1; numbers are little-endian:
//
//	offset  size  field
//	     0     4  magic "MNVG"
//	     4     1  version 1
//	     5     1  engine: 0 none, 1 mneme
//	     6     2  M
//	     8     4  EfConstruction
//	    12     4  dimension
//	    16     4  count of nodes
//	    20     4  slot of the entry point, 0 if there are no nodes
//	    24        nodes in slot order:
//	                4  ID; ascending; gives the level (levelOf)
//	                   for each layer from 0 to the level:
//	                   2    count of links
//	                   4 n  slots linked to; on layer 0 the first is the parent
//	   end     4  CRC-32C of everything before
//
// It holds no vectors and nothing computed from one but the links.
const (
	fileMagic      = "MNVG"
	fileVersion    = 1
	fileHeaderLen  = 24
	fileEngineNone = 0
	fileEngineOwn  = 1
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Save writes the graph as it stands: links and IDs, no vectors. The builder
// waits meanwhile, searches do not. Engines other than mneme write a file
// without nodes.
func (s *Set) Save(w io.Writer) error {
	s.buildMu.Lock()
	defer s.buildMu.Unlock()
	gen := s.gen.Load()
	sum := crc32.New(castagnoli())
	buf := bufio.NewWriterSize(w, 1<<16)
	out := io.MultiWriter(buf, sum)
	g, _ := gen.graph.(*hnsw)
	if err := writeGraph(out, g, s.dim, s.opt.Params); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	if _, err := buf.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("save graph: %w", err)
	}
	return nil
}

// writeGraph writes all but the checksum. g may be nil.
func writeGraph(w io.Writer, g *hnsw, dim int, p Params) error {
	le := binary.LittleEndian
	h := fileHeader{engine: fileEngineNone, params: p, dim: dim}
	if g != nil {
		h.engine, h.count = fileEngineOwn, g.inserted()
		h.entry, _ = g.entry()
	}
	row := h.append(nil)
	if h.count == 0 {
		_, err := w.Write(row)
		return err
	}
	view, links := g.store.view(), g.view()
	for slot := range h.count {
		id := view.id(slot)
		row = le.AppendUint32(row, id)
		for layer := range levelOf(id, p.M) + 1 {
			to := links.links(slot, layer)
			to = to[:linkCount(to)]
			row = le.AppendUint16(row, uint16(len(to)))
			for _, x := range to {
				row = le.AppendUint32(row, x)
			}
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
		row = row[:0]
	}
	return nil
}

type fileHeader struct {
	engine byte
	params Params
	dim    int
	count  uint32
	entry  uint32
}

func (h fileHeader) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, fileMagic...)
	b = append(b, fileVersion, h.engine)
	b = le.AppendUint16(b, uint16(h.params.M))
	b = le.AppendUint32(b, uint32(h.params.EfConstruction))
	b = le.AppendUint32(b, uint32(h.dim))
	b = le.AppendUint32(b, h.count)
	return le.AppendUint32(b, h.entry)
}

// graphReader decodes a graph file, checking all it reads: a decoded graph is
// sound even where the checksum was made to fit.
type graphReader struct {
	in  *bufio.Reader
	sum hash.Hash32
	buf [4]byte
	row []uint32
	err error
}

func (r *graphReader) bytes(b []byte) []byte {
	if r.err == nil {
		if _, r.err = io.ReadFull(r.in, b); r.err == nil {
			r.sum.Write(b)
		}
	}
	if r.err != nil {
		clear(b)
	}
	return b
}

func (r *graphReader) u16() uint16 { return binary.LittleEndian.Uint16(r.bytes(r.buf[:2])) }
func (r *graphReader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(r.buf[:4])) }

// header reads the header of a file for this set.
func (r *graphReader) header(dim int, p Params) (fileHeader, error) {
	var h fileHeader
	b := r.bytes(make([]byte, fileHeaderLen))
	if r.err != nil {
		return h, r.err
	}
	le := binary.LittleEndian
	h.engine = b[5]
	h.count, h.entry = le.Uint32(b[16:]), le.Uint32(b[20:])
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
	}
	return h, nil
}

// nodes reads the nodes into g, whose store is not known yet. Memory grows
// with what was read, not with what the header promises.
func (r *graphReader) nodes(g *hnsw, h fileHeader) ([]ID, error) {
	var ids []ID
	for slot := range h.count {
		id := r.u32()
		if r.err != nil {
			return nil, r.err
		}
		if slot > 0 && id <= ids[slot-1] {
			return nil, fmt.Errorf("id %d after %d", id, ids[slot-1])
		}
		ids = append(ids, id)
		level := levelOf(id, g.params.M)
		g.addRows(slot, level)
		view := g.view()
		for layer := range level + 1 {
			if err := r.links(view.links(slot, layer), slot, h.count); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

func (r *graphReader) links(row []uint32, slot, count uint32) error {
	n := int(r.u16())
	if n > len(row) {
		return fmt.Errorf("node %d has %d links", slot, n)
	}
	r.row = r.row[:0]
	for range n {
		to := r.u32()
		if r.err != nil {
			return r.err
		}
		if to >= count || to == slot {
			return fmt.Errorf("node %d links to %d of %d", slot, to, count)
		}
		r.row = append(r.row, to)
	}
	setLinks(row, r.row)
	return r.err
}

// checkGraph proves what the searches rely on: links lead to nodes that have
// the layer, the entry point is on the top layer, the tree is whole. It fills
// g.children.
func checkGraph(g *hnsw, ids []ID, entry uint32) error {
	view := g.view()
	top := levelOf(ids[entry], g.params.M)
	for i, id := range ids {
		slot, level := uint32(i), levelOf(id, g.params.M)
		if level > top {
			return fmt.Errorf("entry point %d is below node %d", entry, slot)
		}
		for layer := 1; layer <= level; layer++ {
			row := view.links(slot, layer)
			for _, to := range row[:linkCount(row)] {
				if levelOf(ids[to], g.params.M) < layer {
					return fmt.Errorf("node %d links to %d on layer %d", slot, to, layer)
				}
			}
		}
		if slot == 0 {
			continue
		}
		parent := view.ground.row(slot)[0]
		if parent >= slot || !slices.Contains(view.ground.row(parent), slot) {
			return fmt.Errorf("node %d has no parent", slot)
		}
		if g.children[parent]++; int(g.children[parent]) > g.maxChildren() {
			return fmt.Errorf("node %d has too many children", parent)
		}
	}
	return nil
}
