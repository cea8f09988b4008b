package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mneme/memory"
)

// csvColumns says which heads stand for which field of a capture, the first that is
// there. What no field takes goes into metadata.
var csvColumns = map[string][]string{
	"text":         {"text", "content", "memory", "note", "body", "message", "fact"},
	"id":           {"id"},
	"kind":         {"kind", "type"},
	"role":         {"role"},
	"agent":        {"agent", "author"},
	"uri":          {"uri"},
	"tags":         {"tags", "tag", "labels", "categories"},
	"conversation": {"conversation", "conversation_id", "session", "thread"},
	"subject":      {"subject"},
	"scope":        {"scope"},
	"importance":   {"importance"},
	"occurred_at":  {"occurred_at", "created_at", "date", "time", "timestamp"},
	"metadata":     {"metadata"},
}

type csvRows struct {
	noFiles
	opts   Options
	name   string
	rows   *rowReader
	head   []string
	column map[string]int // field → column
	spare  []int          // columns that no field takes
	empty  bool
}

// newCSV reads rows behind a header. Fields are separated by what the header has
// most of: comma, semicolon or tab.
func newCSV(r io.Reader, name string, opts Options) (Source, error) {
	br := decoded(r)
	top, _ := br.Peek(64 << 10)
	line, _, _ := bytes.Cut(top, []byte("\n"))
	s := &csvRows{opts: opts, name: name, rows: newRowReader(br, byte(separator(line))), column: map[string]int{}}
	head, err := s.rows.next()
	if errors.Is(err, io.EOF) {
		s.empty = true
		return s, nil
	}
	if err != nil {
		return nil, damaged("csv", err)
	}
	s.head = slices.Clone(head)
	for _, h := range s.head {
		if !utf8.ValidString(h) {
			return nil, damaged("csv", fmt.Errorf("its header %w", notUTF8([]byte(h))))
		}
	}
	for field, names := range csvColumns {
		for _, name := range names {
			if i := slices.IndexFunc(s.head, func(h string) bool { return headName(h) == name }); i >= 0 {
				s.column[field] = i
				break
			}
		}
	}
	if _, ok := s.column["text"]; !ok {
		return nil, memory.Errorf(memory.CodeInvalid, "the header has no column text").
			WithHint("its columns are %s; name the one that holds the memories text", clean(strings.Join(s.head, ", "), 200))
	}
	taken := slices.Collect(maps.Values(s.column))
	for i := range s.head {
		if !slices.Contains(taken, i) {
			s.spare = append(s.spare, i)
		}
	}
	return s, nil
}

func separator(line []byte) rune {
	best, most := ',', 0
	for _, c := range []rune{',', ';', '\t'} {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

func headName(h string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(h)), " ", "_")
}

// Next returns the item of the next row.
func (s *csvRows) Next() (Item, error) {
	if s.empty {
		return Item{}, io.EOF
	}
	row, err := s.rows.next()
	if err != nil {
		return Item{}, err
	}
	line := s.rows.first
	item, err := s.item(row, line)
	if err != nil {
		return Item{}, &ItemError{Line: line, Where: atLine(line), Err: err}
	}
	return check(item, atLine(line))
}

func (s *csvRows) item(row []string, line int) (Item, error) {
	get := func(field string) string {
		if i, ok := s.column[field]; ok {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	for i, v := range row {
		if !utf8.ValidString(v) {
			return Item{}, fmt.Errorf("%s %w", first(clean(s.head[i], 80), columnName(i)), notUTF8([]byte(v)))
		}
	}
	tags, whole := cleanTags(strings.FieldsFunc(get("tags"), func(r rune) bool { return r == ',' || r == ';' || r == '|' })...)
	c := memory.Capture{ID: get("id"), Text: row[s.column["text"]], Kind: memory.Kind(strings.ToLower(get("kind"))), Role: get("role"), URI: get("uri"),
		Tags: tags, Conversation: get("conversation"), Subject: get("subject"), Scope: memory.Scope(get("scope"))}
	agent := get("agent")
	if agent != "" {
		agent = nameOr("agent", agent)
	}
	s.opts.speak(&c, agent)
	fields := fieldsIn(json.RawMessage(get("metadata")))
	if c.Kind != "" && !memory.ValidKind(c.Kind) {
		fields[s.head[s.column["kind"]]] = string(c.Kind)
		c.Kind = ""
	}
	spare := s.spare
	if !whole {
		spare = append(slices.Clone(spare), s.column["tags"])
	}
	for _, i := range spare {
		name := first(s.head[i], columnName(i))
		if _, there := fields[name]; there {
			name += " (" + columnName(i) + ")"
		}
		if row[i] != "" {
			fields[name] = row[i]
		}
	}
	if v := get("importance"); v != "" {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return Item{}, fmt.Errorf("importance %q is no number", clean(v, 40))
		}
		c.Importance = &n
	}
	item := Item{Namespace: s.opts.Namespace, Line: line, Update: c.ID != ""}
	var err error
	if c.OccurredAt, err = parseTime(get("occurred_at")); errors.Is(err, errYears) {
		item.Left = []Skip{{Why: timeless(err) + "; the memory has the time of its import"}}
	} else if err != nil {
		return Item{}, err
	}
	id := c.ID
	p := Provenance{From: "csv", Source: s.opts.source(s.name), ID: id}
	if id == "" {
		c.ID = contentID("csv", append([]string{p.Source}, row...)...)
	} else {
		c.ID = sourceID("csv", p.Source, id)
		p.Folder = s.opts.folder // a table of the same name has other rows of the same ids
	}
	item.Capture = c
	item.describeWhole(p, fields)
	return item, nil
}

func columnName(i int) string { return "column " + strconv.Itoa(i+1) }
