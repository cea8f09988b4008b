package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Sizes of what is held at a time.
const (
	// maxLine bounds one line of captures: the largest text with every byte
	// escaped, and its metadata.
	maxLine = 4 << 20
	// maxTranscriptLine bounds one line of a transcript, which may hold a whole
	// file that a tool has read.
	maxTranscriptLine = 16 << 20
	// maxElement bounds one element of a JSON array: a conversation of an export.
	maxElement = 64 << 20
)

// decoded takes the byte order mark off r, reads UTF-16 that has one as UTF-8, and lines that end
// with carriage returns alone as others.
func decoded(r io.Reader) *bufio.Reader { return decodedBy(r, 64<<10) }

// decodedBy is decoded with a buffer of so many bytes.
func decodedBy(r io.Reader, size int) *bufio.Reader {
	br := bufio.NewReaderSize(r, size)
	head, _ := br.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = br.Discard(3) // what was peeked is there
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()
		br = bufio.NewReaderSize(transform.NewReader(br, utf16), size)
		_, _ = br.Peek(1)
	}
	if head, _ = br.Peek(br.Buffered()); !bytes.Contains(head, []byte{'\n'}) && bytes.Contains(head, []byte{'\r'}) {
		return bufio.NewReaderSize(&returns{r: br}, size)
	}
	return br
}

// returns reads a file whose lines end with carriage returns alone.
type returns struct {
	r     io.Reader
	after bool // the last byte was one
}

// Read reads lines that end with line feeds.
func (c *returns) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	kept := p[:0]
	for _, b := range p[:n] {
		after := c.after
		c.after = b == '\r'
		switch {
		case b == '\r':
			b = '\n'
		case b == '\n' && after:
			continue // it ended already
		}
		kept = append(kept, b)
	}
	return len(kept), err
}

// lines reads the lines of a file that are not blank.
type lines struct {
	r   *bufio.Reader
	max int
	n   int // number of the last line
	err error
}

func newLines(r io.Reader, max int) *lines { return &lines{r: decoded(r), max: max} }

// next returns the next line without white space around it; it is good until the
// next call. A line that is too long or not UTF-8 is an *ItemError.
func (l *lines) next() ([]byte, error) {
	for l.err == nil {
		line, long, err := l.read()
		if err != nil {
			l.err = err
			if len(line) == 0 {
				break
			}
		}
		l.n++
		if long {
			return nil, l.bad(fmt.Errorf("longer than %d bytes", l.max))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			return nil, l.bad(notUTF8(line))
		}
		return line, nil
	}
	return nil, l.err
}

func (l *lines) where() string { return "line " + strconv.Itoa(l.n) }

func (l *lines) bad(err error) *ItemError { return &ItemError{Line: l.n, Where: l.where(), Err: err} }

func (l *lines) skip(why string) *Skip { return &Skip{Line: l.n, Where: l.where(), Why: why} }

// read returns the next line, or long and a part of it. At the end of the file
// it returns what stood behind the last newline together with io.EOF.
func (l *lines) read() (line []byte, long bool, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			long = len(line) > l.max
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// notUTF8 says where bytes stop being UTF-8.
func notUTF8(b []byte) error {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fmt.Errorf("is not UTF-8: byte %d of it is 0x%02x; save it as UTF-8", at+1, b[at])
}
