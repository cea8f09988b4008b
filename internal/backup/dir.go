package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
	"mneme/memory"
)

// Dir is a place in a directory, which the first file makes. It is safe for concurrent use.
type Dir struct {
	Path string
	FS   vfs.FS // default: vfs.Default
}

func (d Dir) fs() vfs.FS {
	if d.FS == nil {
		return vfs.Default
	}
	return d.FS
}

func (d Dir) path(name string) string { return d.fs().PathJoin(d.Path, name) }

// String implements Place.
func (d Dir) String() string { return d.Path }

// List implements Place.
func (d Dir) List(_ context.Context, folder string) ([]Info, error) {
	names, err := d.fs().List(d.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.failed(err)
	}
	slices.Sort(names)
	var out []Info
	for _, name := range names {
		info, err := d.fs().Stat(d.path(folder + "/" + name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || strings.HasPrefix(name, ".")) {
			continue
		}
		if err != nil {
			return nil, d.failed(err)
		}
		out = append(out, Info{Name: folder + "/" + name, Size: info.Size(), Changed: info.ModTime()})
	}
	return out, nil
}

// Put implements Place.
func (d Dir) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	path := d.path(name)
	if err := storage.MkdirAll(d.fs(), d.fs().PathDir(path), 0o700); err != nil {
		return d.failed(err)
	}
	var failed error // of write, which has a code of its own
	err := storage.ReplaceWith(d.fs(), path, 0o600, func(w io.Writer) error {
		full := &noting{w: w}
		failed = errors.Join(write(full), ctx.Err())
		if full.err != nil {
			failed = d.failed(full.err)
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	return d.failed(err)
}

// noting remembers the file's own error, which its writer may have dressed as another one.
type noting struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (n *noting) Write(p []byte) (int, error) {
	k, err := n.w.Write(p)
	n.err = errors.Join(n.err, err)
	return k, err
}

// Open implements Place.
func (d Dir) Open(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := d.fs().Open(d.path(name))
	return f, d.failed(err)
}

// Remove implements Place.
func (d Dir) Remove(_ context.Context, name string) error {
	err := d.fs().Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.failed(err)
}

// Sweep implements Place.
func (d Dir) Sweep(_ context.Context, before time.Time) error {
	for _, folder := range folders {
		names, err := d.fs().List(d.path(folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return d.failed(err)
		}
		for _, name := range names {
			path := d.path(folder + "/" + name)
			if info, err := d.fs().Stat(path); err != nil || !storage.IsLeftover(name) || !info.ModTime().Before(before) {
				continue
			}
			if err := d.fs().Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return d.failed(err)
			}
		}
	}
	return nil
}

// failed says what to do about an error of the file system.
func (d Dir) failed(err error) error {
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return err
	case storage.IsNoSpace(err):
		return memory.Errorf(memory.CodeNoSpace, "no room for the backup: %v", err).WithHint("make room where %s lies, or prune it, and run it again", d.Path).WithCause(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrInvalid):
		return memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("look at %s: whether it is what was meant, and who may use it", d.Path).WithCause(err)
	}
	return fmt.Errorf("backups in %s: %w", d.Path, err)
}
