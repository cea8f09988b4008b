package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mneme/memory"
)

// JSONDecoder reads JSON that comes from outside into T, strictly: field names
// must match exactly and be known, no field may appear twice, types must fit,
// nothing may follow the value, and all of it must be valid UTF-8. A null leaves
// a field as it is. What a T keeps raw (json.RawMessage) is checked for syntax
// only.
//
// Errors are *memory.Error with CodeInvalid that name the field and its byte
// offset. A decoder is immutable and safe for concurrent use.
type JSONDecoder[T any] struct {
	root *shape
}

// NewJSONDecoder makes a decoder for T, which must be made of structs, slices,
// maps with string keys, pointers, strings, numbers, booleans, times and raw
// JSON. It panics for other types, which is a mistake in the program.
func NewJSONDecoder[T any]() JSONDecoder[T] {
	return JSONDecoder[T]{root: shapeOf(reflect.TypeFor[T](), false)}
}

// NewOpenJSONDecoder is NewJSONDecoder, except that unknown fields of the
// outermost object are ignored.
func NewOpenJSONDecoder[T any]() JSONDecoder[T] {
	return JSONDecoder[T]{root: shapeOf(reflect.TypeFor[T](), true)}
}

// Decode reads one value. The result shares no memory with data.
func (d JSONDecoder[T]) Decode(data []byte) (T, error) {
	if err := CheckJSON(data); err != nil {
		var v T
		return v, err
	}
	return d.DecodeChecked(data)
}

// DecodeChecked is Decode for what CheckJSON has found to be valid.
func (d JSONDecoder[T]) DecodeChecked(data []byte) (T, error) {
	var v T
	w := walker{data: data}
	if err := w.value(d.root, nil); err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, memory.Errorf(memory.CodeInvalid, "the JSON does not fit: %w", err)
	}
	return v, nil
}

// CheckJSON reports, as a *memory.Error with CodeInvalid, what keeps data from
// being exactly one valid JSON value.
func CheckJSON(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return memory.Errorf(memory.CodeInvalid, "the body is empty, JSON was expected")
	}
	if !utf8.Valid(data) {
		return memory.Errorf(memory.CodeInvalid, "the JSON is not valid UTF-8")
	}
	if json.Valid(data) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			return memory.Errorf(memory.CodeInvalid, "malformed JSON at byte %d: %w", syntax.Offset, err)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return memory.Errorf(memory.CodeInvalid, "malformed JSON: it ends after %d bytes in the middle of a value", len(data))
		}
		return memory.Errorf(memory.CodeInvalid, "malformed JSON: %w", err)
	}
	return memory.Errorf(memory.CodeInvalid, "malformed JSON: something follows the value at byte %d", dec.InputOffset())
}

// Elements gives the elements of an array that CheckJSON has found to be valid, at
// most as many as said, and counts all of them. They share memory with array.
func Elements(array []byte, most int) (elements []json.RawMessage, n int) {
	w := walker{data: array}
	w.space()
	for w.pos++; ; { // behind the bracket
		w.space()
		switch w.data[w.pos] {
		case ']':
			return elements, n
		case ',':
			w.pos++
			w.space()
		}
		start := w.pos
		w.skip()
		if n++; n <= most {
			elements = append(elements, array[start:w.pos:w.pos])
		}
	}
}

// shape is what a JSON value must look like to become a Go value.
type shape struct {
	want   shapeKind
	fields map[string]*shape // of an object with known fields
	elem   *shape            // of an array, or of an object with any fields
	open   bool              // unknown fields are ignored
}

type shapeKind int

const (
	wantAny shapeKind = iota
	wantString
	wantTime
	wantInt
	wantNumber
	wantBool
	wantArray
	wantObject
)

func (k shapeKind) String() string {
	return [...]string{"any value", "a string", "a time", "a whole number", "a number", "true or false", "an array", "an object"}[k]
}

func shapeOf(t reflect.Type, open bool) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return &shape{want: wantAny}
	case t == reflect.TypeFor[time.Time]():
		return &shape{want: wantTime}
	}
	switch t.Kind() {
	case reflect.String:
		return &shape{want: wantString}
	case reflect.Bool:
		return &shape{want: wantBool}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &shape{want: wantInt}
	case reflect.Float32, reflect.Float64:
		return &shape{want: wantNumber}
	case reflect.Slice:
		return &shape{want: wantArray, elem: shapeOf(t.Elem(), false)}
	case reflect.Map:
		return &shape{want: wantObject, elem: shapeOf(t.Elem(), false)}
	case reflect.Struct:
		s := &shape{want: wantObject, fields: map[string]*shape{}, open: open}
		s.addFields(t)
		return s
	}
	panic(fmt.Sprintf("no JSON shape for %s", t))
}

func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			s.addFields(f.Type)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s.fields[name] = shapeOf(f.Type, false)
	}
}

// frame is one step of the path to a value, innermost first.
type frame struct {
	parent *frame
	name   string
	index  int // used if name is ""
}

func (f *frame) String() string {
	if f == nil {
		return ""
	}
	prefix := f.parent.String()
	switch {
	case f.name == "":
		return prefix + "[" + strconv.Itoa(f.index) + "]"
	case prefix == "":
		return f.name
	}
	return prefix + "." + f.name
}

// walker compares JSON that is known to be valid with a shape.
type walker struct {
	data []byte
	pos  int
}

func (w *walker) invalid(at *frame, pos int, format string, args ...any) *memory.Error {
	where := "the JSON"
	if at != nil {
		where = fmt.Sprintf("%.120q", at.String())
	}
	return memory.Errorf(memory.CodeInvalid, "%s at byte %d %s", where, pos, fmt.Sprintf(format, args...))
}

func (w *walker) space() {
	for w.pos < len(w.data) && strings.IndexByte(" \t\r\n", w.data[w.pos]) >= 0 {
		w.pos++
	}
}

func (w *walker) value(s *shape, at *frame) error {
	w.space()
	start := w.pos
	switch c := w.data[start]; c {
	case 'n':
		w.pos += len("null")
		if at == nil && s.want != wantAny {
			return w.invalid(at, start, "must be %s, not null", s.want)
		}
		return nil
	case '{':
		if s.want != wantAny && s.want != wantObject {
			return w.invalid(at, start, "must be %s, not an object", s.want)
		}
		return w.object(s, at)
	case '[':
		if s.want != wantAny && s.want != wantArray {
			return w.invalid(at, start, "must be %s, not an array", s.want)
		}
		return w.array(s, at)
	case '"':
		raw := w.str()
		return w.checkString(s, at, start, raw)
	default:
		for w.pos < len(w.data) && strings.IndexByte(" \t\r\n,]}", w.data[w.pos]) < 0 {
			w.pos++
		}
		return w.checkLiteral(s, at, start, string(w.data[start:w.pos]))
	}
}

// str skips a string and returns it with its quotes.
func (w *walker) str() []byte {
	start := w.pos
	for w.pos++; w.data[w.pos] != '"'; w.pos++ {
		if w.data[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
	return w.data[start:w.pos]
}

// skip passes over one value, whatever it is.
func (w *walker) skip() {
	for depth := 0; ; {
		switch w.data[w.pos] {
		case '"':
			w.str()
		case '{', '[':
			depth++
			w.pos++
		case '}', ']':
			depth--
			w.pos++
		case ',', ':', ' ', '\t', '\r', '\n': // within the value
			w.pos++
			continue
		default:
			for w.pos < len(w.data) && strings.IndexByte(" \t\r\n,:]}", w.data[w.pos]) < 0 {
				w.pos++
			}
		}
		if depth == 0 {
			return
		}
	}
}

func (w *walker) checkString(s *shape, at *frame, start int, raw []byte) error {
	switch s.want {
	case wantAny, wantString:
		return nil
	case wantTime:
		var t time.Time
		if err := json.Unmarshal(raw, &t); err != nil {
			return w.invalid(at, start, "is not an RFC 3339 time").WithHint("write it like 2026-01-31T08:00:00Z")
		}
		return nil
	}
	return w.invalid(at, start, "must be %s, not a string", s.want)
}

func (w *walker) checkLiteral(s *shape, at *frame, start int, lit string) error {
	boolean := lit == "true" || lit == "false"
	switch s.want {
	case wantAny:
		return nil
	case wantBool:
		if boolean {
			return nil
		}
	case wantInt:
		if _, err := strconv.ParseInt(lit, 10, 64); err == nil {
			return nil
		}
	case wantNumber:
		if _, err := strconv.ParseFloat(lit, 64); err == nil && !boolean {
			return nil
		}
	}
	return w.invalid(at, start, "must be %s, not %.40s", s.want, lit)
}

func (w *walker) array(s *shape, at *frame) error {
	elem := s.elem
	if s.want == wantAny {
		elem = s
	}
	w.pos++
	for i := 0; ; i++ {
		w.space()
		switch w.data[w.pos] {
		case ']':
			w.pos++
			return nil
		case ',':
			w.pos++
		}
		if err := w.value(elem, &frame{parent: at, index: i}); err != nil {
			return err
		}
	}
}

func (w *walker) object(s *shape, at *frame) error {
	var seen map[string]bool
	w.pos++
	for {
		w.space()
		switch w.data[w.pos] {
		case '}':
			w.pos++
			return nil
		case ',':
			w.pos++
			w.space()
		}
		start := w.pos
		name, err := unquote(w.str())
		if err != nil {
			return w.invalid(at, start, "has a malformed name")
		}
		if s.want == wantObject {
			if seen[name] {
				return w.invalid(&frame{parent: at, name: name}, start, "appears twice")
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[name] = true
		}
		elem, known := s.field(name)
		if !known {
			return w.invalid(&frame{parent: at, name: name}, start, "is not a known field").
				WithHint("known fields are %s", strings.Join(s.names(), ", "))
		}
		w.space()
		w.pos++ // the colon
		if err := w.value(elem, &frame{parent: at, name: name}); err != nil {
			return err
		}
	}
}

// field returns the shape of an object's field; known is false if there must
// not be one of that name.
func (s *shape) field(name string) (f *shape, known bool) {
	switch {
	case s.want == wantAny:
		return s, true
	case s.elem != nil:
		return s.elem, true
	}
	if f, ok := s.fields[name]; ok {
		return f, true
	}
	return &shape{want: wantAny}, s.open
}

func (s *shape) names() []string {
	out := make([]string, 0, len(s.fields))
	for name := range s.fields {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
