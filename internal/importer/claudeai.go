package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"mneme/memory"
)

// claudeConversation is one conversation of an export of Claude.
type claudeConversation struct {
	UUID     string          `json:"uuid"`
	Name     string          `json:"name"`
	Messages []claudeMessage `json:"chat_messages"`
}

type claudeMessage struct {
	UUID        string             `json:"uuid"`
	Text        string             `json:"text"`
	Content     []claudeBlock      `json:"content"`
	Sender      string             `json:"sender"`
	CreatedAt   string             `json:"created_at"`
	Attachments []claudeAttachment `json:"attachments"`
	Files       []struct {
		Name string `json:"file_name"`
	} `json:"files"`
}

type claudeBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type claudeAttachment struct {
	Name string `json:"file_name"`
	Type string `json:"file_type"`
	Text string `json:"extracted_content"`
}

type claudeAI struct {
	queued
	opts Options
	in   *elements
}

// claudeReader makes a source of a file whose elements take queues.
func claudeReader(take func(*claudeAI, json.RawMessage) error, keys ...string) func(io.Reader, string, Options) (Source, error) {
	return func(r io.Reader, _ string, opts Options) (Source, error) {
		s := &claudeAI{opts: opts, in: newElements("claude", wrapped(r), keys...)}
		s.fill = func() error {
			_, raw, err := s.in.next()
			if err != nil {
				return s.told(err)
			}
			if err := take(s, raw); err != nil {
				s.bad(s.in.n, s.in.where(), plainJSONError(err))
			}
			s.halves(raw, s.in.n, s.in.where())
			return nil
		}
		return s, nil
	}
}

// wrapped makes an array of a document that is one object: exports have memories
// and projects as arrays, or as a file each.
func wrapped(r io.Reader) io.Reader {
	br := decoded(r)
	head, _ := br.Peek(512)
	if strings.HasPrefix(strings.TrimLeft(string(head), " \t\r\n"), "{") {
		return io.MultiReader(strings.NewReader("["), br, strings.NewReader("]"))
	}
	return br
}

func newClaudeAI(r io.Reader, name string, opts Options) (Source, error) {
	return claudeReader((*claudeAI).conversation)(r, name, opts)
}

// claudeMembers are memories and projects, which the conversations rest on, and the
// conversations.
func claudeMembers(a *archive) []chapter {
	var out []chapter
	talks := a.conversations()
	if len(talks) == 0 {
		return nil
	}
	for _, f := range a.files {
		dir, name := path.Base(path.Dir(f.name)), path.Base(f.name)
		switch {
		case !strings.HasSuffix(name, ".json"):
		case name == "memories.json" || dir == "memories":
			out = append(out, chapter{f, claudeReader((*claudeAI).memories)})
		case name == "projects.json" || dir == "projects":
			out = append(out, chapter{f, claudeReader((*claudeAI).project)})
		}
	}
	for _, f := range talks {
		out = append(out, chapter{f, newClaudeAI})
	}
	return out
}

func (s *claudeAI) conversation(raw json.RawMessage) error {
	var c claudeConversation
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if c.UUID == "" {
		return errors.New("a conversation without an id")
	}
	where := fmt.Sprintf("%s %q", s.in.where(), clean(c.Name, 60))
	if len(c.Messages) == 0 {
		s.skip(s.in.n, where, "a conversation without messages")
	}
	for i, m := range c.Messages {
		s.message(&c, m, fmt.Sprintf("%s message %d", where, i+1))
	}
	return nil
}

func (s *claudeAI) message(c *claudeConversation, m claudeMessage, where string) {
	role := "assistant"
	if m.Sender == "human" {
		role = "user"
	}
	var texts []string
	before := len(s.entries)
	for _, b := range m.Content {
		switch {
		case b.Type == "text":
			texts = append(texts, b.Text)
		case b.Type == "thinking":
			s.skip(s.in.n, where, "thinking")
		case strings.HasPrefix(b.Type, "tool_"):
			s.skip(s.in.n, where, "a call or result of a tool")
		default:
			s.skip(s.in.n, where, "of type "+clean(b.Type, 40))
		}
	}
	if len(m.Content) == 0 {
		texts = append(texts, m.Text)
	}
	when := s.time(m.CreatedAt, s.in.n, where)
	if len(m.Files) > 0 {
		s.skip(s.in.n, where, "an image or file in a message")
	}
	say := spoken{format: "claude", agent: "claude", conversation: c.UUID, id: m.UUID, role: role, at: when, line: s.in.n, where: where,
		fields: map[string]any{"title": c.Name}}
	say.text = strings.TrimSpace(strings.Join(texts, "\n\n"))
	switch {
	case m.UUID == "":
		s.bad(s.in.n, where, errors.New("a message without an id"))
		return
	case say.text != "":
		speak(&s.queue, &s.opts, say)
	}
	if len(s.entries) == before && len(m.Attachments) == 0 {
		s.skip(s.in.n, where, empty)
	}
	for i, a := range m.Attachments {
		if strings.TrimSpace(a.Text) == "" {
			s.skip(s.in.n, where, "an attachment without text")
			continue
		}
		say.id, say.text, say.where = fmt.Sprintf("%s/attachment-%d", m.UUID, i+1), a.Text, where+" attachment "+clean(a.Name, 60)
		say.fields = map[string]any{"title": c.Name, "file": a.Name, "file_type": a.Type}
		speak(&s.queue, &s.opts, say)
	}
}

// memories queues what Claude remembers of an account: a text about all
// conversations, and one for each project.
func (s *claudeAI) memories(raw json.RawMessage) error {
	var m struct {
		Account       string            `json:"account_uuid"`
		Conversations string            `json:"conversations_memory"`
		Projects      map[string]string `json:"project_memories"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	s.document("memory", m.Account, m.Conversations, "", nil)
	for _, id := range slices.Sorted(maps.Keys(m.Projects)) {
		s.document("memory", m.Account+"/"+id, m.Projects[id], "", map[string]any{"project": id})
	}
	return nil
}

// project queues a project's instructions and its documents.
func (s *claudeAI) project(raw json.RawMessage) error {
	var p struct {
		UUID        string `json:"uuid"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Prompt      string `json:"prompt_template"`
		CreatedAt   string `json:"created_at"`
		Docs        []struct {
			UUID      string `json:"uuid"`
			Filename  string `json:"filename"`
			Content   string `json:"content"`
			CreatedAt string `json:"created_at"`
		} `json:"docs"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	if p.UUID == "" {
		return errors.New("a project without an id")
	}
	about := strings.TrimSpace(p.Description + "\n\n" + p.Prompt)
	if about != "" {
		about = p.Name + "\n\n" + about
	}
	fields := map[string]any{"project": p.UUID, "title": p.Name}
	s.document("project", p.UUID, about, p.CreatedAt, fields)
	for _, d := range p.Docs {
		s.document("document", first(d.UUID, p.UUID+"/"+d.Filename), d.Content, d.CreatedAt,
			map[string]any{"project": p.UUID, "title": p.Name, "file": d.Filename})
	}
	return nil
}

// document queues a text that Claude keeps outside of conversations, and changes.
func (s *claudeAI) document(what, id, text, at string, fields map[string]any) {
	where := s.in.where() + " " + what + " " + clean(id, 80)
	if strings.TrimSpace(text) == "" {
		s.skip(s.in.n, where, "empty")
		return
	}
	when := s.time(at, s.in.n, where)
	item := Item{Namespace: s.opts.Namespace, Line: s.in.n, Update: true,
		Capture: memory.Capture{ID: sourceID("claude", what, id), Text: text, Kind: memory.KindFact, Tags: []string{"claude-" + what}, OccurredAt: when}}
	item.describeWhole(Provenance{From: "claude", Source: s.opts.Source, ID: id}, fields)
	s.opts.speak(&item.Capture, "")
	s.add(item, where)
}
