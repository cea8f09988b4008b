package local

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// A safetensors file is
//
//	+--------------+-------------+---------------------------------+
//	| uint64 LE: n | n bytes     | numbers of all tensors, LE      |
//	|              | JSON header | without holes, row-major        |
//	+--------------+-------------+---------------------------------+
//
// and the header maps each name to {"dtype", "shape", "data_offsets": [from, to]},
// offsets being relative to the end of the header. "__metadata__" is for people.
const (
	maxHeader  = 8 << 20 // that of BERT-large has 50 KB
	maxNumbers = 1 << 30 // in a tensor
)

// tensor is a row-major array.
type tensor struct {
	shape []int
	data  []float32
}

// entry is one tensor's place in the file.
type entry struct {
	name  string
	dtype string
	shape []int
	from  int64
	to    int64
}

// readTensors reads the tensors that want names from a file of size bytes, in
// one pass and to its last byte. Halves and bfloat16 become float32.
func readTensors(r io.Reader, size int64, want func(name string) bool) (map[string]tensor, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	entries, err := readHeader(in, size)
	if err != nil {
		return nil, err
	}
	out := map[string]tensor{}
	for _, e := range entries {
		if !want(e.name) {
			if _, err := io.CopyN(io.Discard, in, e.to-e.from); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", e.name, err)
			}
			continue
		}
		data, err := readNumbers(in, e)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", e.name, err)
		}
		out[e.name] = tensor{e.shape, data}
	}
	return out, nil
}

// readHeader returns the entries in the order of the file, checked: they cover
// it without holes, and each has as many bytes as its shape says.
func readHeader(in io.Reader, size int64) ([]entry, error) {
	var length [8]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, fmt.Errorf("no length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("header of %d bytes in a file of %d", n, size)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(in, raw); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(raw, &header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	delete(header, "__metadata__")
	entries := make([]entry, 0, len(header))
	for name, value := range header {
		e, err := parseEntry(name, value)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.name, b.name))
	})
	at := int64(0)
	for _, e := range entries {
		if e.from != at {
			return nil, fmt.Errorf("tensor %q begins at %d, not at %d", e.name, e.from, at)
		}
		at = e.to
	}
	if have := size - 8 - int64(n); at != have {
		return nil, fmt.Errorf("tensors of %d bytes in a file that has %d: it is cut or has more at its end", at, have)
	}
	return entries, nil
}

func parseEntry(name string, value json.RawMessage) (entry, error) {
	var v struct {
		Dtype   string  `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return entry{}, err
	}
	if len(v.Offsets) != 2 || v.Offsets[0] < 0 || v.Offsets[1] < v.Offsets[0] {
		return entry{}, fmt.Errorf("offsets %v", v.Offsets)
	}
	e := entry{name, v.Dtype, v.Shape, v.Offsets[0], v.Offsets[1]}
	count := int64(1)
	for _, d := range v.Shape {
		if d < 0 || d > maxNumbers || count*int64(d) > maxNumbers {
			return entry{}, fmt.Errorf("shape %v", v.Shape)
		}
		count *= int64(d)
	}
	if width := numberWidth(v.Dtype); width != 0 && count*width != e.to-e.from {
		return entry{}, fmt.Errorf("shape %v of %s in %d bytes", v.Shape, v.Dtype, e.to-e.from)
	}
	return e, nil
}

// numberWidth returns the bytes of a number; 0 for kinds that no weight of ours has.
func numberWidth(dtype string) int64 {
	switch dtype {
	case "F32":
		return 4
	case "F16", "BF16":
		return 2
	}
	return 0
}

// readNumbers reads e's data in pieces, so that a header that lies about the
// size of the file costs no memory.
func readNumbers(in io.Reader, e entry) ([]float32, error) {
	width := numberWidth(e.dtype)
	if width == 0 {
		return nil, fmt.Errorf("numbers of kind %q; F32, F16 and BF16 are read", e.dtype)
	}
	left := (e.to - e.from) / width
	out := make([]float32, 0, min(left, 1<<20))
	buf := make([]byte, 1<<16)
	for left > 0 {
		n := min(left, int64(len(buf))/width)
		if _, err := io.ReadFull(in, buf[:n*width]); err != nil {
			return nil, err
		}
		out = appendNumbers(out, buf[:n*width], e.dtype)
		left -= n
	}
	return slices.Clip(out), nil
}

func appendNumbers(out []float32, b []byte, dtype string) []float32 {
	switch dtype {
	case "F32":
		for ; len(b) >= 4; b = b[4:] {
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	case "BF16":
		for ; len(b) >= 2; b = b[2:] {
			out = append(out, math.Float32frombits(uint32(binary.LittleEndian.Uint16(b))<<16))
		}
	default:
		for ; len(b) >= 2; b = b[2:] {
			out = append(out, half(binary.LittleEndian.Uint16(b)))
		}
	}
	return out
}

// half widens an IEEE 754 binary16 number, which every float32 can hold.
func half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and subnormals: fraction · 2^-24
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(f))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
