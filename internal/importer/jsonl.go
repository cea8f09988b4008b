package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"mneme/memory"
)

type jsonl struct {
	noFiles
	in   *lines
	opts Options
	seen map[[16]byte]int // how often a line without an id came, by digest
}

func newJSONL(r io.Reader, opts Options) *jsonl {
	return &jsonl{in: newLines(r, maxLine), opts: opts, seen: map[[16]byte]int{}}
}

// Next returns the item of the next line that is not blank.
func (s *jsonl) Next() (Item, error) {
	line, err := s.in.next()
	if err != nil {
		return Item{}, err
	}
	item, err := s.parse(line)
	if err != nil {
		return Item{}, s.in.bad(err)
	}
	if hasHalf(line) {
		item.Left = append(item.Left, Skip{Why: halved})
	}
	return check(item, s.in.where())
}

func (s *jsonl) parse(line []byte) (Item, error) {
	var exp memory.ExportLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&exp); err != nil {
		return Item{}, plainJSONError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Item{}, errors.New("more than one JSON value on a line")
	}
	if key := repeatedKey(line); key != "" {
		return Item{}, fmt.Errorf("the key %q stands there twice", clean(key, 40))
	}
	if exp.RecordID != "" {
		item := exportedItem(&s.opts, exp)
		item.Line = s.in.n
		return item, nil
	}
	c := exp.Capture
	if c.Agent == "" {
		c.Agent = s.opts.Agent
	}
	if c.Scope == "" {
		c.Scope = s.opts.Scope
	}
	if c.ID == "" {
		c.ID = s.makeID(c)
	}
	return Item{Namespace: s.opts.Namespace, Capture: c, Line: s.in.n}, nil
}

// makeID gives a line without an id one that is the same at every reading: a
// digest of the content and how often that content came before.
func (s *jsonl) makeID(c memory.Capture) string {
	b, err := json.Marshal(c)
	if err != nil {
		return "" // only metadata that is not JSON, which the decoder excluded
	}
	sum := digest(b)
	key := [16]byte(sum[:16])
	n := s.seen[key]
	s.seen[key] = n + 1
	id := "import/" + hex.EncodeToString(key[:])
	if n > 0 {
		id += "." + strconv.Itoa(n)
	}
	return id
}

func digest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// plainJSONError says in words for people what encoding/json found.
func plainJSONError(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &when):
		return fmt.Errorf("%q is not an RFC 3339 time; write it like 2026-01-31T08:00:00Z", when.Value)
	case errors.As(err, &typ) && typ.Field == "":
		return fmt.Errorf("it is a JSON %s, an object is wanted", typ.Value)
	case errors.As(err, &typ):
		return fmt.Errorf("field %q cannot be a JSON %s", strings.TrimPrefix(typ.Field, "Capture."), typ.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON object is cut off")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
