package raftfsm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// snapshotSink takes one snapshot in one of two ways: adopt gets the folder of a
// local checkpoint, Write gets the streamed form from a peer. Close makes it a
// snapshot, Cancel forgets it; both may be called again. Not for concurrent use.
type snapshotSink struct {
	store *snapshotStore
	id    string
	n     uint64   // of the store's count
	man   manifest // without files until adopt or Close

	tmp      string // folder that holds data/; empty until there is one
	pipe     *io.PipeWriter
	received chan receiveResult
	ended    bool
}

type receiveResult struct {
	man *manifest
	err error
}

// ID implements raft.SnapshotSink.
func (s *snapshotSink) ID() string { return s.id }

// adopt takes over tmp, whose data/ holds a checkpoint of the machine at the
// given cursor and mark. Nothing is copied.
func (s *snapshotSink) adopt(tmp string, appliedIndex, appliedTerm, mark uint64) error {
	if s.tmp != "" || s.pipe != nil {
		return errors.New("snapshot sink is in use")
	}
	files, err := describeFiles(s.store.fs, s.store.fs.PathJoin(tmp, "data"), s.store.previousFiles())
	if err != nil {
		return fmt.Errorf("describe checkpoint: %w", err)
	}
	s.tmp = tmp
	s.man.Files, s.man.AppliedIndex, s.man.AppliedTerm, s.man.Mark = files, appliedIndex, appliedTerm, mark
	return nil
}

// Write implements raft.SnapshotSink: the streamed form, in pieces.
func (s *snapshotSink) Write(p []byte) (int, error) {
	if s.ended {
		return 0, os.ErrClosed
	}
	if s.pipe == nil {
		tmp, err := s.store.tempDir()
		if err != nil {
			return 0, err
		}
		s.tmp = tmp
		var r *io.PipeReader
		r, s.pipe = io.Pipe()
		s.received = make(chan receiveResult, 1)
		go func() {
			man, err := receiveSnapshot(r, s.store.fs, s.store.fs.PathJoin(tmp, "data"))
			r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // lets no writer wait for ever
			s.received <- receiveResult{man, err}
		}()
	}
	return s.pipe.Write(p)
}

// Close implements raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	if s.ended {
		return nil
	}
	if err := s.finish(); err != nil {
		return errors.Join(fmt.Errorf("close snapshot %s: %w", s.id, err), s.Cancel())
	}
	s.ended = true
	return nil
}

func (s *snapshotSink) finish() error {
	received := s.pipe != nil
	if received {
		err := s.pipe.Close()
		got := <-s.received
		s.pipe = nil
		if err = errors.Join(got.err, err); err != nil {
			return err
		}
		s.man.Files, s.man.AppliedIndex, s.man.AppliedTerm, s.man.Mark = got.man.Files, got.man.AppliedIndex, got.man.AppliedTerm, got.man.Mark
	}
	if s.tmp == "" {
		return errors.New("nothing was written")
	}
	if err := s.man.validate(); err != nil {
		return err
	}
	if err := syncTree(s.store.fs, s.store.fs.PathJoin(s.tmp, "data")); err != nil {
		return err
	}
	return s.store.install(s.tmp, s.id, s.n, &s.man, received)
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.pipe != nil {
		s.pipe.CloseWithError(errors.New("snapshot was cancelled"))
		<-s.received
	}
	if s.tmp == "" {
		return nil
	}
	return s.store.fs.RemoveAll(s.tmp)
}

// knownFile is a file of an earlier snapshot whose checksum need not be
// computed again if the new checkpoint links to the very same file.
type knownFile struct {
	info   fs.FileInfo
	sha256 string
}

// previousFiles lists the newest snapshot's files as they lie on disk.
func (s *snapshotStore) previousFiles() map[string]knownFile {
	last := s.latest()
	if last == nil {
		return nil
	}
	known := make(map[string]knownFile, len(last.man.Files))
	for _, f := range last.man.Files {
		info, err := s.fs.Stat(joinName(s.fs, s.dataDir(last.id), f.Name))
		if err == nil && info.Size() == f.Size {
			known[f.Name] = knownFile{info: info, sha256: f.SHA256}
		}
	}
	return known
}

// describeFiles lists the regular files below dir in lexical order, with
// checksums over what they hold in clear, and syncs those that are new.
func describeFiles(fsys vfs.FS, dir string, known map[string]knownFile) ([]manifestFile, error) {
	var files []manifestFile
	err := walkFiles(fsys, dir, func(name, path string, info vfs.FileInfo) (err error) {
		if info.IsDir() {
			return nil
		}
		if !info.Mode().IsRegular() || !validName(name) {
			return fmt.Errorf("file %q cannot be in a snapshot", name)
		}
		f := manifestFile{Name: name, Size: info.Size()}
		if k, ok := known[name]; ok && sameFile(k.info, info) {
			f.SHA256 = k.sha256
		} else if f.Size, f.SHA256, err = sumAndSync(fsys, path); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func sumAndSync(fsys vfs.FS, path string) (n int64, sum string, err error) {
	var f vfs.File
	if runtime.GOOS == "windows" { // syncs only what is open for writing
		f, err = fsys.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	} else {
		f, err = fsys.Open(path)
	}
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.Copy(h, f)
	if err == nil {
		err = f.Sync()
	}
	return n, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// syncTree syncs dir and the folders in it.
func syncTree(fsys vfs.FS, dir string) error {
	return walkFiles(fsys, dir, func(_, path string, info vfs.FileInfo) error {
		if !info.IsDir() {
			return nil
		}
		return storage.SyncDir(fsys, path)
	})
}
