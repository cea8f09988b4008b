package rest

import (
	"context"
	"net/http"
	"time"

	"mneme/internal/auth"
	"mneme/internal/slots"
	"mneme/memory"
)

// bulkhead bounds the reads of one sort that are worked on side by side. An answer
// being made holds memory that nobody has counted yet: the records, and their JSON
// beside them.
type bulkhead struct {
	what  string // in the plural, as the refusal names it
	hint  string
	wait  time.Duration // for one to end, before a further one is refused; 0 = none
	slots *slots.Pool   // one is taken by each that is under way
}

// bulkheads are those of a node. Each sort has its own, so that a search or a get
// passes while pages are made.
type bulkheads struct {
	gets     *bulkhead // of one record or one namespace
	searches *bulkhead
	pages    *bulkhead // of records, versions, surroundings, audit rows and namespaces: up to 8 MiB each
	exports  *bulkhead
	streams  *bulkhead // of events
	calls    *bulkhead // of /mcp; the reads in them are counted where they are made, too
}

// newBulkheads makes those through which nothing passes until their limits are set.
func newBulkheads(wait time.Duration) bulkheads {
	soon := func(what string) *bulkhead {
		return &bulkhead{what: what, hint: "ask again in a moment", wait: wait, slots: slots.New(0)}
	}
	return bulkheads{
		gets: soon("gets"), searches: soon("searches"), pages: soon("pages"),
		exports: &bulkhead{what: "exports", hint: "wait until one has ended", slots: slots.New(0)},
		calls:   soon("calls of /mcp"),
		streams: &bulkhead{what: "event streams", hint: "close some, or read in turns with ?follow=false", slots: slots.New(0)},
	}
}

func (b bulkheads) set(l Limits) {
	b.gets.slots.Set(l.MaxGets)
	b.searches.slots.Set(l.MaxSearches)
	b.pages.slots.Set(l.MaxPages)
	b.exports.slots.Set(l.MaxExports)
	b.streams.slots.Set(l.MaxStreams)
	b.calls.slots.Set(l.MaxCalls)
}

// enter counts a read as under way until leave is called, or refuses it as
// overloaded. What comes through the admin socket passes: the operator is not kept
// away by others.
func (b *bulkhead) enter(ctx context.Context) (leave func(), err error) {
	if auth.IsLocal(ctx) {
		return func() {}, nil
	}
	within, cancel := context.WithTimeout(ctx, b.wait)
	defer cancel()
	switch err := b.slots.Wait(within); {
	case err == nil:
		return b.slots.Leave, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, memory.Errorf(memory.CodeOverloaded, "%d %s are under way, which is all that this node serves side by side", b.slots.Limit(), b.what).
		WithHint("%s", b.hint)
}

// answerRead answers with what read gives. It is read and encoded within the bulkhead;
// how long the client takes to read it does not hold up others.
func answerRead[T any](w http.ResponseWriter, r *http.Request, in *bulkhead, read func() (T, error)) error {
	b, err := readWithin(r.Context(), in, read)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, b)
}

func readWithin[T any](ctx context.Context, in *bulkhead, read func() (T, error)) ([]byte, error) {
	leave, err := in.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	v, err := read()
	if err != nil {
		return nil, err
	}
	return encode(v)
}
