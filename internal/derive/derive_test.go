package derive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write the present contributions into testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	builtinSpace  = embed.Space{Provider: embed.ProviderBuiltin, Model: builtin.Name, Dimensions: builtin.Dimensions, Normalised: true, Version: builtin.Version}
	externalSpace = embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 3, Normalised: true, Version: 1}
)

// bench is a fixed keyring, an empty state and a deriver for it.
type bench struct {
	t     testing.TB
	keys  *keyring.Keyring
	state *projections.State
	d     *derive.Deriver
	n     byte
}

func newBench(t testing.TB) *bench {
	t.Helper()
	keys, err := keyring.Open(keyring.Options{Dir: "data", AllowCreate: true, FS: vfs.NewMem(), Rand: rand.NewChaCha8([32]byte{42})})
	must(t, err)
	t.Cleanup(func() { _ = keys.Close() })
	state, err := projections.Open(projections.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, ReserveBytes: -1})
	must(t, err)
	t.Cleanup(func() { _ = state.Close() })
	b := &bench{t: t, keys: keys, state: state}
	b.d = b.deriver()
	return b
}

func (b *bench) deriver() *derive.Deriver {
	v := b.state.View()
	defer v.Close()
	d, err := derive.New(b.keys, v)
	must(b.t, err)
	return d
}

func (b *bench) seal(h events.Header, key *keyring.DataKey, plain []byte) events.Envelope {
	b.n++
	h.Schema, h.SealedAt = h.Type.Schema(), 1_700_000_000_000_000_000+int64(b.n)
	h.Event = events.ID{1, 2, 3, 4, 5, 6, b.n}
	if h.OccurredAt == 0 {
		h.OccurredAt = h.SealedAt
	}
	h.Key = key.ID()
	e := events.Envelope{Header: h}
	e.Payload = key.Seal(nil, settings.Identity(e.Event), e.AppendHeader(nil), plain)
	return e
}

func (b *bench) namespace(first byte, space embed.Space) events.Envelope {
	id := events.ID{first}
	must(b.t, b.keys.CreateNamespace(id))
	set := events.Settings{Set: map[string]string{}}
	if space.Provider != "" {
		set.Set[settings.EmbedderSpace] = settings.EncodeSpace(space)
	}
	return b.seal(events.Header{Type: events.TypeNamespaceCreated, Namespace: id, Name: fmt.Sprint("n", first)}, b.keys.Cluster(), set.Encode())
}

func (b *bench) capture(ns events.ID, h events.Header, c events.Content) events.Envelope {
	key, err := b.keys.DataKey(ns, "")
	must(b.t, err)
	h.Type, h.Namespace, h.Scope = events.TypeCaptured, ns, events.ScopeTeam
	if h.Agent == "" {
		h.Agent = "agent-7"
	}
	return b.seal(h, key, c.Encode())
}

// frame derives the events of one frame.
func (b *bench) frame(d *derive.Deriver, known []*events.Content, evs ...events.Envelope) ([]*projections.Contribution, error) {
	f := events.Frame{Seq: 1}
	for i := range evs {
		f.Events = append(f.Events, evs[i].Encode())
	}
	return d.Frame(&f, known)
}

func (b *bench) mustFrame(known []*events.Content, evs ...events.Envelope) []*projections.Contribution {
	b.t.Helper()
	out, err := b.frame(b.d, known, evs...)
	must(b.t, err)
	return out
}

// samples are memories of every kind of text.
func samples() map[string]events.Content {
	long := strings.Repeat("The leader writes a frame, and the replicas apply it in order. ", 90)
	return map[string]events.Content{
		"english": {Text: "We decided to deploy on Tuesdays, because Monday's incident taught us a lesson.", Tags: []string{"Ops", "deploy days"}},
		"chinese": {Text: "我们决定星期二部署。数据库在星期一出了故障。", Tags: []string{"部署"}, Conversation: "c-1"},
		"code":    {Text: "```go\nfunc (s *Store) cacheTTL() time.Duration { return s.opt.cache_ttl }\n```\nsee https://example.org/a/b?c=d"},
		"uri":     {Text: "short", URI: "mem://team/ops/Deploy%20days/2026-11-21", DerivedFrom: []events.ID{{9}, {8}, {9}}},
		"dated":   {Text: "the day it happened", OccurredSet: true, Conversation: "c-1", Tags: []string{"a", "A", "a"}},
		"long":    {Text: long, Role: "user"},
		"nothing": {Text: "the of and"},
		"german":  {Text: "Die Verbindungen zum Archiv brachen ab, weil die Überprüfung noch läuft."},
	}
}

// print shows a contribution so that a difference can be read.
func printContribution(c *projections.Contribution) string {
	if c == nil {
		return "nothing\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "code %q, lengths %v, chunks %d in space %x\n", c.Code, c.Lengths, c.Chunks, c.Space)
	for _, t := range c.Terms {
		fmt.Fprintf(&b, "term %s %q %d\n", t.Field, t.Text, t.TF)
	}
	for _, a := range c.Attrs {
		fmt.Fprintf(&b, "attr %s\n", a)
	}
	if c.URI != "" {
		fmt.Fprintf(&b, "uri %s\n", c.URI)
	}
	for _, v := range c.Vectors {
		fmt.Fprintf(&b, "vector %d bytes, %s\n", len(v), events.HashEnvelope(v))
	}
	return b.String()
}

// TestGoldenContributions: a rebuild on another processor, in another year,
// must come to these bytes.
func TestGoldenContributions(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, builtinSpace)
	b.mustFrame(nil, ns)
	var out strings.Builder
	all := samples()
	for _, name := range []string{"english", "chinese", "code", "uri", "dated", "long", "nothing", "german"} {
		h := events.Header{Kind: 3}
		if all[name].OccurredSet {
			h.OccurredAt = -86_400_000_000_000 * 1000
		}
		e := b.capture(ns.Namespace, h, all[name])
		fmt.Fprintf(&out, "# %s\n%s\n", name, printContribution(b.mustFrame(nil, e)[0]))
	}
	// One digest for each pipeline version, which -rewrite leaves alone.
	const accepted, version = "b433c749fca33a0f", 8
	sum := sha256.Sum256([]byte(out.String()))
	if got := hex.EncodeToString(sum[:8]); got != accepted || version != projections.PipelineVersion {
		t.Errorf("digest %s of pipeline version %d, accepted is %s of %d: states that exist were built from the accepted ones, so raise projections.PipelineVersion",
			got, projections.PipelineVersion, accepted, version)
	}
	const file = "testdata/contributions.golden"
	if *rewrite {
		must(t, os.WriteFile(file, []byte(out.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if out.String() != string(want) {
		t.Errorf("contributions changed: raise projections.PipelineVersion. Got:\n%s", out.String())
	}
}

// TestLeaderAndReplayAgree: the leader derives from what it has in hand, a
// replay from what it opens.
func TestLeaderAndReplayAgree(t *testing.T) {
	b := newBench(t)
	for i, space := range []embed.Space{builtinSpace, externalSpace, {}} {
		ns := b.namespace(byte(i+1), space)
		b.mustFrame(nil, ns)
		var evs []events.Envelope
		var known []*events.Content
		for _, c := range samples() {
			evs, known = append(evs, b.capture(ns.Namespace, events.Header{Kind: 1}, c)), append(known, &c)
		}
		leader, replay := b.mustFrame(known, evs...), b.mustFrame(nil, evs...)
		if !reflect.DeepEqual(leader, replay) {
			t.Errorf("space %s: the leader derives something else than a replay", space)
		}
		for i, c := range leader {
			if (space.Provider == "") != (c.Chunks == 0) || (space.Provider == embed.ProviderBuiltin) != (len(c.Vectors) > 0) {
				t.Errorf("space %s, event %d: %d chunks, %d vectors", space, i, c.Chunks, len(c.Vectors))
			}
		}
	}
}

// TestProcessors: the number of processors does not matter, nor who runs first.
func TestProcessors(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, builtinSpace)
	b.mustFrame(nil, ns)
	var evs []events.Envelope
	for i := range 60 {
		evs = append(evs, b.capture(ns.Namespace, events.Header{}, events.Content{Text: fmt.Sprintf("memory %d about deploys and snapshots", i), Tags: []string{fmt.Sprint(i % 7)}}))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := b.mustFrame(nil, evs...)
	for _, n := range []int{2, 3, 8} {
		runtime.GOMAXPROCS(n)
		if !reflect.DeepEqual(b.mustFrame(nil, evs...), want) {
			t.Errorf("%d processors derive something else than one", n)
		}
	}
}

func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 1000} {
		var sum atomic.Int64
		must(t, derive.Parallel(n, func(i int) error { sum.Add(int64(i) + 1); return nil }))
		if want := int64(n) * int64(n+1) / 2; sum.Load() != want {
			t.Errorf("%d: %d, want %d", n, sum.Load(), want)
		}
		broken := errors.New("broken")
		err := derive.Parallel(n, func(i int) error {
			if i == n-1 {
				return broken
			}
			return nil
		})
		if n > 0 && !errors.Is(err, broken) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestWhatIsFound: terms and attributes are those that readers ask for.
func TestWhatIsFound(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, embed.Space{})
	b.mustFrame(nil, ns)
	at := time.Date(2023, 5, 8, 12, 0, 0, 0, time.UTC)
	c := b.mustFrame(nil, b.capture(ns.Namespace, events.Header{Agent: "agent-7", Kind: 3, OccurredAt: at.UnixNano()}, events.Content{Text: "deploys on tuesday, deploys!", Role: "user",
		Tags: []string{"Ops"}, URI: "mem://team/ops/days", Conversation: "talk", DerivedFrom: []events.ID{{7}}, OccurredSet: true}))[0]
	type inField struct {
		field index.Field
		term  string
	}
	tf := map[inField]uint32{}
	for _, term := range c.Terms {
		tf[inField{term.Field, term.Text}] = term.TF
	}
	find := func(f index.Field, words ...string) {
		for _, w := range words {
			for _, term := range text.Terms(w) {
				if tf[inField{f, term}] == 0 {
					t.Errorf("%s is not found in %s", w, f)
				}
			}
		}
	}
	find(index.FieldText, "deploy", "tuesday")
	find(index.FieldWho, "agent", "agent-7", "user", "2023", "may", "monday", "2023-05-08")
	find(index.FieldTags, "ops")
	for _, word := range []string{"agent-7", "agent", "user", "2023", "monday"} {
		if tf[inField{index.FieldText, word}] != 0 {
			t.Errorf("%s is found in the text, which does not hold it", word)
		}
	}
	if want := [index.NumFields]uint32{3, 2, 5, 10}; c.Lengths != want {
		t.Errorf("lengths %v, want %v", c.Lengths, want)
	}
	find(index.FieldURI, "ops", "days")
	if got := tf[inField{index.FieldText, text.Terms("deploys")[0]}]; got != 2 {
		t.Errorf("deploys twice counts %d", got)
	}
	want := []projections.AttrKey{projections.Attr(projections.AttrTag, "ops"), projections.Attr(projections.AttrConversation, "talk"),
		projections.Attr(projections.AttrDerivedFrom, string(append([]byte{7}, make([]byte, 15)...)))}
	if !slices.Equal(c.Attrs, want) || c.Conversation() != want[1] || c.URI != "ops/days" {
		t.Errorf("attributes %v, conversation %s, uri %q", c.Attrs, c.Conversation(), c.URI)
	}
	for name, uri := range map[string]string{"no scheme": "ops/days", "no path": "mem://team", "too long": "mem://team/" + strings.Repeat("u", memory.MaxURIBytes+1)} {
		if c := b.mustFrame(nil, b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x", URI: uri}))[0]; c.URI != "" {
			t.Errorf("%s: the memory is found by %q", name, c.URI)
		}
	}
}

func TestKeys(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, builtinSpace)
	b.mustFrame(nil, ns)
	good := b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x"})

	unknown := good
	unknown.Key = [16]byte{99}
	if _, err := b.frame(b.d, nil, unknown); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("a key that nobody destroyed is missing: %v", err)
	}
	attach := b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: ns.Namespace}, b.keys.Cluster(), nil)
	attach.Key = [16]byte{99}
	if _, err := b.frame(b.d, nil, attach); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("a key that nobody destroyed is missing: %v", err)
	}
	elsewhere := b.seal(events.Header{Type: events.TypeCaptured, Namespace: events.ID{77}}, b.keys.Cluster(), (&events.Content{Text: "x"}).Encode())
	if _, err := b.frame(b.d, nil, elsewhere); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("a namespace without keys: %v", err)
	}
	must(t, b.keys.DestroyNamespace(ns.Namespace))
	attach.Key = good.Key
	for name, e := range map[string]events.Envelope{"capture": good, "vectors": attach,
		"capture under another key": b.seal(events.Header{Type: events.TypeCaptured, Namespace: ns.Namespace}, b.keys.Cluster(), (&events.Content{Text: "x"}).Encode())} {
		if out, err := b.frame(b.d, nil, e); err != nil || out[0] != nil {
			t.Errorf("%s, destroyed: %s, %v", name, printContribution(out[0]), err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, externalSpace)
	b.mustFrame(nil, ns)
	key, err := b.keys.DataKey(ns.Namespace, "")
	must(t, err)
	broken := b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x"})
	broken.Payload[3] ^= 1
	moved := b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x"})
	moved.Agent = "mallory" // the header is sealed along
	vectors := func(payload []byte) events.Envelope {
		return b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: ns.Namespace}, key, payload)
	}
	other := events.Vectors{Space: builtinSpace.ID(), Chunks: [][]float32{{1}}}
	wrong := events.Vectors{Space: externalSpace.ID(), Chunks: [][]float32{{1}}}
	right := events.Vectors{Space: externalSpace.ID(), Chunks: [][]float32{{1, 0, 0}}}
	cut := vectors(right.Encode())
	cut.Payload = cut.Payload[:20]
	change := b.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns.Namespace}, b.keys.Cluster(), (&events.Settings{}).Encode())
	change.Payload[2] ^= 1
	for name, e := range map[string]events.Envelope{
		"payload": broken, "header": moved, "no content": b.seal(events.Header{Type: events.TypeRevised, Namespace: ns.Namespace}, key, []byte{1, 0}),
		"wrong length": vectors(wrong.Encode()), "no vectors": vectors(nil), "cut vectors": cut,
		"settings": change, "settings payload": b.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns.Namespace}, b.keys.Cluster(), []byte{9}),
	} {
		if out, err := b.frame(b.d, nil, e); err != nil || out[0] == nil || out[0].Code != "unreadable" {
			t.Errorf("%s: %s, %v", name, printContribution(out[0]), err)
		}
	}
	// A space that the namespace does not have (any more) is no damage.
	if out := b.mustFrame(nil, vectors(other.Encode())); out[0].Code != "" || !out[0].Space.IsZero() || len(out[0].Vectors) != 0 {
		t.Error(printContribution(out[0]))
	}
	if out := b.mustFrame(nil, vectors(right.Encode())); out[0].Code != "" || len(out[0].Vectors) != 1 {
		t.Error(printContribution(out[0]))
	}

	newer := b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x"})
	newer.Schema++
	newer.Payload = key.Seal(nil, settings.Identity(newer.Event), newer.AppendHeader(nil), []byte("?"))
	if _, err := b.frame(b.d, nil, newer); !errors.Is(err, events.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	f := events.Frame{Seq: 1, Events: [][]byte{{3}}}
	if _, err := b.d.Frame(&f, nil); !errors.Is(err, events.ErrNewer) {
		t.Errorf("a newer envelope: %v", err)
	}
	f.Events = [][]byte{{1}}
	if _, err := b.d.Frame(&f, nil); !errors.Is(err, events.ErrOlder) {
		t.Errorf("an early envelope: %v", err)
	}
	f.Events = [][]byte{[]byte("\x00")}
	if out, err := b.d.Frame(&f, nil); err != nil || out[0] != nil {
		t.Errorf("no envelope: %v, %v", out, err)
	}
}

// TestPanicInDerivationIsQuarantined: an event that made derivation panic ended
// the process when it was written and again at every start.
func TestPanicInDerivationIsQuarantined(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, embed.Space{})
	b.mustFrame(nil, ns)
	var evs []events.Envelope
	for i := range 40 { // enough for several goroutines
		evs = append(evs, b.capture(ns.Namespace, events.Header{}, events.Content{Text: fmt.Sprint("note ", i)}))
	}
	changed := b.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns.Namespace}, b.keys.Cluster(), (&events.Settings{}).Encode())
	evs = append(evs, changed)
	bad := map[events.ID]bool{evs[3].Event: true, evs[38].Event: true, changed.Event: true}
	b.d.SetProbe(func(e *events.Envelope) {
		if bad[e.Event] {
			panic("an input nobody thought of")
		}
	})
	for i, c := range b.mustFrame(nil, evs...) {
		switch {
		case bad[evs[i].Event] && (c == nil || c.Code != "panicked" || len(c.Terms) != 0):
			t.Errorf("event %d panics and gives %+v", i, c)
		case !bad[evs[i].Event] && (c == nil || c.Code != "" || len(c.Terms) == 0):
			t.Errorf("event %d is sound and gives %+v", i, c)
		}
	}
}

// TestFollowsSettings: the space is the one of the log at that point, also for
// a deriver that starts from a state.
func TestFollowsSettings(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, embed.Space{})
	change := b.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns.Namespace}, b.keys.Cluster(),
		(&events.Settings{Set: map[string]string{settings.EmbedderSpace: settings.EncodeSpace(builtinSpace)}}).Encode())
	reset := b.seal(events.Header{Type: events.TypeNamespaceChanged, Namespace: ns.Namespace}, b.keys.Cluster(),
		(&events.Settings{Reset: []string{settings.EmbedderSpace}}).Encode())
	capture := b.capture(ns.Namespace, events.Header{}, events.Content{Text: "x"})
	for i, want := range []uint32{0, 1, 0} {
		f := events.Frame{Feature: 1, Seq: uint64(i + 1), Previous: b.state.Cursor().Chain}
		e := []events.Envelope{ns, change, reset}[i]
		f.Events = [][]byte{e.Encode()}
		contributions, err := b.d.Frame(&f, nil)
		must(t, err)
		res, err := b.state.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: uint64(i), Chain: f.Previous, Frames: []projections.RangeFrame{{Bytes: f.Encode(), Contributions: contributions}}})
		must(t, err)
		if res.Events[0].Outcome != projections.OutcomeApplied {
			t.Fatal(res)
		}
		for name, d := range map[string]*derive.Deriver{"following": b.d, "fresh": b.deriver()} {
			out, err := b.frame(d, nil, capture)
			must(t, err)
			if out[0].Chunks != want {
				t.Errorf("%s, after event %d: %d chunks, want %d", name, i, out[0].Chunks, want)
			}
		}
	}
	must(t, b.keys.Close())
	v := b.state.View()
	defer v.Close()
	if _, err := derive.New(b.keys, v); !errors.Is(err, keyring.ErrClosed) {
		t.Error(err)
	}
}

func TestVectorsInClear(t *testing.T) {
	b := newBench(t)
	local, external := b.namespace(1, builtinSpace), b.namespace(2, externalSpace)
	b.mustFrame(nil, local, external)
	long := samples()["long"]
	e := b.capture(local.Namespace, events.Header{}, long)
	c := b.mustFrame(nil, e)[0]
	chunks := text.Chunks(long.Text, text.DefaultChunkTokens, text.DefaultChunkOverlap)
	if len(chunks) < 2 || int(c.Chunks) != len(chunks) || len(c.Vectors) != len(chunks) {
		t.Fatalf("%d chunks, %d vectors, want %d", c.Chunks, len(c.Vectors), len(chunks))
	}
	got, want, q := make([]float32, builtin.Dimensions), make([]float32, builtin.Dimensions), make([]int8, builtin.Dimensions)
	for i, ch := range chunks {
		row := projections.VectorRow{Chunk: uint16(i), Numbers: c.Vectors[i]}
		must(t, row.Floats(got))
		builtin.Embed(q, text.NewAnalysis("agent-7: "+ch.Text))
		builtin.Float(want, q)
		for j := range got {
			if math.Abs(float64(got[j]-want[j])) > 1e-6 {
				t.Fatalf("chunk %d, dimension %d: %g, want %g", i, j, got[j], want[j])
			}
		}
	}
	row := projections.VectorRow{Numbers: c.Vectors[0]}
	if err := row.Floats(got[:3]); !errors.Is(err, events.ErrMalformed) {
		t.Error("a vector has other dimensions:", err)
	}

	// An external embedder's values come back as they were.
	key, err := b.keys.DataKey(external.Namespace, "")
	must(t, err)
	v := events.Vectors{Space: externalSpace.ID(), Chunks: [][]float32{{0.6, -0.8, 0}, {0, 0, 1}}}
	a := b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: external.Namespace}, key, v.Encode())
	c = b.mustFrame(nil, a)[0]
	for i, want := range v.Chunks {
		row := projections.VectorRow{Chunk: uint16(i), Numbers: c.Vectors[i]}
		got := make([]float32, 3)
		if err := row.Floats(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}

	// No words, no direction.
	zero := b.mustFrame(nil, b.capture(local.Namespace, events.Header{Agent: "a"}, events.Content{Text: "!"}))[0]
	if len(zero.Vectors) != 1 {
		t.Error(printContribution(zero))
	}
}
