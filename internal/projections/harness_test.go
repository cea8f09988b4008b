package projections_test

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

var (
	rewrite = flag.Bool("rewrite", false, "write what the fold does into testdata")
	seeds   = flag.Int("seeds", 3, "how many random histories")
	oneSeed = flag.Uint64("seed", 0, "run only the history of this seed")
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testKeyring(t testing.TB, seed byte) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Open(keyring.Options{Dir: "data", AllowCreate: true, FS: vfs.NewMem(), Rand: rand.NewChaCha8([32]byte{seed})})
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

var (
	builtinSpace  = embed.Space{Provider: embed.ProviderBuiltin, Model: builtin.Name, Dimensions: builtin.Dimensions, Normalised: true, Version: builtin.Version}
	externalSpace = embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 4, Normalised: true, Version: 1}
	anotherSpace  = embed.Space{Provider: embed.ProviderOllama, Model: "n", Dimensions: 4, Normalised: true, Version: 1}
	spacesByName  = map[string]embed.Space{"builtin": builtinSpace, "ollama": externalSpace, "another": anotherSpace}
)

// world makes the sealed frames of one shard's log, as a leader would.
type world struct {
	t    testing.TB
	keys *keyring.Keyring
	ids  *events.IDSource
	now  int64

	log    [][]byte
	chain  events.Chain
	term   uint64
	epoch  uint32
	spaces map[events.ID]embed.Space // by namespace, at its beginning
	about  map[events.ID]embed.Space // by event, if it is about a space
	uris   map[events.ID]string      // paths, by event
}

func newWorld(t testing.TB, seed byte) *world {
	w := &world{t: t, keys: testKeyring(t, seed), now: 1_700_000_000_000_000_000, term: 1, spaces: map[events.ID]embed.Space{}, about: map[events.ID]embed.Space{}, uris: map[events.ID]string{}}
	w.ids = events.NewIDSource(func() time.Time { return time.Unix(0, w.now) }, rand.NewChaCha8([32]byte{seed, 1}))
	return w
}

func (w *world) seq() uint64 { return uint64(len(w.log)) }

// message puts any bytes at the end of the log.
func (w *world) message(b []byte) {
	w.log = append(w.log, b)
	w.chain = events.NextChain(w.chain, w.seq(), b)
}

func (w *world) header() events.Frame {
	return events.Frame{Feature: events.FeatureLevel, Epoch: w.epoch, Term: w.term, Seq: w.seq() + 1, Previous: w.chain}
}

// frame puts events at the end of the log.
func (w *world) frame(evs ...events.Envelope) {
	f := w.header()
	for i := range evs {
		f.Events = append(f.Events, evs[i].Encode())
	}
	w.message(f.Encode())
}

// seal stamps and seals one event.
func (w *world) seal(h events.Header, key *keyring.DataKey, plain []byte) events.Envelope {
	w.now += 1_000_000_000
	h.Schema, h.SealedAt = h.Type.Schema(), w.now
	if h.Event == (events.ID{}) {
		h.Event = w.ids.New()
	}
	if h.OccurredAt == 0 {
		h.OccurredAt = h.SealedAt
	}
	e := events.Envelope{Header: h}
	if key != nil {
		e.Key = key.ID()
		e.Payload = key.Seal(nil, settings.Identity(e.Event), e.AppendHeader(nil), plain)
	}
	return e
}

// created makes keys and the event of a namespace; a zero space is none.
func (w *world) created(name string, space embed.Space) events.Envelope {
	id := w.ids.New()
	must(w.t, w.keys.CreateNamespace(id))
	set := events.Settings{Set: map[string]string{}}
	if space.Provider != "" {
		set.Set[settings.EmbedderSpace] = settings.EncodeSpace(space)
	}
	w.spaces[id] = space
	return w.seal(events.Header{Type: events.TypeNamespaceCreated, Namespace: id, Name: name}, w.keys.Cluster(), set.Encode())
}

func (w *world) changed(ns events.ID, set map[string]string, reset ...string) events.Envelope {
	s := events.Settings{Set: set, Reset: reset}
	return w.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns}, w.keys.Cluster(), s.Encode())
}

func (w *world) deleted(ns events.ID) events.Envelope {
	return w.seal(events.Header{Type: events.TypeNamespaceDeleted, Namespace: ns}, nil, nil)
}

func (w *world) began() events.Envelope {
	return w.seal(events.Header{Type: events.TypeLeaderBegan}, nil, nil)
}

// dataKey is the key of a subject, made at its first use.
func (w *world) dataKey(ns events.ID, subject string) *keyring.DataKey {
	ids, _, err := w.keys.EnsureSubjects(ns, []string{subject})
	must(w.t, err)
	k, err := w.keys.KeyByID(ids[0])
	must(w.t, err)
	return k
}

// content seals a capture or revision. The header says who and what; MACs,
// ids and times are filled in.
func (w *world) content(h events.Header, c events.Content) events.Envelope {
	names, err := w.keys.Namespace(h.Namespace)
	must(w.t, err)
	if h.Event == (events.ID{}) {
		h.Event = w.ids.New()
	}
	if h.Type == 0 {
		h.Type = events.TypeCaptured
	}
	if h.Type == events.TypeCaptured && h.Record == (events.ID{}) {
		h.Record = events.RecordID(h.Event)
	}
	if h.Scope == 0 {
		h.Scope = events.ScopeTeam
	}
	if h.Kind == 0 {
		h.Kind = 9
	}
	key := w.dataKey(h.Namespace, c.Subject)
	h.Key = key.ID()
	w.uris[h.Event] = memory.URIPath(c.URI)
	if c.ClientID != "" {
		h.ClientID = events.TruncateMAC(names.MAC(events.LabelClient, []byte(c.ClientID)))
		h.Body = events.TruncateMAC(key.MAC(events.LabelBody, c.Body(&h)))
	}
	return w.seal(h, key, c.Encode())
}

// graphChanged seals a change of a namespace's graph under a subject's key.
func (w *world) graphChanged(h events.Header, subject string, steps []events.GraphStep, clientID string) events.Envelope {
	key := w.dataKey(h.Namespace, subject)
	return w.graphUnder(h, key, steps, clientID)
}

func (w *world) graphUnder(h events.Header, key *keyring.DataKey, steps []events.GraphStep, clientID string) events.Envelope {
	names, err := w.keys.Namespace(h.Namespace)
	must(w.t, err)
	h.Type, h.Scope, h.Event, h.Key = events.TypeGraphChanged, events.ScopeTeam, w.ids.New(), key.ID()
	plain := events.EncodeGraph(steps)
	if clientID != "" {
		h.ClientID = events.TruncateMAC(names.MAC(events.LabelClient, []byte(clientID)))
		h.Body = events.TruncateMAC(key.MAC(events.LabelBody, plain))
	}
	return w.seal(h, key, plain)
}

// reading seals an audited read under the namespace's own key.
func (w *world) reading(h events.Header, given ...events.Given) events.Envelope {
	r := events.Read{Purpose: events.ReadInject, Seq: w.seq(), Query: events.MAC{1}, Given: given}
	h.Type = events.TypeRead
	return w.seal(h, w.dataKey(h.Namespace, ""), r.Encode())
}

func (w *world) forgotten(h events.Header) events.Envelope {
	h.Type = events.TypeForgotten
	return w.seal(h, nil, nil)
}

// attached is what the embedder of a space says about a version.
func (w *world) attached(h events.Header, space embed.Space, key [16]byte, vectors [][]float32) events.Envelope {
	k, err := w.keys.KeyByID(key)
	must(w.t, err)
	h.Type, h.Key = events.TypeVectorsAttached, key
	v := events.Vectors{Space: space.ID(), Chunks: vectors}
	if space == builtinSpace {
		v.Chunks, v.Small = nil, [][]int8{make([]int8, space.Dimensions)}
	}
	e := w.seal(h, k, v.Encode())
	w.about[e.Event] = space
	return e
}

// spaceEvent says that a namespace's space is building, switched or dropped.
func (w *world) spaceEvent(typ events.Type, ns events.ID, space embed.Space) events.Envelope {
	s := settings.SpaceEvent(space, nil)
	e := w.seal(events.Header{Type: typ, Namespace: ns}, w.keys.Cluster(), s.Encode())
	w.about[e.Event] = space
	return e
}

// openState opens a small state without a check for free disk space.
func openState(t testing.TB, dir string) *projections.State {
	t.Helper()
	s, err := projections.Open(projections.Options{Dir: dir, CacheBytes: 64 << 20, ReserveBytes: -1})
	must(t, err)
	return s
}

// rangeOf derives the range that takes a cursor over messages, as a replay does,
// and where that leads.
func rangeOf(t testing.TB, d *derive.Deriver, c projections.Cursor, messages [][]byte) (*projections.Range, projections.Cursor) {
	t.Helper()
	r := projections.NewRange(&c)
	for _, m := range messages {
		rf := projections.RangeFrame{Bytes: m}
		f, valid, err := c.Follow(m)
		must(t, err)
		if valid {
			rf.Contributions, err = d.Frame(&f, nil)
			must(t, err)
		}
		r.Frames = append(r.Frames, rf)
	}
	return r, c
}

func deriver(t testing.TB, keys *keyring.Keyring, s *projections.State) *derive.Deriver {
	t.Helper()
	v := s.View()
	defer v.Close()
	d, err := derive.New(keys, v)
	must(t, err)
	return d
}

// fold replays messages behind the state's cursor, `batch` a range.
func fold(t testing.TB, keys *keyring.Keyring, s *projections.State, messages [][]byte, batch int) []projections.EventResult {
	t.Helper()
	d := deriver(t, keys, s)
	var out []projections.EventResult
	for part := range slices.Chunk(messages[s.Cursor().Seq:], batch) {
		r, _ := rangeOf(t, d, s.Cursor(), part)
		res, err := s.ApplyLocal(r)
		must(t, err)
		if res.Answer != projections.AnswerApplied {
			t.Fatalf("a range that continues is %s: %+v", res.Answer, res.Cursor)
		}
		out = append(out, res.Events...)
	}
	return out
}

// view calls f with a view.
func view(t testing.TB, s *projections.State, f func(v *projections.View)) {
	t.Helper()
	v := s.View()
	f(v)
	must(t, v.Close())
}

// bruteHashes recomputes the state hash of each namespace from all rows.
func bruteHashes(t testing.TB, v *projections.View) map[events.ID]projections.StateHash {
	t.Helper()
	out := map[events.ID]projections.StateHash{}
	must(t, projections.FactRows(v, func(ns events.ID, key, value []byte) {
		out[ns] = out[ns].Add(projections.FactHash(key, value))
	}))
	return out
}

// checkFacts compares running totals and views with what the rows say.
func checkFacts(t testing.TB, v *projections.View) {
	t.Helper()
	var sum projections.StateHash
	for ns, want := range bruteHashes(t, v) {
		sum = sum.Add(want)
		if got := v.NamespaceTotals(ns).Hash; got != want {
			t.Errorf("namespace %s has hash %s, its rows say %s", ns, got, want)
		}
	}
	if got := v.Hash(); got != sum {
		t.Errorf("state hash %s, the rows say %s", got, sum)
	}
}

// foreign is a valid frame's bytes with another previous hash.
func (w *world) foreign(evs ...events.Envelope) []byte {
	f := w.header()
	f.Previous[0] ^= 1
	for i := range evs {
		f.Events = append(f.Events, evs[i].Encode())
	}
	return f.Encode()
}

func u32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
