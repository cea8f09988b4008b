package hooks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"mneme/client"
	"mneme/memory"
)

// nearly is the cosine from which two texts say the same.
const nearly = 0.95

// Drain sends what is spooled, as long as the node takes it and for two seconds at most. It
// returns how many captures wait still.
func (r *Runner) Drain(ctx context.Context) int {
	waiting := r.Disk.Waiting()
	if waiting == 0 || r.Now().Before(r.Disk.state().AwayUntil) {
		return waiting
	}
	ctx, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	if err := r.Disk.drain(ctx, r.Now(), r.send, r.Note); err != nil && ctx.Err() == nil {
		r.Note("send what was spooled: %v", err)
	}
	return r.Disk.Waiting()
}

// send stores an entry. What it changes of the entry, it changes on disk before it is sent: the
// same id with another body would be a conflict.
func (r *Runner) send(ctx context.Context, e Entry, update func(Entry) error) verdict {
	began := time.Now()
	if len(e.Item.DerivedFrom) == 0 {
		near, ok, err := r.nearest(ctx, &e)
		switch {
		case err != nil:
			return r.refused(ctx, &e, err, time.Since(began))
		case ok && marksOf(near.Metadata).Nonce == e.Nonce:
			return settled // the answer to it was lost
		case ok:
			e.link(near)
			if err := update(e); err != nil {
				r.Note("change an entry of the spool: %v", err)
				return away
			}
		}
	}
	resp, err := r.Node.CaptureBatch(ctx, e.Namespace, []memory.Capture{e.Item}, client.CaptureOptions{Origin: memory.OriginHook})
	if err != nil {
		return r.refused(ctx, &e, err, time.Since(began))
	}
	result := resp.Results[0]
	switch result.Status {
	case memory.StatusCreated:
		if len(e.Item.DerivedFrom) > 0 {
			r.count(ctx, func(c *Counts) { c.Linked++ })
		}
		return settled
	case memory.StatusDuplicate: // the same entry: its first answer was lost
		return settled
	case memory.StatusConflict: // the same text, said another time
		return r.repeat(ctx, &e, result.RecordID)
	}
	code, detail := memory.CodeInternal, "rejected"
	if result.Error != nil {
		code, detail = result.Error.Code, result.Error.Detail
	}
	return r.refused(ctx, &e, memory.Errorf(code, "%s", detail), time.Since(began))
}

// nearest finds the memory that says nearly the same, by its vector. A namespace without
// vectors has none.
func (r *Runner) nearest(ctx context.Context, e *Entry) (memory.Hit, bool, error) {
	one := 1
	resp, err := r.Node.Search(ctx, e.Namespace, memory.SearchRequest{
		Query: plain(e.Item.Text), As: e.Item.Agent, Mode: memory.ModeVector, Limit: &one, All: true,
		Fit: memory.Fit{Fields: []string{"id", "vector_score", "metadata", "agent", "text"}},
	})
	switch {
	case memory.CodeOf(err) == memory.CodeInvalid:
		return memory.Hit{}, false, nil
	case err != nil:
		return memory.Hit{}, false, err
	case len(resp.Results) == 0 || resp.Results[0].VectorScore < nearly:
		return memory.Hit{}, false, nil
	case resp.Results[0].Agent == e.Item.Agent && resp.Results[0].Text == e.Item.Text:
		// The same by the same agent: the node will say so, and it is counted there.
		return resp.Results[0], marksOf(resp.Results[0].Metadata).Nonce == e.Nonce, nil
	}
	return resp.Results[0], true, nil
}

// plain is a text as a query: without the quotes that would ask for its words in order.
func plain(text string) string {
	return strings.NewReplacer(`"`, " ", "“", " ", "”", " ", "「", " ", "」", " ").Replace(text)
}

// link names the memory that says nearly the same, and counts on.
func (e *Entry) link(near memory.Hit) {
	m, before := marksOf(e.Item.Metadata), marksOf(near.Metadata)
	m.Near, m.Similarity, m.Repeats = near.ID, float64(int(near.VectorScore*1000))/1000, before.Repeats+1
	e.Item.DerivedFrom = []string{near.ID}
	e.Item.Metadata = marked(e.Item.Metadata, m)
}

// repeat counts on the record that says the same. A revision that others overtook is tried
// again once; the nonce sees to it that a resend is not counted.
func (r *Runner) repeat(ctx context.Context, e *Entry, id string) verdict {
	for range 2 {
		rec, err := r.Node.Get(ctx, e.Namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: e.Item.Agent}})
		if code := memory.CodeOf(err); code == memory.CodeNotFound || code == memory.CodeGone || id == "" {
			r.Note("a text that was forgotten in %s was said again, and is not kept", e.Namespace)
			return settled
		}
		if err != nil {
			return r.refused(ctx, e, err, 0)
		}
		m := marksOf(rec.Metadata)
		if m.Nonce == e.Nonce || m.Last == e.Nonce {
			return settled
		}
		m.Repeats++
		m.Last = e.Nonce
		metadata := marked(rec.Metadata, m)
		_, err = r.Node.Revise(ctx, e.Namespace, id, memory.Revision{Metadata: &metadata}, client.WriteOptions{As: e.Item.Agent, IfVersion: rec.Version})
		if err == nil {
			r.count(ctx, func(c *Counts) { c.Repeated++ })
			return settled
		}
		if memory.CodeOf(err) != memory.CodeConflict {
			return r.refused(ctx, e, err, 0)
		}
	}
	r.Note("a repetition of %s was not counted: others change it", id)
	return settled
}

// count changes the counts.
func (r *Runner) count(ctx context.Context, f func(*Counts)) {
	_ = r.Disk.change(ctx, r.Now(), func(s *state) error { f(&s.Counts); return nil })
}

// lasting are the refusals that sending again does not change.
var lasting = []memory.Code{memory.CodeInvalid, memory.CodeTooLarge, memory.CodeConflict, memory.CodeGone}

// refused decides what an error means for an entry.
func (r *Runner) refused(ctx context.Context, e *Entry, err error, took time.Duration) verdict {
	code := memory.CodeOf(err)
	switch {
	case code == memory.CodeNotFound:
		var known *memory.Error
		hint := ""
		if errors.As(err, &known) {
			hint = known.Hint
		}
		r.Note("%v; what was captured for it waits (%s)", err, hint)
		return waits
	case slices.Contains(lasting, code):
		r.Note("a capture was refused for good: %v", err)
		return settled
	}
	r.failed(ctx, "the node is away, captures wait", err, took)
	return away
}
