package encfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is an encrypting vfs.FS. It is safe for concurrent use. All writers of one
// directory must use the same FS while storage keys change.
type FS struct {
	vfs.FS // the base; what is not named below passes through
	keys   KeySource

	// sealing is held shared from the choice of a storage key until the header
	// under it is written, and alone while the key changes: else a header under
	// the former key could appear behind a Rewrap that has passed there.
	sealing sync.RWMutex
	rewrap  sync.Mutex   // one Rewrap at a time
	moves   atomic.Int64 // files that were put elsewhere: a Rewrap may have been there already
}

var _ vfs.FS = (*FS)(nil)

// New gives a file system that keeps encrypted files on base; nil is the
// operating system's.
func New(base vfs.FS, keys KeySource) *FS {
	if base == nil {
		base = vfs.Default
	}
	return &FS{FS: base, keys: keys}
}

// SwitchKey runs rotate, which makes another storage key the current one, while
// no header is under way. Once it has returned, nothing new is wrapped under a
// former key.
func (f *FS) SwitchKey(rotate func() error) error {
	f.sealing.Lock()
	defer f.sealing.Unlock()
	return rotate()
}

// Unwrap implements vfs.FS.
func (f *FS) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS. The header is written with the first content.
func (f *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	base, err := f.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &file{File: base, fs: f, name: name, created: true}, nil
}

// ReuseForWrite implements vfs.FS. It reuses nothing: the old key with new
// content at the same offsets would give both away, so the old file goes.
func (f *FS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.FS.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, c)
}

// Open implements vfs.FS. Errors, besides those of the base:
// storage.ErrMissingKey, storage.ErrDamaged, storage.ErrNewerFormat.
func (f *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	base, err := f.FS.Open(name, opts...)
	return f.opened(name, base, err)
}

// OpenReadWrite implements vfs.FS. It makes a file that is missing.
func (f *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	base, err := f.FS.OpenReadWrite(name, c, opts...)
	return f.opened(name, base, err)
}

func (f *FS) opened(name string, base vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	e := &file{File: base, fs: f, name: name}
	if _, err := e.loadKey(); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	return e, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	defer f.moves.Add(1)
	return f.FS.Rename(oldname, newname)
}

// Link implements vfs.FS.
func (f *FS) Link(oldname, newname string) error {
	defer f.moves.Add(1)
	return f.FS.Link(oldname, newname)
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.FileInfo, error) {
	info, err := f.FS.Stat(name)
	if err != nil {
		return nil, err
	}
	return contentInfo(info), nil
}

// contentInfo is info without the header in the size.
func contentInfo(info vfs.FileInfo) vfs.FileInfo {
	if !info.Mode().IsRegular() {
		return info
	}
	return fileInfo{info}
}

type fileInfo struct{ vfs.FileInfo }

// Size implements os.FileInfo.
func (i fileInfo) Size() int64 { return max(i.FileInfo.Size()-headerSize, 0) }

// readHeader reads up to a header's length, and one byte more if there is one:
// a file is empty unless it is longer than its header.
func readHeader(f vfs.File) (b []byte, empty bool, err error) {
	b = make([]byte, headerSize+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	return b[:min(n, headerSize)], n <= headerSize, nil
}

// named puts a file's name to an error of its header.
func named(name string, err error) error {
	var missing *MissingKeyError
	if errors.As(err, &missing) {
		return &MissingKeyError{Name: name, KeyID: missing.KeyID}
	}
	return fmt.Errorf("%s: %w", name, err)
}

func isGone(err error) bool { return errors.Is(err, os.ErrNotExist) }
