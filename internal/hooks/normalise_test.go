package hooks

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// payloads lists the recorded payloads, or with outputs what hosts accept.
func payloads(t testing.TB, outputs bool) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/payloads/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range all {
		if strings.HasPrefix(filepath.Base(name), "out.") == outputs {
			out = append(out, name)
		}
	}
	if len(out) < 6 {
		t.Fatalf("only %d payloads", len(out))
	}
	return out
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// told is what the command line of a payload's hook says.
func told(name string) (agent, event string) {
	agent = filepath.Base(filepath.Dir(name))
	event = strings.TrimSuffix(filepath.Base(name), ".json")
	switch {
	case event == "notify.argv":
		return agent, ""
	case event == "vscode.PostToolUse":
		return agent, "PostToolUse"
	case agent == ClaudeCode:
		event, _, _ = strings.Cut(event, ".")
	}
	return agent, event
}

// TestEveryPayload compares what is read from each payload with a golden file, and asks for
// the same without any flags.
func TestEveryPayload(t *testing.T) {
	var got bytes.Buffer
	for _, name := range payloads(t, false) {
		agent, event := told(name)
		e, err := Normalise(agent, event, read(t, name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if bare, err := Normalise("", "", read(t, name)); err != nil || !reflect.DeepEqual(bare, e) {
			t.Errorf("%s without flags: %+v, %v\nwith them: %+v", name, bare, err, e)
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("testdata/payloads/"))) + "\n  " + string(b) + "\n")
	}
	golden(t, "testdata/events.txt", got.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := read(t, name); !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s", name, got)
	}
}

// TestOutputs: a host gets what it accepts, and exactly that.
func TestOutputs(t *testing.T) {
	for _, c := range []struct{ agent, event, accepted, text string }{
		{ClaudeCode, "SessionStart", "out.SessionStart.json", "<memory>...</memory>"},
		{Codex, "SessionStart", "out.SessionStart.json", "..."},
		{Cursor, "sessionStart", "out.sessionStart.json", "..."},
		{GeminiCLI, "BeforeAgent", "out.BeforeAgent.json", "..."},
		{Antigravity, "PreInvocation", "out.PreInvocation.json", "<memory>...</memory>"},
	} {
		e, err := Normalise(c.agent, c.event, []byte(`{"invocationNum":0}`))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(Output(e, c.text, ""), &got); err != nil {
			t.Fatalf("%s: %v", c.agent, err)
		}
		if err := json.Unmarshal(read(t, filepath.Join("testdata/payloads", c.agent, c.accepted)), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", c.agent, got, want)
		}
	}
	for _, c := range []struct{ agent, event, want string }{
		{Cursor, "postToolUse", `{"additional_context":"x"}` + "\n"},
		{Cursor, "beforeSubmitPrompt", ""},
		{Windsurf, "pre_user_prompt", ""},
		{Copilot, "sessionStart", `{"additionalContext":"x"}` + "\n"},
		{Copilot, "SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}` + "\n"},
		{Copilot, "userPromptSubmitted", ""},
		{Kiro, "userPromptSubmit", "x\n"},
		{Kiro, "stop", ""},
		{OpenCode, "chat.message", "x\n"},
		{OpenCode, "session.compacting", "x\n"},
		{ClaudeCode, "Stop", ""},
		{ClaudeCode, "PreToolUse", ""},
		{ClaudeCode, "Nonsense", ""},
		{GeminiCLI, "SessionEnd", "{}\n"},
	} {
		e, err := Normalise(c.agent, c.event, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(Output(e, "x", "")); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.agent, c.event, got, c.want)
		}
		if got := string(Output(e, "", "")); got != "" && !(c.agent == GeminiCLI && got == "{}\n") {
			t.Errorf("%s %s without a text: %q", c.agent, c.event, got)
		}
	}
}

func TestToolsThatFail(t *testing.T) {
	for name, c := range map[string]struct{ agent, event, payload, command, want string }{
		"claude":      {ClaudeCode, "PostToolUseFailure", `{"tool_name":"Bash","tool_input":{"command":"make lint"},"error":"exit status 2"}`, "make lint", "exit status 2"},
		"cursor":      {Cursor, "postToolUse", `{"tool_name":"Shell","tool_input":{"command":"npm test"},"tool_output":"{\"exitCode\":1,\"stdout\":\"1 failing\"}"}`, "npm test", "1 failing"},
		"gemini":      {GeminiCLI, "AfterTool", `{"tool_input":{"command":"x"},"tool_response":{"llmContent":"out","error":{"message":"no such file"}}}`, "x", "no such file"},
		"copilot":     {Copilot, "postToolUse", `{"toolName":"bash","toolArgs":"{\"command\":\"x\"}","toolResult":{"resultType":"failure","textResultForLlm":"boom"}}`, "x", "boom"},
		"kiro":        {Kiro, "postToolUse", `{"tool_input":{"command":"x"},"tool_response":{"success":false,"result":["no"]}}`, "x", "no"},
		"antigravity": {Antigravity, "PostToolUse", `{"stepIdx":3,"error":"denied"}`, "", "denied"},
		"silent":      {ClaudeCode, "PostToolUseFailure", `{"tool_input":{"command":"x"}}`, "x", "it failed"},
	} {
		e, err := Normalise(c.agent, c.event, []byte(c.payload))
		if err != nil || e.Kind != ToolFailed || e.Error != c.want || e.Command != c.command {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestBadPayloads(t *testing.T) {
	for _, p := range []string{"", "null", "[]", "3", `"x"`, "{", `{"a":}`, "\x00\x01", strings.Repeat("[", 10000), `{"hook_event_name":"Stop","session_id":"x"`} {
		if e, err := Normalise(ClaudeCode, "Stop", []byte(p)); err == nil {
			t.Errorf("%.20q is taken for %+v", p, e)
		} else if len(p) > 8 && strings.Contains(err.Error(), p[:8]) {
			t.Errorf("the error repeats the payload: %v", err)
		}
	}
	if _, err := Normalise("emacs", "", []byte("{}")); err == nil || !strings.Contains(err.Error(), "emacs") {
		t.Errorf("an unknown agent: %v", err)
	}
	if _, err := Normalise("", "", []byte(`{"x":1}`)); err == nil {
		t.Error("a payload of nobody is taken")
	}
	// Wrong types are as good as missing.
	e, err := Normalise("", "", []byte("\ufeff"+`{"hook_event_name":"UserPromptSubmit","session_id":7,"prompt":{"a":1},"cwd":[]}`))
	if err != nil || e.Prompt != "" || e.Session != "" || e.Kind != Prompt {
		t.Errorf("%+v, %v", e, err)
	}
}

func FuzzNormalise(f *testing.F) {
	for _, name := range payloads(f, false) {
		b := read(f, name)
		agent, event := told(name)
		f.Add(agent, event, b)
		f.Add("", "", b[:len(b)/2])
	}
	f.Add("", "", []byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, agent, event string, payload []byte) {
		e, err := Normalise(agent, event, payload)
		if err != nil {
			return
		}
		if hosts[e.Agent] == nil || e.Kind == "" {
			t.Errorf("%+v", e)
		}
		if out := Output(e, "x", ""); len(out) > 0 && e.Agent != Kiro && e.Agent != OpenCode && !json.Valid(out) {
			t.Errorf("%q is no JSON", out)
		}
		if e.Prompt != "" {
			Find(e.Prompt, false)
		}
	})
}

// TestTheUserIsTold, where a host shows it, beside what the model is given and without.
func TestTheUserIsTold(t *testing.T) {
	for _, c := range []struct{ agent, event, both, alone string }{
		{ClaudeCode, "SessionStart", `{"systemMessage":"t","hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}`, `{"systemMessage":"t"}`},
		{Codex, "SessionStart", `{"systemMessage":"t","continue":true,"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}`, `{"systemMessage":"t"}`},
		{GeminiCLI, "AfterAgent", `{"systemMessage":"t"}`, `{"systemMessage":"t"}`},
		{Codex, "agent-turn-complete", ``, ``},
		{Cursor, "sessionStart", `{"additional_context":"x","env":{}}`, ``},
		{Copilot, "SessionStart", `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}`, ``},
		{Kiro, "userPromptSubmit", "x", ``},
	} {
		e, err := Normalise(c.agent, c.event, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(Output(e, "x", "t"))); got != c.both {
			t.Errorf("%s %s: %s", c.agent, c.event, got)
		}
		if got := strings.TrimSpace(string(Output(e, "", "t"))); got != c.alone {
			t.Errorf("%s %s without memories: %s", c.agent, c.event, got)
		}
	}
}
