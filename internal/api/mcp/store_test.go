package mcp_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/api/mcp"
	"mneme/memory"
)

type storedOut struct {
	ID, Status, Position string
	Times                int
	Like                 *struct {
		ID, Agent  string
		Similarity float64
		Same       bool
		Linked     bool
	}
}

func storing(t *testing.T, s *sdk.ClientSession, in map[string]any) (storedOut, string) {
	t.Helper()
	var out storedOut
	text, failed := call(t, s, "memory_store", in, &out)
	if failed {
		t.Fatalf("store %v: %s", in, text)
	}
	return out, text
}

func (w *world) record(id, as string) memory.Record {
	w.t.Helper()
	rec, err := w.api.Get(w.t.Context(), "team", id, client.GetOptions{ReadOptions: client.ReadOptions{As: as}})
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// TestWhatIsThereWasStoredTwice: a tool that was called again with the same text kept it again, and
// said nothing of it.
func TestWhatIsThereWasStoredTwice(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.connect("?namespace=team&agent=ann", nil), w.connect("?namespace=team&agent=bob", nil)
	const said = "We deploy the billing service on Tuesdays, never on Fridays."
	first, text := storing(t, ann, map[string]any{"text": said, "tags": []string{"deploys"}, "conversation": "one"})
	if first.Status != "created" || first.Times != 0 || first.Like != nil || text != "Remembered as "+first.ID+"." {
		t.Errorf("%+v, %s", first, text)
	}
	again, text := storing(t, ann, map[string]any{"text": said, "tags": []string{"billing", "deploys"}, "kind": "decision", "importance": 0.5, "conversation": "one"})
	if again.ID != first.ID || again.Status != "duplicate" || again.Times != 2 || text != "It was there already, as "+first.ID+". It has been said 2 times now." {
		t.Errorf("%+v, %s", again, text)
	}
	if third, _ := storing(t, ann, map[string]any{"text": said}); third.ID != first.ID || third.Times != 3 || third.Position == "" || third.Position == again.Position {
		t.Errorf("%+v", third)
	}
	if rec := w.record(first.ID, "ann"); rec.Version != 3 || !slices.Equal(rec.Tags, []string{"deploys", "billing"}) || rec.Kind != memory.KindDecision || rec.Importance == nil || rec.Conversation != "one" {
		t.Errorf("what was new of it: %+v", rec)
	}
	var whole struct{ Memories []struct{ Times int } }
	if call(t, ann, "memory_get", map[string]any{"ids": []string{first.ID}}, &whole); len(whole.Memories) != 1 || whole.Memories[0].Times != 3 {
		t.Errorf("%+v", whole)
	}

	// Nearly the same, and the same of another agent: kept, and linked.
	near, text := storing(t, ann, map[string]any{"text": "we deploy the billing service on Tuesdays (never on Fridays)"})
	if near.Status != "created" || near.ID == first.ID || near.Like == nil || near.Like.ID != first.ID || !near.Like.Linked || near.Like.Same || !strings.Contains(text, first.ID+", by ann, says nearly the same: ") {
		t.Errorf("%+v, %s", near, text)
	}
	if rec := w.record(near.ID, "ann"); !slices.Equal(rec.DerivedFrom, []string{first.ID}) {
		t.Errorf("%+v", rec)
	}
	other, text := storing(t, bob, map[string]any{"text": said, "derived_from": []string{near.ID}})
	if other.Status != "created" || other.Like == nil || other.Like.Agent != "ann" || other.Like.Similarity != 1 || !strings.Contains(text, ", by ann, says the same: both are kept, and the new one names it.") {
		t.Errorf("%+v, %s", other, text)
	}
	if rec := w.record(other.ID, "bob"); len(rec.DerivedFrom) != 2 || rec.DerivedFrom[0] != near.ID {
		t.Errorf("%+v", rec)
	}

	// What differs in a sign is not said to be the same.
	storing(t, ann, map[string]any{"text": "The gateway of the harbour is written in C++."})
	if got, text := storing(t, ann, map[string]any{"text": "The gateway of the harbour is written in C#."}); got.Status != "created" || got.Like != nil && got.Like.Same || strings.Contains(text, "says the same") {
		t.Errorf("%+v, %s", got, text)
	}

	// What was forgotten is there no more: who stores it again wants it.
	if text, failed := call(t, bob, "memory_forget", map[string]any{"id": other.ID}, nil); failed {
		t.Fatal(text)
	}
	if anew, _ := storing(t, bob, map[string]any{"text": said}); anew.Status != "created" || anew.ID == other.ID {
		t.Errorf("%+v", anew)
	}
	// Nor is what was corrected since.
	if _, err := w.api.Revise(t.Context(), "team", first.ID, memory.Revision{Text: new("Deploys of the billing service are automatic.")}, client.WriteOptions{As: "ann"}); err != nil {
		t.Fatal(err)
	}
	if back, _ := storing(t, ann, map[string]any{"text": said}); back.Status != "created" || back.ID == first.ID {
		t.Errorf("a former text: %+v", back)
	}
}

// TestIDsAndAddressesSayWhatIsTheSame: a memory with an id of its own is stored once under it,
// unchanged each time, and one with an address has its own.
func TestIDsAndAddressesSayWhatIsTheSame(t *testing.T) {
	w := newWorld(t)
	ann := w.connect("?namespace=team&agent=ann", nil)
	const said = "The staging database is called heron."
	first, _ := storing(t, ann, map[string]any{"text": said})
	own := map[string]any{"text": said, "id": "mine-1"}
	named, text := storing(t, ann, own)
	if named.Status != "created" || named.ID == first.ID || named.Like == nil || named.Like.ID != first.ID || named.Like.Linked || strings.Contains(text, "names it") {
		t.Errorf("%+v, %s", named, text)
	}
	if rec := w.record(named.ID, "ann"); len(rec.DerivedFrom) != 0 || len(rec.Metadata) != 0 {
		t.Errorf("a capture with an id was changed: %+v", rec)
	}
	for range 2 {
		if again, text := storing(t, ann, own); again.Status != "duplicate" || again.ID != named.ID || again.Like != nil && again.Like.ID == again.ID || again.Times != 0 || text != "It was there already, as "+named.ID+"." {
			t.Errorf("%+v, %s", again, text)
		}
	}
	if text, failed := call(t, ann, "memory_store", map[string]any{"text": "The staging database is called stork.", "id": "mine-1"}, nil); !failed || !strings.HasPrefix(text, "conflict: ") {
		t.Errorf("an id that is spent: %s", text)
	}

	for range 2 { // it is like no other but itself
		if alone, _ := storing(t, ann, map[string]any{"text": "The cache is called gull.", "id": "mine-2"}); alone.Like != nil {
			t.Errorf("%+v", alone)
		}
	}

	const uri = "decisions/database"
	placed, _ := storing(t, ann, map[string]any{"text": "The database of production is called egret.", "uri": uri})
	if again, _ := storing(t, ann, map[string]any{"text": "The database of production is called egret.", "uri": "mem://team/" + uri}); again.ID != placed.ID || again.Times != 2 {
		t.Errorf("%+v", again)
	}
	if elsewhere, _ := storing(t, ann, map[string]any{"text": "The database of production is called egret.", "uri": "decisions/names"}); elsewhere.Status != "created" || elsewhere.Like == nil || elsewhere.Like.ID != placed.ID {
		t.Errorf("another address: %+v", elsewhere)
	}
}

// TestAnotherTimeOrConversationWasDropped without a word where the text was there already. It makes a
// memory of its own, which counts on when the same is said again.
func TestAnotherTimeOrConversationWasDropped(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	const said = "The gateway went down, and came back by itself."
	var ids []string
	for i, more := range []map[string]any{{}, {"occurred_at": "2026-03-01"}, {"occurred_at": "2026-03-02T09:30:00.5Z"}, {"conversation": "one"}, {"conversation": "two", "occurred_at": "2026-03-01"}} {
		in := map[string]any{"text": said}
		maps.Copy(in, more)
		got, text := storing(t, s, in)
		if got.Status != "created" || slices.Contains(ids, got.ID) || (got.Like != nil) != (i > 0) || i > 0 && (!got.Like.Same || !got.Like.Linked || !slices.Contains(ids, got.Like.ID)) {
			t.Fatalf("%v: %+v, %s", more, got, text)
		}
		rec := w.record(got.ID, "ann")
		if conversation, _ := more["conversation"].(string); rec.Conversation != conversation || len(rec.DerivedFrom) != min(i, 1) {
			t.Errorf("%v: %+v", more, rec)
		}
		if at, _ := more["occurred_at"].(string); at != "" && !strings.HasPrefix(rec.OccurredAt.Format(time.RFC3339Nano), strings.TrimSuffix(at, "Z")) {
			t.Errorf("%v: it was at %s", more, rec.OccurredAt)
		}
		ids = append(ids, got.ID)
		if again, text := storing(t, s, in); again.Status != "duplicate" || again.ID != got.ID && i > 0 || again.Times < 2 {
			t.Errorf("%v, again: %+v, %s", more, again, text)
		}
	}
	if again, _ := storing(t, s, map[string]any{"text": said, "occurred_at": "2026-03-02T10:30:00.5+01:00"}); again.ID != ids[2] {
		t.Errorf("the same time, of another place: %+v", again)
	}
	for range 2 { // the second time each is found among all the others
		for day := range 9 {
			got, text := storing(t, s, map[string]any{"text": said, "occurred_at": fmt.Sprintf("2026-04-0%d", day+1)})
			if known := slices.Contains(ids, got.ID); known != (got.Status == "duplicate") || known != (len(ids) >= 14) {
				t.Fatalf("day %d: %+v, %s", day+1, got, text)
			}
			ids = append(ids, got.ID)
		}
	}
	if any, _ := storing(t, s, map[string]any{"text": said}); any.Status != "duplicate" || !slices.Contains(ids, any.ID) {
		t.Errorf("without a time and a conversation: %+v", any)
	}
}

// TestAnAgentWasSentToTheCommandLine by an address that is taken. It is told what it can call, with the
// tools that it has, and that works.
func TestAnAgentWasSentToTheCommandLine(t *testing.T) {
	w := newWorld(t)
	in := map[string]any{"text": "The database of production is called egret.", "uri": "decisions/database"}
	first, _ := storing(t, w.connect("?namespace=team&agent=ann", nil), in)
	in["text"] = "The database of production is called stork."
	for profile, does := range map[string]map[string]any{
		"micro": {"memory_get": map[string]any{"ids": []string{first.ID}}},
		"lite":  {"memory_get": map[string]any{"ids": []string{first.ID}}, "memory_forget": nil},
		"full":  {"memory_revise": map[string]any{"id": first.ID, "text": "The database of production is called crane."}},
	} {
		s := w.connect("?namespace=team&agent=ann&profile="+profile, nil)
		text, failed := call(t, s, "memory_store", in, nil)
		if !failed || !strings.HasPrefix(text, "conflict: ") || !strings.Contains(text, first.ID) || strings.Contains(text, "memctl") || !strings.Contains(text, "or give another uri") {
			t.Errorf("%s: %s", profile, text)
		}
		for _, name := range []string{"memory_get", "memory_forget", "memory_revise"} {
			with, named := does[name]
			if strings.Contains(text, name) != named {
				t.Errorf("%s and %s: %s", profile, name, text)
			}
			if with != nil {
				if text, failed := call(t, s, name, with.(map[string]any), nil); failed {
					t.Errorf("%s: %s", name, text)
				}
			}
		}
	}
	s := w.connect("?namespace=team&agent=ann&profile=full", nil)
	other, _ := storing(t, s, map[string]any{"text": "The database of staging is called heron."})
	if text, failed := call(t, s, "memory_revise", map[string]any{"id": other.ID, "uri": "decisions/database"}, nil); !failed || !strings.HasPrefix(text, "conflict: ") || strings.Contains(text, "memctl") {
		t.Errorf("a correction: %s", text)
	}
}

// TestAStoreTellsOfNoPrivateMemory of another agent, nor has a memory of the team name its agent's own.
func TestAStoreTellsOfNoPrivateMemory(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.connect("?namespace=team&agent=ann", nil), w.connect("?namespace=team&agent=bob", nil)
	const said = "The spare key of the cellar lies under the third flowerpot."
	secret, _ := storing(t, ann, map[string]any{"text": said, "private": true})
	if again, _ := storing(t, ann, map[string]any{"text": said, "private": true}); again.ID != secret.ID || again.Times != 2 {
		t.Errorf("%+v", again)
	}
	for _, text := range []string{said, "the spare key of the cellar lies under the third flowerpot"} {
		for _, private := range []bool{false, true} {
			got, answer := storing(t, bob, map[string]any{"text": text, "private": private})
			if got.Status != "created" || strings.Contains(answer, secret.ID) || got.Like != nil && got.Like.Agent != "bob" {
				t.Errorf("another agent is told %s", answer)
			}
			if rec := w.record(got.ID, "bob"); slices.Contains(rec.DerivedFrom, secret.ID) || strings.Contains(string(rec.Metadata), secret.ID) || (rec.Scope == memory.ScopeAgent) != private {
				t.Errorf("%+v", rec)
			}
			if _, err := w.api.Get(t.Context(), "team", got.ID, client.GetOptions{}); private != (memory.CodeOf(err) == memory.CodeNotFound) {
				t.Errorf("private %v: the team gets %v", private, err)
			}
			if text, failed := call(t, bob, "memory_forget", map[string]any{"id": got.ID}, nil); failed {
				t.Fatal(text)
			}
		}
	}
	shared, answer := storing(t, ann, map[string]any{"text": said})
	if shared.Status != "created" || shared.Like != nil || strings.Contains(answer, secret.ID) {
		t.Errorf("%+v, %s", shared, answer)
	}
	if rec := w.record(shared.ID, ""); len(rec.DerivedFrom) != 0 || strings.Contains(string(rec.Metadata), secret.ID) {
		t.Errorf("a memory of the team names a private one: %+v", rec)
	}
	if rec := w.record(secret.ID, "ann"); rec.Version != 2 {
		t.Errorf("what others said was counted on it: %+v", rec)
	}
}

// noSearches refuses searches.
type noSearches struct{ next http.RoundTripper }

func (n noSearches) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/search") {
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return n.next.RoundTrip(r)
}

// TestAStoreNeedsNoSearch: where it fails, the memory is kept, and what is not known is said. The very same
// is counted all the same.
func TestAStoreNeedsNoSearch(t *testing.T) {
	w := newWorld(t)
	api, err := client.New(w.node.HTTPAddr(), client.Options{HTTPClient: &http.Client{Transport: noSearches{http.DefaultTransport}}})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	s := w.beside(api)
	first, text := storing(t, s, map[string]any{"text": "Deploys happen on Tuesdays."})
	if first.Status != "created" || !strings.Contains(text, "not known") {
		t.Errorf("%+v, %s", first, text)
	}
	if again, text := storing(t, s, map[string]any{"text": "Deploys happen on Tuesdays."}); again.ID != first.ID || again.Times != 2 || strings.Contains(text, "not known") {
		t.Errorf("%+v, %s", again, text)
	}
	if other, text := storing(t, s, map[string]any{"text": "Deploys happen on Tuesdays", "conversation": "one"}); other.Status != "created" || !strings.Contains(text, "not known") {
		t.Errorf("%+v, %s", other, text)
	}
}

// TestOddTextsAreStored once: what has no words, which no search finds, and what is longer than a query.
func TestOddTextsAreStored(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team", nil)
	for _, text := range []string{"!!!", "\u00a0.", "部署", strings.Repeat("a long text of many words ", 9_000), strings.Repeat("长的文本。", 15_000)} {
		first, _ := storing(t, s, map[string]any{"text": text})
		if again, said := storing(t, s, map[string]any{"text": text}); again.Times != 2 || again.ID != first.ID {
			t.Errorf("%.20q: %+v, %s", text, again, said)
		}
	}
}

// beside is a session with a server beside the agent, which works through a client of its own.
func (w *world) beside(api *client.Client) *sdk.ClientSession {
	w.t.Helper()
	server, err := mcp.New(mcp.Options{Profile: mcp.ProfileFull, Connect: func(context.Context, http.Header, []string) (mcp.Caller, error) {
		return mcp.Caller{Client: api, Namespace: "team", Agent: "ann"}, nil
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	here, there := sdk.NewInMemoryTransports()
	serving, err := server.Connect(w.t.Context(), there, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "Test Client", Version: "1"}, nil).Connect(w.t.Context(), here, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close(); _ = serving.Wait() })
	return s
}

// meanwhile does something before each request of a method for a record.
type meanwhile struct {
	method string
	do     func(id string)
}

func (m *meanwhile) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, id, ok := strings.Cut(r.URL.Path, "/records/"); ok && r.Method == m.method {
		m.do(id)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestWhatOthersDoMeanwhile to the memory that says the same, once it was found.
func TestWhatOthersDoMeanwhile(t *testing.T) {
	w := newWorld(t)
	m := &meanwhile{}
	api, err := client.New(w.node.HTTPAddr(), client.Options{HTTPClient: &http.Client{Transport: m}})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	s := w.beside(api)
	revise := func(id string, rev memory.Revision) {
		if _, err := w.api.Revise(t.Context(), "team", id, rev, client.WriteOptions{As: "ann"}); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		method string
		do     func(id string)
		kept   bool // anew
	}{
		"it is forgotten":      {"GET", func(id string) { _, _ = w.api.Forget(t.Context(), "team", id, client.WriteOptions{As: "ann"}) }, true},
		"it is corrected":      {"GET", func(id string) { revise(id, memory.Revision{Text: new("It says something else.")}) }, true},
		"it changes each time": {"PATCH", func(id string) { revise(id, memory.Revision{Importance: new(0.5)}) }, false},
	} {
		text := "The lighthouse shines red, and " + name + "."
		m.method = ""
		first, _ := storing(t, s, map[string]any{"text": text})
		m.method, m.do = c.method, c.do
		if c.kept {
			if again, said := storing(t, s, map[string]any{"text": text}); again.Status != "created" || again.ID == first.ID || again.Times != 0 || again.Like != nil {
				t.Errorf("%s: %+v, %s", name, again, said)
			}
			continue
		}
		if said, failed := call(t, s, "memory_store", map[string]any{"text": text, "tags": []string{"new"}}, nil); !failed || !strings.HasPrefix(said, "overloaded: ") || !strings.Contains(said, first.ID) {
			t.Errorf("%s, and nobody says that it was not counted: %s", name, said)
		}
		// Who has nothing to add was told that the store had failed, though the memory was there.
		if there, said := storing(t, s, map[string]any{"text": text}); there.ID != first.ID || there.Status != "duplicate" || there.Times != 0 || !strings.Contains(said, "could not be counted") {
			t.Errorf("%s, and there is nothing to add: %+v, %s", name, there, said)
		}
		m.method = ""
		if again, said := storing(t, s, map[string]any{"text": text, "tags": []string{"new"}}); again.ID != first.ID || again.Times != 2 {
			t.Errorf("%s, and no more: %+v, %s", name, again, said)
		}
	}
}

// TestWhatIsAddedToAMemory that is stored again: what it lacks, once.
func TestWhatIsAddedToAMemory(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	source, _ := storing(t, s, map[string]any{"text": "The lamp was changed."})
	first, _ := storing(t, s, map[string]any{"text": "The lighthouse shines red.", "importance": 0.2, "kind": "fact"})
	for range 2 {
		storing(t, s, map[string]any{"text": "The lighthouse shines red.", "importance": 0.7, "tags": []string{"b", "a", "b"}, "derived_from": []string{source.ID, first.ID}})
	}
	if rec := w.record(first.ID, "ann"); *rec.Importance != 0.7 || rec.Kind != memory.KindFact || !slices.Equal(rec.Tags, []string{"b", "a"}) || !slices.Equal(rec.DerivedFrom, []string{source.ID}) {
		t.Errorf("%+v", rec)
	}
	many := make([]string, memory.MaxTags)
	for i := range many {
		many[i] = strings.Repeat("t", i+1)
	}
	most, _ := storing(t, s, map[string]any{"text": "The lighthouse shines green.", "tags": many[1:]})
	if again, _ := storing(t, s, map[string]any{"text": "The lighthouse shines green.", "tags": many[:1]}); again.ID != most.ID || len(w.record(most.ID, "ann").Tags) != memory.MaxTags {
		t.Errorf("as many tags as it may have: %+v", again)
	}
	// With those that it has there would be too many: a memory of its own has those that were given.
	full, text := storing(t, s, map[string]any{"text": "The lighthouse shines red.", "tags": many})
	if full.Status != "created" || full.Like == nil || full.Like.ID != first.ID || !full.Like.Linked {
		t.Errorf("%+v, %s", full, text)
	}
	if rec := w.record(full.ID, "ann"); !slices.Equal(rec.Tags, many) {
		t.Errorf("%q", rec.Tags)
	}
	if again, text := storing(t, s, map[string]any{"text": "The lighthouse shines red.", "tags": many}); again.ID != full.ID || again.Status != "duplicate" {
		t.Errorf("%+v, %s", again, text)
	}
	if text, failed := call(t, s, "memory_store", map[string]any{"text": "The lighthouse shines red.", "tags": append(many, "one")}, nil); !failed || !strings.Contains(text, "33 tags given, at most 32") {
		t.Errorf("more tags than a memory may have: %s", text)
	}
}

// TestWhatCameAnotherWayIsCountedOn: of memories of one text that an agent has from elsewhere, the one
// with the address, conversation and time that are meant, wherever it stands among them.
func TestWhatCameAnotherWayIsCountedOn(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	const said = "The gateway went down, and came back by itself."
	day := func(n int) *time.Time { at := time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC); return &at }
	many := make([]string, memory.MaxTags)
	for i := range many {
		many[i] = fmt.Sprint("t", i)
	}
	items := []memory.Capture{
		{URI: "a", Conversation: "one", OccurredAt: day(1), Tags: many}, {URI: "b", Conversation: "two", OccurredAt: day(2), Tags: many}, {URI: "c", Conversation: "three", OccurredAt: day(3)}, {URI: "d", Conversation: "four", OccurredAt: day(4), Tags: many},
	}
	for i := range items {
		items[i].Agent, items[i].Text = "ann", said
	}
	resp, err := w.api.CaptureBatch(t.Context(), "team", items, client.CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range resp.Results {
		for _, in := range []map[string]any{
			{"uri": items[i].URI}, {"conversation": items[i].Conversation}, {"occurred_at": items[i].OccurredAt.Format(time.DateOnly)},
		} {
			in["text"] = said
			if got, text := storing(t, s, in); got.ID != r.RecordID || got.Status != "duplicate" {
				t.Errorf("%v: %+v, %s", in, got, text)
			}
		}
	}
	if got, text := storing(t, s, map[string]any{"text": said, "tags": []string{"another"}}); got.ID != resp.Results[2].RecordID {
		t.Errorf("a tag, for which one has room: %+v, %s", got, text)
	}
}
