package query

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"mneme/internal/spans"
	"mneme/memory"
)

// Slow says which searches are logged, with how they were planned and where their time went.
// It may be set while searches run. The zero value logs none.
type Slow struct {
	over atomic.Int64 // nanoseconds; 0 = none is logged
	text atomic.Bool
}

// Set has searches logged that take over or longer, 0 = none; text has the query in the line.
func (s *Slow) Set(over time.Duration, text bool) {
	s.over.Store(int64(over))
	s.text.Store(text)
}

// takes reports whether a search that took so long is logged.
func (s *Slow) takes(took time.Duration) bool {
	over := time.Duration(s.over.Load())
	return over > 0 && took >= over
}

// stages are how long the parts of a search took. Waiting for a position is none of them.
type stages struct{ prepare, embed, find, score, open time.Duration }

// timed runs a stage, in a span of its own, and adds what it took.
func timed(ctx context.Context, name string, took *time.Duration, stage func(context.Context) error) error {
	began := time.Now()
	ctx, span := spans.Start(ctx, name)
	err := stage(ctx)
	spans.End(span, err)
	*took += time.Since(began)
	return err
}

// QueryKey is the attribute that holds the text of a query, where somebody has asked for
// that: whoever passes lines of the log on leaves it out.
const QueryKey = "query"

// maxNamed is how many namespaces a line names.
const maxNamed = 8

// logIfSlow writes a line about a search that is over. It holds no text of queries or
// memories, unless Slow says so.
func (s *search) logIfSlow(ctx context.Context, of *Service, took time.Duration, hits int, err error) {
	if !of.opt.Slow.takes(took) {
		return
	}
	var names []string
	for i := range s.namespaces[:min(len(s.namespaces), maxNamed)] {
		names = append(names, s.namespaces[i].view.Capability.Namespace())
	}
	documents := uint64(0)
	for i := range s.places {
		documents += uint64(s.places[i].NextDoc)
	}
	attrs := []slog.Attr{
		slog.Duration("took", took.Round(time.Microsecond)), slog.Any("namespaces", names), slog.Int("of", len(s.namespaces)), slog.Int("shards", s.shards),
		slog.String("position", s.position()), slog.String("asked", string(s.req.Mode)), slog.String("mode", string(s.mode)), slog.Int("limit", s.limit),
		slog.Int("hits", hits), planned(s), slog.Int("partitions", len(s.places)), slog.Uint64("documents", documents), slog.Int("work", int(newBudget()-s.left)),
		slog.Group("stages", slog.Duration("prepare", s.took.prepare-s.took.embed), slog.Duration("embed", s.took.embed), slog.Duration("find", s.took.find),
			slog.Duration("score", s.took.score), slog.Duration("open", s.took.open)),
	}
	if err != nil {
		attrs = append(attrs, slog.String("code", string(memory.CodeOf(err))))
	}
	if of.opt.Slow.text.Load() {
		attrs = append(attrs, slog.String(QueryKey, s.req.Query))
	}
	attrs = append(attrs, of.about(ctx)...)
	of.opt.Logger.LogAttrs(ctx, slog.LevelWarn, "slow search", attrs...)
}

// planned is what the query was read as, in numbers, and what the sources brought.
func planned(s *search) slog.Attr {
	if s.plan == nil { // it failed before
		return slog.Group("plan")
	}
	byText, byVector, beside := s.ranking.Found()
	return slog.Group("plan", slog.Int("words", len(s.plan.Concepts)), slog.Int("terms", len(s.plan.Words.Terms)), slog.Int("phrases", len(s.asked.Phrases)),
		slog.Int("without", len(s.asked.Without)), slog.Int("beginnings", len(s.asked.Beginnings)), slog.Any("filter", filtered(s.req.Filter)),
		slog.Bool("by_text", s.plan.HasText()), slog.Bool("by_vector", s.plan.ByVector), slog.Bool("reads_texts", s.plan.Checks()),
		slog.Int("found_by_text", byText), slog.Int("found_by_vector", byVector), slog.Int("neighbours", beside))
}

// filtered names what a filter restricts, not to what.
func filtered(f *memory.Filter) (out []string) {
	if f == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		set  bool
	}{{"agents", len(f.Agents) > 0}, {"kinds", len(f.Kinds) > 0}, {"tags", len(f.Tags) > 0}, {"since", f.Since != nil}, {"until", f.Until != nil},
		{"scope", f.Scope != ""}, {"conversation", f.Conversation != ""}} {
		if part.set {
			out = append(out, part.name)
		}
	}
	return out
}
