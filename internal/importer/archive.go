package importer

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mneme/memory"
)

const (
	zipMagic  = "PK\x03\x04"
	gzipMagic = "\x1f\x8b"

	// maxArchived is how many files an archive or folder may have.
	maxArchived = 200_000
	// What unpacks to more than bombSize and more than bombRatio times what it is
	// packed, one file or all together, is no export: text of conversations packs 3 to 30 times.
	bombSize  = 64 << 20
	bombRatio = 200
)

// archive is the files of a zip or of the folder that it was unpacked to.
type archive struct {
	folder bool // it is no zip
	files  []archived
	unsafe []string // names that lead out of it; nothing of theirs is read
	closed []found  // what of a folder cannot be read, or is not followed
	close  func() error
}

// archived is one file of an archive.
type archived struct {
	name string // with slashes
	open func() (io.ReadCloser, error)
}

// chapter is a file of an archive and how it is read.
type chapter struct {
	file archived
	open func(io.Reader, string, Options) (Source, error)
}

func openFiles(path string) (*archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, path))
	}
	if info.IsDir() {
		return openFolder(path)
	}
	z, err := zip.OpenReader(path)
	if errors.Is(err, zip.ErrInsecurePath) {
		err = nil // such names are left out below
	}
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "it is not a whole zip: %w", err).
			WithHint("download it again; an export that was cut off cannot be read")
	}
	a := &archive{close: z.Close}
	all := &unpacked{packed: info.Size()}
	if len(z.File) > maxArchived {
		return nil, errors.Join(a.tooMany(len(z.File)), z.Close())
	}
	for _, f := range z.File {
		name := strings.ReplaceAll(f.Name, `\`, "/")
		switch {
		case strings.HasSuffix(name, "/"), strings.HasPrefix(name, "__MACOSX/"):
		case !fs.ValidPath(name):
			a.unsafe = append(a.unsafe, f.Name)
		case f.Mode().IsRegular():
			a.files = append(a.files, archived{name, func() (io.ReadCloser, error) { return unpack(f, all) }})
		}
	}
	return a, nil
}

func (a *archive) tooMany(n int) error {
	return memory.Errorf(memory.CodeInvalid, "it holds %d files, more than the %d that are read", n, maxArchived)
}

// openFolder lists the files of a folder, without following links.
func openFolder(dir string) (*archive, error) {
	a := &archive{folder: true, close: func() error { return nil }}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil && p == dir {
			return err
		}
		rel, rerr := filepath.Rel(dir, p)
		if rerr != nil {
			return rerr
		}
		name := filepath.ToSlash(rel)
		switch {
		case err != nil:
			a.closed = append(a.closed, found{name, &ItemError{Where: name, Err: Unnamed(err, p)}})
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			a.closed = append(a.closed, found{name, &Skip{Where: name, Why: linked}})
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		a.files = append(a.files, archived{name, func() (io.ReadCloser, error) {
			f, err := os.Open(p)
			if err != nil {
				return nil, Unnamed(err, p)
			}
			return f, nil
		}})
		if len(a.files) > maxArchived {
			return a.tooMany(len(a.files))
		}
		return nil
	})
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", Unnamed(err, dir))
	}
	return a, nil
}

// unpack opens a file of a zip, with a bound of what it and all files unpack to.
func unpack(f *zip.File, all *unpacked) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &unpacking{ReadCloser: r, of: []*unpacked{{packed: int64(f.CompressedSize64)}, all}}, nil
}

// unpacked counts what is packed, and what became of it so far.
type unpacked struct{ packed, n int64 }

// unpacking refuses to read on where something unpacks to more than it may.
type unpacking struct {
	io.ReadCloser
	of []*unpacked
}

// Read reads what was unpacked.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	for _, of := range u.of {
		of.n += int64(n)
		if of.n > bombSize && of.n/bombRatio > of.packed {
			return 0, fmt.Errorf("refused as a zip bomb: its %d bytes unpack to more than %d", of.packed, of.n)
		}
	}
	return n, err
}

// packing counts what is read of something packed, whose size is not known before.
type packing struct {
	r  *bufio.Reader
	of *unpacked
}

// Read reads what is packed.
func (p *packing) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.of.packed += int64(n)
	return n, err
}

// ReadByte reads a byte of it; with it gzip reads no further than it has to.
func (p *packing) ReadByte() (byte, error) {
	b, err := p.r.ReadByte()
	if err == nil {
		p.of.packed++
	}
	return b, err
}

// find returns the file with a name, in the folder nearest to the top.
func (a *archive) find(name string) (archived, bool) {
	var best archived
	for _, f := range a.files {
		if path.Base(f.name) == name && (best.open == nil || strings.Count(f.name, "/") < strings.Count(best.name, "/")) {
			best = f
		}
	}
	return best, best.open != nil
}

// source reads chapters in their order, and tells of what else there is.
func (a *archive) source(chapters []chapter, opts Options) Source {
	told := &queued{fill: func() error { return io.EOF }}
	for _, name := range a.unsafe {
		told.bad(0, clean(name, 200), errors.New("its path leads out of the archive; it was not read"))
	}
	for _, f := range a.closed {
		told.tell(f.tell)
	}
	read := make(map[string]bool, len(chapters))
	for _, c := range chapters {
		read[c.file.name] = true
	}
	for _, f := range a.files {
		if !read[f.name] {
			told.skip(0, f.name, a.unread(f))
		}
	}
	parts := []part{{"", func() (Source, error) { return told, nil }}}
	for _, c := range chapters {
		parts = append(parts, part{c.file.name, func() (Source, error) {
			r, err := c.file.open()
			if err != nil {
				return nil, err
			}
			src, err := c.open(r, path.Base(c.file.name), opts)
			if err != nil {
				return nil, errors.Join(err, r.Close())
			}
			return &chapterSource{src, r}, nil
		}})
	}
	return &archiveSource{sequence: sequence{parts: parts}, archive: a}
}

// unread says why a file is left out.
func (a *archive) unread(f archived) string {
	const why = "a file of another kind"
	if !a.folder || !slices.Contains([]string{".json", ".jsonl", ".gz", ".csv", ".tsv", ".db"}, strings.ToLower(path.Ext(f.name))) {
		return why
	}
	r, err := f.open()
	if err != nil {
		return why
	}
	defer func() { _ = r.Close() }()
	h := head(r)
	if format, _ := sniff(h, path.Base(f.name)); format == "" || len(h) == 0 {
		return why
	}
	return "of another format; import it by its name"
}

// chapterSource closes the file of a source.
type chapterSource struct {
	Source
	file io.Closer
}

// Close closes source and file.
func (s *chapterSource) Close() error { return errors.Join(s.Source.Close(), s.file.Close()) }

// archiveSource closes the archive behind its chapters.
type archiveSource struct {
	sequence
	archive *archive
}

// Close closes what is open.
func (s *archiveSource) Close() error { return errors.Join(s.sequence.Close(), s.archive.close()) }

// openArchive reads the chapters that choose finds in an archive or folder.
func openArchive(format string, choose func(*archive) []chapter) func(string, Options) (Source, error) {
	return func(path string, opts Options) (Source, error) {
		a, err := openFiles(path)
		if err != nil {
			return nil, err
		}
		chapters := choose(a)
		if len(chapters) == 0 {
			return nil, errors.Join(memory.Errorf(memory.CodeInvalid, "it holds no conversations.json").
				WithHint("name the zip of the export of %s, or the folder that it was unpacked to", format), a.close())
		}
		return a.source(chapters, opts), nil
	}
}

// conversationFile is conversations.json, or one of several: conversations-000.json.
var conversationFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^conversations(-\d+)?\.json$`) })

// conversations returns the files of conversations of an archive.
func (a *archive) conversations() []archived {
	var out []archived
	for _, f := range a.files {
		if conversationFile().MatchString(path.Base(f.name)) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(x, y archived) int { return strings.Compare(x.name, y.name) })
	return out
}
