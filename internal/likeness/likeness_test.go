package likeness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mneme/client"
	"mneme/memory"
)

// fakeNode has a fixed answer to searches, and one record.
type fakeNode struct {
	hits     []memory.Hit
	asked    []memory.SearchRequest
	searches int // until one fails; 0: none does
	rec      memory.Record
	gets     int
	meddle   int   // times that the record is changed before a revision
	err      error // of a revision
}

func (n *fakeNode) Search(_ context.Context, _ string, req memory.SearchRequest) (memory.SearchResponse, error) {
	n.asked = append(n.asked, req)
	if err := req.Validate(); err != nil {
		return memory.SearchResponse{}, err
	}
	n.searches--
	if n.searches == 0 {
		return memory.SearchResponse{}, memory.Errorf(memory.CodeUnavailable, "away")
	}
	var found []memory.Hit
	for _, h := range n.hits {
		if f := req.Filter; f != nil && (f.Scope != "" && f.Scope != h.Scope || len(f.Agents) > 0 && !slices.Contains(f.Agents, h.Agent)) {
			continue
		}
		if len(found) < *req.Limit {
			found = append(found, fitted(h, req.Fit))
		}
	}
	return memory.SearchResponse{Results: found}, nil
}

// fitted is a hit with the fields that were asked for, and as much of its text.
func fitted(h memory.Hit, fit memory.Fit) memory.Hit {
	out := memory.Hit{}
	for _, f := range fit.Fields {
		switch f {
		case "id":
			out.ID = h.ID
		case "uri":
			out.URI = h.URI
		case "scope":
			out.Scope = h.Scope
		case "agent":
			out.Agent = h.Agent
		case "text":
			out.Text = h.Text
			if runes := []rune(h.Text); len(runes) > *fit.MaxText {
				out.Text = string(runes[:*fit.MaxText])
			}
		case "truncated":
			out.Truncated = h.Truncated || utf8.RuneCountInString(h.Text) > *fit.MaxText
		case "vector_score":
			out.VectorScore = h.VectorScore
		case "metadata":
			out.Metadata = h.Metadata
		case "tags":
			out.Tags = h.Tags
		case "conversation":
			out.Conversation = h.Conversation
		case "occurred_at":
			out.OccurredAt = h.OccurredAt
		}
	}
	return out
}

func (n *fakeNode) Get(_ context.Context, _, id string, opts client.GetOptions) (memory.Record, error) {
	n.gets++
	if id != n.rec.RecordID || opts.As != "ann" {
		return memory.Record{}, memory.Errorf(memory.CodeNotFound, "%s sees no %s", opts.As, id)
	}
	if opts.Consistency != memory.ConsistencyLinearizable { // of a node that is behind
		return memory.Record{}, memory.Errorf(memory.CodeNotFound, "there is no %s yet", id)
	}
	return n.rec, nil
}

func (n *fakeNode) Revise(_ context.Context, _, _ string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	if n.err != nil {
		return memory.RevisionResponse{}, n.err
	}
	if n.meddle > 0 {
		n.meddle--
		n.rec.Version++
	}
	if opts.IfVersion != n.rec.Version || opts.As != "ann" {
		return memory.RevisionResponse{}, memory.Errorf(memory.CodeConflict, "another version")
	}
	n.rec.Version++
	if rev.Metadata != nil {
		if len(*rev.Metadata) > memory.MaxMetadataBytes {
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeTooLarge, "metadata has %d bytes", len(*rev.Metadata))
		}
		n.rec.Metadata = *rev.Metadata
	}
	if rev.Tags != nil {
		n.rec.Tags = *rev.Tags
	}
	return memory.RevisionResponse{RecordID: n.rec.RecordID, Version: n.rec.Version, Position: "p1"}, nil
}

func TestFind(t *testing.T) {
	const team, agent = memory.ScopeTeam, memory.ScopeAgent
	const said = "Deploys happen on Tuesdays."
	for name, c := range map[string]struct {
		item memory.Capture // of ann
		hits []memory.Hit
		want string
		same bool
		like float64
	}{
		"nothing":                         {memory.Capture{Text: said}, nil, "", false, 0},
		"the very same":                   {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: said, Agent: "ann", Scope: team}}, "a", true, 1},
		"of the team, as it says":         {memory.Capture{Text: said, Scope: team}, []memory.Hit{{ID: "a", Text: said, Agent: "ann", Scope: team}}, "a", true, 1},
		"of another agent":                {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: said, Agent: "bob", Scope: team}}, "a", false, 1},
		"behind nearer ones":              {memory.Capture{Text: said}, []memory.Hit{{ID: "b", Text: said, Agent: "bob", Scope: team}, {ID: "a", Text: said, Agent: "ann", Scope: team}}, "a", true, 1},
		"by words":                        {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: "deploys happen, on TUESDAYS", Agent: "ann", Scope: team}}, "a", false, 1},
		"by its vector":                   {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: "We deploy each Tuesday.", Agent: "ann", Scope: team, VectorScore: 0.95}}, "a", false, 0.95},
		"the nearest":                     {memory.Capture{Text: said}, []memory.Hit{{ID: "a", VectorScore: 0.96, Scope: team}, {ID: "b", VectorScore: 0.98, Scope: team}, {ID: "c", VectorScore: 0.97, Scope: team}}, "b", false, 0.98},
		"not near enough":                 {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: "Deploys happen on Fridays.", Agent: "ann", Scope: team, VectorScore: 0.949}}, "", false, 0},
		"a private one, for the team":     {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: said, Agent: "ann", Scope: agent}}, "", false, 0},
		"one of the team, privately":      {memory.Capture{Text: said, Scope: agent}, []memory.Hit{{ID: "a", Text: said, Agent: "ann", Scope: team}}, "a", false, 1},
		"a private one, privately":        {memory.Capture{Text: said, Scope: agent}, []memory.Hit{{ID: "a", Text: said, Agent: "ann", Scope: agent}}, "a", true, 1},
		"the beginning of a longer one":   {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: said, Truncated: true, Agent: "ann", Scope: team}}, "", false, 0},
		"longer than a query may be":      {memory.Capture{Text: strings.Repeat("部署", memory.MaxQueryBytes)}, nil, "", false, 0},
		"as long as a memory may be":      {memory.Capture{Text: strings.Repeat("x", memory.MaxTextBytes)}, nil, "", false, 0},
		"a long one that is there":        {memory.Capture{Text: strings.Repeat(said, 1000)}, []memory.Hit{{ID: "a", Text: strings.Repeat(said, 1000), Agent: "ann", Scope: team}}, "a", true, 1},
		"another who is not told what of": {memory.Capture{Text: said}, []memory.Hit{{ID: "a", Text: "deploys happen on Tuesdays", Agent: "bob", Scope: agent}}, "", false, 0},
	} {
		n := &fakeNode{hits: c.hits}
		c.item.Agent = "ann"
		got, err := Find(t.Context(), n, "team", &c.item, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got == nil {
			got = &Other{}
		}
		if got.ID != c.want || got.Same != c.same || got.Similarity != c.like {
			t.Errorf("%s: %+v", name, got)
		}
		if looks := len(n.asked); looks != 2 && !(looks == 1 && c.same) {
			t.Errorf("%s: asked %d times", name, looks)
		}
		for _, q := range n.asked {
			if whole := min(len(c.item.Text), memory.MaxQueryBytes-utf8.UTFMax); len(q.Query) < whole {
				t.Errorf("%s: asked with %d bytes of %d", name, len(q.Query), len(c.item.Text))
			}
			if q.As != "ann" || !q.All || q.Syntax != memory.SyntaxPlain || !utf8.ValidString(q.Query) || !strings.HasPrefix(c.item.Text, q.Query) {
				t.Errorf("%s: asked %+v", name, q)
			}
		}
	}
	if _, err := Find(t.Context(), &fakeNode{}, "team", &memory.Capture{Text: " ", Agent: "ann"}, nil); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("what is no query: %v", err)
	}
}

// TestWhatDiffersInASignWasTheSame: a vector, or words without their signs, say of texts that contradict
// each other that they are the same.
func TestWhatDiffersInASignWasTheSame(t *testing.T) {
	item := memory.Capture{Agent: "ann", Text: "We write it in C++."}
	hits := []memory.Hit{
		{ID: "a", Text: "We write it in C#.", Agent: "bob", Scope: memory.ScopeTeam, VectorScore: 1},
		{ID: "b", Text: "we write it  in C++.", Agent: "bob", Scope: memory.ScopeTeam, VectorScore: 0.99},
	}
	if got, err := Find(t.Context(), &fakeNode{hits: hits[:1]}, "team", &item, nil); err != nil || got == nil || got.Equal || got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Find(t.Context(), &fakeNode{hits: hits}, "team", &item, nil); err != nil || got == nil || got.ID != "b" || !got.Equal || got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	hits[0].VectorScore = 0.9
	if got, err := Find(t.Context(), &fakeNode{hits: hits[:1]}, "team", &item, nil); err != nil || got != nil {
		t.Errorf("by its words: %+v, %v", got, err)
	}
}

// TestALongTextWasComparedForSeconds: with each of 25 hits, its words counted anew each time, whether
// or not anybody waited for it, and with those of which it is a multiple.
func TestALongTextWasComparedForSeconds(t *testing.T) {
	const said = "Deploys happen on Tuesdays. "
	item := memory.Capture{Agent: "ann", Text: strings.Repeat(said, 1000)}
	hit := memory.Hit{ID: "a", Text: strings.Repeat(said, 600) + "!", Agent: "bob", Scope: memory.ScopeTeam}
	if got, err := Find(t.Context(), &fakeNode{hits: []memory.Hit{hit}}, "team", &item, nil); err != nil || got == nil || got.ID != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	short := hit
	short.Text = strings.Repeat(said, 400)
	if got, err := Find(t.Context(), &fakeNode{hits: []memory.Hit{short}}, "team", &item, nil); err != nil || got != nil {
		t.Errorf("less than half of it: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Find(ctx, &fakeNode{hits: []memory.Hit{hit}}, "team", &item, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %+v, %v", got, err)
	}
}

// TestAnAgentsOwnWasNotFound among those of many who said the same, before its own in every answer.
func TestAnAgentsOwnWasNotFound(t *testing.T) {
	const said = "Deploys happen on Tuesdays."
	var hits []memory.Hit
	for i := range 40 {
		hits = append(hits, memory.Hit{ID: fmt.Sprint("of-", i), Text: said, Agent: fmt.Sprint("agent-", i), Scope: memory.ScopeTeam})
	}
	for i := range 10 { // what they say nearly the same is nearer
		hits = append(hits, memory.Hit{ID: fmt.Sprint("near-", i), Text: said + "!", Agent: "ann", Scope: memory.ScopeTeam, VectorScore: 1})
	}
	hits = append(hits, memory.Hit{ID: "private", Text: said, Agent: "ann", Scope: memory.ScopeAgent}, memory.Hit{ID: "own", Text: said, Agent: "ann", Scope: memory.ScopeTeam})
	got, err := Find(t.Context(), &fakeNode{hits: hits}, "team", &memory.Capture{Agent: "ann", Text: said}, nil)
	if err != nil || got == nil || got.ID != "own" || !got.Same {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Find(t.Context(), &fakeNode{hits: hits}, "team", &memory.Capture{Agent: "ann", Text: said, Scope: memory.ScopeAgent}, nil); err != nil || got == nil || got.ID != "private" || !got.Same {
		t.Errorf("privately: %+v, %v", got, err)
	}
	got, err = Find(t.Context(), &fakeNode{hits: hits}, "team", &memory.Capture{Agent: "new", Text: said}, nil)
	if err != nil || got == nil || got.ID != "of-0" || got.Same || !got.Equal {
		t.Errorf("who has none: %+v, %v", got, err)
	}
	for i := range 2 {
		if _, err := Find(t.Context(), &fakeNode{hits: hits, searches: i + 1}, "team", &memory.Capture{Agent: "new", Text: said}, nil); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("search %d fails: %v", i+1, err)
		}
	}
}

// TestWhatIsToldOfTheOther: all that a caller needs to say whether it counts, who said it and how often.
func TestWhatIsToldOfTheOther(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	said := json.RawMessage(`{"said":{"repeats":2}}`)
	own := memory.Hit{ID: "a", URI: "mem://team/a", Text: "Tuesdays.", Agent: "ann", Scope: memory.ScopeTeam, Tags: []string{"x"}, Conversation: "one", OccurredAt: at, Metadata: said}
	second := own
	second.ID = "b"
	item := memory.Capture{Agent: "ann", Text: "Tuesdays."}
	var asked []memory.Hit
	got, err := Find(t.Context(), &fakeNode{hits: []memory.Hit{own, second}}, "team", &item, func(h *memory.Hit) bool { asked = append(asked, *h); return h.ID == "b" })
	want := Other{ID: "b", Agent: "ann", Same: true, Equal: true, Similarity: 1, metadata: said}
	if err != nil || !reflect.DeepEqual(got, &want) || !reflect.DeepEqual(asked, []memory.Hit{own, second}) {
		t.Errorf("%+v, %v, asked whether %+v counts", got, err, asked)
	}
	got, err = Find(t.Context(), &fakeNode{hits: []memory.Hit{own, second}}, "team", &item, func(*memory.Hit) bool { return false })
	if want = (Other{ID: "a", Agent: "ann", Equal: true, Similarity: 1, metadata: said}); err != nil || !reflect.DeepEqual(got, &want) {
		t.Errorf("none counts: %+v, %v", got, err)
	}
	got.Link(&item)
	if s := SaidOf(item.Metadata); s.Repeats != 3 {
		t.Errorf("%+v", s)
	}
}

// TestACountWentWithAnImport: what was said was counted on a memory that is taken away with the file that it
// is from. Under the address of that there is no other.
func TestACountWentWithAnImport(t *testing.T) {
	hit := memory.Hit{ID: "a", URI: "mem://team/a", Text: "Tuesdays.", Agent: "ann", Scope: memory.ScopeTeam, Metadata: json.RawMessage(`{"imported":{"from":"markdown"}}`)}
	own := hit
	own.ID, own.Metadata = "b", nil
	for _, c := range []struct {
		uri  string
		hits []memory.Hit
		id   string
		same bool
	}{
		{"", []memory.Hit{hit}, "a", false}, {"a", []memory.Hit{hit}, "a", true}, {"", []memory.Hit{hit, own}, "b", true},
	} {
		got, err := Find(t.Context(), &fakeNode{hits: c.hits}, "team", &memory.Capture{Agent: "ann", Text: "Tuesdays.", URI: c.uri}, nil)
		if err != nil || got == nil || got.ID != c.id || got.Same != c.same || !got.Equal {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// TestTheNearestOfAll: among its own and those of others, whichever search tells of it.
func TestTheNearestOfAll(t *testing.T) {
	const team, agent = memory.ScopeTeam, memory.ScopeAgent
	far := memory.Hit{ID: "far", Text: "What the tide does.", Agent: "bob", Scope: team}
	private := memory.Hit{ID: "private", Text: "deploys happen on tuesdays", Agent: "ann", Scope: agent}
	for name, c := range map[string]struct {
		item memory.Capture
		hits []memory.Hit
		want string
		like float64
	}{
		"its own behind those of others":       {memory.Capture{Text: "Deploys happen on Tuesdays."}, []memory.Hit{far, far, far, far, far, {ID: "own", Text: "deploys happen on Tuesdays", Agent: "ann", Scope: team}}, "own", 1},
		"another's behind private ones":        {memory.Capture{Text: "Deploys happen on Tuesdays."}, []memory.Hit{private, private, private, private, private, {ID: "a", Text: "deploys happen on Tuesdays", Agent: "bob", Scope: team}}, "a", 1},
		"nearly a private one, privately":      {memory.Capture{Text: "Deploys happen on Tuesdays.", Scope: agent}, []memory.Hit{private}, "private", 1},
		"without a word":                       {memory.Capture{Text: "!!!"}, []memory.Hit{{ID: "a", Text: "!!! ", Agent: "bob", Scope: team}}, "a", 1},
		"a vector that is rounded":             {memory.Capture{Text: "Tuesdays."}, []memory.Hit{{ID: "a", Text: "On Tuesday", Agent: "bob", Scope: team, VectorScore: 1.0000002}}, "a", 1},
		"the first of those that are as near":  {memory.Capture{Text: "Tuesdays."}, []memory.Hit{{ID: "a", Text: "On Tuesday", Agent: "bob", Scope: team, VectorScore: 0.96}, {ID: "b", Text: "On a Tuesday", Agent: "bob", Scope: team, VectorScore: 0.96}}, "a", 0.96},
		"the same words before a nearer text":  {memory.Capture{Text: "Tuesdays."}, []memory.Hit{{ID: "a", Text: "On Tuesday", Agent: "bob", Scope: team, VectorScore: 1}, {ID: "b", Text: "TUESDAYS.", Agent: "bob", Scope: team}}, "b", 1},
		"the first of those of the same words": {memory.Capture{Text: "Tuesdays."}, []memory.Hit{{ID: "a", Text: "tuesdays.", Agent: "bob", Scope: team}, {ID: "b", Text: "TUESDAYS.", Agent: "bob", Scope: team}}, "a", 1},
		"with many spaces":                     {memory.Capture{Text: "a b c d e f"}, []memory.Hit{{ID: "a", Text: " a  b  c  d  e f", Agent: "bob", Scope: team}}, "a", 1},
	} {
		c.item.Agent = "ann"
		if got, err := Find(t.Context(), &fakeNode{hits: c.hits}, "team", &c.item, nil); err != nil || got == nil || got.ID != c.want || got.Same || got.Similarity != c.like {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestLink(t *testing.T) {
	o := Other{ID: "b", Similarity: 0.96789, metadata: json.RawMessage(`{"said":{"repeats":2}}`)}
	from := make([]string, 1, 2)
	from[0] = "a"
	item := memory.Capture{DerivedFrom: from, Metadata: json.RawMessage(`{"mine":[1]}`)}
	o.Link(&item)
	if !slices.Equal(item.DerivedFrom, []string{"a", "b"}) || string(item.Metadata) != `{"mine":[1],"said":{"repeats":3,"near":"b","similarity":0.968}}` {
		t.Errorf("%q %s", item.DerivedFrom, item.Metadata)
	}
	if from[:2][1] == "b" {
		t.Error("the caller's list was written to")
	}
	o.Link(&item)
	if len(item.DerivedFrom) != 2 {
		t.Errorf("linked twice: %q", item.DerivedFrom)
	}
	marked := memory.Capture{Metadata: Said{Nonce: "n"}.In(nil)}
	if o.Link(&marked); SaidOf(marked.Metadata).Nonce != "n" {
		t.Errorf("the nonce is gone: %s", marked.Metadata)
	}
	full := memory.Capture{DerivedFrom: slices.Repeat([]string{"x"}, memory.MaxDerivedFrom)}
	o.Link(&full)
	if len(full.DerivedFrom) != memory.MaxDerivedFrom || SaidOf(full.Metadata).Near != "b" {
		t.Errorf("%d, %s", len(full.DerivedFrom), full.Metadata)
	}
}

func TestCount(t *testing.T) {
	item := memory.Capture{Agent: "ann", Text: "Tuesdays."}
	n := &fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1, Metadata: json.RawMessage(`{"hook":{"nonce":"n1","repeats":1,"host":"codex"}}`)}} // as hooks kept it before
	count := func(nonce string, want Counted) {
		t.Helper()
		if got, err := Count(t.Context(), n, "team", "a", nonce, &item, nil); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", nonce, got, err, want)
		}
	}
	count("n1", Counted{Times: 2})
	count("n2", Counted{Times: 3, Again: true, Position: "p1"})
	count("n2", Counted{Times: 3})
	count("n1", Counted{Times: 3})
	n.meddle = 5
	count("", Counted{Times: 4, Again: true, Position: "p1"})
	count("", Counted{Times: 5, Again: true, Position: "p1"})
	if !strings.Contains(string(n.rec.Metadata), `"host":"codex"`) {
		t.Errorf("what others keep there is gone: %s", n.rec.Metadata)
	}
	if _, err := Count(t.Context(), n, "team", "a", "", &item, func(rec *memory.Record, rev *memory.Revision) error { rev.Tags = &[]string{rec.Text}; return nil }); err != nil || !slices.Equal(n.rec.Tags, []string{"Tuesdays."}) {
		t.Errorf("%v, tags %q", err, n.rec.Tags)
	}
	n.err, n.gets = memory.Errorf(memory.CodeUnavailable, "away"), 0
	if _, err := Count(t.Context(), n, "team", "a", "", &item, nil); memory.CodeOf(err) != memory.CodeUnavailable || n.gets != 1 {
		t.Errorf("%v, tried %d times", err, n.gets)
	}
	n.err, n.rec.Text = nil, "Fridays."
	if _, err := Count(t.Context(), n, "team", "a", "", &item, nil); !errors.Is(err, ErrRevised) {
		t.Errorf("it says something else by now: %v", err)
	}
	if got, err := Count(t.Context(), n, "team", "a", "n1", &item, nil); err != nil || got.Again {
		t.Errorf("it was corrected after the same was told: %+v, %v", got, err)
	}
}

// TestACountWasTooMuch for metadata that are as large as they may be: what said the same was refused for
// what its caller did not send.
func TestACountWasTooMuch(t *testing.T) {
	item := memory.Capture{Agent: "ann", Text: "Tuesdays."}
	full := json.RawMessage(`{"a":"` + strings.Repeat("x", memory.MaxMetadataBytes-8) + `"}`)
	n := &fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1, Metadata: full}}
	if got, err := Count(t.Context(), n, "team", "a", "n1", &item, nil); err != nil || got != (Counted{}) || n.rec.Version != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := Count(t.Context(), n, "team", "a", "n1", &item, func(_ *memory.Record, rev *memory.Revision) error { rev.Tags = &[]string{"b"}; return nil })
	if err != nil || got != (Counted{Position: "p1"}) || len(n.rec.Tags) != 1 || len(n.rec.Metadata) != len(full) {
		t.Errorf("with a tag: %+v, %v", got, err)
	}
}

// TestACountOfTheLastRoom fills metadata to the byte.
func TestACountOfTheLastRoom(t *testing.T) {
	item := memory.Capture{Agent: "ann", Text: "Tuesdays."}
	count := len(Said{Repeats: 1, Last: "n1"}.In(json.RawMessage(`{"a":""}`)))
	for over, want := range []int{1, 0} {
		room := json.RawMessage(`{"a":"` + strings.Repeat("x", memory.MaxMetadataBytes-count+over) + `"}`)
		n := &fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1, Metadata: room}}
		if got, err := Count(t.Context(), n, "team", "a", "n1", &item, nil); err != nil || SaidOf(n.rec.Metadata).Repeats != want || got.Again != (want > 0) {
			t.Errorf("%d bytes over: %+v, %v", over, got, err)
		}
	}
}

func TestSaidInOddMetadata(t *testing.T) {
	for _, odd := range []string{``, `null`, `[]`, `"x"`, `{"said":5}`, `{"said":null}`, `{`} {
		if s := SaidOf(json.RawMessage(odd)); s != (Said{}) {
			t.Errorf("%s says %+v", odd, s)
		}
		if got := SaidOf(Said{Repeats: 7}.In(json.RawMessage(odd))); got.Repeats != 7 {
			t.Errorf("into %s: %+v", odd, got)
		}
	}
}

// TestWhatAnAuthorKeptBelowSaidWasLost: a count was written over it.
func TestWhatAnAuthorKeptBelowSaidWasLost(t *testing.T) {
	for _, theirs := range []string{`"by the janitor"`, `5`, `["ann"]`, `{"by":"ann"}`, `{"repeats":"often"}`, `{"repeats":3,"by":"ann"}`, `{"repeats":9007199254740993,"of":[]}`, `null`} {
		metadata := json.RawMessage(`{"said":` + theirs + `}`)
		for times := range 3 {
			if s := SaidOf(metadata); s.Repeats != times {
				t.Errorf("%s says %+v, want %d", metadata, s, times)
			}
			metadata = Said{Repeats: times + 1}.In(metadata)
			var all map[string]json.RawMessage
			if err := json.Unmarshal(metadata, &all); err != nil || string(all["said"]) != theirs {
				t.Errorf("%s was made of %s: %v", metadata, theirs, err)
			}
		}
	}
}

// TestTaken: by an import, and as nobody else would write it.
func TestTaken(t *testing.T) {
	for metadata, want := range map[string]bool{`{"imported":{"from":"mneme","taken":true}}`: true, `{"imported":{"from":"mneme"}}`: false, `{"taken":true}`: false, `{"imported":true}`: false, ``: false, `[]`: false} {
		if Taken(json.RawMessage(metadata)) != want {
			t.Errorf("%s: %v", metadata, !want)
		}
	}
}
