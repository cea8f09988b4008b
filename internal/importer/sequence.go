package importer

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"mneme/memory"
)

// part is one file of several that are read one after the other.
type part struct {
	name string // for people; stands before what the items say
	open func() (Source, error)
}

// sequence reads parts in order, one open at a time. A part that cannot be read
// on is told, and the next one is read.
type sequence struct {
	parts []part
	now   Source
	name  string
}

// Next returns the next item of the part that is being read.
func (s *sequence) Next() (Item, error) {
	for {
		if s.now == nil {
			if len(s.parts) == 0 {
				return Item{}, io.EOF
			}
			p := s.parts[0]
			s.parts = s.parts[1:]
			src, err := p.open()
			if err != nil {
				return Item{}, s.within(p.name, err)
			}
			s.now, s.name = src, p.name
		}
		item, err := s.now.Next()
		if err == nil {
			item.Where = join(s.name, item.Where)
			for i := range item.Left {
				item.Left[i].Where = join(s.name, item.Left[i].Where)
			}
			return item, nil
		}
		about := false
		switch err.(type) {
		case *ItemError, *Skip:
			about = true
		}
		if !about {
			if cerr := s.Close(); errors.Is(err, io.EOF) {
				err = cerr
			}
			if err == nil {
				continue
			}
		}
		return Item{}, s.within(s.name, err)
	}
}

// within names the part in an error; one that ended the part is told as an item's.
func (s *sequence) within(name string, err error) error {
	switch e := err.(type) {
	case *ItemError:
		return &ItemError{Line: e.Line, Where: join(name, e.Where), Err: e.Err}
	case *Skip:
		return &Skip{Line: e.Line, Where: join(name, e.Where), Why: e.Why}
	}
	return &ItemError{Where: name, Err: err}
}

func join(name, where string) string {
	switch {
	case name == "":
		return where
	case where == "":
		return name
	}
	return name + " " + where
}

// Close closes the part that is being read.
func (s *sequence) Close() error {
	if s.now == nil {
		return nil
	}
	err := s.now.Close()
	s.now = nil
	return err
}

// Close does nothing: what a queue is filled from is closed by who opened it.
func (s *queued) Close() error { return nil }

// member is a file of a folder.
type member struct{ path, name string }

func fileMember(dir, name string) member {
	return member{path: filepath.Join(dir, filepath.FromSlash(name)), name: name}
}

// source opens the file and reads it by open.
func (m member) source(open func(io.Reader, string, Options) (Source, error), opts Options) (Source, error) {
	f, err := os.Open(m.path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	src, err := open(f, base(m.path), opts)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &fileSource{Source: src, file: f}, nil
}

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
