package hooks

import (
	"bytes"
	"encoding/json"
	"strings"
)

// fields is a JSON object of which nobody promised anything: what has another type than it
// should is as good as missing.
type fields map[string]json.RawMessage

// parseFields reads an object; it may begin with a byte order mark.
func parseFields(b []byte) (fields, error) {
	var f fields
	err := json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf")), &f)
	return f, err
}

func (f fields) has(name string) bool { _, ok := f[name]; return ok }

func (f fields) null(name string) bool { return string(f[name]) == "null" }

// text is the first of the named fields that is a string with something in it.
func (f fields) text(names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(f[name], &s) == nil && strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// inside is the object in a field, or the one whose JSON a string there is; empty if neither.
func (f fields) inside(name string) fields {
	raw := f[name]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = json.RawMessage(s)
	}
	var in fields
	if json.Unmarshal(raw, &in) != nil {
		return nil
	}
	return in
}

func (f fields) flag(name string) bool { return string(f[name]) == "true" }

// list is the strings of an array; others are left out.
func (f fields) list(name string) []string {
	var raw []json.RawMessage
	if json.Unmarshal(f[name], &raw) != nil {
		return nil
	}
	var out []string
	for _, r := range raw {
		var s string
		if json.Unmarshal(r, &s) == nil && s != "" {
			out = append(out, s)
		}
	}
	return out
}
