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
	if err == nil && open != nil && open.path == path && open.owner && isEmpty(path) && os.Chmod(path, 0o700) == nil && isEmpty(path) { // nobody was quicker
		return nil
	}
	return refuseOpen(path, open, err)
}

// refuseOpen says what openToOthers found.
func refuseOpen(path string, open *openFolder, err error) error {
	if err != nil {
		return usage(fmt.Sprintf("data directory %s: %v", path, err), "run this as the user who runs memnode")
	}
	if open == nil {
		return nil
	}
	return usage(open.problem, open.hint+"; if somebody else may have changed files in it, memctl restore brings a backup back into a new directory")
}

// CheckDataDir refuses a data directory that somebody else may write to, as a start
// does, before anything in it is believed: config.yaml may name a command. One that is
// not there is a good one. Errors: *StartError.
func CheckDataDir(path string) error {
	open, err := openToOthers(path)
	return refuseOpen(path, open, err)
}

func isEmpty(path string) bool {
	names, err := os.ReadDir(path)
	return err == nil && len(names) == 0
}

// entry is a folder or file of a data directory with who may write to it.
type entry struct {
	path     string
	uid, gid int
	mode     fs.FileMode // with its type
}

func entryOf(path string, info fs.FileInfo) entry {
	e := entry{path: path, mode: info.Mode()}
	e.uid, e.gid = ownerOf(info)
	return e
}

// user is who this process runs as.
type user struct {
	uid    int
	groups []int
}

// openFolder is a folder, or a file, that somebody else may write to.
type openFolder struct {
	path          string
	owner         bool // this user's, so that its mode can be changed
	problem, hint string
}

// maxDepth bounds the walk through a data directory: links may make it endless. What
// the node makes is six folders deep.
const maxDepth = 12

// openToOthers looks at a data directory, all folders in it, and the files that others
// get to. It returns nil if nobody else may write to them, also where there is no such
// directory; what else is wrong with such a path is found where it is used.
func openToOthers(path string) (*openFolder, error) {
	if !filePermissions {
		return nil, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err != nil || !info.IsDir() {
		return nil, nil
	}
	w := modesWalk{me: user{uid: os.Geteuid()}, volume: -1}
	w.me.groups, _ = os.Getgroups()
	w.me.groups = append(w.me.groups, os.Getegid())
	top := entryOf(path, info)
	if top.isVolume(w.me) {
		w.volume = top.gid
	}
	if open := top.openTo(w.me, w.volume, true); open != nil {
		return open, nil
	}
	return w.folder(top, reachable(top), 1)
}

// modesWalk is a walk through a data directory.
type modesWalk struct {
	me     user
	volume int // the group that the volume belongs to; -1 = it is none
}

// isVolume reports whether a data directory is the mount point of a volume, which
// belongs to root and to a group of this process: that is how an unprivileged one gets
// to a volume in Kubernetes, by fsGroup. What is in it is given to the group too.
func (e entry) isVolume(me user) bool {
	return e.uid == 0 && me.uid != 0 && slices.Contains(me.groups, e.gid)
}

// reachable reports whether others get to what is in a folder.
func reachable(e entry) bool { return e.mode.Perm()&0o011 != 0 }

// folder looks at what is in a folder. Files matter where others get to them: under
// a umask of 0 they may be anybody's to write, in folders that nobody else may enter.
func (w *modesWalk) folder(of entry, reached bool, depth int) (*openFolder, error) {
	names, err := os.ReadDir(of.path)
	if errors.Is(err, fs.ErrNotExist) || depth > 1 && errors.Is(err, fs.ErrPermission) { // removed by a running node, or lost+found
		return nil, nil
	}
	if err != nil || depth > maxDepth {
		return nil, err
	}
	for _, name := range names {
		link := name.Type()&fs.ModeSymlink != 0
		if !link && !name.IsDir() && (!reached || !name.Type().IsRegular()) {
			continue
		}
		path := filepath.Join(of.path, name.Name())
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := entryOf(path, info)
		if !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if open := e.openTo(w.me, w.volume, false); open != nil {
			return open, nil
		}
		if !info.IsDir() {
			continue
		}
		// A link may lead to where others get without this folder.
		if open, err := w.folder(e, (reached || link) && reachable(e), depth+1); open != nil || err != nil {
			return open, err
		}
	}
	return nil, nil
}

// openTo judges one folder or file. Root may write everywhere anyhow, so what belongs
// to it is accepted. In a volume its group may write.
func (e entry) openTo(me user, volume int, top bool) *openFolder {
	what, closed := "the data directory "+e.path, "700"
	switch {
	case !e.mode.IsDir():
		what, closed = "the file "+e.path+" of the data directory", "600"
	case !top:
		what = "the folder " + e.path + " of the data directory"
	}
	if e.uid != me.uid && e.uid != 0 {
		return &openFolder{path: e.path, problem: fmt.Sprintf("%s belongs to user %d and not to the user of this process, %d", what, e.uid, me.uid),
			hint: fmt.Sprintf("run this as that user, or chown -R %d %s", me.uid, e.path)}
	}
	if e.mode.Perm()&0o002 != 0 || e.mode.Perm()&0o020 != 0 && e.gid != volume {
		return &openFolder{path: e.path, owner: e.uid == me.uid, problem: "others may write to " + what, hint: "chmod " + closed + " " + e.path}
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
