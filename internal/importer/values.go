package importer

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mneme/memory"
)

// fieldsIn are the fields of a JSON object as they stand; of anything else, one field
// that holds it.
func fieldsIn(raw json.RawMessage) map[string]any {
	fields := map[string]any{}
	if len(raw) == 0 {
		return fields
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		fields["metadata"] = raw
		if !json.Valid(raw) {
			fields["metadata"] = string(raw)
		}
	}
	for k, v := range parts {
		fields[k] = v
	}
	return fields
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []string:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case json.RawMessage:
		return len(v) == 0 || string(v) == "null"
	}
	return false
}

// deep reports whether JSON is nested deeper than metadata may be, one level less
// for the object that it goes into.
func deep(b []byte) bool {
	depth := 0
	inString := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth >= memory.MaxMetadataDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// sourceID makes a client id of an id that something has in its own tool. Ids that
// do not fit are digested.
func sourceID(prefix string, parts ...string) string {
	id := prefix + "/" + strings.Join(parts, "/")
	plain := len(id) <= memory.MaxClientID
	for i := 0; plain && i < len(id); i++ {
		plain = id[i] > 0x20 && id[i] < 0x7f
	}
	if plain {
		return id
	}
	return contentID(prefix, parts...)
}

// contentID makes a client id of the digest of parts.
func contentID(prefix string, parts ...string) string {
	return prefix + "/" + hash(parts...)
}

// hash is the digest of parts, 32 hexadecimal characters.
func hash(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = strconv.AppendInt(b, int64(len(p)), 10)
		b = append(b, ':')
		b = append(b, p...)
	}
	return hex.EncodeToString(digest(b)[:16])
}

// cleanTags makes tags that memory takes of those of another tool: in order,
// without repeats, on one line, not too long and not too many. whole is false where some were too long or too many.
func cleanTags(tags ...string) (out []string, whole bool) {
	whole = true
	for _, tag := range tags {
		t := clean(tag, memory.MaxTagRunes)
		whole = whole && (len(tag) <= memory.MaxTagRunes || clean(tag, memory.MaxTagRunes+1) == t)
		if t == "" || slices.Contains(out, t) {
			continue
		}
		if len(out) == memory.MaxTags {
			return out, false
		}
		out = append(out, t)
	}
	return out, whole
}

// clean makes one line of s of at most n characters.
func clean(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r < 0x20 || r == 0x7f }), " ")
	if utf8.RuneCountInString(s) > n {
		s = string([]rune(s)[:n])
	}
	return s
}

// conversation names a conversation of another tool.
func conversation(prefix string, parts ...string) string {
	s := clean(prefix+"/"+strings.Join(parts, "/"), memory.MaxConversation)
	if len(s) > memory.MaxConversation || s == prefix+"/" {
		return contentID(prefix, parts...)
	}
	return s
}

// slug makes a segment of a uri of words for people: letters and digits of any
// script, everything else one hyphen.
func slug(s string) string {
	var sb strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
			gap = sb.Len() > 0
			continue
		}
		if gap {
			sb.WriteByte('-')
			gap = false
		}
		sb.WriteRune(r)
		if sb.Len() > 60 {
			break
		}
	}
	if sb.Len() == 0 {
		return "section"
	}
	return sb.String()
}

// uriPath makes a uri of segments that a uri may have; one that would be too long
// ends in a digest.
func uriPath(path string) string {
	segs := strings.Split(strings.ReplaceAll(clean(path, 4096), "://", "/"), "/")
	segs = slices.DeleteFunc(segs, func(s string) bool { return s == "" || s == "." || s == ".." })
	out := strings.Join(segs, "/")
	if len(out) > memory.MaxURIBytes/2 {
		cut := memory.MaxURIBytes / 3
		for !utf8.RuneStart(out[cut]) {
			cut--
		}
		out = strings.TrimRight(out[:cut], "/") + "~" + hash(path)[:16]
	}
	return out
}

// timeLayouts are the ways in which other tools write times.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "2006/01/02"}

// errYears is the error of a time that no memory may have.
var errYears = errors.New("lies outside the years 1700 to 2250")

// parseTime reads a time of another tool, UTC where it does not say; nil if it is
// empty. An error names what was not understood, or is errYears.
func parseTime(s string) (*time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			if t.IsZero() { // as programs write that there is none
				return nil, nil
			}
			return within(inRange(t), s)
		}
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n > 1e8 {
		return within(unixTime(n), s)
	}
	return nil, fmt.Errorf("the time %q is not understood", clean(s, 40))
}

// within is a time that was read, or errYears where it is none that a memory may have.
func within(t *time.Time, s string) (*time.Time, error) {
	if t == nil {
		return nil, fmt.Errorf("the time %q %w", clean(s, 40), errYears)
	}
	return t, nil
}

// unixTime reads seconds, or milliseconds, since 1970; nil for none.
func unixTime(n float64) *time.Time {
	if n <= 0 || n > 1e14 {
		return nil
	}
	if n > 1e11 {
		n /= 1000
	}
	return inRange(time.UnixMicro(int64(n * 1e6)))
}

func inRange(t time.Time) *time.Time {
	if t.Year() < 1700 || t.Year() > 2250 {
		return nil
	}
	t = t.UTC()
	return &t
}

// speak gives a capture the agent and scope of a speaker: an item is its speaker's
// own unless the import is for one agent.
func (o *Options) speak(c *memory.Capture, agent string) {
	if c.Scope == "" {
		c.Scope = o.Scope
	}
	c.Agent = agent
	if agent == "" || c.Scope == memory.ScopeAgent {
		c.Agent = o.Agent
	}
}
