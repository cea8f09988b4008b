package verbs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mneme/internal/project"
)

// read is a file's content, "" where there is none.
func (u *projectsOfOne) read(path string) string {
	u.t.Helper()
	b, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		u.must(err)
	}
	return string(b)
}

func (u *projectsOfOne) write(path, text string) {
	u.t.Helper()
	u.must(os.MkdirAll(filepath.Dir(path), 0o755))
	u.must(os.WriteFile(path, []byte(text), 0o600))
}

// TestWhatIsMappedByHandCounts: for what lies there, if nothing says that it is another one.
func TestWhatIsMappedByHandCounts(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "shop", "--create")
	id := strings.TrimSpace(u.call("m1", "", "project", "list", "-q"))
	for _, places := range []string{``, `,"places":{"` + id + `":["/a/clone"]}`} {
		u.must(os.RemoveAll(u.mark("m1")))
		u.write(u.mapping(), `{"version":1,"projects":{"`+id+`":"shop"}`+places+`}`)
		u.has("m1", "shop")
		u.move("m1", "m2")
		u.has("m2", "shop") // it has a mark now
		u.move("m2", "m1")
	}
	u.must(os.RemoveAll(u.mark("m1")))
	u.write(u.mapping(), `{"version":1,"projects":{"`+id+`":"shop"},"places":{"`+id+`":["`+u.at("m1")+`"]}}`)
	u.has("m1", "")
}

// TestANewRepositoryForgetsNothingOfTheFormerOne: what is to be forgotten there is none of its own.
func TestANewRepositoryForgetsNothingOfTheFormerOne(t *testing.T) {
	for _, met := range []bool{true, false} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "shop", "--create")
		u.move("m1", "m2")
		if met {
			u.has("m2", "shop")
		}
		u.make("m1")
		var out, errs bytes.Buffer
		if code := run(t.Context(), userSystem(u.dir, "m1", u.addr, &out, &errs), []string{"project", "forget"}); code != 3 {
			t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
		}
		u.has("m2", "shop")
		for range 2 { // and what is forgotten leaves nothing
			u.call("m2", "", "project", "forget")
			if m, err := project.ReadMapping(u.mapping()); err != nil || len(m.Projects)+len(m.Places)+len(m.Homes) > 0 {
				t.Errorf("%v, %v", m, err)
			}
			u.has("m2", "")
			u.call("m2", "", "project", "use", "shop")
		}
	}
}

// TestAMoveThatIsNotedHalfIsNone: whether the mark or the mapping was not written.
func TestAMoveThatIsNotedHalfIsNone(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "shop", "--create")
	u.call("m1", "", "namespace", "create", "other")
	for i := range 2 {
		from, to := fmt.Sprint("m", 2*i+1), fmt.Sprint("m", 2*i+2)
		mark, mapping := u.read(u.mark(from)), u.read(u.mapping())
		u.move(from, to)
		u.has(to, "shop")
		if i == 0 {
			u.write(u.mark(to), mark)
		} else {
			u.write(u.mapping(), mapping)
		}
		for range 2 {
			u.has(to, "shop")
		}
		m, err := project.ReadMapping(u.mapping())
		if err != nil || len(m.Projects) != 1 || !strings.Contains(u.read(u.mark(to)), u.at(to)) {
			t.Errorf("%v, %v, %s", m, err, u.read(u.mark(to)))
		}
		u.move(to, fmt.Sprint("m", 2*i+3))
	}
}

// TestAMoveThatCannotBeNotedKeepsTheNamespace: as while another call changes what was chosen.
func TestAMoveThatCannotBeNotedKeepsTheNamespace(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "shop", "--create")
	u.call("m1", "", "namespace", "create", "other")
	u.call("m1", "", "use", "other")
	u.move("m1", "m2")
	mapping := u.read(u.mapping())
	// A folder in the place of the lock: nobody gets it, whoever runs the test.
	u.must(os.RemoveAll(u.mapping() + ".lock"))
	u.must(os.Mkdir(u.mapping()+".lock", 0o700))
	u.call("m2", "", "capture", "herons nest in March")
	u.prompt("m2", "Remember that deploys happen on Tuesdays.")
	u.has("m2", "shop")
	if got := u.stored("shop"); len(got) != 2 || u.read(u.mapping()) != mapping {
		t.Errorf("it stored %q", got)
	}
	u.must(os.Remove(u.mapping() + ".lock"))
	u.has("m2", "shop")
	if !strings.Contains(u.read(u.mark("m2")), u.at("m2")) {
		t.Errorf("the mark is %s", u.read(u.mark("m2")))
	}
}

// TestWhatHasNoNamespaceIsNotMarked: reading changes nothing in a repository, what others wrote there
// included.
func TestWhatHasNoNamespaceIsNotMarked(t *testing.T) {
	u := newProjects(t, "shop", "plain", "marked")
	u.call("shop", "", "project", "use", "shop", "--create")
	mapping := u.read(u.mapping())
	others := `{"place":"/elsewhere","project":"local/marked-01020304","key":"K"}` + "\n"
	u.write(u.mark("marked"), others)
	for _, name := range []string{"plain", "marked"} {
		u.hook(name)
		u.has(name, "")
		u.call(name, "", "project", "list")
	}
	if got := u.read(u.mark("plain")); got != "" || u.read(u.mark("marked")) != others || u.read(u.mapping()) != mapping {
		t.Errorf("%q, %q, %s", got, u.read(u.mark("marked")), u.read(u.mapping()))
	}
}

// TestManyFirstCallsAfterAMove: it is noted once, and each of them has the namespace.
func TestManyFirstCallsAfterAMove(t *testing.T) {
	u := newProjects(t, "m1")
	u.call("m1", "", "project", "use", "shop", "--create")
	u.call("m1", "", "namespace", "create", "other")
	u.call("m1", "", "use", "other")
	u.move("m1", "m2")
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			var out, errs bytes.Buffer
			if code := run(t.Context(), userSystem(u.dir, "m2", u.addr, &out, &errs), []string{"capture", fmt.Sprint("herons nest in March, in year ", i)}); code != 0 {
				t.Errorf("exit %d: %s", code, errs.String())
			}
		})
	}
	all.Wait()
	m, err := project.ReadMapping(u.mapping())
	if err != nil || len(m.Projects) != 1 || len(u.stored("shop")) != 12 || strings.Count(u.read(u.mark("m2")), "\n") != 1 {
		t.Errorf("%v, %v; stored %d; %s", m, err, len(u.stored("shop")), u.read(u.mark("m2")))
	}
	u.has("m2", "shop")
}

// TestADryRunNotedAMove, though it writes nothing.
func TestADryRunNotedAMove(t *testing.T) {
	u := newProjects(t, "main")
	u.call("main", "", "project", "use", "team-a", "--create")
	u.move("main", "moved")
	mark, mapping := u.read(u.mark("moved")), u.read(u.mapping())
	for _, more := range [][]string{{"--scope", "project"}, {"--scope", "user"}, {"--remove"}} {
		u.call("moved", "", append([]string{"integrate", "codex", "--dry-run"}, more...)...)
	}
	u.call("moved", "", "integrate", "git", "--dry-run")
	if u.read(u.mark("moved")) != mark || u.read(u.mapping()) != mapping {
		t.Errorf("it was noted: %s", u.read(u.mark("moved")))
	}
	u.call("moved", "", "integrate", "codex", "--scope", "project")
	if u.read(u.mark("moved")) == mark || u.read(u.mapping()) == mapping {
		t.Error("it is not noted by a call that writes")
	}
}

// TestWhateverIsCalledFirstAfterAMove knows the project.
func TestWhateverIsCalledFirstAfterAMove(t *testing.T) {
	for first, want := range map[string]string{
		"project": "shop", "list": "shop", "project use new --create": "new", "project forget": "other", "integrate claude-code": "shop", "integrate --list": "shop", "use third": "shop",
	} {
		u := newProjects(t, "m1")
		u.call("m1", "", "project", "use", "shop", "--create")
		u.call("m1", "", "namespace", "create", "other")
		u.call("m1", "", "namespace", "create", "third")
		u.call("m1", "", "use", "other")
		u.move("m1", "m2")
		u.call("m2", "", strings.Fields(first)...)
		u.has("m2", want)
		if m, err := project.ReadMapping(u.mapping()); err != nil || len(m.Projects) > 1 || len(m.Homes) != len(m.Projects) {
			t.Errorf("after %s: %+v, %v", first, m, err)
		}
		if entries := u.read(filepath.Join(u.at("m2"), ".mcp.json")); first == "integrate claude-code" && !strings.Contains(entries, `"shop"`) {
			t.Errorf("the entries are %s", entries)
		}
	}
}
