package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// Erasing begins with the event: its fold drops what the keys sealed, and the keys
// are destroyed once it is applied. A crash between the two is made good by
// DestroyEnded, and a key that was made or destroyed without an event by TellKeys.

// Erasing is the part of a writer that ends keys.
type Erasing struct{ w *Writer }

// Erasing gives that part.
func (w *Writer) Erasing() Erasing { return Erasing{w} }

// Erase ends the keys of a namespace's subjects for good, and with them what is
// about them and what was derived from that. Who is erased already is passed over.
// Errors: not_found for a subject that has no key.
func (e Erasing) Erase(ctx context.Context, namespace string, subjects ...string) (events.Position, error) {
	var ids []keyring.KeyID
	ns, err := Confirmed(ctx, e.w, func(bool) (ns events.ID, err error) {
		ns, ids, err = e.keysOf(namespace, subjects)
		return ns, err
	})
	if err != nil {
		return events.Position{}, err
	}
	if len(ids) == 0 {
		at := e.w.position()
		return at, confirm(ctx, e.w)
	}
	// Until the keys are gone nothing new is sealed under them, nor combined.
	e.w.erasing.Lock()
	defer e.w.erasing.Unlock()
	ending, err := e.w.opt.Keys.Ending(ns, ids...)
	if err != nil {
		return events.Position{}, fmt.Errorf("erase subjects: %w", err)
	}
	at, err := e.endKeys(ctx, ns, ending)
	if err != nil {
		return at, err
	}
	if err := e.w.opt.Keys.Destroy(ids...); err != nil {
		return at, fmt.Errorf("destroy the keys of subjects: %w", err)
	}
	return at, nil
}

// keysOf finds the keys of subjects that are not erased. The keyring has those of all that
// the state holds.
func (e Erasing) keysOf(namespace string, subjects []string) (ns events.ID, ids []keyring.KeyID, err error) {
	a, err := e.w.admit(namespace)
	if err != nil {
		return ns, nil, err
	}
	if err := a.view.Close(); err != nil {
		return ns, nil, err
	}
	for _, subject := range subjects {
		d, err := e.w.opt.Keys.DataKey(a.ns.ID, subject)
		switch {
		case settings.IsErased(err):
			continue
		case subject == "" || errors.Is(err, keyring.ErrNoKey):
			return ns, nil, memory.Errorf(memory.CodeNotFound, "namespace %q knows no such subject", namespace)
		case err != nil:
			return ns, nil, fmt.Errorf("key of a subject: %w", err)
		}
		ids = append(ids, d.ID())
	}
	return a.ns.ID, ids, nil
}

// endKeys writes that keys end.
func (e Erasing) endKeys(ctx context.Context, ns events.ID, ids []keyring.KeyID) (at events.Position, err error) {
	for some := range slices.Chunk(ids, events.MaxKeys) {
		res, err := e.w.submit(ctx, endingDraft(e.w.ids.New(), ns, some))
		if err == nil && res.Outcome == projections.OutcomeRejected {
			err = memory.Errorf(memory.CodeNotFound, "the namespace was deleted meanwhile")
		}
		if err != nil {
			return at, err
		}
		at = res.Position
	}
	return at, nil
}

// endingDraft is the event that some keys end.
func endingDraft(event, ns events.ID, ids []keyring.KeyID) *draft {
	raw := make([][16]byte, len(ids))
	for i, id := range ids {
		raw[i] = id
	}
	d := newDraft(events.Header{Type: events.TypeKeyDestroyed, Event: event, Namespace: ns})
	d.payload = events.EncodeKeys(raw)
	d.size += len(d.payload)
	return d
}

// DestroyEnded destroys the keys of every namespace that the state says was deleted,
// and every key that it says has ended, so that a crash between event and
// destruction is made good. It is idempotent.
func (e Erasing) DestroyEnded() error { return errors.Join(e.destroyNamespaces(), e.destroyKeys()) }

// TellKeys compares the keyring with the state and writes what no event says: that a
// key was made, where a crash came between the two, and that a key or a namespace has
// ended, as after a restore with a newer keyring. It is idempotent.
func (e Erasing) TellKeys(ctx context.Context) error {
	if err := errors.Join(e.tellDeleted(ctx), e.tellMade(ctx)); err != nil {
		return err
	}
	untold, err := e.untold()
	for _, ns := range slices.SortedFunc(maps.Keys(untold), func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) }) {
		if _, err := e.endKeys(ctx, ns, untold[ns]); err != nil {
			return err
		}
	}
	return err
}

// tellDeleted deletes the namespaces whose keys are destroyed. DeleteNamespace writes
// the event before it destroys them, so only a keyring newer than the log has such.
func (e Erasing) tellDeleted(ctx context.Context) error {
	v := e.w.opt.State.View()
	all := v.Namespaces()
	if err := v.Close(); err != nil {
		return err
	}
	for _, ns := range all {
		if _, err := e.w.opt.Keys.Namespace(ns.ID); !settings.IsErased(err) {
			continue
		}
		if _, err := e.w.endNamespace(ctx, ns); err != nil && memory.CodeOf(err) != memory.CodeNotFound {
			return fmt.Errorf("delete namespace %s, whose keys are destroyed: %w", ns.Name, err)
		}
	}
	return nil
}

// toldAtOnce is how many key.created are queued before they are waited for.
const toldAtOnce = 256

func (e Erasing) tellMade(ctx context.Context) error {
	for {
		drafts, err := e.announceUntold(toldAtOnce)
		for _, a := range answers(ctx, e.w, memory.WaitApplied, drafts...) {
			err = cmp.Or(err, a.err)
		}
		if err != nil || len(drafts) == 0 {
			return err
		}
	}
}

// announceUntold queues the events of some keys of one namespace that neither the
// state nor the queue tells of.
func (e Erasing) announceUntold(most int) ([]*draft, error) {
	e.w.keys.mu.Lock()
	defer e.w.keys.mu.Unlock()
	v := e.w.opt.State.View()
	defer v.Close()
	var in events.ID
	var untold []keyring.KeyID
	var err error
	e.w.opt.Keys.SubjectKeys(func(ns keyring.NamespaceID, id keyring.KeyID) {
		if err != nil || len(untold) == most || len(untold) > 0 && ns != in {
			return
		}
		var told bool
		if told, err = v.Told(ns, id); err != nil || told || e.w.keys.byKey[id] != nil && !e.w.keys.isUntoldLocked(id) {
			return
		}
		if info, known := v.NamespaceByID(ns); known && info.Here(v) {
			in, untold = ns, append(untold, id)
		}
	})
	if err != nil {
		return nil, err
	}
	return e.w.keys.tellLocked(e.w, in, untold)
}

// EndedKeys counts the keys that a state says have ended and that a keyring still has.
func EndedKeys(v *projections.View, keys *keyring.Keyring) (left int, err error) {
	for _, id := range v.DeletedNamespaces() {
		if _, err := keys.Namespace(id); !settings.IsErased(err) {
			left++
		}
	}
	err = v.EndedKeys(func(k projections.EndedKey) {
		if d, err := keys.KeyByID(k.Key); err == nil && d != nil {
			left++
		}
	})
	return left, err
}

// EndNamespace destroys the keys of a namespace whose end is in the log, if they are not
// yet. Errors: outcome_unknown where that cannot be done now; the eraser does later.
func (e Erasing) EndNamespace(ended projections.Entry) error {
	err := e.w.opt.Keys.DestroyNamespace(ended.ID)
	if err == nil {
		return nil
	}
	return memory.Errorf(memory.CodeOutcomeUnknown, "namespace %q has ended, and its keys could not be destroyed yet: %v", ended.Name, err).
		WithHint("that is tried again until it is done; memctl status shows what of a deletion is left").WithCause(err)
}

func (e Erasing) destroyNamespaces() error {
	v := e.w.opt.State.View()
	defer v.Close()
	for _, id := range v.DeletedNamespaces() {
		if _, err := e.w.opt.Keys.Namespace(id); settings.IsErased(err) {
			continue
		}
		if err := e.w.opt.Keys.DestroyNamespace(id); err != nil {
			return fmt.Errorf("destroy the keys of namespace %s: %w", id, err)
		}
	}
	return nil
}

// destroyKeys leaves combined keys alone: they go with their members.
func (e Erasing) destroyKeys() error {
	v := e.w.opt.State.View()
	defer v.Close()
	var ids []keyring.KeyID
	err := v.EndedKeys(func(k projections.EndedKey) {
		d, err := e.w.opt.Keys.KeyByID(k.Key)
		if err == nil && !d.Combined() || errors.Is(err, keyring.ErrNoKey) {
			ids = append(ids, k.Key)
		}
	})
	if err != nil {
		return err
	}
	if err := e.w.opt.Keys.Destroy(ids...); err != nil {
		return fmt.Errorf("destroy ended keys: %w", err)
	}
	return nil
}

// untold finds keys that are destroyed while the state still has what they sealed.
func (e Erasing) untold() (map[events.ID][]keyring.KeyID, error) {
	v := e.w.opt.State.View()
	defer v.Close()
	out := map[events.ID][]keyring.KeyID{}
	err := v.SealingKeys(func(ns events.ID, key [16]byte) {
		_, err := e.w.opt.Keys.KeyByID(key)
		if _, gone := e.w.opt.Keys.Namespace(ns); settings.IsErased(err) && gone == nil {
			out[ns] = append(out[ns], key)
		}
	})
	return out, err
}
