package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

func (w *Writer) position() events.Position {
	c := w.opt.State.Cursor()
	return c.Position()
}

// submit queues one draft and waits until it is applied.
func (w *Writer) submit(ctx context.Context, d *draft) (projections.EventResult, error) {
	if err := w.queue.pushFor(ctx, []*draft{d}); err != nil {
		return projections.EventResult{}, err
	}
	a := answers(ctx, w, memory.WaitApplied, d)[0]
	return a.result, a.err
}

// reviseTries is how often a revision without If-Match is tried again after
// somebody else was first.
const reviseTries = 8

// Revise puts a new version in the place of a record's present one. ifMatch is
// the version it must build on; 0 takes whatever is there.
func (w *Writer) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	record, err := recordOf(as, id)
	if err != nil {
		return memory.RevisionResponse{}, err
	}
	for try := 1; ; try++ {
		d, err := Confirmed(ctx, w, func(bool) (*draft, error) { return w.queueRevision(ctx, namespace, as, record, rev, ifMatch, clientID) })
		if err != nil {
			return memory.RevisionResponse{}, err
		}
		a := answers(ctx, w, memory.WaitApplied, d)[0]
		if a.err != nil {
			return memory.RevisionResponse{}, a.err
		}
		res := a.result
		switch res.Outcome {
		case projections.OutcomeRevised, projections.OutcomeDuplicate:
			return memory.RevisionResponse{RecordID: res.Record.String(), Version: int(res.Version), Position: res.Position.String()}, nil
		case projections.OutcomeErased:
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeGone, "record %s was erased", id)
		case projections.OutcomeRejected:
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeNotFound, "there is no record %s in namespace %q", id, namespace)
		}
		if idUsed := res.Version == 0; idUsed {
			return memory.RevisionResponse{}, conflictError(d, res)
		}
		if uriTaken := res.Version == d.header.BaseVersion; uriTaken {
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeConflict, "uri %q names another living memory", d.content.URI)
		}
		if ifMatch != 0 || try == reviseTries {
			return memory.RevisionResponse{}, staleBase(id, int(res.Version))
		}
	}
}

func staleBase(id string, version int) error {
	return memory.Errorf(memory.CodeConflict, "record %s is at version %d by now", id, version).
		WithHint("read it again and build on version %d", version)
}

// queueRevision makes the draft of a revision and queues it.
func (w *Writer) queueRevision(ctx context.Context, namespace, as string, record events.ID, rev memory.Revision, ifMatch int, clientID string) (*draft, error) {
	w.erasing.RLock()
	defer w.erasing.RUnlock()
	d, err := w.revision(namespace, as, record, rev, ifMatch, clientID)
	if err != nil {
		return nil, err
	}
	return d, w.queue.pushFor(ctx, []*draft{d})
}

// recordOf checks who asks for a change, and of what.
func recordOf(as, id string) (record events.ID, err error) {
	if record, err = events.ParseID(id); err != nil {
		return record, memory.Errorf(memory.CodeInvalid, "%q is not a record id", id)
	}
	if err := memory.CheckName("agent", as); err != nil {
		return record, err.WithHint("say who is acting: as=AGENT, or the header Mneme-Agent")
	}
	return record, nil
}

// revision makes the draft of a complete new version.
func (w *Writer) revision(namespace, as string, record events.ID, rev memory.Revision, ifMatch int, clientID string) (*draft, error) {
	a, err := admitMemories(w, namespace)
	if err != nil {
		return nil, err
	}
	d, err := a.revise(record, as, rev, ifMatch, clientID)
	return d, errors.Join(err, a.view.Close())
}

func (a *admission) revise(record events.ID, as string, rev memory.Revision, ifMatch int, clientID string) (*draft, error) {
	if d, err := a.revisedBefore(record, as, rev, clientID); d != nil || err != nil {
		return d, err
	}
	if a.off != nil {
		return nil, a.off
	}
	p, doc, err := a.visible(record, as)
	if err != nil {
		return nil, err
	}
	if ifMatch != 0 && int(doc.Version) != ifMatch {
		return nil, staleBase(record.String(), int(doc.Version))
	}
	c, key, env, err := a.openContent(doc)
	if err != nil {
		return nil, err
	}
	present := captureOf(c, &env, as)
	applyRevision(&present, rev)
	present.ID = clientID
	sameSources := rev.DerivedFrom == nil
	if sameSources {
		present.DerivedFrom = nil // they may be gone by now, and need not be found again
	}
	d, err := a.revisionOf(&present, c)
	if err != nil {
		return nil, err
	}
	if sameSources {
		d.content.DerivedFrom = c.DerivedFrom
		// What is about somebody, or derived from it, stays so: the version keeps
		// its key.
		d.key = key
		if err := a.complete(d, clientID); err != nil {
			return nil, err
		}
	}
	d.header.Target, d.header.BaseVersion, d.header.Scope = record, doc.Version, p.Scope
	return d, nil
}

// revisionOf makes the draft of a version that holds what the capture says;
// c is the content of the version it comes from.
func (a *admission) revisionOf(present *memory.Capture, c *events.Content) (*draft, error) {
	if err := present.Validate(); err != nil {
		return nil, err
	}
	d, err := a.capture(&Item{Capture: *present, Source: c.Source, Origin: c.Origin})
	if err != nil {
		return nil, err
	}
	d.header.Type, d.header.Schema, d.header.Record = events.TypeRevised, events.TypeRevised.Schema(), events.ID{}
	return d, nil
}

// captureOf gives the capture that a version came from.
func captureOf(c *events.Content, env *events.Envelope, agent string) memory.Capture {
	out := memory.Capture{Agent: agent, Text: c.Text, Kind: env.Kind.Public(), Role: c.Role, URI: c.URI, Tags: c.Tags,
		Conversation: c.Conversation, Subject: c.Subject, Scope: env.Scope.Public(), Importance: c.Importance, Metadata: c.Metadata}
	if c.OccurredSet {
		t := time.Unix(0, env.OccurredAt).UTC()
		out.OccurredAt = &t
	}
	for _, id := range c.DerivedFrom {
		out.DerivedFrom = append(out.DerivedFrom, id.String())
	}
	return out
}

func applyRevision(c *memory.Capture, rev memory.Revision) {
	set(&c.Text, rev.Text)
	set(&c.Kind, rev.Kind)
	set(&c.Role, rev.Role)
	set(&c.URI, rev.URI)
	set(&c.Tags, rev.Tags)
	set(&c.Conversation, rev.Conversation)
	set(&c.DerivedFrom, rev.DerivedFrom)
	set(&c.Metadata, rev.Metadata)
	if rev.Importance != nil {
		c.Importance = rev.Importance
	}
	if rev.OccurredAt != nil {
		c.OccurredAt = rev.OccurredAt
	}
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

// Forget takes a record out of every present answer.
func (w *Writer) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	record, err := recordOf(as, id)
	if err != nil {
		return memory.ForgetResponse{}, err
	}
	d, err := Confirmed(ctx, w, func(bool) (*draft, error) { return w.forgetting(namespace, as, record, ifMatch) })
	if err != nil {
		return memory.ForgetResponse{}, err
	}
	res, err := w.submit(ctx, d)
	if err != nil {
		return memory.ForgetResponse{}, err
	}
	if res.Outcome == projections.OutcomeConflict {
		return memory.ForgetResponse{}, staleBase(id, int(res.Version))
	}
	if res.Outcome != projections.OutcomeForgotten {
		return memory.ForgetResponse{}, memory.Errorf(memory.CodeNotFound, "there is no record %s in namespace %q", id, namespace)
	}
	return memory.ForgetResponse{RecordID: id, Position: res.Position.String()}, nil
}

// forgetting makes the draft of a forget.
func (w *Writer) forgetting(namespace, as string, record events.ID, ifMatch int) (*draft, error) {
	a, err := w.admit(namespace)
	if err != nil {
		return nil, err
	}
	p, doc, err := a.visible(record, as)
	if err = errors.Join(err, a.view.Close()); err != nil {
		return nil, err
	}
	if ifMatch != 0 && int(doc.Version) != ifMatch {
		return nil, staleBase(record.String(), int(doc.Version))
	}
	d := newDraft(events.Header{Type: events.TypeForgotten, Event: w.ids.New(), Namespace: a.ns.ID,
		Scope: p.Scope, Agent: as, Target: record, BaseVersion: doc.Version})
	d.exact = ifMatch != 0
	return d, nil
}

// CreateNamespace makes a namespace, or places it on another shard, whose writer then
// makes its home, see Settling. Its keys are durable before the event; space is the value of
// settings.EmbedderSpace, "" for none.
func (w *Writer) CreateNamespace(ctx context.Context, name string, set map[string]string, space string) (events.Position, error) {
	if err := WouldCreateNamespace(ctx, w, name, set); err != nil {
		return events.Position{}, err
	}
	id := w.ids.New()
	if err := w.opt.Keys.CreateNamespace(id); err != nil {
		return events.Position{}, fmt.Errorf("keys of namespace %s: %w", name, err)
	}
	all := map[string]string{}
	maps.Copy(all, set)
	if space != "" {
		all[settings.EmbedderSpace] = space
	}
	t, home := events.TypeNamespaceCreated, w.Settling().place()
	if home != 0 {
		t = events.TypeNamespacePlaced
	}
	d := w.directoryDraft(t, id, name, events.Settings{Set: all})
	d.header.Home = home
	res, err := w.submit(ctx, d)
	if err != nil {
		return events.Position{}, err
	}
	if res.Outcome != projections.OutcomeApplied {
		if err := w.opt.Keys.DestroyNamespace(id); err != nil {
			w.opt.Logger.Warn("keys of a namespace that was not made remain", "err", err)
		}
		return events.Position{}, nameTaken(name)
	}
	return res.Position, nil
}

// WouldCreateNamespace says why w.CreateNamespace would refuse, if it would now.
func WouldCreateNamespace(ctx context.Context, w *Writer, name string, set map[string]string) error {
	if err := memory.CheckName("namespace", name); err != nil {
		return err
	}
	if err := settings.Check(set, true); err != nil {
		return err
	}
	if err := w.refusals.now(); err != nil {
		return err
	}
	_, err := Confirmed(ctx, w, func(bool) (ns projections.NamespaceInfo, err error) {
		v := w.opt.State.View()
		ns, taken := v.Namespace(name)
		if taken {
			err = nameTaken(name)
		}
		return ns, errors.Join(err, v.Close())
	})
	return err
}

func nameTaken(name string) error {
	return memory.Errorf(memory.CodeConflict, "namespace %q exists already", name).WithHint("memctl use %s", name)
}

func (w *Writer) directoryDraft(t events.Type, id events.ID, name string, set events.Settings) *draft {
	key := w.opt.Keys.Cluster()
	d := newDraft(events.Header{Type: t, Event: w.ids.New(), Namespace: id, Name: name, Key: key.ID()})
	d.key, d.payload = key, set.Encode()
	return d
}

// ChangeNamespace changes settings. A dry run ends where the event would be written.
func (w *Writer) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (events.Position, error) {
	change := events.Settings{Set: map[string]string{}}
	for _, k := range slices.Sorted(maps.Keys(patch.Settings)) {
		if v := patch.Settings[k]; v != nil {
			change.Set[k] = *v
		} else {
			change.Reset = append(change.Reset, k)
		}
	}
	if err := settings.Check(change.Set, false); err != nil {
		return events.Position{}, err
	}
	if err := settings.CheckReset(change.Reset); err != nil {
		return events.Position{}, err
	}
	ns, err := alive(ctx, w, name)
	if err != nil {
		return events.Position{}, err
	}
	if patch.DryRun {
		return events.Position{}, nil
	}
	res, err := w.submit(ctx, w.directoryDraft(events.TypeNamespaceChanged, ns.ID, "", change))
	if err == nil && res.Outcome != projections.OutcomeApplied {
		err = memory.NoNamespace(name)
	}
	return res.Position, err
}

// DeleteNamespace ends a namespace and destroys its keys. It needs none of them. Of one
// that lives on another shard it ends the entry in the directory; the rest is that shard's,
// see Settling. ended is the one that had the name when it was decided.
func (w *Writer) DeleteNamespace(ctx context.Context, name string) (ended projections.Entry, at events.Position, err error) {
	if err := memory.CheckName("namespace", name); err != nil {
		return ended, at, err
	}
	if err := w.refusals.now(); err != nil {
		return ended, at, err
	}
	ns, err := Confirmed(ctx, w, func(bool) (projections.NamespaceInfo, error) {
		v := w.opt.State.View()
		ns, ok := v.Namespace(name)
		if err := v.Close(); err != nil || ok {
			return ns, err
		}
		return ns, memory.NoNamespace(name)
	})
	if err != nil {
		return ended, at, err
	}
	at, err = w.endNamespace(ctx, ns)
	if err != nil || ns.Shard != w.opt.Shard { // where it lives its keys are still in use
		return ns.Entry, at, err
	}
	return ns.Entry, at, w.Erasing().EndNamespace(ns.Entry)
}

// endNamespace writes that a namespace ends. Errors: not_found if it has ended.
func (w *Writer) endNamespace(ctx context.Context, ns projections.NamespaceInfo) (events.Position, error) {
	res, err := w.submit(ctx, newDraft(events.Header{Type: events.TypeNamespaceDeleted, Event: w.ids.New(), Namespace: ns.ID}))
	if err == nil && res.Outcome != projections.OutcomeApplied {
		err = memory.NoNamespace(ns.Name)
	}
	return res.Position, err
}
