package project

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

func TestIdentityOfARemote(t *testing.T) {
	for remote, want := range map[string]ID{
		"https://github.com/Acme/Shop.git":                     "github.com/acme/shop",
		"https://github.com/acme/shop":                         "github.com/acme/shop",
		"https://github.com/acme/shop/":                        "github.com/acme/shop",
		"https://www.github.com/acme/shop.git/":                "github.com/acme/shop",
		"https://bob:s3cret@github.com/acme/shop.git":          "github.com/acme/shop",
		"https://bob:a%zz@github.com/acme/shop.git":            "github.com/acme/shop",
		"http://GitHub.com:8080/acme/shop.git":                 "github.com/acme/shop",
		"git@github.com:acme/shop.git":                         "github.com/acme/shop",
		"github.com:acme/shop":                                 "github.com/acme/shop",
		"git@github.com:/acme/shop.git":                        "github.com/acme/shop",
		"ssh://git@github.com/acme/shop.git":                   "github.com/acme/shop",
		"ssh://git@ssh.github.com:443/acme/shop.git":           "github.com/acme/shop",
		"git+ssh://git@github.com:22/acme/shop":                "github.com/acme/shop",
		"git://github.com/acme/shop.git":                       "github.com/acme/shop",
		"git@gitlab.example.org:group/sub/shop.git":            "gitlab.example.org/group/sub/shop",
		"https://gitlab.example.org:8443/group/sub/shop":       "gitlab.example.org/group/sub/shop",
		"ssh://git@[2001:db8::1]:2222/acme/shop.git":           "2001:db8::1/acme/shop",
		"git@[2001:db8::1]:acme/shop.git":                      "2001:db8::1/acme/shop",
		"ssh://host.example/~bob/shop":                         "host.example/~bob/shop",
		"https://dev.azure.com/acme/web/_git/shop":             "dev.azure.com/acme/web/shop",
		"https://acme@dev.azure.com/acme/web/_git/shop":        "dev.azure.com/acme/web/shop",
		"git@ssh.dev.azure.com:v3/acme/web/shop":               "dev.azure.com/acme/web/shop",
		"https://github.com/acme/../other/shop":                "github.com/other/shop",
		"https://github.com/":                                  "",
		"":                                                     "",
		"https://git.example.org/a%20b/shop.git":               "git.example.org/a b/shop",
		"https://github.com/acme/shop.git?token=ghp_notinname": "github.com/acme/shop",
	} {
		if got := normalise(remote, "/top"); got != want {
			t.Errorf("%q is %q, want %q", remote, got, want)
		}
	}
	here := normalise("/srv/git/Shop.git", "/top")
	if !strings.HasPrefix(string(here), "local/shop-") {
		t.Errorf("a path is %q", here)
	}
	for _, same := range []string{"file:///srv/git/Shop.git", "/srv/git/Shop", "../srv/git/Shop.git", "/srv/git/Shop/.git"} {
		if got := normalise(same, "/top"); got != here {
			t.Errorf("%q is %q, want %q", same, got, here)
		}
	}
	if got := normalise("/srv/other/Shop.git", "/top"); got == here {
		t.Errorf("two paths are one project %q", got)
	}
}

// git runs Git without the settings of whoever runs the test.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func idsOf(t *testing.T, dir string) []ID {
	t.Helper()
	p, err := Find(t.Context(), dir, Mapping{})
	if err != nil {
		t.Fatal(err)
	}
	return p.IDs()
}

// TestWorktreesClonesAndFoldersAreOneProject, with a remote and without one.
func TestWorktreesClonesAndFoldersAreOneProject(t *testing.T) {
	for _, remote := range []string{"", "git@github.com:acme/shop.git"} {
		dir := t.TempDir()
		main := filepath.Join(dir, "shop")
		write(t, filepath.Join(main, "services/api/main.go"), "package main\n")
		git(t, main, "init", "-q")
		git(t, main, "add", ".")
		git(t, main, "commit", "-q", "-m", "begin")
		git(t, main, "worktree", "add", "-q", filepath.Join(dir, "elsewhere", "fix"))
		if err := os.Symlink(main, filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		same := []string{filepath.Join(main, "services/api"), filepath.Join(dir, "elsewhere", "fix", "services"), filepath.Join(dir, "link", "services")}
		if remote != "" {
			git(t, main, "remote", "add", "origin", remote)
			clone := filepath.Join(dir, "clone")
			git(t, dir, "clone", "-q", main, clone)
			git(t, clone, "remote", "set-url", "origin", "https://bob:secret@github.com/Acme/shop")
			same = append(same, clone)
		}
		want := idsOf(t, main)
		if len(want) != 1 || (remote == "") != strings.HasPrefix(string(want[0]), "local/shop-") {
			t.Fatalf("%q is %q", remote, want)
		}
		for _, folder := range same {
			if got := idsOf(t, folder); len(got) != 1 || got[0] != want[0] {
				t.Errorf("%s is %q, want %q", folder, got, want)
			}
		}
	}
}

// TestACloneByPathWasAnotherProject than the repository of this machine that it was cloned from, whose remote lies elsewhere.
func TestACloneByPathWasAnotherProject(t *testing.T) {
	base, main := made(t, "shop")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, main, "remote", "add", "origin", "git@github.com:acme/shop.git")
	git(t, main, "remote", "add", "fork", "git@github.com:bob/shop.git")
	git(t, base, "clone", "-q", main, at("clone"))
	git(t, base, "clone", "-q", at("clone"), at("again"))
	git(t, base, "clone", "-q", "file://"+main, at("url"))
	git(t, base, "clone", "-q", main, at("relative"))
	git(t, at("relative"), "remote", "set-url", "origin", "../shop")
	git(t, base, "clone", "-q", "--mirror", main, at("mirror.git"))
	git(t, at("mirror.git"), "remote", "set-url", "origin", "https://github.com/acme/shop")
	git(t, base, "clone", "-q", at("mirror.git"), at("work"))
	git(t, at("relative"), "worktree", "add", "-q", at("deep/tree"))
	git(t, base, "clone", "-q", at("again"), at("third"))
	git(t, base, "clone", "-q", at("third"), at("fourth"))
	for _, name := range []string{"shop", "clone", "again", "third", "fourth", "url", "relative", "deep/tree", "work"} {
		if got := idsOf(t, at(name)); got[0] != "github.com/acme/shop" || name != "shop" && len(got) != 1 {
			t.Errorf("%s is %q", name, got)
		}
	}
	k := knownHere(t)
	k.use(at("clone"), "shop")
	for _, name := range []string{"shop", "again", "work"} {
		k.has(at(name), "shop")
	}
}

// TestACloneWasTakenForWhatLiesBesideItsSource: of shop.git, which is bare, for what lies in shop.
func TestACloneWasTakenForWhatLiesBesideItsSource(t *testing.T) {
	base, main := made(t, "shop")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, base, "clone", "-q", "--bare", main, at("notes.git"))
	git(t, at("notes.git"), "remote", "remove", "origin")
	git(t, base, "clone", "-q", main, at("notes"))
	git(t, at("notes"), "remote", "set-url", "origin", "https://github.com/acme/payroll")
	git(t, base, "clone", "-q", at("notes.git"), at("clone"))
	if got := idsOf(t, at("clone")); len(got) != 1 || got[0] != localID(at("notes.git")) {
		t.Errorf("the clone of what has no remote is %q", got)
	}
	git(t, at("notes"), "remote", "remove", "origin")
	k := knownHere(t)
	k.use(at("notes"), "payroll")
	k.has(at("clone"), "")
	git(t, at("notes.git"), "remote", "add", "origin", "https://github.com/acme/notes")
	if got := idsOf(t, at("clone")); len(got) != 1 || got[0] != "github.com/acme/notes" {
		t.Errorf("the clone is %q", got)
	}
}

// TestSourcesThatWereNotFound: a worktree, a submodule, one behind a link, one whose address has escapes, and one that a relative path names.
func TestSourcesThatWereNotFound(t *testing.T) {
	base, main := made(t, "my shop")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, main, "worktree", "add", "-q", at("tree"))
	git(t, base, "init", "-q", at("outer"))
	git(t, at("outer"), "submodule", "--quiet", "add", main, "sub")
	if err := os.Symlink(main, at("link")); err != nil {
		t.Fatal(err)
	}
	git(t, base, "init", "-q", "--bare", at("deep/bare.git"))
	git(t, at("deep/bare.git"), "remote", "add", "origin", "../../my shop") // as Git reads it there
	git(t, at("outer/sub"), "remote", "set-url", "origin", "../../my shop")
	clones := map[string]string{"ofTree": at("tree"), "ofSub": at("outer/sub"), "ofLink": at("link"), "ofURL": "file://" + base + "/my%20shop", "ofBare": at("deep/bare.git")}
	for name, from := range clones {
		git(t, base, "clone", "-q", from, at(name))
	}
	k := knownHere(t)
	for name := range clones {
		if got := idsOf(t, at(name)); len(got) != 1 || got[0] != localID(main) {
			t.Errorf("without a remote %s is %q", name, got)
		}
	}
	k.use(at("ofLink"), "shop")
	k.has(main, "shop")
	git(t, main, "remote", "add", "origin", "git@github.com:acme/shop.git")
	for name := range clones {
		if got := idsOf(t, at(name)); len(got) != 1 || got[0] != "github.com/acme/shop" {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestACloneOfSomebodyElsesTookTheirWord for which project it is, where Git does not take theirs for a repository.
func TestACloneOfSomebodyElsesTookTheirWord(t *testing.T) {
	base, main := made(t, "shop")
	git(t, main, "remote", "add", "origin", "git@github.com:acme/payroll.git")
	clone := filepath.Join(base, "clone")
	git(t, base, "clone", "-q", main, clone)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	theirs := func(path string) bool { return path != main && filepath.Dir(path) != main }
	p, err := find(t.Context(), clone, Mapping{}, theirs)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.IDs(); len(got) != 1 || got[0] != localID(main) {
		t.Errorf("it is %q", got)
	}
	tree, ofTree := filepath.Join(base, "tree"), filepath.Join(base, "ofTree")
	git(t, main, "worktree", "add", "-q", tree)
	git(t, base, "clone", "-q", tree, ofTree)
	for dir, whose := range map[string]string{clone: filepath.Join(main, ".git"), ofTree: filepath.Join(main, ".git", "worktrees", "tree")} { // one of them is enough
		p, err := find(t.Context(), dir, Mapping{}, func(path string) bool { return path != whose })
		if err != nil || p.IDs()[0] == "github.com/acme/payroll" {
			t.Errorf("where %s is theirs, %s is %v, %v", whose, dir, p, err)
		}
	}
	if p, err := find(t.Context(), ofTree, Mapping{}, func(path string) bool { return path != filepath.Join(main, ".git") }); err != nil || p.IDs()[0] == "github.com/acme/payroll" {
		t.Errorf("where the repository of a worktree is theirs: %v, %v", p, err)
	}
	write(t, filepath.Join(home, ".gitconfig"), "[safe]\n\tdirectory = "+main+"\n")
	if p, err = find(t.Context(), clone, Mapping{}, theirs); err != nil || p.IDs()[0] != "github.com/acme/payroll" {
		t.Errorf("said to be safe: %v, %v", p, err)
	}
}

// TestACloneOfSomebodyElsesMarkTookANamespace: they had copied the mark of a repository that was away then.
func TestACloneOfSomebodyElsesMarkTookANamespace(t *testing.T) {
	base, main := made(t, "shop")
	theirs, clone := filepath.Join(base, "theirs"), filepath.Join(base, "clone")
	k := knownHere(t)
	k.use(main, "shop")
	rename(t, main, theirs)
	git(t, base, "clone", "-q", theirs, clone)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	p, err := find(t.Context(), clone, k.Mapping, func(path string) bool { return !strings.HasPrefix(path, theirs) })
	if err != nil {
		t.Fatal(err)
	}
	if c, err := k.Choose(p); err != nil || c.Namespace != "" {
		t.Errorf("it has %q, %v", c.Namespace, err)
	}
}

// TestRemotesOfThisMachineThatEndNowhere: in a circle, in several that do not say which leads, or in a pipe.
func TestRemotesOfThisMachineThatEndNowhere(t *testing.T) {
	base, main := made(t, "a")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, base, "clone", "-q", main, at("b"))
	git(t, main, "remote", "add", "origin", at("b"))
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		if got := idsOf(t, at(name)); len(got) != 1 || got[0] != localID(at(other)) {
			t.Errorf("%s of a circle is %q", name, got)
		}
	}
	git(t, main, "remote", "rename", "origin", "x")
	git(t, main, "remote", "set-url", "x", "https://github.com/acme/shop")
	git(t, main, "remote", "add", "y", "https://github.com/bob/shop")
	if got := idsOf(t, at("b")); len(got) != 1 || got[0] != localID(main) {
		t.Errorf("a clone of what has two remotes and none that leads is %q", got)
	}
}

// TestClonesThatHaveEachOtherAsRemotes were looked at again and again, so that with eight of them a call took a second. It is
// counted how often their owner is asked for.
func TestClonesThatHaveEachOtherAsRemotes(t *testing.T) {
	const many = 8
	base := t.TempDir()
	at := func(i int) string { return filepath.Join(base, fmt.Sprint(i)) }
	for i := range many {
		config := ""
		for j := range many {
			if i != j {
				config += fmt.Sprintf("[remote \"r%d\"]\n\turl = %s\n", j, at(j))
			}
		}
		git(t, base, "init", "-q", at(i))
		write(t, filepath.Join(at(i), ".git", "config"), "[core]\n\trepositoryformatversion = 0\n"+config)
	}
	for _, ring := range []bool{false, true} {
		asked := 0
		p, err := find(t.Context(), at(0), Mapping{}, func(string) bool { asked++; return true })
		if err != nil || asked > 100*many || len(p.Remotes) < many-1 {
			t.Errorf("in a ring %v: asked %d times, %v, %v", ring, asked, p.Remotes, err)
		}
		for i := 0; i < many && !ring; i++ {
			git(t, at(i), "remote", "add", "origin", at((i+1)%many))
		}
	}
}

// TestOfSeveralRemotesOfASource that do not lead, the same one counts, also where one is a clone of it.
func TestOfSeveralRemotesOfASource(t *testing.T) {
	base, main := made(t, "shop")
	clone, backup := filepath.Join(base, "clone"), filepath.Join(base, "backup.git")
	git(t, base, "clone", "-q", main, clone)
	git(t, base, "clone", "-q", "--bare", main, backup)
	git(t, backup, "remote", "set-url", "origin", "https://github.com/acme/shop")
	git(t, main, "remote", "add", "backup", backup)
	git(t, main, "remote", "add", "x", "https://github.com/acme/shop")
	git(t, main, "remote", "add", "y", "git@github.com:acme/shop.git")
	if got := idsOf(t, clone); len(got) != 1 || got[0] != "github.com/acme/shop" {
		t.Errorf("the clone is %q", got)
	}
	git(t, main, "remote", "add", "upstream", "https://github.com/first/shop")
	git(t, main, "remote", "add", "origin", "https://github.com/")
	if got := idsOf(t, clone); len(got) != 1 || got[0] != "github.com/first/shop" {
		t.Errorf("with one that leads the clone is %q", got)
	}
	git(t, main, "remote", "set-url", "origin", "https://github.com/me/shop")
	if got := idsOf(t, clone); len(got) != 1 || got[0] != "github.com/me/shop" {
		t.Errorf("with one that leads before that the clone is %q", got)
	}
}

// TestWhatWasChosenForACloneByPathStays, of the time when it was a project of its own.
func TestWhatWasChosenForACloneByPathStays(t *testing.T) {
	base, main := made(t, "shop")
	clone := filepath.Join(base, "clone")
	git(t, base, "clone", "-q", main, clone)
	k := knownHere(t)
	k.use(clone, "own")
	git(t, main, "remote", "add", "origin", "git@github.com:acme/shop.git")
	k.has(clone, "own")
	k.has(main, "own")
	later := filepath.Join(base, "later")
	git(t, base, "clone", "-q", main, later)
	k.has(later, "own")
}

func TestASubmoduleIsAProjectOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	inner, outer := filepath.Join(dir, "inner"), filepath.Join(dir, "outer")
	for _, repo := range []string{inner, outer} {
		begun(t, repo, "x")
		git(t, repo, "remote", "add", "origin", "https://github.com/acme/"+filepath.Base(repo))
	}
	git(t, outer, "submodule", "--quiet", "add", inner, "sub")
	sub := filepath.Join(outer, "sub")
	git(t, sub, "remote", "set-url", "origin", "https://github.com/acme/inner")
	if got := idsOf(t, sub); got[0] != "github.com/acme/inner" {
		t.Errorf("the submodule is %q", got)
	}
}

// TestGitIsAskedWhereItsFileIsNotSimple: includes, and short addresses.
func TestGitIsAskedWhereItsFileIsNotSimple(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	write(t, filepath.Join(dir, "more"), "[remote \"origin\"]\n\turl = https://github.com/acme/included\n")
	config := filepath.Join(dir, ".git", "config")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]ID{
		"[include]\n\tpath = ../more\n":                                                      "github.com/acme/included",
		"[remote \"origin\"]\n\turl = \"https://github.com/acme/quoted\"\n":                  "github.com/acme/quoted",
		"[url \"https://github.com/\"]\n\tinsteadOf = gh:\n[remote \"o\"]\n\turl = gh:a/b\n": "github.com/a/b",
		"[remote \"origin\"] ; ours\n\tURL=https://github.com/acme/plain\n\turl = https://x": "github.com/acme/plain",
		"[remote \"origin\"]\n\turl = https://github.com/acme/\\\nlong\n":                    "github.com/acme/long",
	} {
		write(t, config, string(before)+text)
		if got := idsOf(t, dir); len(got) != 1 || got[0] != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestARepositoryWasReadForAnother where Git had named it for its own hook, or an alias, in a worktree.
func TestARepositoryWasReadForAnother(t *testing.T) {
	_, worked := made(t, "worked")
	git(t, worked, "remote", "add", "origin", "https://github.com/acme/worked")
	base, main := made(t, "shop")
	write(t, filepath.Join(main, "more"), "[remote \"origin\"]\n\turl = https://github.com/acme/shop\n")
	git(t, main, "config", "include.path", "../more")
	clone := filepath.Join(base, "clone")
	git(t, base, "clone", "-q", main, clone)
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
		"GIT_DIR": filepath.Join(worked, ".git"), "GIT_COMMON_DIR": filepath.Join(worked, ".git"), "GIT_CONFIG": filepath.Join(worked, ".git", "config"),
	} {
		t.Setenv(name, value)
	}
	if p, err := find(t.Context(), main, Mapping{}, func(string) bool { return false }); err == nil {
		t.Errorf("what is somebody else's is %q", p.IDs())
	}
	write(t, filepath.Join(home, ".gitconfig"), "[safe]\n\tdirectory = *\n")
	for _, dir := range []string{main, clone} {
		if got := idsOf(t, dir); len(got) != 1 || got[0] != "github.com/acme/shop" {
			t.Errorf("%s is %q", dir, got)
		}
	}
}

// TestAMirrorMakesNoOtherProject: however Git's file is written, what the machine replaces by
// insteadOf counts for short addresses alone.
func TestAMirrorMakesNoOtherProject(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	write(t, filepath.Join(home, ".gitconfig"), "[url \"https://mirror.corp/github/\"]\n\tinsteadOf = https://github.com/acme/\n[url \"https://github.com/\"]\n\tinsteadOf = gh:\n")
	git(t, dir, "init", "-q")
	config := filepath.Join(dir, ".git", "config")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"url = https://github.com/acme/shop", "url = \"https://github.com/acme/shop\"", "url = gh:acme/shop", "url = \"gh:acme/shop\"", "url = https://github.com/acme/shop # ours\n\turl = https://x.org/y/z"} {
		write(t, config, string(before)+"[remote \"origin\"]\n\t"+text+"\n")
		if got := idsOf(t, dir); len(got) != 1 || got[0] != "github.com/acme/shop" {
			t.Errorf("%q is %q", text, got)
		}
	}
	write(t, config, string(before)+"[include]\n\tpath = missing\n")
	if got := idsOf(t, dir); !strings.HasPrefix(string(got[0]), "local/") {
		t.Errorf("without a remote it is %q", got)
	}
}

func TestAFolderOutsideGitIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil { // of nobody
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), dir, Mapping{}); !errors.Is(err, ErrNone) || strings.Count(err.Error(), "project") > 1 {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(dir, "a", ".git"), "nonsense")
	if _, err := Find(t.Context(), filepath.Join(dir, "a"), Mapping{}); memory.CodeOf(err) != memory.CodeInvalid || errors.Is(err, ErrNone) {
		t.Errorf("a damaged .git: %v", err)
	}
}

// TestWhatGitRefusesIsNoProject: an unpacked folder that only looks like a repository.
func TestWhatGitRefusesIsNoProject(t *testing.T) {
	for _, lacks := range []string{"HEAD", "objects", "refs", "nothing", "a head that names something"} {
		dir := t.TempDir()
		git(t, dir, "init", "-q")
		git(t, dir, "remote", "add", "origin", "https://github.com/acme/payroll")
		switch lacks {
		case "nothing":
		case "a head that names something":
			write(t, filepath.Join(dir, ".git", "HEAD"), "nothing of Git's\n")
		default:
			if err := os.RemoveAll(filepath.Join(dir, ".git", lacks)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Find(t.Context(), dir, Mapping{}); (lacks == "nothing") != (err == nil) || err != nil && !errors.Is(err, ErrNone) {
			t.Errorf("without %s: %v", lacks, err)
		}
		to := t.TempDir()
		write(t, filepath.Join(to, ".git"), "gitdir: "+filepath.Join(dir, ".git")+"\n")
		if _, err := Find(t.Context(), to, Mapping{}); (lacks == "nothing") != (err == nil) {
			t.Errorf("a file that leads to one without %s: %v", lacks, err)
		}
	}
}

// TestARepositoryOfSomebodyElseIsAskedOfGit: it is one where its user has said that it is safe.
func TestARepositoryOfSomebodyElseIsAskedOfGit(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	git(t, dir, "init", "-q")
	git(t, dir, "remote", "add", "origin", "https://github.com/acme/payroll")
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	others := func(string) bool { return false }
	_, err := find(t.Context(), dir, Mapping{}, others)
	var e *memory.Error
	if !errors.As(err, &e) || e.Code != memory.CodeInvalid || errors.Is(err, ErrNone) || !strings.Contains(e.Hint, "safe.directory "+dir) {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(home, ".gitconfig"), "[safe]\n\tdirectory = "+dir+"\n")
	if p, err := find(t.Context(), dir, Mapping{}, others); err != nil || p.IDs()[0] != "github.com/acme/payroll" {
		t.Errorf("said to be safe: %v, %v", p, err)
	}
	if !mine(dir) && runtime.GOOS != "windows" || mine(filepath.Join(dir, "missing")) {
		t.Error("who owns it is not known")
	}
}

// TestTwoThatFitAreNamed: nothing is guessed.
func TestTwoThatFitAreNamed(t *testing.T) {
	p := &Project{Top: "/home/u/shop", Remotes: []Remote{{"origin", "github.com/bob/shop"}, {"upstream", "github.com/acme/shop"}}}
	m, err := ParseMapping("projects.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	fails := func(err error, words ...string) {
		t.Helper()
		var e *memory.Error
		if !errors.As(err, &e) || e.Code != memory.CodeConflict {
			t.Fatalf("error is %v", err)
		}
		for _, w := range words {
			if !strings.Contains(e.Error()+" "+e.Hint, w) {
				t.Errorf("%q is not in %q, %q", w, e, e.Hint)
			}
		}
	}
	_, err = m.Propose(p)
	fails(err, "github.com/bob/shop", "github.com/acme/shop", "memctl project use")
	if c, err := m.Choose(p); err != nil || c.Namespace != "" {
		t.Errorf("without a mapping: %v, %v", c, err)
	}
	m.Projects["github.com/acme/shop"] = "shop"
	_, err = m.Choose(p)
	fails(err, "github.com/bob/shop, which has no namespace", "github.com/acme/shop, whose namespace is shop", "memctl project use")
	m.Use(p, "both")
	if c, err := m.Choose(p); err != nil || c.Namespace != "both" || c.ID != "github.com/bob/shop" || !strings.Contains(c.Why(m, p), "upstream, has shop") {
		t.Errorf("decided: %v, %v, %q", c, err, c.Why(m, p))
	}
	if m.Projects["github.com/acme/shop"] != "shop" {
		t.Errorf("the other project has another namespace now: %v", m.Projects)
	}
	one := &Project{Top: "/x", Remotes: []Remote{{"origin", "gitlab.com/acme/shop"}}}
	if c, err := m.Propose(one); err != nil || c.Namespace != "acme-shop" {
		t.Errorf("%v, %v", c, err)
	}
	m.Projects["github.com/acme/shop"] = "acme-shop"
	_, err = m.Propose(one)
	fails(err, "github.com/acme/shop", "gitlab.com/acme/shop", "memctl project use acme-shop")
	if got := m.Forget(p); !slices.Equal(got, []ID{"github.com/bob/shop"}) || len(m.Forget(p)) != 0 || len(m.Projects) != 1 {
		t.Errorf("forgot %v, left: %v", got, m.Projects)
	}
}

// TestAColleaguesRemoteTakesNothing: what a repository keeps never goes to the namespace of a
// remote that was only added, whatever it is called.
func TestAColleaguesRemoteTakesNothing(t *testing.T) {
	m, _ := ParseMapping("p", nil)
	m.Projects["github.com/acme/payroll"] = "acme-payroll"
	for _, names := range [][2]string{{"origin", "colleague"}, {"origin", "a"}, {"origin", "upstream"}, {"upstream", "a"}, {"mine", "a"}, {"a", "mine"}} {
		dir := t.TempDir()
		git(t, dir, "init", "-q")
		git(t, dir, "remote", "add", names[0], "git@github.com:me/diary.git")
		git(t, dir, "remote", "add", names[1], "git@github.com:acme/payroll.git")
		p := projectAt(t, m, dir)
		c, err := m.Choose(p)
		if memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "me/diary") || !strings.Contains(err.Error(), "acme/payroll") {
			t.Errorf("%q has %+v, %v", names, c, err)
		}
		if names[0] == "mine" || names[1] == "mine" {
			continue // nothing leads: a choice counts for all of them
		}
		own := Mapping{Projects: maps.Clone(m.Projects), Places: map[ID][]string{}}
		own.Use(p, "diary")
		if c, err := own.Choose(p); err != nil || c.Namespace != "diary" || own.Projects["github.com/acme/payroll"] != "acme-payroll" {
			t.Errorf("decided, %q has %+v, %v of %v", names, c, err, own)
		}
	}
	p := &Project{Top: "/x", Local: "local/x-1", Remotes: []Remote{{"a", "github.com/acme/payroll"}, {"b", "github.com/me/diary"}}}
	m.Projects["github.com/me/diary"] = "acme-payroll"
	if c, err := m.Choose(p); err != nil || c.Namespace != "acme-payroll" {
		t.Errorf("where all agree: %+v, %v", c, err)
	}
	m.Projects["local/x-1"] = "mine"
	if _, err := m.Choose(p); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("where it had another one before: %v", err)
	}
}

// projectAt finds what a test has made.
func projectAt(t *testing.T, m Mapping, dir string) *Project {
	t.Helper()
	p, err := Find(t.Context(), dir, m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decide is what a program does that keeps a namespace for a project.
func decide(t *testing.T, m Mapping, p *Project, namespace string) {
	t.Helper()
	m.Use(p, namespace)
	if path, text := p.Place(); text != "" {
		write(t, path, text)
	}
}

// TestARemoteThatAppearsTakesNoNamespaceAway: it had one as a folder, and that is the only one
// that fits.
func TestARemoteThatAppearsTakesNoNamespaceAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fresh")
	write(t, filepath.Join(dir, "f"), "x")
	git(t, dir, "init", "-q")
	m, _ := ParseMapping("p", nil)
	decide(t, m, projectAt(t, m, dir), "fresh-1")
	git(t, dir, "remote", "add", "origin", "git@github.com:acme/fresh.git")
	p := projectAt(t, m, dir)
	c, err := m.Choose(p)
	if err != nil || c.Namespace != "fresh-1" || c.ID != p.Local {
		t.Fatalf("%+v, %v", c, err)
	}
	m.Use(p, c.Namespace)
	clone := &Project{Top: "/elsewhere", Local: "local/elsewhere-1", Remotes: []Remote{{"origin", "github.com/acme/fresh"}}}
	if c, err := m.Choose(clone); err != nil || c.Namespace != "fresh-1" {
		t.Errorf("a clone: %+v, %v", c, err)
	}
	m.Projects["github.com/acme/fresh"] = "acme-fresh"
	if _, err := m.Choose(p); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "fresh-1") || !strings.Contains(err.Error(), "acme-fresh") {
		t.Errorf("two that fit: %v", err)
	}
	m.Use(p, "one")
	if c, err := m.Choose(p); err != nil || c.Namespace != "one" {
		t.Errorf("decided: %+v, %v", c, err)
	}
}

// TestAMovedRepositoryKeepsItsNamespace, and a copy of it is another project.
func TestAMovedRepositoryKeepsItsNamespace(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	write(t, filepath.Join(at("fresh"), "f"), "x")
	git(t, at("fresh"), "init", "-q")
	m, _ := ParseMapping("p", nil)
	decide(t, m, projectAt(t, m, at("fresh")), "fresh-1")
	chosen := func(name string) string {
		t.Helper()
		c, err := m.Choose(projectAt(t, m, at(name)))
		if err != nil {
			t.Fatal(err)
		}
		return c.Namespace
	}
	if err := os.CopyFS(at("copy"), os.DirFS(at("fresh"))); err != nil {
		t.Fatal(err)
	}
	if got := chosen("copy"); got != "" {
		t.Errorf("the copy has %q", got)
	}
	if err := os.Rename(at("fresh"), at("renamed")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(at("copy")); err != nil {
		t.Fatal(err)
	}
	if got := chosen("renamed"); got != "fresh-1" {
		t.Errorf("moved, it has %q", got)
	}
	decide(t, m, projectAt(t, m, at("renamed")), "fresh-1") // it is known by its new place
	write(t, filepath.Join(at("fresh"), "g"), "x")
	git(t, at("fresh"), "init", "-q")
	if got := chosen("fresh"); got != "" {
		t.Errorf("a new one at its former place has %q", got)
	}
	if got := chosen("renamed"); got != "fresh-1" || len(m.Projects) != 1 {
		t.Errorf("known by its new place, it has %q of %v", got, m.Projects)
	}
}

// TestOneThatIsNamedInOtherLettersHasANamespace: names of namespaces have Latin letters only.
func TestOneThatIsNamedInOtherLettersHasANamespace(t *testing.T) {
	m, _ := ParseMapping("p", nil)
	for id, want := range map[ID]string{"local/商店-6a1b6c02": "project-6a1b6c02", "gitee.com/公司/商店": "project-", "gitee.com/公司/shop": "shop", "local/shop-6a1b6c02": "shop-6a1b6c02"} {
		c, err := m.Propose(&Project{Top: "/x", Local: id, Remotes: []Remote{{"origin", id}}})
		if err != nil || !strings.HasPrefix(c.Namespace, want) || memory.CheckName("namespace", c.Namespace) != nil || len(c.Namespace) < 3 {
			t.Errorf("%s has %+v, %v", id, c, err)
		}
	}
	one, _ := m.Propose(&Project{Remotes: []Remote{{"o", "gitee.com/公司/商店"}}})
	other, _ := m.Propose(&Project{Remotes: []Remote{{"o", "gitee.com/公司/书店"}}})
	if one.Namespace == other.Namespace {
		t.Errorf("both have %q", one.Namespace)
	}
}

// TestALongNameKeepsWhatTellsItFromOthers: two folders with long names of which the beginnings are the same.
func TestALongNameKeepsWhatTellsItFromOthers(t *testing.T) {
	m, _ := ParseMapping("p", nil)
	long := strings.Repeat("quarterly-report-", 6)
	for _, hash := range []string{"-6a1b6c02", "-01020304"} {
		c, err := m.Propose(&Project{Top: "/x", Local: ID("local/" + long + hash)})
		if err != nil || !strings.HasSuffix(c.Namespace, hash) || len(c.Namespace) > maxName {
			t.Errorf("%+v, %v", c, err)
		}
		m.Projects[c.ID] = c.Namespace
	}
}

func TestADamagedMappingIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"version":1}`, `{"version":2,"projects":{}}`, `{"version":0,"projects":{}}`, `{"version":1,"projects":{"a/b":"_no"}}`, `{"version":1,"projects":{},"x":1}`} {
		if _, err := ParseMapping("projects.json", []byte(text)); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "projects.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
	m, _ := ParseMapping("p", nil)
	m.Projects["a/b"] = "ns"
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseMapping("p", b); err != nil || again.Projects["a/b"] != "ns" {
		t.Errorf("%v, %v", again, err)
	}
}

func FuzzRemote(f *testing.F) {
	for _, s := range []string{"git@github.com:a/b.git", "https://u:p@h:1/a/b", "file:///a", "C:\\a\\b", "[::1]:x", "a:b", "://", "ssh://h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id := string(normalise(s, "/top"))
		if id != "" && !strings.Contains(id, "/") || strings.HasSuffix(id, "/") {
			t.Errorf("%q is %q", s, id)
		}
	})
}

// TestPlacesAreBounded: the latest are known.
func TestPlacesAreBounded(t *testing.T) {
	m, err := ParseMapping("projects.json", []byte(`{"version":1,"projects":{"github.com/acme/shop":"shop"},"places":null}`))
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) *Project { return &Project{Top: fmt.Sprint("/home/u/", i)} }
	for i := range maxPlaces + 1 {
		want := ""
		if i > 0 {
			want = at(i - 1).Top
		}
		if m.Knows("github.com/acme/shop", at(i)) || m.Arrive("github.com/acme/shop", at(i)) != want {
			t.Errorf("place %d was known, or is not behind %q", i, want)
		}
	}
	m.Projects["local/moved"] = "moved"
	for i := range maxPlaces + 1 { // and so are those of a repository that is moved again and again
		m.sign(&Project{Local: "local/moved", place: at(i).Top})
	}
	if home := m.Homes["local/moved"]; len(home.Places) != maxPlaces || home.latest() != at(maxPlaces).Top || home.Places[0] != at(1).Top {
		t.Errorf("it lay in %v", home.Places)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = ParseMapping("projects.json", b); err != nil || m.Knows("github.com/acme/shop", at(0)) || !m.Knows("github.com/acme/shop", at(1)) || !m.Knows("github.com/acme/shop", at(maxPlaces)) {
		t.Errorf("%v, %v", m, err)
	}
}
