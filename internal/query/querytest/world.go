// Package querytest gives the tests of the reading side a state with everything
// around it but a log: events are sealed and folded directly.
package querytest

import (
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// World is such a state. OnApply is told of what is applied, after Applied.
type World struct {
	T        testing.TB
	Keys     *keyring.Keyring
	State    *projections.State
	Settings *settings.Cache
	Space    map[string]events.ID // the ids of namespaces by name
	Applied  []*projections.Applied
	OnApply  func(a *projections.Applied)
	Now      time.Time
	Reads    atomic.Int64 // keys that views have read, and iterators that they have opened
	Rows     atomic.Int64 // that these iterators came to

	deriver *derive.Deriver
	ids     *events.IDSource
	epoch   uint32
}

// counter is randomness that is none, so that runs are alike.
type counter struct{ n uint64 }

func (c *counter) Read(b []byte) (int, error) {
	for i := range b {
		c.n = c.n*6364136223846793005 + 1442695040888963407
		b[i] = byte(c.n >> 56)
	}
	return len(b), nil
}

// New opens a world that ends with the test.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{T: t, Now: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC), Space: map[string]events.ID{}}
	w.ids = events.NewIDSource(func() time.Time { return w.Now }, &counter{n: 7})
	var err error
	w.Keys, err = keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	w.OK(err)
	w.State, err = projections.Open(projections.Options{Dir: t.TempDir(), OnApply: w.applied, OnRead: func() { w.Reads.Add(1) }, OnRow: func() { w.Rows.Add(1) }})
	w.OK(err)
	w.Settings = settings.NewCache(w.Keys)
	v := w.State.View()
	w.deriver, err = derive.New(w.Keys, v)
	w.OK(err)
	w.OK(v.Close())
	t.Cleanup(func() {
		w.OK(w.State.Close())
		w.OK(w.Keys.Close())
	})
	return w
}

func (w *World) applied(a *projections.Applied) {
	w.Applied = append(w.Applied, a)
	if w.OnApply != nil {
		w.OnApply(a)
	}
}

// OK ends the test on an error.
func (w *World) OK(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// BuiltinSpace is the value of the setting that names the built-in embedder's space.
var BuiltinSpace = settings.EncodeSpace(embed.Space{Provider: embed.ProviderBuiltin, Model: builtin.Name, Dimensions: builtin.Dimensions, Normalised: true, Version: builtin.Version})

// Item is an event to be sealed.
type Item struct {
	Header  events.Header
	Content *events.Content
	Payload []byte
	Key     *keyring.DataKey
}

// Seal makes the envelope's bytes.
func (w *World) Seal(it *Item) []byte {
	w.Now = w.Now.Add(time.Millisecond)
	h := &it.Header
	if h.Event == (events.ID{}) {
		h.Event = w.ids.New()
	}
	h.Schema, h.SealedAt = h.Type.Schema(), w.Now.UnixNano()
	if it.Content != nil {
		it.Payload = it.Content.Encode()
		if !it.Content.OccurredSet {
			h.OccurredAt = h.SealedAt
		}
	}
	env := events.Envelope{Header: *h, Payload: it.Payload}
	if it.Key != nil {
		env.Key = it.Key.ID()
		env.Payload = it.Key.Seal(nil, settings.Identity(h.Event), env.AppendHeader(nil), it.Payload)
	}
	return env.Encode()
}

// Apply folds one frame and returns its results.
func (w *World) Apply(items ...*Item) []projections.EventResult {
	w.T.Helper()
	c := w.State.Cursor()
	f := events.Frame{Feature: events.FeatureLevel, Epoch: w.epoch, Term: 1, Seq: c.Seq + 1, Previous: c.Chain}
	for _, it := range items {
		f.Events = append(f.Events, w.Seal(it))
	}
	raw := f.Encode()
	decoded, err := events.DecodeFrame(raw)
	w.OK(err)
	contributions, err := w.deriver.Frame(&decoded, nil)
	w.OK(err)
	return w.Fold(projections.RangeFrame{Bytes: raw, Contributions: contributions})
}

// Fold applies one frame with its contributions and returns its results.
func (w *World) Fold(f projections.RangeFrame) []projections.EventResult {
	w.T.Helper()
	c := w.State.Cursor()
	res, err := w.State.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: c.Seq, Chain: c.Chain, Frames: []projections.RangeFrame{f}})
	w.OK(err)
	if res.Answer != projections.AnswerApplied {
		w.T.Fatal("the range was stale")
	}
	return res.Events
}

// Namespace creates a namespace; without a space setting it has no embedder.
func (w *World) Namespace(name string, set map[string]string) events.ID {
	w.T.Helper()
	id := w.ids.New()
	w.OK(w.Keys.CreateNamespace(id))
	s := events.Settings{Set: set}
	w.Apply(&Item{Header: events.Header{Type: events.TypeNamespaceCreated, Namespace: id, Name: name}, Payload: s.Encode(), Key: w.Keys.Cluster()})
	w.Space[name] = id
	return id
}

// Change sets settings of a namespace.
func (w *World) Change(name string, set map[string]string) {
	w.T.Helper()
	s := events.Settings{Set: set}
	w.Apply(&Item{Header: events.Header{Type: events.TypeNamespaceChanged, Namespace: w.Space[name], Name: name}, Payload: s.Encode(), Key: w.Keys.Cluster()})
}

// Drop deletes a namespace and its keys.
func (w *World) Drop(name string) {
	w.T.Helper()
	w.Apply(&Item{Header: events.Header{Type: events.TypeNamespaceDeleted, Namespace: w.Space[name]}})
	w.OK(w.Keys.DestroyNamespace(w.Space[name]))
}

// Draft makes the event of a capture.
func (w *World) Draft(ns string, c memory.Capture) *Item {
	w.T.Helper()
	c.Normalise()
	if err := c.Validate(); err != nil {
		w.T.Fatal(err)
	}
	id := w.Space[ns]
	names, err := w.Keys.Namespace(id)
	w.OK(err)
	uri, e := memory.FullURI(ns, c.URI)
	if e != nil {
		w.T.Fatal(e)
	}
	if c.Subject != "" {
		_, _, err = w.Keys.EnsureSubjects(id, []string{c.Subject})
		w.OK(err)
	}
	key, err := w.Keys.DataKey(id, c.Subject)
	w.OK(err)
	event := w.ids.New()
	it := &Item{Key: key, Header: events.Header{Type: events.TypeCaptured, Scope: events.ScopeOf(c.Scope), Kind: events.KindOf(c.Kind), Event: event,
		Namespace: id, Agent: c.Agent, Record: events.RecordID(event)}}
	it.Content = &events.Content{Text: c.Text, Role: c.Role, Tags: c.Tags, URI: uri, Conversation: c.Conversation, Subject: c.Subject,
		ClientID: c.ID, Origin: memory.OriginCapture, Importance: c.Importance, Metadata: c.Metadata}
	for _, d := range c.DerivedFrom {
		from, err := events.ParseID(d)
		w.OK(err)
		it.Content.DerivedFrom = append(it.Content.DerivedFrom, from)
	}
	if c.OccurredAt != nil {
		it.Content.OccurredSet = true
		it.Header.OccurredAt = c.OccurredAt.UnixNano()
	}
	if c.ID != "" {
		it.Header.ClientID = events.TruncateMAC(names.MAC(events.LabelClient, []byte(c.ID)))
		it.Header.Body = events.TruncateMAC(key.MAC(events.LabelBody, it.Content.Body(&it.Header)))
	}
	return it
}

// Capture folds captures in one frame and returns the records' ids.
func (w *World) Capture(ns string, captures ...memory.Capture) []string {
	w.T.Helper()
	items := make([]*Item, len(captures))
	for i, c := range captures {
		items[i] = w.Draft(ns, c)
	}
	var ids []string
	for i, res := range w.Apply(items...) {
		if res.Outcome != projections.OutcomeCreated {
			w.T.Fatalf("capture %d: %s", i, res.Outcome)
		}
		ids = append(ids, res.Record.String())
	}
	return ids
}

// One captures a text of the team and returns the record's id.
func (w *World) One(ns, agent, text string) string {
	w.T.Helper()
	return w.Capture(ns, memory.Capture{Agent: agent, Text: text})[0]
}

// Revise folds a new version of a record.
func (w *World) Revise(ns, id string, base uint32, c memory.Capture) projections.EventResult {
	w.T.Helper()
	it := w.Draft(ns, c)
	it.Header.Type, it.Header.Record, it.Header.BaseVersion = events.TypeRevised, events.ID{}, base
	it.Header.Target = w.ID(id)
	return w.Apply(it)[0]
}

// Forget folds the removal of a record.
func (w *World) Forget(ns, id, agent string, scope events.Scope) projections.EventResult {
	w.T.Helper()
	return w.Apply(&Item{Header: events.Header{Type: events.TypeForgotten, Namespace: w.Space[ns], Agent: agent, Scope: scope, Target: w.ID(id)}})[0]
}

// Read folds an audited read that gave some records, each in its first version.
func (w *World) Read(ns, agent string, scope events.Scope, records ...string) projections.EventResult {
	w.T.Helper()
	key, err := w.Keys.DataKey(w.Space[ns], "")
	w.OK(err)
	at := w.State.Cursor()
	r := events.Read{Purpose: events.ReadInject, Seq: at.Seq, Index: at.Index}
	for _, id := range records {
		r.Given = append(r.Given, events.Given{Record: w.ID(id), Version: 1})
	}
	return w.Apply(&Item{Key: key, Payload: r.Encode(),
		Header: events.Header{Type: events.TypeRead, Scope: scope, Namespace: w.Space[ns], Agent: agent}})[0]
}

// Graph folds a change of the team's graph, sealed under a subject's key; "" = nobody's.
func (w *World) Graph(ns, subject string, steps ...events.GraphStep) projections.EventResult {
	w.T.Helper()
	if subject != "" {
		_, _, err := w.Keys.EnsureSubjects(w.Space[ns], []string{subject})
		w.OK(err)
	}
	key, err := w.Keys.DataKey(w.Space[ns], subject)
	w.OK(err)
	return w.Apply(&Item{Key: key, Payload: events.EncodeGraph(steps),
		Header: events.Header{Type: events.TypeGraphChanged, Scope: events.ScopeTeam, Namespace: w.Space[ns], Agent: "ann"}})[0]
}

// End folds the end of a subject's key, and destroys it.
func (w *World) End(ns, subject string) {
	w.T.Helper()
	key, err := w.Keys.DataKey(w.Space[ns], subject)
	w.OK(err)
	w.Apply(&Item{Header: events.Header{Type: events.TypeKeyDestroyed, Namespace: w.Space[ns]}, Payload: events.EncodeKeys([][16]byte{key.ID()})})
	w.OK(w.Keys.Destroy(key.ID()))
}

// ID reads an id.
func (w *World) ID(s string) events.ID {
	w.T.Helper()
	id, err := events.ParseID(s)
	w.OK(err)
	return id
}

// Began folds a control event.
func (w *World) Began(typ events.Type) {
	w.T.Helper()
	if typ == events.TypeEpochBegan {
		w.epoch++
	}
	w.Apply(&Item{Header: events.Header{Type: typ}})
}

// Position is where the state stands; "" before the first frame.
func (w *World) Position() string {
	c := w.State.Cursor()
	if c.Seq == 0 {
		return ""
	}
	return c.Position().String()
}

// NewID makes an id that nothing has.
func (w *World) NewID() events.ID { return w.ids.New() }

// Deriver derives contributions as the world does.
func (w *World) Deriver() *derive.Deriver { return w.deriver }
