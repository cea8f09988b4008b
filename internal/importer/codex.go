package importer

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

// codexLine is one line of a rollout of Codex. Newer ones wrap each in type and
// payload; older ones begin with the session and have the items bare.
type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`

	ID         string          `json:"id"` // of an old session
	RecordType string          `json:"record_type"`
	Role       string          `json:"role"` // of a bare item
	Content    json.RawMessage `json:"content"`
}

type codexSession struct {
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	Cwd       string `json:"cwd"`
	Git       struct {
		Branch string `json:"branch"`
		URL    string `json:"repository_url"`
	} `json:"git"`
}

// codex is a transcript with what its lines do not say themselves.
type codex struct {
	*transcript
	session codexSession
	model   string
	began   *time.Time
}

func newCodex(r io.Reader, name string, opts Options) (Source, error) {
	c := &codex{transcript: newTranscript(r, opts)}
	c.session.ID = strings.TrimSuffix(name, ".jsonl")
	c.line = func(raw []byte) error {
		var l codexLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		return c.read(&l, raw)
	}
	return c, nil
}

func (c *codex) read(l *codexLine, raw []byte) error {
	switch {
	case l.Type == "session_meta":
		if c.began != nil {
			c.tell(c.in.skip("the session that this one goes on from"))
			return nil
		}
		return c.meta(l.Payload)
	case l.Type == "" && l.ID != "" && l.RecordType == "":
		return c.meta(raw)
	case l.Type == "turn_context":
		var t struct {
			Model string `json:"model"`
		}
		if err := json.Unmarshal(l.Payload, &t); err != nil {
			return err
		}
		c.model = t.Model
		return nil
	case l.Type == "response_item":
		var item codexLine
		if err := json.Unmarshal(l.Payload, &item); err != nil {
			return err
		}
		item.Timestamp = l.Timestamp
		return c.item(&item)
	case l.Type == "event_msg":
		c.tell(c.in.skip("an event, which repeats an item"))
		return nil
	}
	return c.item(l)
}

func (c *codex) meta(raw json.RawMessage) error {
	var s codexSession
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if s.ID != "" {
		c.session = s
	}
	c.began = c.time(s.Timestamp, c.in.n, c.in.where())
	return nil
}

// codexContext are the beginnings of what Codex itself says in the user's name.
var codexContext = []string{"<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<INSTRUCTIONS>", "# AGENTS.md instructions",
	"<collaboration_mode>", "<skill", "<subagent_notification>"}

func (c *codex) item(l *codexLine) error {
	switch {
	case l.Type != "message":
		why := "of type " + clean(first(l.Type, l.RecordType), 40)
		switch {
		case strings.HasSuffix(l.Type, "_call"), strings.HasSuffix(l.Type, "_call_output"):
			why = "a call or result of a tool"
		case l.Type == "reasoning":
			why = "thinking"
		}
		c.tell(c.in.skip(why))
		return nil
	case l.Role != "user" && l.Role != "assistant":
		c.tell(c.in.skip("of the system or the developer"))
		return nil
	}
	text, other := blocks(l.Content)
	for _, why := range other {
		c.tell(c.in.skip(why))
	}
	if text == "" {
		if len(other) == 0 {
			c.tell(c.in.skip(empty))
		}
		return nil
	}
	for _, begin := range codexContext {
		if l.Role == "user" && strings.HasPrefix(text, begin) {
			c.tell(c.in.skip("what Codex added to the conversation"))
			return nil
		}
	}
	when := c.time(l.Timestamp, c.in.n, c.in.where())
	if when == nil && c.began != nil { // an old rollout has the time of its session only
		at := c.began.Add(time.Duration(c.in.n) * time.Second)
		when = &at
	}
	project := c.session.Cwd[strings.LastIndexAny(c.session.Cwd, `/\`)+1:]
	speak(&c.queue, &c.opts, spoken{format: "codex", agent: "codex", conversation: c.session.ID, id: c.session.ID + "/" + strconv.Itoa(c.in.n), role: l.Role,
		text: text, at: when, line: c.in.n, where: c.in.where(),
		fields: map[string]any{"cwd": c.session.Cwd, "project": clean(project, 200), "git_branch": c.session.Git.Branch, "repository": c.session.Git.URL, "model": c.model}})
	return nil
}
