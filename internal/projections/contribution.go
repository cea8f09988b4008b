package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// Contribution is what the fold needs of an event and cannot see, because the
// payload is sealed: terms, attributes, uri and vectors, in clear. It exists in
// memory, in Raft's log and in rows, which are encrypted as files.
//
// A nil contribution belongs to an event that gives the fold nothing: it has no
// payload, or the key of its payload was destroyed. An empty one belongs to an
// event that was opened and says nothing.
type Contribution struct {
	Code    string      // not empty: the event is quarantined with this code
	Terms   []text.Term // ascend as text.CompareTerms says
	Lengths [text.NumFields]uint32
	Attrs   []AttrKey // of the payload, sorted, each once; those of the header are not among them
	URI     string    // path below the namespace; empty = named by its id
	// SpaceVectors are in the namespace's space. An event about a space names
	// it here.
	SpaceVectors
	// Next are the same in the space that is being built; a zero Space is none.
	Next SpaceVectors
	// Graph is what a graph.changed does.
	Graph []events.GraphStep
}

// SpaceVectors are a version's vectors in one space.
type SpaceVectors struct {
	Space   SpaceKey
	Chunks  uint32   // chunks that need a vector in Space; 0 = none
	Vectors [][]byte // one a chunk, as in VectorRow.Numbers; empty = pending
}

// Conversation is the conversation among the attributes; "" is none.
func (c *Contribution) Conversation() AttrKey {
	for _, k := range c.Attrs {
		if k.Field() == AttrConversation {
			return k
		}
	}
	return ""
}

// Sections of an encoded contribution. Numbers are append-only; a new section
// comes with a new pipeline version, or with a type of events that needs a feature level: a
// program that does not know the section meets none then.
const (
	sectionCode       = 1
	sectionText       = 2
	sectionAttributes = 3
	sectionURI        = 4
	sectionVectors    = 5
	sectionNext       = 6
	sectionGraph      = 7
)

// nothing is a contribution that says nothing.
const nothing = "\x03\x00"

// append appends the encoding of a contribution: the sections that the projections
// declare, in the order of their tags, each u8 tag ‖ uvarint length ‖ bytes.
//
//	1 code        the code
//	2 text        terms and lengths, as text.AppendDoc gives them
//	3 attributes  attribute keys, ascending
//	4 uri         the path
//	5 vectors     space 8 ‖ uvarint chunks ‖ vectors to the end, each uvarint length ‖ bytes
//	6 next        the same in the space that is being built
//	7 graph       steps, as events.EncodeGraph gives them
//
// What is empty is left out. A contribution that says nothing is an empty section
// of attributes; nil is no byte at all.
func (c *Contribution) append(b []byte) []byte {
	if c == nil {
		return b
	}
	start := len(b)
	var scratch []byte
	for i := range sections {
		scratch = sections[i].append(c, scratch[:0])
		if len(scratch) > 0 {
			b = appendBytes(append(b, sections[i].tag), scratch)
		}
	}
	if len(b) == start {
		b = append(b, nothing...)
	}
	return b
}

func (c *Contribution) appendText(b []byte) []byte {
	if len(c.Terms) == 0 && c.Lengths == [text.NumFields]uint32{} {
		return b
	}
	return text.AppendDoc(b, c.Lengths, c.Terms)
}

func (s *SpaceVectors) append(b []byte) []byte {
	if s.Space.IsZero() {
		return b
	}
	b = append(b, s.Space[:]...)
	b = binary.AppendUvarint(b, uint64(s.Chunks))
	for _, v := range s.Vectors {
		b = appendBytes(b, v)
	}
	return b
}

// decodeContribution parses what append wrote; vectors alias raw. A section
// that this program does not know is ErrNewer: to skip it would be to fold
// something else than others do.
func decodeContribution(raw []byte) (*Contribution, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	c := &Contribution{}
	if string(raw) == nothing {
		return c, nil
	}
	d := &decoder{b: raw}
	for last := byte(0); len(d.b) > 0 && !d.bad; {
		tag := d.take(1)[0]
		switch {
		case int(tag) > len(sections):
			return nil, fmt.Errorf("contribution section %d: %w", tag, events.ErrNewer)
		case tag <= last:
			return nil, fmt.Errorf("contribution section %d after %d: %w", tag, last, events.ErrMalformed)
		}
		v := &decoder{b: d.bytes()}
		if v.bad = len(v.b) == 0; !v.bad {
			sections[tag-1].decode(c, v) // tags count from 1 without gaps
		}
		d.bad = d.bad || v.bad || len(v.b) > 0
		last = tag
	}
	if d.bad {
		return nil, fmt.Errorf("contribution: %w", events.ErrMalformed)
	}
	return c, nil
}

func (c *Contribution) decodeText(d *decoder) {
	doc, err := text.DecodeDoc(0, d.rest())
	c.Terms, c.Lengths = doc.Terms, doc.Lengths
	d.bad = d.bad || err != nil
}

func (c *Contribution) decodeAttrs(d *decoder) {
	for len(d.b) > 0 && !d.bad {
		k, rest := cutAttr(d.b)
		if k == "" || len(c.Attrs) > 0 && k <= c.Attrs[len(c.Attrs)-1] {
			d.bad = true
			return
		}
		c.Attrs, d.b = append(c.Attrs, k), rest
	}
}

func (s *SpaceVectors) decode(d *decoder) {
	copy(s.Space[:], d.take(uint64(len(s.Space))))
	s.Chunks = uint32(d.uvarint())
	for len(d.b) > 0 && !d.bad {
		s.Vectors = append(s.Vectors, d.bytes())
	}
	d.bad = d.bad || s.Space.IsZero()
}
