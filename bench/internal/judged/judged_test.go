package judged

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

func write(t *testing.T, dir, name, data string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, name, dir string) *Set {
	t.Helper()
	set, err := Load(t.Context(), name, dir)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestLocomo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "locomo/dev.json", `[{"sample_id":"Conv-1","conversation":{
		"session_1_date_time":"1:56 pm on 8 May, 2023",
		"session_1":[{"speaker":"Ann","dia_id":"D1:1","text":"hello"},{"speaker":"Bob","dia_id":"D1:2","text":"hi"},{"dia_id":"D1:3","text":"nobody"}]},
		"qa":[{"question":"who?","category":1,"evidence":["D1:1; D1:2"]},
		      {"question":"where?","category":4,"evidence":["D9:9","D1:1"]},
		      {"question":"none","category":5,"evidence":[]}]}]`)
	set := load(t, "locomo", dir)
	want := Counts{Captures: 2, Questions: 3, NoEvidence: 1, Malformed: 1, Missing: 1, Unread: 1}
	if set.Counts != want {
		t.Errorf("counts %+v, want %+v", set.Counts, want)
	}
	if len(set.Namespaces) != 1 || set.Namespaces[0].Name != "conv-1" {
		t.Fatalf("namespaces %+v", set.Namespaces)
	}
	session := set.Namespaces[0].Captures[0].Conversation
	questions := []Question{
		{Text: "who?", Category: "1", Group: "conv-1 " + session, Evidence: []string{"locomo/Conv-1/D1:1", "locomo/Conv-1/D1:2"}},
		{Text: "where?", Category: "4", Group: "conv-1 question 1", Evidence: []string{"locomo/Conv-1/D9:9", "locomo/Conv-1/D1:1"}},
		{Text: "none", Category: "5", Group: "conv-1 question 2", Apart: true},
	}
	if got := set.Namespaces[0].Questions; !reflect.DeepEqual(got, questions) {
		t.Errorf("questions %+v", got)
	}
	valid(t, set)
}

func TestMemDaily(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "memdaily/02_b.json", `[]`)
	write(t, dir, "memdaily/01_a.json", `[{"tid":7,"message_list":[
		{"mid":0,"message":"我将要参加论坛。","time":"2024年04月01日 周一 08:30"},{"mid":1,"message":"","time":""},{"mid":2,"message":"x","time":"soon"}],
		"question_list":[{"question":"什么？","target_step_id":[0,0,1]},{"question":"谁？","target_step_id":["2"]}]}]`)
	set := load(t, "memdaily", dir)
	want := Counts{Captures: 2, Questions: 2, NoEvidence: 1, Malformed: 1, Missing: 1, Unread: 1}
	if set.Counts != want {
		t.Errorf("counts %+v, want %+v", set.Counts, want)
	}
	ns := set.Namespaces[0]
	if len(set.Namespaces) != 2 || ns.Name != "memdaily-01-a" && ns.Name != "memdaily-01_a" {
		t.Fatalf("namespaces %+v", set.Namespaces)
	}
	if got := ns.Captures[0]; got.ID != "memdaily/7/0" || got.OccurredAt.Format("2006-01-02 15:04") != "2024-04-01 08:30" || ns.Captures[1].OccurredAt != nil {
		t.Errorf("captures %+v", ns.Captures)
	}
	if got := ns.Questions[0].Evidence; !reflect.DeepEqual(got, []string{"memdaily/7/0", "memdaily/7/1"}) {
		t.Errorf("evidence %q", got)
	}
	valid(t, set)
}

func TestBeam(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("ä", memory.MaxTextBytes)
	write(t, dir, "beam/100K-1.json", `{"chat":[{"batch_number":1,"turns":[[
		{"role":"user","id":0,"time_anchor":"March-15-2024","content":"plan"},{"role":"Assistant","id":1,"content":"`+long+`"}],
		[{"role":"","id":2,"content":"x"},{"role":"user","content":"no id"},{"role":"user","id":2,"content":"again"},{"id":"bad"}]]}],
		"probing_questions":{
		 "summary":[{"question":"a","source_chat_ids":[2,[0,1],1]},{"question":"b","source_chat_ids":{"y":[9],"x":[0]}}],
		 "abstention":[{"question":"c"},{"question":"d","source_chat_ids":["one",0.5,null]}]}}`)
	set := load(t, "beam", dir)
	want := Counts{Captures: 3, Questions: 4, NoEvidence: 2, Malformed: 2, Missing: 1, Unread: 3, Cut: 1}
	if set.Counts != want {
		t.Errorf("counts %+v, want %+v", set.Counts, want)
	}
	ns := set.Namespaces[0]
	questions := []Question{
		{Text: "c", Category: "abstention", Group: "beam-100k-1 question 0", Nothing: true, Apart: true},
		{Text: "d", Category: "abstention", Group: "beam-100k-1 question 1", Nothing: true, Apart: true},
		{Text: "a", Category: "summary", Group: "beam-100k-1 batch-1", Evidence: []string{"beam/2", "beam/0", "beam/1"}},
		{Text: "b", Category: "summary", Group: "beam-100k-1 batch-1", Evidence: []string{"beam/0", "beam/9"}},
	}
	if !reflect.DeepEqual(ns.Questions, questions) {
		t.Errorf("questions %+v", ns.Questions)
	}
	if c := ns.Captures; c[1].Agent != "assistant" || c[2].Agent != "unknown" || c[1].OccurredAt.Year() != 2024 {
		t.Errorf("captures %v %v %v", c[0].Agent, c[1].Agent, c[2].Agent)
	}
	valid(t, set)
}

// valid checks that a node would take every capture.
func valid(t *testing.T, set *Set) {
	t.Helper()
	for _, ns := range set.Namespaces {
		if !memory.ValidName(ns.Name) {
			t.Errorf("namespace %q", ns.Name)
		}
		for _, c := range ns.Captures {
			if err := c.Validate(); err != nil {
				t.Errorf("%s: %v", c.ID, err)
			}
		}
	}
}

func TestMissingAndDamaged(t *testing.T) {
	empty := t.TempDir()
	for _, name := range published() {
		for _, dir := range []string{empty, ""} {
			if _, err := Load(t.Context(), name, dir); !errors.Is(err, ErrNoData) {
				t.Errorf("%s in %q: %v", name, dir, err)
			}
		}
	}
	dir := t.TempDir()
	for _, file := range []string{"locomo/dev.json", "memdaily/a.json", "beam/a.json", "realmem/a.json", "devmem/sessions.json", "devmem/questions.json",
		"precision/beliefs.json", "precision/cases.json"} {
		write(t, dir, file, `{"chat":3`)
	}
	for _, name := range append([]string{"nothing"}, published()...) {
		if _, err := Load(t.Context(), name, dir); err == nil || errors.Is(err, ErrNoData) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// published are the sets that are read from the data folder.
func published() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		return slices.Contains([]string{"identifiers", "long", "agents", Sealed}, name)
	})
}

func TestFindData(t *testing.T) {
	top := t.TempDir()
	repo, data := filepath.Join(top, "repo"), filepath.Join(top, "shared", "data")
	write(t, repo, "go.mod", "module x")
	write(t, repo, "a/b/c", "")
	deep := filepath.Join(repo, "a", "b")
	if _, err := FindData("", "", deep); !errors.Is(err, ErrNoData) {
		t.Errorf("nothing there: %v", err)
	}
	write(t, data, "x", "")
	if got, err := FindData("", "", deep); err != nil || got != data {
		t.Errorf("beside the repository: %q, %v", got, err)
	}
	if got, err := FindData("", repo, deep); err != nil || got != repo {
		t.Errorf("from the environment: %q, %v", got, err)
	}
	if got, err := FindData(deep, repo, deep); err != nil || got != deep {
		t.Errorf("as told: %q, %v", got, err)
	}
	if _, err := FindData(filepath.Join(top, "no"), repo, deep); !errors.Is(err, ErrNoData) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := FindData("", "", top); !errors.Is(err, ErrNoData) {
		t.Errorf("outside of a repository: %v", err)
	}
}

// TestRealData reads the real sets, where they are.
func TestRealData(t *testing.T) {
	dir, err := FindData("", os.Getenv("MNEME_DATA"), ".")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range published() {
		set, err := Load(t.Context(), name, dir)
		if errors.Is(err, ErrNoData) {
			t.Log(err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if set.Counts.Questions == 0 || set.Counts.Captures == 0 {
			t.Errorf("%s is empty", name)
		}
		t.Logf("%s: %+v", name, set.Counts)
		valid(t, set)
	}
}
