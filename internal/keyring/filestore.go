package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
)

// Store keeps the sealed image. Save must be durable when it returns, and after
// it no earlier image may be left: erasure rests on that. Load gives nil and no
// error where nothing was ever saved. The keyring calls one at a time.
type Store interface {
	Load() ([]byte, error)
	Save(image []byte) error
}

// A copy's file:
//
//	 0      8      9            17          25             25+n      57+n
//	├──────┼──────┼────────────┼───────────┼──────────────┼─────────┤
//	│magic │vers. │ generation │ n         │ image        │ SHA-256 │
//	└──────┴──────┴────────────┴───────────┴──────────────┴─────────┘
//
// Numbers are big endian. The hash covers everything before it, and stands at
// the end in every version, so that damage is told from a newer format.
const (
	copyVersion   = 1
	copyHeader    = 8 + 1 + 8 + 8
	primaryName   = "keyring.v1"
	secondaryName = primaryName + copySuffix
	copySuffix    = ".copy"
)

// copyFormat tells the kinds of files apart: a copy of one is never read as another.
type copyFormat struct{ name, magic string }

var (
	ringFormat    = copyFormat{primaryName, "MNEMEKR\x00"}
	secretFormat  = copyFormat{"node.secret", "MNEMENS\x00"}
	storageFormat = copyFormat{"storage.keys", "MNEMESK\x00"}
)

// FileStore keeps the image in two files of one directory, each checksummed and
// numbered with a generation. The second is touched only once the first is
// durable, so at every moment one of them is whole.
type FileStore struct {
	copyFormat
	dir string
	fs  FS
	log *slog.Logger

	mu  sync.Mutex
	gen uint64 // the highest that may be on disk
}

// NewFileStore keeps the keyring's files in dir, which must exist before Save.
func NewFileStore(dir string, fsys FS, log *slog.Logger) *FileStore {
	return newCopies(ringFormat, dir, fsys, log)
}

func newCopies(format copyFormat, dir string, fsys FS, log *slog.Logger) *FileStore {
	return &FileStore{copyFormat: format, dir: dir, fs: fsys, log: log}
}

func (s *FileStore) paths() [2]string {
	return [2]string{filepath.Join(s.dir, s.name), filepath.Join(s.dir, s.name+copySuffix)}
}

// fileCopy is what was found at one path: err says why it cannot be used.
type fileCopy struct {
	raw   []byte
	gen   uint64
	image []byte
	err   error
}

// Load gives the image of the newest good copy. Where the other is damaged,
// missing or older it is replaced first, and logged; left-over temporary files
// are removed. Errors: ErrDamaged, ErrNewerFormat, or the file system's.
func (s *FileStore) Load() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found [2]fileCopy
	for i, path := range s.paths() {
		found[i] = s.read(path)
		if err := found[i].err; err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
	}
	// Only now: a newer program's files are left as they are.
	if err := s.removeTemps(); err != nil {
		return nil, err
	}
	a, b := found[0], found[1]
	if errors.Is(a.err, fs.ErrNotExist) && errors.Is(b.err, fs.ErrNotExist) {
		return nil, nil
	}
	best, other := a, 1
	if a.err != nil || b.err == nil && b.gen > a.gen {
		best, other = b, 0
	}
	if best.err != nil {
		return nil, fmt.Errorf("load %s: first copy: %w; second copy: %w", s.paths()[0], a.err, b.err)
	}
	s.gen = best.gen
	if !bytes.Equal(found[other].raw, best.raw) {
		path := s.paths()[other]
		s.log.Warn("copy of a key file healed", "file", path, "generation", best.gen, "was", describe(found[other]))
		if err := replace(s.fs, s.dir, path, best.raw); err != nil {
			return nil, fmt.Errorf("heal %s: %w", path, err)
		}
	}
	return best.image, nil
}

func describe(c fileCopy) string {
	if c.err != nil {
		return c.err.Error()
	}
	return fmt.Sprintf("generation %d", c.gen)
}

// Save replaces first one copy, then the other. After an error both are whole,
// each with either the old or the new image; another Save overrides both.
func (s *FileStore) Save(image []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++ // also when it fails: half of it may be on disk
	data := encodeCopy(s.magic, s.gen, image)
	for _, path := range s.paths() {
		if err := replace(s.fs, s.dir, path, data); err != nil {
			return fmt.Errorf("save %s: %w", s.name, err)
		}
	}
	return nil
}

func (s *FileStore) removeTemps() error {
	for _, path := range s.paths() {
		if err := removeIfThere(s.fs, path+tempSuffix); err != nil {
			return err
		}
	}
	return nil
}

func (s *FileStore) read(path string) fileCopy {
	raw, err := s.fs.ReadFile(path)
	if errors.Is(err, syscall.EIO) {
		// An unreadable sector is damage, and the other copy is for that.
		return fileCopy{err: fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	if err != nil {
		return fileCopy{err: err}
	}
	gen, image, err := decodeCopy(s.magic, raw)
	return fileCopy{raw: raw, gen: gen, image: image, err: err}
}

func encodeCopy(magic string, gen uint64, image []byte) []byte {
	b := make([]byte, 0, copyHeader+len(image)+sha256.Size)
	b = append(b, magic...)
	b = append(b, copyVersion)
	b = binary.BigEndian.AppendUint64(b, gen)
	b = binary.BigEndian.AppendUint64(b, uint64(len(image)))
	b = append(b, image...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeCopy gives the image as a part of raw.
func decodeCopy(magic string, raw []byte) (gen uint64, image []byte, err error) {
	if len(raw) < copyHeader+sha256.Size {
		return 0, nil, fmt.Errorf("%w: %d bytes", ErrDamaged, len(raw))
	}
	body := raw[:len(raw)-sha256.Size]
	if sha256.Sum256(body) != [sha256.Size]byte(raw[len(body):]) || string(body[:8]) != magic {
		return 0, nil, fmt.Errorf("%w: checksum differs", ErrDamaged)
	}
	if v := body[8]; v != copyVersion {
		if v > copyVersion {
			return 0, nil, fmt.Errorf("%w: file version %d, known %d", ErrNewerFormat, v, copyVersion)
		}
		return 0, nil, fmt.Errorf("%w: file version %d", ErrDamaged, v)
	}
	image = body[copyHeader:]
	if n := binary.BigEndian.Uint64(body[17:]); n != uint64(len(image)) {
		return 0, nil, fmt.Errorf("%w: image of %d bytes, header says %d", ErrDamaged, len(image), n)
	}
	return binary.BigEndian.Uint64(body[9:]), image, nil
}
