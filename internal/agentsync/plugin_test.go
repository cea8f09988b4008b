package agentsync

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pluginHost calls the plugin as OpenCode 1 and 2 do, each of which knows its own entry alone, and
// prints what the model would get.
const pluginHost = `
import plugin from "./mneme.mjs"
const one = await plugin.server({ directory: "/work" })
await one.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
const message = { message: { id: "m" }, parts: [{ type: "text", text: "one?" }, { type: "text", text: "not said", synthetic: true }] }
await one["chat.message"]({ sessionID: "s1" }, message)
await one["tool.execute.after"]({ sessionID: "s1", tool: "bash", args: { command: "make" } }, { output: "made" })
const compacting = { context: [] }
await one["experimental.session.compacting"]({ sessionID: "s1" }, compacting)
const hooks = {}
const domain = (name) => ({ hook: async (event, call) => { hooks[name + " " + event] = call; return { dispose: async () => {} } } })
await plugin.setup({ location: { directory: "/work" }, session: domain("session"), tool: domain("tool") })
const prompt = { sessionID: "s2", messageID: "m", prompt: { text: "two?" } }
await hooks["session prompt"](prompt)
await hooks["tool execute.after"]({ sessionID: "s2", tool: "shell", input: { command: "make" }, status: "completed", result: {} })
await hooks["tool execute.after"]({ sessionID: "s2", tool: "shell", input: { command: "make lint" }, status: "error", error: { message: "no rule" } })
const compaction = { sessionID: "s2", system: [] }
await hooks["session compaction"](compaction)
console.log(JSON.stringify({ id: plugin.id, parts: message.parts.map((p) => p.text), context: compacting.context, text: prompt.prompt.text, system: compaction.system }))
`

// TestOpenCode2RefusedThePlugin: it takes a definition with an id and a setup, and OpenCode 1 one with a
// server. One file is both.
func TestOpenCode2RefusedThePlugin(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("node is not installed")
	}
	dir := t.TempDir()
	memctl := filepath.Join(dir, "memctl")
	stub := "#!/bin/sh\nread -r payload\necho \"$5 $6 $7 $payload\" >> " + filepath.Join(dir, "calls") + "\ncase $5 in chat.message|session.compacting) echo remembered;; esac\n"
	if err := errors.Join(os.WriteFile(memctl, []byte(stub), 0o755), os.WriteFile(filepath.Join(dir, "host.mjs"), []byte(pluginHost), 0o644),
		os.WriteFile(filepath.Join(dir, "mneme.mjs"), []byte(plugin(Options{Memctl: memctl, Namespace: "shop"})), 0o644)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "host.mjs")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	const want = `{"id":"mneme","parts":["remembered","one?","not said"],"context":["remembered"],"text":"two?\n\nremembered","system":[{"type":"text","text":"remembered"}]}`
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(calls)) {
		head, payload, _ := strings.Cut(strings.TrimSpace(line), " -n shop ")
		if !json.Valid([]byte(payload)) {
			t.Errorf("%q", line)
		}
		got = append(got, head+" "+payload)
	}
	wants := []string{
		`session.created {"session_id":"s1","cwd":"/work"}`,
		`chat.message {"session_id":"s1","cwd":"/work","prompt":"one?"}`,
		`tool.execute.after {"session_id":"s1","cwd":"/work","tool_name":"bash","tool_input":{"command":"make"},"tool_output":"made"}`,
		`session.compacting {"session_id":"s1","cwd":"/work"}`,
		`chat.message {"session_id":"s2","cwd":"/work","prompt":"two?"}`,
		`tool.execute.after {"session_id":"s2","cwd":"/work","tool_name":"shell","tool_input":{"command":"make"}}`,
		`tool.execute.after {"session_id":"s2","cwd":"/work","tool_name":"shell","tool_input":{"command":"make lint"},"error":"no rule"}`,
		`session.compacting {"session_id":"s2","cwd":"/work"}`,
	}
	if strings.Join(got, "\n") != strings.Join(wants, "\n") {
		t.Errorf("memctl was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wants, "\n"))
	}
}
