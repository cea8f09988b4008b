package importer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"mneme/memory"
)

// mem0Memory is one memory of mem0: as its API and library answer (memory), or as
// the export of OpenMemory has it (content, state, app, categories).
type mem0Memory struct {
	ID         string          `json:"id"`
	Memory     string          `json:"memory"`
	Content    string          `json:"content"`
	Data       string          `json:"data"` // in payloads of the library's vector stores
	UserID     string          `json:"user_id"`
	AgentID    string          `json:"agent_id"`
	AppID      string          `json:"app_id"`
	RunID      string          `json:"run_id"`
	App        string          `json:"app"`
	State      string          `json:"state"`
	Categories []string        `json:"categories"`
	Metadata   json.RawMessage `json:"metadata"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
}

type mem0 struct {
	queued
	opts Options
}

// mem0Keys are the keys under which memories stand.
var mem0Keys = []string{"results", "memories"}

// newMem0 reads a JSON array, an object with one, or JSON lines; any of them may be
// compressed by gzip, as memories.jsonl.gz of OpenMemory is.
func newMem0(r io.Reader, _ string, opts Options) (Source, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	if head, _ := br.Peek(2); string(head) == gzipMagic {
		count := &unpacked{}
		z, err := gzip.NewReader(&packing{br, count})
		if err != nil {
			return nil, damaged("mem0", err)
		}
		br = bufio.NewReaderSize(&unpacking{z, []*unpacked{count}}, 64<<10)
	}
	br = decoded(br)
	m := &mem0{opts: opts}
	head, _ := br.Peek(64 << 10)
	if isLines(head) {
		in := newLines(br, maxLine)
		m.fill = func() error {
			line, err := in.next()
			if err != nil {
				return m.told(err)
			}
			m.memory(line, in.n, in.where())
			return nil
		}
		return m, nil
	}
	in := newElements("mem0", br, mem0Keys...)
	m.fill = func() error {
		_, raw, err := in.next()
		if err != nil {
			return m.told(err)
		}
		m.memory(raw, in.n, in.where())
		return nil
	}
	return m, nil
}

// isLines reports whether the first line is a whole JSON object by itself.
func isLines(head []byte) bool {
	line, _, found := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	line = bytes.TrimSpace(line)
	if !bytes.HasPrefix(line, []byte("{")) || !json.Valid(line) {
		return false
	}
	if found {
		return true
	}
	var m struct{ Results, Memories json.RawMessage }
	_ = json.Unmarshal(line, &m) // it is valid
	return m.Results == nil && m.Memories == nil
}

func (m *mem0) memory(raw []byte, n int, where string) {
	var e mem0Memory
	if err := json.Unmarshal(raw, &e); err != nil {
		m.bad(n, where, plainJSONError(err))
		return
	}
	defer m.halves(raw, n, where)
	text := first(e.Memory, e.Content, e.Data)
	switch {
	case e.State == "deleted":
		m.skip(n, where, "deleted there")
		return
	case e.ID == "":
		m.bad(n, where, errors.New("a memory without an id"))
		return
	}
	tags, whole := cleanTags(e.Categories...)
	c := memory.Capture{ID: sourceID("mem0", e.ID), Text: text, Kind: memory.KindFact, Tags: tags,
		Subject: clean(e.UserID, memory.MaxSubject/4)}
	if e.RunID != "" {
		c.Conversation = conversation("mem0", e.RunID)
	}
	agent := ""
	if e.AgentID != "" {
		agent = nameOr("agent", e.AgentID)
	}
	m.opts.speak(&c, agent)
	c.OccurredAt = m.time(first(e.CreatedAt, e.UpdatedAt), n, where)
	fields := fieldsIn(e.Metadata)
	for k, v := range map[string]string{"user_id": e.UserID, "app": first(e.App, e.AppID), "state": e.State, "updated_at": e.UpdatedAt} {
		if v != "" {
			fields[k] = v
		}
	}
	if !whole {
		fields["categories"] = e.Categories
	}
	item := Item{Namespace: m.opts.Namespace, Capture: c, Line: n, Update: true}
	item.describeWhole(Provenance{From: "mem0", Source: m.opts.Source, ID: e.ID}, fields)
	m.add(item, where)
}

// openMem0 reads the zip that OpenMemory exports: memories.jsonl.gz, which says the
// names of categories and apps, or else memories.json.
func openMem0(path string, opts Options) (Source, error) {
	arc, err := openFiles(path)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"memories.jsonl.gz", "memories.json"} {
		file, ok := arc.find(name)
		if !ok {
			continue
		}
		return arc.source([]chapter{{file, newMem0}}, opts), nil
	}
	_ = arc.close()
	return nil, memory.Errorf(memory.CodeInvalid, "it holds neither memories.jsonl.gz nor memories.json")
}
