package proc

import (
	"bytes"
	"sync"
)

// firstLine passes the first line written to it on and drops the rest.
type firstLine struct {
	line chan string // holds one

	mu   sync.Mutex
	buf  bytes.Buffer
	sent bool
}

func newFirstLine() *firstLine { return &firstLine{line: make(chan string, 1)} }

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent {
		return len(p), nil
	}
	f.buf.Write(p)
	if i := bytes.IndexByte(f.buf.Bytes(), '\n'); i >= 0 {
		f.line <- string(bytes.TrimRight(f.buf.Bytes()[:i], "\r"))
		f.sent = true
		f.buf = bytes.Buffer{}
	}
	return len(p), nil
}

// tail keeps the last max bytes written to it.
type tail struct {
	max int

	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
