package rest

import (
	"context"
	"net/http"
	"time"

	"mneme/internal/auth"
	"mneme/memory"
)

// bulkhead bounds the reads of one sort that are worked on side by side. An answer
// being made holds memory that nobody has counted yet: the records, and their JSON
// beside them.
type bulkhead struct {
	what  string // in the plural, as the refusal names it
	hint  string
	wait  time.Duration // for one to end, before a further one is refused; 0 = none
	slots chan struct{} // one element for each that is under way
}

// bulkheads are those of a node. Each sort has its own, so that a search or a get
// passes while pages are made.
type bulkheads struct {
	gets     *bulkhead // of one record or one namespace
	searches *bulkhead
	pages    *bulkhead // of records, versions, surroundings, audit rows and namespaces: up to 8 MiB each
	exports  *bulkhead
	streams  *bulkhead // of events
}

func newBulkheads(opt *Options) bulkheads {
	soon := func(what string, n int) *bulkhead {
		return &bulkhead{what: what, hint: "ask again in a moment", wait: opt.ReadWait, slots: make(chan struct{}, n)}
	}
	return bulkheads{
		gets: soon("gets", opt.MaxGets), searches: soon("searches", opt.MaxSearches), pages: soon("pages", opt.MaxPages),
		exports: &bulkhead{what: "exports", hint: "wait until one has ended", slots: make(chan struct{}, opt.MaxExports)},
		streams: &bulkhead{what: "event streams", hint: "close some, or read in turns with ?follow=false", slots: make(chan struct{}, opt.MaxStreams)},
	}
}

// enter counts a read as under way until leave is called, or refuses it as
// overloaded. What comes through the admin socket passes: the operator is not kept
// away by others.
func (b *bulkhead) enter(ctx context.Context) (leave func(), err error) {
	if auth.IsLocal(ctx) {
		return func() {}, nil
	}
	leave = func() { <-b.slots }
	select {
	case b.slots <- struct{}{}:
		return leave, nil
	default:
	}
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	select {
	case b.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, memory.Errorf(memory.CodeOverloaded, "%d %s are under way, which is all that this node serves side by side", cap(b.slots), b.what).
			WithHint("%s", b.hint)
	}
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
