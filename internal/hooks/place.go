package hooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/client"
	"mneme/internal/project"
	"mneme/memory"
)

// Undecided is why it cannot be told where the memories of a place go, though the node answers: nothing
// says it, or two namespaces fit. A person decides it.
type Undecided struct{ Why error }

func (u Undecided) Error() string { return u.Why.Error() }
func (u Undecided) Unwrap() error { return u.Why }

// where names what a capture goes to: its namespace, or the place whose namespace is not known yet. No
// namespace is called as a place is.
func where(namespace string, place *project.Seen) string {
	if namespace != "" || place == nil {
		return namespace
	}
	parts := []string{"place", place.Dir, string(place.Local)}
	for _, r := range place.Remotes {
		parts = append(parts, r.Name, string(r.ID))
	}
	return "place " + key(parts...)
}

// decided gives an entry the namespace that its place has now, on disk before it is sent: it goes to
// that one from then on, whatever its place has later. Where ok is false the verdict says what becomes of it.
func (r *Runner) decided(ctx context.Context, e *Entry, update func(Entry) error) (became verdict, ok bool) {
	began := time.Now()
	ns, err := r.Choose(ctx, *e.Place)
	if err == nil {
		e.Namespace, e.Place = ns, nil
		return later, r.changed(*e, update)
	}
	err, own := whose(ctx, err)
	code, undecided := memory.CodeOf(err), errors.As(err, new(Undecided))
	lasts := slices.Contains(unable, code)
	switch {
	case own:
		return unfinished, false
	case !undecided && !lasts && code.Transient():
		r.waits(e, err, "the node takes nothing for now, captures wait: %v%s", err, hintOf(err))
		r.LeaveAlone(ctx, err, time.Since(began))
		return away, false
	case !lasts && !errors.Is(err, client.ErrForeign) && r.Now().Sub(e.At) >= unwanted:
		r.Note("a capture that has no namespace has waited for a week and is given up: %v", err)
		return refused, false
	}
	r.waits(e, err, "%v; captures without a namespace wait%s", err, hintOf(err))
	return blocked, false
}
