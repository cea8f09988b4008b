package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/project"
)

// projectsOfOne are repositories without a remote in one folder, whose user has a node.
type projectsOfOne struct {
	t         *testing.T
	node      *fakeNode
	dir, addr string
	config    string // where what the user chose stands
}

func newProjects(t *testing.T, names ...string) *projectsOfOne {
	t.Helper()
	node := newFakeNode()
	srv := httptest.NewServer(node.handler())
	t.Cleanup(srv.Close)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	u := &projectsOfOne{t, node, dir, srv.URL, filepath.Join(dir, "config")}
	u.must(err)
	for _, name := range names {
		u.make(name)
	}
	return u
}

func (u *projectsOfOne) at(name string) string { return filepath.Join(u.dir, name) }

func (u *projectsOfOne) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

// make makes a repository as `git init` does.
func (u *projectsOfOne) make(name string) {
	u.t.Helper()
	u.must(makeRepository(u.at(name), "x"))
	u.remote(name, "")
}

func (u *projectsOfOne) remote(name, address string) {
	u.t.Helper()
	text := "[core]\n\tbare = false\n"
	if address != "" {
		text += "[remote \"origin\"]\n\turl = " + address + "\n"
	}
	u.must(os.WriteFile(filepath.Join(u.at(name), ".git", "config"), []byte(text), 0o644))
}

func (u *projectsOfOne) move(from, to string) { u.t.Helper(); u.must(os.Rename(u.at(from), u.at(to))) }

func (u *projectsOfOne) copied(from, to string) {
	u.t.Helper()
	u.must(os.CopyFS(u.at(to), os.DirFS(u.at(from))))
}

func (u *projectsOfOne) call(in, input string, args ...string) string {
	u.t.Helper()
	var out, errs bytes.Buffer
	sys := userSystem(u.dir, in, u.addr, &out, &errs)
	sys.in = strings.NewReader(input)
	sys.configDir = func() (string, error) { return u.config, nil }
	if code := run(u.t.Context(), sys, args); code != 0 {
		u.t.Fatalf("%v in %s: exit %d: %s", args, in, code, errs.String())
	}
	return out.String()
}

// another is somebody else who sees the same folders, as from a container.
func (u *projectsOfOne) another() *projectsOfOne {
	other := *u
	other.config += "-other"
	return &other
}

// mark is the file of a repository by which it is known.
func (u *projectsOfOne) mark(name string) string {
	return filepath.Join(u.at(name), ".git", "mneme-place")
}

// mapping is the file of what the user chose.
func (u *projectsOfOne) mapping() string { return filepath.Join(u.config, "mneme", "projects.json") }

func (u *projectsOfOne) hook(in string) string {
	u.t.Helper()
	b, err := json.Marshal(map[string]string{"session_id": "s", "cwd": u.at(in), "source": "startup"})
	u.must(err)
	return u.call(in, string(b), "hook", "--agent", "claude-code", "--event", "SessionStart", "--start", "never")
}

// prompt is a hook that keeps what is said.
func (u *projectsOfOne) prompt(in, said string) string {
	u.t.Helper()
	b, err := json.Marshal(map[string]string{"session_id": in + said, "cwd": u.at(in), "prompt": said})
	u.must(err)
	return u.call(in, string(b), "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "--start", "never")
}

// stored are the texts of a namespace.
func (u *projectsOfOne) stored(namespace string) []string {
	u.node.mu.Lock()
	defer u.node.mu.Unlock()
	var texts []string
	if ns := u.node.namespaces[namespace]; ns != nil {
		for _, r := range ns.records {
			texts = append(texts, r.current().Text)
		}
	}
	return texts
}

// keyless has a mark be what it was before it had a key.
func (u *projectsOfOne) keyless(name, mark string) {
	u.t.Helper()
	u.must(os.WriteFile(u.mark(name), []byte(mark), 0o644))
	path := u.mapping()
	mapping, err := project.ReadMapping(path)
	u.must(err)
	mapping.Homes = nil
	b, err := mapping.Encode()
	u.must(err)
	u.must(os.WriteFile(path, b, 0o600))
}

// namespace is the one of the project, "" if it has none.
func (u *projectsOfOne) namespace(in string) string {
	u.t.Helper()
	var shown projectShown
	u.must(json.Unmarshal([]byte(u.call(in, "", "project", "--json")), &shown))
	return shown.Namespace
}

func (u *projectsOfOne) has(name, want string) {
	u.t.Helper()
	if got := u.namespace(name); got != want {
		u.t.Errorf("%s has %q, not %q", name, got, want)
	}
}

// TestANewRepositoryAtTheFormerPlaceOfAnotherTakesNothing: it got the namespace of the one that was
// moved away, and read its memories. That one keeps it, whether it was met at its new place yet or not.
func TestANewRepositoryAtTheFormerPlaceOfAnotherTakesNothing(t *testing.T) {
	for _, met := range []bool{true, false} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "nm1", "--create")
		u.move("m1", "m2")
		if met {
			if said := u.hook("m2"); strings.Contains(said, "another place") {
				t.Errorf("moved, it is said to be another place: %s", said)
			}
		}
		u.make("m1")
		u.has("m1", "")
		u.call("m1", "", "project", "use", "nm3", "--create")
		u.has("m1", "nm3")
		u.has("m2", "nm1")
		u.has("m1", "nm3")
		u.call("m1", "", "project", "forget")
		u.has("m2", "nm1")
	}
}

// TestANewRepositoryAtTheFormerPlaceIsProposedNothingOfIt: not its namespace by name, either.
func TestANewRepositoryAtTheFormerPlaceIsProposedNothingOfIt(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "integrate", "claude-code")
	own := u.namespace("m1")
	u.move("m1", "m2")
	u.make("m1")
	u.has("m1", "")
	u.call("m1", "", "integrate", "claude-code")
	if got := u.namespace("m1"); got == own || got == "" || own == "" {
		t.Errorf("moved, it has %q, and the new one %q", own, got)
	}
	u.has("m2", own)
}

// TestACopyOfAMovedRepositoryIsAnotherProject: it was taken for another place of it, since the file
// still named the place before the move, and kept its namespace when each got a remote of its own.
func TestACopyOfAMovedRepositoryIsAnotherProject(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "nm1", "--create")
	u.move("m1", "m2")
	u.copied("m2", "before") // it was met
	u.hook("m2")
	u.copied("m2", "after")
	b, err := os.ReadFile(u.mark("m2"))
	if err != nil || !strings.Contains(string(b), `"`+u.at("m2")+`"`) {
		t.Errorf("the file says %q, %v", b, err)
	}
	for _, name := range []string{"before", "after"} {
		u.has(name, "")
		if said := u.hook("m2"); strings.Contains(said, "another place") {
			t.Errorf("%s", said)
		}
		u.remote(name, "https://github.com/acme/"+name)
		u.has(name, "")
	}
	u.remote("m2", "https://github.com/acme/m2")
	u.has("m2", "nm1")
	u.move("m2", "m3")
	u.has("m3", "nm1")
	u.copied("m3", "m2")
	u.has("m2", "")
}

// TestAFileThatNamesItsPlaceAloneCounts: so it was before it named the identity, too. Anybody can write it, so
// it says nothing where another repository lies at that place, unless a call has met it there.
func TestAFileThatNamesItsPlaceAloneCounts(t *testing.T) {
	for _, met := range []bool{true, false} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "nm1", "--create")
		u.keyless("m1", u.at("m1")+"\n")
		u.copied("m1", "copy")
		u.has("copy", "")
		if met {
			u.has("m1", "nm1")
		}
		u.move("m1", "m2")
		if !met {
			u.has("m2", "nm1")
		}
		u.make("m1")
		u.has("m1", "")
		u.has("m2", "nm1")
		u.has("m1", "")
		if list := u.call("m1", "", "project", "list"); strings.Count(list, "nm1") != 1 {
			t.Errorf("%s", list)
		}
	}
}

// TestTheFirstCallAfterAMoveWorkedElsewhere: it settled the move, and chose by what had been read before
// that. So a capture went to what was remembered, and a hook lost it where nothing was.
func TestTheFirstCallAfterAMoveWorkedElsewhere(t *testing.T) {
	for _, remembered := range []bool{true, false} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "shop", "--create")
		u.call("m1", "", "namespace", "create", "other")
		if remembered {
			u.call("m1", "", "use", "other")
		}
		u.move("m1", "m2")
		u.call("m2", "", "capture", "herons nest in March")
		u.move("m2", "m3")
		u.prompt("m3", "Remember that deploys happen on Tuesdays.")
		u.move("m3", "m4")
		u.prompt("m4", "Remember that invoices are sent on Fridays.")
		u.move("m4", "m5")
		u.call("m5", "", "search", "herons")
		u.has("m5", "shop")
		if got := u.stored("shop"); len(got) != 3 || len(u.stored("other")) > 0 {
			t.Errorf("the project has %q, and others have %q", got, u.stored("other"))
		}
	}
}

// TestAMarkFromElsewhereTookAProject: whoever knows where a project lies could write its mark into
// another repository, which had its namespace then, and the project had none.
func TestAMarkFromElsewhereTookAProject(t *testing.T) {
	u := newProjects(t, "shop", "evil")
	file := u.mark("evil")
	plant := func(text string) {
		t.Helper()
		u.must(os.WriteFile(file, []byte(text), 0o644))
		said := u.hook("evil")
		u.has("evil", "other")
		if u.prompt("evil", "Remember that deploys happen on Tuesdays."); len(u.stored("shop")) > 0 || strings.Contains(said, "another place") {
			t.Errorf("with %q: %s, and it stored %q", text, said, u.stored("shop"))
		}
	}
	u.call("shop", "", "project", "use", "shop", "--create")
	u.call("shop", "", "namespace", "create", "other")
	u.call("shop", "", "use", "other")
	id := strings.Fields(u.call("shop", "", "project", "list", "-q"))[0]
	for _, place := range []string{"/nowhere", u.at("shop"), u.at("evil")} {
		plant(place + "\n" + id + "\n")
		plant(place + "\n")
		plant(`{"place":"` + place + `","project":"` + id + `","key":""}` + "\n")
		plant(`{"place":"` + place + `","project":"` + id + `","key":"GUESSED"}` + "\n")
	}
	b, err := os.ReadFile(u.mark("shop"))
	u.must(err)
	plant(string(b)) // a copy
	plant(strings.ReplaceAll(string(b), u.at("shop"), u.at("evil")))
	u.has("shop", "shop")
	u.keyless("shop", u.at("shop")+"\n"+id+"\n")
	plant("/nowhere\n" + id + "\n")
	u.has("shop", "shop")
	u.move("shop", "away") // and is not met there yet
	for _, place := range []string{"/nowhere", u.at("shop"), u.at("evil")} {
		plant(place + "\n" + id + "\n")
	}
	u.has("away", "shop")
}

// TestTwoRenamesWithOneNamespaceLostIt: the project that came to the place of another one with the same
// namespace got its identity, so that the other one passed for a copy.
func TestTwoRenamesWithOneNamespaceLostIt(t *testing.T) {
	for _, first := range []string{"app", "app-old"} {
		u := newProjects(t, "app", "app-new")
		u.call("app", "", "project", "use", "shop", "--create")
		u.call("app-new", "", "project", "use", "shop")
		u.move("app", "app-old")
		u.move("app-new", "app")
		u.hook(first)
		for range 2 {
			u.has("app", "shop")
			u.has("app-old", "shop")
		}
		u.call("app", "", "project", "forget")
		u.has("app", "")
		u.has("app-old", "shop")
	}
}

// TestWhatAContainerChoseTookTheHostsNamespace: there was one mark for all users of a repository.
func TestWhatAContainerChoseTookTheHostsNamespace(t *testing.T) {
	host := newProjects(t, "shop")
	container := host.another()
	host.call("shop", "", "project", "use", "shop", "--create")
	container.has("shop", "")
	container.call("shop", "", "project", "use", "inner", "--create")
	host.has("shop", "shop")
	container.has("shop", "inner")
	for range 2 { // each sees it elsewhere
		host.move("shop", "mounted")
		container.hook("mounted")
		container.has("mounted", "inner")
		host.move("mounted", "shop")
		host.hook("shop")
		host.has("shop", "shop")
	}
	host.move("shop", "moved")
	host.has("moved", "shop")
	container.has("moved", "inner")
	host.call("moved", "", "project", "forget")
	host.has("moved", "")
	container.has("moved", "inner")
	host.call("moved", "", "project", "use", "again", "--create")
	container.has("moved", "inner")
	for i := range 40 { // what others leave there has an end
		b, err := os.ReadFile(host.mark("moved"))
		host.must(err)
		if n := bytes.Count(b, []byte("\n")); n > 16 {
			t.Fatalf("after %d more choices the file has %d lines", i, n)
		}
		host.call("moved", "", "project", "forget")
		host.call("moved", "", "project", "use", "again")
	}
	host.has("moved", "again")
}

// TestADiskThatWasAwayLostItsNamespace: a copy of what is on it had been met meanwhile. Both have it.
func TestADiskThatWasAwayLostItsNamespace(t *testing.T) {
	u := newProjects(t, "disk/shop")
	u.call("disk/shop", "", "project", "use", "shop", "--create")
	u.copied("disk/shop", "copy")
	u.has("copy", "")
	if said := u.call("copy", "", "project"); !strings.Contains(said, "copy of    "+u.at("disk/shop")+", whose namespace it does not have") {
		t.Errorf("of a copy it is said: %s", said)
	}
	u.move("disk", "away")
	u.has("copy", "shop")
	u.move("away", "disk")
	for range 2 {
		u.has("disk/shop", "shop")
		u.has("copy", "shop")
	}
	for _, moves := range [][2]string{{"disk/shop", "left"}, {"copy", "right"}} { // and both stay what they are
		u.move(moves[0], moves[1])
		u.has(moves[1], "shop")
	}
	u.call("right", "", "project", "forget")
	u.has("right", "")
	u.has("left", "shop")
	if said := u.call("left", "", "project"); strings.Contains(said, "copy of") {
		t.Errorf("of what is no copy it is said: %s", said)
	}
}

// TestWhatIsChosenForACopyIsItsOwn: whatever becomes of the original, and of what was chosen.
func TestWhatIsChosenForACopyIsItsOwn(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "nm1", "--create")
	u.copied("m1", "m2")
	u.call("m2", "", "project", "use", "nm2", "--create")
	u.has("m1", "nm1")
	u.has("m2", "nm2")
	u.must(os.RemoveAll(u.at("m1")))
	u.has("m2", "nm2")
	u.move("m2", "m3")
	u.has("m3", "nm2")
	u.call("m3", "", "project", "forget")
	u.has("m3", "")
}

// TestAMappingThatCannotBeWrittenLostANamespace: the repository's file had the new key already, and the mapping
// none, for good.
func TestAMappingThatCannotBeWrittenLostANamespace(t *testing.T) {
	others := "" // of other users, as many as may be
	for i := range 16 {
		others += fmt.Sprintf(`{"place":"/elsewhere","project":"local/m1-%08d","key":"K"}`+"\n", i)
	}
	for _, moved := range []bool{false, true} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "nm1", "--create")
		u.keyless("m1", others+u.at("m1")+"\n")
		at := "m1"
		if moved {
			at = "m2"
			u.move("m1", at)
		}
		before := u.read(u.mapping())
		u.has(at, "nm1")
		u.write(u.mapping(), before) // as if that had not been written, or been read before
		for range 2 {
			u.has(at, "nm1")
		}
	}
}

// TestAMarkThatCannotBeWrittenLostANamespace: the mapping had a key then that the repository did not have.
func TestAMarkThatCannotBeWrittenLostANamespace(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "nm1", "--create")
	id := strings.TrimSpace(u.call("m1", "", "project", "list", "-q"))
	u.must(os.Remove(u.mark("m1")))
	u.must(os.Mkdir(u.mark("m1"), 0o755)) // nobody writes there, whoever runs the test
	u.write(u.mapping(), `{"version":1,"projects":{"`+id+`":"nm1"}}`)
	for range 2 {
		u.has("m1", "nm1")
	}
}

// TestAMarkWithoutAKeyTookWhatLiesElsewhere: the place of a project whose own mark is gone, or that the mapping does
// not have.
func TestAMarkWithoutAKeyTookWhatLiesElsewhere(t *testing.T) {
	u := newProjects(t, "shop", "evil")
	u.call("shop", "", "project", "use", "shop", "--create")
	u.keyless("shop", "")
	u.write(u.mark("evil"), u.at("shop")+"\n")
	u.has("evil", "")
	u.must(os.Rename(u.at("shop/.git"), u.at("bare")))
	u.must(os.RemoveAll(u.at("shop")))
	u.move("bare", "shop") // which has no folder of work
	u.has("evil", "")
	mapping, err := project.ReadMapping(u.mapping())
	u.must(err)
	mapping.Places = nil
	b, err := mapping.Encode()
	u.must(err)
	u.write(u.mapping(), string(b))
	u.must(os.RemoveAll(u.at("shop")))
	u.has("evil", "")
}

// TestAMarkWithoutAKeyTookAProjectThatHasARemote, or is known by another repository's place.
func TestAMarkWithoutAKeyTookAProjectThatHasARemote(t *testing.T) {
	u := newProjects(t, "far", "src", "near", "evil")
	u.remote("far", "https://github.com/acme/shop")
	u.remote("near", u.at("src"))
	u.call("far", "", "project", "use", "nm1", "--create")
	u.call("near", "", "project", "use", "nm2", "--create")
	mapping, err := project.ReadMapping(u.mapping())
	u.must(err)
	if len(mapping.Projects) != 2 {
		t.Fatalf("%v", mapping.Projects)
	}
	for id := range mapping.Projects {
		for _, place := range []string{"far", "near", "src"} {
			mark, err := json.Marshal(map[string]string{"place": u.at(place), "project": string(id), "key": ""})
			u.must(err)
			u.write(u.mark("evil"), string(mark)+"\n")
			u.has("evil", "")
			u.has("far", "nm1")
			u.has("near", "nm2")
		}
	}
	u.must(os.RemoveAll(u.at("far"))) // and a clone that is gone names no other repository either
	mark, err := json.Marshal(map[string]string{"place": u.at("far"), "project": "github.com/acme/shop", "key": ""})
	u.must(err)
	u.write(u.mark("evil"), string(mark)+"\n")
	u.has("evil", "")
}

// both has a project and its copy have one namespace: the copy was met while the project was away.
func both(t *testing.T) *projectsOfOne {
	t.Helper()
	u := newProjects(t, "disk/shop")
	u.call("disk/shop", "", "project", "use", "shop", "--create")
	u.copied("disk/shop", "copy")
	u.move("disk", "away")
	u.has("copy", "shop")
	u.move("away", "disk")
	for range 2 {
		u.has("disk/shop", "shop")
		u.has("copy", "shop")
	}
	return u
}

// TestAMappingOfBeforeLostWhatACopyHadToo: what was there before the two were two, put back from a copy.
func TestAMappingOfBeforeLostWhatACopyHadToo(t *testing.T) {
	u := newProjects(t, "disk/shop")
	u.call("disk/shop", "", "project", "use", "shop", "--create")
	u.copied("disk/shop", "copy")
	u.move("disk", "away")
	u.has("copy", "shop")
	before := u.read(u.mapping())
	u.move("away", "disk")
	u.has("disk/shop", "shop")
	u.write(u.mapping(), before)
	for range 2 {
		u.has("disk/shop", "shop")
		u.has("copy", "shop")
	}
}

// TestWhatWasForgottenCameBack by the mark that the repository had before it became a project of its own.
func TestWhatWasForgottenCameBack(t *testing.T) {
	for forget, stays := range map[string]string{"disk/shop": "copy", "copy": "disk/shop"} {
		u := both(t)
		u.call(forget, "", "project", "forget")
		for range 2 {
			u.has(forget, "")
			u.has(stays, "shop")
		}
	}
}

// TestAFormerMarkPassedForTheRepository: where one lay that is known by another mark now, what came from there was a
// copy of it, and a copy of that one was what had moved away.
func TestAFormerMarkPassedForTheRepository(t *testing.T) {
	u := both(t)
	u.move("copy", "left")
	u.move("disk/shop", "copy")
	u.has("left", "shop")
	u.has("copy", "shop")
	u.has("left", "shop")
	u = both(t)
	u.copied("disk/shop", "other")
	u.move("copy", "left")
	u.has("other", "")
	u.has("left", "shop")
	u.has("disk/shop", "shop")
}
