package agentsync

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tailscale/hujson"

	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write testdata again")

// machine is a user's machine in a folder.
type machine struct {
	dir string
	Where
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{dir: dir, Where: Where{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}}
	m.Config = filepath.Join(m.Home, ".config")
	m.AppData = m.Config
	for _, d := range []string{m.Home, m.Project} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// files are all files of the machine but backups.
func (m *machine) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if info, bad := os.Stat(path); err != nil || d.IsDir() || bad != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(m.dir, path)
		all[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const keptIn = "kept"

func withoutBackups(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		if !strings.HasPrefix(name, keptIn+"/") {
			out[name] = text
		}
	}
	return out
}

// kept are the contents of backups.
func (m *machine) kept(t *testing.T) (texts []string) {
	t.Helper()
	for name, text := range m.files(t) {
		if strings.HasPrefix(name, keptIn+"/") {
			texts = append(texts, text)
		}
	}
	return texts
}

func (m *machine) apply(changes []*Change) error {
	return Apply(changes, filepath.Join(m.dir, keptIn), func() error { return nil })
}

// TestWhatGoesWithFilesFailsAndTheyStayed: the entries of a project whose namespace could not be noted were there. What was
// there is given back, and a backup of it goes.
func TestWhatGoesWithFilesFailsAndTheyStayed(t *testing.T) {
	m := newMachine(t)
	m.write(t, "project/.mcp.json", []byte(`{"mcpServers":{"other":{"command":"x"}}}`))
	before := m.files(t)
	h, err := Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	for _, remove := range []bool{false, true} {
		changes, err := h.Plan(Project, m.Where, testOptions, remove)
		if err != nil {
			t.Fatal(err)
		}
		full := errors.New("the disk is full")
		if err := Apply(changes, filepath.Join(m.dir, keptIn), func() error { return full }); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
		same2(t, "it failed", m.files(t), before)
		m.must(t, "claude-code", Project, testOptions, false)
		before = m.files(t)
	}
}

var testOptions = Options{Memctl: "memctl", Namespace: "shop"}

func (m *machine) run(t *testing.T, host string, scope Scope, o Options, remove bool) ([]*Change, error) {
	t.Helper()
	h, err := Find(host)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := h.Plan(scope, m.Where, o, remove)
	if err != nil {
		return nil, err
	}
	return changes, m.apply(changes)
}

func (m *machine) must(t *testing.T, host string, scope Scope, o Options, remove bool) (changed int) {
	t.Helper()
	changes, err := m.run(t, host, scope, o, remove)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Changed() {
			changed++
		}
	}
	return changed
}

func same2(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is\n%s\nwant\n%s", what, name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is there:\n%s", what, name, got[name])
		}
	}
}

// TestGoldenEdits: files become what testdata says, in every kind of line end and encoding; a
// second run changes nothing; removal gives back the same bytes and leaves no file behind.
func TestGoldenEdits(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(err)
	}
	for _, archive := range archives {
		host, rest, _ := strings.Cut(filepath.Base(archive), ".")
		scope := Scope(strings.TrimSuffix(rest, ".txtar"))
		t.Run(host+" "+string(scope), func(t *testing.T) {
			a, err := txtar.ParseFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				rewriteArchive(t, archive, a, host, scope)
			}
			for _, kind := range []string{"plain", "crlf", "bom", "crlf bom", "no end"} {
				checkEdit(t, a, host, scope, kind)
			}
		})
	}
}

// form gives a text another kind of line end or encoding.
func form(text, kind string) string {
	if strings.Contains(kind, "no end") {
		text = strings.TrimSuffix(text, "\n")
	}
	if strings.Contains(kind, "crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if strings.Contains(kind, "bom") {
		text = string(bom) + text
	}
	return text
}

func checkEdit(t *testing.T, a *txtar.Archive, host string, scope Scope, kind string) {
	t.Helper()
	m := newMachine(t)
	before, after := map[string]string{}, map[string]string{}
	for _, f := range a.Files {
		when, name, _ := strings.Cut(f.Name, "/")
		if when == "before" {
			before[name] = form(string(f.Data), kind)
			m.write(t, name, []byte(before[name]))
		}
	}
	for _, f := range a.Files {
		when, name, _ := strings.Cut(f.Name, "/")
		if when == "after" {
			after[name] = string(f.Data)
			if _, ok := before[name]; ok {
				after[name] = form(string(f.Data), kind)
			}
		}
	}
	m.must(t, host, scope, testOptions, false)
	same2(t, kind, withoutBackups(m.files(t)), after)
	for name, text := range before {
		if text != after[name] && !slices.Contains(m.kept(t), text) {
			t.Errorf("%s: the backup of %s does not hold what was there", kind, name)
		}
	}
	if n := m.must(t, host, scope, testOptions, false); n != 0 {
		t.Errorf("%s: a second run changes %d files", kind, n)
	}
	other := testOptions
	other.Namespace, other.Memctl = "other", "/opt/my tools/memctl"
	m.must(t, host, scope, other, false)
	h, _ := Find(host)
	if s, err := h.State(scope, m.Where); err != nil || !s.Server {
		t.Errorf("%s: %+v, %v", kind, s, err)
	}
	m.must(t, host, scope, testOptions, false)
	same2(t, kind+" changed and changed back", withoutBackups(m.files(t)), after)
	m.must(t, host, scope, Options{}, true) // whatever it was called with
	same2(t, kind+" removed", m.files(t), before)
	if s, err := h.State(scope, m.Where); err != nil || s.Server || s.Hooks {
		t.Errorf("%s: removed and still %+v, %v", kind, s, err)
	}
	if n := m.must(t, host, scope, Options{}, true); n != 0 {
		t.Errorf("%s: a second removal changes %d files", kind, n)
	}
}

func rewriteArchive(t *testing.T, path string, a *txtar.Archive, host string, scope Scope) {
	t.Helper()
	m := newMachine(t)
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return !strings.HasPrefix(f.Name, "before/") })
	for _, f := range a.Files {
		m.write(t, strings.TrimPrefix(f.Name, "before/"), f.Data)
	}
	m.must(t, host, scope, testOptions, false)
	files := withoutBackups(m.files(t))
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a.Files = append(a.Files, txtar.File{Name: "after/" + name, Data: []byte(files[name])})
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestABackupHoldsWhatOthersWrote: it lies outside of the project, for the user alone to read,
// and neither a second run nor what somebody changed between takes the first one away.
func TestABackupHoldsWhatOthersWrote(t *testing.T) {
	m := newMachine(t)
	const original = `{"env": {"TOKEN": "secret"}}`
	path := m.write(t, "project/.mcp.json", []byte(original))
	m.must(t, "claude-code", Project, testOptions, false)
	other := testOptions
	other.Namespace = "other"
	m.must(t, "claude-code", Project, other, false)
	if got := m.kept(t); !slices.Equal(got, []string{original}) {
		t.Errorf("after a second run the backups hold %q", got)
	}
	for name := range m.files(t) {
		if info, err := os.Stat(filepath.Join(m.dir, name)); strings.HasPrefix(name, keptIn) && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		} else if strings.Contains(name, "backup") {
			t.Errorf("%s is in the project", name)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), "secret", "newer", 1)
	m.write(t, "project/.mcp.json", []byte(changed))
	m.must(t, "claude-code", Project, testOptions, false)
	if got := m.kept(t); len(got) != 2 || !slices.Contains(got, original) || !slices.Contains(got, changed) {
		t.Errorf("after a change the backups hold %q", got)
	}
}

// TestWhatAKilledRunLeftIsSwept: and nothing else that has such a name.
func TestWhatAKilledRunLeftIsSwept(t *testing.T) {
	m := newMachine(t)
	m.write(t, "project/.mcp.json", []byte("{}"))
	m.write(t, "project/.claude/.settings.json.tmp-123", []byte("of somebody"))
	m.write(t, "project/..mcp.json.tmp-mneme-123", []byte("{"))
	m.write(t, "project/.claude/.settings.json.tmp-mneme-4", []byte("{"))
	before := m.files(t)
	m.must(t, "claude-code", Project, testOptions, false)
	m.must(t, "claude-code", Project, testOptions, true)
	delete(before, "project/..mcp.json.tmp-mneme-123")
	delete(before, "project/.claude/.settings.json.tmp-mneme-4")
	same2(t, "swept", m.files(t), before)
}

func decodeJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	std, err := hujson.Standardize(append(bytes.Clone(bytes.TrimPrefix(text, bom)), '\n')) // behind a comment
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var v map[string]any
	if err := json.Unmarshal(std, &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// TestBadFilesAreRefusedAndAllIsLeftAsItWas: with file and line.
func TestBadFilesAreRefusedAndAllIsLeftAsItWas(t *testing.T) {
	for _, bad := range []struct{ host, name, text, says string }{
		{"cursor", "project/.cursor/hooks.json", "{\n  \"version\": 1,\n  \"hooks\": {", "line 3"},
		{"cursor", "project/.cursor/hooks.json", "{\n  \"version\": 1\n  \"hooks\": {}\n}", "line 3"},
		{"cursor", "project/.cursor/hooks.json", "", "line 1: the file is empty"},
		{"cursor", "project/.cursor/hooks.json", "\n\n", "empty"},
		{"cursor", "project/.cursor/hooks.json", "[]", "line 1"},
		{"cursor", "project/.cursor/hooks.json", "{\n\"hooks\": []}", "line 2: hooks is not an object"},
		{"cursor", "project/.cursor/hooks.json", "{\n\"hooks\": {\"stop\": [], \"sessionStart\": 7}}", "line 2: hooks.sessionStart"},
		{"cursor", "project/.cursor/hooks.json", "{\n\"hooks\": {},\n\"hooks\": {}}", "line 3: hooks stands twice"},
		{"cursor", "project/.cursor/hooks.json", "\xff\xfe{\x00}\x00", "line 1"},
		{"cursor", "project/.cursor/mcp.json", "{\n\n\"mcpServers\": {\"mneme\": {\"command\": \"other\"}}}", "line 3: mcpServers.mneme is there and is not Mneme's"},
		{"codex", "project/.codex/config.toml", "a = 1\n[broken\n", "line 2"},
		{"codex", "project/.codex/config.toml", "a = 1\na = 2\n", "line 2"},
		{"codex", "project/.codex/config.toml", "mcp_servers = { x = { command = \"y\" } }\n", "write that as tables, too, such as [mcp_servers.NAME]"},
		{"codex", "project/.codex/config.toml", "[mcp_servers]\nmneme = { command = \"memctl\" }\n", "is not edited"},
		{"codex", "project/.codex/config.toml", "[mcp_servers.mneme]\ncommand = \"other\"\n", "is not Mneme's"},
		{"kiro", "project/.kiro/hooks/mneme.json", "{\"mine\": true}", "is not Mneme's"},
	} {
		m := newMachine(t)
		path := m.write(t, bad.name, []byte(bad.text))
		before := m.files(t)
		_, err := m.run(t, bad.host, Project, testOptions, false)
		if memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%q: %v, want %q", bad.text, err, bad.says)
		}
		same2(t, bad.text, m.files(t), before)
	}
}

// TestACommentAtTheEndOfAFileWasRefused: one that no line ends behind is a comment, too.
func TestACommentAtTheEndOfAFileWasRefused(t *testing.T) {
	for _, text := range []string{
		"{\n  \"mcpServers\": {}\n} // mine",
		"\ufeff{\r\n  \"mcpServers\": {\r\n  }\r\n}\r\n// mine",
		"{\"mcpServers\": {}} //",
	} {
		m := newMachine(t)
		m.write(t, "project/.mcp.json", []byte(text))
		before := m.files(t)
		m.must(t, "claude-code", Project, testOptions, false)
		_, comment, _ := strings.Cut(text, "//")
		if edited := m.files(t)["project/.mcp.json"]; !strings.Contains(edited, "mneme") || !strings.HasSuffix(edited, "//"+comment) {
			t.Errorf("%q became %q", text, edited)
		}
		if n := m.must(t, "claude-code", Project, testOptions, false); n != 0 {
			t.Errorf("%q: a second run changes %d files", text, n)
		}
		m.must(t, "claude-code", Project, testOptions, true)
		same2(t, text, m.files(t), before)
	}
	m := newMachine(t)
	m.write(t, "project/.mcp.json", []byte("{} /* never ends"))
	if _, err := m.run(t, "claude-code", Project, testOptions, false); err == nil {
		t.Error("a comment that never ends was taken")
	}
}

// TestALinkStaysALink: the file behind it is edited, and one to nothing is refused.
func TestALinkStaysALink(t *testing.T) {
	m := newMachine(t)
	real := m.write(t, "dotfiles/mcp.json", []byte("{\n  \"mcpServers\": {}\n}\n"))
	link := filepath.Join(m.Home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	before := m.files(t)
	m.must(t, "cursor", User, testOptions, false)
	b, err := os.ReadFile(real)
	if err != nil || !bytes.Contains(b, []byte("memctl")) {
		t.Errorf("the file behind the link: %v\n%s", err, b)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	m.must(t, "cursor", User, testOptions, true)
	same2(t, "removed", m.files(t), before)
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if _, err := m.run(t, "cursor", User, testOptions, false); err == nil || !strings.Contains(err.Error(), "a link to a file that is not there") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestALinkOfAProjectLeadsNotOutOfIt: neither that of a file nor that of its folder, whether or
// not what it leads to is there; one within the project is followed.
func TestALinkOfAProjectLeadsNotOutOfIt(t *testing.T) {
	link := func(t *testing.T, to, from string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o755), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{".mcp.json": "home/other.json", ".claude": "home/folder", ".claude/settings.json": "home/missing/settings.json"} {
		m := newMachine(t)
		m.write(t, "home/other.json", []byte("{}"))
		m.write(t, "home/folder/x", nil)
		link(t, filepath.Join(m.dir, to), filepath.Join(m.Project, from))
		before := m.files(t)
		_, err := m.run(t, "claude-code", Project, testOptions, false)
		if memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), filepath.FromSlash(from)) || !strings.Contains(err.Error(), "out of the project, to "+m.dir) {
			t.Errorf("%s to %s: %v", from, to, err)
		}
		same2(t, from, m.files(t), before)
		h, _ := Find("claude-code")
		if _, err := h.State(Project, m.Where); err == nil {
			t.Errorf("%s to %s is read", from, to)
		}
	}
	m := newMachine(t)
	m.write(t, "project/config/claude/x", nil)
	link(t, filepath.Join("config", "claude"), filepath.Join(m.Project, ".claude"))
	link(t, m.Project, filepath.Join(m.dir, "by"))
	m.Project = filepath.Join(m.dir, "by")
	m.must(t, "claude-code", Project, testOptions, false)
	if !strings.Contains(m.files(t)["project/config/claude/settings.json"], "memctl hook") {
		t.Errorf("a link within the project: %v", m.files(t))
	}
	hook := filepath.Join(m.Project, ".husky", "post-commit")
	link(t, filepath.Join(m.Home, "post-commit"), hook)
	if _, err := GitHook(hook, m.Project, filepath.Join(m.Project, ".git"), "x", false); err == nil || !strings.Contains(err.Error(), "out of the project") {
		t.Errorf("a hook of Git: %v", err)
	}
}

func TestAReadOnlyFileIsLeftAlone(t *testing.T) {
	m := newMachine(t)
	path := m.write(t, "project/.cursor/hooks.json", []byte("{\"version\":1}\n"))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	before := m.files(t)
	if _, err := m.run(t, "cursor", Project, testOptions, false); err == nil || !strings.Contains(err.Error(), "it is read-only") {
		t.Errorf("error is %v", err)
	}
	same2(t, "read-only", m.files(t), before)
}

// TestTheFirstFailureUndoesAll: the second file changes between plan and writing, or cannot be
// written; the first one, and its folder, is as it was.
func TestTheFirstFailureUndoesAll(t *testing.T) {
	for name, spoil := range map[string]func(m *machine, path string) error{
		"changed meanwhile": func(_ *machine, path string) error { return os.WriteFile(path, []byte("{\"version\":2}"), 0o644) },
		"a folder by now": func(_ *machine, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		},
	} {
		m := newMachine(t)
		m.write(t, "project/.mcp.json", []byte("{}"))
		second := m.write(t, "project/.claude/settings.json", []byte("{}"))
		h, _ := Find("claude-code")
		changes, err := h.Plan(Project, m.Where, testOptions, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(m, second); err != nil {
			t.Fatal(err)
		}
		before := m.files(t)
		if err := m.apply(changes); err == nil {
			t.Errorf("%s: it is written", name)
		}
		same2(t, name, m.files(t), before)
		if changes[0].Kept() != "" {
			t.Errorf("%s: %s is said to be kept", name, changes[0].Kept())
		}
	}
}

// TestSomebodysHooksStay: what others put beside ours, also into a group of ours, stays when
// ours goes.
func TestSomebodysHooksStay(t *testing.T) {
	m := newMachine(t)
	path := filepath.Join(m.Project, ".claude", "settings.json")
	m.must(t, "claude-code", Project, testOptions, false)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `"hooks": [
          {`, `"hooks": [
          { "type": "command", "command": "./mine.sh" },
          {`, 1)
	text = strings.Replace(text, "\n}\n", ",\n  \"model\": \"opus\"\n}\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := m.must(t, "claude-code", Project, testOptions, false); n != 0 {
		t.Errorf("a second run changes %d files", n)
	}
	m.must(t, "claude-code", Project, testOptions, true)
	got := decodeJSON(t, []byte(m.files(t)["project/.claude/settings.json"]))
	out, _ := json.Marshal(got)
	if want := `{"hooks":{"SessionStart":[{"hooks":[{"command":"./mine.sh","type":"command"}]}]},"model":"opus"}`; string(out) != want {
		t.Errorf("left is %s, want %s", out, want)
	}
}

// TestAnEntryKeepsWhatItsUserAdded.
func TestAnEntryKeepsWhatItsUserAdded(t *testing.T) {
	m := newMachine(t)
	m.write(t, "project/.mcp.json", []byte("{\n  \"mcpServers\": {\n    \"mneme\": {\"command\": \"memctl\", \"args\": [\"mcp\"], \"env\": {\"MNEME_ADDR\": \"http://n1:1\"}} // ours\n  }\n}\n"))
	m.must(t, "claude-code", Project, testOptions, false)
	entry := decodeJSON(t, []byte(m.files(t)["project/.mcp.json"]))["mcpServers"].(map[string]any)["mneme"]
	out, _ := json.Marshal(entry)
	if want := `{"args":["mcp","-n","shop"],"command":"memctl","env":{"MNEME_ADDR":"http://n1:1"},"type":"stdio"}`; string(out) != want {
		t.Errorf("%s, want %s", out, want)
	}
	m2 := newMachine(t)
	m2.write(t, "home/.codex/config.toml", []byte("[mcp_servers.mneme]\nargs = [\n  \"mcp\",\n] # old\ncommand = \"/old/memctl\"\nstartup_timeout_sec = 20\n\n[mcp_servers.mneme.env]\nX = \"1\"\n\n# next\n[other]\n"))
	m2.must(t, "codex", User, testOptions, false)
	if got, want := m2.files(t)["home/.codex/config.toml"], "[mcp_servers.mneme]\nargs = [\"mcp\", \"-n\", \"shop\", \"--as\", \"codex\"] # old\ncommand = \"memctl\"\nstartup_timeout_sec = 20\n\n[mcp_servers.mneme.env]\nX = \"1\"\n\n# next\n[other]\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	m2.must(t, "codex", User, testOptions, true)
	if got, want := m2.files(t)["home/.codex/config.toml"], "\n# next\n[other]\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestACommandRunsWhateverItsPathIs: a shell takes what is written for what was meant.
func TestACommandRunsWhateverItsPathIs(t *testing.T) {
	for _, name := range []string{"it's", `a "b"`, "a b", "$HOME", "`x`", `back\slash`, "plain"} {
		program := filepath.Join(t.TempDir(), name, "memctl")
		if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
		line := Options{Memctl: program, Namespace: "shop"}.command(Where{}, "codex", "Stop")
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", line).CombinedOutput()
		if want := program + " hook --agent codex --event Stop -n shop\n"; err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", line, out, err, want)
		}
	}
	if got, want := (Options{Memctl: "/opt/it's/memctl"}).command(Where{}, "codex", "Stop"), `'/opt/it'\''s/memctl' hook --agent codex --event Stop`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestBashOfWindowsTookBackslashesOut: Claude Code calls hooks by it, and others by PowerShell or cmd.
func TestBashOfWindowsTookBackslashesOut(t *testing.T) {
	for _, c := range []struct{ program, host, want string }{
		{`C:\Users\me\go\bin\memctl.exe`, "claude-code", `C:/Users/me/go/bin/memctl.exe hook --agent claude-code --event Stop`},
		{`C:\Users\me\go\bin\memctl.exe`, "codex", `C:/Users/me/go/bin/memctl.exe hook --agent codex --event Stop`},
		{`C:\Program Files\memctl.exe`, "claude-code", `"C:/Program Files/memctl.exe" hook --agent claude-code --event Stop`},
		{`C:\Program Files\memctl.exe`, "gemini-cli", `cmd /c "C:/Program Files/memctl.exe" hook --agent gemini-cli --event Stop`},
		{"memctl", "cursor", "memctl hook --agent cursor --event Stop"},
	} {
		got := Options{Memctl: c.program}.command(Where{Windows: true}, c.host, "Stop")
		if got != c.want || !memctlHook().MatchString(got) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestAnEditOfTOMLThatReachesFurtherIsRefused.
func TestAnEditOfTOMLThatReachesFurtherIsRefused(t *testing.T) {
	e := tomlEdit{table: []string{"mcp_servers", "mneme"}}
	before, err := decodeTOML([]byte("a = 1\n[mcp_servers.x]\nb = 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"a = 1\n[mcp_servers.x]\nb = 2\n[mcp_servers.mneme]\nc = 3\n": true, "a = 1\n[mcp_servers.x]\nb = 2\n": true,
		"a = 2\n[mcp_servers.x]\nb = 2\n": false, "[mcp_servers.x]\nb = 2\n": false, "a = 1\n": false, "a = 1\n[mcp_servers.x]\nb = 2\n[other]\nc = 3\n": false,
		"a = 1\n[mcp_servers.x]\nb = 3\n[mcp_servers.mneme]\nc = 3\n": false, "a = 1\n[mcp_servers.x]\nb = \n": false,
	} {
		if err := e.onlyOurs(before, []byte(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFoldersOfAnUndoneRunGo: those that were made for it, and no other.
func TestFoldersOfAnUndoneRunGo(t *testing.T) {
	m := newMachine(t)
	m.write(t, "project/.kiro/mine", nil)
	h, _ := Find("kiro")
	changes, err := h.Plan(Project, m.Where, testOptions, false)
	if err != nil {
		t.Fatal(err)
	}
	last := changes[len(changes)-1].Path
	if err := errors.Join(os.MkdirAll(filepath.Dir(last), 0o755), os.WriteFile(last, []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := m.apply(changes); err == nil || len(changes) < 2 {
		t.Fatalf("%d changes are written: %v", len(changes), err)
	}
	entries, err := os.ReadDir(filepath.Join(m.Project, ".kiro"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "hooks" || entries[1].Name() != "mine" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestAScopeThatAHostHasNot(t *testing.T) {
	m := newMachine(t)
	if _, err := m.run(t, "windsurf", Project, testOptions, false); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("%v", err)
	}
	var e *memory.Error
	if _, err := Find("emacs"); !errors.As(err, &e) || !strings.Contains(e.Hint, "claude-code") {
		t.Errorf("%v", err)
	}
}

// FuzzAnEditAndItsRemovalGiveBackTheSameBytes: whatever file can be edited.
func FuzzAnEditAndItsRemovalGiveBackTheSameBytes(f *testing.F) {
	for _, s := range []string{"{}", "{ }", "{\n}", "{\n  \n}\n", `{"a":1}`, "{\"a\":1,}", "{\r\n\t\"a\": [1, 2], // x\r\n}\r\n", "// top\n{\"hooks\": {\"Stop\": [], /* c */ }}\n//end",
		`{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]},"mcpServers":{"a":{}}}`, "\xef\xbb\xbf{\"mcpServers\": { // c\n}}", `{"version":1}`, `{"hooks":{},"version":1}`, `{"version":1,"hooks":{"sessionStart":[1,]}}`,
		"a = 1", "a = 1\n", "", "[mcp_servers]\n", "[mcp_servers.x]\r\na = '''\r\n\r\n'''", "# c", "\n\n", "[a]\nb = [\n1,\n]\n\n"} {
		f.Add([]byte(s))
	}
	var edits []edit
	for _, h := range Hosts() {
		for _, scope := range []Scope{User, Project} {
			for _, file := range h.files(Where{Home: "/h", Config: "/c", AppData: "/a", Project: "/p"}, scope, testOptions) {
				if _, own := file.edit.(ownFile); !own {
					edits = append(edits, file.edit)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if memctlHook().Match(text) || bytes.Contains(text, []byte("mneme")) || bytes.Contains(text, []byte("memctl")) || bytes.Contains(text, []byte(`\u`)) || text == nil {
			return // it may be there already
		}
		for _, e := range edits {
			before := bytes.Clone(text)
			with, err := e.put(text)
			if err != nil {
				continue
			}
			if !bytes.Equal(before, text) {
				t.Fatal("put changed its argument")
			}
			if again, err := e.put(with); err != nil || !bytes.Equal(again, with) {
				t.Fatalf("a second put of %q makes %q of %q, %v", text, again, with, err)
			}
			if has, err := e.has(with); err != nil || !has {
				t.Fatalf("%q does not seem to have it: %v", with, err)
			}
			without, err := e.take(with)
			if err != nil || !bytes.Equal(without, text) || without == nil {
				t.Fatalf("%q became %q and then %q, %v", text, with, without, err)
			}
			if len(text) == 0 || text[0] == '#' {
				continue
			}
			if j, ok := e.(jsonEdit); ok {
				checkMeaning(t, j, text, with)
			}
		}
	})
}

// checkMeaning compares the edited file with what a decoder makes of the first one, edited
// there.
func checkMeaning(t *testing.T, e jsonEdit, text, with []byte) {
	t.Helper()
	want := decodeJSON(t, text)
	hadNone := want[e.wants[0].path[0]] == nil
	for _, w := range e.wants {
		at := want
		for _, name := range w.path[:len(w.path)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at, _ = at[name].(map[string]any)
		}
		last := w.path[len(w.path)-1]
		b, _ := json.Marshal(w.value)
		var v any
		_ = json.Unmarshal(b, &v)
		if w.element {
			list, _ := at[last].([]any)
			v = append(list, v)
		}
		at[last] = v
	}
	if _, there := want[e.version]; e.version != "" && !there && hadNone {
		want[e.version] = e.number
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(decodeJSON(t, with))
	if !bytes.Equal(a, b) {
		t.Fatalf("%q became %q, which says %s and should say %s", text, with, b, a)
	}
}

// TestAHookOfGitKeepsWhatIsThere: and a removal gives back the same bytes.
func TestAHookOfGitKeepsWhatIsThere(t *testing.T) {
	for _, text := range []string{"", "#!/bin/sh\n", "#!/bin/sh", "#!/usr/bin/env bash\nset -e\nnpm test\nexit 0\n", "#! /bin/zsh\n# no end", "#!/bin/sh\n\n\n"} {
		m := newMachine(t)
		path := filepath.Join(m.Project, ".git", "hooks", "post-commit")
		if text != "" {
			m.write(t, "project/.git/hooks/post-commit", []byte(text))
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before := m.files(t)
		run := func(remove bool, command string) bool {
			c, err := GitHook(path, m.Project, m.Project, command, remove)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.apply([]*Change{c}); err != nil {
				t.Fatal(err)
			}
			return c.Changed()
		}
		run(false, "/opt/memctl hook commits")
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(b, []byte("#!")) || !bytes.Contains(b, []byte("\n/opt/memctl hook commits || :\n")) || !GitHookState(path).Hooks {
			t.Errorf("%q became %q, %v", text, b, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if run(false, "/opt/memctl hook commits") {
			t.Errorf("a second run changes %q", text)
		}
		run(false, "other hook commits")
		run(true, "")
		same2(t, text, withoutBackups(m.files(t)), before)
	}
	m := newMachine(t)
	for text, says := range map[string]string{"#!/usr/bin/env python3\n": "no script of a shell", "#!/bin/sh\n" + hookBegin: "have no end"} {
		path := m.write(t, "project/hook", []byte(text))
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := GitHook(path, m.Project, m.Project, "x", false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	path := m.write(t, "project/off", []byte("#!/bin/sh\n"))
	if _, err := GitHook(path, m.Project, m.Project, "x", false); err == nil || !strings.Contains(err.Error(), "not executable") {
		t.Errorf("%v", err)
	}
}

// TestTheProjectsFolderStays: also when nothing else is in it.
func TestTheProjectsFolderStays(t *testing.T) {
	m := newMachine(t)
	m.must(t, "claude-code", Project, testOptions, false)
	m.must(t, "claude-code", Project, testOptions, true)
	entries, err := os.ReadDir(m.Project)
	if err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestTheStandingTextIsThatOfTheDocuments.
func TestTheStandingTextIsThatOfTheDocuments(t *testing.T) {
	b, err := os.ReadFile("../../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "```\n"+Standing+"```\n") {
		t.Errorf("docs/connect.md does not have this text:\n%s", Standing)
	}
}

// TestWhatEntriesNamed is found in the files of every host.
func TestWhatEntriesNamed(t *testing.T) {
	for _, h := range Hosts() {
		for _, scope := range []Scope{User, Project} {
			m := newMachine(t)
			if !h.Has(scope, m.Where) {
				continue
			}
			m.must(t, h.Name, scope, Options{Memctl: "/opt/x y/memctl", Namespace: "before"}, false)
			changes, err := h.Plan(scope, m.Where, testOptions, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				if got := Named([]*Change{c}); len(got) != 1 || got[0] != "before" {
					t.Errorf("%s %s: %s named %q", h.Name, scope, c.Path, got)
				}
			}
		}
	}
}

// TestQuotesInAPath: a shell calls the program, whatever its path holds, with the words it was to
// get.
func TestQuotesInAPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's \"$HOME\" `x` \\ here")
	program := filepath.Join(dir, "memctl")
	script := "#!/bin/sh\nfor a; do echo \"<$a>\"; done\n"
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(program, []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	o := Options{Memctl: program, More: []string{"--addr", "it's;'", ""}}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", o.command(Where{}, "kiro", "Stop")).CombinedOutput()
	if want := "<hook>\n<--agent>\n<kiro>\n<--event>\n<Stop>\n<--addr>\n<it's;'>\n<>\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v", out, err)
	}
}
