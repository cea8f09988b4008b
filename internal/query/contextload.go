package query

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"mneme/internal/projections"
)

// buildContext reads who stands around whom in every partition of a state's
// view. It opens nothing: names and times are in the rows.
func (s *Service) buildContext(ctx context.Context, v *projections.View) (*contextView, error) {
	out := newContextView()
	namespaces, err := v.Namespaces()
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, ns := range namespaces {
		parts, err := v.Partitions(ns.ID)
		if err != nil {
			_ = g.Wait() // the first error is the one to tell
			return nil, err
		}
		for _, p := range parts {
			g.Go(func() error {
				part := newContextPart(ns.ID)
				out.put(p.ID, part)
				return part.load(ctx, v, p)
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// checkEvery is how many rows are read between two looks at the context.
const checkEvery = 1 << 14

func (p *contextPart) load(ctx context.Context, v *projections.View, part projections.Partition) error {
	live := v.Live(part)
	n := int(part.NextDoc)
	p.conversation, p.agent, p.occurred = make([]uint32, n), make([]uint32, n), make([]int64, n)
	err := v.Docs(part.ID, part.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
		p.describe(doc, d.Agent, d.OccurredAt)
		if doc%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return v.Conversations(part.ID, func(conversation []byte, _ int64, doc uint32) {
		if doc < part.NextDoc && live.Contains(doc) {
			c := p.conversationOf(conversation)
			p.conversation[doc] = c + 1
			p.members[c] = append(p.members[c], doc)
		}
	})
}
