package backup_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/backup"
	"mneme/internal/backup/placetest"
	"mneme/memory"
)

func TestDirIsAPlace(t *testing.T) {
	placetest.Run(t, backup.Dir{Path: filepath.Join(t.TempDir(), "not", "there", "yet")})
	placetest.Run(t, backup.Dir{Path: "place", FS: vfs.NewMem()})
}

func TestFullDiskOfADir(t *testing.T) {
	full := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync {
			return syscall.ENOSPC
		}
		return nil
	})
	d := backup.Dir{Path: "place", FS: errorfs.Wrap(vfs.NewMem(), full)}
	err := d.Put(t.Context(), "log/a", func(w io.Writer) error {
		if _, err := io.WriteString(w, "text"); err != nil {
			return errors.New("somebody else's words for it")
		}
		return nil
	})
	if memory.CodeOf(err) != memory.CodeNoSpace || memory.AsError(err).Hint == "" {
		t.Errorf("%v", err)
	}
	if files, err := d.List(t.Context(), "log"); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestLeftoversOfADirAreSwept(t *testing.T) {
	d := backup.Dir{Path: t.TempDir()}
	if err := d.Put(t.Context(), "log/a", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(d.Path, "log", ".b.log.tmp-ABCDEFGH")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := d.List(t.Context(), "log"); err != nil || len(files) != 1 {
		t.Errorf("half a file is listed: %v, %v", files, err)
	}
	for _, before := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		if err := d.Sweep(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(left); errors.Is(err, fs.ErrNotExist) != before.After(time.Now()) {
			t.Errorf("swept of before %s: %v", before, err)
		}
	}
}
