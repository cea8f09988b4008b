package events

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"mneme/memory"
)

// Content is the sealed part of a captured or revised memory.
type Content struct {
	Text         string
	Role         string
	Tags         []string
	URI          string // full form, mem://…; empty when the record is named by its id
	Conversation string
	Subject      string
	ClientID     string
	Source       string // CloudEvents source
	Origin       memory.Origin
	Importance   *float64
	DerivedFrom  []ID
	Metadata     []byte // a JSON object in canonical form, see CanonicalJSON
	OccurredSet  bool   // the client gave occurred_at
}

// Field tags of Content, append-only.
const (
	tagText = iota + 1
	tagRole
	tagTag // repeated
	tagURI
	tagConversation
	tagSubject
	tagClientID
	tagSource
	tagOrigin
	tagImportance // 8 bytes, IEEE 754 bits, big-endian
	tagDerived    // repeated, 16 bytes
	tagMetadata
	tagOccurredSet
	lastTag = tagOccurredSet
)

// Encode returns the canonical bytes: fields in tag order, each
// u8 tag ‖ uvarint length ‖ bytes; empty fields are left out.
func (c *Content) Encode() []byte {
	b := make([]byte, 0, len(c.Text)+len(c.Metadata)+128)
	b = appendField(b, tagText, c.Text)
	b = appendField(b, tagRole, c.Role)
	for _, t := range c.Tags {
		b = appendField(b, tagTag, t)
	}
	b = appendField(b, tagURI, c.URI)
	b = appendField(b, tagConversation, c.Conversation)
	b = appendField(b, tagSubject, c.Subject)
	b = appendField(b, tagClientID, c.ClientID)
	b = appendField(b, tagSource, c.Source)
	b = appendField(b, tagOrigin, string(c.Origin))
	if c.Importance != nil {
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], math.Float64bits(*c.Importance))
		b = appendField(b, tagImportance, string(v[:]))
	}
	for _, id := range c.DerivedFrom {
		b = appendField(b, tagDerived, string(id[:]))
	}
	b = appendField(b, tagMetadata, string(c.Metadata))
	if c.OccurredSet {
		b = appendField(b, tagOccurredSet, "\x01")
	}
	return b
}

func appendField(b []byte, tag byte, v string) []byte {
	if v == "" {
		return b
	}
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// eachField walks over TLV fields in ascending tag order.
func eachField(b []byte, last byte, what string, visit func(tag byte, v []byte) error) error {
	r := reader{b: b}
	previous := byte(0)
	for r.err == nil && len(r.b) > 0 {
		tag := r.u8(what)
		n := r.uvarint(what)
		if n > uint64(len(r.b)) || n == 0 {
			return fmt.Errorf("%s field %d: %w", what, tag, ErrMalformed)
		}
		v := r.take(int(n), what)
		switch {
		case tag < previous || tag == 0:
			return fmt.Errorf("%s fields out of order: %w", what, ErrMalformed)
		case tag > last:
			return fmt.Errorf("%s field %d: %w", what, tag, ErrNewer)
		case tag == previous && tag != tagTag && tag != tagDerived:
			return fmt.Errorf("%s field %d twice: %w", what, tag, ErrMalformed)
		}
		previous = tag
		if err := visit(tag, v); err != nil {
			return err
		}
	}
	return r.err
}

// DecodeContent parses what Encode wrote.
func DecodeContent(b []byte) (Content, error) {
	var c Content
	err := eachField(b, lastTag, "content", func(tag byte, v []byte) error {
		return c.setField(tag, v)
	})
	if err != nil {
		return Content{}, err
	}
	return c, nil
}

func (c *Content) setField(tag byte, v []byte) error {
	single := map[byte]*string{tagText: &c.Text, tagRole: &c.Role, tagURI: &c.URI, tagConversation: &c.Conversation,
		tagSubject: &c.Subject, tagClientID: &c.ClientID, tagSource: &c.Source}
	if dst, ok := single[tag]; ok {
		*dst = string(v)
		return nil
	}
	switch tag {
	case tagTag:
		c.Tags = append(c.Tags, string(v))
	case tagOrigin:
		c.Origin = memory.Origin(v)
	case tagImportance:
		if len(v) != 8 {
			return fmt.Errorf("content importance: %w", ErrMalformed)
		}
		f := math.Float64frombits(binary.BigEndian.Uint64(v))
		c.Importance = &f
	case tagDerived:
		if len(v) != 16 {
			return fmt.Errorf("content derived_from: %w", ErrMalformed)
		}
		c.DerivedFrom = append(c.DerivedFrom, ID(v))
	case tagMetadata:
		c.Metadata = v
	case tagOccurredSet:
		if string(v) != "\x01" {
			return fmt.Errorf("content occurred: %w", ErrMalformed)
		}
		c.OccurredSet = true
	}
	return nil
}

// Body is what makes two captures with one client id the same request: the
// canonical capture without its id and without fields the server fills in.
func (c *Content) Body(h *Header) []byte {
	body := *c
	body.ClientID, body.Source, body.Origin = "", "", ""
	b := body.Encode()
	b = append(b, 0, byte(h.Scope), byte(h.Kind))
	if c.OccurredSet {
		b = binary.BigEndian.AppendUint64(b, uint64(h.OccurredAt))
	}
	return append(b, h.Agent...)
}

// Settings is the sealed part of directory events: the settings that were set,
// by name, and those that were reset.
type Settings struct {
	Set   map[string]string
	Reset []string
}

// Encode returns canonical bytes: sorted pairs, then sorted resets.
func (s *Settings) Encode() []byte {
	var b []byte
	names := make([]string, 0, len(s.Set))
	for n := range s.Set {
		names = append(names, n)
	}
	sort.Strings(names)
	b = binary.AppendUvarint(b, uint64(len(names)))
	str := func(v string) {
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	for _, n := range names {
		str(n)
		str(s.Set[n])
	}
	reset := append([]string(nil), s.Reset...)
	sort.Strings(reset)
	b = binary.AppendUvarint(b, uint64(len(reset)))
	for _, n := range reset {
		str(n)
	}
	return b
}

// DecodeSettings parses what Encode wrote.
func DecodeSettings(b []byte) (Settings, error) {
	r := reader{b: b}
	str := func() string {
		n := r.uvarint("setting")
		if n > uint64(len(r.b)) {
			r.fail("setting")
			return ""
		}
		return string(r.take(int(n), "setting"))
	}
	s := Settings{Set: map[string]string{}}
	last := ""
	for n := r.uvarint("settings"); n > 0 && r.err == nil; n-- {
		k := str()
		if len(s.Set) > 0 && k <= last {
			r.fail("settings out of order")
		}
		s.Set[k], last = str(), k
	}
	for n := r.uvarint("resets"); n > 0 && r.err == nil; n-- {
		k := str()
		if len(s.Reset) > 0 && k < s.Reset[len(s.Reset)-1] {
			r.fail("resets out of order")
		}
		s.Reset = append(s.Reset, k)
	}
	return s, r.end("settings")
}

// Encodings of the numbers in a Vectors.
const (
	VectorsSmall = 1 // one signed byte each, as the built-in models make them
	VectorsFloat = 2 // little-endian float32
)

// Vectors is the sealed part of vectors.attached: the vectors of one record
// version's chunks in one space, in chunk order. Either Chunks or Small is
// given: at least one vector, all of the same length, at most 65,536.
type Vectors struct {
	Space  string
	Chunks [][]float32
	Small  [][]int8
}

// Encode returns u8 encoding ‖ u8 length ‖ space ‖ u32 dimensions ‖ u32 count ‖
// numbers, schema 2 of the payload.
func (v *Vectors) Encode() []byte {
	encoding, dims, n, width := byte(VectorsFloat), 0, len(v.Chunks), 4
	switch {
	case len(v.Small) > 0:
		encoding, dims, n, width = VectorsSmall, len(v.Small[0]), len(v.Small), 1
	case n > 0:
		dims = len(v.Chunks[0])
	}
	b := make([]byte, 0, 16+len(v.Space)+width*dims*n)
	b = append(b, encoding, byte(len(v.Space)))
	b = append(b, v.Space...)
	b = binary.BigEndian.AppendUint32(b, uint32(dims))
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	if encoding == VectorsSmall {
		for _, c := range v.Small {
			for _, x := range c {
				b = append(b, byte(x))
			}
		}
		return b
	}
	for _, c := range v.Chunks {
		for _, x := range c {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// DecodeVectors parses what Encode wrote.
func DecodeVectors(b []byte) (Vectors, error) {
	r := reader{b: b}
	encoding := r.u8("encoding")
	v := Vectors{Space: string(r.short("space"))}
	dims, n, width := uint64(r.u32("dimensions")), uint64(r.u32("count")), uint64(4)
	switch encoding {
	case VectorsFloat:
	case VectorsSmall:
		width = 1
	default:
		r.fail("encoding")
	}
	if r.err == nil && (n == 0 || dims == 0 || dims > 1<<16 || n*dims*width != uint64(len(r.b))) {
		r.fail("vectors")
	}
	for ; n > 0 && r.err == nil; n-- {
		raw := r.take(int(dims*width), "vector")
		if encoding == VectorsSmall {
			c := make([]int8, dims)
			for i := range c {
				c[i] = int8(raw[i])
			}
			v.Small = append(v.Small, c)
			continue
		}
		c := make([]float32, dims)
		for i := range c {
			c[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		v.Chunks = append(v.Chunks, c)
	}
	return v, r.end("vectors")
}

// Dimensions is the length of each vector.
func (v *Vectors) Dimensions() int {
	switch {
	case len(v.Small) > 0:
		return len(v.Small[0])
	case len(v.Chunks) > 0:
		return len(v.Chunks[0])
	}
	return 0
}

// CanonicalJSON gives a JSON object one form: keys sorted, no white space,
// numbers as they were written.
func CanonicalJSON(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("json object: %w", ErrMalformed)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("json object: trailing bytes: %w", ErrMalformed)
	}
	if len(v) == 0 {
		return nil, nil
	}
	return json.Marshal(v)
}
