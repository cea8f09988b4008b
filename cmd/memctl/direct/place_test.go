package direct

import (
	"os"
	"path/filepath"
	"testing"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

// The keys do not lie beside the log because a link leads there.
func TestPlacesThatAreOneBehindALink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"place", "safe"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"same": "place", "other": "safe", "up": "."} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for keys, one := range map[string]bool{"same": true, "same/keys/not/there": true, "up/place": true, "up": true, "other": false, "other/keys": false, "place2": false} {
		p := offline.Places{Log: filepath.Join(dir, "place"), Keys: filepath.Join(dir, keys)}
		if _, _, err := (Work{}).open(p); (memory.CodeOf(err) == memory.CodeInvalid) != one || !one && err != nil {
			t.Errorf("%s: %v", keys, err)
		}
	}
}
