package agentsync

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mneme/internal/hooks"
	"mneme/memory"
)

// Scope says whose agents are meant: all of the user's, or those that work in one project.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Where says where hosts keep their configuration.
type Where struct {
	Home    string
	Config  string // ~/.config, or what stands for it
	AppData string // where programs with windows keep theirs: ~/.config, Application Support or %APPDATA%
	Project string // "" is none
	Windows bool
	// Claude, Codex and Copilot are folders that their users may have moved; "" is not.
	Claude, Codex, Copilot string
}

// Options is what the entries say.
type Options struct {
	Memctl    string   // the program, as it is found by the host
	Namespace string   // "" leaves it to what memctl finds
	Profile   string   // of tools; "" is memctl's own
	More      []string // flags of every call, as --addr
}

// file is an edit of one file.
type file struct {
	path string
	hook bool // else it is the server's entry
	edit edit
}

// Host is a program that agents run in.
type Host struct {
	Name, Title string
	// ByPath says that it finds memctl as a shell would. Programs with windows may not have the
	// user's PATH.
	ByPath bool
	// Apart says that its servers are not started in the project that is open: they know it only
	// where the host tells its folders.
	Apart bool
	mute  bool // it takes no text from hooks
	// Told is what its users have to do, or will be asked.
	Told string
	// Signs are folders that tell that it is installed.
	signs func(w Where) []string
	files func(w Where, scope Scope, o Options) []file
}

// Hosts lists them, in the order of their names.
func Hosts() []Host {
	return []Host{antigravity(), claudeCode(), claudeDesktop(), codex(), copilot(), cursor(), geminiCLI(), kiro(), opencode(), vscode(), windsurf(), zed()}
}

// Find returns a host by its name.
func Find(name string) (Host, error) {
	var names []string
	for _, h := range Hosts() {
		if h.Name == name {
			return h, nil
		}
		names = append(names, h.Name)
	}
	return Host{}, memory.Errorf(memory.CodeInvalid, "no agent is called %q", name).WithHint("agents are %s, and git", strings.Join(names, ", "))
}

// Has reports whether a host has files of a scope.
func (h Host) Has(scope Scope, w Where) bool {
	return (scope != Project || w.Project != "") && slices.ContainsFunc(h.files(w, scope, Options{}), func(f file) bool { return !f.hook })
}

// Installed reports whether the host left a sign on this machine.
func (h Host) Installed(w Where) bool {
	return slices.ContainsFunc(h.signs(w), func(dir string) bool { _, err := os.Stat(dir); return err == nil })
}

// args are the arguments of the server. In a file that several hosts read, nobody is named.
func (o Options) args(host string) []string {
	args := []string{"mcp"}
	if o.Namespace != "" {
		args = append(args, "-n", o.Namespace)
	}
	if host != "" {
		args = append(args, "--as", host)
	}
	if o.Profile != "" {
		args = append(args, "--profile", o.Profile)
	}
	return append(args, o.More...)
}

func (o Options) hookArgs(host, event string) []string {
	args := []string{"hook", "--agent", host, "--event", event}
	if o.Namespace != "" {
		args = append(args, "-n", o.Namespace)
	}
	return append(args, o.More...)
}

// command is a hook as a line of a shell. On Windows that may be the bash of Git, which takes backslashes
// out, PowerShell, to which a line that begins with a quote is an expression, or cmd: a path with slashes
// and without quotes is for all of them, and one that needs quotes is called by cmd where it is not for
// Claude Code, whose shell is bash.
func (o Options) command(w Where, host, event string) string {
	if !w.Windows {
		return line(quotePOSIX, o.Memctl, o.hookArgs(host, event))
	}
	all := line(quoteWindows, strings.ReplaceAll(o.Memctl, `\`, "/"), o.hookArgs(host, event))
	if strings.HasPrefix(all, `"`) && host != hooks.ClaudeCode {
		all = "cmd /c " + all
	}
	return all
}

func line(quote func(string) string, program string, args []string) string {
	parts := []string{quote(program)}
	for _, a := range args {
		parts = append(parts, quote(a))
	}
	return strings.Join(parts, " ")
}

const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@+"

func quotePOSIX(s string) string {
	if s != "" && strings.Trim(s, plainRunes) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func quoteWindows(s string) string {
	if s != "" && strings.Trim(s, plainRunes+`\`) == "" {
		return s
	}
	return `"` + s + `"`
}

// server is the entry that most hosts have, below mcpServers.
func server(path, host string, o Options) file {
	return file{path: path, edit: jsonEdit{wants: []want{{path: []string{"mcpServers", "mneme"},
		value: object{{"command", o.Memctl}, {"args", o.args(host)}}}}}}
}

// groups are hooks as Claude Code has them: each event has groups, each with a matcher.
func groups(path string, events []event, host string, w Where, o Options, second int) file {
	e := jsonEdit{}
	for _, ev := range events {
		one := object{{"type", "command"}, {"command", o.command(w, host, ev.name)}, {"timeout", 10 * second}}
		group := object{{"hooks", []any{one}}}
		if ev.matcher != "" {
			group = slices.Insert(group, 0, object{{"matcher", ev.matcher}}...)
		}
		e.wants = append(e.wants, want{path: []string{"hooks", ev.name}, value: group, element: true})
	}
	return file{path: path, hook: true, edit: e}
}

// lists are hooks that stand in the list of their event.
func lists(path string, events []event, entry func(event) object) file {
	e := jsonEdit{}
	for _, ev := range events {
		e.wants = append(e.wants, want{path: []string{"hooks", ev.name}, value: entry(ev), element: true})
	}
	return file{path: path, hook: true, edit: e}
}

// event is one at which memctl hook is called.
type event struct{ name, matcher string }

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func claudeCode() Host {
	dir := func(w Where) string { return first(w.Claude, filepath.Join(w.Home, ".claude")) }
	return Host{Name: hooks.ClaudeCode, Title: "Claude Code", ByPath: true,
		Told:  "Claude Code asks once whether to use the server and the hooks of a project; `/mcp` and `/hooks` show them",
		signs: func(w Where) []string { return []string{dir(w)} },
		files: func(w Where, scope Scope, o Options) []file {
			mcp, settings := filepath.Join(w.Project, ".mcp.json"), filepath.Join(w.Project, ".claude", "settings.json")
			as := "" // other hosts read .mcp.json, too
			if scope == User {
				mcp, settings, as = filepath.Join(w.Home, ".claude.json"), filepath.Join(dir(w), "settings.json"), hooks.ClaudeCode
				if w.Claude != "" {
					mcp = filepath.Join(w.Claude, ".claude.json")
				}
			}
			entry := jsonEdit{wants: []want{{path: []string{"mcpServers", "mneme"}, value: object{{"type", "stdio"}, {"command", o.Memctl}, {"args", o.args(as)}}}}}
			return []file{{path: mcp, edit: entry}, groups(settings, []event{{"SessionStart", ""}, {"UserPromptSubmit", ""}, {"PostToolUse", "Bash"},
				{"PostToolUseFailure", "Bash"}, {"PostCompact", ""}, {"Stop", ""}}, hooks.ClaudeCode, w, o, 1)}
		}}
}

func claudeDesktop() Host {
	dir := func(w Where) string { return filepath.Join(w.AppData, "Claude") }
	return Host{Name: "claude-desktop", Title: "Claude Desktop", Apart: true, Told: "start Claude Desktop again",
		signs: func(w Where) []string { return []string{dir(w)} },
		files: func(w Where, scope Scope, o Options) []file {
			if scope == Project {
				return nil
			}
			return []file{server(filepath.Join(dir(w), "claude_desktop_config.json"), "claude-desktop", o)}
		}}
}

func codex() Host {
	user := func(w Where) string { return first(w.Codex, filepath.Join(w.Home, ".codex")) }
	return Host{Name: hooks.Codex, Title: "Codex", ByPath: true,
		Told:  "Codex asks once whether to trust the hooks: answer yes, or they never run. A project's own configuration counts only in projects that Codex trusts",
		signs: func(w Where) []string { return []string{user(w)} },
		files: func(w Where, scope Scope, o Options) []file {
			dir := filepath.Join(w.Project, ".codex")
			if scope == User {
				dir = user(w)
			}
			return []file{
				{path: filepath.Join(dir, "config.toml"), edit: tomlEdit{table: []string{"mcp_servers", "mneme"}, pairs: object{{"command", o.Memctl}, {"args", o.args(hooks.Codex)}}}},
				groups(filepath.Join(dir, "hooks.json"), []event{{"SessionStart", ""}, {"UserPromptSubmit", ""}, {"PostToolUse", "Bash"}, {"Stop", ""}}, hooks.Codex, w, o, 1),
			}
		}}
}

func cursor() Host {
	return Host{Name: hooks.Cursor, Title: "Cursor", Apart: true, Told: "switch the server mneme on in Cursor's settings, under MCP",
		signs: func(w Where) []string { return []string{filepath.Join(w.Home, ".cursor")} },
		files: func(w Where, scope Scope, o Options) []file {
			dir := filepath.Join(w.Project, ".cursor")
			if scope == User {
				dir = filepath.Join(w.Home, ".cursor")
			}
			f := lists(filepath.Join(dir, "hooks.json"), []event{{"sessionStart", ""}, {"beforeSubmitPrompt", ""}, {"postToolUse", ""}, {"postToolUseFailure", ""}, {"preCompact", ""}, {"afterAgentResponse", ""}},
				func(ev event) object {
					return object{{"command", o.command(w, hooks.Cursor, ev.name)}, {"timeout", 10}}
				})
			e, _ := f.edit.(jsonEdit)
			e.version, e.number = "version", 1
			f.edit = e
			return []file{server(filepath.Join(dir, "mcp.json"), hooks.Cursor, o), f}
		}}
}

func windsurf() Host {
	return Host{Name: hooks.Windsurf, Title: "Windsurf", Apart: true, mute: true, Told: "refresh the servers in Windsurf's settings. It takes no memories from hooks: its model asks by the tools",
		signs: func(w Where) []string { return []string{filepath.Join(w.Home, ".codeium", "windsurf")} },
		files: func(w Where, scope Scope, o Options) []file {
			if scope == Project {
				return nil // it reads servers from the user's file alone
			}
			dir := filepath.Join(w.Home, ".codeium", "windsurf")
			return []file{server(filepath.Join(dir, "mcp_config.json"), hooks.Windsurf, o),
				lists(filepath.Join(dir, "hooks.json"), []event{{"pre_user_prompt", ""}, {"post_run_command", ""}, {"post_cascade_response", ""}}, func(ev event) object {
					return object{{"command", o.command(w, hooks.Windsurf, ev.name)}, {"show_output", false}}
				})}
		}}
}

func geminiCLI() Host {
	return Host{Name: hooks.GeminiCLI, Title: "Gemini CLI", ByPath: true, Told: "`/mcp` in Gemini CLI shows the server; a project's settings count in folders that it trusts",
		signs: func(w Where) []string { return []string{filepath.Join(w.Home, ".gemini", "settings.json")} },
		files: func(w Where, scope Scope, o Options) []file {
			path := filepath.Join(w.Project, ".gemini", "settings.json")
			if scope == User {
				path = filepath.Join(w.Home, ".gemini", "settings.json")
			}
			return []file{server(path, hooks.GeminiCLI, o), groups(path, []event{{"SessionStart", ""}, {"BeforeAgent", ""}, {"AfterTool", "run_shell_command"}, {"PreCompress", ""}, {"AfterAgent", ""}}, hooks.GeminiCLI, w, o, 1000)}
		}}
}
