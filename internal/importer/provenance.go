package importer

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"mneme/memory"
)

// Imported is the key of metadata under which provenance stands.
const Imported = "imported"

// Provenance says where an imported memory came from.
type Provenance struct {
	From    string `json:"from"`              // the format
	Source  string `json:"source,omitempty"`  // Options.Source, or the name of the file or folder
	Folder  string `json:"folder,omitempty"`  // where the folder lay that the source is named after, as far as it tells two of one name apart
	Path    string `json:"path,omitempty"`    // of a file inside it
	Lines   string `json:"lines,omitempty"`   // of that file: "12-40"
	Line    int    `json:"line,omitempty"`    // the same, of one line
	ID      string `json:"id,omitempty"`      // the memory's id there
	Hash    string `json:"hash,omitempty"`    // of what was taken of the file
	Says    string `json:"says,omitempty"`    // of what is known by its id: digest of what the import made of it
	Key     string `json:"key,omitempty"`     // and of that id and whose it is, which versions behind the first do not have themselves
	Section string `json:"section,omitempty"` // of that without the headings above it, where there are some
	Home    string `json:"home,omitempty"`    // of an export of ours of what had a provenance already: the namespace that it is from; of others Source is
	Record  string `json:"record,omitempty"`  // of an export of ours: the record's id
	Version int    `json:"version,omitempty"` // and version
	Origin  string `json:"origin,omitempty"`  // and how it came to be
	Created string `json:"created,omitempty"` // and when that version was sealed
	Derived string `json:"derived,omitempty"` // and what it was derived from that was not there
	Taken   bool   `json:"taken,omitempty"`   // an import is about to forget it: it was no longer in its source, or is taken back

	// Fields are the names of what an import wrote beside its provenance, where it may revise
	// the memory: the next one replaces them, and leaves what others keep there.
	Fields []string `json:"fields,omitempty"`

	// Was is what stood in the place of the provenance, and was none, or that of an export before.
	Was json.RawMessage `json:"was,omitempty"`
}

// Exported is the namespace that an export of ours is from; "" of anything else.
func (p *Provenance) Exported() string {
	switch {
	case p.Record == "":
		return ""
	case p.Home != "":
		return p.Home
	}
	return p.Source
}

// CopyOf is the record of a namespace of which what was exported elsewhere is a copy, and which version of it: a copy, or
// a copy of a copy of what was not imported at home, whose provenance says so. It is "" of anything else.
func (p *Provenance) CopyOf(namespace string) (record string, version int) {
	if p.Exported() == namespace {
		return p.Record, p.Version
	}
	var before Provenance
	if len(p.Was) > 0 && json.Unmarshal(p.Was, &before) == nil && before.Exported() == namespace {
		return before.Record, before.Version
	}
	return "", 0
}

// IsFrom reports whether a provenance is of a source and in a format; "" is any. That of an export
// may be of two: of that, and of what was imported at home.
func (p *Provenance) IsFrom(source, format string) bool {
	is := func(s, f string) bool { return (source == "" || source == s) && (format == "" || format == f) }
	return is(p.Source, p.From) || p.Home != "" && is(p.Home, fromHome)
}

// exportedAs is a provenance with what an export of ours says of a record.
func (p Provenance) exportedAs(exp Provenance) Provenance {
	p.Home, p.Record, p.Version, p.Origin, p.Created = exp.Exported(), exp.Record, exp.Version, exp.Origin, exp.Created
	return p
}

// Own is the digest of a section alone, whatever headings stand above it.
func (p *Provenance) Own() string { return first(p.Section, p.Hash) }

// ProvenanceOf reads the provenance in metadata; ok is false if there is none, and if what
// stands in its place is something else.
func ProvenanceOf(metadata json.RawMessage) (p Provenance, ok bool) {
	var m struct {
		Imported *Provenance `json:"imported"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &m) != nil || m.Imported == nil || m.Imported.From == "" {
		return Provenance{}, false
	}
	return *m.Imported, true
}

// OriginOf is the provenance of an imported memory. Lines say nothing of theirs, so that
// they go in as they are: their format is all that is known.
func OriginOf(metadata json.RawMessage) Provenance {
	p, ok := ProvenanceOf(metadata)
	if !ok {
		p = Provenance{From: "jsonl"}
	}
	return p
}

// Taken is metadata with the note that an import is about to forget the memory; ok is false
// where that has no place.
func Taken(metadata json.RawMessage) (marked json.RawMessage, ok bool) {
	p := OriginOf(metadata)
	p.Taken = true
	return p.in(metadata)
}

// TakenBack are the formats of which an import can be taken back: all that become memories,
// and exports of ours, which are called so whatever they were written as.
func TakenBack() []string {
	var names []string
	for _, name := range Formats() {
		if name != toGraph {
			names = append(names, name)
		}
	}
	return append(names, fromHome)
}

// toGraph is the format that becomes no memories.
const toGraph = "mcp-memory"

// fromHome is the From of what an export of ours brought from another namespace.
const fromHome = "mneme"

// instead keeps what stood in the place of a provenance, as far as it has room there.
func (p *Provenance) instead(was json.RawMessage) {
	if len(was) <= memory.MaxMetadataBytes/2 && !deep(slices.Concat([]byte("["), was, []byte("]"))) {
		p.Was = was
	}
}

// describe makes metadata of fields and a provenance. Fields that have no room are left out, the
// largest first, and those that metadata cannot have.
func (item *Item) describe(p Provenance, fields map[string]any) {
	parts := map[string]json.RawMessage{}
	total := 64
	left := func(k, why string) { item.Left = append(item.Left, Skip{Where: clean(k, 80), Why: why}) }
	for k, v := range fields {
		if isEmpty(v) {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil || !utf8.ValidString(k) || deep(b) {
			left(k, "a field that metadata cannot have")
			continue
		}
		if k == Imported {
			p.instead(b)
			continue
		}
		parts[k] = b
		total += len(b) + len(k) + 8
	}
	own, err := json.Marshal(p)
	if err != nil {
		return // a struct of strings and numbers always encodes
	}
	total += len(own)
	for _, k := range slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		if d := len(parts[b]) - len(parts[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}) {
		if total <= memory.MaxMetadataBytes {
			break
		}
		total -= len(parts[k]) + len(k) + 8
		delete(parts, k)
		left(k, "a field for which metadata have no room")
	}
	slices.SortFunc(item.Left, func(a, b Skip) int { return strings.Compare(a.Where, b.Where) })
	parts[Imported] = own
	b := make([]byte, 0, total)
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		key, err := json.Marshal(k)
		if err != nil {
			continue // it is UTF-8
		}
		b = append(append(b, ','), key...)
		b = append(append(b, ':'), parts[k]...)
	}
	b[0] = '{'
	item.Capture.Metadata = append(b, '}')
}

// stillExported is what an import writes over the copy of an exported record, which stays one.
func stillExported(there, written json.RawMessage) json.RawMessage {
	is, _ := ProvenanceOf(there)
	p, ok := ProvenanceOf(written)
	if is.Home == "" || !ok || p.Record != "" {
		return written
	}
	p = p.exportedAs(is)
	if b, ok := p.in(written); ok {
		return b
	}
	return written
}

// maxFieldNames bounds the names that a provenance says an import wrote.
const maxFieldNames = memory.MaxMetadataBytes / 8

// say has the provenance of an item that is known by its id say what the item is, so that a later import
// knows whether that has changed there since, whatever was revised here. Metadata that is full says nothing.
func (item *Item) say() {
	c := item.Capture
	key := hash(c.Agent, c.ID)
	c.ID, c.Agent, c.Scope = "", "", ""
	all, err := json.Marshal(c)
	p, ok := ProvenanceOf(c.Metadata)
	if err != nil || !ok {
		return
	}
	p.Says, p.Key = hash(string(all)), key
	if meta, ok := p.in(c.Metadata); ok {
		item.Capture.Metadata, item.Provenance = meta, &p
	}
}

// in is metadata with a provenance in place of the one that is there; ok is false where it has no room.
func (p *Provenance) in(metadata json.RawMessage) (json.RawMessage, bool) {
	fields := map[string]json.RawMessage{}
	if len(metadata) > 0 && json.Unmarshal(metadata, &fields) != nil {
		return nil, false
	}
	own, err := json.Marshal(p)
	fields[Imported] = own
	b, merr := json.Marshal(fields)
	return b, err == nil && merr == nil && len(b) <= memory.MaxMetadataBytes
}

// describeWhole is describe of what a later import may revise: the provenance names the fields.
func (item *Item) describeWhole(p Provenance, fields map[string]any) {
	p.Fields = namesOf(fields)
	item.describe(p, fields)
}

// namesOf are the names of fields as a provenance has them; none where they are too long.
func namesOf[V any](fields map[string]V) []string {
	var names []string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != Imported && !isEmpty(any(fields[name])) {
			names = append(names, name)
			size += len(name)
		}
	}
	if size > maxFieldNames {
		return nil
	}
	return names
}

// Over is what the metadata of a record become where an import writes its own over them. The
// import has what it writes and what an import wrote before; the rest is of others, and stays,
// and so does what says of which exported record it is a copy. Fields of the import that have no
// room beside that are left out, the largest first.
func Over(there, written json.RawMessage) json.RawMessage {
	written = stillExported(there, written)
	fields, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(there) > 0 && json.Unmarshal(there, &fields) != nil || len(written) > 0 && json.Unmarshal(written, &own) != nil {
		return written // the one has no fields, or the other
	}
	if p, ok := ProvenanceOf(there); ok {
		for _, name := range p.Fields {
			delete(fields, name)
		}
	}
	delete(fields, Imported)
	for name := range own {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return written
	}
	maps.Copy(fields, own)
	names := slices.SortedFunc(maps.Keys(own), func(a, b string) int {
		return cmp.Or(len(own[b])-len(own[a]), strings.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return name == Imported })
	for {
		b, err := json.Marshal(fields)
		if err != nil {
			return written // they were decoded
		}
		if len(b) <= memory.MaxMetadataBytes || len(names) == 0 {
			return b
		}
		delete(fields, names[0])
		names = names[1:]
	}
}
