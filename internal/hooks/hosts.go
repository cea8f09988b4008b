package hooks

import "slices"

// The hosts, by the names that --agent takes and that their captures have.
const (
	ClaudeCode  = "claude-code"
	Codex       = "codex"
	Cursor      = "cursor"
	Windsurf    = "windsurf"
	GeminiCLI   = "gemini-cli"
	Copilot     = "copilot"
	Kiro        = "kiro"
	Antigravity = "antigravity"
	OpenCode    = "opencode"
)

// Agents lists the hosts.
var Agents = []string{ClaudeCode, Codex, Cursor, Windsurf, GeminiCLI, Copilot, Kiro, Antigravity, OpenCode}

// withPrompts are the hosts that tell a prompt and take text with it.
var withPrompts = []string{ClaudeCode, Codex, GeminiCLI, Kiro, OpenCode}

// meaning is what an event of a host is, and whether its answer reaches the model.
type meaning struct {
	kind    Kind
	injects bool
}

// hosts has the events of each host. Where a host accepts text at events that stand between a
// model and its tool, or that end a turn, that is not used: it would make the model go on.
var hosts = map[string]map[string]meaning{
	ClaudeCode: {
		"SessionStart": {SessionStart, true}, "UserPromptSubmit": {Prompt, true}, "PreToolUse": {ToolBefore, false},
		"PostToolUse": {ToolAfter, true}, "PostToolUseFailure": {ToolFailed, true}, "PreCompact": {CompactBefore, false},
		"PostCompact": {CompactAfter, false}, "Stop": {TurnEnd, false}, "SubagentStop": {SubagentEnd, false}, "SessionEnd": {SessionEnd, false},
	},
	Codex: {
		"SessionStart": {SessionStart, true}, "UserPromptSubmit": {Prompt, true}, "PreToolUse": {ToolBefore, false},
		"PostToolUse": {ToolAfter, true}, "PreCompact": {CompactBefore, false}, "PostCompact": {CompactAfter, false},
		"Stop": {TurnEnd, false}, "SubagentStop": {SubagentEnd, false}, "agent-turn-complete": {TurnEnd, false},
	},
	Cursor: {
		"sessionStart": {SessionStart, true}, "beforeSubmitPrompt": {Prompt, false}, "preToolUse": {ToolBefore, false},
		"beforeShellExecution": {ToolBefore, false}, "beforeMCPExecution": {ToolBefore, false}, "postToolUse": {ToolAfter, true},
		"afterShellExecution": {ToolAfter, false}, "afterMCPExecution": {ToolAfter, false}, "afterFileEdit": {FileEdited, false},
		"postToolUseFailure": {ToolFailed, false}, "preCompact": {CompactBefore, false}, "afterAgentResponse": {TurnEnd, false},
		"stop": {TurnEnd, false}, "subagentStop": {SubagentEnd, false}, "sessionEnd": {SessionEnd, false},
	},
	Windsurf: {
		"pre_user_prompt": {Prompt, false}, "pre_run_command": {ToolBefore, false}, "pre_write_code": {ToolBefore, false},
		"pre_mcp_tool_use": {ToolBefore, false}, "post_run_command": {ToolAfter, false}, "post_mcp_tool_use": {ToolAfter, false},
		"post_write_code": {FileEdited, false}, "post_cascade_response": {TurnEnd, false}, "post_cascade_response_with_transcript": {TurnEnd, false},
	},
	GeminiCLI: {
		"SessionStart": {SessionStart, true}, "BeforeAgent": {Prompt, true}, "BeforeTool": {ToolBefore, false}, "AfterTool": {ToolAfter, true},
		"PreCompress": {CompactBefore, false}, "AfterAgent": {TurnEnd, false}, "SessionEnd": {SessionEnd, false},
	},
	Copilot: {
		"sessionStart": {SessionStart, true}, "userPromptSubmitted": {Prompt, false}, "preToolUse": {ToolBefore, false},
		"postToolUse": {ToolAfter, false}, "postToolUseFailure": {ToolFailed, true}, "preCompact": {CompactBefore, false},
		"agentStop": {TurnEnd, false}, "subagentStop": {SubagentEnd, false}, "sessionEnd": {SessionEnd, false},
		// The same in an editor.
		"SessionStart": {SessionStart, true}, "UserPromptSubmit": {Prompt, false}, "UserPromptSubmitted": {Prompt, false}, "PreToolUse": {ToolBefore, false},
		"PostToolUse": {ToolAfter, false}, "PostToolUseFailure": {ToolFailed, true}, "PreCompact": {CompactBefore, false},
		"Stop": {TurnEnd, false}, "AgentStop": {TurnEnd, false}, "SubagentStop": {SubagentEnd, false}, "SessionEnd": {SessionEnd, false},
	},
	Kiro: {
		"agentSpawn": {SessionStart, true}, "userPromptSubmit": {Prompt, true}, "preToolUse": {ToolBefore, false},
		"postToolUse": {ToolAfter, false}, "stop": {TurnEnd, false},
		// The same in files of version v1.
		"SessionStart": {SessionStart, true}, "UserPromptSubmit": {Prompt, true}, "PreToolUse": {ToolBefore, false},
		"PostToolUse": {ToolAfter, false}, "PreCompact": {CompactBefore, false}, "PostCompact": {CompactAfter, true}, "Stop": {TurnEnd, false},
	},
	Antigravity: {
		"PreInvocation": {Prompt, true}, "PreToolUse": {ToolBefore, false}, "PostToolUse": {ToolAfter, false},
		"PostInvocation": {TurnEnd, false}, "Stop": {TurnEnd, false},
	},
	OpenCode: {
		"session.created": {SessionStart, false}, "chat.message": {Prompt, true}, "tool.execute.before": {ToolBefore, false},
		"tool.execute.after": {ToolAfter, false}, "file.edited": {FileEdited, false}, "session.compacting": {CompactBefore, true},
		"experimental.session.compacting": {CompactBefore, true}, "session.compacted": {CompactAfter, false}, "session.idle": {TurnEnd, false},
	},
}

// writers are the tools that change files, in the words of all hosts.
var writers = []string{"Edit", "Write", "MultiEdit", "NotebookEdit", "apply_patch", "write_file", "replace", "create", "edit", "write", "fs_write", "write_to_file"}

// detect tells a host by its payload; "" where none fits.
func detect(f fields) string {
	event := f.text("hook_event_name")
	switch {
	case f.text("agent") == OpenCode:
		return OpenCode
	case f.has("agent_action_name"):
		return Windsurf
	case f.has("cursor_version"), f.has("conversation_id"):
		return Cursor
	case f.has("toolCall"), f.has("invocationNum"), f.has("workspacePaths"):
		return Antigravity
	case f.text("type") == "agent-turn-complete":
		return Codex
	case f.has("timestamp") && event != "" && f.has("transcript_path"), slices.Contains([]string{"BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "PreCompress"}, event):
		return GeminiCLI
	case f.has("sessionId"), f.has("timestamp") && event != "":
		return Copilot
	case f.has("turn_id"), f.null("transcript_path"):
		return Codex
	case !f.has("session_id") && hosts[Kiro][event].kind != "":
		return Kiro
	case event != "" && f.has("session_id"):
		return ClaudeCode
	}
	return ""
}

// named tells what an event is called where its payload does not say, by what it has.
func named(agent string, f fields) string {
	var byField [][2]string
	switch agent {
	case Antigravity:
		byField = [][2]string{{"invocationNum", "PreInvocation"}, {"toolCall", "PreToolUse"}, {"stepIdx", "PostToolUse"}, {"executionNum", "Stop"}}
	case Copilot:
		byField = [][2]string{{"toolResult", "postToolUse"}, {"toolName", "preToolUse"}, {"source", "sessionStart"}, {"stopReason", "agentStop"},
			{"reason", "sessionEnd"}, {"trigger", "preCompact"}, {"errorContext", "errorOccurred"}, {"prompt", "userPromptSubmitted"}}
	}
	for _, pair := range byField {
		if f.has(pair[0]) {
			return pair[1]
		}
	}
	return ""
}
