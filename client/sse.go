package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// maxSSELine bounds one line: an event with 256 KiB of text, escaped, with its
// metadata.
const maxSSELine = 4 << 20

var errSSETooLong = errors.New("server-sent event is too long")

// sseMessage is one dispatched server-sent event.
type sseMessage struct {
	id    string
	name  string // the event field
	data  []byte
	retry time.Duration
}

// sse reads the event stream format of the HTML standard, section 9.2.6:
// fields, comments, and an empty line that dispatches. An unfinished message at
// the end is dropped. Lines may end in LF or CRLF.
type sse struct {
	r *bufio.Reader
}

func newSSE(r io.Reader) *sse { return &sse{r: bufio.NewReaderSize(r, 32<<10)} }

// next returns the next message that carries data, an id or a retry time. One
// with an id and no data says where the stream stands.
func (s *sse) next() (sseMessage, error) {
	var m sseMessage
	hasData := false
	for {
		line, err := s.line()
		if err != nil {
			return sseMessage{}, err
		}
		if len(line) == 0 {
			if hasData || m.id != "" || m.retry > 0 {
				return m, nil
			}
			m = sseMessage{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				m.id = string(value)
			}
		case "event":
			m.name = string(value)
		case "data":
			if hasData {
				m.data = append(m.data, '\n')
			}
			if len(m.data)+len(value) > maxSSELine {
				return sseMessage{}, errSSETooLong
			}
			m.data = append(m.data, value...)
			hasData = true
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				m.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns one line without its end. The slice lives until the next call.
func (s *sse) line() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = s.r.ReadSlice('\n')
			if len(long)+len(line) > maxSSELine {
				return nil, errSSETooLong
			}
			long = append(long, line...)
		}
		line = long
	}
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1]
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}
