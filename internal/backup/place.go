package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// Place keeps files by name, in folders of one level: a directory or a bucket. Its
// implementations share the contract suite in placetest.
type Place interface {
	// String names the place in messages, without credentials.
	String() string

	// List gives the files of a folder, by name. A folder that is not there is empty.
	List(ctx context.Context, folder string) ([]Info, error)

	// Put makes a file, or replaces it, of what write writes. Until Put has returned nil
	// nobody finds the file, or anything but the former one; if write fails, or ctx ends,
	// nobody ever does.
	Put(ctx context.Context, name string, write func(io.Writer) error) error

	// Open reads a file; an error wraps fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)

	// Remove removes a file. That it is not there is no error.
	Remove(ctx context.Context, name string) error

	// Sweep removes what Puts that were killed have left of before a time.
	Sweep(ctx context.Context, before time.Time) error
}

// Info is what a place says of a file.
type Info struct {
	Name    string // with its folder
	Size    int64
	Changed time.Time
}

// FileRef is what a file is known by.
type FileRef struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// summer counts and hashes what passes through it.
type summer struct {
	sum hash.Hash
	n   int64
}

func newSummer() *summer { return &summer{sum: sha256.New()} }

// Write implements io.Writer.
func (s *summer) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	return s.sum.Write(p)
}

func (s *summer) ref() FileRef {
	return FileRef{Bytes: s.n, SHA256: hex.EncodeToString(s.sum.Sum(nil))}
}

// put makes a file and says what it is known by.
func put(ctx context.Context, to Place, name string, write func(io.Writer) error) (FileRef, error) {
	s := newSummer()
	err := to.Put(ctx, name, func(w io.Writer) error { return write(io.MultiWriter(w, s)) })
	return s.ref(), err
}

// openAs opens a file that has to be what ref says: at its end an error that wraps
// ErrNotIntact takes the place of io.EOF if it is not.
func openAs(ctx context.Context, from Place, name string, ref FileRef) (io.ReadCloser, error) {
	r, err := from.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &checkedReader{ReadCloser: r, sum: newSummer(), want: ref, name: name}, nil
}

type checkedReader struct {
	io.ReadCloser
	sum  *summer
	want FileRef
	name string
}

// Read implements io.Reader.
func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.sum.Write(p[:n]) // a hash takes everything
	if err == io.EOF && c.sum.ref() != c.want {
		err = notAs(c.name, c.sum.ref(), c.want)
	}
	return n, err
}

func notAs(name string, got, want FileRef) error {
	if got.Bytes != want.Bytes {
		return fmt.Errorf("%s has %d bytes, and had %d: %w", name, got.Bytes, want.Bytes, ErrNotIntact)
	}
	return fmt.Errorf("%s is not what was written there: SHA-256 %s, and it was %s: %w", name, got.SHA256, want.SHA256, ErrNotIntact)
}

// maxWhole bounds what is read into memory at once: the keys of ten million subjects are less.
const maxWhole = 1 << 30

// readAs reads a small file whole, as openAs does. It reads no more of a longer one than shows
// that it is longer.
func readAs(ctx context.Context, from Place, name string, ref FileRef) ([]byte, error) {
	if ref.Bytes < 0 || ref.Bytes > maxWhole {
		return nil, fmt.Errorf("%s: %d bytes are none that were written: %w", name, ref.Bytes, ErrNotIntact)
	}
	r, err := openAs(ctx, from, name, ref)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, ref.Bytes+1))
	if err == nil && int64(len(b)) > ref.Bytes {
		err = fmt.Errorf("%s has more than the %d bytes that it had: %w", name, ref.Bytes, ErrNotIntact)
	}
	return b, errors.Join(err, r.Close())
}
