package memory

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextIsCutAtARune(t *testing.T) {
	at := func(n int) *int { return &n }
	long := strings.Repeat("部署", 600)
	for _, c := range []struct {
		text  string
		most  *int
		want  string
		isCut bool
	}{
		{"short", nil, "short", false},
		{long, nil, strings.Repeat("部署", 500), true},
		{"部署在", at(3), "部署在", false},
		{"部署在", at(2), "部署", true},
		{"part e\u0301", at(6), "part e", true},
		{"x", at(0), "", true},
		{"", at(0), "", false},
		{long, at(MaxTextBytes), long, false},
	} {
		f := Fit{MaxText: c.most}
		got, isCut := f.Text(c.text)
		if got != c.want || isCut != c.isCut || !utf8.ValidString(got) {
			t.Errorf("%.20q to %v: %.40q, %v", c.text, c.most, got, isCut)
		}
	}
}

func TestFitIsChecked(t *testing.T) {
	at := func(n int) *int { return &n }
	for what, c := range map[string]struct {
		fit  Fit
		code Code
	}{
		"nothing":       {Fit{}, ""},
		"fields":        {Fit{MaxText: at(0), Fields: []string{"text", "tags", "text"}}, ""},
		"everything":    {Fit{MaxText: at(MaxTextBytes)}, ""},
		"small budget":  {Fit{Budget: at(1)}, ""},
		"large budget":  {Fit{Budget: at(MaxBudget)}, ""},
		"no budget":     {Fit{Budget: at(0)}, CodeInvalid},
		"budget below":  {Fit{Budget: at(-5)}, CodeInvalid},
		"budget above":  {Fit{Budget: at(MaxBudget + 1)}, CodeInvalid},
		"negative":      {Fit{MaxText: at(-1)}, CodeInvalid},
		"too much":      {Fit{MaxText: at(MaxTextBytes + 1)}, CodeInvalid},
		"unknown field": {Fit{Fields: []string{"text", "tokens"}}, CodeInvalid},
		"no field":      {Fit{Fields: []string{""}}, CodeInvalid},
		"other case":    {Fit{Fields: []string{"Text"}}, CodeInvalid},
		"many":          {Fit{Fields: make([]string, MaxFilterValues+1)}, CodeTooLarge},
	} {
		search := SearchRequest{Query: "x", Fit: c.fit}
		several := SearchNamespaces{Namespaces: []string{"a"}, SearchRequest: search}
		list, timeline := ListRequest{Fit: c.fit}, TimelineRequest{ID: "x", Fit: c.fit}
		for i, err := range []*Error{search.Validate(), several.Validate(), list.Validate(), timeline.Validate()} {
			if (err == nil) != (c.code == "") || err != nil && err.Code != c.code {
				t.Errorf("%s, request %d: %v", what, i, err)
			}
		}
	}
	// Hits and records have fields of their own.
	if err := (&SearchRequest{Query: "x", Fit: Fit{Fields: []string{"score"}}}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (&ListRequest{Fit: Fit{Fields: []string{"score"}}}).Validate(); err == nil || !strings.Contains(err.Hint, "record_id, namespace, uri") {
		t.Error(err)
	}
}

func TestOnlyTheFieldsThatWereAskedFor(t *testing.T) {
	shown := func(v interface {
		Shown([]string) (any, error)
	}, fields ...string) string {
		t.Helper()
		doc, err := v.Shown(fields)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	hits := SearchResponse{Results: []Hit{{ID: "1", Text: "a <b>", Truncated: true, Score: 0.5, Metadata: json.RawMessage(`{"k":[1]}`)}, {ID: "2"}}, Position: "p", Mode: ModeText}
	if got, want := shown(hits, "score", "metadata", "id"), `{"results":[{"id":"1","metadata":{"k":[1]},"score":0.5},{"id":"2","score":0}],"position":"p","took_ms":0,"mode":"text"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := shown(hits, "text"); !strings.HasPrefix(got, `{"results":[{"text":"a \u003cb\u003e","truncated":true},{"text":""}],`) {
		t.Error(got)
	}
	whole, err := json.Marshal(hits)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(hits); got != string(whole) {
		t.Errorf("without fields it is another answer: %s", got)
	}
	if got := shown(hits, hitFields...); len(got) != len(whole) {
		t.Errorf("with all fields it is another answer: %s\n%s", got, whole)
	}
	list := RecordList{Records: []Record{{RecordID: "1", Version: 2}}, Cursor: "c", Position: "p"}
	if got, want := shown(list, "version"), `{"records":[{"version":2}],"cursor":"c","position":"p"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := shown(RecordList{}, "version"); !strings.HasPrefix(got, `{"records":[],`) {
		t.Error(got)
	}
	line := Timeline{Anchor: Record{RecordID: "2"}, Before: []Record{{RecordID: "1"}}, After: []Record{{RecordID: "3"}, {RecordID: "4"}}, Position: "p"}
	if got, want := shown(line, "record_id"), `{"anchor":{"record_id":"2"},"before":[{"record_id":"1"}],"after":[{"record_id":"3"},{"record_id":"4"}],"position":"p"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
