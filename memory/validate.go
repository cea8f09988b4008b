package memory

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// ValidName reports whether s may name a namespace or an agent:
// [a-z0-9][a-z0-9_-]{0,62}.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > 63 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case (c == '_' || c == '-') && i > 0:
		default:
			return false
		}
	}
	return true
}

// CheckName validates the name of a namespace or an agent; what says which.
func CheckName(what, s string) *Error {
	if ValidName(s) {
		return nil
	}
	if s == "" {
		return Errorf(CodeInvalid, "%s is missing", what)
	}
	err := Errorf(CodeInvalid, "%q is not a valid %s: use 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit", clip(s, 80), what)
	if strings.HasPrefix(s, "_") {
		return err.WithHint("names that start with _ are reserved")
	}
	if lower := strings.ToLower(s); lower != s && ValidName(lower) {
		return err.WithHint("did you mean %q?", lower)
	}
	return err
}

// ValidKind reports whether k is a known kind.
func ValidKind(k Kind) bool {
	for _, known := range Kinds {
		if k == known {
			return true
		}
	}
	return false
}

// Normalise fills the defaults that do not depend on a clock: kind and scope.
func (c *Capture) Normalise() {
	if c.Kind == "" {
		c.Kind = KindOther
	}
	if c.Scope == "" {
		c.Scope = ScopeTeam
	}
}

// Validate checks everything about a capture that can be checked without
// knowing the namespace. It does not change c.
func (c *Capture) Validate() *Error {
	if err := CheckName("agent", c.Agent); err != nil {
		return err
	}
	if err := checkText(c.Text); err != nil {
		return err
	}
	if c.Kind != "" && !ValidKind(c.Kind) {
		return Errorf(CodeInvalid, "kind %q is unknown", clip(string(c.Kind), 40)).
			WithHint("kinds are %s", kindList())
	}
	if c.Scope != "" && c.Scope != ScopeTeam && c.Scope != ScopeAgent {
		return Errorf(CodeInvalid, "scope %q is unknown", clip(string(c.Scope), 40)).WithHint("scopes are team and agent")
	}
	if err := checkClientID(c.ID); err != nil {
		return err
	}
	if err := checkTags(c.Tags); err != nil {
		return err
	}
	for _, f := range []struct {
		name, value string
		max         int
	}{{"role", c.Role, 64}, {"conversation", c.Conversation, MaxConversation}, {"subject", c.Subject, MaxSubject}} {
		if err := checkLine(f.name, f.value, f.max); err != nil {
			return err
		}
	}
	if err := CheckURIPath(c.URI); err != nil {
		return err
	}
	if v := c.Importance; v != nil && (math.IsNaN(*v) || *v < 0 || *v > 1) {
		return Errorf(CodeInvalid, "importance must lie between 0 and 1")
	}
	if t := c.OccurredAt; t != nil && (t.Year() < 1700 || t.Year() > 2250) {
		return Errorf(CodeInvalid, "occurred_at %s is outside the years 1700 to 2250", t.Format("2006-01-02"))
	}
	if len(c.DerivedFrom) > MaxDerivedFrom {
		return Errorf(CodeInvalid, "derived_from has %d ids, at most %d are allowed", len(c.DerivedFrom), MaxDerivedFrom).
			WithHint("name those that say the most, or store what some of them say together and name that")
	}
	for _, id := range c.DerivedFrom {
		if !ValidULID(id) {
			return Errorf(CodeInvalid, "derived_from: %q is not a record id", clip(id, 40))
		}
	}
	return checkMetadata(c.Metadata)
}

func checkText(s string) *Error {
	switch {
	case len(s) > MaxTextBytes:
		return Errorf(CodeTooLarge, "text has %d bytes, at most %d are allowed", len(s), MaxTextBytes).
			WithHint("split it into several memories that share a conversation or a tag")
	case !utf8.ValidString(s):
		return Errorf(CodeInvalid, "text is not valid UTF-8")
	case strings.TrimSpace(s) == "":
		return Errorf(CodeInvalid, "text is empty")
	case strings.IndexByte(s, 0) >= 0:
		return Errorf(CodeInvalid, "text contains NUL bytes")
	}
	return nil
}

func checkClientID(id string) *Error {
	if len(id) > MaxClientID {
		return Errorf(CodeInvalid, "id has %d characters, at most %d are allowed", len(id), MaxClientID)
	}
	for i := 0; i < len(id); i++ {
		if id[i] < 0x21 || id[i] > 0x7e {
			return Errorf(CodeInvalid, "id may hold visible ASCII characters only")
		}
	}
	return nil
}

func checkTags(tags []string) *Error {
	if len(tags) > MaxTags {
		return Errorf(CodeInvalid, "%d tags given, at most %d are allowed", len(tags), MaxTags)
	}
	for _, t := range tags {
		if strings.TrimSpace(t) == "" {
			return Errorf(CodeInvalid, "a tag is empty")
		}
		if utf8.RuneCountInString(t) > MaxTagRunes {
			return Errorf(CodeInvalid, "tag %q is longer than %d characters", clip(t, 40), MaxTagRunes)
		}
		if err := checkLine("tag", t, 4*MaxTagRunes); err != nil {
			return err
		}
	}
	return nil
}

// checkLine allows valid UTF-8 without control characters, up to max bytes.
func checkLine(name, s string, max int) *Error {
	if len(s) > max {
		return Errorf(CodeInvalid, "%s has %d bytes, at most %d are allowed", name, len(s), max)
	}
	if !utf8.ValidString(s) {
		return Errorf(CodeInvalid, "%s is not valid UTF-8", name)
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return Errorf(CodeInvalid, "%s contains control characters", name)
		}
	}
	return nil
}

// jsonDepth is how deep objects and arrays are nested in valid JSON.
func jsonDepth(m []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(m); i++ {
		switch c := m[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func checkMetadata(m json.RawMessage) *Error {
	if len(m) == 0 {
		return nil
	}
	if len(m) > MaxMetadataBytes {
		return Errorf(CodeTooLarge, "metadata has %d bytes, at most %d are allowed", len(m), MaxMetadataBytes)
	}
	if t := bytes.TrimSpace(m); len(t) == 0 || t[0] != '{' || !json.Valid(m) {
		return Errorf(CodeInvalid, "metadata must be a JSON object")
	}
	if !utf8.Valid(m) {
		return Errorf(CodeInvalid, "metadata is not valid UTF-8")
	}
	if d := jsonDepth(m); d > MaxMetadataDepth {
		return Errorf(CodeInvalid, "metadata is nested %d levels deep, at most %d are allowed", d, MaxMetadataDepth).
			WithHint("common JSON parsers refuse to read it back; flatten it, or put the document into the text")
	}
	return nil
}

const uriScheme = "mem://"

// CheckURIPath validates the uri of a capture: empty, or
// mem://<namespace>/<path>, or a bare path inside the namespace.
func CheckURIPath(uri string) *Error {
	if uri == "" {
		return nil
	}
	if err := checkLine("uri", uri, MaxURIBytes); err != nil {
		return err
	}
	path := uri
	if rest, ok := strings.CutPrefix(uri, uriScheme); ok {
		ns, p, found := strings.Cut(rest, "/")
		if !found || p == "" {
			return Errorf(CodeInvalid, "uri %q has no path", clip(uri, 80)).WithHint("a uri looks like mem://<namespace>/<path>")
		}
		if err := CheckName("namespace", ns); err != nil {
			return err
		}
		path = p
	} else if strings.Contains(uri, "://") {
		return Errorf(CodeInvalid, "uri %q does not start with mem://", clip(uri, 80))
	}
	for _, seg := range strings.Split(path, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return Errorf(CodeInvalid, "uri %q has an empty, . or .. segment", clip(uri, 80))
		}
	}
	return nil
}

// FullURI gives uri its complete form for the namespace. A uri that names
// another namespace is invalid.
func FullURI(namespace, uri string) (string, *Error) {
	if uri == "" {
		return "", nil
	}
	rest, ok := strings.CutPrefix(uri, uriScheme)
	if !ok {
		return uriScheme + namespace + "/" + uri, nil
	}
	if ns, _, _ := strings.Cut(rest, "/"); ns != namespace {
		return "", Errorf(CodeInvalid, "uri %q belongs to another namespace than %q", clip(uri, 80), namespace)
	}
	return uri, nil
}

// URIPath is the part of a full URI that names a memory in its namespace; empty
// if it names none.
func URIPath(full string) string {
	rest, ok := strings.CutPrefix(full, uriScheme)
	if !ok {
		return ""
	}
	_, path, _ := strings.Cut(rest, "/")
	return path
}

// idLength is how many characters an id has.
const idLength = 26

// ValidULID reports whether s has the form of a ULID as Mneme writes them
// (26 characters, upper-case Crockford base 32).
func ValidULID(s string) bool { return len(s) == idLength && beginsID(s) }

// IDBeginning returns s in upper case if it may be the beginning of a record's id, or
// all of it: at least MinIDBeginning characters.
func IDBeginning(s string) (string, bool) {
	s = strings.ToUpper(s)
	return s, len(s) >= MinIDBeginning && len(s) <= idLength && beginsID(s)
}

// beginsID reports whether s holds only what an id may begin with.
func beginsID(s string) bool {
	if s == "" || s[0] > '7' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", s[i]) < 0 {
			return false
		}
	}
	return true
}

// Validate checks the parts of a search request that need no namespace.
func (r *SearchRequest) Validate() *Error {
	if len(r.Query) > MaxQueryBytes {
		return Errorf(CodeTooLarge, "query has %d bytes, at most %d are allowed", len(r.Query), MaxQueryBytes)
	}
	if !utf8.ValidString(r.Query) {
		return Errorf(CodeInvalid, "query is not valid UTF-8")
	}
	if strings.TrimSpace(r.Query) == "" && len(r.Vector) == 0 {
		return Errorf(CodeInvalid, "query is empty")
	}
	if r.Limit != nil && (*r.Limit < 1 || *r.Limit > MaxLimit) {
		return Errorf(CodeInvalid, "limit is %d, it must lie between 1 and %d", *r.Limit, MaxLimit)
	}
	switch r.Mode {
	case "", ModeHybrid, ModeVector, ModeText:
	default:
		return Errorf(CodeInvalid, "mode %q is unknown", clip(string(r.Mode), 40)).WithHint("modes are hybrid, vector and text")
	}
	if err := checkConsistency(r.Consistency); err != nil {
		return err
	}
	if r.Syntax != "" && r.Syntax != SyntaxPlain {
		return Errorf(CodeInvalid, "syntax %q is unknown", clip(string(r.Syntax), 40)).WithHint("the syntax is plain, or none")
	}
	if err := checkPurpose(r.Purpose); err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(r.Parts)) {
		if !slices.Contains(Parts, p) {
			return Errorf(CodeInvalid, "part %q is unknown", clip(string(p), 40)).WithHint("parts are %s", join(Parts))
		}
	}
	if min := r.MinScore; min != nil && !(*min >= 0 && *min <= 1) {
		return Errorf(CodeInvalid, "min_score is %v, it must lie between 0 and 1", *min)
	}
	if r.As != "" {
		if err := CheckName("agent", r.As); err != nil {
			return err
		}
	}
	for _, v := range r.Vector {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Errorf(CodeInvalid, "vector contains NaN or infinity")
		}
	}
	if err := r.Fit.validate(hitFields); err != nil {
		return err
	}
	return r.Filter.validate()
}

// Validate checks what needs none of the namespaces.
func (r *SearchNamespaces) Validate() *Error {
	switch n := len(r.Namespaces); {
	case n == 0:
		return Errorf(CodeInvalid, "namespaces is empty").WithHint("name those to search; there is no \"all\"")
	case n > MaxNamespaces:
		return Errorf(CodeTooLarge, "namespaces has %d names, at most %d are searched at once", n, MaxNamespaces).
			WithHint("ask in several requests")
	}
	for _, name := range r.Namespaces {
		if err := CheckName("namespace", name); err != nil {
			return err
		}
	}
	return r.SearchRequest.Validate()
}

func (f *Filter) validate() *Error {
	if f == nil {
		return nil
	}
	for _, v := range []struct {
		name string
		n    int
	}{{"agents", len(f.Agents)}, {"kinds", len(f.Kinds)}, {"tags", len(f.Tags)}} {
		if v.n > MaxFilterValues {
			return Errorf(CodeTooLarge, "filter.%s has %d values, at most %d are allowed", v.name, v.n, MaxFilterValues).
				WithHint("ask in several requests, or filter what comes back")
		}
	}
	for _, a := range f.Agents {
		if err := CheckName("agent", a); err != nil {
			return err
		}
	}
	for _, k := range f.Kinds {
		if !ValidKind(k) {
			return Errorf(CodeInvalid, "kind %q is unknown", clip(string(k), 40)).WithHint("kinds are %s", kindList())
		}
	}
	if err := checkTags(f.Tags); err != nil {
		return err
	}
	if f.Scope != "" && f.Scope != ScopeTeam && f.Scope != ScopeAgent {
		return Errorf(CodeInvalid, "scope %q is unknown", clip(string(f.Scope), 40)).WithHint("scopes are team and agent")
	}
	if f.Since != nil && f.Until != nil && !f.Since.Before(*f.Until) {
		return Errorf(CodeInvalid, "since must lie before until")
	}
	return nil
}

func kindList() string { return join(Kinds) }

func join[T ~string](list []T) string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// clip shortens s for a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func checkPurpose(p Purpose) *Error {
	if p != "" && p != PurposeInject {
		return Errorf(CodeInvalid, "purpose %q is unknown", clip(string(p), 40)).WithHint("the purpose is inject, or none")
	}
	return nil
}
