package importer

import (
	"bufio"
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

// maxLine bounds one line: the largest text with every byte escaped, and its
// metadata.
const maxLine = 4 << 20

type jsonl struct {
	r    *bufio.Reader
	opts Options
	line int
	seen map[[16]byte]int // how often a line without an id came, by digest
	done error
}

func newJSONL(r io.Reader, opts Options) *jsonl {
	return &jsonl{r: bufio.NewReaderSize(r, 64<<10), opts: opts, seen: map[[16]byte]int{}}
}

// Next returns the item of the next line that is not blank.
func (s *jsonl) Next() (Item, error) {
	for s.done == nil {
		line, long, err := s.read()
		if err != nil {
			s.done = err
			if len(line) == 0 {
				break
			}
		}
		s.line++
		if s.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		where := "line " + strconv.Itoa(s.line)
		if long {
			return Item{}, &ItemError{Line: s.line, Where: where, Err: fmt.Errorf("longer than %d bytes", maxLine)}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		item, err := s.parse(line)
		if err != nil {
			return Item{}, &ItemError{Line: s.line, Where: where, Err: err}
		}
		return check(item, where)
	}
	return Item{}, s.done
}

// read returns the next line, or long and a part of it. At the end of the file
// it returns what stood behind the last newline together with io.EOF.
func (s *jsonl) read() (line []byte, long bool, err error) {
	for {
		part, err := s.r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			long = len(line) > maxLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
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
	c := exp.Capture
	if c.Agent == "" {
		c.Agent = s.opts.Agent
	}
	if exp.RecordID != "" {
		c.URI = relativeURI(c.URI, exp.RecordID)
	}
	if c.ID == "" {
		c.ID = s.makeID(exp.RecordID, exp.Version, c)
	}
	return Item{Namespace: s.opts.Namespace, Capture: c, Line: s.line, RecordID: exp.RecordID}, nil
}

// relativeURI takes the namespace off an exported uri, so that the line can go
// into another one; a uri that only repeats the record id is dropped, because
// the new record has its own.
func relativeURI(uri, recordID string) string {
	rest, ok := strings.CutPrefix(uri, "mem://")
	if !ok {
		return uri
	}
	if _, path, found := strings.Cut(rest, "/"); found {
		rest = path
	}
	if rest == recordID {
		return ""
	}
	return rest
}

// makeID gives a line without an id one that is the same at every reading: the
// record's, or a digest of the content and how often that content came before.
func (s *jsonl) makeID(recordID string, version int, c memory.Capture) string {
	if recordID != "" {
		return "export/" + recordID + "." + strconv.Itoa(version)
	}
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
