package views

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
)

// conversationView is the order of conversations of a state, by partition. Like
// the vectors it follows the applied commands and may be ahead of a View.
type conversationView struct {
	mu         sync.RWMutex
	partitions map[uint32]conversationPartition
}

type conversationPartition struct {
	ns    events.ID
	order *rank.Conversations
}

func newConversationView() *conversationView {
	return &conversationView{partitions: map[uint32]conversationPartition{}}
}

// get returns a partition's order; nil if nothing was ever written to it.
func (v *conversationView) get(partition uint32) *rank.Conversations {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.partitions[partition].order
}

func (v *conversationView) put(partition uint32, ns events.ID, order *rank.Conversations) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partitions[partition] = conversationPartition{ns, order}
}

// apply brings the view up to date. It may be told twice of a document.
func (v *conversationView) apply(a *projections.Applied) {
	for i := range a.Docs {
		d := &a.Docs[i]
		order := v.get(d.Partition)
		if order == nil {
			order = rank.NewConversations(0)
			v.put(d.Partition, d.Namespace, order)
		}
		order.Add(d.Doc, d.Conversation.Value(), d.Agent, d.OccurredAt)
	}
	for _, d := range a.Deaths {
		if order := v.get(d.Partition); order != nil {
			order.Remove(d.Doc)
		}
	}
	for _, ns := range a.Dropped {
		v.drop(ns)
	}
}

// drop takes the partitions of a namespace out.
func (v *conversationView) drop(ns events.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, p := range v.partitions {
		if p.ns == ns {
			delete(v.partitions, id)
		}
	}
}

// loadConversations reads the order of conversations in every partition of a
// state's view. It opens nothing: names and times are in the rows.
func loadConversations(ctx context.Context, v *projections.View) (*conversationView, error) {
	out := newConversationView()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, ns := range v.Namespaces() {
		parts, err := v.Partitions(ns.ID)
		if err != nil {
			_ = g.Wait() // the first error is the one to tell
			return nil, err
		}
		for _, p := range parts {
			g.Go(func() error {
				order := rank.NewConversations(int(p.NextDoc))
				out.put(p.ID, ns.ID, order)
				return loadOrder(ctx, v, p, order)
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

func loadOrder(ctx context.Context, v *projections.View, p projections.Partition, order *rank.Conversations) error {
	live := Partition{p, v.Live(p)}
	err := v.Docs(p.ID, p.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
		order.Describe(doc, d.Agent, d.OccurredAt)
		if doc%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return v.Conversations(p.ID, func(conversation []byte, _ int64, doc uint32) {
		if live.Contains(doc) {
			order.Append(conversation, doc)
		}
	})
}
