package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// importInto imports lines into a node that hands each batch to take before it answers.
func importInto(t *testing.T, lines []memory.Capture, take func(items []memory.Capture) error) (code int, said string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/namespaces/team", func(w http.ResponseWriter, _ *http.Request) {
		_ = answer(w, memory.Namespace{Name: "team"})
	})
	mux.HandleFunc("POST /v1/namespaces/team/events", func(w http.ResponseWriter, r *http.Request) {
		var items []memory.Capture
		err := json.NewDecoder(r.Body).Decode(&items)
		if err == nil {
			err = take(items)
		}
		if err != nil {
			fakeProblem(w, err)
			return
		}
		var resp memory.CaptureResponse
		for _, c := range items {
			resp.Results = append(resp.Results, memory.CaptureResult{RecordID: c.ID, Status: memory.StatusCreated})
		}
		_ = answer(w, resp)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, c := range lines {
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	sys := system{in: &in, out: &out, err: &out, getenv: func(string) string { return "" }, isTerminal: func(any) bool { return false },
		width: func() int { return 80 }, now: time.Now, sleep: sleep, configDir: func() (string, error) { return t.TempDir(), nil },
		userName: func() string { return "me" }, http: srv.Client()}
	code = run(t.Context(), sys, []string{"import", "--addr", srv.URL, "-n", "team", "--format", "jsonl", "-"})
	return code, out.String()
}

// talks are n memories, so many of them in a row in one conversation.
func talks(n, each int) []memory.Capture {
	var out []memory.Capture
	for i := range n {
		out = append(out, memory.Capture{ID: fmt.Sprint("id-", i), Agent: "ann", Text: fmt.Sprint("text ", i), Conversation: fmt.Sprint("talk-", i/each)})
	}
	return out
}

// The second batch is sent before the first is answered.
func TestImportHasTwoBatchesOnTheirWay(t *testing.T) {
	var mu sync.Mutex
	came, sizes := 0, []int{}
	second := make(chan struct{})
	code, said := importInto(t, talks(3*importBatch, 10), func(items []memory.Capture) error {
		mu.Lock()
		came++
		sizes = append(sizes, len(items))
		if came == 2 {
			close(second)
		}
		mu.Unlock()
		select {
		case <-second:
			return nil
		case <-time.After(time.Minute):
			return memory.Errorf(memory.CodeInvalid, "no second batch came while the first one waited")
		}
	})
	if code != 0 || !strings.Contains(said, fmt.Sprint(3*importBatch, " imported")) {
		t.Errorf("exit %d: %s", code, said)
	}
	for _, n := range sizes {
		if n%10 != 0 {
			t.Errorf("batches of %v cut a conversation", sizes)
		}
	}
}

// No batch overtakes another one of its conversation, and neither does what has no order but that
// in which it comes.
func TestImportKeepsTheOrderOfConversations(t *testing.T) {
	interleaved := talks(2*importBatch+100, 10)
	for i := range interleaved {
		interleaved[i].Conversation = fmt.Sprint("talk-", i%2)
	}
	for name, lines := range map[string][]memory.Capture{"one": talks(2*importBatch+100, 10_000), "two in turns": interleaved, "none": talks(2*importBatch+100, 1)} {
		if name == "none" {
			for i := range lines {
				lines[i].Conversation = ""
			}
		}
		var mu sync.Mutex
		came, texts := 0, []string{}
		second := make(chan struct{})
		code, said := importInto(t, lines, func(items []memory.Capture) error {
			mu.Lock()
			came++
			at := came
			for _, c := range items {
				texts = append(texts, c.Text)
			}
			mu.Unlock()
			if at == 2 {
				close(second)
			}
			if at > 1 {
				return nil
			}
			select { // one that does not wait its turn comes at once
			case <-second:
				return memory.Errorf(memory.CodeInvalid, "a second batch came before the first was answered")
			case <-time.After(200 * time.Millisecond):
				return nil
			}
		})
		var want []string
		for _, c := range lines {
			want = append(want, c.Text)
		}
		if code != 0 || !slices.Equal(texts, want) {
			t.Errorf("%s: exit %d, %d of %d memories, in order: %v\n%s", name, code, len(texts), len(want), slices.Equal(texts, want), said)
		}
	}
}

// Where one batch fails, what of the others arrived is counted.
func TestImportCountsWhatArrivedBesideAFailure(t *testing.T) {
	var mu sync.Mutex
	came := 0
	second := make(chan struct{})
	code, said := importInto(t, talks(3*importBatch, 10), func([]memory.Capture) error {
		mu.Lock()
		came++
		first := came == 1
		if came == 2 {
			close(second)
		}
		mu.Unlock()
		<-second
		if first {
			return memory.Errorf(memory.CodeQuota, "the namespace is full")
		}
		return nil
	})
	if code != 4 || !strings.Contains(said, "the namespace is full") || !strings.Contains(said, "memories were sent; run the same import again") {
		t.Errorf("exit %d: %s", code, said)
	}
}

func TestOvertakes(t *testing.T) {
	at := fakeNow
	flight := func(captures ...memory.Capture) *importFlight {
		var items []importer.Item
		for _, c := range captures {
			items = append(items, importer.Item{Capture: c})
		}
		return newImportFlight(items)
	}
	loose, timed := memory.Capture{}, memory.Capture{OccurredAt: &at}
	a, b := memory.Capture{Conversation: "a", OccurredAt: &at}, memory.Capture{Conversation: "b"}
	for _, c := range []struct {
		before, next *importFlight
		want         bool
	}{
		{flight(a), flight(b), false}, {flight(a, b), flight(b), true}, {flight(a), flight(b, a), true},
		{flight(loose), flight(loose), true}, {flight(loose), flight(timed, a), false}, {flight(timed), flight(timed), false},
	} {
		s := importSender{flights: []*importFlight{c.before}}
		if got := s.overtakes(c.next); got != c.want {
			t.Errorf("%v behind %v: %v", c.next.order, c.before.order, got)
		}
	}
}

func TestWholeConversations(t *testing.T) {
	for _, c := range []struct {
		of   string // a letter for the conversation of each item; . is none
		want int
	}{{"aabb", 2}, {"aaaa", 4}, {"aab.", 4}, {"....", 4}, {"a", 1}, {"abab", 3}} {
		var items []importer.Item
		for _, r := range c.of {
			items = append(items, importer.Item{Capture: memory.Capture{Conversation: strings.Trim(string(r), ".")}})
		}
		if got := wholeConversations(items); got != c.want {
			t.Errorf("%s: %d, want %d", c.of, got, c.want)
		}
	}
}
