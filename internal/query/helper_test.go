package query

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a state with everything around it but a log: events are sealed and
// folded directly.
type world struct {
	t     testing.TB
	keys  *keyring.Keyring
	state *projections.State
	book  *settings.Book
	der   *derive.Deriver
	svc   *Service
	ids   *events.IDSource
	now   time.Time
	epoch uint32
	space map[string]events.ID

	applied []*projections.Applied
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

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC), space: map[string]events.ID{}}
	w.ids = events.NewIDSource(func() time.Time { return w.now }, &counter{n: 7})
	var err error
	w.keys, err = keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	w.ok(err)
	w.state, err = projections.Open(projections.Options{Dir: t.TempDir(), OnApply: w.onApply})
	w.ok(err)
	w.book = settings.NewBook(w.keys)
	w.restart(change...)
	v := w.state.View()
	w.der, err = derive.New(w.keys, v)
	w.ok(err)
	w.ok(v.Close())
	t.Cleanup(func() {
		w.ok(w.svc.Close())
		w.ok(w.state.Close())
		w.ok(w.keys.Close())
	})
	return w
}

func (w *world) onApply(a *projections.Applied) {
	w.applied = append(w.applied, a)
	w.svc.OnApply(a)
}

// restart replaces the service by a new one over the same state.
func (w *world) restart(change ...func(*Options)) {
	w.t.Helper()
	if w.svc != nil {
		w.ok(w.svc.Close())
	}
	at := w.now // searches run beside writes, which move w.now
	opt := Options{State: w.state, Keys: w.keys, Book: w.book, Now: func() time.Time { return at }}
	for _, c := range change {
		c(&opt)
	}
	var err error
	w.svc, err = New(opt)
	w.ok(err)
	w.ok(w.svc.Load(context.Background()))
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var builtinSpace = settings.EncodeSpace(embed.Space{Provider: embed.ProviderBuiltin, Model: builtin.Name, Dimensions: builtin.Dimensions, Normalised: true, Version: builtin.Version})

// item is an event to be sealed.
type item struct {
	h       events.Header
	content *events.Content
	payload []byte
	key     *keyring.DataKey
}

// seal makes the envelope's bytes.
func (w *world) seal(it *item) []byte {
	w.now = w.now.Add(time.Millisecond)
	h := &it.h
	if h.Event == (events.ID{}) {
		h.Event = w.ids.New()
	}
	h.Schema, h.SealedAt = h.Type.Schema(), w.now.UnixNano()
	if it.content != nil {
		it.payload = it.content.Encode()
		if !it.content.OccurredSet {
			h.OccurredAt = h.SealedAt
		}
	}
	env := events.Envelope{Header: *h}
	if it.key != nil {
		env.Key = it.key.ID()
		env.Payload = it.key.Seal(nil, settings.Identity(h.Event), env.AppendHeader(nil), it.payload)
	}
	return env.Encode()
}

// apply folds one frame and returns its results.
func (w *world) apply(items ...*item) []projections.EventResult {
	w.t.Helper()
	c := w.state.Cursor()
	f := events.Frame{Feature: events.FeatureLevel, Epoch: w.epoch, Term: 1, Seq: c.Seq + 1, Previous: c.Chain}
	for _, it := range items {
		f.Events = append(f.Events, w.seal(it))
	}
	raw := f.Encode()
	decoded, err := events.DecodeFrame(raw)
	w.ok(err)
	contributions, err := w.der.Frame(&decoded, nil)
	w.ok(err)
	return w.fold(projections.RangeFrame{Bytes: raw, Contributions: contributions})
}

func (w *world) fold(f projections.RangeFrame) []projections.EventResult {
	w.t.Helper()
	c := w.state.Cursor()
	res, err := w.state.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: c.Seq, Chain: c.Chain, Frames: []projections.RangeFrame{f}})
	w.ok(err)
	if res.Answer != projections.AnswerApplied {
		w.t.Fatal("the range was stale")
	}
	return res.Events
}

// namespace creates a namespace; without a space setting it has no embedder.
func (w *world) namespace(name string, set map[string]string) events.ID {
	w.t.Helper()
	id := w.ids.New()
	w.ok(w.keys.CreateNamespace(id))
	s := events.Settings{Set: set}
	w.apply(&item{h: events.Header{Type: events.TypeNamespaceCreated, Namespace: id, Name: name}, payload: s.Encode(), key: w.keys.Cluster()})
	w.space[name] = id
	return id
}

func (w *world) change(name string, set map[string]string) {
	w.t.Helper()
	s := events.Settings{Set: set}
	w.apply(&item{h: events.Header{Type: events.TypeNamespaceChanged, Namespace: w.space[name], Name: name}, payload: s.Encode(), key: w.keys.Cluster()})
}

func (w *world) drop(name string) {
	w.t.Helper()
	w.apply(&item{h: events.Header{Type: events.TypeNamespaceDeleted, Namespace: w.space[name]}})
	w.ok(w.keys.DestroyNamespace(w.space[name]))
}

// draft makes the event of a capture.
func (w *world) draft(ns string, c memory.Capture) *item {
	w.t.Helper()
	c.Normalise()
	if err := c.Validate(); err != nil {
		w.t.Fatal(err)
	}
	id := w.space[ns]
	names, err := w.keys.Namespace(id)
	w.ok(err)
	uri, e := memory.FullURI(ns, c.URI)
	if e != nil {
		w.t.Fatal(e)
	}
	if c.Subject != "" {
		_, _, err = w.keys.EnsureSubjects(id, []string{c.Subject})
		w.ok(err)
	}
	key, err := w.keys.DataKey(id, c.Subject)
	w.ok(err)
	event := w.ids.New()
	it := &item{key: key, h: events.Header{Type: events.TypeCaptured, Scope: events.ScopeOf(c.Scope), Kind: events.KindOf(c.Kind), Event: event,
		Namespace: id, Agent: c.Agent, Record: events.RecordID(event)}}
	it.content = &events.Content{Text: c.Text, Role: c.Role, Tags: c.Tags, URI: uri, Conversation: c.Conversation, Subject: c.Subject,
		ClientID: c.ID, Origin: memory.OriginCapture, Importance: c.Importance, Metadata: c.Metadata}
	for _, d := range c.DerivedFrom {
		from, err := events.ParseID(d)
		w.ok(err)
		it.content.DerivedFrom = append(it.content.DerivedFrom, from)
	}
	if c.OccurredAt != nil {
		it.content.OccurredSet = true
		it.h.OccurredAt = c.OccurredAt.UnixNano()
	}
	if c.ID != "" {
		it.h.ClientID = events.TruncateMAC(names.MAC(events.LabelClient, []byte(c.ID)))
		it.h.Body = events.TruncateMAC(key.MAC(events.LabelBody, it.content.Body(&it.h)))
	}
	return it
}

// capture folds captures in one frame and returns the records' ids.
func (w *world) capture(ns string, captures ...memory.Capture) []string {
	w.t.Helper()
	items := make([]*item, len(captures))
	for i, c := range captures {
		items[i] = w.draft(ns, c)
	}
	var ids []string
	for i, res := range w.apply(items...) {
		if res.Outcome != projections.OutcomeCreated {
			w.t.Fatalf("capture %d: %s", i, res.Outcome)
		}
		ids = append(ids, res.Record.String())
	}
	return ids
}

func (w *world) one(ns, agent, text string) string {
	w.t.Helper()
	return w.capture(ns, memory.Capture{Agent: agent, Text: text})[0]
}

func (w *world) revise(ns, id string, base uint32, c memory.Capture) projections.EventResult {
	w.t.Helper()
	it := w.draft(ns, c)
	it.h.Type, it.h.Record, it.h.BaseVersion = events.TypeRevised, events.ID{}, base
	it.h.Target = w.id(id)
	return w.apply(it)[0]
}

func (w *world) forget(ns, id, agent string, scope events.Scope) projections.EventResult {
	w.t.Helper()
	return w.apply(&item{h: events.Header{Type: events.TypeForgotten, Namespace: w.space[ns], Agent: agent, Scope: scope, Target: w.id(id)}})[0]
}

func (w *world) id(s string) events.ID {
	w.t.Helper()
	id, err := events.ParseID(s)
	w.ok(err)
	return id
}

// began folds a control event.
func (w *world) began(typ events.Type) {
	w.t.Helper()
	if typ == events.TypeEpochBegan {
		w.epoch++
	}
	w.apply(&item{h: events.Header{Type: typ}})
}

func (w *world) reader(ns, as string) *Reader {
	w.t.Helper()
	r, err := w.svc.Authorize(context.Background(), ns, as, Freshness{AtLeast: w.position()})
	w.ok(err)
	w.t.Cleanup(func() { _ = r.Close() })
	return r
}

func (w *world) position() string {
	c := w.state.Cursor()
	if c.Seq == 0 {
		return ""
	}
	return c.Position().String()
}

// search runs one search with a reader of its own.
func (w *world) search(ns, as string, req memory.SearchRequest) memory.SearchResponse {
	w.t.Helper()
	r, err := w.svc.Authorize(context.Background(), ns, as, Freshness{})
	w.ok(err)
	res, err := r.Search(context.Background(), req)
	w.ok(err)
	w.ok(r.Close())
	return res
}

func texts(hits []memory.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.Text
	}
	return out
}

func wantCode(t testing.TB, err error, code memory.Code) {
	t.Helper()
	if memory.CodeOf(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, memory.CodeOf(err), code)
	}
}

func ptr[T any](v T) *T { return &v }

func agentName(i int) string { return fmt.Sprintf("agent-%d", i) }
