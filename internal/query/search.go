package query

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	index "mneme/internal/index/text"
	"mneme/internal/query/rank"
	"mneme/internal/query/views"
	"mneme/memory"
)

// minCandidates is how many candidates each source gives at least.
const minCandidates = 50

// search is one search under way.
type search struct {
	r      *Reader
	req    *memory.SearchRequest
	mode   memory.Mode // what answers, not what was asked for
	limit  int
	allow  []*views.DocSet // by partition; nil = all
	vector []float32       // of length 1; nil = no vector source
	plan   *rank.Plan
	left   budget
	*buffers
}

// buffers is the memory of a search, used again.
type buffers struct {
	ranking *rank.Ranking
	look    views.Lookup
	refs    []index.Ref
	hits    []index.Hit
}

func newBuffers() *buffers { return &buffers{ranking: rank.NewRanking()} }

// release drops what the buffers point to.
func (b *buffers) release(s *Service) {
	b.ranking.Begin(nil)
	b.look.Query = nil
	clear(b.hits[:cap(b.hits)])
	s.pool.Put(b)
}

// Search finds memories: it plans, asks the sources for candidates, ranks them and
// opens the best. Errors: invalid, too_large, unavailable, timeout.
func (r *Reader) Search(ctx context.Context, req memory.SearchRequest) (memory.SearchResponse, error) {
	began := r.s.opt.Now()
	s := &search{r: r, req: &req, left: newBudget(), buffers: r.s.pool.Get().(*buffers)}
	defer s.release(r.s)
	hits, err := s.run(ctx)
	if err != nil {
		return memory.SearchResponse{}, views.Failed("search", err)
	}
	return memory.SearchResponse{Results: hits, Position: r.view.Position(), Mode: s.mode, Namespace: r.view.Capability.Namespace(),
		TookMS: float64(r.s.opt.Now().Sub(began)) / float64(time.Millisecond)}, nil
}

func (s *search) run(ctx context.Context) ([]memory.Hit, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.find(ctx); err != nil {
		return nil, err
	}
	if err := s.score(ctx); err != nil {
		return nil, err
	}
	return s.open(ctx)
}

// prepare checks the request and makes the plan.
func (s *search) prepare(ctx context.Context) error {
	if err := s.req.Validate(); err != nil {
		return err
	}
	if s.req.AsOf != "" {
		return memory.Errorf(memory.CodeInvalid, "as_of is not supported yet")
	}
	s.mode, s.limit = s.req.Mode, memory.DefaultLimit
	if s.mode == "" {
		s.mode = memory.ModeHybrid
	}
	if s.req.Limit != nil {
		s.limit = *s.req.Limit
	}
	if err := s.filter(); err != nil {
		return err
	}
	byText := s.mode != memory.ModeVector
	if s.mode != memory.ModeText {
		if err := s.findVector(ctx); err != nil {
			return err
		}
	}
	if blank := strings.TrimSpace(s.req.Query) == ""; blank && s.mode == memory.ModeText {
		return memory.Errorf(memory.CodeInvalid, "query is empty")
	} else if blank {
		s.mode = memory.ModeVector
	}
	var err error
	s.plan, err = rank.NewPlan(s.question(byText))
	s.ranking.Begin(s.plan)
	s.look.Query = s.vector
	return err
}

// question is the request as ranking sees it, with the namespace's settings where
// it does not say.
func (s *search) question(byText bool) rank.Question {
	set := s.r.view.Settings
	q := rank.Question{Query: s.req.Query, As: s.r.view.Capability.Agent(), Now: s.r.s.opt.Now().UTC(), ByText: byText, ByVector: s.vector != nil,
		TextWeight: set.TextWeight, VectorWeight: set.VectorWeight, Candidates: max(minCandidates, s.limit*set.CandidateMultiplier),
		Parts: set.Parts, Fusion: memory.Fusion(set.Fusion), Partitions: make([]rank.Partition, len(s.r.view.Partitions))}
	if s.req.Fusion != "" {
		q.Fusion = s.req.Fusion
	}
	if len(s.req.Parts) > 0 {
		q.Parts = maps.Clone(q.Parts)
		maps.Copy(q.Parts, s.req.Parts)
	}
	for i := range q.Partitions {
		p := &s.r.view.Partitions[i]
		q.Partitions[i] = rank.Partition{Conversations: s.r.s.opt.Views.Conversations(p.ID), Visible: p}
		if s.allow[i] != nil {
			q.Partitions[i].Allow = s.allow[i]
		}
	}
	return q
}

// filter finds what may be a result. A partition out of scope still counts in the
// statistics, so a filter changes no score.
func (s *search) filter() error {
	s.allow = make([]*views.DocSet, len(s.r.view.Partitions))
	if s.req.Filter == nil {
		return nil
	}
	in, err := s.r.view.InScope(s.req.Filter.Scope)
	if err != nil {
		return err
	}
	for i := range s.r.view.Partitions {
		id := s.r.view.Partitions[i].ID
		if !slices.ContainsFunc(in, func(o views.Partition) bool { return o.ID == id }) {
			s.allow[i] = &views.DocSet{}
			continue
		}
		if s.allow[i], err = s.r.view.Allow(id, s.req.Filter); err != nil {
			return err
		}
	}
	return nil
}
