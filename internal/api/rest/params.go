package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme/memory"
)

// Parameters that several routes share.
var (
	pathNS            = param{name: "ns", in: "path", about: "The namespace.", length: 63}
	pathID            = param{name: "id", in: "path", about: "The record's id.", length: 26}
	pathIDBegun       = param{name: "id", in: "path", about: "The record's id, the first 6 or more characters of it that no other record has, or its uri's path.", length: memory.MaxURIBytes}
	paramAs           = param{name: "as", in: "query", about: "The agent that is acting.", length: 63}
	headerAgent       = param{name: "Mneme-Agent", in: "header", about: "The agent that is acting, if nothing else says so.", length: 63}
	headerIfMatch     = param{name: "If-Match", in: "header", about: "The version the record must stand at."}
	headerIdempotency = param{name: "Idempotency-Key", in: "header", about: "Makes it safe to send again. Items of an array get <key>/0, <key>/1, …", length: memory.MaxClientID}
	paramCursor       = param{name: "cursor", in: "query", about: "The cursor of the page before."}
	paramLimit        = param{name: "limit", in: "query", about: "At most this many.", kind: "integer", from: 1, to: memory.MaxLimit}
	paramSince        = param{name: "since", in: "query", about: "From this time on.", kind: "date-time"}
	paramUntil        = param{name: "until", in: "query", about: "Before this time.", kind: "date-time"}
	paramWait         = param{name: "wait", in: "query", about: "How far the write must have come; applied unless said.", enum: []any{"accepted", "applied", "searchable"}}
	paramOrigin       = param{name: "origin", in: "query", about: "How the memories came to be; capture unless said.", enum: []any{"capture", "import", "hook"}}
	fitParams         = []param{
		{name: "max_text", in: "query", about: "Characters of each text; what is cut says truncated. 1000 unless said.", kind: "integer", to: memory.MaxTextBytes},
		{name: "fields", in: "query", about: "Only these fields of each record, separated by commas; all unless said."},
		{name: "budget", in: "query", about: "Tokens (cl100k_base) that the whole answer may have; what there is no room for is counted in left_off.", kind: "integer", from: 1, to: memory.MaxBudget}}
	accessParams = []param{paramAs, headerAgent,
		{name: "at_least", in: "query", about: "Wait until the node has reached this position."},
		{name: "consistency", in: "query", about: "How fresh the answer must be; local unless said.", enum: []any{"local", "linearizable"}}}
)

func kindEnum() []any {
	out := make([]any, len(memory.Kinds))
	for i, k := range memory.Kinds {
		out[i] = string(k)
	}
	return out
}

const agentHeader = "Mneme-Agent"

// query reads the query parameters of one request and remembers the first
// error.
type query struct {
	values url.Values
	err    *memory.Error
}

// parseQuery refuses parameters that the route does not document: a misspelt
// filter must not widen an answer.
func (s *server) parseQuery(r *http.Request) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "query string: %w", err)
	}
	known := []string{"as"} // every read and write takes it
	many := map[string]bool{}
	if rt := s.routes[r.Pattern]; rt != nil {
		for _, p := range rt.params {
			if p.in == "query" && p.name != "as" {
				known = append(known, p.name)
				many[p.name] = p.many
			}
		}
	}
	for name, vs := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, memory.Errorf(memory.CodeInvalid, "query parameter %.60q is unknown here", name).
				WithHint("known ones are %s", strings.Join(known, ", "))
		case len(vs) > 1 && !many[name]:
			return nil, memory.Errorf(memory.CodeInvalid, "query parameter %s is given %d times", name, len(vs))
		}
	}
	return &query{values: values}, nil
}

func (q *query) fail(format string, args ...any) *memory.Error {
	err := memory.Errorf(memory.CodeInvalid, format, args...)
	if q.err == nil {
		q.err = err
	}
	return err
}

// finish returns the first error.
func (q *query) finish() error {
	if q.err != nil {
		return q.err
	}
	return nil
}

func (q *query) str(name string) string { return q.values.Get(name) }

// list reads a parameter that may be repeated; empty values do not count.
func (q *query) list(name string) []string {
	if n := len(q.values[name]); n > memory.MaxFilterValues {
		_ = q.fail("%s has %d values, at most %d are allowed", name, n, memory.MaxFilterValues).WithHint("ask in several requests")
	}
	return slices.DeleteFunc(slices.Clone(q.values[name]), func(v string) bool { return v == "" })
}

// number reads a whole number between lo and hi, unset if it is missing.
func (q *query) number(name string, unset, lo, hi int) int {
	v := q.values.Get(name)
	if v == "" {
		return unset
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		q.fail("%s is %.40q, it must be a whole number between %d and %d", name, v, lo, hi)
		return unset
	}
	return n
}

// fit reads how much of each record is wanted.
func (q *query) fit() memory.Fit {
	var f memory.Fit
	if q.str("max_text") != "" {
		n := q.number("max_text", 0, 0, memory.MaxTextBytes)
		f.MaxText = &n
	}
	if q.str("budget") != "" {
		n := q.number("budget", 0, 1, memory.MaxBudget)
		f.Budget = &n
	}
	if names := q.str("fields"); names != "" {
		f.Fields = strings.Split(names, ",")
	}
	return f
}

// boolean reads true or false; a parameter without value is true.
func (q *query) boolean(name string, unset bool) bool {
	if !q.values.Has(name) {
		return unset
	}
	switch v := q.values.Get(name); v {
	case "", "true", "1":
		return true
	case "false", "0":
		return false
	default:
		q.fail("%s is %.40q, it must be true or false", name, v)
		return unset
	}
}

func (q *query) time(name string) *time.Time {
	v := q.values.Get(name)
	if v == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		_ = q.fail("%s is %.60q, it must be an RFC 3339 time", name, v).WithHint("write it like 2026-01-31T08:00:00Z")
		return nil
	}
	return &t
}

// oneOf reads a parameter that is empty or one of the allowed values.
func oneOf[T ~string](q *query, name string, allowed ...T) T {
	v := T(q.values.Get(name))
	if v == "" || slices.Contains(allowed, v) {
		return v
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	_ = q.fail("%s %.40q is unknown", name, string(v)).WithHint("it is one of %s", strings.Join(names, ", "))
	return ""
}

// actor says who is acting: the query parameter, else the header.
func (q *query) actor(r *http.Request) string {
	as := q.values.Get("as")
	if as == "" {
		as = r.Header.Get(agentHeader)
	}
	if as == "" {
		return ""
	}
	if err := memory.CheckName("agent", as); err != nil && q.err == nil {
		q.err = err
	}
	return as
}

// access reads what every read takes.
func (q *query) access(r *http.Request) memory.Access {
	return memory.Access{
		Namespace:   r.PathValue("ns"),
		As:          q.actor(r),
		AtLeast:     q.str("at_least"),
		Consistency: oneOf(q, "consistency", memory.ConsistencyLocal, memory.ConsistencyLinearizable),
	}
}

// readAccess is access for routes that take nothing else.
func (s *server) readAccess(r *http.Request) (memory.Access, error) {
	q, err := s.parseQuery(r)
	if err != nil {
		return memory.Access{}, err
	}
	acc := q.access(r)
	return acc, q.finish()
}

// ifMatch reads the version that a write expects: 3, "3", or * and nothing for
// any, which is 0.
func ifMatch(r *http.Request) (int, error) {
	values := r.Header.Values("If-Match")
	if len(values) == 0 || len(values) == 1 && strings.TrimSpace(values[0]) == "*" {
		return 0, nil
	}
	v := strings.TrimSpace(values[0])
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = v[1 : len(v)-1]
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 1<<30 || len(values) > 1 {
		return 0, memory.Errorf(memory.CodeInvalid, "If-Match %.60q is not a version", strings.Join(values, ", ")).
			WithHint("it is the number of one version, such as 3, or *")
	}
	return n, nil
}

// idempotencyKey reads the key under which a write may be sent again.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if len(values) > 1 || key == "" || len(key) > memory.MaxClientID {
		return "", memory.Errorf(memory.CodeInvalid, "Idempotency-Key must be one value of 1 to %d characters", memory.MaxClientID)
	}
	for i := 0; i < len(key); i++ {
		if key[i] < 0x21 || key[i] > 0x7e {
			return "", memory.Errorf(memory.CodeInvalid, "Idempotency-Key may hold visible ASCII characters only")
		}
	}
	return key, nil
}
