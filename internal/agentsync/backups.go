package agentsync

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mneme/internal/files"
)

// backups is the folder, of the user alone, that keeps what files held before they were edited.
// It lies outside of every project: what a file has of secrets is in no commit by that. What
// lies there is never replaced.
type backups string

// backup is what one file held.
type backup struct {
	path string
	text []byte
}

// path is where the backup with a number lies of a file.
func (b backups) path(target string, number int) string {
	sum := sha256.Sum256([]byte(target))
	return filepath.Join(string(b), fmt.Sprintf("%s-%x.%d", strings.TrimPrefix(filepath.Base(target), "."), sum[:4], number))
}

// of reads the backups of a file, and tells the number of the next one.
func (b backups) of(target string) (all []backup, next int, err error) {
	pattern := strings.TrimSuffix(b.path(target, 0), "0")
	entries, err := os.ReadDir(string(b))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("look for what %s held: %w", target, err)
	}
	for _, e := range entries {
		path, number := filepath.Join(string(b), e.Name()), 0
		if n, err := fmt.Sscanf(strings.TrimPrefix(path, pattern), "%d", &number); n != 1 || err != nil || path != b.path(target, number) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, 0, fmt.Errorf("look for what %s held: %w", target, err)
		}
		all, next = append(all, backup{path, text}), max(next, number)
	}
	return all, next + 1, nil
}

// keep keeps what a file holds, unless that is there but for what Mneme put into it. It notes
// which backups hold what the file becomes: they are not needed then.
func (b backups) keep(c *Change) error {
	all, next, err := b.of(c.target)
	if err != nil {
		return err
	}
	known := c.bare == nil // the file has nothing of others
	for _, one := range all {
		known = known || bytes.Equal(one.text, c.bare) || bytes.Equal(one.text, c.Before)
		if c.After != nil && bytes.Equal(one.text, c.After) {
			c.given = append(c.given, one.path)
		}
	}
	if c.Before == nil || known {
		return nil
	}
	if err := files.MkdirAll(string(b), 0o700); err != nil {
		return fmt.Errorf("keep what %s held: %w", c.Path, err)
	}
	path := b.path(c.target, next)
	if err := files.Create(path, 0o600, files.Bytes(c.Before)); err != nil {
		return fmt.Errorf("keep what %s held: %w", c.Path, err)
	}
	c.kept = path
	return nil
}
