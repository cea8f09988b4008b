package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
	"mneme/memory"
)

// Repairs move what they cannot use out of the way instead of removing it, since a person may
// want to look at it. Nothing reads it, nothing erases in it but for states, and nothing
// removes it by itself.

// aside finds and removes what repairs have set aside in a data directory.
type aside struct {
	fs   vfs.FS
	path string // of the data directory
}

// whyFile says in what was set aside why it was.
const whyFile = "why"

// maxWhy bounds what is read of it.
const maxWhy = 4 << 10

// asideSort is a sort of things that are set aside.
type asideSort struct {
	in   []string                 // folders, relative to the data directory
	is   func(name string) bool   // which names in them
	kind string                   // of memory.Aside
	why  func(name string) string // where no file says it
}

func (a aside) sorts() ([]asideSort, error) {
	shards, err := a.names("shards")
	if err != nil {
		return nil, err
	}
	groups := []string{filepath.Join("keys", "raft")}
	var snapshots []string
	for _, name := range shards {
		groups = append(groups, filepath.Join("shards", name))
	}
	for _, dir := range groups {
		snapshots = append(snapshots, filepath.Join(dir, "snapshots"))
	}
	begins := func(with string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, with) }
	}
	says := func(why string) func(string) string { return func(string) string { return why } }
	return []asideSort{
		{[]string{"aside"}, begins(""), memory.AsideNode, func(name string) string {
			return fmt.Sprintf("what this node had as %s, before it came back with nothing or went on as another cluster", name)
		}},
		{groups, begins(stateDir + ".damaged-"), memory.AsideState, says("the state could not be used and was built again")},
		{groups, begins("raft.db.damaged-"), memory.AsideRaftLog, says("Raft's log could not be used, or did not fit the state, and was begun anew")},
		{snapshots, begins("damaged-"), memory.AsideSnapshot, says("a snapshot of the state could not be used")},
		{[]string{filepath.Join("nats", "damaged")}, begins(""), memory.AsideLogBlock, says("a block of the log as it was before it was mended or cut")},
	}, nil
}

// list finds them, the oldest first.
func (a aside) list() (memory.AsideList, error) {
	out := memory.AsideList{Aside: []memory.Aside{}}
	sorts, err := a.sorts()
	if err != nil {
		return out, err
	}
	for _, sort := range sorts {
		for _, dir := range sort.in {
			names, err := a.names(dir)
			if err != nil {
				return out, err
			}
			for _, name := range names {
				if !sort.is(name) {
					continue
				}
				one, err := a.look(sort, dir, name)
				if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
					continue
				}
				if err != nil {
					return out, err
				}
				out.Aside = append(out.Aside, one)
				out.Bytes += one.Bytes
			}
		}
	}
	slices.SortStableFunc(out.Aside, func(x, y memory.Aside) int { return x.At.Compare(y.At) })
	return out, nil
}

func (a aside) look(sort asideSort, dir, name string) (memory.Aside, error) {
	path := filepath.Join(a.path, dir, name)
	info, err := a.fs.Stat(path)
	if err != nil {
		return memory.Aside{}, err
	}
	out := memory.Aside{Path: filepath.ToSlash(filepath.Join(dir, name)), Kind: sort.kind, Why: sort.why(name), At: movedAt(path, info).UTC()}
	if info.IsDir() {
		if why := a.says(filepath.Join(path, whyFile)); why != "" {
			out.Why = why
		}
	}
	out.Bytes, err = a.size(path, info)
	return out, err
}

// says reads a file that says why, "" if there is none that can be read.
func (a aside) says(path string) string {
	f, err := a.fs.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxWhy))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (a aside) size(path string, info fs.FileInfo) (int64, error) {
	if !info.IsDir() {
		return info.Size(), nil
	}
	names, err := a.fs.List(path)
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, name := range names {
		below := filepath.Join(path, name)
		info, err := a.fs.Stat(below)
		if err != nil {
			return 0, err
		}
		n, err := a.size(below, info)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// names lists a folder of the data directory; one that is not there is empty.
func (a aside) names(dir string) ([]string, error) {
	names, err := a.fs.List(filepath.Join(a.path, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// remove removes what was set aside before a time. What is gone already is no error.
func (a aside) remove(ctx context.Context, req memory.RemoveAside) (memory.AsideRemoval, error) {
	out := memory.AsideRemoval{Removed: []memory.Aside{}, Kept: []memory.Aside{}, DryRun: req.DryRun}
	if req.Before.IsZero() {
		return out, memory.Errorf(memory.CodeInvalid, "before is missing").WithHint("say which age is to be removed, such as --older-than 30d")
	}
	there, err := a.list()
	if err != nil {
		return out, err
	}
	for _, one := range there.Aside {
		if !one.At.Before(req.Before) {
			out.Kept = append(out.Kept, one)
			continue
		}
		if !req.DryRun {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			path := filepath.Join(a.path, filepath.FromSlash(one.Path))
			if err := errors.Join(a.fs.RemoveAll(path), storage.SyncDir(a.fs, filepath.Dir(path))); err != nil {
				return out, fmt.Errorf("remove %s: %w", path, err)
			}
		}
		out.Removed = append(out.Removed, one)
		out.Bytes += one.Bytes
	}
	return out, nil
}

// Aside lists what repairs have set aside on this node.
func (o *operator) Aside(context.Context) (memory.AsideList, error) {
	return o.n.aside().list()
}

// RemoveAside removes what was set aside before a time. As long as the log is damaged nothing
// is removed, since what is lost may lie there.
func (o *operator) RemoveAside(ctx context.Context, req memory.RemoveAside) (memory.AsideRemoval, error) {
	if o.n.diverged() && !req.DryRun {
		return memory.AsideRemoval{}, asideNeeded("memctl log repair")
	}
	out, err := o.n.aside().remove(ctx, req)
	if !req.DryRun {
		for _, one := range out.Removed {
			o.n.cfg.Logger.Info("what a repair had set aside was removed", "path", one.Path, "bytes", one.Bytes, "set_aside", one.At.Format(time.RFC3339))
		}
	}
	return out, err
}

// asideNeeded refuses to remove anything until the log is repaired.
func asideNeeded(repair string) error {
	return memory.Errorf(memory.CodeLogDiverged, "log and state disagree, and what lies aside may be needed to put that right; nothing was removed").
		WithHint("%s first, then the same again", repair)
}

// logDamaged reports whether it is noted of the log of any shard that it is damaged.
func (a aside) logDamaged() (bool, error) {
	shards, err := a.names("shards")
	for _, name := range shards {
		if _, err := a.fs.Stat(filepath.Join(a.path, "shards", name, divergedMark)); !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, err
}

func (c *core) aside() aside { return aside{c.cfg.FS, c.dir.path} }

// Aside lists what repairs have set aside in the data directory of a stopped node.
func (o Offline) Aside(dir string) (out memory.AsideList, err error) {
	err = o.withFolder(dir, func(c *core) (err error) {
		out, err = c.aside().list()
		return err
	})
	return out, err
}

// RemoveAside removes there what was set aside before a time.
func (o Offline) RemoveAside(ctx context.Context, dir string, req memory.RemoveAside) (out memory.AsideRemoval, err error) {
	err = o.withFolder(dir, func(c *core) (err error) {
		damaged, err := c.aside().logDamaged()
		if err == nil && damaged && !req.DryRun {
			err = asideNeeded("memctl log repair --data-dir DIR")
		}
		if err == nil {
			out, err = c.aside().remove(ctx, req)
		}
		return err
	})
	return out, err
}

// withFolder runs f with the data directory locked, and neither keys nor log opened.
func (o Offline) withFolder(dir string, f func(*core) error) error {
	c, err := o.openAnyDir(dir)
	if err == nil && c.dir.node.Recovering != nil {
		err = c.dir.halfDone()
	}
	if err == nil {
		err = f(c)
	}
	return errors.Join(publicError(err), c.close(context.Background()))
}
