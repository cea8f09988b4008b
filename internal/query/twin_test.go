package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"mneme/internal/dates"
	"mneme/internal/derive"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/internal/query/querytest"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

// twinRecord is one living record as the twin keeps it.
type twinRecord struct {
	id      string
	version int
	c       memory.Capture
	sealed  time.Time
	terms   *[index.NumFields][]string // what fields gave

	passages [][]string // the terms of the text, 64 words each
}

// twin answers searches by looking at everything.
type twin struct {
	records []*twinRecord
	chunks  map[string][][]float32 // vectors by record
}

func (tw *twin) visible(as string) []*twinRecord {
	var out []*twinRecord
	for _, r := range tw.records {
		if r.c.Scope != memory.ScopeAgent || r.c.Agent == as && as != "" {
			out = append(out, r)
		}
	}
	return out
}

func (r *twinRecord) occurred() time.Time {
	if r.c.OccurredAt != nil {
		return *r.c.OccurredAt
	}
	return r.sealed
}

// since is from when on it says what it says.
func (r *twinRecord) since() time.Time {
	if at := r.occurred(); r.version == 1 || at.After(r.sealed) {
		return at
	}
	return r.sealed
}

func (r *twinRecord) passes(f *memory.Filter) bool {
	if f == nil {
		return true
	}
	at := r.occurred()
	scope := r.c.Scope
	if scope == "" {
		scope = memory.ScopeTeam
	}
	kind := r.c.Kind
	if kind == "" {
		kind = memory.KindOther
	}
	for _, tag := range f.Tags {
		if !slices.ContainsFunc(r.c.Tags, func(t string) bool { return strings.EqualFold(t, tag) }) {
			return false
		}
	}
	return (len(f.Agents) == 0 || slices.Contains(f.Agents, r.c.Agent)) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, kind)) &&
		(f.Conversation == "" || f.Conversation == r.c.Conversation) && (f.Scope == "" || f.Scope == scope) &&
		(f.Since == nil || !at.Before(*f.Since)) && (f.Until == nil || at.Before(*f.Until))
}

// fields are the terms of a record by field.
func (r *twinRecord) fields() [index.NumFields][]string {
	if r.terms != nil {
		return *r.terms
	}
	var out [index.NumFields][]string
	env := events.Envelope{Header: events.Header{Agent: r.c.Agent}}
	content := events.Content{Role: r.c.Role}
	if r.c.OccurredAt != nil {
		content.OccurredSet, env.OccurredAt = true, r.c.OccurredAt.UnixNano()
	}
	text.Index(r.c.Text, func(tok text.Token) bool {
		for len(r.passages) <= tok.Pos/64 {
			r.passages = append(r.passages, nil)
		}
		r.passages[tok.Pos/64] = append(r.passages[tok.Pos/64], tok.Term)
		return true
	})
	out[index.FieldText] = slices.Concat(r.passages...)
	out[index.FieldWho] = derive.WhoTerms(&env, &content)
	for _, tag := range r.c.Tags {
		out[index.FieldTags] = append(out[index.FieldTags], text.AnalyzeTag(tag)...)
	}
	uri, _ := memory.FullURI("team", r.c.URI)
	out[index.FieldURI] = text.AnalyzeURI(uri)
	r.terms = &out
	return out
}

// counted is how often a term counts in a field, and how long the field is: as in the
// passages of the text where that is most.
func (r *twinRecord) counted(f index.Field, t string) (tf, length float64) {
	passages := [][]string{r.fields()[f]}
	if f == index.FieldText {
		passages = r.passages
	}
	for _, p := range passages {
		tf, length = max(tf, count(p, t)), max(length, float64(len(p)))
	}
	return tf, length
}

func count(terms []string, t string) (n float64) {
	for _, x := range terms {
		if x == t {
			n++
		}
	}
	return n
}

// idfOf is that of a term in a field.
func idfOf(records []*twinRecord, t string, f index.Field) float64 {
	df, n := 0.0, float64(len(records))
	for _, r := range records {
		if slices.Contains(r.fields()[f], t) {
			df++
		}
	}
	return math.Log(1 + (max(n, 100)-df+0.5)/(df+0.5)) // a word is not common for that few texts have it
}

// bm25 scores records for one term by the formula: all that they have, and whether any of
// it is what they say, and not who said it and when.
func bm25(records []*twinRecord, t string) (scores []float64, said []bool) {
	scores, said = make([]float64, len(records)), make([]bool, len(records))
	weights := [index.NumFields]float64{index.FieldText: 1, index.FieldTags: 0.6, index.FieldURI: 0.6, index.FieldWho: 1}
	for f := range index.Field(index.NumFields) {
		total := 0.0
		for _, r := range records {
			_, length := r.counted(f, "")
			total += length
		}
		idf, n := idfOf(records, t, f), float64(len(records))
		for i, r := range records {
			if tf, length := r.counted(f, t); tf > 0 {
				norm := 1 - index.DefaultB + index.DefaultB*length/(total/n)
				scores[i] += weights[f] * idf * tf * (index.DefaultK1 + 1) / (tf + index.DefaultK1*norm)
				said[i] = said[i] || f != index.FieldWho
			}
		}
	}
	return scores, said
}

func embedded(s string) []float32 {
	q, v := make([]int8, builtin.Dimensions), make([]float32, builtin.Dimensions)
	builtin.Embed(q, text.NewAnalysis(s))
	builtin.Float(v, q)
	return v
}

// cosine is that of the best chunk, as the state's own vectors give it.
func (r *twinRecord) cosine(chunks map[string][][]float32, q []float32) float64 {
	best := math.Inf(-1)
	for _, chunk := range chunks[r.id] {
		sum := 0.0
		for i, x := range chunk {
			sum += float64(x) * float64(q[i])
		}
		best = max(best, sum)
	}
	return best
}

// vectors reads the vectors of all living records by record.
func (w *world) vectors(ns string) map[string][][]float32 {
	w.T.Helper()
	v := w.State.View()
	info, _ := v.NamespaceByID(w.Space[ns])
	eff, err := w.Settings.Of(v, info)
	w.OK(err)
	parts, err := v.Partitions(info.ID)
	w.OK(err)
	out := map[string][][]float32{}
	for _, p := range parts {
		w.OK(v.Vectors(p.ID, eff.SpaceKey(), 0, func(_ uint32, row projections.VectorRow) error {
			d, ok, err := v.Doc(p.ID, row.Doc)
			if err != nil || !ok || !d.Living() {
				return err
			}
			vec := make([]float32, eff.Space.Dimensions)
			err = row.Floats(vec)
			out[d.Record.String()] = append(out[d.Record.String()], vec)
			return err
		}))
	}
	w.OK(v.Close())
	return out
}

// plainParts are the settings that leave a search with its two sources.
func plainParts() (out []string) {
	for _, p := range memory.Parts {
		out = append(out, settings.PartSetting(p), settings.Off)
	}
	return out
}

type twinHit struct {
	id         string
	score, sum float64
	at         time.Time
	has        []string // of the query's words
}

// search scores every record that the agent sees, feature by feature.
func (tw *twin) search(as string, req *memory.SearchRequest, textFactor, vectorFactor float64) []twinHit {
	query, asksNow := req.Query, false
	if req.Parts[memory.PartNewer] {
		query, asksNow = strings.CutPrefix(query, "current ")
	}
	seen, q := tw.visible(as), embedded(query)
	type words struct {
		mass, held, told, exact float64

		has []string
	}
	found := make([]words, len(seen))
	bound, asked, missing, known, coded, terms := 0.0, 0.0, 0.0, false, true, map[string]bool{}
	inDate := dates.Parse(query, time.Now())
	text.Index(query, func(w text.Token) bool {
		if terms[w.Term] || req.Mode == memory.ModeVector {
			return true
		}
		terms[w.Term] = true
		for _, word := range strings.Fields(query) {
			word = strings.Trim(word, `.,;:!?"'()`)
			if at := strings.Index(query, word); at <= w.Start && w.End <= at+len(word) {
				coded = coded && (strings.ContainsAny(word, "0123456789") || len(word) >= 4 && strings.ContainsAny(word, "_/.:@#"))
			}
		}
		dated := slices.ContainsFunc(inDate, func(e dates.Expr) bool { return w.Start >= e.Start && w.End <= e.End })
		most := (index.DefaultK1 + 1) * idfOf(seen, w.Term, index.FieldText)
		if !dated {
			bound += most
		}
		scores, said := bm25(seen, w.Term)
		has := slices.ContainsFunc(scores, func(s float64) bool { return s > 0 })
		known = known || has
		if !dated && (has || !text.IsGram(w.Term)) {
			asked += most
			if !has {
				missing += most
			}
		}
		for i, s := range scores {
			switch {
			case s > 0 && (dated || !said[i]):
				found[i].told += s
			case s > 0:
				found[i].mass += s
				found[i].held += most
				found[i].has = append(found[i].has, w.Term)
				if strings.ContainsFunc(w.Term, unicode.IsLetter) && len(w.Term) >= 4 && strings.ContainsAny(w.Term, "0123456789_/.:@#") {
					found[i].exact = max(found[i].exact, min(1, 2*idfOf(seen, w.Term, index.FieldText)/index.IDF(uint64(len(seen)), 1)))
				}
			}
		}
		return true
	})
	if req.Mode == memory.ModeText || req.Mode == memory.ModeVector {
		textFactor, vectorFactor = 1, 1
	}
	floor := settings.DefaultMinScore
	if req.MinScore != nil {
		floor = *req.MinScore
	}
	var out []twinHit
	for i, r := range seen {
		if !r.passes(req.Filter) {
			continue
		}
		f, near, cos := found[i], 0.0, r.cosine(tw.chunks, q)
		sum := -8.15
		switch {
		case !known && coded && len(terms) > 0:
		case known && asked > 0:
			sum += 3 * max(f.exact, 1-missing/asked*float64(len(seen))/float64(len(seen)+200))
		default:
			sum += 3
		}
		sum += 4*f.exact + textFactor*1.25*(math.Log1p(f.mass)+math.Log1p(f.told))
		if bound > 0 {
			sum += textFactor * 4 * f.held / bound
		}
		if req.Mode == memory.ModeText {
			sum += 1.25
		} else {
			near = math.Log1p(math.Exp((cos - 0.03) / 0.06))
			sum += vectorFactor * 0.3 * near
		}
		if len(terms) == 0 || !known {
			sum += 3
		}
		matches := f.mass+f.told > 0 || req.Mode != memory.ModeText && cos > 0.03 || len(terms) == 0
		if matches {
			out = append(out, twinHit{r.id, 0, sum, r.since(), f.has})
		}
	}
	best := func(a, b twinHit) int { return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.id, b.id)) }
	slices.SortFunc(out, best)
	if asksNow && len(terms) > 0 {
		own := out[:min(len(out), 10)]
		was := map[string]float64{}
		var byAge []*twinHit
		for i := range own {
			was[own[i].id] = own[i].sum
			byAge = append(byAge, &own[i])
		}
		slices.SortStableFunc(byAge, func(a, b *twinHit) int { return a.at.Compare(b.at) })
		for _, newer := range byAge {
			for _, older := range byAge {
				covers := len(older.has) > 0 && !slices.ContainsFunc(older.has, func(t string) bool { return !slices.Contains(newer.has, t) })
				if newer.at.After(older.at) && was[older.id]-was[newer.id] <= 1 && covers {
					newer.sum = max(newer.sum, older.sum)
				}
			}
		}
		slices.SortStableFunc(out, best) // compareHits takes ties in any order
	}
	for i := range out {
		out[i].score = logistic(out[i].sum)
	}
	out = slices.DeleteFunc(out, func(h twinHit) bool { return h.score < floor })
	return out[:min(len(out), *req.Limit)]
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

var vocabulary = strings.Fields("deploy tuesday rollback server database password rotation incident coffee meeting alpha beta gamma delta postgres redis cache memory agent north south river mountain café 東京 2023-05-08 main.go user_id")

type generator struct {
	*rand.Rand
	day time.Time
}

func (g *generator) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = vocabulary[int(float64(len(vocabulary))*g.Float64()*g.Float64())]
	}
	return strings.Join(out, " ")
}

func (g *generator) capture(n int) memory.Capture {
	c := memory.Capture{Agent: agentName(g.IntN(3)), Text: g.words(1+g.IntN(12)) + fmt.Sprintf(" n%d", n), Kind: memory.Kinds[g.IntN(len(memory.Kinds))]}
	if g.IntN(40) == 0 { // several chunks
		c.Text = strings.Repeat(g.words(30)+". ", 40)
	}
	if g.IntN(3) == 0 {
		c.Scope = memory.ScopeAgent
	}
	for _, tag := range []string{"Red", "green", "deploy notes"} {
		if g.IntN(3) == 0 {
			c.Tags = append(c.Tags, tag)
		}
	}
	if g.IntN(3) == 0 {
		c.Conversation = fmt.Sprintf("talk-%d", g.IntN(3))
	}
	if g.IntN(4) == 0 {
		c.URI = fmt.Sprintf("notes/river/%d", n)
	}
	if g.IntN(2) == 0 {
		at := g.moment()
		c.OccurredAt = &at
	}
	return c
}

func (g *generator) moment() time.Time {
	at := g.day.Add(time.Duration(g.IntN(10*24*3600)) * time.Second)
	if g.IntN(4) == 0 {
		at = at.Truncate(24 * time.Hour)
	}
	return at
}

func (g *generator) filter(as string) *memory.Filter {
	f := &memory.Filter{}
	pick := func() bool { return g.IntN(4) == 0 }
	if pick() {
		f.Agents = []string{agentName(g.IntN(3)), agentName(g.IntN(4))}
	}
	if pick() {
		f.Kinds = memory.Kinds[g.IntN(4) : 4+g.IntN(5)]
	}
	if pick() {
		f.Tags = []string{"RED"}
	}
	if pick() {
		f.Tags = append(f.Tags, "green")
	}
	if pick() {
		f.Conversation = fmt.Sprintf("talk-%d", g.IntN(4))
	}
	if pick() {
		f.Scope = memory.ScopeTeam
	} else if pick() && as != "" {
		f.Scope = memory.ScopeAgent
	}
	if pick() {
		f.Since = ptr(g.moment())
	}
	if pick() {
		f.Until = ptr(g.moment())
	}
	if f.Since != nil && f.Until != nil && !f.Since.Before(*f.Until) {
		f.Until = nil
	}
	return f
}

// populate writes, revises and forgets records in state and twin alike.
func (g *generator) populate(w *world, tw *twin, n int) {
	for i := 0; i < n; {
		var batch []memory.Capture
		for range 1 + g.IntN(8) {
			batch = append(batch, g.capture(i))
			i++
		}
		items := make([]*querytest.Item, len(batch))
		for j, c := range batch {
			items[j] = w.Draft("team", c)
		}
		for j, res := range w.Apply(items...) {
			tw.records = append(tw.records, &twinRecord{res.Record.String(), 1, batch[j], time.Unix(0, items[j].Header.SealedAt).UTC(), nil, nil})
		}
		at := g.IntN(len(tw.records))
		r := tw.records[at]
		switch g.IntN(4) {
		case 0:
			c := g.capture(i)
			c.Agent, c.Scope, c.URI = r.c.Agent, r.c.Scope, r.c.URI
			w.Revise("team", r.id, uint32(r.version), c)
			r.version, r.c, r.sealed = r.version+1, c, w.Now
		case 1:
			w.Forget("team", r.id, r.c.Agent, events.ScopeOf(r.c.Scope))
			tw.records = slices.Delete(tw.records, at, at+1)
		}
	}
}

// TestTwin compares every kind of search and filter with the twin.
func TestTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, engine := range []string{"small", "graph"} {
		t.Run(engine, func(t *testing.T) { runTwin(t, engine, seed) })
	}
}

func runTwin(t *testing.T, engine string, seed uint64) {
	g := &generator{rand.New(rand.NewPCG(seed, 1)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t, func(o *options) {
		if engine == "graph" {
			o.views.Vector.ExactBelow, o.views.Vector.GuardSample = 20, 8
		}
	})
	const textFactor, vectorFactor = 0.6 / 0.9, 2
	w.Namespace("team", withBuiltin(append(plainParts(), settings.VectorWeight, "0.4")...))
	tw := &twin{}
	g.populate(w, tw, 300)
	tw.chunks = w.vectors("team")
	if engine == "graph" {
		for _, set := range w.views.Sets() {
			w.OK(set.Wait(context.Background()))
			if set.Stats().Engine != vector.EngineMneme {
				t.Logf("%s is scanned: %+v", set, set.Stats())
			}
		}
	}
	for i := range 150 {
		if i == 75 { // the same after everything was opened again
			w.OK(w.views.Load(context.Background()))
		}
		as := []string{"", agentName(0), agentName(1), "stranger"}[g.IntN(4)]
		req := memory.SearchRequest{Query: g.words(1 + g.IntN(4)), Limit: ptr(1 + g.IntN(12)), Explain: g.IntN(2) == 0,
			Mode: []memory.Mode{"", memory.ModeHybrid, memory.ModeText, memory.ModeVector}[g.IntN(4)]}
		if g.IntN(2) == 0 {
			req.Filter = g.filter(as)
		}
		if g.IntN(4) == 0 {
			req.MinScore = ptr(g.Float64() * 0.5)
		}
		if g.IntN(3) == 0 {
			req.Query, req.Parts = "current "+req.Query, map[memory.Part]bool{memory.PartNewer: true}
		}
		want, res := tw.search(as, &req, textFactor, vectorFactor), w.search("team", as, req)
		if err := compareHits(engine, &req, res.Results, want); err != nil {
			t.Fatalf("seed %d, search %d as %q %+v filter %+v: %v", seed, i, as, req, req.Filter, err)
		}
	}
}

// compareHits wants equal scores, and equal ids where scores do not nearly
// tie. A graph may pass over a neighbour, so only its scores' order and the
// number of results are held to.
func compareHits(engine string, req *memory.SearchRequest, got []memory.Hit, want []twinHit) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d results, want %d", len(got), len(want))
	}
	for i, h := range got {
		if req.Explain {
			if err := checkExplain(&h); err != nil {
				return err
			}
		}
		if engine == "graph" && req.Mode != memory.ModeText {
			continue
		}
		if math.Abs(h.Score-want[i].score) > 1e-5 {
			return fmt.Errorf("result %d has score %v, want %v", i, h.Score, want[i].score)
		}
		if h.ID != want[i].id && !slices.ContainsFunc(want, func(x twinHit) bool { return x.id == h.ID && math.Abs(x.score-h.Score) < 1e-5 }) &&
			math.Abs(h.Score-want[len(want)-1].score) > 1e-5 {
			return fmt.Errorf("result %d is %s, want %s", i, h.ID, want[i].id)
		}
	}
	return nil
}

func checkExplain(h *memory.Hit) error {
	sum, bm25, terms := 0.0, 0.0, 0.0
	for _, p := range h.Explain.Parts {
		sum += p.Weight * p.Value
		if p.Source == "text" || p.Source == "told" {
			bm25 += p.Raw
		}
		if p.Value < 0 || p.Weight < 0 && p.Source != "base" {
			return fmt.Errorf("%s counts against it: %+v", p.Source, p)
		}
	}
	for _, t := range h.Explain.Terms {
		terms += t.Score
	}
	switch {
	case math.Abs(sum-h.Explain.Sum) > 1e-9:
		return fmt.Errorf("parts sum to %v, not %v", sum, h.Explain.Sum)
	case math.Abs(logistic(sum)-h.Score) > 1e-9:
		return fmt.Errorf("parts make a score of %v, score is %v", logistic(sum), h.Score)
	case math.Abs(terms-bm25) > 1e-6:
		return fmt.Errorf("terms sum to %v, BM25 is %v", terms, bm25)
	}
	return nil
}

// TestListTwin compares filtered pages with the twin.
func TestListTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 2)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", nil)
	tw := &twin{}
	g.populate(w, tw, 200)
	for range 60 {
		as := []string{"", agentName(0), "stranger"}[g.IntN(3)]
		f := g.filter(as)
		var want []string
		for _, r := range tw.visible(as) {
			if r.passes(f) {
				want = append(want, r.id)
			}
		}
		slices.Reverse(want)
		r := w.reader("team", as)
		var got []string
		req := memory.ListRequest{Filter: *f, Limit: 1 + g.IntN(20)}
		for page := 0; page == 0 || req.Cursor != ""; page++ {
			list, err := r.List(context.Background(), req)
			w.OK(err)
			for _, rec := range list.Records {
				got = append(got, rec.RecordID)
			}
			req.Cursor = list.Cursor
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d as %q filter %+v:\n got %v\nwant %v", seed, as, f, got, want)
		}
	}
}
