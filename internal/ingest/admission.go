package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/internal/spans"
	"mneme/memory"
)

// Item is one capture with what the transport knows about it.
type Item struct {
	memory.Capture
	Source string        // CloudEvents source; may be empty
	Origin memory.Origin // empty = capture
}

// admission is what one request needs to make drafts: the namespace and its keys.
type admission struct {
	writer *Writer
	view   *projections.View
	ns     projections.NamespaceInfo
	names  *keyring.NamespaceKeys
	off    *memory.Error // what is not there yet is refused with it; nil = it is taken
}

// admit finds the namespace to write to. Close the view when done.
func (w *Writer) admit(namespace string) (*admission, error) {
	ns, v, err := w.living(namespace)
	if err != nil {
		return nil, err
	}
	names, err := w.opt.Keys.Namespace(ns.ID)
	switch {
	case settings.IsErased(err): // it is being deleted
		return nil, errors.Join(memory.NoNamespace(namespace), v.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("keys of namespace %s: %w", namespace, err), v.Close())
	}
	return &admission{writer: w, view: v, ns: ns, names: names}, nil
}

// alive finds a namespace to write to.
func alive(ctx context.Context, w *Writer, namespace string) (projections.NamespaceInfo, error) {
	return Confirmed(ctx, w, func(bool) (projections.NamespaceInfo, error) {
		a, err := w.admit(namespace)
		if err != nil {
			return projections.NamespaceInfo{}, err
		}
		return a.ns, a.view.Close()
	})
}

// living finds a namespace to write in, in a view that the caller closes.
func (w *Writer) living(namespace string) (projections.NamespaceInfo, *projections.View, error) {
	var none projections.NamespaceInfo
	if err := memory.CheckName("namespace", namespace); err != nil {
		return none, nil, err
	}
	if err := w.refusals.now(); err != nil {
		return none, nil, err
	}
	v := w.opt.State.View()
	ns, ok := v.Namespace(namespace)
	if ok && !ns.Here(v) {
		return none, nil, errors.Join(elsewhere(ns), v.Close())
	}
	if ok {
		ok, err := w.Settling().lists(ns)
		if err != nil {
			return none, nil, errors.Join(err, v.Close())
		}
		if ok {
			return ns, v, nil
		}
	}
	return none, nil, errors.Join(memory.NoNamespace(namespace), v.Close())
}

// Capture admits items and waits until each has come as far as asked. The
// result has one entry an item, in order; an item's failure is in its entry.
// The error is for what concerns the request as a whole.
func (w *Writer) Capture(ctx context.Context, namespace string, items []Item, wait memory.Wait) (memory.CaptureResponse, error) {
	var drafts []*draft
	var results []memory.CaptureResult
	ns, err := Confirmed(ctx, w, func(sure bool) (ns events.ID, err error) {
		drafts, results, ns, err = w.queueCaptures(ctx, namespace, items, sure)
		return ns, err
	})
	if err != nil {
		return memory.CaptureResponse{}, err
	}
	told := answers(ctx, w, wait, drafts...)
	if err := unconfirmed(drafts, told); err != nil {
		return memory.CaptureResponse{}, err
	}
	resp := memory.CaptureResponse{Results: results}
	var last events.Position
	for i, d := range drafts {
		if d == nil {
			continue
		}
		if at := fillResult(&results[i], d, wait, told[i]); last.Before(at) {
			last = at
		}
	}
	if wait == memory.WaitSearchable {
		resp.Vectors = w.awaitVectors(ctx, ns, told, results)
	}
	if last.IsZero() {
		last = w.position()
	}
	resp.Position = last.String()
	return resp, nil
}

// queueCaptures queues what is valid. Of an invalid item the draft is nil and
// the result is there. As long as it is not sure of the state, nothing is queued where an item
// is refused, and the refusal is the error.
func (w *Writer) queueCaptures(ctx context.Context, namespace string, items []Item, sure bool) (drafts []*draft, results []memory.CaptureResult, ns events.ID, err error) {
	w.erasing.RLock()
	defer w.erasing.RUnlock()
	a, err := admitMemories(w, namespace)
	if err != nil {
		return nil, nil, ns, err
	}
	drafts, results, err = a.captures(items, sure)
	if err = errors.Join(err, a.view.Close()); err != nil {
		return nil, nil, ns, err
	}
	live := slices.DeleteFunc(slices.Clone(drafts), func(d *draft) bool { return d == nil })
	if len(live) > 0 {
		err = w.queue.pushFor(ctx, live)
	}
	return drafts, results, a.ns.ID, err
}

// captures makes a draft of each valid item and a result of each invalid one. Not sure of the
// state, it returns a refusal that may rest on it.
func (a *admission) captures(items []Item, sure bool) ([]*draft, []memory.CaptureResult, error) {
	drafts := make([]*draft, len(items))
	results := make([]memory.CaptureResult, len(items))
	var subjects []string
	taken := 0
	for i := range items {
		items[i].Normalise()
		results[i].ID = items[i].ID
		if err := items[i].Validate(); err != nil {
			fail(&results[i], err)
			continue
		}
		if err := a.takes(items[i].ID, items[i].Agent); err != nil {
			if !sure || !errors.Is(err, a.off) {
				return nil, nil, err
			}
			fail(&results[i], a.off)
			continue
		}
		taken++
		if items[i].Subject != "" && !slices.Contains(subjects, items[i].Subject) {
			subjects = append(subjects, items[i].Subject)
		}
	}
	if a.off != nil && taken == 0 {
		return nil, nil, a.off // the request as a whole
	}
	if err := a.ensureSubjects(subjects); err != nil {
		return nil, nil, err
	}
	for i := range items {
		if results[i].Error != nil {
			continue
		}
		d, err := a.capture(&items[i])
		if !sure && restsOnState(err) {
			return nil, nil, err
		}
		if e := memory.AsError(err); err != nil && e.Code != memory.CodeInternal {
			fail(&results[i], e)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		drafts[i] = d
	}
	return drafts, results, nil
}

// ensureSubjects makes the keys of subjects seen for the first time and queues
// the events that say so. The keys are durable before their first use.
func (a *admission) ensureSubjects(subjects []string) error {
	if len(subjects) == 0 {
		return nil
	}
	keys := &a.writer.keys
	keys.mu.Lock()
	defer keys.mu.Unlock()
	ids, created, err := a.writer.opt.Keys.EnsureSubjects(a.ns.ID, subjects)
	if err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	var untold []keyring.KeyID
	for i, id := range ids {
		if created[i] || keys.isUntoldLocked(id) {
			untold = append(untold, id)
		}
	}
	_, err = keys.tellLocked(a.writer, a.ns.ID, untold)
	return err
}

// announcements are the key.created that were queued and are not known to be in
// the log. The mutex is held from making a subject's key until its key.created
// is queued, so that nothing sealed under the key gets into the log before it.
type announcements struct {
	mu    sync.Mutex
	byKey map[keyring.KeyID]*draft
}

// isUntoldLocked reports whether the event that tells of a key's making was
// tried and is not known to be in the log. The caller holds mu.
func (a *announcements) isUntoldLocked(id keyring.KeyID) bool {
	d := a.byKey[id]
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		delete(a.byKey, id)
		return d.err != nil
	default:
		return false
	}
}

// tellLocked queues the events that tell of keys' making. The caller holds
// mu.
func (a *announcements) tellLocked(w *Writer, ns events.ID, ids []keyring.KeyID) ([]*draft, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var drafts []*draft
	for _, id := range ids {
		d := newDraft(events.Header{Type: events.TypeKeyCreated, Event: w.ids.New(), Namespace: ns, Key: id})
		drafts = append(drafts, d)
		a.byKey[id] = d
	}
	err := w.queue.add(ns, drafts, true)
	if err != nil {
		finishAll(drafts, err)
	}
	return drafts, err
}

// clientMAC is what stands for a client id in headers.
func (a *admission) clientMAC(id string) events.MAC {
	return events.TruncateMAC(a.names.MAC(events.LabelClient, []byte(id)))
}

// capture makes the draft of one valid item.
func (a *admission) capture(it *Item) (*draft, error) {
	uri, e := memory.FullURI(a.ns.Name, it.URI)
	if e != nil {
		return nil, e
	}
	meta, err := events.CanonicalJSON(it.Metadata)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "metadata must be a JSON object")
	}
	event := a.writer.ids.New()
	d := newDraft(events.Header{Type: events.TypeCaptured, Scope: events.ScopeOf(it.Scope), Kind: events.KindOf(it.Kind),
		Event: event, Namespace: a.ns.ID, Agent: it.Agent, Record: events.RecordID(event)})
	d.content = &events.Content{Text: it.Text, Role: it.Role, Tags: it.Tags, URI: uri, Conversation: it.Conversation,
		Subject: it.Subject, ClientID: it.ID, Source: it.Source, Origin: it.Origin, Importance: it.Importance, Metadata: meta}
	if d.content.Origin == "" {
		d.content.Origin = memory.OriginCapture
	}
	if it.OccurredAt != nil {
		d.content.OccurredSet = true
		d.header.OccurredAt = it.OccurredAt.UnixNano()
	}
	if d.content.DerivedFrom, err = parseLineage(it.DerivedFrom); err != nil {
		return nil, err
	}
	spent, err := a.sealAsUsed(d, it.ID)
	if err == nil && !spent {
		err = a.lineage(d)
	}
	if err != nil {
		return nil, err
	}
	return d, a.complete(d, it.ID)
}

// complete sets the keyed hashes of a draft with content, once its key is known.
func (a *admission) complete(d *draft, clientID string) error {
	if d.key == nil {
		key, err := a.writer.opt.Keys.DataKey(a.ns.ID, d.content.Subject)
		if err != nil {
			return fmt.Errorf("key of namespace %s: %w", a.ns.Name, err)
		}
		d.key = key
	}
	d.header.Key = d.key.ID()
	if clientID != "" {
		d.header.ClientID = a.clientMAC(clientID)
		d.header.Body = events.TruncateMAC(d.key.MAC(events.LabelBody, d.content.Body(&d.header)))
	}
	d.size = 400 + len(d.content.Text) + len(d.content.Metadata) + 40*len(d.content.Tags)
	return nil
}

func parseLineage(ids []string) ([]events.ID, error) {
	var out []events.ID
	for _, s := range ids {
		id, err := events.ParseID(s)
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "derived_from: %q is not a record id", s)
		}
		out = append(out, id)
	}
	return out, nil
}

// lineage resolves derived_from. What is derived is sealed so that it dies with
// the subject of any source, and with its own.
func (a *admission) lineage(d *draft) error {
	var keys []keyring.KeyID
	for _, id := range d.content.DerivedFrom {
		env, err := a.source(id, d.header.Agent)
		if err != nil {
			return err
		}
		if keyring.KeyID(env.Key) != a.ownKey() {
			keys = append(keys, keyring.KeyID(env.Key))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if d.content.Subject != "" {
		own, err := a.writer.opt.Keys.DataKey(a.ns.ID, d.content.Subject)
		if err != nil {
			return fmt.Errorf("key of namespace %s: %w", a.ns.Name, err)
		}
		keys = append(keys, own.ID())
	}
	key, err := a.writer.opt.Keys.Combine(keys)
	if err != nil {
		return fmt.Errorf("combine keys of sources: %w", err)
	}
	d.key = key
	return nil
}

func (a *admission) ownKey() keyring.KeyID {
	k, err := a.writer.opt.Keys.DataKey(a.ns.ID, "")
	if err != nil {
		return keyring.KeyID{}
	}
	return k.ID()
}

// source finds the present version of a record that the agent may see.
func (a *admission) source(id events.ID, agent string) (events.Envelope, error) {
	_, doc, err := a.visible(id, agent)
	if err != nil {
		if memory.CodeOf(err) == memory.CodeNotFound {
			err = memory.Errorf(memory.CodeInvalid, "derived_from: there is no record %s", id)
		}
		return events.Envelope{}, err
	}
	env, _, err := a.view.Envelope(doc.At)
	return env, err
}

// visible finds a living record of the namespace in the team's partition or in
// the agent's own.
func (a *admission) visible(id events.ID, agent string) (projections.Partition, projections.Doc, error) {
	none := func() (projections.Partition, projections.Doc, error) {
		return projections.Partition{}, projections.Doc{}, memory.Errorf(memory.CodeNotFound, "there is no record %s in namespace %q", id, a.ns.Name)
	}
	head, ok, err := a.view.Head(a.ns.ID, id)
	if err != nil || !ok || !head.Living && !head.Erased {
		if err == nil {
			return none()
		}
		return projections.Partition{}, projections.Doc{}, err
	}
	p, ok := a.view.PartitionByID(head.Partition)
	if !ok || p.Scope == events.ScopeAgent && p.Agent != agent {
		return none()
	}
	if head.Erased {
		return p, projections.Doc{}, memory.Errorf(memory.CodeGone, "record %s was erased", id)
	}
	doc, ok, err := a.view.Doc(head.Partition, head.Doc)
	if err == nil && !ok {
		return none()
	}
	return p, doc, err
}

// awaitVectors waits until no created record of the request waits for vectors.
// What is left at the deadline is pending, which is no error: it is stored.
func (w *Writer) awaitVectors(ctx context.Context, ns events.ID, told []answer, results []memory.CaptureResult) string {
	_, span := spans.Start(ctx, spans.Await)
	defer spans.End(span, nil)
	for {
		moved := w.opt.State.Moved()
		pending, err := w.markPending(ns, told, results)
		if err != nil || pending == 0 {
			return ""
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return "pending"
		}
	}
}

func (w *Writer) markPending(ns events.ID, told []answer, results []memory.CaptureResult) (int, error) {
	v := w.opt.State.View()
	defer v.Close()
	info, ok := v.NamespaceByID(ns)
	if !ok {
		return 0, nil
	}
	pending := 0
	for i := range told {
		results[i].Vectors = ""
		if results[i].Error != nil {
			continue
		}
		head, ok, err := v.Head(ns, told[i].result.Record)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		waits, err := v.IsPending(ns, info.Space, head.Partition, head.Doc)
		if err != nil {
			return 0, err
		}
		if waits {
			results[i].Vectors = "pending"
			pending++
		}
	}
	return pending, nil
}

// openContent opens the content of a record version.
func (a *admission) openContent(doc projections.Doc) (*events.Content, *keyring.DataKey, events.Envelope, error) {
	env, _, err := a.view.Envelope(doc.At)
	if err != nil {
		return nil, nil, env, err
	}
	key, err := a.writer.opt.Keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return nil, nil, env, memory.Errorf(memory.CodeGone, "record %s was erased", doc.Record)
	}
	if err != nil {
		return nil, nil, env, err
	}
	c, err := derive.OpenContent(key, &env)
	return c, key, env, err
}
