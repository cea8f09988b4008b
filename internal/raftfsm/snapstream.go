package raftfsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The streamed form of a snapshot is its manifest document followed by the
// contents of the files in the manifest's order, nothing between or behind:
//
//	"MSNP" 1 length body sha256 | file 0 | file 1 | …
//
// so its length is known before the first byte is read.

// snapReader reads the streamed form of a snapshot from its folder, one open
// file at a time, and checks each file when it has read it. Errors of Read:
// ErrCorruptSnapshot, of I/O.
type snapReader struct {
	fs      vfs.FS
	dir     string
	files   []manifestFile
	cur     io.Reader
	file    vfs.File
	now     manifestFile // that file is
	sum     hash.Hash    // of what was read of it
	damaged bool
	done    func(damaged bool) // called once by Close
}

func newSnapReader(fsys vfs.FS, dir string, man *manifest, encoded []byte, done func(damaged bool)) *snapReader {
	return &snapReader{fs: fsys, dir: dir, files: man.Files, cur: bytes.NewReader(encoded), done: done}
}

func (r *snapReader) Read(p []byte) (int, error) {
	for {
		n, err := r.cur.Read(p)
		if n > 0 || (err != nil && err != io.EOF) {
			return n, err
		}
		if err == nil {
			continue
		}
		if err := r.endFile(); err != nil {
			return 0, err
		}
		if len(r.files) == 0 {
			return 0, io.EOF
		}
		next := r.files[0]
		r.files = r.files[1:]
		if r.file, err = r.fs.Open(joinName(r.fs, r.dir, next.Name)); err != nil {
			r.file, r.damaged = nil, true
			return 0, fmt.Errorf("read snapshot: %w", err)
		}
		// A file of another size is caught by the checksum.
		r.now, r.sum = next, sha256.New()
		r.cur = io.TeeReader(io.LimitReader(r.file, next.Size), r.sum)
	}
}

// endFile closes and checks the file that was read to its end, if there is one.
func (r *snapReader) endFile() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	if err == nil && hex.EncodeToString(r.sum.Sum(nil)) != r.now.SHA256 {
		r.damaged = true
		err = fmt.Errorf("read snapshot file %q: %w: checksum differs", r.now.Name, ErrCorruptSnapshot)
	}
	return err
}

func (r *snapReader) Close() error {
	var err error
	if r.file != nil {
		err = r.file.Close()
		r.file = nil
	}
	if r.done != nil {
		r.done(r.damaged)
		r.done = nil
	}
	return err
}

// receiveSnapshot unpacks the streamed form into dir, which must not exist, and
// checks every file. Each file is synced. Errors: ErrCorruptSnapshot, or of
// reading and writing.
func receiveSnapshot(r io.Reader, fsys vfs.FS, dir string) (*manifest, error) {
	man, err := receiveManifest(r)
	if err != nil {
		return nil, err
	}
	if there, err := exists(fsys, dir); err != nil || there {
		return nil, fmt.Errorf("receive snapshot: %s exists: %w", dir, errors.Join(err, fs.ErrExist))
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("receive snapshot: %w", err)
	}
	for _, f := range man.Files {
		if err := receiveFile(r, fsys, dir, f); err != nil {
			return nil, fmt.Errorf("receive snapshot file %q: %w", f.Name, err)
		}
	}
	var tail [1]byte
	if n, err := io.ReadFull(r, tail[:]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("receive snapshot: %w: bytes behind the end", ErrCorruptSnapshot)
	}
	return man, nil
}

func receiveManifest(r io.Reader) (*manifest, error) {
	head := make([]byte, documentHeader)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("receive manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	n, err := documentLen(magicManifest, head)
	if err != nil {
		return nil, fmt.Errorf("receive manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	// Grows with what really arrives, not with what the header promises.
	buf := bytes.NewBuffer(head)
	if _, err := io.CopyN(buf, r, int64(n-documentHeader)); err != nil {
		return nil, fmt.Errorf("receive manifest: %w: %w", ErrCorruptSnapshot, err)
	}
	return decodeManifest(buf.Bytes())
}

func receiveFile(r io.Reader, fsys vfs.FS, dir string, f manifestFile) error {
	to := joinName(fsys, dir, f.Name)
	if sub := path.Dir(f.Name); sub != "." {
		if err := fsys.MkdirAll(joinName(fsys, dir, sub), 0o700); err != nil {
			return err
		}
	}
	if there, err := exists(fsys, to); err != nil || there {
		return errors.Join(err, fmt.Errorf("%w: it came before", fs.ErrExist))
	}
	out, err := fsys.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.CopyN(io.MultiWriter(h, ownBytes{out}), r, f.Size)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: ends after %d of %d bytes", ErrCorruptSnapshot, n, f.Size)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: checksum differs", ErrCorruptSnapshot)
	}
	return nil
}

// check reads all of a snapshot and compares it with its manifest. Errors:
// ErrCorruptSnapshot, of I/O.
func (s *snapshotStore) check(snap *storedSnapshot) error {
	source := newSnapReader(s.fs, s.dataDir(snap.id), snap.man, nil, nil)
	_, err := io.Copy(io.Discard, source)
	return errors.Join(err, source.Close())
}

// ownBytes writes a copy: a vfs.File may change the bytes that it is given.
type ownBytes struct{ f vfs.File }

func (w ownBytes) Write(p []byte) (int, error) { return w.f.Write(slices.Clone(p)) }

// joinName puts a manifest's name below a folder.
func joinName(fsys vfs.FS, dir, name string) string {
	return fsys.PathJoin(dir, filepath.FromSlash(name))
}
