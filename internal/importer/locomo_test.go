package importer

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

const sampleFile = `[
{"sample_id":"Conv-1","conversation":{"speaker_a":"Ann","speaker_b":"Bob",
 "session_10_date_time":"10:31 am on 13 October, 2023","session_10":[{"speaker":"Ann","dia_id":"D10:1","text":"late"}],
 "session_2_date_time":"12:09 am on 13 September, 2023","session_2":[
  {"speaker":"Ann","dia_id":"D2:1","text":"hi"},
  {"speaker":"Bob Jones","dia_id":"D2:2","text":"look","img_url":["u"],"blip_caption":"a photo of a dog","query":"dog"},
  {"speaker":"Bob Jones","dia_id":"D2:3","text":"","blip_caption":"a cat"},
  {"speaker":"Bob Jones","dia_id":"D2:4","text":""},
  {"speaker":"","dia_id":"D2:5","text":"nobody"},
  {"speaker":"Ann","text":"no id"},
  {"speaker":"Ann","dia_id":"D2:1","text":"again"},
  7],
 "session_3_date_time":"some day","session_3":[{"speaker":"小明","dia_id":"D3:1","text":"undated"}],
 "session_4":"not a list","session_5":null,"session_6_date_time":"1:56 pm on 8 May, 2023","session_x":[]},
 "qa":[{"question":"q1","answer":1,"evidence":["D2:1"],"category":2},
  {"question":"q2","evidence":["D2:1; D2:2","D:11:26","D"],"category":1},
  {"question":"q3","evidence":["D99:1","D2:1","D2:1"],"category":5},
  {"question":"q4","evidence":[],"category":3},
  {"question":"q5","category":3},
  {"question":"q6","evidence":"D2:1","category":3},
  {"question":"q7","evidence":[["D2:1"]],"category":3}]},
{"conversation":{"session_1_date_time":"1:56 pm on 8 May, 2023","session_1":[{"speaker":"C","dia_id":"D1:1","text":"x"}]}}]`

func TestLocomoMakesOneCaptureOfEachTurn(t *testing.T) {
	items, bad, err := readAll(t, open(t, "locomo", sampleFile, Options{NamespacePrefix: "bench-"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range items {
		at := "-"
		if it.Capture.OccurredAt != nil {
			at = it.Capture.OccurredAt.Format(time.RFC3339)
		}
		got = append(got, strings.Join([]string{it.Namespace, it.Capture.ID, it.Capture.Agent, it.Capture.Conversation, at, it.Capture.Text}, "|"))
	}
	want := []string{
		"bench-conv-1|locomo/Conv-1/D2:1|ann|session-2|2023-09-13T00:09:00Z|hi",
		"bench-conv-1|locomo/Conv-1/D2:2|bob-jones|session-2|2023-09-13T00:09:01Z|look [image: a photo of a dog]",
		"bench-conv-1|locomo/Conv-1/D2:3|bob-jones|session-2|2023-09-13T00:09:02Z|[image: a cat]",
		"bench-conv-1|locomo/Conv-1/D3:1|" + nameOr("speaker", "小明") + "|session-3|-|undated",
		"bench-conv-1|locomo/Conv-1/D10:1|ann|session-10|2023-10-13T10:31:00Z|late",
		"bench-sample-2|locomo/sample-2/D1:1|c|session-1|2023-05-08T13:56:00Z|x",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("items\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := items[0].Capture
	if first.Kind != memory.KindMessage || first.URI != "locomo/Conv-1/D2:1" || string(first.Metadata) != `{"dia_id":"D2:1","speaker":"Ann"}` {
		t.Errorf("first %+v metadata %s", first, first.Metadata)
	}
	var wrong []string
	for _, b := range bad {
		wrong = append(wrong, b.Error())
	}
	for i, w := range []string{"Conv-1 D2:4: text is empty", "Conv-1 D2:5: agent is missing", `Conv-1 session-2 turn 6: dia_id ""`,
		`Conv-1 session-2 turn 7: dia_id "D2:1"`, "Conv-1 session-2 turn 8:", "Conv-1 session-3: its date", "Conv-1 session-4: is not a list"} {
		if i >= len(wrong) || !strings.HasPrefix(wrong[i], w) {
			t.Errorf("oddity %d: got %q, want %q", i, wrong, w)
			break
		}
	}
	if len(wrong) != 7 {
		t.Errorf("%d oddities: %q", len(wrong), wrong)
	}
}

func TestLocomoIntoOneNamespace(t *testing.T) {
	_, _, err := readAll(t, open(t, "locomo", sampleFile, Options{Namespace: "mine"}))
	if memory.CodeOf(err) != memory.CodeInvalid || memory.AsError(err).Hint == "" {
		t.Fatalf("two conversations: error %v", err)
	}
	one := `[{"sample_id":"c","conversation":{"session_1":[{"speaker":"A","dia_id":"D1:1","text":"x"}]}}]`
	items, _, err := readAll(t, open(t, "locomo", one, Options{Namespace: "mine"}))
	if err != nil || len(items) != 1 || items[0].Namespace != "mine" {
		t.Fatalf("one conversation: items %v, error %v", items, err)
	}
}

func TestLocomoSaysWhatIsNotALocomoFile(t *testing.T) {
	for _, in := range []string{"", "{}", "[", "[1]", `[{"sample_id":"a"}`, `[{"conversation":7}]`} {
		s := open(t, "locomo", in, Options{})
		_, _, err := readAll(t, s)
		if memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "not a locomo file") {
			t.Errorf("%q: error %v", in, err)
		}
		if _, again := s.Next(); !errors.Is(again, err) {
			t.Errorf("%q: a finished source says %v", in, again)
		}
		if _, _, err := Questions(strings.NewReader(in)); err == nil {
			t.Errorf("%q: Questions found no error", in)
		}
	}
}

func TestQuestionsCountOddities(t *testing.T) {
	qs, counts, err := Questions(strings.NewReader(sampleFile))
	if err != nil {
		t.Fatal(err)
	}
	want := []Question{
		{"Conv-1", "q1", 2, []string{"D2:1"}},
		{"Conv-1", "q2", 1, []string{"D2:1", "D2:2"}},
		{"Conv-1", "q3", 5, []string{"D99:1", "D2:1"}},
		{"Conv-1", "q4", 3, nil}, {"Conv-1", "q5", 3, nil}, {"Conv-1", "q6", 3, nil}, {"Conv-1", "q7", 3, nil},
	}
	if !reflect.DeepEqual(qs, want) {
		t.Errorf("questions %+v", qs)
	}
	if counts != (QuestionCounts{Questions: 7, NoEvidence: 4, Malformed: 5, Missing: 1}) {
		t.Errorf("counts %+v", counts)
	}
}

// dataDir finds the folder with public data sets, or skips the test.
func dataDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("MNEME_DATA"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if found := filepath.Join(dir, "shared", "data"); isDir(found) {
			return found
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no data: set MNEME_DATA to a folder with locomo/dev.json")
		}
		dir = up
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func TestLocomoReadsTheRealFile(t *testing.T) {
	path := filepath.Join(dataDir(t), "locomo", "dev.json")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no data: " + path + " is missing")
	}
	if err != nil {
		t.Fatal(err)
	}
	items, bad, err := readAll(t, open(t, "locomo", string(b), Options{}))
	if err != nil || len(bad) > 0 {
		t.Fatalf("bad %v, error %v", bad, err)
	}
	namespaces := map[string]int{}
	turns := map[string]bool{}
	for _, it := range items {
		namespaces[it.Namespace]++
		if it.Capture.OccurredAt == nil {
			t.Fatalf("%s has no date", it.Capture.ID)
		}
		turns[it.Capture.ID] = true
	}
	// Counted by another program: turns of conv-26, conv-30 and conv-41.
	if want := map[string]int{"conv-26": 419, "conv-30": 369, "conv-41": 663}; !reflect.DeepEqual(namespaces, want) {
		t.Errorf("turns %v, want %v", namespaces, want)
	}
	qs, counts, err := Questions(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	answerable := 0
	for _, q := range qs {
		if q.Category != 5 && len(q.Evidence) > 0 {
			answerable++
		}
		for _, id := range q.Evidence {
			if !turns["locomo/"+q.Sample+"/"+id] {
				counts.Missing--
			}
		}
	}
	if len(qs) != 497 || answerable != 383 || counts.Missing != 0 {
		t.Errorf("%d questions, %d of categories 1 to 4 with evidence, counts %+v", len(qs), answerable, counts)
	}
	t.Logf("%d turns, %d questions, %d of categories 1 to 4 with evidence, %+v", len(items), len(qs), answerable, counts)
}
