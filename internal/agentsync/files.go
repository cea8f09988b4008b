package agentsync

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme/internal/files"
	"mneme/memory"
)

const maxFile = 32 << 20

// Change is what one file becomes.
type Change struct {
	Path   string // as the host names it
	Before []byte // nil: it is not there
	After  []byte // nil: it goes

	root   string // up to which folders that are empty afterwards are taken away
	within []string
	target string // behind links
	mode   fs.FileMode
	bare   []byte   // Before without what Mneme has in it; nil: nothing is left
	kept   string   // the backup that Apply made
	given  []string // backups of what the file becomes: they are not needed any more
}

// Changed reports whether there is anything to do.
func (c *Change) Changed() bool {
	return (c.Before == nil) != (c.After == nil) || !bytes.Equal(c.Before, c.After)
}

// Kept is where Apply put the file's former content, "" if it did not need to.
func (c *Change) Kept() string { return c.kept }

// readFile reads a file that may be edited: with within, only where it really lies in one of
// those folders, whatever links lead to.
func readFile(path string, within ...string) (*Change, error) {
	c := &Change{Path: path, target: path, mode: 0o644, within: within}
	if real := behindLinks(path); len(within) > 0 && !slices.ContainsFunc(within, func(dir string) bool { return inside(real, behindLinks(dir)) }) {
		return nil, refused(path, "a link leads out of the project, to "+real)
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, refused(path, "it is a link to a file that is not there")
		}
		return c, nil
	}
	if err != nil {
		return nil, unreached(path, err)
	}
	c.target = target
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, refused(path, "it is not a file")
	case info.Size() > maxFile:
		return nil, refused(path, "it is larger than any configuration")
	}
	c.mode = info.Mode().Perm()
	if c.Before, err = os.ReadFile(target); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if c.Before == nil {
		c.Before = []byte{}
	}
	return c, nil
}

// unreached says why a file cannot be reached by its path.
func unreached(path string, err error) error {
	var denied *fs.PathError
	if errors.As(err, &denied) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return refused(path, dir+" is a file and no folder")
		}
	}
	return refused(path, "links on the way to it lead in a circle")
}

// behindLinks is where a path leads that need not be there as a whole.
func behindLinks(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if to, err := os.Readlink(at); err == nil { // to what is not there
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			return filepath.Join(to, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// inside reports whether a path lies below a folder.
func inside(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func refused(path, why string) error {
	return memory.Errorf(memory.CodeInvalid, "%s is left as it is: %s", path, why).
		WithHint("nothing was changed in any file; correct this one and run it again")
}

// Apply carries out changes, and then what goes with them: all of them, or none. Each file is replaced by a rename, and what
// it held of others is kept in the folder keep. When files are only given back, no backup stays
// that holds the same. What a killed Apply left goes; nobody else may be in one meanwhile.
func Apply(changes []*Change, keep string, then func() error) (err error) {
	for _, c := range changes {
		files.Sweep(c.target)
		files.Sweep(backups(keep).path(c.target, 0))
	}
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for i := len(undo) - 1; i >= 0; i-- {
			if failed := undo[i](); failed != nil {
				err = errors.Join(err, fmt.Errorf("and it could not be undone: %w", failed))
			}
		}
	}()
	for _, c := range changes {
		if !c.Changed() {
			continue
		}
		now, err := readFile(c.Path, c.within...)
		if err != nil {
			return err
		}
		if !bytes.Equal(now.Before, c.Before) || (now.Before == nil) != (c.Before == nil) || now.target != c.target {
			return refused(c.Path, "somebody changed it at the same time")
		}
		if c.Before != nil && c.mode&0o200 == 0 {
			return refused(c.Path, "it is read-only")
		}
		made, err := missingDirs(filepath.Dir(c.target))
		if err != nil {
			return err
		}
		undo = append(undo, func() error { return c.undo(made) })
		if err := c.write(backups(keep)); err != nil {
			return err
		}
	}
	if err := then(); err != nil {
		return err
	}
	for _, c := range changes {
		c.tidy()
	}
	return nil
}

// write keeps the former content and replaces the file.
func (c *Change) write(b backups) error {
	if err := os.MkdirAll(filepath.Dir(c.target), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	if err := b.keep(c); err != nil {
		return err
	}
	if c.After == nil {
		if err := os.Remove(c.target); err != nil {
			return fmt.Errorf("remove %s: %w", c.Path, err)
		}
		return nil
	}
	if err := files.Replace(c.target, c.mode, files.Bytes(c.After)); err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	return nil
}

// undo gives the file back, and takes away its backup and the folders that were made for it.
func (c *Change) undo(made []string) error {
	if c.Before != nil {
		if now, err := os.ReadFile(c.target); err != nil || !bytes.Equal(now, c.Before) {
			if err := files.Replace(c.target, c.mode, files.Bytes(c.Before)); err != nil {
				return err
			}
		}
		if c.kept != "" {
			_ = os.Remove(c.kept)
			c.kept = ""
		}
		return nil
	}
	if err := os.Remove(c.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range made {
		_ = os.Remove(dir)
	}
	return nil
}

// tidy removes backups of what the file holds, and the folders that are empty when it is gone.
func (c *Change) tidy() {
	if !c.Changed() {
		return
	}
	for _, path := range c.given {
		_ = os.Remove(path)
	}
	if c.After != nil {
		return
	}
	root, err := filepath.EvalSymlinks(c.root)
	for dir := filepath.Dir(c.target); err == nil && strings.HasPrefix(dir, root+string(filepath.Separator)); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // one that is not empty stays
			return
		}
	}
}

// missingDirs lists the folders of a path that are not there, the deepest first.
func missingDirs(dir string) ([]string, error) {
	var made []string
	for ; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(dir)
		if err == nil || filepath.Dir(dir) == dir {
			return made, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at %s: %w", dir, err)
		}
		made = append(made, dir)
	}
}
