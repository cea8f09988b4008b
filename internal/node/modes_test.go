package node

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// TestDataDirectoryThatOthersMayWriteTo: one of mode 0777 was accepted, and doctor
// said that all is well.
func TestDataDirectoryThatOthersMayWriteTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir)) // an empty one is made fit
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	found := func() memory.Check {
		t.Helper()
		report, err := n.doctor.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return report.Checks[slices.IndexFunc(report.Checks, func(c memory.Check) bool { return c.Name == "data directory" })]
	}
	if c := found(); c.State != "ok" {
		t.Errorf("%+v", c)
	}
	for _, mode := range []os.FileMode{0o777, 0o720, 0o702} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if c := found(); c.State != "fail" || c.Hint != "chmod 700 "+dir {
			t.Errorf("%o: %+v", mode, c)
		}
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var s *StartError
	if err := lifeOfKeys(t, quiet(dir)); !errors.As(err, &s) || s.Kind != StartUsage || !strings.Contains(s.Hint, "chmod 700 "+dir) {
		t.Errorf("start: %v", err)
	}
	if _, err := (Offline{Config: quiet(dir)}).Doctor(t.Context(), dir); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(memory.AsError(err).Hint, "chmod 700 "+dir) {
		t.Errorf("doctor: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Error("the remedy does not work:", err)
	}
}

// TestFoldersOfSomebodyElseWereAccepted: only the mode of the directory itself was
// looked at, so one that belonged to another user, or with a folder that everybody
// may write to, was a good one.
func TestFoldersOfSomebodyElseWereAccepted(t *testing.T) {
	const nobody, fsGroup = 65532, 2000
	root, some := user{uid: 0, groups: []int{0}}, user{uid: nobody, groups: []int{nobody, fsGroup}}
	for _, c := range []struct {
		name         string
		me           user
		uid, gid     int
		mode         os.FileMode
		top, further bool // refused as the directory, as a folder in it
	}{
		{"one's own", some, nobody, nobody, 0o700, false, false},
		{"readable", some, nobody, nobody, 0o755, false, false},
		{"one's own, of its group", some, nobody, fsGroup, 0o770, true, true},
		{"everybody's", some, nobody, nobody, 0o777, true, true},
		{"somebody's, to root", root, nobody, nobody, 0o700, true, true},
		{"somebody's", some, 1000, nobody, 0o700, true, true},
		{"root's own, of its group", root, 0, 0, 0o770, true, true},
		{"a volume by fsGroup", some, 0, fsGroup, 0o775 | os.ModeSetgid, false, true},
		{"a volume of another group", some, 0, 3000, 0o775 | os.ModeSetgid, true, true},
		{"a volume of everybody's", some, 0, fsGroup, 0o777 | os.ModeSetgid, true, true},
		{"lost+found", some, 0, 0, 0o700, false, false},
	} {
		f := folder{path: "/data", uid: c.uid, gid: c.gid, mode: c.mode}
		for top, want := range map[bool]bool{true: c.top, false: c.further} {
			if got := f.openTo(c.me, top); (got != nil) != want || got != nil && (got.hint == "" || got.problem == "") {
				t.Errorf("%s, top %v: %+v", c.name, top, got)
			}
		}
	}
}

func TestFolderInTheDataDirectoryThatOthersMayWriteTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir, _ := filled(t)
	folder := filepath.Join(dir, "shards")
	refused := func(hint string) {
		t.Helper()
		if s := fails(t, quiet(dir), StartUsage); !strings.Contains(s.Hint, hint) {
			t.Errorf("start: %s; %s", s.Message, s.Hint)
		}
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	refused("chmod 700 " + folder)
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // nobody else can give files away
		if err := os.Chown(folder, 65532, 65532); err != nil {
			t.Fatal(err)
		}
		refused("chown -R 0 " + folder)
		if err := os.Chown(folder, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Error("the remedy does not work:", err)
	}
}
