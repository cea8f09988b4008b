package query

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"mneme/internal/dates"
	index "mneme/internal/index/text"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

// minCandidates is how many candidates each source gives at least.
const minCandidates = 50

// Weights of the fields in BM25.
const (
	weightText = 1.0
	weightTags = 0.6
	weightURI  = 0.6
)

// plan is one search: what is asked of which source.
type plan struct {
	req      *memory.SearchRequest
	mode     memory.Mode // what answers, not what was asked for
	limit    int
	k        int // candidates of each source
	minScore float64

	parts   []openPart
	allow   []*docSet // by part; nil = all
	terms   []string  // of the query, distinct
	phrases []phrase
	query   index.Query
	vector  []float32 // of length 1; nil = no vector source

	on       map[memory.Part]bool
	fusion   memory.Fusion
	speakers []map[uint32]float64 // by part: what it is worth to be an agent, as 1 + number; nil = none is meant
	dates    []dates.Expr         // the times that are meant

	side   [2]float64        // the shares of vectors and text, sum to 1
	weight [numParts]float64 // sum to 1 at most
	bound  float64           // the BM25 of a text value of 1, see Reader.gather

	calibrated  bool
	calibration calibration
}

func (p *plan) hasText() bool   { return len(p.query.Terms) > 0 }
func (p *plan) hasVector() bool { return p.vector != nil }

// Search finds memories: candidates of the sources, fusion, the best of them
// opened. Errors: invalid, too_large, unavailable, timeout.
func (r *Reader) Search(ctx context.Context, req memory.SearchRequest) (memory.SearchResponse, error) {
	began := r.s.opt.Now()
	p, err := r.plan(ctx, &req)
	if err != nil {
		return memory.SearchResponse{}, failed("search", err)
	}
	sc := r.s.pool.Get().(*scratch)
	defer sc.release(&r.s.pool)
	sc.plan = p
	if err := r.candidates(ctx, sc); err != nil {
		return memory.SearchResponse{}, failed("search", err)
	}
	if err := r.fuse(ctx, sc); err != nil {
		return memory.SearchResponse{}, failed("search", err)
	}
	hits, err := r.hits(ctx, sc)
	if err != nil {
		return memory.SearchResponse{}, failed("search", err)
	}
	return memory.SearchResponse{Results: hits, Position: r.Position(), Mode: p.mode, Namespace: r.cap.name,
		TookMS: float64(r.s.opt.Now().Sub(began)) / float64(time.Millisecond)}, nil
}

func (r *Reader) plan(ctx context.Context, req *memory.SearchRequest) (*plan, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if req.AsOf != "" {
		return nil, memory.Errorf(memory.CodeInvalid, "as_of is not supported yet")
	}
	p := &plan{req: req, mode: req.Mode, limit: memory.DefaultLimit, minScore: req.MinScore, on: r.set.Parts, fusion: memory.Fusion(r.set.Fusion)}
	if p.mode == "" {
		p.mode = memory.ModeHybrid
	}
	if req.Limit != nil {
		p.limit = *req.Limit
	}
	if p.minScore == 0 {
		p.minScore = r.set.MinScore
	}
	p.k = max(minCandidates, p.limit*r.set.CandidateMultiplier)
	if err := r.planFilter(p); err != nil {
		return nil, err
	}
	if p.mode != memory.ModeVector {
		r.planText(p)
	}
	if p.mode != memory.ModeText {
		if err := r.planVector(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := p.share(r.set); err != nil {
		return nil, err
	}
	return p, r.planParts(p)
}

// planParts decides which parts take part, and with which weight.
func (r *Reader) planParts(p *plan) error {
	if p.req.Fusion != "" {
		p.fusion = p.req.Fusion
	}
	if len(p.req.Parts) > 0 {
		p.on = maps.Clone(p.on)
		maps.Copy(p.on, p.req.Parts)
	}
	if err := p.planPhrases(); err != nil {
		return err
	}
	p.calibrated = p.on[memory.PartCalibration] && p.fusion == memory.FusionWeighted && p.hasText()
	p.calibration = calibrateText
	if p.hasVector() {
		p.calibration = calibrateHybrid
	}
	if !p.hasText() {
		return nil
	}
	if p.on[memory.PartSpeaker] {
		r.planSpeakers(p)
	}
	r.planDates(p)
	return nil
}

// planFilter finds what may be a result. A partition out of scope still counts
// in the statistics, so that a filter changes no score.
func (r *Reader) planFilter(p *plan) error {
	p.parts, p.allow = r.parts, make([]*docSet, len(r.parts))
	if p.req.Filter == nil {
		return nil
	}
	in, err := r.narrowed(p.req.Filter.Scope)
	if err != nil {
		return err
	}
	for i := range p.parts {
		if !slices.ContainsFunc(in, func(o openPart) bool { return o.ID == p.parts[i].ID }) {
			p.allow[i] = &docSet{}
			continue
		}
		if p.allow[i], err = r.allow(p.parts[i].ID, p.req.Filter); err != nil {
			return err
		}
	}
	return nil
}

// planText analyses the query. Terms are looked up in every field.
func (r *Reader) planText(p *plan) {
	p.query = index.Query{FieldWeights: [index.NumFields]float64{index.FieldText: weightText, index.FieldTags: weightTags, index.FieldURI: weightURI}}
	text.Analyze(p.req.Query, func(t text.Token) bool {
		if slices.Contains(p.terms, t.Term) {
			return true
		}
		p.query.Terms = append(p.query.Terms, index.QueryTerm{Text: t.Term, Weight: 1, Term: len(p.terms)})
		p.terms = append(p.terms, t.Term)
		return len(p.terms) < maxQueryTerms
	})
}

// maxQueryTerms bounds the work of one search; a query of 16 KiB holds more.
const maxQueryTerms = 256

// share decides how vectors and text share a score.
func (p *plan) share(set *settings.Effective) error {
	switch {
	case p.mode == memory.ModeText && strings.TrimSpace(p.req.Query) == "":
		return memory.Errorf(memory.CodeInvalid, "query is empty")
	case !p.hasVector():
		p.side = [2]float64{0, 1}
	case !p.hasText():
		p.side = [2]float64{1, 0}
		if strings.TrimSpace(p.req.Query) == "" {
			p.mode = memory.ModeVector
		}
	case set.VectorWeight+set.TextWeight <= 0:
		p.side = [2]float64{0.5, 0.5}
	default:
		p.side = [2]float64{set.VectorWeight, set.TextWeight}
	}
	return nil
}
