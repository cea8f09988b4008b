package hooks

import (
	"encoding/json"
	"slices"
	"strings"

	"mneme/memory"
)

// Normalise reads a payload. agent and event are what the host was configured to say; where
// they are empty, the payload tells. An event that nobody knows is of the kind Other. The
// error says what is wrong without repeating the payload.
func Normalise(agent, event string, payload []byte) (Event, error) {
	f, err := parseFields(payload)
	if err != nil || f == nil {
		return Event{}, memory.Errorf(memory.CodeInvalid, "what the host sent is not a JSON object")
	}
	if agent == "" {
		agent = detect(f)
	}
	known, ok := hosts[agent]
	if agent == "" {
		return Event{}, memory.Errorf(memory.CodeInvalid, "no agent was named, and what the host sent does not tell which one it is").WithHint("agents are %s", strings.Join(Agents, ", "))
	}
	if !ok {
		if !memory.ValidName(agent) {
			agent = "…" // it may be the text of an event, which no log holds
		}
		return Event{}, memory.Errorf(memory.CodeInvalid, "the agent %q is unknown", agent).WithHint("agents are %s", strings.Join(Agents, ", "))
	}
	if event == "" {
		event = f.text("hook_event_name", "agent_action_name", "type")
	}
	if event == "" {
		event = named(agent, f)
	}
	is, ok := known[event]
	if !ok {
		is.kind = Other
	}
	info := f.inside("tool_info") // Windsurf keeps everything in it
	e := Event{
		Agent: agent, Name: event, Kind: is.kind, Injects: is.injects,
		Nested:  agent == ClaudeCode || agent == Codex || agent == GeminiCLI || agent == Copilot && event != "" && event[0] < 'a',
		Session: f.text("session_id", "sessionId", "sessionID", "conversation_id", "conversationId", "trajectory_id", "thread-id"),
		Within:  f.text("agent_id"),
		Turn:    f.text("turn_id", "prompt_id", "generation_id", "execution_id", "turn-id"),
		Dir:     first(f.text("cwd"), info.text("cwd"), firstOf(f.list("workspace_roots")), firstOf(f.list("workspacePaths"))),
		Source:  f.text("source"),
	}
	switch e.Kind {
	case SessionStart:
		e.Prompt = f.text("initialPrompt")
	case Prompt:
		e.Prompt = first(f.text("prompt", "message"), info.text("user_prompt"))
		if agent == Antigravity && string(f["invocationNum"]) == "0" {
			e.Kind = SessionStart
		}
	case TurnEnd:
		e.Reply = first(f.text("last_assistant_message", "prompt_response", "text", "last-assistant-message"), info.text("response"))
		if all := f.list("input-messages"); len(all) > 0 {
			e.Prompt = all[len(all)-1]
		}
	case CompactAfter:
		e.Summary = f.text("compact_summary", "summary")
	case ToolBefore, ToolAfter, ToolFailed, FileEdited:
		e.tool(f, info)
	}
	return e, nil
}

// tool reads what a tool did.
func (e *Event) tool(f, info fields) {
	call := f.inside("toolCall")
	e.Tool = first(f.text("tool_name", "toolName"), info.text("mcp_tool_name"), call.text("name"))
	in := f.inside("tool_input")
	for _, other := range []fields{f.inside("toolArgs"), call.inside("args"), info} {
		if in == nil {
			in = other
		}
	}
	e.Command = first(in.text("command", "command_line", "CommandLine", "cmd"), f.text("command"))
	for _, name := range []string{"file_path", "path", "filePath", "notebook_path", "TargetFile"} {
		if file := first(in.text(name), f.text(name)); file != "" && !slices.Contains(e.Files, file) {
			e.Files = append(e.Files, file)
		}
	}
	e.Stopped = f.flag("is_interrupt")
	e.result(f, info)
	if e.Kind == ToolAfter && e.Error == "" && len(e.Files) > 0 && slices.Contains(writers, e.Tool) {
		e.Kind = FileEdited
	}
	if e.Kind == ToolAfter && e.Error != "" {
		e.Kind = ToolFailed
	}
	if e.Kind != FileEdited {
		e.Files = nil // that a tool only read
	}
}

// result reads what came of it. Each host has its own way to say that a tool failed.
func (e *Event) result(f, info fields) {
	e.Output = first(f.text("tool_response", "tool_output", "output"), info.text("mcp_result"))
	e.Error = first(f.text("error", "error_message"), f.inside("error").text("message"))
	for _, name := range []string{"tool_response", "tool_output", "toolResult", "tool_result"} {
		r := f.inside(name)
		if r == nil {
			continue
		}
		out := first(r.text("stdout", "llmContent", "textResultForLlm", "text_result_for_llm", "output"), strings.Join(r.list("result"), "\n"))
		said := first(r.text("error"), r.inside("error").text("message"))
		if code := string(r["exitCode"]); code != "" && code != "0" && code != "null" || string(r["success"]) == "false" ||
			r.text("resultType", "result_type") == "failure" {
			said = first(said, r.text("stderr"), out, "it failed")
		}
		e.Output = out
		e.Error = first(e.Error, said)
		e.Stopped = e.Stopped || r.flag("interrupted")
	}
	if e.Kind == ToolFailed {
		e.Error = first(e.Error, e.Output, "it failed")
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func firstOf(list []string) string { return first(list...) }

// Output is what is printed for the host: text for the model where the host takes it, and what
// the user is told where it shows that, in the only fields that it accepts.
func Output(e Event, text, told string) []byte {
	var shown object
	if told != "" && e.Nested && e.Agent != Copilot && e.Name != "" && e.Name[0] < 'a' {
		shown = object{{"systemMessage", told}}
	}
	if text == "" || !e.Injects {
		if shown != nil {
			return line(shown)
		}
		if e.Agent == GeminiCLI {
			return []byte("{}\n") // it reads what else was printed where it finds nothing
		}
		return nil
	}
	switch {
	case e.Agent == Kiro, e.Agent == OpenCode: // what is printed is put in as it is
		return []byte(text + "\n")
	case e.Agent == Antigravity:
		return line(object{{"injectSteps", []any{object{{"ephemeralMessage", text}}}}})
	case e.Agent == Cursor && e.Kind == SessionStart:
		return line(object{{"additional_context", text}, {"env", object{}}})
	case e.Agent == Cursor:
		return line(object{{"additional_context", text}})
	case e.Agent == Copilot && !e.Nested:
		return line(object{{"additionalContext", text}})
	}
	inside := object{{"hookEventName", e.Name}, {"additionalContext", text}}
	if e.Agent == Codex {
		shown = append(shown, object{{"continue", true}}...)
	}
	return line(append(shown, object{{"hookSpecificOutput", inside}}...))
}

// object is a JSON object whose fields stand in the order given.
type object []struct {
	name  string
	value any
}

// MarshalJSON writes it.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, field := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := encode(field.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(field.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func encode(v any) ([]byte, error) { return json.Marshal(v) }

func line(v any) []byte {
	b, err := encode(v)
	if err != nil {
		return nil
	}
	return append(b, '\n')
}
