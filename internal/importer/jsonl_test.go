package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mneme/memory"
)

// readAll returns everything of a source, in order: items and ItemErrors.
func readAll(t testing.TB, s Source) (items []Item, bad []*ItemError, end error) {
	t.Helper()
	for range 1_000_000 {
		item, err := s.Next()
		var ie *ItemError
		switch {
		case err == nil:
			items = append(items, item)
		case errors.As(err, &ie):
			bad = append(bad, ie)
		case errors.Is(err, io.EOF):
			return items, bad, nil
		default:
			return items, bad, err
		}
	}
	t.Fatal("the source does not end")
	return nil, nil, nil
}

func open(t testing.TB, format, in string, opts Options) Source {
	t.Helper()
	s, err := Open(format, strings.NewReader(in), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJSONLReadsGoodLinesAndNamesBadOnes(t *testing.T) {
	in := "\ufeff" + `{"text":"a","agent":"x","id":"one","tags":["t"],"metadata":{"k":1}}` + "\r\n" +
		"   \n" +
		`{"text":"b"}` + "\n" +
		`{"text":"b","surprise":1}` + "\n" +
		`{"text":7}` + "\n" +
		`{"text":"cut` + "\n" +
		`nonsense` + "\n" +
		`{"text":"c","kind":"odd"}` + "\n" +
		`{"text":"` + strings.Repeat("x", maxLine) + `"}` + "\n" +
		`[1]` + "\n" +
		`{"text":"last"}`
	items, bad, err := readAll(t, open(t, "jsonl", in, Options{Namespace: "ns", Agent: "cli"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range items {
		got = append(got, fmt.Sprintf("%d %s %s %s", it.Line, it.Namespace, it.Capture.Agent, it.Capture.Text))
	}
	want := []string{"1 ns x a", "3 ns cli b", "11 ns cli last"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("items %q, want %q", got, want)
	}
	wantBad := map[int]string{4: `unknown field "surprise"`, 5: `field "text" cannot be a JSON number`, 6: "cut off", 7: "not JSON",
		8: "kind", 9: "longer than", 10: "is a JSON array, an object is wanted"}
	for _, b := range bad {
		if w, ok := wantBad[b.Line]; !ok || !strings.Contains(b.Error(), w) || !strings.HasPrefix(b.Error(), fmt.Sprintf("line %d: ", b.Line)) {
			t.Errorf("line %d: %v, want %q", b.Line, b, w)
		}
		delete(wantBad, b.Line)
	}
	if len(wantBad) > 0 {
		t.Errorf("not reported: %v", wantBad)
	}
}

func TestJSONLIdsAreTheSameAtEveryReadingAndTellRepeatsApart(t *testing.T) {
	in := strings.Repeat(`{"text":"ok"}`+"\n", 3) + `{"text":"other"}` + "\n" + `{"text":"ok","id":"mine"}`
	ids := func() []string {
		items, _, err := readAll(t, open(t, "jsonl", in, Options{Agent: "cli"}))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, it := range items {
			out = append(out, it.Capture.ID)
		}
		return out
	}
	a, b := ids(), ids()
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("first %q, then %q", a, b)
	}
	seen := map[string]bool{}
	for _, id := range a {
		if seen[id] {
			t.Fatalf("id %s comes twice in %q", id, a)
		}
		seen[id] = true
	}
	if a[4] != "mine" {
		t.Fatalf("a given id became %q", a[4])
	}
}

func TestJSONLImportsAnExportLine(t *testing.T) {
	id := "01J00000000000000000000001"
	at := time.Date(2024, 5, 8, 1, 2, 3, 0, time.UTC)
	line := memory.ExportLine{Capture: memory.Capture{ID: "c1", Agent: "ann", Text: "t", Kind: memory.KindFact, URI: "mem://old/notes/a",
		Tags: []string{"x"}, Scope: memory.ScopeTeam, OccurredAt: &at}, RecordID: id, Version: 3, Position: "p1", CreatedAt: at}
	plain := line
	plain.ID, plain.URI = "", "mem://old/"+id
	b1, _ := json.Marshal(line)
	b2, _ := json.Marshal(plain)
	items, bad, err := readAll(t, open(t, "jsonl", string(b1)+"\n"+string(b2), Options{Namespace: "new"}))
	if err != nil || len(bad) > 0 || len(items) != 2 {
		t.Fatalf("items %v, bad %v, error %v", items, bad, err)
	}
	first, second := items[0], items[1]
	if first.RecordID != id || first.Capture.ID != "c1" || first.Capture.URI != "notes/a" || !first.Capture.OccurredAt.Equal(at) {
		t.Errorf("first %+v", first)
	}
	if second.Capture.ID != "export/"+id+".3" || second.Capture.URI != "" {
		t.Errorf("second %+v", second)
	}
}

func TestJSONLEndsWithTheReadersError(t *testing.T) {
	s, err := Open("jsonl", iotest.TimeoutReader(strings.NewReader(strings.Repeat("{\"text\":\"a\",\"agent\":\"b\"}\n", 9000))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = readAll(t, s)
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Next(); !errors.Is(err, iotest.ErrTimeout) {
		t.Fatalf("a finished source says %v", err)
	}
}

func TestJSONLIsTheSameForEveryReadSize(t *testing.T) {
	in := "{\"text\":\"a\",\"agent\":\"b\"}\n\nbad\n{\"text\":\"" + strings.Repeat("long ", 30000) + "\",\"agent\":\"b\"}"
	whole, wholeBad, _ := readAll(t, open(t, "jsonl", in, Options{}))
	s, _ := Open("jsonl", iotest.OneByteReader(strings.NewReader(in)), Options{})
	bytewise, bytewiseBad, err := readAll(t, s)
	if err != nil || !reflect.DeepEqual(whole, bytewise) || len(wholeBad) != 1 || len(bytewiseBad) != 1 {
		t.Fatalf("%d and %d items, %v, %v, error %v", len(whole), len(bytewise), wholeBad, bytewiseBad, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		format string
		opts   Options
	}{{"xml", Options{}}, {"jsonl", Options{Namespace: "No"}}} {
		if _, err := Open(c.format, strings.NewReader(""), c.opts); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%v: error %v", c, err)
		}
	}
}

func TestMakeName(t *testing.T) {
	for in, want := range map[string]string{
		"Caroline": "caroline", "Ann Smith": "ann-smith", "  a  b  ": "a-b", "_x": "x", "a_b": "a_b", "-a-": "a", "名": "", "": "",
		"Éa": "a", "A.B@C": "a-b-c", strings.Repeat("a", 70): strings.Repeat("a", 63), strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
	} {
		got := MakeName(in)
		if got != want {
			t.Errorf("MakeName(%q) = %q, want %q", in, got, want)
		}
		if got != "" && !memory.ValidName(got) {
			t.Errorf("MakeName(%q) = %q is not valid", in, got)
		}
	}
	if a, b := nameOr("speaker", "小明"), nameOr("speaker", "小红"); a == b || !memory.ValidName(a) {
		t.Errorf("stand-ins %q and %q", a, b)
	}
}

// FuzzImport feeds every format with anything: no panic, an end, valid items.
func FuzzImport(f *testing.F) {
	f.Add(false, `{"text":"a","agent":"b"}`+"\n"+`{"text":`)
	f.Add(false, `{"record_id":"x","uri":"mem://a/b","text":"t","agent":"b","version":-1}`)
	f.Add(true, sampleFile)
	f.Add(true, `[{"conversation":{"session_1":null,"session_2":[null,1,{"speaker":"_"}],"session_2_date_time":[]}},`)
	f.Fuzz(func(t *testing.T, locomo bool, in string) {
		format := "jsonl"
		if locomo {
			format = "locomo"
			_, _, _ = Questions(strings.NewReader(in))
		}
		items, _, _ := readAll(t, open(t, format, in, Options{Agent: "cli", NamespacePrefix: "p-"}))
		for _, it := range items {
			if err := it.Capture.Validate(); err != nil {
				t.Fatalf("item %+v: %v", it, err)
			}
			if locomo && !memory.ValidName(it.Namespace) {
				t.Fatalf("namespace %q", it.Namespace)
			}
		}
	})
}
