package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// exists tells whether there is something under path.
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
		return to, storage.SyncDir(fsys, fsys.PathDir(path))
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
