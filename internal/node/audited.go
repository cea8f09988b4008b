package node

import (
	"context"

	"mneme/internal/events"
	"mneme/internal/query"
	"mneme/memory"
)

// readNote is what the audit log of a namespace has to tell of an answer before it is given.
type readNote struct {
	events.ReadNote
	namespace string
	of        *reads // the namespace's shard
}

// addNote adds the note of one namespace, if that has such reads audited.
func addNote(notes *[]readNote, of *reads, r *query.Reader, a memory.Access, p memory.Purpose, q string, hits []memory.Hit) error {
	n, audits, err := r.Note(p, q, a.Consistency, hits)
	if audits {
		*notes = append(*notes, readNote{n, r.Namespace(), of})
	}
	return err
}

// audited gives an answer once it is noted wherever it has to be, and not at all where it could
// not be. The views that were read are closed by then: an erasure waits for them, and the writer
// for it.
func audited[T any](ctx context.Context, resp T, err error, notes []readNote) (T, error) {
	for _, n := range notes {
		if err == nil {
			if _, err = n.of.note(ctx, n.namespace, n.ReadNote); err != nil {
				err = unaudited(n.namespace, err)
			}
		}
	}
	if err != nil {
		var none T
		return none, err
	}
	return resp, nil
}

// unaudited is the refusal of a read that could not be noted. Whatever the reason, the reader
// can only try again.
func unaudited(namespace string, err error) error {
	if memory.CodeOf(err) == memory.CodeNotFound {
		return err
	}
	e := memory.Errorf(memory.CodeUnavailable, "reads for prompts are audited in namespace %q, and this one could not be noted: %w", namespace, err).
		WithHint("no memory was given out; try again in a moment, and see with memctl status whether the node takes writes")
	e.RetryAfter = memory.AsError(err).RetryAfter
	return e
}
