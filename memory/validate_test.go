package memory

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// wantCode checks an error's code and, unless it is empty, part of what it says.
func wantCode(t *testing.T, name string, err *Error, code Code, says string) {
	t.Helper()
	switch {
	case code == "" && err != nil:
		t.Errorf("%s: refused: %v", name, err)
	case code != "" && err == nil:
		t.Errorf("%s: accepted", name)
	case code != "" && (err.Code != code || !strings.Contains(err.Message+" | "+err.Hint, says)):
		t.Errorf("%s: %s %q, hint %q, want %s about %q", name, err.Code, err.Message, err.Hint, code, says)
	case err != nil && (len(err.Message) > 250 || strings.ContainsAny(err.Message, "\n")):
		t.Errorf("%s: the message is no line: %q", name, err.Message)
	}
}

func ptr[T any](v T) *T { return &v }

func many(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func TestNames(t *testing.T) {
	for name, hint := range map[string]string{
		"":                      "missing",
		"Team-A":                `did you mean "team-a"`,
		"_x":                    "reserved",
		"-x":                    "not a valid",
		"a b":                   "not a valid",
		"a.b":                   "not a valid",
		"ä":                     "not a valid",
		"a\x00":                 "not a valid",
		strings.Repeat("a", 64): "not a valid",
		strings.Repeat("Ö", 99): "not a valid",
	} {
		wantCode(t, name, CheckName("agent", name), CodeInvalid, hint)
	}
	for _, name := range []string{"a", "7", "a-b_c", strings.Repeat("a", 63), "0_", "9-"} {
		wantCode(t, name, CheckName("agent", name), "", "")
	}
}

func TestCaptureValidate(t *testing.T) {
	const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for _, c := range []struct {
		name   string
		change func(*Capture)
		code   Code
		says   string
	}{
		{"plain", func(*Capture) {}, "", ""},
		{"no agent", func(c *Capture) { c.Agent = "" }, CodeInvalid, "agent is missing"},
		{"bad agent", func(c *Capture) { c.Agent = "A" }, CodeInvalid, "did you mean"},
		{"longest text", func(c *Capture) { c.Text = strings.Repeat("a", MaxTextBytes) }, "", ""},
		{"long text", func(c *Capture) { c.Text = strings.Repeat("a", MaxTextBytes+1) }, CodeTooLarge, "split it"},
		{"no text", func(c *Capture) { c.Text = "" }, CodeInvalid, "text is empty"},
		{"blank text", func(c *Capture) { c.Text = " \n\t\u00a0" }, CodeInvalid, "text is empty"},
		{"NUL", func(c *Capture) { c.Text = "a\x00b" }, CodeInvalid, "NUL"},
		{"not UTF-8", func(c *Capture) { c.Text = "a\xff" }, CodeInvalid, "UTF-8"},
		{"kind", func(c *Capture) { c.Kind = "gossip" }, CodeInvalid, "tool-usage"},
		{"known kind", func(c *Capture) { c.Kind = KindToolUsage }, "", ""},
		{"scope", func(c *Capture) { c.Scope = "world" }, CodeInvalid, "team and agent"},
		{"agent scope", func(c *Capture) { c.Scope = ScopeAgent }, "", ""},
		{"longest id", func(c *Capture) { c.ID = strings.Repeat("~", MaxClientID) }, "", ""},
		{"long id", func(c *Capture) { c.ID = strings.Repeat("x", MaxClientID+1) }, CodeInvalid, "at most 128"},
		{"space in id", func(c *Capture) { c.ID = "a b" }, CodeInvalid, "visible ASCII"},
		{"letter in id", func(c *Capture) { c.ID = "é" }, CodeInvalid, "visible ASCII"},
		{"DEL in id", func(c *Capture) { c.ID = "\x7f" }, CodeInvalid, "visible ASCII"},
		{"most tags", func(c *Capture) { c.Tags = many("t", MaxTags) }, "", ""},
		{"many tags", func(c *Capture) { c.Tags = many("t", MaxTags+1) }, CodeInvalid, "at most 32"},
		{"longest tag", func(c *Capture) { c.Tags = []string{strings.Repeat("😀", MaxTagRunes)} }, "", ""},
		{"long tag", func(c *Capture) { c.Tags = []string{strings.Repeat("x", MaxTagRunes+1)} }, CodeInvalid, "longer than 64"},
		{"empty tag", func(c *Capture) { c.Tags = []string{"a", " "} }, CodeInvalid, "tag is empty"},
		{"tag with newline", func(c *Capture) { c.Tags = []string{"a\nb"} }, CodeInvalid, "control"},
		{"tag not UTF-8", func(c *Capture) { c.Tags = []string{"a\xff"} }, CodeInvalid, "UTF-8"},
		{"role", func(c *Capture) { c.Role = strings.Repeat("r", 65) }, CodeInvalid, "role has 65"},
		{"role with tab", func(c *Capture) { c.Role = "a\tb" }, CodeInvalid, "role contains"},
		{"longest conversation", func(c *Capture) { c.Conversation = strings.Repeat("c", MaxConversation) }, "", ""},
		{"conversation", func(c *Capture) { c.Conversation = strings.Repeat("c", MaxConversation+1) }, CodeInvalid, "conversation has 257"},
		{"subject", func(c *Capture) { c.Subject = strings.Repeat("s", MaxSubject+1) }, CodeInvalid, "subject has 257"},
		{"longest uri", func(c *Capture) { c.URI = strings.Repeat("u", MaxURIBytes) }, "", ""},
		{"uri", func(c *Capture) { c.URI = strings.Repeat("u", MaxURIBytes+1) }, CodeInvalid, "uri has 1025"},
		{"importance", func(c *Capture) { c.Importance = ptr(1.0) }, "", ""},
		{"importance over", func(c *Capture) { c.Importance = ptr(1.0000001) }, CodeInvalid, "between 0 and 1"},
		{"importance under", func(c *Capture) { c.Importance = ptr(-0.1) }, CodeInvalid, "between 0 and 1"},
		{"importance NaN", func(c *Capture) { c.Importance = ptr(math.NaN()) }, CodeInvalid, "between 0 and 1"},
		{"earliest", func(c *Capture) { c.OccurredAt = ptr(time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)) }, "", ""},
		{"too early", func(c *Capture) { c.OccurredAt = ptr(time.Date(1699, 12, 31, 0, 0, 0, 0, time.UTC)) }, CodeInvalid, "1699-12-31"},
		{"too late", func(c *Capture) { c.OccurredAt = ptr(time.Date(2251, 1, 1, 0, 0, 0, 0, time.UTC)) }, CodeInvalid, "2251-01-01"},
		{"zero time", func(c *Capture) { c.OccurredAt = &time.Time{} }, CodeInvalid, "0001-01-01"},
		{"derived", func(c *Capture) { c.DerivedFrom = many(ulid, MaxDerivedFrom) }, "", ""},
		{"many derived", func(c *Capture) { c.DerivedFrom = many(ulid, MaxDerivedFrom+1) }, CodeInvalid, "65 ids"},
		{"derived from nothing", func(c *Capture) { c.DerivedFrom = []string{"x"} }, CodeInvalid, "not a record id"},
		{"metadata", func(c *Capture) { c.Metadata = []byte(` {"a":[1]} `) }, "", ""},
		{"largest metadata", func(c *Capture) { c.Metadata = []byte(`{"a":"` + strings.Repeat("x", MaxMetadataBytes-8) + `"}`) }, "", ""},
		{"large metadata", func(c *Capture) { c.Metadata = []byte(`{"a":"` + strings.Repeat("x", MaxMetadataBytes-7) + `"}`) }, CodeTooLarge, "metadata has 16385"},
		{"metadata nested 32 deep", func(c *Capture) { c.Metadata = nested(32) }, "", ""},
		{"metadata nested 33 deep", func(c *Capture) { c.Metadata = nested(33) }, CodeInvalid, "33 levels"},
		{"metadata nested 8,000 deep", func(c *Capture) { c.Metadata = nested(8000) }, CodeInvalid, "8000 levels"},
		{"metadata with brackets in strings", func(c *Capture) { c.Metadata = []byte(`{"a":"` + strings.Repeat(`[{\"`, 50) + `"}`) }, "", ""},
		{"metadata list", func(c *Capture) { c.Metadata = []byte(`[1]`) }, CodeInvalid, "JSON object"},
		{"metadata broken", func(c *Capture) { c.Metadata = []byte(`{"a":}`) }, CodeInvalid, "JSON object"},
		{"metadata twice", func(c *Capture) { c.Metadata = []byte(`{} {}`) }, CodeInvalid, "JSON object"},
		{"metadata blank", func(c *Capture) { c.Metadata = []byte(`  `) }, CodeInvalid, "JSON object"},
		{"metadata not UTF-8", func(c *Capture) { c.Metadata = []byte("{\"a\":\"\xff\"}") }, CodeInvalid, "metadata"},
	} {
		capture := Capture{Agent: "agent-7", Text: "hello"}
		c.change(&capture)
		wantCode(t, c.name, capture.Validate(), c.code, c.says)
	}
}

func TestNormalise(t *testing.T) {
	c := Capture{}
	c.Normalise()
	if c.Kind != KindOther || c.Scope != ScopeTeam {
		t.Error(c)
	}
	c = Capture{Kind: KindFact, Scope: ScopeAgent}
	c.Normalise()
	if c.Kind != KindFact || c.Scope != ScopeAgent {
		t.Error(c)
	}
}

func TestURIs(t *testing.T) {
	for uri, says := range map[string]string{
		"":                  "",
		"a":                 "",
		"ops/deploy days":   "",
		"mem://team-a/a/b":  "",
		"mem://team-a":      "no path",
		"mem://team-a/":     "no path",
		"mem:///a":          "namespace is missing",
		"mem://Team/a":      "did you mean",
		"mem://team-a//a":   "segment",
		"mem://team-a/a/":   "segment",
		"mem://team-a/../a": "segment",
		"./a":               "segment",
		"/a":                "segment",
		"http://x/a":        "does not start with mem://",
		"a\nb":              "control",
		"a\xffb":            "UTF-8",
	} {
		code := CodeInvalid
		if says == "" {
			code = ""
		}
		wantCode(t, uri, CheckURIPath(uri), code, says)
	}
	for uri, want := range map[string]string{"": "", "a/b": "mem://team-a/a/b", "mem://team-a/a/b": "mem://team-a/a/b"} {
		if got, err := FullURI("team-a", uri); err != nil || got != want {
			t.Errorf("%q: %q, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"mem://team-b/a", "mem://team-", "mem://team-aa/x"} {
		_, err := FullURI("team-a", uri)
		wantCode(t, uri, err, CodeInvalid, "another namespace")
	}
}

func TestURIPath(t *testing.T) {
	for uri, want := range map[string]string{"mem://team-a/a/b": "a/b", "mem://team-a": "", "mem://team-a/": "", "a/b": "", "": ""} {
		if got := URIPath(uri); got != want {
			t.Errorf("%q: %q", uri, got)
		}
	}
}

func TestIDBeginning(t *testing.T) {
	whole := "01JC2Y3K5V8Q0T4W6X7Z9A1B2C"
	for s, want := range map[string]string{whole: whole, "01jc2y": "01JC2Y", "7zzzzzz": "7ZZZZZZ", "20240101": "20240101", strings.ToLower(whole): whole,
		"01JC2": "", whole + "0": "", "81JC2Y": "", "readme": "", "01JC2L": "", "01JC2-": "", "": "", "01\u017f\u017f": "", "mem://a/01JC2Y": ""} {
		if got, ok := IDBeginning(s); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", s, got, ok)
		}
	}
}

func TestValidULID(t *testing.T) {
	for s, want := range map[string]bool{
		"01ARZ3NDEKTSV4RRFFQ69G5FAV": true, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ": true, "80000000000000000000000000": false,
		"01arz3ndektsv4rrffq69g5fav": false, "01ARZ3NDEKTSV4RRFFQ69G5FAI": false, "01ARZ3NDEKTSV4RRFFQ69G5FA": false, "": false,
	} {
		if ValidULID(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestSearchValidate(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		change func(*SearchRequest)
		code   Code
		says   string
	}{
		{"plain", func(*SearchRequest) {}, "", ""},
		{"longest query", func(r *SearchRequest) { r.Query = strings.Repeat("q", MaxQueryBytes) }, "", ""},
		{"long query", func(r *SearchRequest) { r.Query = strings.Repeat("q", MaxQueryBytes+1) }, CodeTooLarge, "query has 16385"},
		{"no query", func(r *SearchRequest) { r.Query = " " }, CodeInvalid, "query is empty"},
		{"vector for a query", func(r *SearchRequest) { r.Query, r.Vector = "", []float64{1} }, "", ""},
		{"query not UTF-8", func(r *SearchRequest) { r.Query = "\xff" }, CodeInvalid, "UTF-8"},
		{"limit 0", func(r *SearchRequest) { r.Limit = ptr(0) }, CodeInvalid, "limit is 0"},
		{"limit 1", func(r *SearchRequest) { r.Limit = ptr(1) }, "", ""},
		{"limit 200", func(r *SearchRequest) { r.Limit = ptr(MaxLimit) }, "", ""},
		{"limit 201", func(r *SearchRequest) { r.Limit = ptr(MaxLimit + 1) }, CodeInvalid, "between 1 and 200"},
		{"mode", func(r *SearchRequest) { r.Mode = "psychic" }, CodeInvalid, "hybrid, vector and text"},
		{"text mode", func(r *SearchRequest) { r.Mode = ModeText }, "", ""},
		{"consistency", func(r *SearchRequest) { r.Consistency = "maybe" }, CodeInvalid, "local and linearizable"},
		{"part", func(r *SearchRequest) { r.Parts = map[Part]bool{PartDates: true, "weather": false} }, CodeInvalid, "neighbours, speaker, dates"},
		{"linearizable", func(r *SearchRequest) { r.Consistency = ConsistencyLinearizable }, "", ""},
		{"min score", func(r *SearchRequest) { r.MinScore = ptr(1.1) }, CodeInvalid, "min_score"},
		{"no floor", func(r *SearchRequest) { r.All, r.MinScore = true, ptr(0.0) }, "", ""},
		{"min score NaN", func(r *SearchRequest) { r.MinScore = ptr(math.NaN()) }, CodeInvalid, "min_score"},
		{"as", func(r *SearchRequest) { r.As = "_root" }, CodeInvalid, "reserved"},
		{"as agent", func(r *SearchRequest) { r.As = "agent-7" }, "", ""},
		{"vector NaN", func(r *SearchRequest) { r.Vector = []float64{1, math.NaN()} }, CodeInvalid, "NaN or infinity"},
		{"vector infinity", func(r *SearchRequest) { r.Vector = []float64{math.Inf(-1)} }, CodeInvalid, "NaN or infinity"},
		{"filter agent", func(r *SearchRequest) { r.Filter = &Filter{Agents: []string{"a", ""}} }, CodeInvalid, "agent is missing"},
		{"filter kind", func(r *SearchRequest) { r.Filter = &Filter{Kinds: []Kind{""}} }, CodeInvalid, "unknown"},
		{"filter tag", func(r *SearchRequest) { r.Filter = &Filter{Tags: []string{""}} }, CodeInvalid, "tag is empty"},
		{"filter scope", func(r *SearchRequest) { r.Filter = &Filter{Scope: "x"} }, CodeInvalid, "team and agent"},
		{"filter", func(r *SearchRequest) {
			r.Filter = &Filter{Agents: []string{"a"}, Kinds: []Kind{KindFact}, Tags: []string{"t"}, Scope: ScopeTeam, Since: ptr(day), Until: ptr(day.Add(1))}
		}, "", ""},
		{"syntax", func(r *SearchRequest) { r.Syntax = SyntaxPlain }, "", ""},
		{"syntax", func(r *SearchRequest) { r.Syntax = "lucene" }, CodeInvalid, `syntax "lucene" is unknown`},
		{"purpose", func(r *SearchRequest) { r.Purpose = PurposeInject }, "", ""},
		{"purpose", func(r *SearchRequest) { r.Purpose = "x" }, CodeInvalid, `purpose "x" is unknown`},
		{"empty span", func(r *SearchRequest) { r.Filter = &Filter{Since: ptr(day), Until: ptr(day)} }, CodeInvalid, "since must lie before until"},
	} {
		req := SearchRequest{Query: "when do we deploy"}
		c.change(&req)
		wantCode(t, c.name, req.Validate(), c.code, c.says)
	}
}

func FuzzCapture(f *testing.F) {
	f.Add("agent-7", "text", "mem://team-a/x", "tag", "id", []byte(`{}`))
	f.Add("Ä", strings.Repeat("😀", 30), "mem://", "\xff", "\x00", []byte(`{`))
	f.Fuzz(func(t *testing.T, agent, text, uri, tag, id string, metadata []byte) {
		c := Capture{Agent: agent, Text: text, URI: uri, Tags: []string{tag}, ID: id, Metadata: metadata}
		err := c.Validate()
		if err == nil {
			return
		}
		if err.Code != CodeInvalid && err.Code != CodeTooLarge || len(err.Message) > 600 || strings.ToValidUTF8(err.Message, "") != err.Message {
			t.Fatalf("%s %q", err.Code, err.Message)
		}
	})
}

// nested is metadata whose objects and arrays lie n deep in one another.
func nested(n int) []byte {
	return []byte(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
}

// TestFilterOf90000Agents: one request of 1 MiB cost seconds of work.
func TestFilterOf90000Agents(t *testing.T) {
	for _, n := range []int{MaxFilterValues, MaxFilterValues + 1, 90_000} {
		agents := slices.Repeat([]string{"a"}, n)
		for name, f := range map[string]*Filter{"agents": {Agents: agents}, "kinds": {Kinds: slices.Repeat([]Kind{KindFact}, n)}} {
			r := SearchRequest{Query: "q", Filter: f}
			err := r.Validate()
			if (err != nil) != (n > MaxFilterValues) || err != nil && (err.Code != CodeTooLarge || err.Hint == "") {
				t.Errorf("%d %s: %v", n, name, err)
			}
		}
	}
}

func TestSearchNamespacesValidate(t *testing.T) {
	many := make([]string, MaxNamespaces+1)
	for i := range many {
		many[i] = "team"
	}
	for _, tt := range []struct {
		name  string
		names []string
		query string
		code  Code
	}{
		{"two", []string{"a", "b"}, "q", ""},
		{"as many as may be", many[1:], "q", ""},
		{"none", nil, "q", CodeInvalid},
		{"too many", many, "q", CodeTooLarge},
		{"no name", []string{"a", ""}, "q", CodeInvalid},
		{"capitals", []string{"a", "B"}, "q", CodeInvalid},
		{"no query", []string{"a", "b"}, "", CodeInvalid},
	} {
		req := SearchNamespaces{tt.names, SearchRequest{Query: tt.query}}
		if err := req.Validate(); (err == nil) != (tt.code == "") || err != nil && err.Code != tt.code {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestAnEmptyFilter has every field of a filter count.
func TestAnEmptyFilter(t *testing.T) {
	var none *Filter
	if !none.Empty() || !(&Filter{Agents: []string{}}).Empty() {
		t.Error("a filter of nothing leaves something out")
	}
	at := time.Now()
	values := map[string]any{"Agents": []string{"a"}, "Kinds": []Kind{KindFact}, "Tags": []string{"t"}, "Since": &at, "Until": &at, "Scope": ScopeTeam, "Conversation": "c"}
	of := reflect.TypeFor[Filter]()
	for i := range of.NumField() {
		var f Filter
		reflect.ValueOf(&f).Elem().Field(i).Set(reflect.ValueOf(values[of.Field(i).Name]))
		if f.Empty() {
			t.Errorf("a filter with %s leaves nothing out", of.Field(i).Name)
		}
	}
}
