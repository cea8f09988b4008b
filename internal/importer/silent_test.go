package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"mneme/memory"
)

// said reads a file, and is what was told of it: items by their text, what could not be read, and what was left out.
func said(t *testing.T, name, text string) (texts, told []string, items []Item) {
	t.Helper()
	items, bad, left, end := all(t, write(t, name, text), plainOptions)
	if end != nil {
		told = append(told, end.Error())
	}
	for _, item := range items {
		texts = append(texts, item.Capture.Text)
		for _, l := range item.Left {
			told = append(told, l.Error())
		}
	}
	for _, b := range bad {
		told = append(told, b.Error())
	}
	for _, l := range left {
		told = append(told, l.Error())
	}
	return texts, told, items
}

// A row that could not be read took others with it: one that was too long all behind it, and one whose quote nothing
// closed was told as one. A file whose lines end as those of old Macs had no rows.
func TestARowTookOthersWithIt(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, c := range map[string]struct {
		text        string
		texts, told []string
	}{
		"too long":            {"id,text\n1,one\n2," + long + "\n3,three\n", []string{"one", "three"}, []string{"line 3: a row larger"}},
		"too long, in quotes": {"id,text\n1,one\n2,\"" + long + "\n\"\n3,three\n", []string{"one", "three"}, []string{"lines 3-4: a row larger"}},
		"never closed":        {"id,text\n1,one\n2,\"two\n3,three\n4,four\n", []string{"one"}, []string{"lines 3-5: a quotation mark that nothing closes"}},
		"inside of quotes":    {"id,text\n1,\"one\nmore \"two\" more\n2,two\n", []string{"two"}, []string{"lines 2-3: extraneous"}},
		"inside of none":      {"id,text\n1,a 5\" disk\n2,two\n", []string{"two"}, []string{"line 2: bare"}},
		"too short":           {"id,text\n1\n2,two\n", []string{"two"}, []string{"line 2: wrong number"}},
		"nothing wrong":       {"id,text\r\n\r\n1,\"a \"\"b\"\"\r\nc\"\r\n\"2\",\"two\"", []string{"a \"b\"\nc", "two"}, nil},
		"quotes behind quote": {"id,text\n\"\",\"\"\"\"\n,\"\n\"\"\n\"\n3,x", []string{"\"", "\n\"\n", "x"}, nil},
		"carriage returns":    {"id,text\r1,one\r2,\"two\rmore\"\r", []string{"one", "two\nmore"}, nil},
		"and not UTF-8":       {"id,text,place\n1,one,caf\xe9\n2,two,\n", []string{"two"}, []string{"line 2: place is not UTF-8"}},
	} {
		texts, told, _ := said(t, "a.csv", c.text)
		if !slices.Equal(texts, c.texts) || len(told) != len(c.told) {
			t.Errorf("%s: %.300q, %.300q", name, texts, told)
			continue
		}
		for i, want := range c.told {
			if !strings.HasPrefix(told[i], want) {
				t.Errorf("%s: %.300q, want %q", name, told[i], want)
			}
		}
	}
	if _, told, _ := said(t, "a.csv", "text,caf\xe9\none,x\n"); len(told) != 1 || !strings.Contains(told[0], "header is not UTF-8") {
		t.Errorf("%q", told)
	}
	if texts, told, _ := said(t, "a.md", "one\r# Two\rtwo\r"); !slices.Equal(texts, []string{"one", "# Two\ntwo"}) || told != nil {
		t.Errorf("%q, %q", texts, told)
	}
}

// Where a disk fails within a row, what was read of it is none: its last field may go on.
func TestARowThatWasReadInPartWasImported(t *testing.T) {
	broken := errors.New("broken")
	for _, text := range []string{"id,text\n1,one\n2,two hal", "id,text\n1,one\n2,\"two\" ", "id,text\n1,one\n2,\"two"} {
		src, err := newCSV(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), "a.csv", plainOptions)
		if err != nil {
			t.Fatal(err)
		}
		if item, err := src.Next(); err != nil || item.Capture.Text != "one" {
			t.Errorf("%q, %v", item.Capture.Text, err)
		}
		for range 2 {
			if item, err := src.Next(); !errors.Is(err, broken) {
				t.Errorf("%q: %q, %v", text, item.Capture.Text, err)
			}
		}
	}
}

// A file with carriage returns alone may be read in pieces that end anywhere, also one that says so too soon.
func TestCarriageReturnsInPieces(t *testing.T) {
	for _, pieces := range [][]string{{"a\r", "b\r", "c"}, {"a\r", "\nb\r", "\n", "c"}, {"a\rb", "\r", "\n\r\n", "c"}} {
		var readers []string
		readers = append(readers, pieces...)
		in := newLines(&inPieces{readers}, maxLine)
		var got []string
		for {
			line, err := in.next()
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%q: %q", pieces, got)
		}
	}
}

// inPieces reads strings, each at once.
type inPieces struct{ left []string }

// Read reads the next of them.
func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		return 0, fmt.Errorf("end")
	}
	n := copy(p, r.left[0])
	r.left = r.left[1:]
	return n, nil
}

// What a table says beside the text was lost without a word: fields that had no room, of two columns of one name the first,
// tags that were too many, and times that no memory has.
func TestWhatATableLostWithoutAWord(t *testing.T) {
	metadata := func(item Item) (m map[string]any) {
		if err := json.Unmarshal(item.Capture.Metadata, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, Imported)
		return m
	}
	large := strings.Repeat("y", memory.MaxMetadataBytes)
	_, told, items := said(t, "a.csv", "text,comment,owner\none,"+large+",ann\n")
	if len(told) != 1 || told[0] != "line 2 comment: left out: a field for which metadata have no room" || metadata(items[0])["owner"] != "ann" {
		t.Errorf("%q", told)
	}
	_, told, items = said(t, "a.csv", "text,metadata\none,\"{\"\"d\"\":"+strings.Repeat("[", memory.MaxMetadataDepth)+strings.Repeat("]", memory.MaxMetadataDepth)+"}\"\n")
	if len(items) != 1 || len(told) != 1 || told[0] != "line 2 d: left out: a field that metadata cannot have" {
		t.Errorf("%q", told)
	}
	_, told, items = said(t, "a.csv", "text,owner,owner,metadata\none,ann,bob,\"{\"\"owner\"\":\"\"eve\"\"}\"\n")
	if m := metadata(items[0]); told != nil || m["owner"] != "eve" || m["owner (column 2)"] != "ann" || m["owner (column 3)"] != "bob" {
		t.Errorf("%q, %v", told, m)
	}
	var many []string
	for i := range memory.MaxTags + 1 {
		many = append(many, fmt.Sprint("t", i))
	}
	long := strings.Repeat("z", memory.MaxTagRunes+1)
	for _, tags := range []string{strings.Join(many, ";"), long} {
		_, told, items = said(t, "a.csv", "text,tags\none,"+tags+"\n")
		if m := metadata(items[0]); told != nil || m["tags"] != tags {
			t.Errorf("%q, %v", told, m)
		}
	}
	_, _, items = said(t, "a.csv", "text,tags\none,\"a; a;"+strings.Join(many[2:], ";")+" \"\n")
	if m := metadata(items[0]); len(m) != 0 || len(items[0].Capture.Tags) != memory.MaxTags {
		t.Errorf("%v, %q", m, items[0].Capture.Tags)
	}
	for _, at := range []string{"3020-01-01", "1735600000000000"} {
		texts, told, _ := said(t, "a.csv", "text,date\none,"+at+"\n")
		if len(texts) != 1 || len(told) != 1 || told[0] != "line 2: left out: a time that lies outside the years 1700 to 2250; the memory has the time of its import" {
			t.Errorf("%s: %q", at, told)
		}
	}
	if _, told, _ := said(t, "a.csv", "text,date\none,0001-01-01T00:00:00Z\n"); told != nil {
		t.Errorf("%q", told)
	}
}

// What front matter says was lost without a word: all of it for one number that is none or where it was large, tags that were
// numbers, fields or too many, and a date that no memory has.
func TestWhatFrontMatterLostWithoutAWord(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("t1, t2, ", 2), ", ")
	for i := range memory.MaxTags {
		many += fmt.Sprintf(", u%d", i)
	}
	for name, c := range map[string]struct {
		front, keeps, told string
		tags               int
	}{
		"a number that is none": {"x: .nan\nowner: ann\n", `{"owner":"ann","x":"NaN"}`, "", 0},
		"a tag that is one":     {"tags: 5\n", "", "", 1},
		"tags that are fields":  {"tags: {a: b}\n", `{"tags":{"a":"b"}}`, "", 0},
		"many tags":             {"tags: [" + many + "]\n", `"u31"`, "", memory.MaxTags},
		"far too many tags":     {"owner: ann\ntags: [" + many + ", " + strings.Repeat("x", memory.MaxMetadataBytes) + "]\n", `{"owner":"ann"}`, "a.md line 1: left out: tags that are too many or too long", memory.MaxTags},
		"large":                 {"owner: " + strings.Repeat("x", memory.MaxMetadataBytes) + "\n", "", "a.md line 1: left out: front matter for which metadata have no room", 0},
		"deep":                  {"owner: " + strings.Repeat("[", 10) + strings.Repeat("]", 10) + "\n", "[[[", "", 0},
		"a date that is none":   {"date: 3020-01-01\n", "3020", "a.md line 1: left out: a time that lies outside the years 1700 to 2250; the memory has the time of its file", 0},
		"one not understood":    {"date: 01/05/2024\n", "01/05/2024", "a.md line 1: left out: a time that is not understood; the memory has the time of its file", 0},
	} {
		_, told, items := said(t, "a.md", "---\n"+c.front+"---\ntext\n")
		if len(items) != 1 || strings.Join(told, "") != c.told || len(items[0].Capture.Tags) != c.tags || items[0].Capture.OccurredAt == nil {
			t.Errorf("%s: %q, %+v", name, told, items)
			continue
		}
		var m struct {
			Front json.RawMessage `json:"front_matter"`
		}
		if err := json.Unmarshal(items[0].Capture.Metadata, &m); err != nil || !strings.Contains(string(m.Front), c.keeps) || c.keeps == "" && m.Front != nil {
			t.Errorf("%s: %s, %v", name, items[0].Capture.Metadata, err)
		}
	}
}

// Of a key that stands twice in a line the first value was lost, and half of a character became another one.
func TestWhatJSONLostWithoutAWord(t *testing.T) {
	for line, want := range map[string]string{
		`{"text":"one","text":"two"}`:                           `line 1: the key "text" stands there twice`,
		`{"text":"one","TEXT":"two"}`:                           `line 1: the key "TEXT" stands there twice`,
		`{"te\u0078t":"one","kind":"fact","text":"two"}`:        `line 1: the key "text" stands there twice`,
		`{"text":"a \"text\" {","metadata":{"text":1,"a":[1]}}`: "",
		`{"text":"one \ud83d"}`:                                 "line 1: left out: " + halved,
		`{"text":"one \ud83d\u0041"}`:                           "line 1: left out: " + halved,
		`{"text":"one \uDE00","metadata":{"a":"\ude00"}}`:       "line 1: left out: " + halved,
		`{"text":"one \uD83D\uDE00 \\ud83d \\\\\ud83d\ude00"}`:  "",
	} {
		if _, told, _ := said(t, "a.jsonl", line+"\n"); strings.Join(told, "") != want {
			t.Errorf("%s: %q, want %q", line, told, want)
		}
	}
	for name, text := range map[string]string{
		"a.jsonl":            `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi \ud83d"}}`,
		"b.jsonl":            `{"type":"entity","name":"a","entityType":"t","observations":["\ud83d"]}`,
		"c.json":             `[{"id":"c","title":"\ud83d","mapping":{"m":{"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}}}]`,
		"d.json":             `[{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"hi \ud83d"}]}]`,
		"e.json":             `[{"id":"m","memory":"hi \ud83d"}]`,
		"observations.json":  `[{"id":1,"entityName":"e","title":"hi \ud83d","narrative":""}]`,
		"rollout-2025.jsonl": `{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi \ud83d"}]}}`,
	} {
		texts, told, _ := said(t, name, text+"\n")
		if len(texts) != 1 || len(told) != 1 || !strings.HasSuffix(told[0], halved) {
			t.Errorf("%s: %q, %q", name, texts, told)
		}
	}
	// Of what is not taken, halves are none that are left out: tools cut their outputs anywhere.
	for name, text := range map[string]string{
		"a.jsonl": `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","content":"hi \ud83d"}]}}`,
		"c.json":  `[{"id":"c","x":"\ud83d","mapping":{"m":{"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}}}]`,
		"e.json":  `[{"id":"m","memory":"hi","state":"deleted","x":"\ud83d"}]`,
	} {
		if _, told, _ := said(t, name, text+"\n"); strings.Contains(strings.Join(told, " "), halved) {
			t.Errorf("%s: %q", name, told)
		}
	}
}

// A message that says nothing was counted nowhere, and an observation that does, twice.
func TestAMessageWithoutTextWasNotCounted(t *testing.T) {
	for name, text := range map[string]string{
		"a.jsonl":           `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[{"type":"text","text":" "}]}}`,
		"b.jsonl":           `{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[]}}`,
		"c.json":            `[{"id":"c","title":"t","mapping":{"m":{"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":[""]}}}}}]`,
		"d.json":            `[{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"","content":[]}]}]`,
		"observations.json": `[{"id":1,"entityName":"e","title":"","narrative":"","createdAt":"never"}]`,
	} {
		if texts, told, _ := said(t, name, text+"\n"); len(texts) != 0 || len(told) != 1 || !strings.HasSuffix(told[0], empty) && !strings.HasSuffix(told[0], "text is empty") {
			t.Errorf("%s: %q, %q", name, texts, told)
		}
	}
}
