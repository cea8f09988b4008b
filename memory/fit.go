package memory

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// DefaultMaxText is how many characters of a text searches, lists and timelines give
	// where the request does not say.
	DefaultMaxText = 1000
	// MaxBudget is the largest budget.
	MaxBudget = 10_000_000
)

// Fit says how much of each hit of a search, and of each record of a list or a timeline,
// is wanted, so that the answer fits the window of an agent.
type Fit struct {
	MaxText *int     `json:"max_text,omitempty"` // characters of each text, 0 to MaxTextBytes; nil = DefaultMaxText
	Fields  []string `json:"fields,omitempty"`   // the only fields that are given; empty = all
	Budget  *int     `json:"budget,omitempty"`   // tokens (cl100k_base) that the whole answer may have as compact JSON, 1 to MaxBudget; nil = no bound
}

// LeftOff says what an answer would have had beyond its budget.
type LeftOff struct {
	Count int    `json:"count"` // hits or records
	Hint  string `json:"hint"`  // how to get them
}

// hitFields and recordFields are the names that Fields takes, as JSON has them.
var (
	hitFields    = fieldNames(reflect.TypeFor[Hit]())
	recordFields = fieldNames(reflect.TypeFor[Record]())
)

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// validate checks it for an answer whose hits or records have the fields known.
func (f *Fit) validate(known []string) *Error {
	if n := f.MaxText; n != nil && (*n < 0 || *n > MaxTextBytes) {
		return Errorf(CodeInvalid, "max_text is %d, it must lie between 0 and %d", *n, MaxTextBytes)
	}
	if n := f.Budget; n != nil && (*n < 1 || *n > MaxBudget) {
		return Errorf(CodeInvalid, "budget is %d tokens, it must lie between 1 and %d", *n, MaxBudget)
	}
	if len(f.Fields) > MaxFilterValues {
		return Errorf(CodeTooLarge, "fields has %d names, at most %d are allowed", len(f.Fields), MaxFilterValues)
	}
	for _, name := range f.Fields {
		if !slices.Contains(known, name) {
			return Errorf(CodeInvalid, "field %q is unknown", clip(name, 40)).WithHint("fields are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// values adds it to query parameters.
func (f *Fit) values(v url.Values) {
	for name, n := range map[string]*int{"max_text": f.MaxText, "budget": f.Budget} {
		if n != nil {
			v.Set(name, strconv.Itoa(*n))
		}
	}
	setValue(v, "fields", strings.Join(f.Fields, ","))
}

// Text cuts a text to MaxText characters, and reports whether it did.
func (f *Fit) Text(s string) (text string, cut bool) {
	n := DefaultMaxText
	if f.MaxText != nil {
		n = *f.MaxText
	}
	if len(s) <= n {
		return s, false
	}
	end := 0
	for ; n > 0 && end < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end], end < len(s)
}

// Shown is the hit in JSON, with only the fields that are named, in their usual order; all
// where none are. A text that was cut says so whether or not that is asked for.
func (h *Hit) Shown(fields []string) (json.RawMessage, error) { return picked(h, fields, hitFields) }

// Shown is like Hit.Shown.
func (r *Record) Shown(fields []string) (json.RawMessage, error) {
	return picked(r, fields, recordFields)
}

func picked(v any, fields, known []string) (json.RawMessage, error) {
	whole, err := json.Marshal(v)
	if err != nil || len(fields) == 0 {
		return whole, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(whole, &all); err != nil {
		return nil, err
	}
	b := []byte{'{'}
	for _, name := range known {
		value, ok := all[name]
		if !ok || !slices.Contains(fields, name) && !(name == "truncated" && slices.Contains(fields, "text")) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"', ':')
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// eachShown encodes hits or records.
func eachShown[T any](items []T, show func(*T) (json.RawMessage, error)) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(items))
	for i := range items {
		var err error
		if out[i], err = show(&items[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Shown is the answer as JSON is made of it for who asked for these fields: itself where
// none are named. It fails if a hit cannot be encoded.
func (r SearchResponse) Shown(fields []string) (any, error) {
	if len(fields) == 0 {
		return r, nil
	}
	type others SearchResponse
	hits, err := eachShown(r.Results, func(h *Hit) (json.RawMessage, error) { return h.Shown(fields) })
	return struct {
		Results []json.RawMessage `json:"results"`
		others
	}{hits, others(r)}, err
}

// Shown is like SearchResponse.Shown.
func (l RecordList) Shown(fields []string) (any, error) {
	if len(fields) == 0 {
		return l, nil
	}
	type others RecordList
	records, err := eachShown(l.Records, func(r *Record) (json.RawMessage, error) { return r.Shown(fields) })
	return struct {
		Records []json.RawMessage `json:"records"`
		others
	}{records, others(l)}, err
}

// Shown is like SearchResponse.Shown.
func (t Timeline) Shown(fields []string) (any, error) {
	if len(fields) == 0 {
		return t, nil
	}
	type others Timeline
	all, err := eachShown(slices.Concat([]Record{t.Anchor}, t.Before, t.After), func(r *Record) (json.RawMessage, error) { return r.Shown(fields) })
	if err != nil {
		return nil, err
	}
	after := 1 + len(t.Before)
	return struct {
		Anchor json.RawMessage   `json:"anchor"`
		Before []json.RawMessage `json:"before"`
		After  []json.RawMessage `json:"after"`
		others
	}{all[0], all[1:after], all[after:], others(t)}, nil
}
