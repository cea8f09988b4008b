package encfs

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// file is one open encrypted file. The embedded file gives Close, Sync, SyncData
// and Fd: Pebble preallocates and syncs by the descriptor.
type file struct {
	vfs.File
	fs      *FS
	name    string
	created bool // by Create: what is written goes to the base's stream
	pos     int64

	key    atomic.Pointer[fileKey] // nil while there is no content
	mu     sync.Mutex              // held while the key is loaded or made
	broken error                   // a header that failed; guarded by mu
}

var _ vfs.File = (*file)(nil)

// loadKey reads the key of a file that has content; nil of one that has none.
func (f *file) loadKey() (*fileKey, error) {
	if k := f.key.Load(); k != nil {
		return k, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.key.Load(); k != nil {
		return k, nil
	}
	b, empty, err := readHeader(f.File)
	if err != nil || empty {
		return nil, err
	}
	s, err := openHeader(b, f.fs.keys)
	if err != nil {
		return nil, named(f.name, err)
	}
	f.key.Store(keyOf(s.secret))
	return f.key.Load(), nil
}

// makeKey gives the key to write with. The header of an empty file is written and
// synced first. A file whose header failed is good for nothing any more: the
// storage key may change before the rest of it would be written.
func (f *file) makeKey() (*fileKey, error) {
	if k := f.key.Load(); k != nil {
		return k, nil
	}
	if !f.created {
		if k, err := f.loadKey(); k != nil || err != nil {
			return k, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	k, err := f.writeHeader()
	if err == nil {
		err = f.File.SyncData()
	}
	if err != nil {
		f.broken = fmt.Errorf("%s: header: %w", f.name, err)
		return nil, f.broken
	}
	f.key.Store(k)
	return k, nil
}

func (f *file) writeHeader() (*fileKey, error) {
	f.fs.sealing.RLock()
	defer f.fs.sealing.RUnlock()
	k, header := newFileKey(f.fs.keys)
	_, err := f.base(header, 0)
	return k, err
}

// base writes to the file below, where offset 0 is the header's.
func (f *file) base(p []byte, off int64) (n int, err error) {
	if f.created {
		n, err = f.File.Write(p) // the base's stream stands at off
	} else {
		n, err = f.File.WriteAt(p, off)
	}
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	k, err := f.loadKey()
	if err != nil {
		return 0, err
	}
	if k == nil {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n, err := f.File.ReadAt(p, off+headerSize)
	k.xor(p, p[:n], off)
	return n, err
}

// chunk is how much is encrypted and written at once.
const chunk = 64 << 10

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// Write implements io.Writer. It leaves p as it is.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.write(p, f.pos)
	f.pos += int64(n) // as far as the base's stream went
	return n, err
}

// WriteAt implements io.WriterAt, for files from OpenReadWrite only. Content that
// is overwritten is encrypted with the bytes that encrypted what was there
// before: whoever sees both images sees how they differ.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if f.created {
		return 0, fmt.Errorf("%s: WriteAt on a file from Create: %w", f.name, vfs.ErrUnsupported)
	}
	return f.write(p, off)
}

func (f *file) write(p []byte, off int64) (done int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	k, err := f.makeKey()
	if err != nil {
		return 0, err
	}
	buf := buffers.Get().(*[chunk]byte)
	defer buffers.Put(buf)
	for done < len(p) && err == nil {
		part := p[done:min(done+chunk, len(p))]
		k.xor(buf[:], part, off+int64(done))
		var n int
		n, err = f.base(buf[:len(part)], off+int64(done)+headerSize)
		done += n
	}
	return done, err
}

// Preallocate implements vfs.File.
func (f *file) Preallocate(offset, length int64) error {
	return f.File.Preallocate(offset+headerSize, length)
}

// SyncTo implements vfs.File.
func (f *file) SyncTo(length int64) (fullSync bool, err error) {
	return f.File.SyncTo(length + headerSize)
}

// Prefetch implements vfs.File.
func (f *file) Prefetch(offset, length int64) error {
	return f.File.Prefetch(offset+headerSize, length)
}

// Stat implements vfs.File.
func (f *file) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return contentInfo(info), nil
}
