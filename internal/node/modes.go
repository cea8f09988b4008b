package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/memory"
)

// secureDir refuses a data directory that somebody else may write to: who can replace
// what is in it has the node do as they like, whatever the modes of the files are. An
// empty one is the node's to make fit. What is not there yet is made with mode 0700.
func secureDir(fsys vfs.FS, path string) error {
	if fsys != vfs.Default {
		return nil
	}
	open, err := openToOthers(path)
	if err != nil {
		return usage(fmt.Sprintf("data directory %s: %v", path, err), "run this as the user who runs memnode")
	}
	if open == nil {
		return nil
	}
	if open.path == path && open.owner && isEmpty(path) && os.Chmod(path, 0o700) == nil && isEmpty(path) { // nobody was quicker
		return nil
	}
	return usage(open.problem, open.hint+"; if somebody else may have changed files in it, memctl restore brings a backup back into a new directory")
}

func isEmpty(path string) bool {
	names, err := os.ReadDir(path)
	return err == nil && len(names) == 0
}

// folder is one folder with who may write to it.
type folder struct {
	path     string
	uid, gid int
	mode     fs.FileMode
}

// user is who this process runs as.
type user struct {
	uid    int
	groups []int
}

// openFolder is a folder that somebody else may write to.
type openFolder struct {
	path          string
	owner         bool // this user's, so that its mode can be changed
	problem, hint string
}

// openToOthers looks at a data directory and the folders in it. It returns nil if
// nobody else may write to them, also where there is none; what else is wrong with
// such a path is found where it is used.
func openToOthers(path string) (*openFolder, error) {
	if !filePermissions {
		return nil, nil
	}
	me := user{uid: os.Geteuid()}
	me.groups, _ = os.Getgroups()
	me.groups = append(me.groups, os.Getegid())
	names, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	paths := []string{path}
	for _, name := range names {
		paths = append(paths, filepath.Join(path, name.Name()))
	}
	for i, path := range paths {
		info, statErr := os.Stat(path)
		if errors.Is(statErr, fs.ErrNotExist) || i > 0 && statErr == nil && !info.IsDir() {
			continue
		}
		if statErr != nil {
			return nil, statErr
		}
		f := folder{path: path, mode: info.Mode()}
		f.uid, f.gid = ownerOf(info)
		if open := f.openTo(me, i == 0); open != nil {
			return open, nil
		}
	}
	return nil, err
}

// openTo judges one folder. Root may write everywhere anyhow, so what belongs to it is
// accepted. The mount point of a volume, which belongs to root, may be writable by a
// group of this process: that is how an unprivileged one gets to a volume in
// Kubernetes, by fsGroup.
func (f folder) openTo(me user, top bool) *openFolder {
	what := "the data directory " + f.path
	if !top {
		what = "the folder " + f.path + " of the data directory"
	}
	if f.uid != me.uid && f.uid != 0 {
		return &openFolder{path: f.path, problem: fmt.Sprintf("%s belongs to user %d and not to the user of this process, %d", what, f.uid, me.uid),
			hint: fmt.Sprintf("run this as that user, or chown -R %d %s", me.uid, f.path)}
	}
	mount := top && f.uid == 0 && me.uid != 0 && slices.Contains(me.groups, f.gid)
	if f.mode.Perm()&0o002 != 0 || f.mode.Perm()&0o020 != 0 && !mount {
		return &openFolder{path: f.path, owner: f.uid == me.uid, problem: "others may write to " + what, hint: "chmod 700 " + f.path}
	}
	return nil
}

// checkDir tells doctor when the data directory was opened to others.
func (d *doctor) checkDir() memory.Check {
	path := d.n.dir.path
	open, err := openToOthers(path)
	switch {
	case err != nil:
		return check("data directory", false, path, err.Error(), "run memnode as the user whose directory it is")
	case open != nil:
		return check("data directory", false, path, open.problem, open.hint)
	}
	return check("data directory", true, path, "", "")
}
