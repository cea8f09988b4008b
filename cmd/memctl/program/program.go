// Package program knows that Mneme is two programs: of which version this one is, where the
// other one lies, and how the other one goes on in this one's place.
//
// Invariant: only a program of the very same version goes on, for the two share code and not
// a protocol.
package program

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"mneme/memory"
)

// Ctl is the first argument with which memnode is asked to be memctl.
const Ctl = "ctl"

// Version is that of the program that runs, as its build says.
func Version() memory.VersionInfo {
	info, _ := debug.ReadBuildInfo()
	v := versionOf(info)
	v.Go, v.OS, v.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
	return v
}

func versionOf(info *debug.BuildInfo) memory.VersionInfo {
	v := memory.VersionInfo{Version: "devel"}
	if info == nil {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

// Self is the file that runs, by the name by which a shell finds it if it does: that one
// stays when another version is installed.
func Self() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "memctl", false
	}
	if found, err := exec.LookPath("memctl"); err == nil {
		a, errA := os.Stat(self)
		b, errB := os.Stat(found)
		if found, err = filepath.Abs(found); err == nil && errA == nil && errB == nil && os.SameFile(a, b) {
			return found, true
		}
	}
	return self, false
}

// Find finds another program of Mneme: beside this one, or where the system looks.
func Find(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", memory.Errorf(memory.CodeUnavailable, "%s is neither beside memctl nor in PATH", name).
			WithHint(installHint)
	}
	return path, nil
}

const installHint = "install both programs of one version, into one folder, as install.sh does, and `make install` in a checkout"

// GoOn has memnode go on with what memctl was asked for: with its arguments, environment and
// streams, in its place where the system allows that. It returns where that fails, or an Ended.
func GoOn(args []string) error {
	path, err := Find("memnode")
	if err != nil {
		return memory.AsError(err).WithHint("memctl holds no node: data directories and backups are opened by memnode; %s", installHint)
	}
	if err := fits(path); err != nil {
		return err
	}
	return become(path, append([]string{path, Ctl}, args...))
}

// patience is how long the other program may take to say of which version it is.
const patience = 10 * time.Second

// fits refuses a program of another version, by what it says of itself: what reads that in files of
// programs is 2 % of memctl. Builds outside version control say none, and are taken for the same.
func fits(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var theirs memory.VersionInfo
	ask := exec.CommandContext(ctx, path, "version", "--json")
	ask.WaitDelay = time.Second // what it has started holds its output
	said, err := ask.Output()
	if err == nil {
		err = json.Unmarshal(said, &theirs)
	}
	if err != nil || theirs.Version == "" {
		return memory.Errorf(memory.CodeUnavailable, "%s does not say of which version it is", path).WithHint(installHint).WithCause(err)
	}
	if ours := Version(); theirs.Version != ours.Version || theirs.Commit != ours.Commit {
		return memory.Errorf(memory.CodeUnavailable, "%s is of version %s, and memctl of %s", path, Name(theirs), Name(ours)).WithHint(installHint)
	}
	return nil
}

// Ended says that the other program has run and ended.
type Ended struct{ Code int }

func (e Ended) Error() string { return "the other program has ended" }

// Name is a version with the beginning of its commit.
func Name(v memory.VersionInfo) string {
	if v.Commit == "" {
		return v.Version
	}
	return v.Version + " (" + v.Commit[:min(12, len(v.Commit))] + ")"
}
