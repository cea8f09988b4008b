package agentsync

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"mneme/internal/hooks"
)

func copilot() Host {
	dir := func(w Where) string { return first(w.Copilot, filepath.Join(w.Home, ".copilot")) }
	return Host{Name: hooks.Copilot, Title: "GitHub Copilot CLI", ByPath: true, Told: "`/mcp` in Copilot CLI shows the server",
		signs: func(w Where) []string { return []string{dir(w)} },
		files: func(w Where, scope Scope, o Options) []file {
			if scope == Project {
				return nil // its file there is also that of others, who act as somebody else
			}
			return []file{
				{path: filepath.Join(dir(w), "mcp-config.json"), edit: jsonEdit{wants: []want{{path: []string{"mcpServers", "mneme"},
					value: object{{"type", "local"}, {"command", o.Memctl}, {"args", o.args(hooks.Copilot)}, {"tools", []string{"*"}}}}}}},
				copilotHooks(filepath.Join(dir(w), "hooks", "mneme.json"), o),
			}
		}}
}

func copilotHooks(path string, o Options) file {
	all := object{}
	for _, name := range []string{"sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure", "preCompact", "agentStop"} {
		args := o.hookArgs(hooks.Copilot, name)
		power := line(quoteWindows, o.Memctl, args)
		if strings.HasPrefix(power, `"`) {
			power = "& " + power
		}
		all = append(all, object{{name, []any{object{{"type", "command"}, {"bash", line(quotePOSIX, o.Memctl, args)}, {"powershell", power}, {"timeoutSec", 10}}}}}...)
	}
	return whole(path, object{{"version", 1}, {"hooks", all}})
}

// whole is a JSON file that is Mneme's alone.
func whole(path string, content object) file {
	j := &jsonText{newline: "\n", indent: "  "}
	return file{path: path, hook: true, edit: ownFile{text: j.render(content, "") + "\n"}}
}

func vscode() Host {
	return Host{Name: "vscode", Title: "VS Code with Copilot", Apart: true, Told: "VS Code asks whether to trust the server; `MCP: List Servers` starts it",
		signs: func(w Where) []string { return []string{filepath.Join(w.AppData, "Code")} },
		files: func(w Where, scope Scope, o Options) []file {
			path := filepath.Join(w.AppData, "Code", "User", "mcp.json")
			var more []file
			if scope == Project {
				path = filepath.Join(w.Project, ".vscode", "mcp.json")
				more = append(more, copilotHooks(filepath.Join(w.Project, ".github", "hooks", "mneme.json"), o))
			}
			return append([]file{{path: path, edit: jsonEdit{wants: []want{{path: []string{"servers", "mneme"},
				value: object{{"type", "stdio"}, {"command", o.Memctl}, {"args", o.args("vscode")}}}}}}}, more...)
		}}
}

func kiro() Host {
	return Host{Name: hooks.Kiro, Title: "Kiro", Apart: true, Told: "Kiro's list of hooks shows them, in a project",
		signs: func(w Where) []string { return []string{filepath.Join(w.Home, ".kiro")} },
		files: func(w Where, scope Scope, o Options) []file {
			if scope == User { // hooks belong to projects
				return []file{server(filepath.Join(w.Home, ".kiro", "settings", "mcp.json"), hooks.Kiro, o)}
			}
			own := func(name string, events ...string) file {
				var all []any
				for _, event := range events {
					all = append(all, object{{"name", "mneme-" + strings.ToLower(event)}, {"trigger", event},
						{"action", object{{"type", "command"}, {"command", o.command(w, hooks.Kiro, event)}}}, {"timeout", 10}, {"enabled", true}})
				}
				return whole(filepath.Join(w.Project, ".kiro", "hooks", name), object{{"version", "v1"}, {"hooks", all}})
			}
			return []file{server(filepath.Join(w.Project, ".kiro", "settings", "mcp.json"), hooks.Kiro, o),
				own("mneme.json", "SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"),
				own("mneme-compact.json", "PostCompact")} // a file of its own, for earlier versions do not know it
		}}
}

func antigravity() Host {
	return Host{Name: hooks.Antigravity, Title: "Antigravity", Apart: true, Told: "refresh the servers in Antigravity's settings",
		signs: func(w Where) []string {
			return []string{filepath.Join(w.Home, ".gemini", "antigravity"), filepath.Join(w.Home, ".gemini", "config")}
		},
		files: func(w Where, scope Scope, o Options) []file {
			dir := filepath.Join(w.Project, ".agents")
			if scope == User {
				dir = filepath.Join(w.Home, ".gemini", "config")
			}
			one := func(name string) object {
				return object{{"type", "command"}, {"command", o.command(w, hooks.Antigravity, name)}, {"timeout", 10}}
			}
			e := jsonEdit{wants: []want{
				{path: []string{"mneme", "PreInvocation"}, value: one("PreInvocation"), element: true},
				{path: []string{"mneme", "PostToolUse"}, value: object{{"matcher", "*"}, {"hooks", []any{one("PostToolUse")}}}, element: true},
			}}
			return []file{server(filepath.Join(dir, "mcp_config.json"), hooks.Antigravity, o), {path: filepath.Join(dir, "hooks.json"), hook: true, edit: e}}
		}}
}

func zed() Host {
	return Host{Name: "zed", Title: "Zed", Apart: true, Told: "Zed's agent panel shows the server",
		signs: func(w Where) []string { return []string{filepath.Join(w.Config, "zed")} },
		files: func(w Where, scope Scope, o Options) []file {
			path := filepath.Join(w.Config, "zed", "settings.json")
			if scope == Project {
				path = filepath.Join(w.Project, ".zed", "settings.json")
			}
			return []file{{path: path, edit: jsonEdit{wants: []want{{path: []string{"context_servers", "mneme"},
				value: object{{"source", "custom"}, {"command", o.Memctl}, {"args", o.args("zed")}}}}}}}
		}}
}

func opencode() Host {
	return Host{Name: hooks.OpenCode, Title: "OpenCode", ByPath: true, Told: "`opencode mcp list` shows the server",
		signs: func(w Where) []string { return []string{filepath.Join(w.Config, "opencode")} },
		files: func(w Where, scope Scope, o Options) []file {
			dir, plugins := w.Project, filepath.Join(w.Project, ".opencode", "plugins")
			if scope == User {
				dir = filepath.Join(w.Config, "opencode")
				plugins = filepath.Join(dir, "plugins")
			}
			path := filepath.Join(dir, "opencode.json")
			if _, err := os.Stat(path); err != nil {
				if _, err := os.Stat(path + "c"); err == nil {
					path += "c"
				}
			}
			return []file{
				{path: path, edit: jsonEdit{wants: []want{{path: []string{"mcp", "mneme"},
					value: object{{"type", "local"}, {"command", append([]string{o.Memctl}, o.args(hooks.OpenCode)...)}, {"enabled", true}}}}}},
				{path: filepath.Join(plugins, "mneme.js"), hook: true, edit: ownFile{text: plugin(o)}},
			}
		}}
}

// pluginMark is by what a plugin of ours is known.
const pluginMark = "// Written by memctl integrate opencode; memctl integrate opencode --remove takes it away."

// plugin is the file by which OpenCode calls memctl hook.
func plugin(o Options) string {
	args := o.hookArgs(hooks.OpenCode, "")
	before, after := args[:4], args[5:]
	quote := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic("a string cannot be written: " + err.Error())
		}
		return string(b)
	}
	return pluginMark + `
import { spawnSync } from "node:child_process"

const memctl = ` + quote(o.Memctl) + `
const before = ` + quote(before) + `
const after = ` + quote(append([]string{}, after...)) + `

// What is printed is for the model. A hook that fails must not stop the agent.
const send = (event, payload) => {
  try {
    const done = spawnSync(memctl, [...before, event, ...after], { input: JSON.stringify(payload), timeout: 10000, encoding: "utf8" })
    return (done.stdout ?? "").trim()
  } catch {
    return ""
  }
}

// OpenCode 1 takes "server", and OpenCode 2 "setup".
export default {
  id: "mneme",
  server: async ({ directory }) => ({
    event: async ({ event }) => {
      if (["session.created", "session.compacted"].includes(event.type)) {
        send(event.type, { session_id: event.properties?.sessionID ?? event.properties?.info?.id, cwd: directory })
      }
    },
    "chat.message": async (input, output) => {
      const prompt = output.parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
      const text = send("chat.message", { session_id: input.sessionID, cwd: directory, prompt })
      if (text) {
        output.parts.unshift({ id: "prt_mneme" + Date.now().toString(36), sessionID: input.sessionID, messageID: output.message.id, type: "text", text, synthetic: true })
      }
    },
    "tool.execute.after": async (input, output) => {
      send("tool.execute.after", { session_id: input.sessionID, cwd: directory, tool_name: input.tool, tool_input: input.args, tool_output: output.output })
    },
    "experimental.session.compacting": async (input, output) => {
      const text = send("session.compacting", { session_id: input.sessionID, cwd: directory })
      if (text) output.context.push(text)
    },
  }),
  setup: async (ctx) => {
    const cwd = ctx.location?.directory
    await ctx.session.hook("prompt", (event) => {
      const text = send("chat.message", { session_id: event.sessionID, cwd, prompt: event.prompt?.text })
      if (text) event.prompt.text += "\n\n" + text // behind it: files are named by where they stand in it
    })
    await ctx.tool.hook("execute.after", (event) => {
      const error = event.status === "error" ? String(event.error?.message ?? event.error ?? "") : undefined
      send("tool.execute.after", { session_id: event.sessionID, cwd, tool_name: event.tool, tool_input: event.input, error })
    })
    await ctx.session.hook("compaction", (event) => {
      const text = send("session.compacting", { session_id: event.sessionID, cwd })
      if (text) event.system.push({ type: "text", text })
    })
  },
}
`
}
