package query

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"mneme/internal/embed"
	"mneme/internal/query/rank"
	"mneme/internal/text"
	"mneme/memory"
)

// embedDeadline is how long a search waits for a model outside this process.
const embedDeadline = 3 * time.Second

// byVector reports whether vectors answer, at least those of one namespace.
func (s *search) byVector() bool {
	return slices.ContainsFunc(s.namespaces, func(n searched) bool { return n.vector != nil })
}

// findVectors gives the search its query vector, one for each space of its namespaces.
// Where none has one, a hybrid search answers by text and says so.
func (s *search) findVectors(ctx context.Context) error {
	within, cancel := ctx, func() {}
	if len(s.namespaces) > 1 { // models outside this process share the time of one
		within, cancel = context.WithTimeout(ctx, embedDeadline)
	}
	defer cancel()
	for i := range s.namespaces {
		n := &s.namespaces[i]
		for k := range i {
			if s.namespaces[k].view.Settings.Space == n.view.Settings.Space {
				n.vector = s.namespaces[k].vector
				break
			}
		}
		if n.vector != nil {
			continue
		}
		if err := s.findVector(ctx, within, n); err != nil {
			return err
		}
	}
	if !s.byVector() && !s.unread {
		s.mode = memory.ModeText
	}
	return nil
}

// findVector gives a namespace the query's vector in its space. Without one a hybrid
// search goes on; a vector search fails.
func (s *search) findVector(ctx, within context.Context, n *searched) error {
	if !n.view.Settings.HasVectors() {
		if s.mode == memory.ModeVector || len(s.req.Vector) > 0 {
			return memory.Errorf(memory.CodeInvalid, "namespace %q has no embedder, so it has no vectors to search", n.view.Capability.Namespace()).
				WithHint("use mode text, or hybrid without a vector")
		}
		return nil
	}
	if len(s.req.Vector) > 0 {
		return s.givenVector(n)
	}
	if model, ok := embed.Builtin(n.view.Settings.Space); ok && s.mode == memory.ModeHybrid && !model.Reads(s.asked.Text) {
		s.unread = true // in another language, or of names: how it is spelt is better told by words
		return nil
	}
	v, err := n.s.embedQuery(within, n.view.Settings.Space, s.asked.Text)
	switch {
	case err == nil:
		n.vector = v
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.mode == memory.ModeHybrid:
		if !errors.Is(err, embed.ErrBadInput) {
			attrs := append(n.s.about(ctx), slog.String("namespace", n.view.Capability.Namespace()), slog.String("position", n.view.Position()), slog.Any("err", err))
			n.s.opt.Logger.LogAttrs(ctx, slog.LevelWarn, "search answered by text alone", attrs...)
		}
		return nil
	case errors.Is(err, embed.ErrBadInput):
		return memory.Errorf(memory.CodeInvalid, "the query has nothing in it that can be embedded").WithCause(err)
	}
	return memory.Errorf(memory.CodeUnavailable, "the embedder of namespace %q does not answer: %v", n.view.Capability.Namespace(), err).
		WithHint("use mode hybrid or text meanwhile").WithCause(err)
}

// background is how cosines of texts with queries that they have nothing to do with are
// distributed in the space of a built-in model, as bench/embedders measures it; zero for
// another's, which is estimated.
func background(space embed.Space) rank.Background {
	switch {
	case !embed.IsBuiltin(space.Provider):
		return rank.Background{}
	case space.Model == embed.ModelHash:
		return rank.Background{Mean: 0.03, Deviation: 0.06}
	}
	return rank.Background{Mean: 0.06, Deviation: 0.075}
}

// givenVector takes the request's own vector.
func (s *search) givenVector(n *searched) error {
	if want := n.view.Settings.Space.Dimensions; len(s.req.Vector) != want {
		return memory.Errorf(memory.CodeInvalid, "vector has %d dimensions, namespace %q has %d", len(s.req.Vector), n.view.Capability.Namespace(), want)
	}
	// The largest component first: squares of very large ones overflow.
	top := 0.0
	for _, x := range s.req.Vector {
		top = max(top, math.Abs(x))
	}
	if top == 0 {
		return memory.Errorf(memory.CodeInvalid, "vector is zero")
	}
	sum := 0.0
	for _, x := range s.req.Vector {
		sum += (x / top) * (x / top)
	}
	length := math.Sqrt(sum)
	n.vector = make([]float32, len(s.req.Vector))
	for i, x := range s.req.Vector {
		n.vector[i] = float32(x / top / length)
	}
	return nil
}

// embedQuery embeds a query in a space. Errors are those of package embed.
func (s *Service) embedQuery(ctx context.Context, space embed.Space, query string) ([]float32, error) {
	if strings.TrimSpace(query) == "" {
		return nil, embed.ErrBadInput
	}
	if embed.IsBuiltin(space.Provider) {
		return embedBuiltIn(space, query)
	}
	if s.opt.Embedders == nil {
		return nil, embed.ErrUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, embedDeadline)
	defer cancel()
	e, err := s.opt.Embedders.For(ctx, space)
	if err != nil {
		return nil, err
	}
	out, err := e.Embed(ctx, embed.Query, []string{query})
	if err != nil {
		return nil, err
	}
	if len(out) != 1 || len(out[0]) != space.Dimensions {
		return nil, embed.ErrWrongDimensions
	}
	return out[0], nil
}

func embedBuiltIn(space embed.Space, query string) ([]float32, error) {
	model, ok := embed.Builtin(space)
	if !ok {
		return nil, embed.ErrWrongDimensions
	}
	v, ok := model.Vector(text.WithoutQuestionWords(query))
	if !ok {
		return nil, embed.ErrBadInput
	}
	return v, nil
}
