package devca_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"mneme/internal/peer/devca"
)

func TestASecretIsDrawnOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "master.key")
	first, err := devca.Draw(path)
	if err != nil || len(first) != 64 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := devca.Draw(path); err != nil || again != first {
		t.Errorf("%q and then %q, %v", first, again, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if other, err := devca.Draw(path + "2"); err != nil || other == first {
		t.Errorf("two secrets are %q, %v", other, err)
	}
	for _, bad := range []string{"", first[:63], first[:63] + "x"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := devca.Draw(path); !errors.Is(err, devca.ErrSecret) {
			t.Errorf("%q gave %q, %v", bad, got, err)
		}
	}
	if got, err := devca.Draw(filepath.Dir(path)); err == nil {
		t.Errorf("a folder gave %q", got)
	}
}

// TestASecretIsDrawnOnceByMany: of two calls at once each printed its own, and one was in no file.
func TestASecretIsDrawnOnceByMany(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "master.key")
		var drawn sync.Map
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := devca.Draw(path)
				if err != nil {
					t.Error(err)
				}
				drawn.Store(s, true)
			})
		}
		all.Wait()
		kept, err := devca.Draw(path)
		drawn.Range(func(s, _ any) bool {
			if s != kept {
				t.Errorf("%v was given, and the file has %s, %v", s, kept, err)
			}
			return true
		})
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("%d files are left", len(left))
		}
	}
}

func TestKeepWritesTheFirstNoteOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	for i, c := range []struct {
		text  string
		first bool
		want  error
	}{{"a", true, nil}, {"b", true, fs.ErrExist}, {"c", false, nil}} {
		if err := devca.Keep(path, []byte(c.text), c.first); !errors.Is(err, c.want) {
			t.Errorf("%d: %v, not %v", i, err, c.want)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "c" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
