package hooks

// Kind is what an event means, whatever its host calls it.
type Kind string

// The kinds.
const (
	SessionStart  Kind = "session.start"
	Prompt        Kind = "prompt"
	ToolBefore    Kind = "tool.before"
	ToolAfter     Kind = "tool.after"
	FileEdited    Kind = "file.edited"
	ToolFailed    Kind = "tool.failed"
	CompactBefore Kind = "compact.before"
	CompactAfter  Kind = "compact.after"
	TurnEnd       Kind = "turn.end"
	SubagentEnd   Kind = "subagent.end"
	SessionEnd    Kind = "session.end"
	Other         Kind = "other" // nothing is done about it
)

// Event is what a host told, in one form for all hosts. Fields that it did not tell are empty.
type Event struct {
	Agent   string   `json:"agent"` // the host
	Name    string   `json:"name"`  // of the event, as the host calls it
	Kind    Kind     `json:"kind"`
	Session string   `json:"session,omitempty"` // the conversation
	Within  string   `json:"within,omitempty"`  // the subagent of it that this happened to
	Turn    string   `json:"turn,omitempty"`    // an exchange in it
	Dir     string   `json:"dir,omitempty"`     // where the agent works
	Source  string   `json:"source,omitempty"`  // what began a session, or who gave a prompt
	Prompt  string   `json:"prompt,omitempty"`  // what the user said
	Reply   string   `json:"reply,omitempty"`   // what the agent said
	Summary string   `json:"summary,omitempty"` // of what was compacted
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty"` // that the tool ran
	Output  string   `json:"output,omitempty"`  // of the tool
	Error   string   `json:"error,omitempty"`   // of the tool
	Stopped bool     `json:"stopped,omitempty"` // the user stopped the tool
	Files   []string `json:"files,omitempty"`   // that the tool changed
	// Injects says that the host puts what it is answered into the context of the model.
	Injects bool `json:"injects,omitempty"`
	// Nested says that the host names its fields as Claude Code does, which it does for
	// events with a capital only.
	Nested bool `json:"nested,omitempty"`
}

// texts are the fields that may hold anything a user, a model or a tool wrote.
func (e *Event) texts() []*string {
	all := []*string{&e.Prompt, &e.Reply, &e.Summary, &e.Command, &e.Output, &e.Error}
	for i := range e.Files {
		all = append(all, &e.Files[i])
	}
	return all
}
