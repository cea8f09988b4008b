package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// elements streams the elements of the arrays in a JSON document: of the array
// that it is, or of those that the object has under some of its keys.
type elements struct {
	format string
	meter  *meter
	dec    *json.Decoder
	keys   []string
	state  elementState
	key    string // of the array that is being read; "" for the document itself
	n      int    // elements of it so far
}

type elementState int

const (
	elementsNew elementState = iota
	elementsInArray
	elementsInObject // between its keys
	elementsDone
)

func newElements(format string, r io.Reader, keys ...string) *elements {
	m := &meter{r: decoded(r), max: maxElement}
	return &elements{format: format, meter: m, dec: json.NewDecoder(m), keys: keys}
}

// next returns the next element and the key of its array. An element that is not
// UTF-8 is an *ItemError; io.EOF is the end; another error ends the document.
func (e *elements) next() (key string, raw json.RawMessage, err error) {
	for {
		e.meter.n = 0
		switch e.state {
		case elementsNew:
			err = e.begin()
		case elementsInObject:
			err = e.member()
		case elementsInArray:
			if !e.dec.More() {
				if _, err = e.dec.Token(); err == nil {
					e.state = elementsDone
					if e.key != "" {
						e.state = elementsInObject
					}
				}
				break
			}
			if err = e.dec.Decode(&raw); err != nil {
				break
			}
			e.n++
			if !utf8.Valid(raw) {
				return e.key, nil, &ItemError{Line: e.n, Where: e.where(), Err: notUTF8(raw)}
			}
			return e.key, raw, nil
		case elementsDone:
			return "", nil, io.EOF
		}
		if err != nil {
			e.state = elementsDone
			return "", nil, e.broken(err)
		}
	}
}

func (e *elements) where() string {
	if e.key == "" {
		return fmt.Sprintf("element %d", e.n)
	}
	return fmt.Sprintf("%s %d", e.key, e.n)
}

func (e *elements) begin() error {
	tok, err := e.dec.Token()
	switch {
	case errors.Is(err, io.EOF):
		e.state = elementsDone // an empty file
		return nil
	case err != nil:
		return err
	case tok == json.Delim('['):
		e.state = elementsInArray
	case tok == json.Delim('{'):
		e.state = elementsInObject
	default:
		return errors.New("it is neither an array nor an object")
	}
	return nil
}

// member reads one key of the object and what stands under it, unless that is an
// array that is wanted.
func (e *elements) member() error {
	if !e.dec.More() {
		_, err := e.dec.Token()
		e.state = elementsDone
		return err
	}
	tok, err := e.dec.Token()
	if err != nil {
		return err
	}
	key, _ := tok.(string)
	depth := 0
	for {
		e.meter.n = 0
		if tok, err = e.dec.Token(); err != nil {
			return err
		}
		switch tok {
		case json.Delim('['):
			if depth == 0 && slices.Contains(e.keys, key) {
				e.state, e.key, e.n = elementsInArray, key, 0
				return nil
			}
			depth++
		case json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// broken says behind which element the document cannot be read on.
func (e *elements) broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if e.n > 0 {
		return damaged(e.format, fmt.Errorf("behind %s: %w", e.where(), plainJSONError(err)))
	}
	return damaged(e.format, plainJSONError(err))
}

// meter bounds what is read for one element. It fills what it is given: a decoder
// looks through white space from its beginning again after each read, which small
// reads would make quadratic.
type meter struct {
	r      io.Reader
	n, max int64
}

func (m *meter) Read(p []byte) (int, error) {
	if m.n > m.max {
		return 0, fmt.Errorf("one element of it is larger than %d bytes", m.max)
	}
	n, err := io.ReadFull(m.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the next read finds the end
	}
	m.n += int64(n)
	return n, err
}
