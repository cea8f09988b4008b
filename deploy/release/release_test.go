package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// tagged is the version of what the tests make.
const tagged = "v0.7.1"

// clone makes a checkout of the commit at hand, with a tag, in a folder of its own.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkout")
	for _, args := range [][]string{{"clone", "--quiet", "--local", "../..", dir}, {"-C", dir, "tag", "--force", tagged}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

// makeFrom makes the image and the archive of this platform from a checkout, and returns where
// the files are.
func makeFrom(t *testing.T, checkout string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	opt := options{source: checkout, out: out, name: "localhost/mneme", platforms: []string{"linux/" + runtime.GOARCH}, archives: []string{runtime.GOOS + "/" + runtime.GOARCH}}
	if err := run(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	return out
}

// The same commit gives the same bytes in another folder. make release-check holds that of
// all platforms.
func TestRelease(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=false") // what the environment says counts for nothing
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	first := makeFrom(t, clone(t))
	t.Setenv("GOFLAGS", "-tags=other")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	t.Setenv("TZ", "Asia/Tokyo")
	second := makeFrom(t, clone(t))
	same(t, first, second)
	if t.Failed() {
		return
	}
	t.Run("image", func(t *testing.T) { checkImage(t, first) })
	t.Run("archive", func(t *testing.T) { checkArchive(t, first) })
	t.Run("papers", func(t *testing.T) { checkArchivePapers(t, first) })
	if runtime.GOOS != "windows" {
		t.Run("install", func(t *testing.T) { checkInstall(t, first) })
	}
}

// same holds two folders against each other, and what is in them against their checksums.
func same(t *testing.T, first, second string) {
	t.Helper()
	names := []string{}
	for line := range strings.Lines(string(read(t, filepath.Join(first, sumsFile)))) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
		for _, dir := range []string{first, second} {
			if got, err := sumOf(filepath.Join(dir, name)); err != nil || got != want {
				t.Errorf("%s of %s has the sum %s, want %s, %v", name, filepath.Base(filepath.Dir(dir)), got, want, err)
			}
		}
	}
	for _, dir := range []string{first, second} {
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			if e.Name() != sumsFile && !slices.Contains(names, e.Name()) {
				t.Errorf("%s has no checksum", e.Name())
			}
		}
	}
	for _, want := range []string{"mneme-" + tagged + "-" + runtime.GOOS + "-" + runtime.GOARCH, "mneme-" + tagged + ".cdx.json", "mneme-" + tagged + ".provenance.json", "mneme.oci.tar", "mneme.cdx.json", "mneme.provenance.json", installScript} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("there is no %s among %q", want, names)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// archiveOf is the archive of this platform in dir.
func archiveOf(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "mneme-v*-"+runtime.GOOS+"-"+runtime.GOARCH+".*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("archives: %q, %v", found, err)
	}
	return found[0]
}

// checkArchive: an archive has everything below one folder, and its programs run.
func checkArchive(t *testing.T, dir string) {
	files := map[string]file{}
	if runtime.GOOS == "windows" {
		files = zipped(t, read(t, archiveOf(t, dir)))
	} else {
		files = gzipped(t, read(t, archiveOf(t, dir)))
	}
	top := "mneme-" + tagged + "-" + runtime.GOOS + "-" + runtime.GOARCH + "/"
	wants := []string{"share/doc/mneme/LICENSE", "share/doc/mneme/README.md", "share/man/man1/memctl-search.1", "share/man/man1/memnode.1"}
	for _, name := range programs {
		wants = append(wants, "bin/"+name+exe(), "share/bash-completion/completions/"+name, "share/zsh/site-functions/_"+name,
			"share/fish/vendor_completions.d/"+name+".fish", "share/mneme/powershell/"+name+".ps1", "share/man/man1/"+name+".1")
	}
	for _, name := range wants {
		if len(files[top+name].body) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	for name, f := range files {
		mode := int64(0o644)
		if strings.HasPrefix(name, top+"bin/") {
			mode = 0o755
		}
		if !strings.HasPrefix(name, top) || f.mode != mode || f.owner != 0 {
			t.Errorf("%s: mode %o, owner %d", name, f.mode, f.owner)
		}
	}
	for _, name := range programs {
		path := filepath.Join(t.TempDir(), name+exe())
		if err := os.WriteFile(path, files[top+"bin/"+name+exe()].body, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), name) || !strings.Contains(string(out), " "+tagged+" ") {
			t.Errorf("%s --version: %v: %s", name, err, out)
		}
	}
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

func gzipped(t *testing.T, archive []byte) map[string]file {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]file{}
	for name, e := range entries(t, z) {
		out[name] = file{name, e.header.Mode, e.header.Uid + e.header.Gid, e.body, e.header.Linkname}
		if e.header.Typeflag != tar.TypeReg {
			t.Errorf("%s is no file", name)
		}
	}
	return out
}

func zipped(t *testing.T, archive []byte) map[string]file {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]file{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = file{f.Name, int64(f.Mode().Perm()), 0, body, ""}
	}
	return out
}

func checkArchivePapers(t *testing.T, dir string) {
	var bom cdx.BOM
	readJSON(t, filepath.Join(dir, "mneme-"+tagged+".cdx.json"), &bom)
	needs := map[string]string{}
	for _, d := range *bom.Dependencies {
		needs[d.Ref] = strings.Join(*d.Dependencies, "\n")
	}
	root := bom.Metadata.Component.BOMRef
	if needs[root] != root+"#memnode\n"+root+"#memctl" || bom.Metadata.Component.Version != tagged {
		t.Errorf("%s consists of %s", root, needs[root])
	}
	if module := "pkg:golang/github.com/nats-io/nats-server/v2@v2."; !strings.Contains(needs[root+"#memnode"], module) {
		t.Errorf("memnode is without %s", module)
	}
	if module := "pkg:golang/github.com/spf13/cobra@"; !strings.Contains(needs[root+"#memctl"], module) {
		t.Errorf("memctl is without %s", module)
	}
	if strings.Contains(needs[root+"#memctl"], "md2man") {
		t.Error("memctl carries what makes man pages")
	}
	var s statement
	readJSON(t, filepath.Join(dir, "mneme-"+tagged+".provenance.json"), &s)
	archive := archiveOf(t, dir)
	if want, err := sumOf(archive); err != nil || len(s.Subject) != 1 || s.Subject[0].Name != filepath.Base(archive) || s.Subject[0].Digest["sha256"] != want {
		t.Errorf("the provenance is of %+v, %v", s.Subject, err)
	}
}

// checkInstall installs what was made with its own install.sh, and asks it for an update.
func checkInstall(t *testing.T, dir string) {
	host := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(host.Close)
	prefix := filepath.Join(t.TempDir(), "prefix")
	cmd := exec.Command("sh", filepath.Join(dir, installScript), "--from", host.URL, "--prefix", prefix)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(filepath.Join(prefix, "bin", "memctl"), "update", "--check", "--json", "--from", host.URL).Output()
	var found struct{ Current, Latest, State, Archive string }
	if jsonErr := json.Unmarshal(out, &found); err != nil || jsonErr != nil || found.State != "same" || found.Latest != tagged || found.Current != tagged || found.Archive != host.URL+"/"+filepath.Base(archiveOf(t, dir)) {
		t.Errorf("memctl update --check: %v: %s", err, out)
	}
}

// The archive for Windows is a zip, whose bytes follow from its files and their time.
func TestZip(t *testing.T) {
	files := []file{{"a/bin/x.exe", 0o755, 0, []byte("program"), ""}, {"a/share/doc/y", 0o644, 0, bytes.Repeat([]byte("text "), 1000), ""}}
	at := time.Date(2026, 11, 26, 9, 46, 4, 0, time.UTC)
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := writeZip(w, files, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	got := zipped(t, first.Bytes())
	for _, f := range files {
		if g := got[f.path]; g.mode != f.mode || !bytes.Equal(g.body, f.body) {
			t.Errorf("%s: mode %o, %d bytes", f.path, g.mode, len(g.body))
		}
	}
}

func TestPlatformThatIsNone(t *testing.T) {
	for _, name := range []string{"linux", "windows/amd64", ""} {
		if _, err := buildImage(t.Context(), "../..", t.TempDir(), name); err == nil {
			t.Errorf("an image for %q was built", name)
		}
	}
	for _, name := range []string{"linux", "/amd64", "linux/", ""} {
		if _, err := buildArchive(t.Context(), "../..", t.TempDir(), name); err == nil {
			t.Errorf("an archive for %q was built", name)
		}
	}
}
