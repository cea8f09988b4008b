package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"mneme/memory"
)

// exportedFile is the front matter of a file that holds one exported memory. Its
// text stands below, between one line feed and another.
type exportedFile struct {
	Mark         string   `yaml:"mneme"` // "memory"
	Title        string   `yaml:"title,omitempty"`
	Record       string   `yaml:"record_id"`
	Namespace    string   `yaml:"namespace,omitempty"`
	Version      int      `yaml:"version"`
	ID           string   `yaml:"id,omitempty"`
	Agent        string   `yaml:"agent"`
	Kind         string   `yaml:"kind,omitempty"`
	Role         string   `yaml:"role,omitempty"`
	URI          string   `yaml:"uri,omitempty"`
	Tags         []string `yaml:"tags,omitempty"`
	Conversation string   `yaml:"conversation,omitempty"`
	Subject      string   `yaml:"subject,omitempty"`
	Scope        string   `yaml:"scope,omitempty"`
	Importance   string   `yaml:"importance,omitempty"`
	OccurredAt   string   `yaml:"occurred_at,omitempty"`
	CreatedAt    string   `yaml:"created_at,omitempty"`
	DerivedFrom  []string `yaml:"derived_from,omitempty"`
	Origin       string   `yaml:"origin,omitempty"`
	Source       string   `yaml:"source,omitempty"`
	Metadata     string   `yaml:"metadata,omitempty"` // JSON, as text, so that nothing of it is lost
}

// FormatExported writes one exported memory as a Markdown file with front matter,
// which the format markdown reads again without loss.
func FormatExported(l memory.ExportLine) ([]byte, error) {
	f := exportedFile{Mark: "memory", Title: clean(firstLine(l.Text), 80), Record: l.RecordID, Namespace: namespaceOf(l.URI), Version: l.Version, ID: l.ID,
		Agent: l.Agent, Kind: string(l.Kind), Role: l.Role, URI: relativeURI(l.URI, l.RecordID), Tags: l.Tags, Conversation: l.Conversation,
		Subject: l.Subject, Scope: string(l.Scope), DerivedFrom: l.DerivedFrom, Origin: string(l.Origin), Source: l.Source, Metadata: string(l.Metadata)}
	if l.Importance != nil {
		f.Importance = strconv.FormatFloat(*l.Importance, 'g', -1, 64)
	}
	if l.OccurredAt != nil {
		f.OccurredAt = l.OccurredAt.UTC().Format(time.RFC3339Nano)
	}
	if !l.CreatedAt.IsZero() {
		f.CreatedAt = l.CreatedAt.UTC().Format(time.RFC3339Nano)
	}
	front, err := yaml.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("front matter of %s: %w", l.RecordID, err)
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	b.Write(front)
	b.WriteString("---\n\n")
	b.WriteString(l.Text)
	b.WriteString("\n")
	return b.Bytes(), nil
}

// SaysExported reports whether a file of an export, which was edited since, says of a memory
// what an export of it would, and nothing besides. It may be of another version, by another agent.
func SaysExported(file []byte, l memory.ExportLine) bool {
	front, body, _, err := cutFrontMatter(file)
	if err != nil || stringOf(front[exportKey]) == "" {
		return false
	}
	fields := reflect.TypeFor[exportedFile]()
	for key := range front {
		if !slices.ContainsFunc(reflect.VisibleFields(fields), func(f reflect.StructField) bool {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			return name == key
		}) {
			return false
		}
	}
	is, err := parseExported(front, body)
	if err != nil {
		return false
	}
	is.Version, is.CreatedAt, is.Agent, is.ID, is.Origin, is.Source = l.Version, l.CreatedAt, l.Agent, l.ID, l.Origin, l.Source
	is.Normalise()
	a, aerr := FormatExported(is)
	b, berr := FormatExported(l)
	return aerr == nil && berr == nil && bytes.Equal(a, b)
}

// ExportOf is the line of a record in an export.
func ExportOf(r memory.Record) memory.ExportLine {
	occurred := r.OccurredAt
	return memory.ExportLine{
		Capture: memory.Capture{ID: r.ID, Agent: r.Agent, Text: r.Text, Kind: r.Kind, Role: r.Role, URI: r.URI,
			Tags: r.Tags, Conversation: r.Conversation, Subject: r.Subject, Scope: r.Scope, Importance: r.Importance,
			OccurredAt: &occurred, DerivedFrom: r.DerivedFrom, Metadata: r.Metadata},
		RecordID: r.RecordID, Version: r.Version, Position: r.Position, CreatedAt: r.CreatedAt, Origin: r.Origin, Source: r.Source,
	}
}

// firstLine is the first line of a text that is not blank.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimLeft(line, "# ")
}

// parseExported reads what FormatExported writes, from its front matter and what
// stands below.
func parseExported(front map[string]any, body []byte) (memory.ExportLine, error) {
	s := func(key string) string { return stringOf(front[key]) }
	var l memory.ExportLine
	l.RecordID = s("record_id")
	if s(exportKey) != "memory" || !memory.ValidULID(l.RecordID) {
		return l, fmt.Errorf("its front matter is not as an export writes it: mneme is %q, and record_id no id", clean(s(exportKey), 40))
	}
	l.Version, _ = strconv.Atoi(s("version")) // one that is no number is of no version
	l.ID, l.Agent, l.Kind, l.Role = s("id"), s("agent"), memory.Kind(s("kind")), s("role")
	l.Conversation, l.Subject, l.Scope = s("conversation"), s("subject"), memory.Scope(s("scope"))
	l.Origin, l.Source = memory.Origin(s("origin")), s("source")
	l.Tags, l.DerivedFrom = listOf(front["tags"]), listOf(front["derived_from"])
	l.URI = s("uri")
	if ns := s("namespace"); ns != "" {
		l.URI = "mem://" + ns + "/" + first(l.URI, l.RecordID)
	}
	if v := s("importance"); v != "" {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return l, fmt.Errorf("importance %q is no number", clean(v, 40))
		}
		l.Importance = &n
	}
	for key, into := range map[string]func(time.Time){"occurred_at": func(t time.Time) { l.OccurredAt = &t }, "created_at": func(t time.Time) { l.CreatedAt = t }} {
		t, err := parseTime(s(key))
		if err != nil {
			return l, fmt.Errorf("%s: %w", key, err)
		}
		if t != nil {
			into(*t)
		}
	}
	if v := s("metadata"); v != "" {
		l.Metadata = json.RawMessage(v)
	}
	text, windows := strings.CutPrefix(string(body), "\r\n") // an editor's, not of the export
	l.Text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	if windows {
		l.Text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	return l, nil
}

// listOf is a list as it stands; one value is a list of itself.
func listOf(v any) []string {
	if list, ok := v.([]any); ok {
		return stringsOf(list)
	}
	if s := stringOf(v); s != "" {
		return []string{s}
	}
	return nil
}

// exportedItem makes an item of an exported memory. Where it goes back to the
// namespace that it is from it stays as it is; elsewhere its metadata say what it was.
func exportedItem(opts *Options, exp memory.ExportLine) Item {
	c := exp.Capture
	if c.Agent == "" {
		c.Agent = opts.Agent
	}
	if c.Scope == "" {
		c.Scope = opts.Scope
	}
	item := Item{Namespace: opts.Namespace, RecordID: exp.RecordID, Home: namespaceOf(exp.URI), Version: exp.Version, Exported: &exp}
	c.URI = relativeURI(c.URI, exp.RecordID)
	if c.ID == "" {
		c.ID = "export/" + exp.RecordID + "." + strconv.Itoa(exp.Version)
	}
	item.Capture = c
	if item.Home != opts.Namespace {
		return FromAway(item)
	}
	return item
}

// FromAway is an exported item that does not go back to where it is from: its metadata say what it was there.
func FromAway(item Item) Item {
	item.Away, item.Capture.Metadata = true, exportedMetadata(*item.Exported)
	return item
}

// exportedMetadata is the metadata of an exported record with what the record was
// where it came from. A record that was imported before, and not from an export, keeps the
// older provenance beside it, so that what it was imported from can be imported again, too;
// anything else that stands in its place is kept in it. Metadata that is full, or no object,
// stays as it is.
func exportedMetadata(exp memory.ExportLine) json.RawMessage {
	meta := exp.Metadata
	fields := map[string]json.RawMessage{}
	if len(meta) > 0 && json.Unmarshal(meta, &fields) != nil {
		return meta
	}
	p := Provenance{From: fromHome, Source: namespaceOf(exp.URI), Record: exp.RecordID, Version: exp.Version, Origin: string(exp.Origin)}
	if !exp.CreatedAt.IsZero() {
		p.Created = exp.CreatedAt.UTC().Format(time.RFC3339Nano)
	}
	before, imported := ProvenanceOf(meta)
	imported = imported && (exp.Origin == memory.OriginImport || exp.Origin == "")
	if was, there := fields[Imported]; imported && before.From != fromHome {
		p = before.exportedAs(p)
		p.Taken = false
	} else if there {
		if imported { // the export before that one is known there
			before.Was = nil
			was, _ = json.Marshal(before)
		}
		if p.instead(was); p.Was == nil {
			return meta
		}
	}
	delete(fields, Imported)
	if p.From == fromHome {
		p.Fields = namesOf(fields)
	}
	for range 2 {
		own, err := json.Marshal(p)
		fields[Imported] = own
		b, merr := json.Marshal(fields)
		if err == nil && merr == nil && len(b) <= memory.MaxMetadataBytes {
			return b
		}
		p.Fields = nil // their names have no room
	}
	return meta
}

// Missing is an exported item whose provenance names those of its sources that are not there.
func Missing(item Item, sources []string) Item {
	if p, ok := ProvenanceOf(item.Capture.Metadata); ok {
		p.Derived = strings.Join(sources, " ")
		if b, ok := p.in(item.Capture.Metadata); ok {
			item.Capture.Metadata = b
		}
	}
	return item
}

// namespaceOf is the namespace of a full uri; "" if there is none.
func namespaceOf(uri string) string {
	rest, ok := strings.CutPrefix(uri, "mem://")
	if !ok {
		return ""
	}
	ns, _, _ := strings.Cut(rest, "/")
	return ns
}

// relativeURI takes the namespace off an exported uri, so that the line can go
// into another one; a uri that only repeats the record id is dropped, because
// the new record has its own.
func relativeURI(uri, recordID string) string {
	rest, ok := strings.CutPrefix(uri, "mem://")
	if !ok {
		return uri
	}
	if _, path, found := strings.Cut(rest, "/"); found {
		rest = path
	}
	if rest == recordID {
		return ""
	}
	return rest
}
