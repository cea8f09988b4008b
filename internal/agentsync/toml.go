package agentsync

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlEdit has one table in a TOML file, at its end, where a table may always stand.
type tomlEdit struct {
	table []string
	pairs object
}

// tomlTable is where a table stands.
type tomlTable struct {
	from, to int               // its lines, with those of tables below it that follow
	pairs    map[string][2]int // its keys and values, each as a whole
}

func decodeTOML(text []byte) (map[string]any, error) {
	var v map[string]any
	err := toml.Unmarshal(text, &v)
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, _ := at.Position()
		return nil, fmt.Errorf("line %d: %s", row, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return v, err
}

// find looks for the table; nil is none.
func (e tomlEdit) find(text []byte) (*tomlTable, error) {
	var p unstable.Parser
	p.Reset(text)
	var t *tomlTable
	inside, end := "", 0
	for p.NextExpression() {
		x := p.Expression()
		var keys []string
		first := -1
		for it := x.Key(); it.Next(); {
			if keys = append(keys, string(it.Node().Data)); first < 0 {
				first = int(it.Node().Raw.Offset)
			}
		}
		if first < 0 {
			continue
		}
		if x.Kind != unstable.KeyValue {
			inside = ""
			start := bytes.LastIndexByte(text[:first], '\n') + 1
			switch {
			case x.Kind == unstable.Table && slices.Equal(keys, e.table):
				inside, t = "pairs", &tomlTable{from: start, to: lineEnd(text, first), pairs: map[string][2]int{}}
			case t != nil && end == t.to && len(keys) > len(e.table) && slices.Equal(keys[:len(e.table)], e.table):
				inside, t.to = "below", lineEnd(text, first)
			}
			if inside != "" {
				end = t.to
			} else {
				end = -1
			}
			continue
		}
		if inside == "" {
			continue
		}
		from, to := int(x.Raw.Offset), int(x.Raw.Offset+x.Raw.Length)
		if t.to = lineEnd(text, to); inside == "pairs" && len(keys) == 1 {
			t.pairs[keys[0]] = [2]int{from, to}
		}
		end = t.to
	}
	return t, p.Error()
}

// lineEnd is the offset behind the line that has offset.
func lineEnd(text []byte, offset int) int {
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(text)
}

func (e tomlEdit) put(text []byte) ([]byte, error) {
	created := text == nil
	text, marked := bytes.CutPrefix(text, bom)
	before, err := decodeTOML(text)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		newline = "\r\n"
	}
	t, err := e.find(text)
	if err != nil {
		return nil, err
	}
	var out []byte
	switch there := lookup(before, e.table); {
	case t == nil && there != nil:
		return nil, fmt.Errorf("line 1: %s is there, in a form that is not edited: write it as a table [%s], or take it out", name(e.table), name(e.table))
	case t == nil:
		// An empty line before it, and a line end behind it only if the file ended with one: by that
		// take gives back the same bytes.
		block := "[" + name(e.table) + "]"
		for _, m := range e.pairs {
			block += newline + m.Name + " = " + renderTOML(m.Value)
		}
		switch {
		case created:
			block += newline
		case len(text) == 0 || text[len(text)-1] == '\n':
			block = newline + block + newline
		default:
			block = newline + newline + block
		}
		out = append(bytes.Clone(text), block...)
	case !strings.Contains(fmt.Sprint(there), "memctl"):
		return nil, fmt.Errorf("line %d: %s is there and is not Mneme's", 1+bytes.Count(text[:t.from], []byte("\n")), name(e.table))
	default:
		if out, err = e.update(text, t, there, newline); err != nil {
			return nil, err
		}
	}
	if err := e.onlyOurs(before, out); err != nil {
		return nil, err
	}
	if marked {
		out = slices.Concat(bom, out)
	}
	return out, nil
}

// update replaces the values that differ.
func (e tomlEdit) update(text []byte, t *tomlTable, there any, newline string) ([]byte, error) {
	have, _ := there.(map[string]any)
	j := &jsonText{text: text}
	var all []splice
	for _, m := range e.pairs {
		at, ok := t.pairs[m.Name]
		line := m.Name + " = " + renderTOML(m.Value)
		switch {
		case ok && sameTOML(have[m.Name], m.Value):
		case ok:
			all = append(all, splice{at[0], at[1], line})
		default:
			end := lineEnd(text, t.from)
			all = append(all, splice{end, end, line + newline})
		}
	}
	j.apply(all...)
	return j.text, nil
}

func sameTOML(have, want any) bool {
	a, errA := toml.Marshal(map[string]any{"v": have})
	b, errB := toml.Marshal(map[string]any{"v": want})
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// onlyOurs checks that an edit changed nothing else.
func (e tomlEdit) onlyOurs(before map[string]any, text []byte) error {
	after, err := decodeTOML(text)
	if err != nil { // as after mcp_servers = { … }
		return fmt.Errorf("line 1: [%s] cannot stand beside %s as it is written there: write that as tables, too, such as [%[2]s.NAME]", name(e.table), e.table[0])
	}
	if !reflect.DeepEqual(without(before, e.table), without(after, e.table)) {
		return fmt.Errorf("line 1: an edit of %s would change more than that", name(e.table))
	}
	return nil
}

// without is a document without a table, and without tables that are empty then.
func without(doc map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		if k != path[0] {
			out[k] = v
			continue
		}
		if in, ok := v.(map[string]any); ok && len(path) > 1 {
			if rest := without(in, path[1:]); len(rest) > 0 {
				out[k] = rest
			}
		} else if len(path) > 1 {
			out[k] = v
		}
	}
	return out
}

func lookup(doc map[string]any, path []string) any {
	var at any = doc
	for _, key := range path {
		in, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = in[key]
	}
	return at
}

func renderTOML(v any) string {
	if list, ok := v.([]string); ok {
		parts := make([]string, len(list))
		for i, s := range list {
			parts[i] = quoteTOML(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return quoteTOML(fmt.Sprint(v))
}

// quoteTOML writes a basic string, whose escapes are those of JSON.
func quoteTOML(s string) string { return (&jsonText{}).render(s, "") }

func (e tomlEdit) take(text []byte) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	rest, marked := bytes.CutPrefix(text, bom)
	before, err := decodeTOML(rest)
	if err != nil {
		return nil, err
	}
	t, err := e.find(rest)
	if err != nil || t == nil || !strings.Contains(fmt.Sprint(lookup(before, e.table)), "memctl") {
		return text, err
	}
	from := t.from
	if from == 0 && t.to == len(rest) && !marked {
		return nil, nil // the file was made for it
	}
	drop := func() {
		if from > 0 && rest[from-1] == '\n' {
			if from--; from > 0 && rest[from-1] == '\r' {
				from--
			}
		}
	}
	if line := rest[:from]; len(trimSpace(line)) == 0 || bytes.HasSuffix(bytes.ReplaceAll(line, []byte("\r"), nil), []byte("\n\n")) {
		drop() // the empty line
		if t.to == len(rest) && rest[len(rest)-1] != '\n' {
			drop()
		}
	}
	out := append(bytes.Clone(rest[:from]), rest[t.to:]...)
	if err := e.onlyOurs(before, out); err != nil {
		return nil, err
	}
	if marked {
		out = slices.Concat(bom, out)
	}
	return out, nil
}

func (e tomlEdit) has(text []byte) (bool, error) {
	if text == nil {
		return false, nil
	}
	out, err := e.take(text)
	return err == nil && !bytes.Equal(out, text), err
}
