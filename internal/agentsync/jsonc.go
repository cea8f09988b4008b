package agentsync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// item is one member of an object or element of an array, as offsets into the text.
type item struct {
	name       string
	before     hujson.Extra // what stands between the comma or bracket before it, and it
	start, end int          // of name and value
	value      *hujson.Value
	comma      int // behind it, -1 if there is none
}

// container is an object or array in the text.
type container struct {
	value    *hujson.Value
	items    []item
	trailing hujson.Extra // what stands behind the last comma and before the end; all of it if it is empty
}

// jsonText is a JSON file that may have comments and trailing commas. Every edit is a splice:
// what it does not concern keeps its bytes.
type jsonText struct {
	text    []byte
	newline string // "" for a file on one line
	indent  string
}

func readJSON(text []byte) (*jsonText, error) {
	j := &jsonText{text: text, newline: "\n", indent: "  "}
	if _, err := hujson.Parse(text); err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		j.newline = "\r\n"
	}
	if body := bytes.TrimSpace(text); len(body) > len("{}") && !bytes.ContainsRune(body, '\n') {
		j.newline, j.indent = "", ""
	}
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " \t")
		if len(rest) < len(line) && len(rest) > 0 && rest[0] == '"' {
			j.indent = string(line[:len(line)-len(rest)])
			break
		}
	}
	return j, nil
}

func (j *jsonText) parse() *hujson.Value {
	v, err := hujson.Parse(j.text)
	if err != nil {
		panic("an edit has broken a JSON file: " + err.Error())
	}
	return &v
}

// line is the number of the line that has offset.
func (j *jsonText) line(offset int) int { return 1 + bytes.Count(j.text[:offset], []byte("\n")) }

// open lists what is in a value, which has to be an object or an array.
func open(v *hujson.Value) (c container, ok bool) {
	c.value = v
	add := func(name string, first, last *hujson.Value) {
		c.items = append(c.items, item{name: name, before: first.BeforeExtra, start: first.StartOffset, end: last.EndOffset, value: last, comma: last.EndOffset + len(last.AfterExtra)})
	}
	trailing := false
	switch in := v.Value.(type) {
	case *hujson.Object:
		for i := range in.Members {
			m := &in.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			add(name.String(), &m.Name, &m.Value)
			trailing = m.Value.AfterExtra != nil
		}
		c.trailing = in.AfterExtra
	case *hujson.Array:
		for i := range in.Elements {
			add("", &in.Elements[i], &in.Elements[i])
			trailing = in.Elements[i].AfterExtra != nil
		}
		c.trailing = in.AfterExtra
	default:
		return c, false
	}
	if n := len(c.items); n > 0 && !trailing {
		c.items[n-1].comma = -1
	}
	return c, true
}

// member finds what a name stands for. A name that stands twice is refused: readers differ in
// which of them counts.
func (c container) member(name string) (found *item, twice bool) {
	for i := range c.items {
		if c.items[i].name == name {
			found, twice = &c.items[i], found != nil
		}
	}
	return found, twice
}

// at walks down to a path of member names. It returns the deepest container that is there and
// how much of the path is missing.
func (j *jsonText) at(path []string) (c container, missing []string, err error) {
	c, ok := open(j.parse())
	for i := 0; ; i++ {
		if !ok {
			return c, nil, notContainer{j.line(c.value.StartOffset), name(path[:i])}
		}
		if i == len(path) {
			return c, nil, nil
		}
		if _, isObject := c.value.Value.(*hujson.Object); !isObject {
			return c, nil, fmt.Errorf("line %d: %s is not an object", j.line(c.value.StartOffset), name(path[:i]))
		}
		found, twice := c.member(path[i])
		if twice {
			return c, nil, fmt.Errorf("line %d: %s stands twice", j.line(found.start), name(path[:i+1]))
		}
		if found == nil {
			return c, path[i:], nil
		}
		c, ok = open(found.value)
	}
}

// notContainer is where something else stands than an object or a list.
type notContainer struct {
	line int
	name string
}

func (e notContainer) Error() string {
	return fmt.Sprintf("line %d: %s is neither an object nor a list", e.line, e.name)
}

func name(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	return strings.Join(path, ".")
}

// indentOf is the indentation of the line that has offset, as far as that.
func (j *jsonText) indentOf(offset int) string {
	start := bytes.LastIndexByte(j.text[:offset], '\n') + 1
	line := j.text[start:offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// render writes a value so that its lines stand at an indentation.
func (j *jsonText) render(v any, at string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if j.newline != "" {
		enc.SetIndent(at, j.indent)
	}
	if list, ok := v.([]any); ok && j.newline == "" && len(list) == 1 { // made for this one
		return "[ " + j.render(list[0], at) + " ]"
	}
	if err := enc.Encode(v); err != nil {
		panic("a value of ours cannot be written: " + err.Error())
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", j.newline)
}

// write is the text of `"name": {"name": value}`, or of the value alone. On one line the
// brackets have spaces inside.
func (j *jsonText) write(within []string, value any, at string) string {
	if len(within) == 0 {
		return j.render(value, at)
	}
	name := j.render(within[0], "") + ": "
	if len(within) == 1 {
		return name + j.render(value, at)
	}
	inner := at + j.indent
	if j.newline == "" {
		return name + "{ " + j.write(within[1:], value, "") + " }"
	}
	return name + "{" + j.newline + inner + j.write(within[1:], value, inner) + j.newline + at + "}"
}

type splice struct {
	from, to int
	text     string
}

// apply carries out splices that are in order and apart.
func (j *jsonText) apply(all ...splice) {
	slices.SortStableFunc(all, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range all {
		out = append(append(out, j.text[at:s.from]...), s.text...)
		at = s.to
	}
	j.text = append(out, j.text[at:]...)
}

// insert puts a value last into a container, below the names that are missing there.
//
// An empty container gets it directly before its closing bracket, so that removing it gives
// back what stood between the brackets. One that insert made itself has the bracket on a line
// of its own; by that remove tells them apart.
func (j *jsonText) insert(c container, within []string, value any) {
	write := func(at string) string { return j.write(within, value, at) }
	if len(c.items) == 0 {
		end := c.value.EndOffset - 1
		j.apply(splice{end, end, write(j.indentOf(c.value.StartOffset))})
		return
	}
	last := c.items[len(c.items)-1]
	at, gap := j.indentOf(last.start), j.newline
	if j.newline == "" {
		gap, at = " ", ""
	}
	if last.comma >= 0 {
		after := last.comma + 1 + len(trimSpace(c.trailing))
		j.apply(splice{after, after, gap + at + write(at) + ","})
		return
	}
	closing := c.value.EndOffset - 1
	after := last.end + len(trimSpace(j.text[last.end:closing]))
	j.apply(splice{last.end, last.end, ","}, splice{after, after, gap + at + write(at)})
}

// remove takes an item out, and its container if that was made for it. It reports whether the
// container has to go, too; the text is unchanged then.
func (j *jsonText) remove(c container, i int) (empty bool) {
	it := c.items[i]
	start := it.start - len(it.before) + len(trimSpace(it.before))
	switch {
	case len(c.items) == 1 && it.end == c.value.EndOffset-1 && (it.comma < 0):
		j.apply(splice{it.start, it.end, ""})
	case len(c.items) == 1 && len(trimSpace(it.before)) == 0 && len(trimSpace(j.text[it.end:c.value.EndOffset-1])) <= 1:
		return true
	case len(c.items) == 1: // with comments of somebody's
		end := it.end
		if it.comma >= 0 {
			end = it.comma + 1
		}
		j.apply(splice{start, end, ""})
	case it.comma >= 0:
		j.apply(splice{start, it.comma + 1, ""})
	default:
		comma := c.items[i-1].comma
		j.apply(splice{comma, comma + 1, ""}, splice{start, it.end, ""})
	}
	return false
}

func trimSpace(b []byte) []byte { return bytes.TrimRight(b, " \t\r\n") }

// object is a JSON object whose members stand in the order given.
type object []struct {
	Name  string
	Value any
}

// MarshalJSON writes it.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		var part bytes.Buffer
		enc := json.NewEncoder(&part)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m.Name); err != nil {
			return nil, err
		}
		b = append(append(b, bytes.TrimSpace(part.Bytes())...), ':')
		part.Reset()
		if err := enc.Encode(m.Value); err != nil {
			return nil, err
		}
		b = append(b, bytes.TrimSpace(part.Bytes())...)
	}
	return append(b, '}'), nil
}

// same reports whether a value in the file says what a value of ours says.
func same(v *hujson.Value, ours any) bool {
	clone := v.Clone()
	clone.BeforeExtra, clone.AfterExtra = nil, nil
	clone.Standardize()
	want, err := json.Marshal(ours)
	return err == nil && canonical(clone.Pack()) == canonical(want)
}

// canonical is JSON with its members in the order of their names.
func canonical(b []byte) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(b)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(b)
	}
	return string(out)
}
