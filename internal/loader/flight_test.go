package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// loadLines imports lines into a node that hands each batch to take before it answers.
func loadLines(t *testing.T, lines []memory.Capture, take func(items []memory.Capture) error) (*Summary, string, error) {
	t.Helper()
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, c := range lines {
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	n := newFakeNode()
	n.take = take
	return n.load(t, func(o *Options) { o.Format, o.In = "jsonl", &in }, "-")
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
	sum, said, err := loadLines(t, talks(3*maxBatch, 10), func(items []memory.Capture) error {
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
	if err != nil || sum.Totals().Created != 3*maxBatch {
		t.Errorf("%v, %v: %s", sum, err, said)
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
	interleaved := talks(2*maxBatch+100, 10)
	for i := range interleaved {
		interleaved[i].Conversation = fmt.Sprint("talk-", i%2)
	}
	for name, lines := range map[string][]memory.Capture{"one": talks(2*maxBatch+100, 10_000), "two in turns": interleaved, "none": talks(2*maxBatch+100, 1)} {
		if name == "none" {
			for i := range lines {
				lines[i].Conversation = ""
			}
		}
		var mu sync.Mutex
		came, texts := 0, []string{}
		second := make(chan struct{})
		sum, said, err := loadLines(t, lines, func(items []memory.Capture) error {
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
		if err != nil || !slices.Equal(texts, want) {
			t.Errorf("%s: %v, %v, %d of %d memories, in order: %v\n%s", name, sum, err, len(texts), len(want), slices.Equal(texts, want), said)
		}
	}
}

// Where one batch fails, what of the others arrived is counted.
func TestImportCountsWhatArrivedBesideAFailure(t *testing.T) {
	var mu sync.Mutex
	came := 0
	second := make(chan struct{})
	sum, said, err := loadLines(t, talks(3*maxBatch, 10), func(items []memory.Capture) error {
		mu.Lock()
		came++
		first := items[0].Text == "text 0"
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
	if memory.CodeOf(err) != memory.CodeQuota || !strings.Contains(said, "490 memories were sent; run the same import again") {
		t.Errorf("%v, %v: %s", sum, err, said)
	}
}

func TestOvertakes(t *testing.T) {
	at := time.Date(2024, 5, 10, 12, 0, 0, 0, time.UTC)
	of := func(captures ...memory.Capture) *flight {
		var items []importer.Item
		for _, c := range captures {
			items = append(items, importer.Item{Capture: c})
		}
		return newFlight(items)
	}
	loose, timed := memory.Capture{}, memory.Capture{OccurredAt: &at}
	a, b := memory.Capture{Conversation: "a", OccurredAt: &at}, memory.Capture{Conversation: "b"}
	for _, c := range []struct {
		before, next *flight
		want         bool
	}{
		{of(a), of(b), false}, {of(a, b), of(b), true}, {of(a), of(b, a), true},
		{of(loose), of(loose), true}, {of(loose), of(timed, a), false}, {of(timed), of(timed), false},
	} {
		s := sender{flights: []*flight{c.before}}
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

// A batch has at most so many bytes, and as many as fit.
func TestBatchesAreOfSoManyBytes(t *testing.T) {
	all := talks(60, 1)
	for i := range all {
		all[i].Text += strings.Repeat("x", 200<<10)
		all[i].Metadata = json.RawMessage(`{"k":"` + strings.Repeat("y", 15<<10) + `"}`)
	}
	var mu sync.Mutex
	var sizes []int
	sum, said, err := loadLines(t, all, func(items []memory.Capture) error {
		size := 0
		for _, c := range items {
			size += len(c.Text) + len(c.Metadata)
		}
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, size)
		return nil
	})
	if err != nil || sum.Totals().Created != 60 || len(sizes) != 4 || slices.Max(sizes) > maxBytes {
		t.Errorf("%v, batches of %v: %s", err, sizes, said)
	}
}

// No more batches are on their way than may be.
func TestSoManyBatchesAreOnTheirWay(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	third := make(chan struct{})
	_, said, err := loadLines(t, talks(5*maxBatch, 10), func([]memory.Capture) error {
		mu.Lock()
		if now++; now > most {
			if most = now; most == maxFlights+1 {
				close(third)
			}
		}
		mu.Unlock()
		select { // one too many comes at once
		case <-third:
		case <-time.After(100 * time.Millisecond):
		}
		mu.Lock()
		defer mu.Unlock()
		now--
		return nil
	})
	if err != nil || most > maxFlights {
		t.Errorf("%v, %d at once: %s", err, most, said)
	}
}
