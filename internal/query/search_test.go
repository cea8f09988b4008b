package query

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/query/querytest"
	"mneme/internal/settings"
	"mneme/memory"
)

func withBuiltin(more ...string) map[string]string {
	out := map[string]string{settings.EmbedderSpace: querytest.BuiltinSpace}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

func TestSearchFindsWhatWasJustAcknowledged(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.One("team", "ann", "Deploys happen on Tuesdays after the stand-up.")
	w.One("team", "bob", "The database password rotates monthly.")
	res := w.search("team", "", memory.SearchRequest{Query: "when do we deploy"})
	if res.Mode != memory.ModeHybrid || res.Position != w.Position() || res.Namespace != "team" || res.TookMS != 0 {
		t.Errorf("answer %+v", res)
	}
	h := res.Results[0]
	if h.Agent != "ann" || !slices.Equal(h.MatchedBy, []string{"vector", "text"}) || h.Snippet != h.Text || h.StartLine != 1 || h.EndLine != 1 ||
		h.Tags == nil || h.URI != "mem://team/"+h.ID || h.Version != 1 || h.Scope != memory.ScopeTeam || h.Position == "" || h.Explain != nil {
		t.Errorf("hit %+v", h)
	}
}

// TestHitsSayRecordID: elsewhere id is the client's, and record_id the record's.
func TestHitsSayRecordID(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	id := w.Capture("team", memory.Capture{ID: "k1", Agent: "ann", Text: "deploys happen on Tuesdays"})[0]
	res := w.search("team", "", memory.SearchRequest{Query: "deploys"})
	if len(res.Results) != 1 || res.Results[0].ID != id || res.Results[0].RecordID != id {
		t.Errorf("%+v", res.Results)
	}
}

func TestSearchRefuses(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.Namespace("plain", nil)
	w.One("team", "ann", "something")
	zero := make([]float64, 384)
	for name, c := range map[string]struct {
		ns   string
		req  memory.SearchRequest
		code memory.Code
	}{
		"empty query":                {"team", memory.SearchRequest{}, memory.CodeInvalid},
		"limit 0":                    {"team", memory.SearchRequest{Query: "x", Limit: ptr(0)}, memory.CodeInvalid},
		"as of":                      {"team", memory.SearchRequest{Query: "x", AsOf: "yesterday"}, memory.CodeInvalid},
		"short vector":               {"team", memory.SearchRequest{Query: "x", Vector: []float64{1, 2}}, memory.CodeInvalid},
		"zero vector":                {"team", memory.SearchRequest{Query: "x", Vector: zero}, memory.CodeInvalid},
		"vector without embedder":    {"plain", memory.SearchRequest{Query: "x", Vector: []float64{1}}, memory.CodeInvalid},
		"mode vector, no embedder":   {"plain", memory.SearchRequest{Query: "x", Mode: memory.ModeVector}, memory.CodeInvalid},
		"mode vector, nothing in it": {"team", memory.SearchRequest{Query: "!!!", Mode: memory.ModeVector}, memory.CodeInvalid},
		"mode text, only a vector":   {"team", memory.SearchRequest{Vector: append([]float64{1}, zero[1:]...), Mode: memory.ModeText}, memory.CodeInvalid},
		"scope agent of nobody":      {"team", memory.SearchRequest{Query: "x", Filter: &memory.Filter{Scope: memory.ScopeAgent}}, memory.CodeInvalid},
		"unknown kind":               {"team", memory.SearchRequest{Query: "x", Filter: &memory.Filter{Kinds: []memory.Kind{"odd"}}}, memory.CodeInvalid},
		"long query":                 {"team", memory.SearchRequest{Query: strings.Repeat("x", memory.MaxQueryBytes+1)}, memory.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.reader(c.ns, "").Search(context.Background(), c.req)
			wantCode(t, err, c.code)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.reader("team", "").Search(ctx, memory.SearchRequest{Query: "something"})
	wantCode(t, err, memory.CodeTimeout)
	if _, err := w.reader("team", "").view.InScope("odd"); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("odd scope: %v", err)
	}
}

func TestSearchWithOwnVector(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ids := w.Capture("team", memory.Capture{Agent: "ann", Text: "river boats"}, memory.Capture{Agent: "ann", Text: "mountain huts"})
	v := make([]float64, 384)
	for i, x := range w.vectors("team")[ids[1]][0] {
		v[i] = float64(x) * 1e200 // any length will do
	}
	res := w.search("team", "", memory.SearchRequest{Vector: v, All: true})
	if res.Mode != memory.ModeVector || res.Results[0].ID != ids[1] || math.Abs(res.Results[0].VectorScore-1) > 1e-6 {
		t.Errorf("%+v", res)
	}
	if len(res.Results) != 2 {
		t.Errorf("%d results, 2 exist", len(res.Results))
	}
}

func TestModes(t *testing.T) {
	w := newWorld(t)
	w.Namespace("plain", nil)
	w.Namespace("team", withBuiltin())
	w.One("plain", "ann", "coffee at noon")
	w.One("team", "ann", "coffee at noon")
	if res := w.search("plain", "", memory.SearchRequest{Query: "coffee"}); res.Mode != memory.ModeText || len(res.Results) != 1 || res.Results[0].TextScore <= 0 || res.Results[0].VectorScore != 0 {
		t.Errorf("without an embedder: %+v", res)
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "!!!"}); res.Mode != memory.ModeText || len(res.Results) != 0 {
		t.Errorf("a query of nothing: %+v", res)
	}
	// Stop words have no terms, but a vector; it ranks, and speaks for nothing.
	if res := w.search("team", "", memory.SearchRequest{Query: "what is it", Mode: memory.ModeVector, All: true}); len(res.Results) != 1 {
		t.Errorf("stop words: %+v", res)
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "what is it"}); res.Mode != memory.ModeHybrid || len(res.Results) != 0 {
		t.Errorf("stop words: %+v", res)
	}
	explained := func() []memory.ExplainPart {
		return w.search("team", "", memory.SearchRequest{Query: "coffee", Explain: true}).Results[0].Explain.Parts
	}
	usual := explained()
	w.Change("team", map[string]string{settings.VectorWeight: "0", settings.TextWeight: "0"})
	if got := explained(); !slices.Equal(got, usual) {
		t.Errorf("weights of zero: %+v, usually %+v", got, usual)
	}
	w.Change("team", map[string]string{settings.VectorWeight: "0", settings.TextWeight: "1"})
	if got := explained(); slices.ContainsFunc(got, func(p memory.ExplainPart) bool { return p.Source == "vector" && p.Weight != 0 }) {
		t.Errorf("vectors without a weight: %+v", got)
	}
	w.Change("team", map[string]string{settings.MinScore: "1"})
	if res := w.search("team", "", memory.SearchRequest{Query: "coffee"}); len(res.Results) != 0 {
		t.Errorf("min_score of the namespace: %+v", res)
	}
}

func TestTiesBreakByID(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var want []string
	for range 9 {
		want = append(want, w.Capture("team", memory.Capture{Agent: "ann", Text: "the same words"}, memory.Capture{Agent: "ann", Text: "the same words", Scope: memory.ScopeAgent})...)
	}
	slices.Sort(want)
	res := w.search("team", "ann", memory.SearchRequest{Query: "same words", Limit: ptr(7)})
	for i, h := range res.Results {
		if h.ID != want[i] {
			t.Fatalf("result %d is %s, want %s", i, h.ID, want[i])
		}
	}
}

func TestSnippetComesFromTheBestChunk(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	lines := make([]string, 400)
	for i := range lines {
		lines[i] = "The weather was calm and nothing of note happened on this day at sea."
	}
	lines[320] = "Quartermaster Ziegler hid the treasure map beneath the ninth plank."
	w.One("team", "ann", strings.Join(lines, "\n"))
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
		h := w.search("team", "", memory.SearchRequest{Query: "Ziegler treasure map plank", Mode: mode}).Results[0]
		if !strings.Contains(h.Snippet, "Ziegler") || utf8.RuneCountInString(h.Snippet) > memory.MaxSnippetRunes || h.StartLine > 321 || h.EndLine < 321 || h.StartLine < 300 {
			t.Errorf("%s: lines %d to %d: %q", mode, h.StartLine, h.EndLine, h.Snippet)
		}
	}
}

// TestManyChunksHideNobody: chunks of one long record must not take the places
// of other records.
func TestManyChunksHideNobody(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.One("team", "ann", strings.Repeat("harbour crane schedule. ", 10000))
	for range 8 {
		w.One("team", "ann", "garden")
	}
	res := w.search("team", "", memory.SearchRequest{Query: "harbour crane schedule", Mode: memory.ModeVector, All: true, Limit: ptr(9)})
	if len(res.Results) != 9 {
		t.Fatalf("%d results, 9 exist", len(res.Results))
	}
}

// outside is an embedder beyond this process: a few words it knows.
type outside struct {
	space embed.Space
	err   error
	wrong bool
}

func (o *outside) For(context.Context, embed.Space) (embed.Embedder, error) {
	if errors.Is(o.err, embed.ErrNone) {
		return nil, o.err
	}
	return o, nil
}
func (o *outside) Space() embed.Space { return o.space }
func (o *outside) Close() error       { return nil }
func (o *outside) Embed(_ context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	if o.wrong {
		return [][]float32{{1}}, nil
	}
	out := make([][]float32, len(texts))
	for i, s := range texts {
		out[i] = []float32{0.6, 0.8, 0}
		if strings.Contains(s, "sea") {
			out[i] = []float32{0, 0, 1}
		}
	}
	return out, o.err
}

func (w *world) attach(ns, id string, base uint32, agent string, scope events.Scope, vectors ...[]float32) {
	w.T.Helper()
	v := w.State.View()
	defer v.Close()
	info, _ := v.Namespace(ns)
	eff, err := w.Settings.Of(v, info)
	w.OK(err)
	w.attachIn(eff.Space, ns, id, base, agent, scope, vectors...)
}

// attachIn is attach in any of the namespace's spaces.
func (w *world) attachIn(space embed.Space, ns, id string, base uint32, agent string, scope events.Scope, vectors ...[]float32) {
	w.T.Helper()
	key, err := w.Keys.DataKey(w.Space[ns], "")
	w.OK(err)
	vectorsOf := events.Vectors{Space: space.ID(), Chunks: vectors}
	w.Apply(&querytest.Item{Key: key, Payload: vectorsOf.Encode(), Header: events.Header{Type: events.TypeVectorsAttached, Namespace: w.Space[ns], Agent: agent, Scope: scope, Target: w.ID(id), BaseVersion: base}})
}

func TestExternalEmbedder(t *testing.T) {
	space := embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 3, Normalised: true, Version: 1}
	o := &outside{space: space}
	w := newWorld(t, func(opt *options) { opt.Embedders = o })
	w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(space)})
	sea, land := w.One("team", "ann", "waves and salt"), w.One("team", "ann", "dust and stones")
	query := memory.SearchRequest{Query: "the sea", Mode: memory.ModeVector, All: true}
	if res := w.search("team", "", query); len(res.Results) != 0 {
		t.Errorf("vectors are pending: %+v", res)
	}
	// Attached out of order, by the next search they are there.
	w.attach("team", land, 1, "ann", events.ScopeTeam, []float32{1, 0, 0})
	w.attach("team", sea, 1, "ann", events.ScopeTeam, []float32{0, 0, 1}, []float32{0, 1, 0})
	for range 2 {
		res := w.search("team", "", query)
		if len(res.Results) != 2 || res.Results[0].ID != sea || math.Abs(res.Results[0].VectorScore-1) > 1e-6 {
			t.Errorf("%+v", res.Results)
		}
		query.Filter = &memory.Filter{Agents: []string{"ann"}}
	}
	if ns, err := w.svc.Namespace(context.Background(), "team"); err != nil || ns.PendingVectors != 0 || ns.Records != 2 || ns.Space != space.ID() {
		t.Errorf("%+v %v", ns, err)
	}
	w.OK(w.views.Load(context.Background()))
	if res := w.search("team", "", query); len(res.Results) != 2 || res.Results[0].ID != sea {
		t.Errorf("after a load: %+v", res.Results)
	}

	for name, broken := range map[string]*outside{"down": {err: embed.ErrUnavailable}, "none": {err: embed.ErrNone}, "wrong": {wrong: true}, "absent": nil} {
		t.Run(name, func(t *testing.T) {
			w.svc.opt.Embedders = broken
			if broken == nil {
				w.svc.opt.Embedders = nil
			}
			if res := w.search("team", "", memory.SearchRequest{Query: "salt"}); res.Mode != memory.ModeText || len(res.Results) != 1 {
				t.Errorf("hybrid: %+v", res)
			}
			_, err := w.reader("team", "").Search(context.Background(), query)
			wantCode(t, err, memory.CodeUnavailable)
		})
	}
	w.svc.opt.Embedders = &outside{err: embed.ErrBadInput}
	_, err := w.reader("team", "").Search(context.Background(), query)
	wantCode(t, err, memory.CodeInvalid)
}

// TestQueryIsNotInTheLineAboutItsVector: the log says that there was none, not for which words.
func TestQueryIsNotInTheLineAboutItsVector(t *testing.T) {
	space := embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 3, Normalised: true, Version: 1}
	var said strings.Builder
	w := newWorld(t, func(o *options) {
		o.Embedders, o.Logger = &outside{space: space, err: embed.ErrUnavailable}, slog.New(slog.NewTextHandler(&said, nil))
	})
	w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(space)})
	w.One("team", "ann", "waves and salt")
	if res := w.search("team", "", memory.SearchRequest{Query: "zanzibarine salt"}); res.Mode != memory.ModeText || len(res.Results) != 1 {
		t.Errorf("%+v", res)
	}
	if line := said.String(); !strings.Contains(line, "search answered by text alone") || strings.Contains(line, "zanzibarine") || strings.Contains(line, "salt") {
		t.Errorf("the log says %s", line)
	}
}

func TestRevisedAndForgottenLeaveSearches(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	id := w.One("team", "ann", "old harbour plans")
	gone := w.One("team", "ann", "harbour secrets")
	old := w.reader("team", "")
	w.Revise("team", id, 1, memory.Capture{Agent: "bob", Text: "new harbour plans"})
	w.Forget("team", gone, "ann", events.ScopeTeam)
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
		res := w.search("team", "", memory.SearchRequest{Query: "harbour", Mode: mode})
		if !slices.Equal(texts(res.Results), []string{"new harbour plans"}) || res.Results[0].Version != 2 {
			t.Errorf("%s: %v", mode, texts(res.Results))
		}
	}
	// A reader of before answers from its own position.
	res, err := old.Search(context.Background(), memory.SearchRequest{Query: "harbour"})
	w.OK(err)
	if got := texts(res.Results); len(got) != 2 || slices.Contains(got, "new harbour plans") {
		t.Errorf("before: %v", got)
	}
}

func TestErasedKeyIsGone(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	id := w.Capture("team", memory.Capture{Agent: "ann", Text: "Jane likes tea", Subject: "jane", URI: "people/jane"})[0]
	w.One("team", "ann", "Everybody likes tea")
	key, err := w.Keys.DataKey(w.Space["team"], "jane")
	w.OK(err)
	w.OK(w.Keys.Destroy(key.ID()))
	r := w.reader("team", "")
	ctx := context.Background()
	_, err = r.Get(ctx, id, 0)
	wantCode(t, err, memory.CodeGone)
	if got := texts(w.search("team", "", memory.SearchRequest{Query: "likes tea"}).Results); !slices.Equal(got, []string{"Everybody likes tea"}) {
		t.Errorf("search: %v", got)
	}
	list, err := r.List(ctx, memory.ListRequest{})
	w.OK(err)
	if len(list.Records) != 1 {
		t.Errorf("list: %+v", list)
	}
	h, err := r.History(ctx, id)
	w.OK(err)
	if len(h.Versions) != 1 || h.Versions[0].Text != "" || h.Versions[0].Subject != "" {
		t.Errorf("history: %+v", h)
	}
	lines := 0
	w.OK(r.Export(ctx, func(memory.ExportLine) error { lines++; return nil }))
	if lines != 1 {
		t.Errorf("%d lines exported", lines)
	}
	var data []string
	w.OK(w.svc.Events(ctx, "team", "", "", false, func(e memory.Event) error { data = append(data, string(e.Data)); return nil }))
	if len(data) != 3 || data[1] != `{"record_id":"`+id+`"}` {
		t.Errorf("events: %q", data)
	}
	tl, err := r.Timeline(ctx, memory.TimelineRequest{ID: list.Records[0].RecordID, Before: ptr(3), After: ptr(3)})
	w.OK(err)
	if len(tl.Before) != 0 {
		t.Errorf("timeline: %+v", tl)
	}
	w.OK(w.views.Load(ctx)) // its vector stays closed, and that is no error
}

func TestFarBounds(t *testing.T) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "now")
	for _, f := range []memory.Filter{{Since: &time.Time{}, Until: &far}, {Since: &time.Time{}}, {Until: &far}} {
		if res := w.search("team", "", memory.SearchRequest{Query: "now", Filter: &f}); len(res.Results) != 1 {
			t.Errorf("%+v: %d results", f, len(res.Results))
		}
	}
}

// TestSearchesSwitchedOff: a namespace that has switched searches off answers none, also among
// others, and opens what is asked for by its id.
func TestSearchesSwitchedOff(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.Namespace("other", withBuiltin())
	id := w.One("team", "agent-1", "deploys happen on Tuesdays")
	w.Change("team", map[string]string{settings.Searches: settings.Off})
	r, other := w.reader("team", ""), w.reader("other", "")
	req := memory.SearchRequest{Query: "deploys"}
	_, err := r.Search(t.Context(), req)
	wantCode(t, err, memory.CodeForbidden)
	_, err = Search(t.Context(), []*Reader{other, r}, req)
	wantCode(t, err, memory.CodeForbidden)
	if _, err := other.Search(t.Context(), req); err != nil {
		t.Error(err)
	}
	if _, err := r.Get(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
	w.Change("team", map[string]string{settings.Searches: settings.On})
	if got := w.search("team", "", req); len(got.Results) != 1 {
		t.Errorf("%+v", got)
	}
}
