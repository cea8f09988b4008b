//go:build unix

package main

import (
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// installer is install.sh, a host with a release of programs that only say their version, and
// a home to install into.
type installer struct {
	dist, home, tmp string
	url             string
	path            string // where it finds programs
	shell           string
	asked           atomic.Int32
	answer          func(w http.ResponseWriter, r *http.Request) bool // goes before the files
}

func newInstaller(t *testing.T) *installer {
	t.Helper()
	i := &installer{dist: t.TempDir(), home: t.TempDir(), tmp: t.TempDir(), path: os.Getenv("PATH"), shell: "/bin/sh"}
	files := http.FileServer(http.Dir(i.dist))
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if i.answer == nil || !i.answer(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(host.Close)
	i.url = host.URL
	return i
}

// release makes the release of a version; the host has no other then.
func (i *installer) release(t *testing.T, version string) (archive string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(i.dist, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		_ = os.Remove(path)
	}
	work := t.TempDir()
	p := platform{os: runtime.GOOS, arch: runtime.GOARCH}
	for _, name := range programs {
		b := binary{name: name, path: filepath.Join(work, name), info: &buildinfo.BuildInfo{Main: debug.Module{Version: version}}}
		if err := os.WriteFile(b.path, fmt.Appendf(nil, "#!/bin/sh\necho %s %s $#\n", name, version), 0o755); err != nil {
			t.Fatal(err)
		}
		p.built = append(p.built, b)
	}
	common := []file{{"share/man/man1/memctl.1", 0o644, 0, []byte(".TH " + version), ""}, {"share/zsh/site-functions/_memctl", 0o644, 0, []byte("#compdef memctl"), ""}}
	archive, err = makeArchive(p, common, source{made: time.Unix(1e9, 0)}, i.dist)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSums(i.dist, []string{archive}); err != nil {
		t.Fatal(err)
	}
	return archive
}

func (i *installer) command(args ...string) *exec.Cmd {
	cmd := exec.Command(i.shell, append([]string{installScript}, args...)...)
	cmd.Env = []string{"PATH=" + i.path, "HOME=" + i.home, "TMPDIR=" + i.tmp, "MNEME_RELEASES=" + i.url, "LC_ALL=C"}
	return cmd
}

// works installs, and fails where memctl is not the version's then.
func (i *installer) works(t *testing.T, version string, args ...string) (said string) {
	t.Helper()
	out, err := i.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i.has(t, version)
	i.tidy(t)
	return string(out)
}

// refuses wants it to fail with words, and to change nothing.
func (i *installer) refuses(t *testing.T, says string, args ...string) {
	t.Helper()
	before := tree(t, i.home)
	out, err := i.command(args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "install: ") || !strings.Contains(string(out), says) {
		t.Errorf("%v: %s, want %q", err, out, says)
	}
	if after := tree(t, i.home); after != before {
		t.Errorf("%s: it changed files:\n%s\nbefore:\n%s", says, after, before)
	}
	i.tidy(t)
}

// has wants a version to be installed, all of it.
func (i *installer) has(t *testing.T, version string) {
	t.Helper()
	prefix := filepath.Join(i.home, ".local")
	for _, name := range programs {
		if out, err := exec.Command(filepath.Join(prefix, "bin", name)).Output(); err != nil || string(out) != name+" "+version+" 0\n" {
			t.Errorf("%s says %q, %v", name, out, err)
		}
	}
	if page := string(read(t, filepath.Join(prefix, "share", "man", "man1", "memctl.1"))); page != ".TH "+version {
		t.Errorf("the page is %q", page)
	}
	if _, err := os.Stat(filepath.Join(prefix, "share", "zsh", "site-functions", "_memctl")); err != nil {
		t.Error(err)
	}
}

// tidy wants nothing to lie about.
func (i *installer) tidy(t *testing.T) {
	t.Helper()
	if left := tree(t, i.tmp); strings.Contains(left, "\n") {
		t.Errorf("it left files:\n%s", left)
	}
	if left := tree(t, i.home); strings.Contains(left, "mneme-new") {
		t.Errorf("it left files:\n%s", left)
	}
}

// tree lists a folder, each file with what it holds.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		line := path
		if d.Type().IsRegular() {
			sum, err := sumOf(path)
			if err != nil {
				return err
			}
			line += " " + sum
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// tools makes a folder with links to programs of this machine, as if there were no others.
func tools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// needed are the tools that every way of installing needs.
var needed = []string{"sh", "uname", "mktemp", "tar", "gzip", "find", "sort", "grep", "cut", "cp", "mv", "mkdir", "chmod", "rm", "cat"}

func TestInstall(t *testing.T) {
	for _, shell := range []string{"sh", "dash", "bash", "busybox", "zsh", "ksh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // sh is everywhere
		}
		i := newInstaller(t)
		i.release(t, "v0.1.0")
		if i.shell = path; shell == "busybox" {
			i.shell = filepath.Join(tools(t, "busybox"), "sh")
			if err := os.Symlink(path, i.shell); err != nil {
				t.Fatal(err)
			}
		}
		if said := i.works(t, "v0.1.0"); !strings.Contains(said, `next: export PATH="`+i.home+`/.local/bin:$PATH"`) {
			t.Errorf("%s: %s", shell, said)
		}
		i.path = filepath.Join(i.home, ".local", "bin") + ":" + i.path
		i.release(t, "v0.2.0-rc.1+dirty")
		if said := i.works(t, "v0.2.0-rc.1+dirty"); !strings.Contains(said, "next: memnode\n") || !strings.Contains(said, "until it is started again") {
			t.Errorf("%s: %s", shell, said)
		}
	}
}

// From a pipe, as people call it, with the other flags, and by the tools that are there.
func TestInstallOtherWays(t *testing.T) {
	script := read(t, installScript)
	for name, c := range map[string]struct{ tools []string }{
		"curl, sha256sum":     {[]string{"curl", "sha256sum"}},
		"curl, shasum":        {[]string{"curl", "shasum", "perl"}},
		"curl, openssl":       {[]string{"curl", "openssl"}},
		"wget, sha256sum":     {[]string{"wget", "sha256sum"}},
		"wget, curl, openssl": {[]string{"wget", "curl", "openssl"}},
	} {
		dir := tools(t, append(c.tools, needed...)...)
		if _, err := exec.LookPath(c.tools[0]); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, c.tools[1])); err != nil {
			continue
		}
		i := newInstaller(t)
		i.release(t, "v0.1.0")
		i.path = dir
		cmd := i.command()
		cmd.Args = []string{"/bin/sh", "-s", "--", "--prefix=" + i.home + "/.local/", "--from", i.url + "//"}
		cmd.Env = append(cmd.Env, "MNEME_RELEASES=")
		cmd.Stdin = strings.NewReader(string(script))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
			continue
		}
		i.has(t, "v0.1.0")
	}
}

// An older version is replaced at once: who runs or reads it goes on with it, and who comes
// meanwhile gets either of them, whole.
func TestInstallReplacesAtomically(t *testing.T) {
	i := newInstaller(t)
	i.release(t, "v0.1.0")
	i.works(t, "v0.1.0")
	memctl := filepath.Join(i.home, ".local", "bin", "memctl")
	before, err := os.Stat(memctl)
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(memctl)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			out, err := exec.Command(memctl).Output()
			if said := string(out); err != nil || said != "memctl v0.1.0 0\n" && said != "memctl v0.2.0 0\n" {
				stopped <- fmt.Errorf("memctl said %q: %w", said, err)
				return
			}
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	i.release(t, "v0.2.0")
	i.works(t, "v0.2.0")
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	after, err := os.Stat(memctl)
	if err != nil || os.SameFile(before, after) {
		t.Errorf("it was written over: %v", err)
	}
	if text := make([]byte, before.Size()); err == nil {
		if _, err := open.ReadAt(text, 0); err != nil || !strings.Contains(string(text), "v0.1.0") {
			t.Errorf("the file that was open holds %q, %v", text, err)
		}
	}
}

func TestInstallRefusesWhatIsNotTheRelease(t *testing.T) {
	i := newInstaller(t)
	i.release(t, "v0.1.0")
	i.works(t, "v0.1.0")
	archive := i.release(t, "v0.2.0")
	only := func(name string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/"+name {
				return false
			}
			answer(w, r)
			return true
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		b := read(t, filepath.Join(i.dist, archive))
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:len(b)/2])
		panic(http.ErrAbortHandler)
	}
	short := func(w http.ResponseWriter, _ *http.Request) {
		b := read(t, filepath.Join(i.dist, archive))
		_, _ = w.Write(b[:len(b)/2])
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
	}
	sums := string(read(t, filepath.Join(i.dist, sumsFile)))
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
	}{
		{archive, text("another"), "has the checksum"},
		{archive, short, "has the checksum"},
		{archive, cut, "cannot download " + i.url + "/" + archive},
		{archive, http.NotFound, "cannot download " + i.url + "/" + archive},
		{archive, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://127.0.0.1/x", http.StatusFound)
		}, "cannot download"},
		{sumsFile, http.NotFound, "cannot download " + i.url + "/SHA256SUMS"},
		{sumsFile, text("<html>hello</html>"), "does not list the archives of a release"},
		{sumsFile, text(""), "does not list the archives of a release"},
		{sumsFile, text(sums[:60]), "does not list the archives of a release"},
		{sumsFile, text(strings.ReplaceAll(sums, runtime.GOARCH, "riscv64")), "no archive for " + runtime.GOOS + " on " + runtime.GOARCH},
		{sumsFile, text(sums + strings.ReplaceAll(sums, "v0.2.0", "v0.3.0")), "several archives"},
		{sumsFile, text(strings.ReplaceAll(sums, "mneme-v", "../mneme-v")), "does not list the archives"},
	} {
		i.answer = only(c.name, c.answer)
		i.refuses(t, c.says)
	}
	i.answer = nil
	i.has(t, "v0.1.0")

	// An archive that is as its checksum says, and holds something else.
	path := filepath.Join(i.dist, archive)
	top := strings.TrimSuffix(archive, ".tar.gz")
	for says, files := range map[string][]file{
		"has no memnode and memctl in it": {{top + "/bin/memctl", 0o755, 0, []byte("#!/bin/sh\n"), ""}},
		"the memctl of":                   {{top + "/bin/memnode", 0o755, 0, []byte("#!/bin/sh\n"), ""}, {top + "/bin/memctl", 0o755, 0, []byte("#!/bin/sh\nexit 3\n"), ""}},
	} {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeTarGz(f, files, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := writeSums(i.dist, []string{archive}); err != nil {
			t.Fatal(err)
		}
		i.refuses(t, says)
	}
	i.has(t, "v0.1.0")
}

func TestInstallSaysWhatIsMissing(t *testing.T) {
	i := newInstaller(t)
	i.release(t, "v0.1.0")
	whole := i.path
	fake := func(name, text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	machine := func(system, arch string) string {
		return fake("uname", `case $1 in -s) echo `+system+` ;; *) echo `+arch+` ;; esac`) + ":" + whole
	}
	for _, c := range []struct{ path, says string }{
		{machine("SunOS", "sun4v"), "there is no archive for SunOS"},
		{machine("Linux", "riscv64"), "there is no archive for linux on riscv64"},
		{machine("Linux", "i686"), "build it from source"},
		{machine("MINGW64_NT-10.0", "x86_64"), "windows-amd64"},
		{tools(t, append([]string{"sha256sum"}, needed...)...), "curl is missing"},
		{fake("wget", "exit 1") + ":" + tools(t, append([]string{"sha256sum"}, needed...)...), "may not check certificates"},
		{tools(t, append([]string{"curl"}, needed...)...), "SHA-256"},
		{tools(t, append([]string{"curl", "sha256sum"}, needed[:4]...)...), "gzip is missing"},
	} {
		i.path = c.path
		i.refuses(t, c.says)
	}
	i.path = whole
	if n := i.asked.Load(); n != 0 {
		t.Errorf("it asked the host %d times before it knew what to do", n)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--from", ""}, "no public host yet"},
		{[]string{"--from", "http://releases.example"}, "in clear"},
		{[]string{"--from", "http://127.0.0.1.example/x"}, "in clear"},
		{[]string{"--from", "https://ann:secret@releases.example"}, "more than a host and a folder"},
		{[]string{"--from", "ftp://releases.example"}, "is not like https://"},
		{[]string{"--from"}, "--from is without a value"},
		{[]string{"--global"}, "it does not take --global"},
		{[]string{"--prefix", "/dev/null/x"}, "cannot be written"},
	} {
		i.refuses(t, c.says, c.args...)
	}
	// A folder where a file is to be.
	if err := os.MkdirAll(filepath.Join(i.home, ".local", "share", "man", "man1", "memctl.1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(i.home, ".local", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(i.home, ".local", "share", "zsh", "site-functions"), 0o755); err != nil {
		t.Fatal(err)
	}
	i.refuses(t, "memctl.1 is a folder")
	out, err := i.command("--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Usage: install.sh") {
		t.Errorf("%v: %s", err, out)
	}
}

// A script that was cut off on its way to the shell must do nothing, wherever that was.
func TestInstallCutOff(t *testing.T) {
	i := newInstaller(t)
	i.release(t, "v0.1.0")
	script := string(read(t, installScript))
	end := strings.LastIndexByte(script, '}')
	before := tree(t, i.home)
	for n := 0; n <= end; n++ {
		if n%113 != 0 && n < end-40 {
			continue
		}
		cmd := i.command()
		cmd.Args = []string{"/bin/sh"}
		cmd.Stdin = strings.NewReader(script[:n])
		_ = cmd.Run() // the shell complains of a brace that is missing, or there was nothing to do
		if asked := i.asked.Load(); asked != 0 || tree(t, i.home) != before {
			t.Fatalf("cut off after %d of %d bytes it asked %d times and left\n%s", n, len(script), asked, tree(t, i.home))
		}
	}
	cmd := i.command()
	cmd.Args = []string{"/bin/sh"}
	cmd.Stdin = strings.NewReader(script[:end+1])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i.has(t, "v0.1.0")
}

// Ctrl-C while it downloads leaves nothing.
func TestInstallInterrupted(t *testing.T) {
	i := newInstaller(t)
	archive := i.release(t, "v0.1.0")
	begun := make(chan struct{})
	i.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/"+archive {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write([]byte("a beginning"))
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		return true
	}
	cmd := i.command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %v", err)
	}
	if left := tree(t, i.home); left != i.home {
		t.Errorf("it left\n%s", left)
	}
	i.tidy(t)
}
