package eventlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
)

// A bit of what a log's server holds is flipped while it is stopped: in its copy of the log,
// or in what it agreed on with the others. With such a block it had a hole in its copy for
// ever, which stopped all writes once it led; with such a snapshot it had no copy any more;
// from such an entry on it forgot what it had acknowledged; each without a word. A server
// that was stopped or killed has no damage, nor has an end that was cut off.
func TestDamagedCopyOfTheLog(t *testing.T) {
	s := newServers(t, 3)
	st := s.stream(t, 0)
	for seq := uint64(1); seq <= 50; seq++ {
		appendSure(t, st, frame(seq), seq-1)
	}
	running := filepath.Join(t.TempDir(), "running") // as kill -9 leaves it
	must(t, os.CopyFS(running, os.DirFS(s.dirs[1])))
	s.stop(t, 1)
	damage := func(dir string) error {
		t.Helper()
		damage, err := eventlog.CopyDamage(vfs.Default, dir)
		must(t, err)
		return damage
	}
	for what, dir := range map[string]string{"stopped": s.dirs[1], "running": running, "empty": t.TempDir()} {
		if err := damage(dir); err != nil {
			t.Errorf("the files of a server that is %s: %v", what, err)
		}
	}

	files := func(dir, pattern string) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "jetstream", "SYS", "_js_", pattern))
		must(t, err)
		if len(found) == 0 {
			t.Fatalf("no file is called %s", pattern)
		}
		return found
	}
	changed := func(file string, change func([]byte) []byte, wrong string) {
		t.Helper()
		whole, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(file, change(bytes.Clone(whole)), 0o600))
		dir, _, _ := strings.Cut(file, string(filepath.Separator)+"jetstream")
		switch err := damage(dir); {
		case wrong == "" && err != nil:
			t.Errorf("%s: %v", file, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want %q", file, err, wrong)
		}
		must(t, os.WriteFile(file, whole, 0o600))
	}
	for _, file := range files(s.dirs[1], filepath.Join("*", "snapshots", "snap.*")) {
		whole, err := os.ReadFile(file)
		must(t, err)
		for at := 0; at < len(whole)*8; at += 7 {
			changed(file, flip(at), "the checksum of")
		}
		changed(file, cut(len(whole)-5), "has 5 bytes")
	}
	stream := filepath.Join("..", "..", "NODE", "streams", "*", "msgs", "*.blk")
	for _, file := range append(files(running, filepath.Join("S-*", "msgs", "*.blk")), files(running, stream)...) {
		info, err := os.Stat(file)
		must(t, err)
		if info.Size() < 1000 {
			continue
		}
		changed(file, flip(40*8), "does not check at ")
		changed(file, flip(int(info.Size())*4), "does not check at ")
		changed(file, flip(int(info.Size()-1)*8), "") // it may be what a crash left
		changed(file, cut(3), "")
	}
}
