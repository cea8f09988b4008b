package hooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/memory"
)

// Send is a hook's own part of sending, beside its recall: as many of the oldest captures that wait as
// the hook spooled, and one where it spooled none. These are its own where nothing waits before them.
// It reports that others wait which the node may take: they are for Drain, in a process for which no
// host waits. What the node has not taken when Send returns is on disk.
func (r *Runner) Send(ctx context.Context) (more bool) {
	if r.Disk.unusable != nil {
		return false
	}
	own, s := len(r.Disk.unsettled), r.Disk.state()
	if now := r.Now(); !s.leftAlone(r.Addr, now) {
		ctx, cancel := context.WithTimeout(ctx, sendPatience)
		done := r.drain(ctx, round{most: max(1, own)}, patience)
		cancel()
		more = done.Cut && (own > 0 || !s.held(r.Addr, now))
	}
	if err := r.Disk.Settle(); err != nil {
		r.Note("what waits for the node may not outlast a power failure: %v", err)
	}
	return more
}

// DrainOptions are how a drain goes about with others.
type DrainOptions struct {
	Wait  bool // for another one that sends; without, what is there is left to that one
	Yield bool // after each capture the node has as much time as that took, for the hooks that come meanwhile
}

// Drain sends all that is spooled for the node, as long as the node takes it.
func (r *Runner) Drain(ctx context.Context, how DrainOptions) Drained {
	done := r.drain(ctx, round{wait: how.Wait, yield: how.Yield}, drainPatience)
	done.Waiting = r.Disk.Waiting(r.addrs()...)
	if done.Why = r.why; done.Why == nil && r.Disk.shut(r.addrs()...) {
		done.Why = r.Disk.sealedElsewhere()
	}
	if done.Waiting > 0 && !done.Away && !done.Busy { // of one whose time has ended nothing is written
		_ = r.Disk.change(ctx, r.Now(), func(s *state) error {
			s.Held[nodeKey(r.Addr)] = r.Now().Add(aloneFor)
			return nil
		})
	}
	return done
}

func (r *Runner) addrs() []string { return append([]string{r.Addr}, r.Was...) }

// drain has a node take each entry within some time.
func (r *Runner) drain(ctx context.Context, all round, within time.Duration) Drained {
	all.addrs, all.note = r.addrs(), r.Note
	all.send = func(ctx context.Context, e Entry, update func(Entry) error) verdict {
		one, cancel := context.WithTimeoutCause(ctx, within, r.silent(within))
		defer cancel()
		began := time.Now()
		became := r.send(one, e, update)
		if became == taken && all.yield {
			pause(ctx, time.Since(began))
		}
		return became
	}
	done, err := r.Disk.drain(ctx, all)
	if err != nil && ctx.Err() == nil {
		r.Note("send what was spooled: %v", err)
	}
	return done
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// send stores an entry. What it changes of the entry, it changes on disk before it is sent: the
// same id with another body would be a conflict.
func (r *Runner) send(ctx context.Context, e Entry, update func(Entry) error) verdict {
	return r.sendPast(ctx, e, update, passed{})
}

// passed are memories that a search may show with the text of an entry, and which do not count it: those that say
// something else by now, and those that say it, as an import does.
type passed map[string]bool

// sendPast stores an entry, or counts on what is not past.
func (r *Runner) sendPast(ctx context.Context, e Entry, update func(Entry) error, past passed) verdict {
	if e.Unread {
		if became, ok := r.wanted(&e, update); !ok {
			return became
		}
	}
	if e.Namespace == "" {
		if became, ok := r.decided(ctx, &e, update); !ok {
			return became
		}
	}
	began := time.Now()
	if e.Addr == "" {
		r.Note("a capture for namespace %s, which an earlier version kept and which does not say for which node, goes to %s", e.Namespace, r.Addr)
	}
	if len(e.Item.DerivedFrom) == 0 {
		other, err := likeness.Find(ctx, r.Node, e.Namespace, &e.Item, func(h *memory.Hit) bool { _, is := past[h.ID]; return !is })
		switch {
		case slices.Contains(unsearched, memory.CodeOf(err)) && !errors.Is(err, client.ErrForeign):
			r.Note("%v; what says the same as a capture is not looked for", err)
		case err != nil:
			return r.notSearched(ctx, &e, err, time.Since(began))
		case other == nil || past.revised(other.ID):
		case other.Same:
			return r.repeat(ctx, e, other.ID, update, past)
		default:
			other.Link(&e.Item)
			if !r.changed(e, update) {
				return later
			}
		}
	}
	result, err := r.capture(ctx, &e)
	if code := memory.CodeOf(err); (code == memory.CodeInvalid || code == memory.CodeGone) && !errors.Is(err, client.ErrForeign) && unlink(&e.Item) {
		if !r.changed(e, update) { // what was linked is gone by now, which nobody who captured named
			return later
		}
		result, err = r.capture(ctx, &e)
	}
	switch {
	case err != nil:
		return r.refused(ctx, &e, err, time.Since(began))
	case result.Status == memory.StatusCreated && len(e.Item.DerivedFrom) > 0:
		r.count(ctx, func(c *Counts) { c.Linked++ })
	case result.Status == memory.StatusConflict && e.Item.ID == anotherID(&e): // nobody else's: an answer was lost
	case result.Status == memory.StatusConflict: // the same text, said another time
		return r.repeat(ctx, e, result.RecordID, update, past)
	}
	return taken // or a duplicate, the same entry: its first answer was lost
}

// wanted has the settings decide about an entry of a time when they could not be read, on disk before it is sent.
// Where ok is false the verdict says what becomes of it.
func (r *Runner) wanted(e *Entry, update func(Entry) error) (became verdict, ok bool) {
	switch s := &r.Settings; {
	case s.unread:
		r.waits(e, errUnread, "%v, what is kept waits", errUnread)
		return blocked, false
	case !s.Capture, !s.Tools && e.Item.Role == "tool":
		r.Note("a capture from when the settings of hooks could not be read is not kept: they say so")
		return refused, false
	}
	e.Unread, e.Item.Scope = false, r.Settings.Scope
	e.Item.ID = firstID(e.Item.Scope, e.Item.Kind, e.Item.Text)
	return later, r.changed(*e, update)
}

// errUnread is why an entry waits that the settings have not decided about.
var errUnread = errors.New("the settings of hooks cannot be read")

// capture sends an entry. The error is why it was not taken, also where the node refuses it alone.
func (r *Runner) capture(ctx context.Context, e *Entry) (memory.CaptureResult, error) {
	resp, err := r.Node.CaptureBatch(ctx, e.Namespace, []memory.Capture{e.Item}, client.CaptureOptions{Origin: memory.OriginHook})
	if err != nil {
		return memory.CaptureResult{}, err
	}
	result := resp.Results[0]
	switch result.Status {
	case memory.StatusCreated, memory.StatusDuplicate, memory.StatusConflict:
		return result, nil
	}
	if result.Error == nil {
		return result, memory.Errorf(memory.CodeInternal, "rejected")
	}
	return result, memory.Errorf(result.Error.Code, "%s", result.Error.Detail)
}

// unlink takes out the memory that likeness.Link put in, and reports whether there was one. What a
// caller named stays.
func unlink(item *memory.Capture) bool {
	said := likeness.SaidOf(item.Metadata)
	if !slices.Contains(item.DerivedFrom, said.Near) {
		return false
	}
	item.DerivedFrom = slices.DeleteFunc(slices.Clone(item.DerivedFrom), func(id string) bool { return id == said.Near })
	said.Near, said.Similarity, said.Repeats = "", 0, 0
	item.Metadata = said.In(item.Metadata)
	return true
}

// changed puts an entry that was changed on disk, and reports that it may be sent.
func (r *Runner) changed(e Entry, update func(Entry) error) bool {
	err := update(e)
	if err != nil {
		r.Note("change an entry of the spool: %v", err)
	}
	return err == nil
}

// errImported says that a memory was imported: what is counted on it would go with its import.
var errImported = errors.New("it was imported")

// repeat counts on the record that said the same. The nonce sees to it that a resend is not
// counted. What an import brought counts nothing, and what an import took stands in nobody's way: the entry is
// stored under the next id then.
func (r *Runner) repeat(ctx context.Context, e Entry, id string, update func(Entry) error, past passed) verdict {
	counted, err := likeness.Count(ctx, r.Node, e.Namespace, id, e.Nonce, &e.Item, func(rec *memory.Record, _ *memory.Revision) error {
		if rec.Origin == memory.OriginImport {
			return errImported
		}
		return nil
	})
	code := memory.CodeOf(err)
	switch {
	case errors.Is(err, client.ErrForeign):
	case err == nil:
		if counted.Again {
			r.count(ctx, func(c *Counts) { c.Repeated++ })
		}
		return taken
	case id == "", code == memory.CodeNotFound, code == memory.CodeGone:
		byImport, err := r.takenBack(ctx, &e, id)
		switch {
		case err != nil:
			return r.refused(ctx, &e, err, 0)
		case byImport:
			past[id] = false
			return r.again(ctx, e, nextID(&e, id), update, past)
		}
		r.Note("a text that was forgotten in %s was said again, and is not kept", e.Namespace)
		return refused
	case errors.Is(err, errImported):
		past[id] = true
		return r.again(ctx, e, nextID(&e, id), update, past)
	case errors.Is(err, likeness.ErrRevised): // its id is spent on what it said then
		past[id] = false
		return r.again(ctx, e, anotherID(&e), update, past)
	case code == memory.CodeConflict:
		r.Note("a repetition of %s was not counted: others change it", id)
		return taken
	}
	return r.refused(ctx, &e, err, 0)
}

// again sends an entry under another id.
func (r *Runner) again(ctx context.Context, e Entry, another string, update func(Entry) error, past passed) verdict {
	if e.Item.ID != another {
		e.Item.ID = another
		if !r.changed(e, update) {
			return later
		}
	}
	return r.sendPast(ctx, e, update, past)
}

func (p passed) revised(id string) bool { says, is := p[id]; return is && !says }

// takenBack reports whether a memory that is not there any more was taken by an import.
func (r *Runner) takenBack(ctx context.Context, e *Entry, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	h, err := r.Node.History(ctx, e.Namespace, id, client.ReadOptions{As: e.Item.Agent})
	switch code := memory.CodeOf(err); {
	case err == nil && len(h.Versions) > 0:
		last := h.Versions[len(h.Versions)-1]
		return last.Origin == memory.OriginImport && likeness.Taken(last.Metadata), nil
	case err != nil && (errors.Is(err, client.ErrForeign) || code != memory.CodeNotFound && code != memory.CodeGone):
		return false, err
	}
	return false, nil // nothing is known of it any more
}

// nextID is the id of an entry whose own was spent on a memory that an import brought. It is the same for all who
// say it.
func nextID(e *Entry, spent string) string { return "hook-" + key(e.Item.ID, spent) }

// anotherID is the id of an entry whose text has none of its own any more. It is the entry's alone.
func anotherID(e *Entry) string { return "hook-" + key(string(e.Item.Kind), e.Item.Text, e.Nonce) }

// count changes the counts.
func (r *Runner) count(ctx context.Context, f func(*Counts)) {
	_ = r.Disk.change(ctx, r.Now(), func(s *state) error { f(&s.Counts); return nil })
}

// unwanted is for how long an entry waits for a node that answers and does not take it.
const unwanted = 7 * 24 * time.Hour

var (
	// lasting are the refusals that sending again does not change.
	lasting = []memory.Code{memory.CodeInvalid, memory.CodeTooLarge, memory.CodeConflict, memory.CodeGone}
	// barred are those that a namespace has for everything, until somebody changes something.
	barred = []memory.Code{memory.CodeNotFound, memory.CodeForbidden, memory.CodeQuota}
	// unable are those of a node that waits for somebody to set it right.
	unable = []memory.Code{memory.CodeUnauthenticated, memory.CodeNoSpace, memory.CodeLogDiverged}
	// unsearched are those of a search, by the node itself, that say nothing about a capture.
	unsearched = []memory.Code{memory.CodeForbidden, memory.CodeInvalid, memory.CodeTooLarge}
)

// alone reports that the node answers something else, though something in between, such as a proxy, answered what
// was sent of an entry: that was about the entry, and the others go on.
func (r *Runner) alone(ctx context.Context, e *Entry) bool {
	_, err := r.Node.Get(ctx, e.Namespace, nobody, client.GetOptions{ReadOptions: client.ReadOptions{As: e.Item.Agent}})
	return ctx.Err() == nil && err != nil && !errors.Is(err, client.ErrForeign) && !memory.CodeOf(err).Transient()
}

// notSearched decides what it means for an entry that what says the same was not looked for. Where something in between
// answers every search so, that is about no entry: its namespace waits, or each hook would ask for all that does.
func (r *Runner) notSearched(ctx context.Context, e *Entry, err error, took time.Duration) verdict {
	became := r.refused(ctx, e, err, took)
	if became != later || !errors.Is(err, client.ErrForeign) {
		return became
	}
	harmless := memory.Capture{Agent: e.Item.Agent, Scope: e.Item.Scope, Text: "memory"}
	_, err = likeness.Find(ctx, r.Node, e.Namespace, &harmless, nil)
	if ctx.Err() != nil || !errors.Is(err, client.ErrForeign) {
		return later
	}
	r.waits(e, err, "whatever is searched for in namespace %s, it is no memnode that answers: all that was captured for it waits", e.Namespace)
	return blocked
}

// waits notes why an entry waits. One that is in no spool does not: who sends it says what became of it.
func (r *Runner) waits(e *Entry, why error, format string, args ...any) {
	r.why = why
	if !e.unspooled {
		r.Note(format, args...)
	}
}

// nobody is a record that is nowhere.
const nobody = "00000000000000000000000000"

// refused decides what an error means for an entry. What one namespace or one entry meets holds
// up no other. Only the node's own word removes one: whatever else answered, it waits, for however long.
func (r *Runner) refused(ctx context.Context, e *Entry, err error, took time.Duration) verdict {
	err, own := whose(ctx, err)
	if own {
		return unfinished
	}
	code, foreign := memory.CodeOf(err), errors.Is(err, client.ErrForeign)
	switch {
	case foreign && r.alone(ctx, e):
		r.waits(e, err, "it was no memnode that answered: %v; a capture for namespace %s waits%s", err, e.Namespace, hintOf(err))
		return later
	case foreign && !code.Transient():
		r.waits(e, err, "it was no memnode that answered, captures wait: %v%s", err, hintOf(err))
		r.LeaveAlone(ctx, err, took)
		return away
	case slices.Contains(lasting, code):
		r.Note("a capture was refused for good: %v", err)
		return refused
	case code.Transient() && !slices.Contains(unable, code): // a node that takes nothing for now
		r.waits(e, err, "the node takes nothing for now, captures wait: %v%s", err, hintOf(err))
		r.LeaveAlone(ctx, err, took)
		return away
	case !slices.Contains(unable, code) && r.Now().Sub(e.At) >= unwanted:
		r.Note("a capture for namespace %s has waited for a week and is given up: %v", e.Namespace, err)
		return refused
	}
	r.waits(e, err, "%v; what was captured for namespace %s waits%s", err, e.Namespace, hintOf(err))
	if slices.Contains(barred, code) || slices.Contains(unable, code) {
		return blocked
	}
	return later
}
