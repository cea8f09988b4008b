package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/memory"
)

// answered is how often a memory was answered, and of these how often as one that had counted it. On
// a machine that does much else some are overtaken until their patience ends, and say so.
type answered struct{ times, counted int }

// atOnce stores the same n times at once, each time by the next of sessions, and again where it was told
// to. It returns what was answered, by the memory's id.
func atOnce(t *testing.T, n int, in map[string]any, sessions ...*sdk.ClientSession) map[string]answered {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	ids := map[string]answered{}
	for i := range n {
		all.Go(func() {
			var out storedOut
			text, failed := call(t, sessions[i%len(sessions)], "memory_store", in, &out)
			for failed && strings.HasPrefix(text, "overloaded: ") {
				text, failed = call(t, sessions[i%len(sessions)], "memory_store", in, &out)
			}
			if failed {
				t.Error(text)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			one := ids[out.ID]
			if one.times++; !strings.Contains(text, "could not be counted") {
				one.counted++
			}
			ids[out.ID] = one
		})
	}
	all.Wait()
	for id, of := range ids {
		if of.counted < min(of.times, 2) { // one stores it, and nobody overtakes the first count
			t.Errorf("%s was answered %d times and counted %d", id, of.times, of.counted)
		}
	}
	return ids
}

// all lists the memories of the team that have a text.
func (w *world) all(text string) []memory.Record {
	w.t.Helper()
	list, err := w.api.List(w.t.Context(), "team", client.ListOptions{ListRequest: memory.ListRequest{Limit: memory.MaxLimit}})
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Records, func(r memory.Record) bool { return r.Text != text })
}

// TestManyAtOnceWereManyMemories: those that found nothing each kept the text, and what counted at the
// same moment was not counted.
func TestManyAtOnceWereManyMemories(t *testing.T) {
	w := newWorld(t)
	ann := []*sdk.ClientSession{w.connect("?namespace=team&agent=ann", nil), w.connect("?namespace=team&agent=ann", nil)}
	const n = 64
	for _, in := range []map[string]any{
		{"text": "The harbour opens at six."},
		{"text": "!!!"}, // which no search finds
		{"text": "The mole was rebuilt.", "uri": "harbour/mole", "occurred_at": "2026-03-01", "conversation": "one"},
	} {
		ids := atOnce(t, n, in, ann...)
		there := w.all(in["text"].(string))
		if len(there) != 1 || len(ids) != 1 || ids[there[0].RecordID].times != n {
			t.Fatalf("%v: answered %v, there are %d", in, ids, len(there))
		}
		if s := likeness.SaidOf(there[0].Metadata); s.Repeats != ids[there[0].RecordID].counted-1 || there[0].Version != s.Repeats+1 {
			t.Errorf("%v: %+v at version %d", in, s, there[0].Version)
		}
	}
	// What was forgotten is stored anew, by all who come at once as one.
	const again = "The harbour opens at six."
	for range 3 {
		if _, err := w.api.Forget(t.Context(), "team", w.all(again)[0].RecordID, client.WriteOptions{As: "ann"}); err != nil {
			t.Fatal(err)
		}
		ids := atOnce(t, 8, map[string]any{"text": again}, ann...)
		if there := w.all(again); len(there) != 1 || likeness.SaidOf(there[0].Metadata).Repeats != ids[there[0].RecordID].counted-1 {
			t.Errorf("forgotten: %+v", there)
		}
	}
	// So is what a memory said before it was corrected.
	former := w.all(again)[0].RecordID
	if _, err := w.api.Revise(t.Context(), "team", former, memory.Revision{Text: new("The harbour opens at seven.")}, client.WriteOptions{As: "ann"}); err != nil {
		t.Fatal(err)
	}
	ids := atOnce(t, 8, map[string]any{"text": again}, ann...)
	if len(ids) != 1 || ids[former] != (answered{}) {
		t.Errorf("corrected: %v", ids)
	}
	if there := w.all(again); len(there) != 1 || likeness.SaidOf(there[0].Metadata).Repeats != ids[there[0].RecordID].counted-1 {
		t.Errorf("corrected: %+v", there)
	}
}

// TestAgentsAtOnceHaveTheirOwn memories of what all of them say.
func TestAgentsAtOnceHaveTheirOwn(t *testing.T) {
	w := newWorld(t)
	var sessions []*sdk.ClientSession
	const agents, times = 8, 4
	for i := range agents {
		sessions = append(sessions, w.connect(fmt.Sprintf("?namespace=team&agent=agent-%d", i), nil))
	}
	const said = "The tide is high at noon."
	ids := atOnce(t, agents*times, map[string]any{"text": said}, sessions...)
	there := w.all(said)
	if len(there) != agents || len(ids) != agents {
		t.Fatalf("answered %v, there are %d", ids, len(there))
	}
	seen := map[string]bool{}
	for _, r := range there {
		if of := ids[r.RecordID]; seen[r.Agent] || of.times != times || r.Version != of.counted {
			t.Errorf("%+v, answered %+v", r, of)
		}
		seen[r.Agent] = true
	}
}

// TestAnAgentsOwnWasNotFound among those of many who said the same: it was kept once more.
func TestAnAgentsOwnWasNotFound(t *testing.T) {
	w := newWorld(t)
	const agents = 26
	ids := map[string]bool{}
	for round := range 2 {
		for i := range agents {
			s := w.connect(fmt.Sprintf("?namespace=team&agent=agent-%02d", i), nil)
			got, text := storing(t, s, map[string]any{"text": "The tide is high at noon."})
			if ids[got.ID] != (round == 1) || (got.Status == "duplicate") != (round == 1) {
				t.Errorf("round %d, agent %d: %+v, %s", round, i, got, text)
			}
			ids[got.ID] = true
		}
	}
	s := w.connect("?namespace=team&agent=ann", nil)
	for round := range 2 {
		for day := range 30 {
			got, text := storing(t, s, map[string]any{"text": "The tide was high.", "occurred_at": fmt.Sprintf("2026-04-%02d", day+1)})
			if ids[got.ID] != (round == 1) || (got.Status == "duplicate") != (round == 1) {
				t.Errorf("round %d, day %d: %+v, %s", round, day+1, got, text)
			}
			ids[got.ID] = true
		}
	}
}

// TestWhatIsForgottenAgainAndAgain is stored each time that it is said, whatever ids are spent by then.
func TestWhatIsForgottenAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	ids := map[string]bool{}
	for i := range 40 { // more often than ids are looked through
		got, text := storing(t, s, map[string]any{"text": "The harbour opens at six."})
		if got.Status != "created" || ids[got.ID] {
			t.Fatalf("time %d: %+v, %s", i, got, text)
		}
		if ids[got.ID] = true; i%2 == 0 {
			if again, text := storing(t, s, map[string]any{"text": "The harbour opens at six."}); again.ID != got.ID || again.Times != 2 {
				t.Errorf("time %d: %+v, %s", i, again, text)
			}
		}
		if text, failed := call(t, s, "memory_forget", map[string]any{"id": got.ID}, nil); failed {
			t.Fatal(text)
		}
	}
}

// TestWhatWasForgottenOftenWasStoredTwice: those who stored at once what had been forgotten 33 times
// found no id that was the same for all, and kept a memory each.
func TestWhatWasForgottenOftenWasStoredTwice(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	const said = "The harbour opens at six."
	for range 34 {
		got, _ := storing(t, s, map[string]any{"text": said})
		if _, err := w.api.Forget(t.Context(), "team", got.ID, client.WriteOptions{As: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	ids := atOnce(t, 3, map[string]any{"text": said}, s) // each looks through all of them, for which it has so much time
	if there := w.all(said); len(there) != 1 || len(ids) != 1 || likeness.SaidOf(there[0].Metadata).Repeats != ids[there[0].RecordID].counted-1 {
		t.Errorf("answered %v, there are %d", ids, len(there))
	}
}

// refusing answers captures under an id that Mneme made itself: so many, or all where times is negative.
type refusing struct {
	status int
	answer string
	times  int
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.times == 0 || !strings.HasSuffix(r.URL.Path, "/events") || r.Method != http.MethodPost {
		return http.DefaultTransport.RoundTrip(r)
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body = io.NopCloser(bytes.NewReader(b)); !bytes.Contains(b, []byte(`"id":"said-`)) {
		return http.DefaultTransport.RoundTrip(r)
	}
	f.times--
	return &http.Response{StatusCode: f.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(f.answer)), Request: r}, nil
}

// TestAnIDOfWhatWasErased stops no store, and one whose outcome is not known says that it may be sent again.
func TestAnIDOfWhatWasErased(t *testing.T) {
	w := newWorld(t)
	stored := func(f *refusing) (string, bool) {
		api, err := client.New(w.node.HTTPAddr(), client.Options{HTTPClient: &http.Client{Transport: f}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api.Close() })
		return call(t, w.beside(api), "memory_store", map[string]any{"text": "The harbour opens at six."}, nil)
	}
	if text, failed := stored(&refusing{200, `{"position":"p0.0.1.0","results":[{"status":"rejected","error":{"code":"gone","detail":"it was erased","hint":"use a new id"}}]}`, 3}); failed || !strings.HasPrefix(text, "Remembered as ") {
		t.Errorf("erased: %s", text)
	}
	if there := w.all("The harbour opens at six."); len(there) != 1 {
		t.Errorf("erased: %d memories", len(there))
	}
	if _, err := w.api.Forget(t.Context(), "team", w.all("The harbour opens at six.")[0].RecordID, client.WriteOptions{As: "ann"}); err != nil {
		t.Fatal(err)
	}
	if text, failed := stored(&refusing{504, `{"type":"about:blank","status":504,"code":"outcome_unknown","detail":"nobody knows"}`, -1}); !failed || !strings.HasPrefix(text, "outcome_unknown: ") || !strings.Contains(text, "store it again") {
		t.Errorf("unknown: %s", text)
	}
	if text, failed := stored(&refusing{200, `{"position":"p0.0.1.0","results":[{"status":"rejected","error":{"code":"quota","detail":"it is full","hint":"ask for more"}}]}`, 1}); !failed || text != "quota: it is full. ask for more" {
		t.Errorf("full: %s", text)
	}
}
