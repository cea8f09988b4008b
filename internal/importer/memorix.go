package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"mneme/memory"
)

// memorixObservation is one observation of Memorix. Its database has lists as JSON
// text, its files as lists.
type memorixObservation struct {
	ID              json.RawMessage `json:"id"`
	EntityName      string          `json:"entityName"`
	Type            string          `json:"type"`
	Title           string          `json:"title"`
	Narrative       string          `json:"narrative"`
	Facts           []string        `json:"facts"`
	FilesModified   []string        `json:"filesModified"`
	Concepts        []string        `json:"concepts"`
	CreatedAt       string          `json:"createdAt"`
	UpdatedAt       string          `json:"updatedAt"`
	ProjectID       string          `json:"projectId"`
	TopicKey        string          `json:"topicKey"`
	SessionID       string          `json:"sessionId"`
	Status          string          `json:"status"`
	Source          string          `json:"source"`
	CommitHash      string          `json:"commitHash"`
	RelatedCommits  []string        `json:"relatedCommits"`
	RelatedEntities []string        `json:"relatedEntities"`
	ValueCategory   string          `json:"valueCategory"`
	Visibility      string          `json:"visibility"`
	CreatedBy       string          `json:"createdByAgentId"`
}

type memorixSession struct {
	ID        string `json:"id"`
	ProjectID string `json:"projectId"`
	StartedAt string `json:"startedAt"`
	EndedAt   string `json:"endedAt"`
	Summary   string `json:"summary"`
	Agent     string `json:"agent"`
}

type memorixSkill struct {
	ID          json.RawMessage `json:"id"`
	Entity      string          `json:"sourceEntity"`
	Title       string          `json:"title"`
	Instruction string          `json:"instruction"`
	Trigger     string          `json:"trigger"`
	TriggerDesc string          `json:"trigger_desc"` // in the database
	Facts       []string        `json:"facts"`
	ProjectID   string          `json:"projectId"`
	CreatedAt   string          `json:"createdAt"`
	Tags        []string        `json:"tags"`
}

// memorixKinds says what the types of Memorix are here.
var memorixKinds = map[string]memory.Kind{
	"session-request": memory.KindMessage, "gotcha": memory.KindError, "problem-solution": memory.KindPractice,
	"how-it-works": memory.KindFact, "what-changed": memory.KindObservation, "discovery": memory.KindObservation,
	"why-it-exists": memory.KindDecision, "decision": memory.KindDecision, "trade-off": memory.KindDecision,
	"reasoning": memory.KindDecision, "probe": memory.KindObservation,
}

// memorixImportance says how long Memorix keeps a type, which is how much it counts.
func memorixImportance(o *memorixObservation) *float64 {
	v := 0.5
	switch o.Type {
	case "gotcha", "decision", "trade-off", "reasoning":
		v = 0.8
	case "what-changed", "discovery", "session-request", "probe":
		v = 0.3
	}
	if o.ValueCategory == "core" {
		v = 1
	}
	return &v
}

// memorix makes items of what Memorix has, wherever it was read.
type memorix struct {
	queued
	opts Options
	n    int // rows of the present kind so far
}

func (m *memorix) observation(o memorixObservation, where string) {
	id := strings.Trim(string(o.ID), `"`)
	var text strings.Builder
	text.WriteString(o.Title)
	if o.Narrative != "" && o.Narrative != o.Title {
		fmt.Fprintf(&text, "\n\n%s", o.Narrative)
	}
	list(&text, o.Facts)
	tags, whole := cleanTags(append([]string{o.Type}, o.Concepts...)...)
	c := memory.Capture{
		ID: sourceID("memorix", o.ProjectID, "observation", id), Text: strings.TrimSpace(text.String()),
		Kind: memorixKinds[o.Type], Importance: memorixImportance(&o), Tags: tags,
	}
	concepts := o.Concepts
	if whole {
		concepts = nil // they are tags
	}
	if o.SessionID != "" {
		c.Conversation = conversation("memorix", o.SessionID)
	}
	if o.Visibility == "personal" {
		c.Scope = memory.ScopeAgent
	}
	m.finish(c, o.CreatedBy, o.CreatedAt, where, Provenance{From: "memorix", Source: m.opts.source(o.ProjectID), ID: id},
		map[string]any{"concepts": concepts, "entity": o.EntityName, "type": o.Type, "project": o.ProjectID, "files": o.FilesModified, "topic": o.TopicKey,
			"status": o.Status, "source": o.Source, "commit": o.CommitHash, "commits": o.RelatedCommits, "entities": o.RelatedEntities,
			"updated_at": o.UpdatedAt, "value": o.ValueCategory, "visibility": o.Visibility})
}

func (m *memorix) session(s memorixSession, where string) {
	if strings.TrimSpace(s.Summary) == "" {
		m.skip(m.n, where, "a session without a summary")
		return
	}
	c := memory.Capture{ID: sourceID("memorix", s.ProjectID, "session", s.ID), Text: s.Summary, Kind: memory.KindOther,
		Tags: []string{"session-summary"}, Conversation: conversation("memorix", s.ID)}
	at := s.EndedAt
	if at == "" {
		at = s.StartedAt
	}
	m.finish(c, s.Agent, at, where, Provenance{From: "memorix", Source: m.opts.source(s.ProjectID), ID: s.ID},
		map[string]any{"project": s.ProjectID, "started_at": s.StartedAt})
}

func (m *memorix) skill(s memorixSkill, where string) {
	id := strings.Trim(string(s.ID), `"`)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n%s", s.Title, s.Instruction)
	trigger := s.Trigger + s.TriggerDesc
	if trigger != "" {
		fmt.Fprintf(&text, "\n\nWhen: %s", trigger)
	}
	list(&text, s.Facts)
	tags, whole := cleanTags(append([]string{"skill"}, s.Tags...)...)
	if whole {
		s.Tags = nil
	}
	c := memory.Capture{ID: sourceID("memorix", s.ProjectID, "skill", id), Text: strings.TrimSpace(text.String()), Kind: memory.KindPractice, Tags: tags}
	m.finish(c, "", s.CreatedAt, where, Provenance{From: "memorix", Source: m.opts.source(s.ProjectID), ID: id},
		map[string]any{"entity": s.Entity, "project": s.ProjectID, "tags": s.Tags})
}

// finish queues a capture of Memorix. What Memorix keeps is updated in place there,
// and so it is here.
func (m *memorix) finish(c memory.Capture, agent, at, where string, p Provenance, fields map[string]any) {
	if agent != "" {
		agent = nameOr("agent", agent)
	}
	m.opts.speak(&c, agent)
	if c.Text != "" { // else it is told as empty, and nothing more
		c.OccurredAt = m.time(at, m.n, where)
	}
	item := Item{Namespace: m.opts.Namespace, Capture: c, Line: m.n, Update: true}
	item.describeWhole(p, fields)
	m.add(item, where)
}

func list(text *strings.Builder, facts []string) {
	for i, f := range facts {
		if i == 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(text, "\n- %s", f)
	}
}

// newMemorixJSON reads observations.json, sessions.json, mini-skills.json or the
// portable export, which has the first two under keys.
func newMemorixJSON(r io.Reader, name string, opts Options) (Source, error) {
	m := &memorix{opts: opts}
	in := newElements("memorix", r, "observations", "sessions", "miniSkills", "skills")
	m.fill = func() error {
		key, raw, err := in.next()
		if err != nil {
			return m.told(err)
		}
		m.n = in.n
		if err := m.element(first(key, memorixKeys[name]), raw, in.where()); err != nil {
			m.bad(in.n, in.where(), plainJSONError(err))
		}
		m.halves(raw, in.n, in.where())
		return nil
	}
	return m, nil
}

// memorixKeys says what the files hold whose arrays have no key.
var memorixKeys = map[string]string{"sessions.json": "sessions", "mini-skills.json": "skills"}

func (m *memorix) element(key string, raw json.RawMessage, where string) error {
	switch key {
	case "sessions":
		var s memorixSession
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		m.session(s, where)
	case "skills", "miniSkills":
		var s memorixSkill
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		m.skill(s, where)
	default:
		var o memorixObservation
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		m.observation(o, where)
	}
	return nil
}

// openMemorix reads memorix.db or a data folder: its database, or the files from
// before there was one.
func openMemorix(path string, opts Options) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	if !info.IsDir() {
		return openMemorixDB(path, opts)
	}
	if info, err := os.Lstat(path + "/memorix.db"); err == nil && info.Mode().IsRegular() {
		return openMemorixDB(path+"/memorix.db", opts)
	} else if err == nil {
		return nil, memory.Errorf(memory.CodeInvalid, "its memorix.db is a link, which is not followed, or no file").WithHint("name the database that it leads to")
	}
	var parts []part
	for _, name := range []string{"observations.json", "sessions.json", "mini-skills.json", "graph.jsonl"} {
		f := fileMember(path, name)
		if info, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		open := newMemorixJSON
		if name == "graph.jsonl" {
			open = streamOf(newMCPMemory)
		}
		parts = append(parts, part{name, func() (Source, error) { return f.source(open, opts) }})
	}
	if len(parts) == 0 {
		return nil, memory.Errorf(memory.CodeInvalid, "it holds neither memorix.db nor observations.json").
			WithHint("name the data folder of Memorix, ~/.memorix/data unless MEMORIX_DATA_DIR says otherwise")
	}
	return &sequence{parts: parts}, nil
}
