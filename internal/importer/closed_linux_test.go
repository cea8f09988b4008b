package importer

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mneme/memory"
)

// asNobody has what this goroutine does with files done by somebody who may do nothing special, also where root runs the test.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}

// One folder that may not be read kept all transcripts out that lie beside it, links were passed over without a word, and a
// folder that may not be read itself was of no format.
func TestAClosedFolderKeptTheOthersOut(t *testing.T) {
	line := func(id string) string {
		return `{"type":"user","uuid":"` + id + `","sessionId":"s","message":{"role":"user","content":"` + id + `"}}` + "\n"
	}
	dir, err := os.MkdirTemp("", "closed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{"a.jsonl": line("a"), "b/b.jsonl": line("b"), "c/c.jsonl": line("c"), "d.jsonl": line("d")} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("c", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "d.jsonl"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	asNobody(t)
	items, bad, left, end := all(t, dir, plainOptions)
	var texts, told []string
	for _, item := range items {
		texts = append(texts, item.Capture.Text)
	}
	for _, b := range bad {
		told = append(told, b.Error())
	}
	for _, l := range left {
		told = append(told, l.Error())
	}
	if !slices.Equal(texts, []string{"a", "c"}) || end != nil || strings.Join(told, "; ") != "b: permission denied; d.jsonl: permission denied; link: left out: "+linked {
		t.Errorf("%q, %q, %v", texts, told, end)
	}
	if _, _, err := Find(filepath.Join(dir, "b")); memory.CodeOf(err) != memory.CodeInvalid || !strings.HasSuffix(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
}
