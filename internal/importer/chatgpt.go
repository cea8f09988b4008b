package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// chatGPTConversation is one conversation of an export of ChatGPT: a tree of
// messages, of which the branch that ends in CurrentNode is what was last seen.
type chatGPTConversation struct {
	ID             string                 `json:"id"`
	ConversationID string                 `json:"conversation_id"`
	Title          string                 `json:"title"`
	CreateTime     float64                `json:"create_time"`
	CurrentNode    string                 `json:"current_node"`
	Mapping        map[string]chatGPTNode `json:"mapping"`
}

type chatGPTNode struct {
	Parent  string          `json:"parent"`
	Message json.RawMessage `json:"message"`
}

type chatGPTMessage struct {
	ID     string `json:"id"`
	Author struct {
		Role string `json:"role"`
	} `json:"author"`
	CreateTime float64 `json:"create_time"`
	Content    struct {
		Type  string            `json:"content_type"`
		Parts []json.RawMessage `json:"parts"`
		Text  string            `json:"text"`
	} `json:"content"`
	Recipient string `json:"recipient"`
	Metadata  struct {
		Model  string `json:"model_slug"`
		Hidden bool   `json:"is_visually_hidden_from_conversation"`
	} `json:"metadata"`
}

type chatGPT struct {
	queued
	opts Options
	in   *elements
}

func newChatGPT(r io.Reader, _ string, opts Options) (Source, error) {
	s := &chatGPT{opts: opts, in: newElements("chatgpt", r, "conversations")}
	s.fill = s.read
	return s, nil
}

func chatGPTMembers(a *archive) []chapter {
	var out []chapter
	for _, f := range a.conversations() {
		out = append(out, chapter{f, newChatGPT})
	}
	return out
}

// read queues the messages of the next conversation.
func (s *chatGPT) read() error {
	_, raw, err := s.in.next()
	if err != nil {
		return s.told(err)
	}
	defer s.halves(raw, s.in.n, s.in.where())
	var c chatGPTConversation
	if err := json.Unmarshal(raw, &c); err != nil {
		s.bad(s.in.n, s.in.where(), plainJSONError(err))
		return nil
	}
	id := first(c.ConversationID, c.ID)
	switch {
	case len(c.Mapping) == 0:
		s.skip(s.in.n, s.in.where(), "a conversation without messages")
		return nil
	case id == "":
		s.bad(s.in.n, s.in.where(), errors.New("a conversation without an id"))
		return nil
	}
	where := fmt.Sprintf("%s %q", s.in.where(), clean(c.Title, 60))
	branch, err := c.branch()
	if err != nil {
		s.bad(s.in.n, where, err)
		return nil
	}
	shown := make(map[string]bool, len(branch))
	for _, node := range branch {
		shown[node] = true
	}
	for _, node := range slices.Sorted(maps.Keys(c.Mapping)) {
		if m := c.Mapping[node].Message; !shown[node] && len(m) > 0 && string(m) != "null" {
			s.skip(s.in.n, where, "on a branch that was left by editing or trying again")
		}
	}
	for i, node := range branch {
		s.message(&c, id, node, fmt.Sprintf("%s message %d", where, i+1))
	}
	return nil
}

// branch returns the nodes from the root to the current one. Without one it is the
// newest message that nothing follows.
func (c *chatGPTConversation) branch() ([]string, error) {
	at := c.CurrentNode
	if _, ok := c.Mapping[at]; !ok {
		at = c.newest()
	}
	var out []string
	for at != "" {
		node, ok := c.Mapping[at]
		if !ok {
			break // the root's parent
		}
		if len(out) == len(c.Mapping) {
			return nil, errors.New("its messages follow each other in a circle")
		}
		out = append(out, at)
		at = node.Parent
	}
	slices.Reverse(out)
	return out, nil
}

func (c *chatGPTConversation) newest() string {
	parents := map[string]bool{}
	for _, n := range c.Mapping {
		parents[n.Parent] = true
	}
	best, when := "", -1.0
	for _, id := range slices.Sorted(maps.Keys(c.Mapping)) {
		var m chatGPTMessage
		_ = json.Unmarshal(c.Mapping[id].Message, &m) // what cannot be read is no end
		if !parents[id] && m.CreateTime > when {
			best, when = id, m.CreateTime
		}
	}
	return best
}

func (s *chatGPT) message(c *chatGPTConversation, conv, node, where string) {
	raw := c.Mapping[node].Message
	if len(raw) == 0 || string(raw) == "null" {
		return // the root
	}
	var m chatGPTMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		s.bad(s.in.n, where, plainJSONError(err))
		return
	}
	text, media := m.text()
	switch {
	case m.Author.Role != "user" && m.Author.Role != "assistant":
		if text != "" {
			s.skip(s.in.n, where, "of the system or a tool")
		}
		return
	case m.Metadata.Hidden:
		s.skip(s.in.n, where, "hidden in the conversation")
		return
	case m.Recipient != "" && m.Recipient != "all":
		s.skip(s.in.n, where, "a call of a tool")
		return
	case !slices.Contains([]string{"text", "multimodal_text", "code", ""}, m.Content.Type):
		s.skip(s.in.n, where, "of type "+clean(m.Content.Type, 40))
		return
	}
	if media > 0 {
		s.skip(s.in.n, where, "an image or file in a message")
	}
	if text == "" {
		if media == 0 {
			s.skip(s.in.n, where, empty)
		}
		return
	}
	when := unixTime(m.CreateTime)
	if when == nil {
		when = unixTime(c.CreateTime)
	}
	speak(&s.queue, &s.opts, spoken{format: "chatgpt", agent: "chatgpt", conversation: conv, id: first(m.ID, node), role: m.Author.Role, text: text,
		at: when, line: s.in.n, where: where, fields: map[string]any{"title": c.Title, "model": m.Metadata.Model}})
}

// text joins the parts that are text, and counts the others.
func (m *chatGPTMessage) text() (text string, media int) {
	parts := []string{m.Content.Text}
	for _, raw := range m.Content.Parts {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			parts = append(parts, s)
			continue
		}
		var t struct {
			Type string `json:"content_type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &t) == nil && t.Text != "" {
			parts = append(parts, t.Text) // what was dictated
			continue
		}
		media++
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" })
	return strings.Join(parts, "\n\n"), media
}
