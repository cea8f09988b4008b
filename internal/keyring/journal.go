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
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// A key file holds an image and the records that were appended since:
//
//	 0      8      9            17          25             25+n      57+n
//	├──────┼──────┼────────────┼───────────┼──────────────┼─────────┼──────────
//	│magic │vers. │ generation │ n         │ image        │ SHA-256 │ records …
//	└──────┴──────┴────────────┴───────────┴──────────────┴─────────┴──────────
//
//	 0          4            4+n       20+n
//	├──────────┼────────────┼─────────┤
//	│ n        │ record     │ sum     │
//	└──────────┴────────────┴─────────┘
//
// Numbers are big endian. The hash covers everything before it, and stands
// there in every version, so that damage is told from a newer format. The sum
// of a record is the first 16 bytes of the SHA-256 of the sum (or hash) before
// it, the length and the record: no record verifies behind another image.
const (
	copyVersion   = 3
	copyHeader    = 8 + 1 + 8 + 8
	recordSum     = 16
	primaryName   = "keyring.v1"
	secondaryName = primaryName + copySuffix
	copySuffix    = ".copy"
	keyMode       = 0o600
	keysDirMode   = 0o700
)

// copyFormat tells the kinds of files apart: a copy of one is never read as another.
type copyFormat struct{ name, magic string }

var (
	ringFormat    = copyFormat{primaryName, "MNEMEKR\x00"}
	secretFormat  = copyFormat{"node.secret", "MNEMENS\x00"}
	storageFormat = copyFormat{"storage.keys", "MNEMESK\x00"}
)

// journal keeps a key file in two copies. The second is touched only once the
// first is durable, so at every moment one of them is whole. Its owner makes
// one call at a time.
type journal struct {
	copyFormat
	fs  vfs.FS
	dir string
	log *slog.Logger

	gen     uint64 // the highest that may be on disk
	sum     []byte // the last sum or hash in the file
	size    int64  // of the file
	image   int64  // where the records begin
	suspect bool   // a write failed: the copies may differ behind size
}

func newJournal(format copyFormat, opt *Options) *journal {
	return &journal{copyFormat: format, fs: opt.FS, dir: opt.keys(), log: opt.Log}
}

func (j *journal) paths() [2]string {
	return [2]string{filepath.Join(j.dir, j.name), filepath.Join(j.dir, j.name+copySuffix)}
}

// copyHead is the beginning of a copy.
type copyHead struct {
	gen   uint64
	image []byte
	end   int // where the records begin
	sum   []byte
}

// fileCopy is what was found at one path: err says why its head cannot be used.
type fileCopy struct {
	copyHead
	raw []byte
	err error
}

// load gives the image and the records behind it, nil where there is no file.
// Each is taken from whichever copy verifies; a copy that differs is replaced
// first, and logged. What the first copy alone holds at its end and does not
// verify was never acknowledged and is cut off. Errors: ErrDamaged,
// ErrNewerFormat, ErrOlderFormat, or the file system's.
func (j *journal) load() (image []byte, records [][]byte, err error) {
	var found [2]fileCopy
	for i, path := range j.paths() {
		found[i] = j.read(path)
		if err := found[i].err; err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("load %s: %w", path, err)
		}
	}
	// Only now: a newer program's files are left as they are.
	if err := removeTemps(j.fs, j.dir, j.name); err != nil {
		return nil, nil, err
	}
	a, b := &found[0], &found[1]
	if errors.Is(a.err, fs.ErrNotExist) && errors.Is(b.err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	best, other := a, b
	if a.err != nil || b.err == nil && b.gen > a.gen {
		best, other = b, a
	}
	if best.err != nil {
		return nil, nil, fmt.Errorf("load %s: first copy: %w; second copy: %w", j.paths()[0], a.err, b.err)
	}
	whole, records, err := follow(best, other, best == a)
	if err != nil {
		return nil, nil, fmt.Errorf("load %s: %w", j.paths()[0], err)
	}
	j.gen, j.image = best.gen, int64(best.end)
	return best.image, records, j.heal(found, whole)
}

// follow walks along the records of both copies, behind the head of best. It
// gives the bytes that both should hold. first: best is the first copy.
func follow(best, other *fileCopy, first bool) (whole []byte, records [][]byte, err error) {
	whole = bytes.Clone(best.raw[:best.end])
	sum := best.sum
	same := other.err == nil && bytes.Equal(other.sum, best.sum)
	sources := [][]byte{best.raw}
	if same || errors.Is(other.err, ErrDamaged) { // records verify behind this head only
		sources = append(sources, other.raw)
	}
	for {
		var record []byte
		for _, raw := range sources {
			if record = recordAt(raw, len(whole), sum); record != nil {
				break
			}
		}
		if record == nil {
			break
		}
		records = append(records, record)
		whole = appendRecord(whole, sum, record)
		sum = whole[len(whole)-recordSum:]
	}
	second := other
	if !first {
		second = best
	}
	// A write reaches the second copy only after the first. So bytes that do not
	// verify are a write cut short only where the second copy ends before them.
	if !same && len(best.raw) > len(whole) || same && len(second.raw) > len(whole) {
		return nil, nil, fmt.Errorf("%w: record %d does not verify in either copy", ErrDamaged, len(records)+1)
	}
	return whole, records, nil
}

// recordAt gives the record at an offset, nil if none verifies there.
func recordAt(raw []byte, at int, sum []byte) []byte {
	if len(raw)-at < 4+recordSum {
		return nil
	}
	n := uint64(binary.BigEndian.Uint32(raw[at:]))
	if n > uint64(len(raw)-at-4-recordSum) {
		return nil
	}
	body := raw[at : at+4+int(n)]
	if !bytes.Equal(sumRecord(sum, body), raw[at+len(body):at+len(body)+recordSum]) {
		return nil
	}
	return body[4:]
}

func sumRecord(before, body []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(body)
	return h.Sum(nil)[:recordSum]
}

func appendRecord(b, sum, record []byte) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(record)))
	b = append(b, record...)
	return append(b, sumRecord(sum, b[at:])...)
}

// heal makes both copies hold the bytes of whole.
func (j *journal) heal(found [2]fileCopy, whole []byte) error {
	for i, path := range j.paths() {
		if bytes.Equal(found[i].raw, whole) {
			continue
		}
		j.log.Warn("copy of a key file healed", "file", path, "generation", j.gen, "was", describe(&found[i]))
		if err := storage.ReplaceFile(j.fs, path, whole, keyMode); err != nil {
			return fmt.Errorf("heal %s: %w", path, err)
		}
	}
	j.size = int64(len(whole))
	j.sum = bytes.Clone(whole[len(whole)-recordSum:])
	if j.size == j.image {
		j.sum = bytes.Clone(whole[len(whole)-sha256.Size:])
	}
	return nil
}

func describe(c *fileCopy) string {
	if c.err != nil {
		return c.err.Error()
	}
	return fmt.Sprintf("generation %d, %d bytes", c.gen, len(c.raw))
}

// cut replaces first one copy, then the other, by an image without records.
// After an error each copy is whole, old or new; another cut overrides both.
func (j *journal) cut(image []byte) error {
	j.gen++ // also when it fails: half of it may be on disk
	j.suspect = true
	data := encodeCopy(j.magic, j.gen, image)
	for _, path := range j.paths() {
		if err := storage.ReplaceFile(j.fs, path, data, keyMode); err != nil {
			return fmt.Errorf("save %s: %w", j.name, err)
		}
	}
	j.size, j.image, j.suspect = int64(len(data)), int64(len(data)), false
	j.sum = bytes.Clone(data[len(data)-sha256.Size:])
	return nil
}

// mustCut reports whether a record of n bytes may not be appended: after a
// failure, or when the records would outgrow the image.
func (j *journal) mustCut(n int) bool {
	return j.suspect || j.size+int64(n)-j.image > max(j.image, minimumTail)
}

// minimumTail is how long the records may always get, small as the image is.
const minimumTail = 64 << 10

// append writes a record behind the others, first to one copy and, once it is
// durable there, to the other. After an error the next write must be a cut.
func (j *journal) append(record []byte) error {
	data := appendRecord(nil, j.sum, record)
	j.suspect = true
	for _, path := range j.paths() {
		if err := j.appendTo(path, data); err != nil {
			return fmt.Errorf("append to %s: %w", path, err)
		}
	}
	j.size, j.suspect = j.size+int64(len(data)), false
	j.sum = data[len(data)-recordSum:]
	return nil
}

func (j *journal) appendTo(path string, data []byte) error {
	st, err := j.fs.Stat(path) // OpenReadWrite would make a file that is gone
	if err != nil {
		return err
	}
	if st.Size() != j.size {
		return fmt.Errorf("it has %d bytes, not %d: another process writes it", st.Size(), j.size)
	}
	f, err := j.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(slices.Clone(data), j.size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeTemps removes what a replacement of either copy that was cut short left
// behind: it may hold keys.
func removeTemps(fsys vfs.FS, dir, file string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	removed := false
	for _, name := range names {
		if !strings.HasPrefix(name, "."+file+".tmp-") && !strings.HasPrefix(name, "."+file+copySuffix+".tmp-") {
			continue
		}
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return storage.SyncDir(fsys, dir)
}

func (j *journal) read(path string) fileCopy {
	raw, err := storage.ReadFile(j.fs, path)
	if errors.Is(err, syscall.EIO) {
		// An unreadable sector is damage, and the other copy is for that.
		return fileCopy{err: fmt.Errorf("%w: %w", ErrDamaged, err)}
	}
	if err != nil {
		return fileCopy{err: err}
	}
	head, err := decodeHead(j.magic, raw)
	return fileCopy{raw: raw, copyHead: head, err: err}
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

// decodeHead gives the head of a copy, as parts of raw.
func decodeHead(magic string, raw []byte) (copyHead, error) {
	if len(raw) < copyHeader+sha256.Size {
		return copyHead{}, fmt.Errorf("%w: %d bytes", ErrDamaged, len(raw))
	}
	n := binary.BigEndian.Uint64(raw[17:])
	if n > uint64(len(raw)-copyHeader-sha256.Size) {
		return copyHead{}, fmt.Errorf("%w: image of %d bytes in a file of %d", ErrDamaged, n, len(raw))
	}
	body := raw[:copyHeader+int(n)]
	sum := raw[len(body) : len(body)+sha256.Size]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) || string(body[:8]) != magic {
		return copyHead{}, fmt.Errorf("%w: checksum differs", ErrDamaged)
	}
	if v := body[8]; v > copyVersion {
		return copyHead{}, fmt.Errorf("%w: file version %d, known %d", ErrNewerFormat, v, copyVersion)
	} else if v != copyVersion {
		return copyHead{}, fmt.Errorf("%w: file version %d, known %d", ErrOlderFormat, v, copyVersion)
	}
	return copyHead{gen: binary.BigEndian.Uint64(body[9:]), image: body[copyHeader:], end: len(body) + sha256.Size, sum: sum}, nil
}
