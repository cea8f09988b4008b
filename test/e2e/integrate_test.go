package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/memory"
)

// desk is a user's machine with a project, on which agents are connected by memctl integrate.
type desk struct {
	t             *testing.T
	home, project string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, home: t.TempDir(), project: filepath.Join(t.TempDir(), "shop")}
	if err := os.MkdirAll(filepath.Join(d.project, "services", "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.sh("git init -q -b main && git remote add origin git@github.com:Acme/shop.git && git config user.name Ann && git config user.email ann@example.org")
	return d
}

// run runs a program in the project, with nothing of this machine's settings.
func (d *desk) run(stdin []byte, name string, args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), name, args...)
	cmd.Dir, cmd.Env = d.project, environment(d.home, "GIT_CONFIG_NOSYSTEM=1", "PATH="+filepath.Dir(built.memctl)+":"+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

func (d *desk) sh(script string) string { d.t.Helper(); return d.run(nil, "sh", "-ec", script) }

func (d *desk) memctl(args ...string) string {
	d.t.Helper()
	return d.run(nil, built.memctl, args...)
}

// strings collects the strings of a JSON file.
func stringsOf(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, in := range v {
			all = append(all, stringsOf(in)...)
		}
	case map[string]any:
		for name, in := range v {
			if name != "powershell" {
				all = append(all, stringsOf(in)...)
			}
		}
	}
	return all
}

func (d *desk) decode(path string, v any) {
	d.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		d.t.Fatalf("%s: %v", path, err)
	}
}

var hookCommand = regexp.MustCompile(` hook --agent (\S+) --event (\S+)`)

// hooks reads the commands that a file has for each event.
func (d *desk) hooks(path string) map[string]string {
	d.t.Helper()
	var v any
	d.decode(path, &v)
	all := map[string]string{}
	for _, s := range stringsOf(v) {
		if m := hookCommand.FindStringSubmatch(s); m != nil {
			all[m[2]] = s
		}
	}
	return all
}

// payload is what was recorded of an event, with some fields changed.
func (d *desk) payload(agent, event string, change map[string]any) []byte {
	d.t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "internal", "hooks", "testdata", "payloads", agent, event+"*.json"))
	if err != nil || len(found) == 0 {
		d.t.Fatalf("no payload of %s %s", agent, event)
	}
	var v map[string]any
	d.decode(found[0], &v)
	if _, ok := v["cwd"]; ok {
		v["cwd"] = filepath.Join(d.project, "services", "api")
	}
	for name, value := range change {
		v[name] = value
	}
	b, err := json.Marshal(v)
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

// TestAnIntegratedAgentRemembersAcrossConversations: what integrate wrote is read back and run
// as the hosts would. One conversation stores, by a hook and by a tool; another one, of another
// host, recalls; a third gets nothing, because nothing fits. Then it is all taken out again.
func TestAnIntegratedAgentRemembersAcrossConversations(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	d := newDesk(t)
	d.memctl("integrate", "claude-code", "--addr", n.http)
	d.memctl("integrate", "codex", "--addr", n.http)
	d.memctl("integrate", "codex", "--addr", n.http) // again changes nothing
	claude, codex := d.hooks(filepath.Join(d.project, ".claude", "settings.json")), d.hooks(filepath.Join(d.project, ".codex", "hooks.json"))
	hook := func(commands map[string]string, agent, event string, change map[string]any) string {
		t.Helper()
		if commands[event] == "" {
			t.Fatalf("%s has no hook for %s: %v", agent, event, commands)
		}
		return d.run(d.payload(agent, event, change), "sh", "-c", commands[event])
	}
	if out := hook(claude, "claude-code", "UserPromptSubmit", map[string]any{"session_id": "one", "prompt": "Remember that deploys happen on Tuesdays after the stand-up."}); out != "" {
		t.Errorf("the first prompt is answered %q", out)
	}
	hook(claude, "claude-code", "Stop", map[string]any{"session_id": "one", "last_assistant_message": "We decided to use Postgres for the billing service."})

	var servers struct {
		MCP map[string]struct {
			Type, Command string
			Args          []string
		} `json:"mcpServers"`
	}
	d.decode(filepath.Join(d.project, ".mcp.json"), &servers)
	entry := servers.MCP["mneme"]
	if entry.Command != "memctl" {
		t.Errorf("a file that others have, too, starts %s", entry.Command)
	}
	cmd := exec.CommandContext(t.Context(), built.memctl, entry.Args...)
	cmd.Dir, cmd.Env = d.project, environment(d.home)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tool := func(name string, args map[string]any) string {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v %+v", name, err, res)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	tool("memory_store", map[string]any{"text": "The staging database is called heron."})
	if got := n.everything("acme-shop"); len(got) != 3 {
		t.Fatalf("stored %s", toJSON(t, got))
	}

	out := hook(codex, "codex", "UserPromptSubmit", map[string]any{"session_id": "two", "prompt": "On which day do we deploy?"})
	if !strings.Contains(out, "relevant-memories") || !strings.Contains(out, "Tuesdays") {
		t.Errorf("the second conversation gets %s", out)
	}
	if out := tool("memory_search", map[string]any{"query": "which day are deploys"}); !strings.Contains(out, "Tuesdays") {
		t.Errorf("the tool finds %s", out)
	}
	if out := hook(claude, "claude-code", "UserPromptSubmit", map[string]any{"session_id": "three", "prompt": "what colour has the moon over Lisbon"}); out != "" {
		t.Errorf("the third conversation gets %q", out)
	}

	var list struct {
		Agents []struct {
			Agent   string
			Project struct{ Server, Hooks bool }
		}
	}
	mustJSON(t, d.memctl("integrate", "--list", "--json"), &list)
	for _, a := range list.Agents {
		want := a.Agent == "claude-code" || a.Agent == "codex"
		if a.Project.Server != want || a.Project.Hooks != want {
			t.Errorf("listed as %+v", a)
		}
	}
	d.memctl("integrate", "claude-code", "--remove")
	d.memctl("integrate", "codex", "--remove")
	if left := d.sh("git status --porcelain --ignored"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

// TestToolsWorkInTheProjectThatIsOpen: a program with windows starts its servers in the folder of
// the user, and says which folders are open, in revisions with sessions and without.
func TestToolsWorkInTheProjectThatIsOpen(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	d := newDesk(t)
	d.memctl("namespace", "create", "team-a", "--addr", n.http)
	d.memctl("use", "team-a", "--addr", n.http)
	d.memctl("project", "use", "acme-shop", "--create")
	other := filepath.Join(filepath.Dir(d.project), "other")
	d.sh("mkdir ../other && cd ../other && git init -q && " + built.memctl + " project use other --create")
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "cursor", Version: "1"}, nil)
		client.AddRoots(&mcp.Root{URI: "file://" + d.project})
		cmd := exec.CommandContext(t.Context(), built.memctl, "mcp", "--as", "cursor")
		cmd.Dir, cmd.Env = d.home, environment(d.home)
		s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		store := func(text string) string {
			t.Helper()
			res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory_store", Arguments: map[string]any{"text": text + " in " + version}})
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			return res.Content[0].(*mcp.TextContent).Text
		}
		store("one folder is open")
		store("it is open still")
		client.AddRoots(&mcp.Root{URI: "file://" + other})
		says := ""
		for end := time.Now().Add(patience); !strings.Contains(says, "two projects are open") && time.Now().Before(end); { // it hears of it by a notification
			says = store("two folders are open")
		}
		if !strings.Contains(says, "acme-shop") || !strings.Contains(says, "other") {
			t.Errorf("%s: %s", version, says)
		}
		client.RemoveRoots("file://"+d.project, "file://"+other)
		for end := time.Now().Add(patience); strings.Contains(says, "two projects are open") && time.Now().Before(end); {
			says = store("none is open")
		}
		var got []string
		for _, r := range n.everything("acme-shop") {
			if strings.HasSuffix(r.Text, version) {
				got = append(got, r.Text)
			}
		}
		if len(got) < 2 || !strings.HasPrefix(got[0], "one folder") || !strings.HasPrefix(got[1], "it is open") {
			t.Errorf("%s: the project has %q", version, got)
		}
		all := n.everything("team-a")
		if len(all) == 0 || !strings.HasSuffix(all[len(all)-1].Text, version) {
			t.Errorf("%s: team-a has %s", version, toJSON(t, all))
		}
	}
}

// TestEveryHostsHooksRunAsTheyAreWritten with what was recorded of their events.
func TestEveryHostsHooksRunAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	d := newDesk(t)
	for _, h := range []struct {
		agent, scope, file string
		events             int
	}{
		{"claude-code", "user", "home/.claude/settings.json", 6},
		{"codex", "user", "home/.codex/hooks.json", 4},
		{"cursor", "project", "project/.cursor/hooks.json", 6},
		{"windsurf", "user", "home/.codeium/windsurf/hooks.json", 3},
		{"gemini-cli", "project", "project/.gemini/settings.json", 5},
		{"copilot", "user", "home/.copilot/hooks/mneme.json", 6},
		{"kiro", "project", "project/.kiro/hooks/mneme.json", 4},
		{"kiro", "project", "project/.kiro/hooks/mneme-compact.json", 1},
		{"antigravity", "project", "project/.agents/hooks.json", 2},
	} {
		d.memctl("integrate", h.agent, "--scope", h.scope, "--addr", n.http, "-n", "default")
		root, rest, _ := strings.Cut(h.file, "/")
		commands := d.hooks(filepath.Join(map[string]string{"home": d.home, "project": d.project}[root], rest))
		if len(commands) != h.events {
			t.Errorf("%s has hooks for %v", h.agent, commands)
		}
		for event, command := range commands {
			payload := []byte(`{"session_id":"s","prompt":"On which day do we deploy?"}`)
			if found, _ := filepath.Glob(filepath.Join("..", "..", "internal", "hooks", "testdata", "payloads", h.agent, event+"*.json")); len(found) > 0 {
				payload = d.payload(h.agent, event, nil)
			}
			d.run(payload, "sh", "-c", command)
		}
	}
	log, err := os.ReadFile(filepath.Join(d.home, "mneme", "hooks", "log"))
	if err == nil {
		t.Errorf("the hooks complain:\n%s", log)
	}
}

// TestCommitsBecomeMemoriesThatNameTheirFiles: beside a hook that is there, once each, also
// those that were made while the node was away and those from before.
func TestCommitsBecomeMemoriesThatNameTheirFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	d := newDesk(t)
	d.sh("mkdir -p .git/hooks && echo a > old.go && git add . && git commit -q -m 'store: keep the index in memory'")
	if err := os.WriteFile(filepath.Join(d.project, ".git", "hooks", "post-commit"), []byte("#!/bin/sh\necho ran >> \"$(git rev-parse --git-common-dir)/ran\"\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := d.memctl("integrate", "git", "--addr", n.http, "--since", "7d"); !strings.Contains(out, "1 commit is a memory now") {
		t.Errorf("the history: %s", out)
	}
	d.sh("echo a > services/api/retry.go && git add . && git commit -q -m 'api: try a call three times' && echo b > b.go && git add . && git commit -q -m wip")
	texts := func(n *daemon) (all []string) {
		for _, r := range n.everything("acme-shop") {
			if r.Agent != "git" || r.Origin != memory.OriginHook {
				t.Errorf("%+v", r)
			}
			all = append(all, r.Text)
		}
		return all
	}
	want := "store: keep the index in memory\n\nFiles: old.go|api: try a call three times\n\nFiles: services/api/retry.go"
	if got := strings.Join(texts(n), "|"); got != want {
		t.Errorf("stored %q", got)
	}
	n.kill()
	d.sh("git worktree add -q ../fix && cd ../fix && echo c > c.go && git add . && git commit -q -m 'billing: round half to even'")
	n = start(t, dir)
	d.memctl("integrate", "git", "--addr", n.http)
	d.sh("echo d > d.go && git add . && git commit -q -m 'billing: refuse negative sums'")
	want += "|billing: round half to even\n\nFiles: c.go|billing: refuse negative sums\n\nFiles: d.go"
	if got := strings.Join(texts(n), "|"); got != want {
		t.Errorf("stored %q", got)
	}
	if out := d.memctl("hook", "commits", "--since", "7d", "--addr", n.http); !strings.Contains(out, "0 commits are memories now, 3 were before, 1 says nothing") {
		t.Errorf("again: %s", out)
	}
	if ran := d.sh("wc -l < .git/ran"); strings.TrimSpace(ran) != "4" {
		t.Errorf("the hook that was there ran %s times", ran)
	}
	d.memctl("integrate", "git", "--remove")
	if hook := d.sh("cat .git/hooks/post-commit"); strings.Contains(hook, "memctl") || !strings.Contains(hook, "echo ran") {
		t.Errorf("left: %s", hook)
	}
}
