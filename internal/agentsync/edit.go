package agentsync

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// edit is what Mneme has in one file. A nil text is a file that is not there.
type edit interface {
	put(text []byte) ([]byte, error)  // the file with it
	take(text []byte) ([]byte, error) // and without
	has(text []byte) (bool, error)    // any of it
}

// bom is how some editors mark UTF-8.
var bom = []byte("\xef\xbb\xbf")

// want is one thing that a JSON file should have: a member with the keys of value, or an
// element of a list that runs memctl hook.
type want struct {
	path    []string
	value   any
	element bool
}

// jsonEdit has wants in a JSON file.
type jsonEdit struct {
	wants []want
	// version is a member that its host insists on beside the first name of the wants; it comes
	// and goes with that. "" is none.
	version string
	number  any
}

func (e jsonEdit) put(text []byte) ([]byte, error) {
	created := text == nil
	if created {
		text = []byte("{\n}\n")
		j, err := readJSON(text)
		if err != nil {
			return nil, err
		}
		first := e.wants[0]
		value := first.value
		if first.element {
			value = []any{value}
		}
		j.text = []byte("{\n  " + j.write(first.path, value, "  ") + "\n}\n")
		text = j.text
	}
	return onJSON(text, func(j *jsonText) error {
		_, missing, err := j.at(e.wants[0].path[:1])
		if err != nil {
			return err
		}
		for _, w := range e.wants {
			if err := j.put(w); err != nil {
				return err
			}
		}
		if root, _ := open(j.parse()); e.version != "" && (created || len(missing) > 0) {
			if found, _ := root.member(e.version); found == nil {
				j.insert(root, []string{e.version}, e.number)
			}
		}
		return nil
	})
}

// onJSON lets f edit a text. The mark of its encoding is kept. The parser wants an end of line behind a
// comment; a text that ends in one without it is given one, and back without.
func onJSON(text []byte, f func(*jsonText) error) ([]byte, error) {
	rest, marked := bytes.CutPrefix(text, bom)
	if len(bytes.TrimSpace(rest)) == 0 {
		return nil, errors.New("line 1: the file is empty; put {} into it, or delete it")
	}
	j, err := readJSON(rest)
	unended := false
	if err != nil {
		ended, stillBroken := readJSON(append(bytes.Clone(rest), '\n'))
		if stillBroken != nil {
			return nil, err
		}
		j, unended = ended, true
	}
	if err := f(j); err != nil {
		return nil, err
	}
	if unended && j.text != nil {
		j.text = bytes.TrimSuffix(j.text, []byte("\n"))
	}
	if marked && j.text != nil {
		j.text = slices.Concat(bom, j.text)
	}
	return j.text, nil
}

func (j *jsonText) put(w want) error {
	if w.element {
		return j.putElement(w)
	}
	c, missing, err := j.at(w.path)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		j.insert(c, missing, w.value)
		return nil
	}
	if c.value.Value.Kind() != '{' || !runsMemctl(j.text[c.value.StartOffset:c.value.EndOffset]) {
		return fmt.Errorf("line %d: %s is there and is not Mneme's", j.line(c.value.StartOffset), name(w.path))
	}
	for _, m := range w.value.(object) {
		c, _, err := j.at(w.path) // anew, for an edit moves what follows
		if err != nil {
			return err
		}
		found, twice := c.member(m.Name)
		switch {
		case twice:
			return fmt.Errorf("line %d: %s.%s stands twice", j.line(found.start), name(w.path), m.Name)
		case found == nil:
			j.insert(c, []string{m.Name}, m.Value)
		case !same(found.value, m.Value):
			j.apply(splice{found.value.StartOffset, found.value.EndOffset, j.render(m.Value, j.indentOf(found.start))})
		}
	}
	return nil
}

func (j *jsonText) putElement(w want) error {
	c, missing, err := j.at(w.path)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		j.insert(c, missing, []any{w.value})
		return nil
	}
	if c.value.Value.Kind() != '[' {
		return fmt.Errorf("line %d: %s is not a list", j.line(c.value.StartOffset), name(w.path))
	}
	for _, it := range c.items {
		all, ours := hooksOf(it.value)
		switch {
		case len(ours) == 0:
		case all && same(it.value, w.value), !all && same(ours[0], inner(w.value)):
			return nil
		case all:
			j.apply(splice{it.value.StartOffset, it.value.EndOffset, j.render(w.value, j.indentOf(it.start))})
			return nil
		default: // beside somebody's in one group
			j.apply(splice{ours[0].StartOffset, ours[0].EndOffset, j.render(inner(w.value), j.indentOf(ours[0].StartOffset))})
			return nil
		}
	}
	j.insert(c, nil, w.value)
	return nil
}

// inner is the one hook of a group.
func inner(group any) any {
	for _, m := range group.(object) {
		if list, ok := m.Value.([]any); ok && m.Name == "hooks" {
			return list[0]
		}
	}
	return group
}

// memctlHook is how a command of ours looks, however its path is quoted.
var memctlHook = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`memctl[\w.-]*['"\\]* hook --agent `) })

// runsMemctl reports an entry of a server, whose command and arguments may be apart.
func runsMemctl(entry []byte) bool {
	return regexp.MustCompile(`memctl[\w.-]*"`).Match(entry) && bytes.Contains(entry, []byte(`"mcp"`))
}

// hooksOf lists the hooks of ours in an element: itself, or members of the group that it is.
func hooksOf(v *hujson.Value) (all bool, ours []*hujson.Value) {
	c, ok := open(v)
	if !ok || v.Value.Kind() != '{' {
		return false, nil
	}
	if group, _ := c.member("hooks"); group != nil {
		if in, ok := open(group.value); ok {
			for _, it := range in.items {
				if memctlHook().MatchString(said(it.value)) {
					ours = append(ours, it.value)
				}
			}
			return len(ours) == len(in.items), ours
		}
	}
	if memctlHook().MatchString(said(v)) {
		return true, []*hujson.Value{v}
	}
	return false, nil
}

// said are the commands of a hook.
func said(v *hujson.Value) string {
	c, ok := open(v)
	if !ok {
		return ""
	}
	var all []string
	for _, it := range c.items {
		if lit, ok := it.value.Value.(hujson.Literal); ok && lit.Kind() == '"' && slices.Contains([]string{"command", "bash", "powershell"}, it.name) {
			all = append(all, lit.String())
		}
	}
	return strings.Join(all, "\n")
}

func (e jsonEdit) take(text []byte) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	return onJSON(text, func(j *jsonText) error {
		if e.version == "" {
			return e.takeAll(j)
		}
		// The version is Mneme's if it stands behind what goes as a whole.
		try := &jsonText{text: bytes.Clone(j.text), newline: j.newline, indent: j.indent}
		if err := e.takeAll(try); err != nil || try.text == nil {
			j.text = try.text
			return err
		}
		root, ok := open(j.parse())
		left, _ := open(try.parse())
		if !ok {
			return nil
		}
		top, _ := root.member(e.wants[0].path[0])
		version, _ := root.member(e.version)
		if gone, _ := left.member(e.wants[0].path[0]); top == nil || version == nil || gone != nil || version.start < top.start || !same(version.value, e.number) {
			j.text = try.text
			return nil
		}
		i := slices.IndexFunc(root.items, func(it item) bool { return it.name == e.version })
		j.remove(root, i)
		return e.takeAll(j)
	})
}

// takeAll takes the wants out, the last first, which is how they went in.
func (e jsonEdit) takeAll(j *jsonText) error {
	for _, w := range slices.Backward(e.wants) {
		for again := true; again && j.text != nil; {
			var err error
			if again, err = j.takeOne(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOne takes one thing of a want out, and reports whether there may be more.
func (j *jsonText) takeOne(w want) (again bool, err error) {
	parent := w.path
	if !w.element {
		parent = w.path[:len(w.path)-1]
	}
	c, missing, err := j.at(parent)
	if err != nil || len(missing) > 0 {
		return false, err
	}
	for i, it := range slices.Backward(c.items) {
		if w.element {
			all, ours := hooksOf(it.value)
			if len(ours) == 0 {
				continue
			}
			if !all {
				group, _ := open(it.value)
				inside, _ := group.member("hooks")
				in, _ := open(inside.value)
				j.remove(in, slices.IndexFunc(in.items, func(one item) bool { return one.start == ours[0].StartOffset }))
				return true, nil
			}
		} else if it.name != w.path[len(w.path)-1] || !runsMemctl(j.text[it.value.StartOffset:it.value.EndOffset]) {
			continue
		}
		return true, j.prune(parent, c, i)
	}
	return false, nil
}

// prune removes an item of the container at path, and what was made around it.
func (j *jsonText) prune(path []string, c container, i int) error {
	for j.remove(c, i) {
		if len(path) == 0 {
			j.text = nil
			return nil
		}
		last := path[len(path)-1]
		path = path[:len(path)-1]
		up, _, err := j.at(path)
		if err != nil {
			return err
		}
		c, i = up, slices.IndexFunc(up.items, func(it item) bool { return it.name == last })
	}
	return nil
}

func (e jsonEdit) has(text []byte) (bool, error) {
	if text == nil {
		return false, nil
	}
	without, err := e.take(text)
	return err == nil && !bytes.Equal(text, without), err
}

// ownFile is a file that is Mneme's as a whole.
type ownFile struct{ text string }

func (e ownFile) put(text []byte) ([]byte, error) {
	if text != nil && !e.ours(text) {
		return nil, errors.New("line 1: the file is there and is not Mneme's")
	}
	return []byte(e.text), nil
}

func (e ownFile) take(text []byte) ([]byte, error) {
	if text != nil && !e.ours(text) {
		return text, nil
	}
	return nil, nil
}

func (e ownFile) has(text []byte) (bool, error) { return text != nil && e.ours(text), nil }

func (ownFile) ours(text []byte) bool {
	return memctlHook().Match(text) || bytes.Contains(text, []byte(pluginMark))
}
