package raftfsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// replaceFile puts data under path so that a crash leaves the old or the new
// file: write beside, fsync, rename, fsync the folder.
func replaceFile(fsys vfs.FS, path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Clone(data)) // a vfs.File may change what it is given
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fsys.Remove(tmp))
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(fsys, fsys.PathDir(path))
}

// syncDir makes renames and new names in dir durable.
func syncDir(fsys vfs.FS, dir string) error {
	f, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDir makes dir and what is missing above it, durably.
func makeDir(fsys vfs.FS, dir string) error {
	var parents []string
	for d := dir; ; d = fsys.PathDir(d) {
		there, err := exists(fsys, d)
		if err != nil {
			return err
		}
		if there || fsys.PathDir(d) == d {
			break
		}
		parents = append(parents, fsys.PathDir(d))
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range parents {
		if err := syncDir(fsys, p); err != nil {
			return err
		}
	}
	return nil
}

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

func exists(fsys vfs.FS, path string) (bool, error) {
	_, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// moveAside renames path to path.damaged-N with the first N that is free.
func moveAside(fsys vfs.FS, path string) (string, error) {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.damaged-%d", path, n)
		there, err := exists(fsys, to)
		if err != nil {
			return "", err
		}
		if there {
			continue
		}
		if err := fsys.Rename(path, to); err != nil {
			return "", err
		}
		return to, syncDir(fsys, fsys.PathDir(path))
	}
}

// walkFiles calls visit with what lies below dir, in lexical order: folders
// before what is in them. Names are relative to dir and slash-separated; dir
// itself is the empty name.
func walkFiles(fsys vfs.FS, dir string, visit func(name, path string, info vfs.FileInfo) error) error {
	return walkBelow(fsys, "", dir, visit)
}

func walkBelow(fsys vfs.FS, name, path string, visit func(name, path string, info vfs.FileInfo) error) error {
	info, err := fsys.Stat(path)
	if err != nil {
		return err
	}
	if err := visit(name, path, info); err != nil || !info.IsDir() {
		return err
	}
	names, err := fsys.List(path)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, n := range names {
		below := n
		if name != "" {
			below = name + "/" + n
		}
		if err := walkBelow(fsys, below, fsys.PathJoin(path, n), visit); err != nil {
			return err
		}
	}
	return nil
}
