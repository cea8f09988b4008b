package devca_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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
