package importer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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
	meter  *meter
	in     *csv.Reader
	head   []string
	column map[string]int // field → column
	done   error
}

// newCSV reads rows behind a header. Fields are separated by what the header has
// most of: comma, semicolon or tab.
func newCSV(r io.Reader, name string, opts Options) (Source, error) {
	br := decoded(r)
	top, _ := br.Peek(64 << 10)
	line, _, _ := bytes.Cut(top, []byte("\n"))
	s := &csvRows{opts: opts, name: name, meter: &meter{r: br, max: maxLine}, column: map[string]int{}}
	s.in = csv.NewReader(s.meter)
	s.in.Comma = separator(line)
	s.in.ReuseRecord = true
	head, err := s.in.Read()
	if errors.Is(err, io.EOF) {
		s.done = io.EOF
		return s, nil
	}
	if err != nil {
		return nil, damaged("csv", err)
	}
	s.head = slices.Clone(head)
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
	if s.done != nil {
		return Item{}, s.done
	}
	s.meter.n = 0
	row, err := s.in.Read()
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return Item{}, &ItemError{Line: parse.StartLine, Where: atLine(parse.StartLine), Err: parse.Err}
	case errors.Is(err, io.EOF):
		s.done = io.EOF
		return Item{}, s.done
	case err != nil:
		s.done = damaged("csv", err)
		return Item{}, s.done
	}
	line, _ := s.in.FieldPos(0)
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
	c := memory.Capture{ID: get("id"), Text: row[s.column["text"]], Kind: memory.Kind(strings.ToLower(get("kind"))), Role: get("role"), URI: get("uri"),
		Tags:         cleanTags(strings.FieldsFunc(get("tags"), func(r rune) bool { return r == ',' || r == ';' || r == '|' })...),
		Conversation: get("conversation"), Subject: get("subject"), Scope: memory.Scope(get("scope"))}
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
	for i, v := range row {
		if taken := slices.ContainsFunc(fieldsOf(s.column), func(at int) bool { return at == i }); !taken && v != "" {
			fields[first(s.head[i], "column "+strconv.Itoa(i+1))] = v
		}
	}
	if v := get("importance"); v != "" {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return Item{}, fmt.Errorf("importance %q is no number", clean(v, 40))
		}
		c.Importance = &n
	}
	var err error
	if c.OccurredAt, err = parseTime(get("occurred_at")); err != nil {
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
	c.Metadata = withFields(p, fields)
	return Item{Namespace: s.opts.Namespace, Capture: c, Line: line, Update: id != ""}, nil
}

func fieldsOf(column map[string]int) []int {
	var out []int
	for _, i := range column {
		out = append(out, i)
	}
	return out
}
