package importer

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"mneme/memory"
)

// maxFrontMatter bounds the front matter of a file.
const maxFrontMatter = 64 << 10

// cutFrontMatter takes the YAML between two lines --- off the beginning of a file.
// lines is how many lines it takes; 0 if there is none.
func cutFrontMatter(text []byte) (front map[string]any, body []byte, lines int, err error) {
	rest, ok := bytes.CutPrefix(text, []byte("---\n"))
	if !ok {
		if rest, ok = bytes.CutPrefix(text, []byte("---\r\n")); !ok {
			return nil, text, 0, nil
		}
	}
	at, n := 0, 1
	for {
		line, _, more := bytes.Cut(rest[at:], []byte("\n"))
		n++
		if l := string(bytes.TrimRight(line, " \r")); l == "---" || l == "..." {
			body = rest[min(at+len(line)+1, len(rest)):]
			break
		}
		at += len(line) + 1
		if !more || at > maxFrontMatter {
			return nil, text, 0, nil // a rule, and text
		}
	}
	if err := yaml.Unmarshal(rest[:at], &front); err != nil {
		// As text, without the lines around it, of which Markdown would make a heading.
		return nil, slices.Concat([]byte("\n"), rest[:at], []byte("\n"), body), 0, fmt.Errorf("front matter: %w", err)
	}
	for k, v := range front {
		front[k] = plain(v, 0)
	}
	return front, body, n, nil
}

// plain makes of a YAML value what JSON can say.
func plain(v any, depth int) any {
	if depth > memory.MaxMetadataDepth {
		return nil
	}
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case time.Time:
		if v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0 {
			return v.Format("2006-01-02")
		}
		return v.Format(time.RFC3339Nano)
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e, depth+1)
		}
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			m[fmt.Sprint(k)] = plain(e, depth+1)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plain(e, depth+1)
		}
	}
	return v
}

// stringsOf reads a list, or words with commas or spaces between them.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	case []any:
		var out []string
		for _, e := range v {
			if e != nil {
				out = append(out, fmt.Sprint(e))
			}
		}
		return out
	case int, float64, bool:
		return []string{fmt.Sprint(v)}
	}
	return nil
}

// stringOf is a value of front matter as text, "" if it is a list or object.
func stringOf(v any) string {
	switch v := v.(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// stamp is the time that front matter gives, as it stands there; "" if there is none.
func stamp(front map[string]any) string {
	for _, key := range []string{"occurred_at", "date", "created", "created_at"} {
		if s := stringOf(front[key]); s != "" {
			return s
		}
	}
	return ""
}
