package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// rowReader reads the rows of a table one by one, so that one that is damaged or too long takes no other
// one with it.
type rowReader struct {
	in    *bufio.Reader
	comma byte
	lines int // read so far
	first int // line of the row
	done  error

	row    []byte
	bytes  *bytes.Reader
	buffer *bufio.Reader // between bytes and parser
	parser *csv.Reader
}

func newRowReader(in *bufio.Reader, comma byte) *rowReader {
	r := &rowReader{in: in, comma: comma, bytes: bytes.NewReader(nil)}
	r.buffer = bufio.NewReader(r.bytes)
	r.parser = csv.NewReader(r.buffer)
	r.parser.Comma, r.parser.ReuseRecord = rune(comma), true
	return r
}

// next returns the fields of the next row, which are good until the next call. A row that cannot be read is an *ItemError.
func (r *rowReader) next() ([]string, error) {
	for r.done == nil {
		open, long := r.read()
		if r.done != nil && !errors.Is(r.done, io.EOF) {
			break // what was read of the row may be a part of it
		}
		where := atLine(r.first)
		if r.lines > r.first {
			where = fmt.Sprintf("lines %d-%d", r.first, r.lines)
		}
		bad := func(err error) error { return &ItemError{Line: r.first, Where: where, Err: err} }
		switch {
		case long:
			return nil, bad(fmt.Errorf("a row larger than %d bytes", maxLine))
		case open:
			return nil, bad(errors.New("a quotation mark that nothing closes, up to the end of the file"))
		}
		r.bytes.Reset(r.row)
		r.buffer.Reset(r.bytes)
		fields, err := r.parser.Read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF): // nothing stands there
			continue
		case errors.As(err, &parse):
			return nil, bad(parse.Err)
		case err != nil:
			return nil, bad(err)
		}
		return fields, nil
	}
	if errors.Is(r.done, io.EOF) {
		return nil, io.EOF
	}
	return nil, damaged("csv", r.done)
}

// read finds the end of the next row, which quotes may have behind several lines. A row that is too long is read and not
// kept; open says that a quote goes on at the end of the file. What stands behind the end of a quote is an error, and ends the row with its line.
func (r *rowReader) read() (open, long bool) {
	r.row, r.first = r.row[:0], r.lines+1
	quoted, closing, start, some := false, false, true, false
	for {
		part, err := r.in.ReadSlice('\n')
		some = some || len(part) > 0
		if !long {
			r.row = append(r.row, part...)
			long = len(r.row) > maxLine
		}
		if quoted || bytes.IndexByte(part, '"') >= 0 {
			for _, c := range part {
				switch {
				case quoted && closing:
					closing = false
					if c != '"' && c != '\r' {
						quoted, start = false, c == r.comma
					} else if c == '\r' {
						closing = true // as long as the line ends there
					}
				case quoted:
					closing = c == '"'
				case c == '"' && start:
					quoted, start = true, false
				default:
					start = c == r.comma
				}
			}
		} else if len(part) > 0 {
			start = part[len(part)-1] == r.comma
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if some {
			r.lines++
		}
		if err != nil {
			r.done = err
			return quoted && !closing, long
		}
		some = false
		if !quoted {
			return false, long
		}
	}
}
