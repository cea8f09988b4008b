package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

// gather answers reads. It implements rest.Reader.
type gather struct{ n *Node }

// readFrom reads on the shard of a namespace.
func readFrom[T any](ctx context.Context, g gather, a memory.Access, f func(r *reads, a memory.Access) (T, error)) (T, error) {
	s, a, err := g.aim(ctx, a)
	if err != nil {
		var none T
		return none, err
	}
	return f(s.reads, a)
}

// aim finds the shard of a namespace, and waits until this node has reached the positions
// of other shards that the reader asks for. The first shard answers for a namespace that
// is nowhere.
func (g gather) aim(ctx context.Context, a memory.Access) (*served, memory.Access, error) {
	at, err := g.asked(ctx, a)
	if err != nil {
		return nil, a, err
	}
	s, err := g.find(ctx, a.Namespace, at)
	if err != nil {
		return nil, a, err
	}
	a.AtLeast = atLeast(at[s.id])
	return s, a, nil
}

// asked reads the positions that a reader asks for, by shard, and makes sure of the
// directory where the answer must have all that was acknowledged before.
func (g gather) asked(ctx context.Context, a memory.Access) ([]events.Position, error) {
	at, err := g.positions(a.AtLeast)
	if err == nil && a.Consistency == memory.ConsistencyLinearizable {
		err = g.n.served[shard0].linear(ctx)
	}
	return at, err
}

// find finds the shard of a namespace for a reader who asks for positions.
func (g gather) find(ctx context.Context, namespace string, at []events.Position) (*served, error) {
	s, known := g.n.home(namespace)
	for i, of := range g.n.served {
		if at[i].IsZero() || of == s {
			continue
		}
		if err := of.reached(ctx, at[i]); err != nil {
			return nil, err
		}
		if !known && g.has(of, namespace) { // who read of it elsewhere knows more than the directory here
			s = of
		}
	}
	if !known && s == nil {
		if s, known = g.n.home(namespace); !known { // it may have come meanwhile
			s = g.n.served[shard0]
		}
	}
	return s, g.oneAndTheSame(namespace, s)
}

// atLeast is a position as the reads of its shard ask for it; "" = none.
func atLeast(p events.Position) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

// oneAndTheSame refuses to read a namespace of which the shard has another one of that name
// than the directory: what was deleted ends there a moment later, or much later where the
// shard takes no writes, and the name may have been taken again. A home that is there stays.
func (g gather) oneAndTheSame(namespace string, s *served) error {
	if s.id == shard0 {
		return nil
	}
	v, here := g.n.directory().state.View(), s.state.View()
	e, listed := v.Namespace(namespace)
	own, ok := here.Namespace(namespace)
	if err := errors.Join(v.Close(), here.Close()); err != nil {
		return err
	}
	if listed && ok && e.ID != own.ID {
		return memory.Errorf(memory.CodeUnavailable, "namespace %q was deleted and made again, and shard %d has not carried it out yet", namespace, s.id).
			WithHint("try again in a moment; memctl status says how the shard is")
	}
	return nil
}

// positions takes positions apart that are separated by commas, and returns the last one
// of each shard.
func (g gather) positions(list string) ([]events.Position, error) {
	out := make([]events.Position, len(g.n.served))
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := events.ParsePosition(text)
		if err == nil && int(p.Shard) >= len(out) {
			err = fmt.Errorf("there are %d shards", len(out))
		}
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "%q is not a position", views.Clip(text)).
				WithHint("use positions as answers gave them, such as p0.0.42.3, separated by commas").WithCause(err)
		}
		if out[p.Shard].IsZero() || out[p.Shard].Before(p) {
			out[p.Shard] = p
		}
	}
	return out, nil
}

// reached waits until this node has reached a position of the shard.
func (s *served) reached(ctx context.Context, at events.Position) error {
	if err := s.views.Reach(ctx, at.String()); err != nil {
		return err
	}
	v, err := s.views.State()
	if err != nil {
		return err
	}
	p := s.views.Positions(v)
	return errors.Join(p.Check(at), v.Close())
}

// has reports whether a namespace lives on the shard, as its own state says, and the
// directory here has not heard of its end.
func (g gather) has(s *served, namespace string) bool {
	v, here := g.n.directory().state.View(), s.state.View()
	own, ok := here.Namespace(namespace)
	e, listed := v.NamespaceByID(own.ID)
	if err := errors.Join(v.Close(), here.Close()); err != nil {
		s.log.Error("view could not be closed", "err", err)
	}
	return ok && own.Shard == s.id && !(listed && e.Deleted)
}

// Search implements rest.Reader.
func (g gather) Search(ctx context.Context, a memory.Access, req memory.SearchRequest) (memory.SearchResponse, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.SearchResponse, error) { return r.Search(ctx, a, req) })
}

// Get implements rest.Reader.
func (g gather) Get(ctx context.Context, a memory.Access, idOrURI string, version int) (memory.Record, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.Record, error) { return r.Get(ctx, a, idOrURI, version) })
}

// List implements rest.Reader.
func (g gather) List(ctx context.Context, a memory.Access, req memory.ListRequest) (memory.RecordList, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.RecordList, error) { return r.List(ctx, a, req) })
}

// History implements rest.Reader.
func (g gather) History(ctx context.Context, a memory.Access, id string) (memory.History, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.History, error) { return r.History(ctx, a, id) })
}

// Timeline implements rest.Reader.
func (g gather) Timeline(ctx context.Context, a memory.Access, req memory.TimelineRequest) (memory.Timeline, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.Timeline, error) { return r.Timeline(ctx, a, req) })
}

// Audit implements rest.Reader.
func (g gather) Audit(ctx context.Context, a memory.Access, req memory.AuditRequest) (memory.AuditPage, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.AuditPage, error) { return r.Audit(ctx, a, req) })
}

// AuditedReads implements rest.Reader.
func (g gather) AuditedReads(ctx context.Context, a memory.Access, req memory.AuditedReadsRequest) (memory.AuditedReadPage, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.AuditedReadPage, error) { return r.AuditedReads(ctx, a, req) })
}

// Events implements rest.Reader.
func (g gather) Events(ctx context.Context, a memory.Access, from string, follow bool, yield func(memory.Event) error) error {
	_, err := readFrom(ctx, g, a, func(r *reads, a memory.Access) (struct{}, error) {
		return struct{}{}, r.Events(ctx, a, from, follow, yield)
	})
	return err
}

// Export implements rest.Reader.
func (g gather) Export(ctx context.Context, a memory.Access, yield func(memory.ExportLine) error) error {
	_, err := readFrom(ctx, g, a, func(r *reads, a memory.Access) (struct{}, error) {
		return struct{}{}, r.Export(ctx, a, yield)
	})
	return err
}

// Graph implements rest.Reader.
func (g gather) Graph(ctx context.Context, a memory.Access, req memory.GraphRequest) (memory.Graph, error) {
	return readFrom(ctx, g, a, func(r *reads, a memory.Access) (memory.Graph, error) { return r.Graph(ctx, a, req) })
}

// StreamGraph implements rest.Reader.
func (g gather) StreamGraph(ctx context.Context, a memory.Access, after string, yield func(memory.GraphLine) error) error {
	_, err := readFrom(ctx, g, a, func(r *reads, a memory.Access) (struct{}, error) {
		return struct{}{}, r.StreamGraph(ctx, a, after, yield)
	})
	return err
}

// Namespace implements rest.Reader.
func (g gather) Namespace(ctx context.Context, name string) (memory.Namespace, error) {
	return readFrom(ctx, g, memory.Access{Namespace: name}, func(r *reads, _ memory.Access) (memory.Namespace, error) { return r.Namespace(ctx, name) })
}

// Embedder implements rest.Reader.
func (g gather) Embedder(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	return readFrom(ctx, g, memory.Access{Namespace: namespace}, func(r *reads, _ memory.Access) (memory.EmbedderStatus, error) { return r.Embedder(ctx, namespace) })
}

// Namespaces implements rest.Reader: the directory's, each as its shard describes it. One
// that is just being made or deleted there is as the directory has it.
func (g gather) Namespaces(ctx context.Context, req memory.NamespacesRequest) (memory.NamespaceList, error) {
	out, err := g.n.served[shard0].reads.Namespaces(ctx, req)
	for i := range out.Namespaces {
		s, known := g.n.home(out.Namespaces[i].Name)
		if !known || s.id == shard0 {
			continue
		}
		ns, err := s.reads.Namespace(ctx, out.Namespaces[i].Name)
		if err == nil && ns.ID == out.Namespaces[i].ID {
			out.Namespaces[i] = ns
		} else if err != nil && memory.CodeOf(err) != memory.CodeNotFound {
			return memory.NamespaceList{}, err
		}
	}
	return out, err
}

// feeds are the live feeds of all shards.
type feeds []*served

// Feed implements natsapi.FeedSource.
func (f feeds) Feed(ctx context.Context, yield func(subject string, ev memory.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var one sync.Mutex // yield is called by one at a time
	ended := make(chan error, len(f))
	for _, s := range f {
		go func() {
			ended <- s.followers.feed.Feed(ctx, func(subject string, ev memory.Event) error {
				one.Lock()
				defer one.Unlock()
				return yield(subject, ev)
			})
		}()
	}
	err := <-ended
	cancel()
	for range f[1:] {
		<-ended
	}
	return err
}
