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
		for top, want := range map[bool]bool{true: c.top, false: c.further} {
			e, volume := entry{path: "/data", uid: c.uid, gid: c.gid, mode: c.mode | os.ModeDir}, -1
			if top && e.isVolume(c.me) {
				volume = e.gid
			}
			if got := e.openTo(c.me, volume, top); (got != nil) != want || got != nil && (got.hint == "" || got.problem == "") {
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

// TestDeepFoldersAndFilesThatOthersMayWriteTo: only the folders right in the data
// directory were looked at, so another user could move the state and the log away, and
// write to config.yaml, which may name a command.
func TestDeepFoldersAndFilesThatOthersMayWriteTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir, _ := filled(t)
	other := t.TempDir()
	chmod := func(mode os.FileMode, parts ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	refused := func(hint string) {
		t.Helper()
		var s *StartError
		if err := CheckDataDir(dir); !errors.As(err, &s) || s.Kind != StartUsage || !strings.Contains(s.Hint, hint) {
			t.Errorf("%v, want the hint %q", err, hint)
		}
	}
	accepted := func(what string) {
		t.Helper()
		if err := CheckDataDir(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	chmod(0o755)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("log-level: warn\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	accepted("a readable directory")
	for _, folder := range [][]string{{"shards", "0"}, {"shards", "0", "state"}, {"nats", "jetstream", nodeFolder(t, dir)}} {
		for i := range len(folder) - 1 {
			chmod(0o755, folder[:i+1]...)
		}
		path := chmod(0o777, folder...)
		refused("chmod 700 " + path)
		chmod(0o700, folder...)
	}
	for _, mode := range []os.FileMode{0o666, 0o664} {
		chmod(mode, "config.yaml")
		refused("chmod 600 " + config)
	}
	chmod(0o700, "shards", "0")
	raft := chmod(0o666, "shards", "0", "raft.db")
	chmod(0o644, "config.yaml")
	accepted("a file in a folder that nobody may enter")
	chmod(0o755, "shards", "0")
	refused("chmod 600 " + raft)
	chmod(0o600, "shards", "0", "raft.db")
	if os.Getuid() == 0 { // nobody else can give files away
		if err := os.Chown(config, 65532, 65532); err != nil {
			t.Fatal(err)
		}
		refused("chown -R 0 " + config)
		if err := os.Chown(config, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	chmod(0o700)
	if err := os.Chmod(other, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "logs")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	refused("chmod 700 " + link)
	if err := errors.Join(os.Remove(link), os.Symlink(dir, link)); err != nil { // leads to itself
		t.Fatal(err)
	}
	accepted("a link that leads around")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := lifeOfKeys(t, quiet(dir)); err != nil {
		t.Error(err)
	}
}

// nodeFolder is the only folder of JetStream.
func nodeFolder(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(filepath.Join(dir, "nats", "jetstream"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0].Name()
}

// TestVolumeGivesWhatIsInItToItsGroup: Kubernetes gives all that is in a volume to its
// group each time it is mounted.
func TestVolumeGivesWhatIsInItToItsGroup(t *testing.T) {
	const memnode, fsGroup = 65532, 2000
	me := user{uid: memnode, groups: []int{fsGroup}}
	top := entry{path: "/data", uid: 0, gid: fsGroup, mode: 0o775 | os.ModeDir | os.ModeSetgid}
	if !top.isVolume(me) || top.openTo(me, fsGroup, true) != nil {
		t.Fatal("not a volume")
	}
	for mode, want := range map[os.FileMode]bool{0o660: true, 0o770 | os.ModeDir | os.ModeSetgid: true, 0o666: false, 0o772 | os.ModeDir: false} {
		for gid, want := range map[int]bool{fsGroup: want, 3000: false} {
			e := entry{path: "/data/shards", uid: memnode, gid: gid, mode: mode}
			if got := e.openTo(me, fsGroup, false) == nil; got != want {
				t.Errorf("%v of group %d: accepted is %v", mode, gid, got)
			}
		}
	}
}
