package project

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// known is a mapping to which projects that tests make are told, and what Settle does at each call.
type known struct {
	t *testing.T
	Mapping
}

func knownHere(t *testing.T) known {
	m, err := ParseMapping("p", nil)
	if err != nil {
		t.Fatal(err)
	}
	return known{t, m}
}

// at finds a project as memctl does.
func (k known) at(dir string) *Project {
	k.t.Helper()
	p := projectAt(k.t, k.Mapping, dir)
	if !p.Settled() {
		k.Settle(p)
		k.write(p)
	}
	return p
}

func (k known) write(p *Project) {
	k.t.Helper()
	if path, text := p.Place(); text != "" {
		write(k.t, path, text)
	}
}

func (k known) use(dir, namespace string) {
	k.t.Helper()
	p := k.at(dir)
	k.Use(p, namespace)
	k.write(p)
}

func (k known) has(dir, namespace string) {
	k.t.Helper()
	if c, err := k.Choose(k.at(dir)); err != nil || c.Namespace != namespace {
		k.t.Errorf("%s has %q, %v, and not %q", filepath.Base(dir), c.Namespace, err, namespace)
	}
}

// made makes a repository with a commit, in a folder without links.
func made(t *testing.T, name string) (base, dir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(base, name)
	begun(t, dir, "x")
	return base, dir
}

// begun makes a repository in a folder, with a commit of a file.
func begun(t *testing.T, dir, text string) {
	t.Helper()
	write(t, filepath.Join(dir, "f"), text)
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "begin")
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestAWorktreeIsKnownByItsRepository: where that lies counts, and not where the worktree does, in
// which the namespace was chosen.
func TestAWorktreeIsKnownByItsRepository(t *testing.T) {
	base, main := made(t, "main")
	tree, moved := filepath.Join(base, "tree"), filepath.Join(base, "moved")
	git(t, main, "worktree", "add", "-q", tree)
	k := knownHere(t)
	k.use(tree, "shop")
	k.has(main, "shop")
	rename(t, main, moved)
	git(t, moved, "worktree", "repair", tree)
	write(t, filepath.Join(main, "f"), "x")
	git(t, main, "init", "-q") // a new one
	k.has(main, "")
	k.has(tree, "shop")
	k.has(moved, "shop")
	if p := k.at(moved); !k.Knows(p.Local, p) {
		t.Errorf("moved, it is another place than %q", k.Places[p.Local])
	}
	k.has(main, "")
	k.use(main, "new")
	rename(t, tree, filepath.Join(base, "tree2"))
	k.has(filepath.Join(base, "tree2"), "shop")
	if len(k.Projects) != 2 {
		t.Errorf("%v", k.Projects)
	}
}

// TestACopyOfABareRepositoryIsAnotherProject: its worktrees lie elsewhere, and it has no .git.
func TestACopyOfABareRepositoryIsAnotherProject(t *testing.T) {
	base, main := made(t, "main")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, base, "clone", "-q", "--bare", main, at("bare.git"))
	git(t, at("bare.git"), "remote", "remove", "origin")
	git(t, at("bare.git"), "worktree", "add", "-q", "-b", "one", at("tree"))
	k := knownHere(t)
	k.use(at("tree"), "shop")
	git(t, base, "clone", "-q", at("bare.git"), at("clone"))
	k.has(at("clone"), "shop")
	if err := os.CopyFS(at("copy.git"), os.DirFS(at("bare.git"))); err != nil {
		t.Fatal(err)
	}
	git(t, at("copy.git"), "worktree", "add", "-q", "-b", "two", at("tree2"))
	k.has(at("tree2"), "")
	if of := k.at(at("tree2")).CopyOf; of != at("bare.git") {
		t.Errorf("it is a copy of %q", of)
	}
	rename(t, at("bare.git"), at("moved.git"))
	git(t, at("moved.git"), "worktree", "repair", at("tree"))
	k.has(at("tree"), "shop")
	k.has(at("tree2"), "")
	k.has(at("tree"), "shop")
}

// TestACloneByPathHadTheNamespaceOfWhatLayThere: not of what lies there now.
func TestACloneByPathHadTheNamespaceOfWhatLayThere(t *testing.T) {
	base, main := made(t, "main")
	at := func(name string) string { return filepath.Join(base, name) }
	k := knownHere(t)
	k.use(main, "shop")
	for _, name := range []string{"used", "clone"} {
		git(t, base, "clone", "-q", main, at(name))
		k.has(at(name), "shop")
	}
	k.Arrive(k.at(at("used")).IDs()[0], k.at(at("used")))
	rename(t, main, at("moved"))
	k.has(at("clone"), "shop")
	begun(t, main, "x") // a new one
	git(t, base, "clone", "-q", main, at("new"))
	k.has(at("new"), "")
	k.use(main, "other")
	k.has(at("new"), "other")
	k.has(at("used"), "shop")
	clear(k.Clones) // which mappings had not once
	k.has(at("used"), "shop")
	k.has(at("moved"), "shop")
	git(t, base, "clone", "-q", at("moved"), at("again"))
	k.has(at("again"), "shop")
}

// TestACloneLostItsNamespaceWithItsSource, that is known by a remote elsewhere, or was given that of another one which lay there later.
func TestACloneLostItsNamespaceWithItsSource(t *testing.T) {
	base, main := made(t, "main")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, main, "remote", "add", "origin", "https://github.com/acme/shop")
	git(t, base, "clone", "-q", main, at("clone"))
	git(t, base, "clone", "-q", at("clone"), at("again"))
	git(t, base, "clone", "-q", main, at("unused"))
	k := knownHere(t)
	k.use(main, "shop")
	for _, name := range []string{"clone", "clone"} { // each hook may
		p := k.at(at(name))
		k.Arrive(p.IDs()[0], p)
	}
	git(t, at("clone"), "worktree", "add", "-q", at("tree"))
	for _, lies := range []string{"", "other"} {
		if lies == "" {
			rename(t, main, at("moved"))
		} else {
			begun(t, main, "x")
			git(t, main, "remote", "add", "origin", "https://github.com/acme/payroll")
			k.use(main, "payroll")
		}
		b, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if k.Mapping, err = ParseMapping("p", b); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"clone", "again", "tree", "moved"} {
			k.has(at(name), "shop")
		}
		if lies != "" {
			lies = "payroll"
		}
		k.has(at("unused"), lies)
	}
	git(t, base, "clone", "-q", main, at("new"))
	k.has(at("new"), "payroll")
	delete(k.Projects, "github.com/acme/shop") // as by hand
	k.has(at("clone"), "payroll")
	k.Projects["github.com/acme/shop"] = "shop"
	k.has(at("clone"), "shop")
	k.Forget(k.at(at("clone")))
	k.has(at("clone"), "payroll")
	k.use(at("moved"), "shop")
	k.has(at("clone"), "payroll")
}

// TestAClonesNamespaceOfTheTimeBefore clones were noted went with its source, though it was used on: its place was known.
func TestAClonesNamespaceOfTheTimeBefore(t *testing.T) {
	base, main := made(t, "main")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, main, "remote", "add", "origin", "https://github.com/acme/shop")
	git(t, base, "clone", "-q", main, at("clone"))
	git(t, at("clone"), "worktree", "add", "-q", at("tree"))
	k := knownHere(t)
	k.use(at("clone"), "shop")
	clear(k.Clones)
	for _, first := range []bool{true, false} {
		p := k.at(at("clone"))
		id := p.IDs()[0]
		if k.Knows(id, p) == first {
			t.Errorf("it is known: %v", !first)
		}
		if before := k.Arrive(id, p); before != "" {
			t.Errorf("it is told that it was used in %s", before)
		}
	}
	rename(t, main, at("moved"))
	k.has(at("clone"), "shop")
	k.has(at("tree"), "shop")
}

// TestAWorktreeOfACloneWasAnotherProject, of one that was known by the path of a link, or of a worktree, once.
func TestAWorktreeOfACloneWasAnotherProject(t *testing.T) {
	base, main := made(t, "main")
	at := func(name string) string { return filepath.Join(base, name) }
	git(t, main, "worktree", "add", "-q", at("source"))
	git(t, base, "clone", "-q", at("source"), at("clone"))
	git(t, at("clone"), "worktree", "add", "-q", at("tree"))
	k := knownHere(t)
	id := localID(at("source"))
	k.Projects[id], k.Places[id] = "shop", []string{at("clone")}
	k.has(at("clone"), "shop")
	k.has(at("tree"), "shop")
}

// TestACloneOfAnAddressWithEscapesLostItsNamespace, of the time when they were not read.
func TestACloneOfAnAddressWithEscapesLostItsNamespace(t *testing.T) {
	base, main := made(t, "my shop")
	clone := filepath.Join(base, "clone")
	git(t, base, "clone", "-q", "file://"+base+"/my%20shop", clone)
	k := knownHere(t)
	id := localID(base + "/my%20shop")
	k.Projects[id], k.Places[id] = "shop", []string{clone}
	k.has(clone, "shop")
	k.use(main, "other")
	k.has(clone, "shop")
}

// TestAWorktreeOfABareRepositoryLostItsNamespace, whose remote is relative, of the time when that began beside the repository.
func TestAWorktreeOfABareRepositoryLostItsNamespace(t *testing.T) {
	base, main := made(t, "main")
	bare, tree := filepath.Join(base, "bare.git"), filepath.Join(base, "tree")
	git(t, base, "clone", "-q", "--bare", main, bare)
	git(t, bare, "remote", "set-url", "origin", "../main")
	git(t, bare, "worktree", "add", "-q", "-b", "one", tree)
	k := knownHere(t)
	id := localID(filepath.Join(filepath.Dir(base), "main"))
	k.Projects[id], k.Places[id] = "shop", []string{tree}
	k.has(tree, "shop")
}

// TestANewCloneHadTheNamespaceOfTheOneThatLayThere, of another repository at the same path.
func TestANewCloneHadTheNamespaceOfTheOneThatLayThere(t *testing.T) {
	base, main := made(t, "main")
	clone := filepath.Join(base, "clone")
	k := knownHere(t)
	for _, name := range []string{"shop", "payroll"} {
		begun(t, main, name)
		git(t, main, "remote", "add", "origin", "https://github.com/acme/"+name)
		k.use(main, name)
		git(t, base, "clone", "-q", main, clone)
		k.has(clone, name)
		p := k.at(clone)
		k.Arrive(p.IDs()[0], p)
		rename(t, main, filepath.Join(base, name))
		k.has(clone, name)
		rename(t, clone, filepath.Join(base, name+"-clone"))
	}
	if k.Clones["github.com/acme/shop"] != nil {
		t.Errorf("what lies there no more is known: %v", k.Clones)
	}
}

// TestClonesAreBounded: the latest are known.
func TestClonesAreBounded(t *testing.T) {
	k := knownHere(t)
	k.Projects["a/b"] = "ns"
	at := func(i int) *Project {
		return &Project{Top: fmt.Sprint("/home/u/", i), place: fmt.Sprint("/home/u/", i), near: []near{{"local/main", "a/b"}, {"local/other", "c/d"}}}
	}
	for i := range maxPlaces + 1 {
		k.Arrive("a/b", at(i))
	}
	for i, want := range map[int]ID{0: "", 1: "a/b", maxPlaces: "a/b"} {
		if got := k.usedIn(at(i).clone("local/main")); got != want || k.usedIn(at(i).clone("local/other")) != "" {
			t.Errorf("clone %d is %q", i, got)
		}
	}
	k.Projects["c/d"] = "ns2"
	k.clone("c/d", at(1).clone("local/main"))
	if got := k.usedIn(at(1).clone("local/main")); got != "c/d" {
		t.Errorf("what was used in another project since is %q", got)
	}
}
