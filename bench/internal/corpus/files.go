package corpus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	minParagraph = 40 // bytes
	maxFileSize  = 64 << 20
)

// paragraphs hands what stands between empty lines, of a file or of all files below a
// folder, to take until it returns false. Files that are not text give nothing.
func paragraphs(ctx context.Context, path string, take func(string) bool) error {
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFileSize {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(b) {
			return err
		}
		for part := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n\n") {
			if part = strings.TrimSpace(part); len(part) >= minParagraph && !take(part) {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
