package query

import (
	"context"
	"slices"
	"strings"
	"time"

	index "mneme/internal/index/text"
	"mneme/internal/query/parse"
	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/internal/settings"
	"mneme/internal/spans"
	"mneme/internal/text"
	"mneme/memory"
)

// search is one search under way, in one namespace or in several.
type search struct {
	req   *memory.SearchRequest
	named bool        // each hit says its namespace
	mode  memory.Mode // what answers, not what was asked for
	limit int
	asked parse.Query // without the time of asking, and without the words of asksNow
	// asksNow says that the query asks for what holds now.
	asksNow bool
	// unread says that a built-in model does not know the query's words, so that its vectors are
	// not asked.
	unread bool
	moved  moves
	plan   *rank.Plan
	left   budget
	order  order
	// refused is the best score below the floor that was met.
	refused float64
	*buffers
	corrections []memory.Correction // what words of the query were read as
	near        []toldNear          // those of corrections that are told if a hit has them
	took        stages
}

// searched is a namespace that is searched.
type searched struct {
	*Reader
	shard  int       // those of one shard have one number, and one snapshot
	vector []float32 // the query's, of length 1, in the namespace's space; nil = no vector source
}

// place is a partition that is searched. Ranking numbers partitions by their places.
type place struct {
	*views.Partition
	in    *searched
	allow *views.DocSet // nil = all
}

// buffers is the memory of a search, used again.
type buffers struct {
	namespaces []searched // those of one shard stand together
	places     []place    // those of one namespace stand together
	shards     int

	ranking *rank.Ranking
	vectors vectors
	refs    []index.Ref
	rows    []int // of refs, in ranking
}

func newBuffers() *buffers { return &buffers{ranking: rank.NewRanking()} }

// begin takes the namespaces and their partitions.
func (b *buffers) begin(readers []*Reader) {
	b.shards = 0
	for i, r := range readers {
		if i == 0 || r.s != readers[i-1].s {
			b.shards++
		}
		b.namespaces = append(b.namespaces, searched{Reader: r, shard: b.shards - 1})
	}
	for i := range b.namespaces {
		n := &b.namespaces[i]
		for k := range n.view.Partitions {
			b.places = append(b.places, place{Partition: &n.view.Partitions[k], in: n})
		}
	}
	b.vectors.begin(len(b.places))
}

// release drops what the buffers point to.
func (b *buffers) release(s *Service) {
	clear(b.namespaces)
	clear(b.places)
	b.namespaces, b.places = b.namespaces[:0], b.places[:0]
	b.ranking.Begin(nil)
	b.vectors.look.Query = nil
	s.pool.Put(b)
}

// Search finds memories: it plans, asks the sources for candidates, ranks them and
// opens the best. Errors: invalid, too_large, forbidden, unavailable, timeout.
func (r *Reader) Search(ctx context.Context, req memory.SearchRequest) (memory.SearchResponse, error) {
	resp, err := find(ctx, []*Reader{r}, false, func(s *search) ([]memory.Hit, error) { return s.run(ctx, &req) })
	if err != nil {
		return resp, err
	}
	resp.Namespace = r.view.Capability.Namespace()
	return resp, views.Failed("search", fitSearch(&resp, &req.Fit))
}

// Search finds memories in the namespaces of all readers as if they were one: with the
// counters of all, one scale of scores, one limit and one budget of work. Readers of one
// service stand together and have one snapshot. Errors: those of Reader.Search.
func Search(ctx context.Context, readers []*Reader, req memory.SearchRequest) (memory.SearchResponse, error) {
	resp, err := find(ctx, readers, true, func(s *search) ([]memory.Hit, error) { return s.run(ctx, &req) })
	if err != nil {
		return resp, err
	}
	for _, r := range readers {
		resp.Namespaces = append(resp.Namespaces, r.view.Capability.Namespace())
	}
	slices.Sort(resp.Namespaces)
	return resp, views.Failed("search", fitSearch(&resp, &req.Fit))
}

func find(ctx context.Context, readers []*Reader, named bool, run func(s *search) ([]memory.Hit, error)) (memory.SearchResponse, error) {
	for _, r := range readers {
		if off := r.view.Settings.Refuses(settings.Searches, r.view.Capability.Namespace()); off != nil {
			return memory.SearchResponse{}, off
		}
	}
	service := readers[0].s
	began, clock := service.opt.Now(), time.Now()
	s := &search{named: named, left: newBudget(), buffers: service.pool.Get().(*buffers)}
	defer s.release(service)
	s.begin(readers)
	s.order.s = s
	hits, err := run(s)
	s.logIfSlow(ctx, service, time.Since(clock), len(hits), err)
	if err != nil {
		return memory.SearchResponse{}, views.Failed("search", err)
	}
	s.dropNear()
	s.spellCorrections(hits)
	resp := memory.SearchResponse{Results: hits, Position: s.position(), Mode: s.mode, Corrections: s.corrections, NothingFound: len(hits) == 0,
		TookMS: float64(service.opt.Now().Sub(began)) / float64(time.Millisecond)}
	if resp.NothingFound {
		resp.BestRefused = s.refused
	}
	return resp, nil
}

// position is where each shard was read, with commas between them.
func (s *search) position() string {
	out := s.namespaces[0].view.Position()
	for i := 1; i < len(s.namespaces); i++ {
		if n := &s.namespaces[i]; n.shard != s.namespaces[i-1].shard {
			out += "," + n.view.Position()
		}
	}
	return out
}

func (s *search) run(ctx context.Context, req *memory.SearchRequest) (hits []memory.Hit, err error) {
	s.req = req
	if err := timed(ctx, spans.Prepare, &s.took.prepare, s.prepare); err != nil {
		return nil, err
	}
	if err := timed(ctx, spans.Find, &s.took.find, s.find); err != nil {
		return nil, err
	}
	if err := timed(ctx, spans.Score, &s.took.score, s.score); err != nil {
		return nil, err
	}
	err = timed(ctx, spans.Read, &s.took.open, func(ctx context.Context) error { hits, err = s.open(ctx); return err })
	return hits, err
}

// prepare checks the request and makes the plan.
func (s *search) prepare(ctx context.Context) error {
	if err := s.req.Validate(); err != nil {
		return err
	}
	if s.req.Filter.Empty() { // as good as none, which saves a second look at the words
		s.req.Filter = nil
	}
	if s.req.AsOf != "" {
		return memory.Errorf(memory.CodeInvalid, "as_of is not supported yet")
	}
	if s.asked = parse.Parse(s.req.Query); s.req.Syntax == memory.SyntaxPlain {
		s.asked = parse.Plain(s.req.Query)
	}
	s.mode, s.limit = s.req.Mode, memory.DefaultLimit
	if s.mode == "" {
		s.mode = memory.ModeHybrid
	}
	if s.req.Limit != nil {
		s.limit = *s.req.Limit
	}
	s.asked.Text = rank.WithoutStamp(s.asked.Text, s.namespaces[0].s.opt.Now().UTC())
	if s.partOn(memory.PartNewer) && len(s.asked.Phrases)+len(s.asked.Beginnings) == 0 {
		s.asked.Text, s.asksNow = rank.WithoutPresent(s.asked.Text)
	}
	if err := s.filter(); err != nil {
		return err
	}
	byText := s.mode != memory.ModeVector
	if s.mode != memory.ModeText {
		if err := timed(ctx, spans.Embed, &s.took.embed, s.findVectors); err != nil {
			return err
		}
	}
	if blank := strings.TrimSpace(s.asked.Text) == ""; blank && s.mode == memory.ModeText {
		return memory.Errorf(memory.CodeInvalid, "query is empty")
	} else if blank {
		s.mode = memory.ModeVector
	}
	s.plan = rank.NewPlan(s.question(byText))
	s.ranking.Begin(s.plan)
	return nil
}

// question is the request as ranking sees it, with the namespaces' settings where
// it does not say.
func (s *search) question(byText bool) rank.Question {
	first := &s.namespaces[0]
	q := rank.Question{Query: s.asked.Text, Phrases: s.asked.Phrases, Without: s.asked.Without, Present: s.asksNow, As: first.view.Capability.Agent(),
		Now: first.s.opt.Now().UTC(), ByText: byText, ByVector: s.byVector(), Partitions: make([]rank.Partition, len(s.places))}
	s.settle(&q)
	for _, b := range s.asked.Beginnings {
		if folded := text.Fold(b); text.IsAside(folded) {
			q.Also = append(q.Also, folded)
		}
	}
	for i := range q.Partitions {
		p := &s.places[i]
		q.Partitions[i] = rank.Partition{Conversations: p.in.s.opt.Views.Conversations(p.ID), Visible: p.Partition, Background: background(p.in.view.Settings.Space)}
		if p.allow != nil {
			q.Partitions[i].Allow = p.allow
		}
	}
	return q
}

// settle takes the settings that all namespaces of a search go by: one ruler measures all
// of them. Where theirs differ, the factors are the mean, and a part counts that all have
// switched on.
func (s *search) settle(q *rank.Question) {
	q.Parts = map[memory.Part]bool{}
	weighed := 0.0
	for i := range s.namespaces {
		n := &s.namespaces[i]
		if n.vector != nil || !q.ByVector { // the weights of one without vectors mean nothing beside others
			text, vector := n.view.Settings.Factors()
			q.TextFactor += text
			q.VectorFactor += vector
			weighed++
		}
	}
	q.TextFactor /= weighed
	q.VectorFactor /= weighed
	if !q.ByText || !q.ByVector {
		q.TextFactor, q.VectorFactor = 1, 1
	}
	for _, p := range memory.Parts {
		q.Parts[p] = s.partOn(p)
	}
}

// partOn reports whether a part counts: the request says, or all namespaces have it on.
func (s *search) partOn(p memory.Part) bool {
	if on, ok := s.req.Parts[p]; ok {
		return on
	}
	return !slices.ContainsFunc(s.namespaces, func(n searched) bool { return !n.view.Settings.Parts[p] })
}

// filter finds what may be a result. A partition out of scope still counts in the
// statistics, so a filter changes no score.
func (s *search) filter() error {
	if s.req.Filter == nil {
		return nil
	}
	for i := range s.places {
		p := &s.places[i]
		in, err := p.in.view.InScope(s.req.Filter.Scope)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(in, func(o views.Partition) bool { return o.ID == p.ID }) {
			p.allow = &views.DocSet{}
			continue
		}
		if p.allow, err = p.in.view.Allow(p.ID, s.req.Filter); err != nil {
			return err
		}
	}
	return nil
}
