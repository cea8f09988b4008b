package settings_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/embed"
	"mneme/internal/embed/builtin"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	local    = embed.Space{Provider: embed.ProviderBuiltin, Model: builtin.Name, Dimensions: builtin.Dimensions, Normalised: true, Version: builtin.Version}
	static1  = embed.Space{Provider: embed.ProviderBuiltin, Model: embed.ModelStatic, Dimensions: 384, Normalised: true, Version: 1}
	semantic = embed.Space{Provider: embed.ProviderOpenAI, Model: "m", Dimensions: 1536, Normalised: true, Version: 1}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, value string
		creating    bool
		says        string // "" = accepted
	}{
		{settings.VectorWeight, "0", false, ""},
		{settings.VectorWeight, "1", false, ""},
		{settings.VectorWeight, "0.25", true, ""},
		{settings.VectorWeight, "1.01", false, "from 0 to 1"},
		{settings.VectorWeight, "-0.1", false, "from 0 to 1"},
		{settings.VectorWeight, "NaN", false, "from 0 to 1"},
		{settings.VectorWeight, "Inf", false, "from 0 to 1"},
		{settings.VectorWeight, "", false, "from 0 to 1"},
		{settings.VectorWeight, "half", false, "from 0 to 1"},
		{settings.TextWeight, "0.5", false, ""},
		{settings.MinScore, "2", false, "from 0 to 1"},
		{settings.Captures, "off", true, ""},
		{settings.Searches, "on", false, ""},
		{settings.Captures, "no", false, "one of on, off"},
		{settings.EmbedderProvider, "builtin", true, ""},
		{settings.EmbedderProvider, "none", true, ""},
		{settings.EmbedderProvider, "skynet", true, "one of auto, builtin"},
		{settings.EmbedderProvider, "builtin", false, "chosen when the namespace is created"},
		{settings.EmbedderModel, "anything", true, ""},
		{settings.EmbedderModel, "anything", false, "chosen when"},
		{settings.EmbedderDimensions, "768", true, ""},
		{settings.EmbedderDimensions, "0", true, "from 1 to 16384"},
		{settings.EmbedderSpace, "{}", true, "unknown"}, // set by the node alone
		{settings.EmbedderSpace, "{}", false, "unknown"},
		{"search.speed", "11", false, "unknown"},
		{"search.expansion", "off", false, "unknown"}, // removed, decision 0017
		{"search.diversity", "on", false, "unknown"},
		{"search.duplicates", "on", true, "unknown"},
		{"search.fusion", "rrf", false, "unknown"}, // these four by decision 0039
		{"search.candidate_multiplier", "4", false, "unknown"},
		{"search.conversation", "on", false, "unknown"},
		{"search.calibration", "on", false, "unknown"},
		{strings.Repeat("x", 500), "1", false, "unknown"},
		{settings.PartSetting(memory.PartDates), strings.Repeat("ä", 500), false, "on, off"},
	} {
		err := settings.Check(map[string]string{c.name: c.value}, c.creating)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		case c.says == "unknown" && !strings.Contains(err.Hint, settings.VectorWeight):
			t.Errorf("%s: the hint %q does not list the settings", c.name, err.Hint)
		case c.says != "" && (err == nil || err.Code != memory.CodeInvalid || !strings.Contains(err.Message, c.says) || len(err.Message) > 500):
			t.Errorf("%s=%.40q: %v, want something about %q", c.name, c.value, err, c.says)
		}
	}
	// Of several wrong ones the same is always named, and the hint lists all.
	wrong := map[string]string{"a": "1", "b": "1", settings.MinScore: "x", "z": "2"}
	for range 20 {
		if err := settings.Check(wrong, true); !strings.Contains(err.Message, `"a"`) || !strings.Contains(err.Hint, settings.MinScore) {
			t.Fatal(err, err.Hint)
		}
	}
	if err := settings.Check(nil, false); err != nil {
		t.Error(err)
	}
}

func TestCheckReset(t *testing.T) {
	if err := settings.CheckReset([]string{settings.VectorWeight, "search.fusion", "search.calibration"}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"nonsense", "search.diversity", settings.EmbedderProvider, settings.EmbedderSpace, ""} {
		err := settings.CheckReset([]string{settings.MinScore, name})
		if err == nil || err.Code != memory.CodeInvalid || !strings.Contains(err.Hint, settings.VectorWeight) {
			t.Errorf("%s: %+v, want an error whose hint lists the settings", name, err)
		}
	}
}

func TestParts(t *testing.T) {
	set := map[string]string{settings.PartSetting(memory.PartSpeaker): settings.Off, settings.PartSetting(memory.PartDates): settings.Off}
	if err := settings.Check(set, false); err != nil {
		t.Fatal(err)
	}
	was, now := settings.Resolve(nil).Parts, settings.Resolve(set).Parts
	for _, p := range memory.Parts {
		want := was[p]
		if v, ok := set[settings.PartSetting(p)]; ok {
			want = v == settings.On
			if was[p] == want {
				t.Errorf("%s is %v by default", p, want)
			}
		}
		if now[p] != want {
			t.Errorf("%s: %v, want %v", p, now[p], want)
		}
		if err := settings.Check(map[string]string{settings.PartSetting(p): settings.Off}, false); err != nil {
			t.Errorf("%s cannot be switched off: %v", p, err)
		}
		if err := settings.Check(map[string]string{settings.PartSetting(p): "maybe"}, false); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%s=maybe: %v", p, err)
		}
	}
}

func TestResolve(t *testing.T) {
	space := func(s embed.Space, more ...string) map[string]string {
		raw := map[string]string{settings.EmbedderSpace: settings.EncodeSpace(s)}
		for i := 0; i < len(more); i += 2 {
			raw[more[i]] = more[i+1]
		}
		return raw
	}
	for name, c := range map[string]struct {
		raw          map[string]string
		vector, text float64
	}{
		"nothing":     {nil, 0.1, 0.9},
		"hash":        {space(local), 0.1, 0.9},
		"static":      {space(static1), 0.2, 0.8},
		"semantic":    {space(semantic), 0.7, 0.3},
		"vector only": {space(semantic, settings.VectorWeight, "0.4"), 0.4, 0.6},
		"text only":   {space(local, settings.TextWeight, "0.4"), 0.6, 0.4},
		"both":        {space(semantic, settings.VectorWeight, "0.5", settings.TextWeight, "0.5"), 0.5, 0.5},
		"scaled":      {space(semantic, settings.VectorWeight, "0.2", settings.TextWeight, "0.6"), 0.25, 0.75},
		"zero vector": {space(semantic, settings.VectorWeight, "0"), 0, 1},
		"both zero":   {space(semantic, settings.VectorWeight, "0", settings.TextWeight, "0"), 0, 0},
		"damaged":     {map[string]string{settings.EmbedderSpace: "{", settings.VectorWeight: "x"}, 0.1, 0.9},
	} {
		e := settings.Resolve(c.raw)
		if math.Abs(e.VectorWeight-c.vector) > 1e-12 || math.Abs(e.TextWeight-c.text) > 1e-12 {
			t.Errorf("%s: weights %g and %g, want %g and %g", name, e.VectorWeight, e.TextWeight, c.vector, c.text)
		}
		if e.MinScore != settings.DefaultMinScore {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for name, c := range map[string]struct {
		raw          map[string]string
		text, vector float64
	}{
		"as usual":       {nil, 1, 0.5},
		"outside":        {map[string]string{settings.EmbedderSpace: settings.EncodeSpace(semantic)}, 1, 1},
		"words favoured": {map[string]string{settings.VectorWeight: "0.05"}, 0.95 / 0.9, 0.25},
		"vectors alone":  {map[string]string{settings.VectorWeight: "1"}, 0, 3},
		"none":           {map[string]string{settings.VectorWeight: "0", settings.TextWeight: "0"}, 1, 0.5}, // as usual
	} {
		if text, vector := settings.Resolve(c.raw).Factors(); math.Abs(text-c.text) > 1e-9 || math.Abs(vector-c.vector) > 1e-9 {
			t.Errorf("%s: factors %v and %v, want %v and %v", name, text, vector, c.text, c.vector)
		}
	}
	// What a namespace still has of settings that are no more changes nothing.
	e := settings.Resolve(map[string]string{"search.fusion": "rrf", "search.candidate_multiplier": "many", settings.MinScore: "0.25"})
	if e.MinScore != 0.25 || e.HasVectors() || e.SpaceKey() != (projections.SpaceKey{}) {
		t.Errorf("%+v", e)
	}
	if info := e.Info(); info.Provider != embed.ProviderNone || info.Space != "" {
		t.Errorf("%+v", info)
	}
	e = settings.Resolve(space(semantic))
	if info := e.Info(); e.Space != semantic || info != (memory.EmbedderInfo{Provider: "openai", Model: "m", Dimensions: 1536, Space: semantic.ID()}) {
		t.Errorf("%+v %+v", e.Space, info)
	}
	if k := e.SpaceKey(); k == (projections.SpaceKey{}) || k == settings.Resolve(space(local)).SpaceKey() {
		t.Errorf("space key %x", k)
	}
}

// shelf is a state with a namespace whose settings change.
type shelf struct {
	t     *testing.T
	keys  *keyring.Keyring
	state *projections.State
	n     byte
}

func newShelf(t *testing.T) *shelf {
	keys, err := keyring.Open(keyring.Options{Dir: "data", AllowCreate: true, FS: vfs.NewMem(), Rand: rand.NewChaCha8([32]byte{1})})
	must(t, err)
	state, err := projections.Open(projections.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, ReserveBytes: -1})
	must(t, err)
	t.Cleanup(func() { _ = keys.Close(); _ = state.Close() })
	return &shelf{t: t, keys: keys, state: state}
}

func (s *shelf) envelope(typ events.Type, payload []byte) events.Envelope {
	s.n++
	e := events.Envelope{Header: events.Header{Type: typ, Schema: 1, Event: events.ID{s.n}, Namespace: events.ID{1}, Key: s.keys.Cluster().ID()}}
	if typ == events.TypeNamespaceCreated {
		e.Name = "team"
	}
	e.Payload = s.keys.Cluster().Seal(nil, settings.Identity(e.Event), e.AppendHeader(nil), payload)
	return e
}

func (s *shelf) fold(e events.Envelope) {
	c := s.state.Cursor()
	f := events.Frame{Feature: 1, Seq: c.Seq + 1, Previous: c.Chain, Events: [][]byte{e.Encode()}}
	res, err := s.state.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: c.Seq, Chain: c.Chain,
		Frames: []projections.RangeFrame{{Bytes: f.Encode(), Contributions: make([]*projections.Contribution, 1)}}})
	must(s.t, err)
	if res.Events[0].Outcome != projections.OutcomeApplied {
		s.t.Fatalf("%+v", res)
	}
}

func (s *shelf) set(typ events.Type, set map[string]string, reset ...string) {
	payload := events.Settings{Set: set, Reset: reset}
	s.fold(s.envelope(typ, payload.Encode()))
}

func (s *shelf) of(b *settings.Cache) (*settings.Effective, error) {
	v := s.state.View()
	defer v.Close()
	ns, ok := v.Namespace("team")
	if !ok {
		s.t.Fatal("the namespace is gone")
	}
	return b.Of(v, ns)
}

func TestCache(t *testing.T) {
	s := newShelf(t)
	b := settings.NewCache(s.keys)
	s.set(events.TypeNamespaceCreated, map[string]string{settings.EmbedderSpace: settings.EncodeSpace(local), settings.MinScore: "0.5"})
	first, err := s.of(b)
	must(t, err)
	if first.MinScore != 0.5 || first.Space != local || first.VectorWeight != 0.1 {
		t.Errorf("%+v", first)
	}
	again, err := s.of(b)
	if err != nil || again != first {
		t.Error("the cache opened the same settings twice", err)
	}
	s.set(events.TypeNamespaceChanged, map[string]string{settings.TextWeight: "0", settings.VectorWeight: "1"}, settings.MinScore)
	changed, err := s.of(b)
	must(t, err)
	if changed.MinScore != settings.DefaultMinScore || changed.VectorWeight != 1 || changed.Space != local {
		t.Errorf("%+v", changed)
	}
	if first.MinScore != 0.5 || first.Raw[settings.TextWeight] != "" {
		t.Error("what was given out before has changed")
	}
	s.set(events.TypeNamespaceChanged, nil, settings.VectorWeight, settings.TextWeight)
	if e, err := s.of(b); err != nil || e.VectorWeight != 0.1 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestCacheErrors(t *testing.T) {
	s := newShelf(t)
	s.set(events.TypeNamespaceCreated, nil)
	raw := map[string]string{}
	open := func(change func(e *events.Envelope)) error {
		e := s.envelope(events.TypeNamespaceChanged, (&events.Settings{Set: map[string]string{"a": "1"}}).Encode())
		change(&e)
		return settings.Open(s.keys, &e, raw)
	}
	for name, c := range map[string]struct {
		change func(e *events.Envelope)
		want   error
	}{
		"key":     {func(e *events.Envelope) { e.Key = [16]byte{9} }, keyring.ErrNoKey},
		"payload": {func(e *events.Envelope) { e.Payload[0] ^= 1 }, keyring.ErrSealBroken},
		"header":  {func(e *events.Envelope) { e.Namespace[3] ^= 1 }, keyring.ErrSealBroken},
		"content": {func(e *events.Envelope) { *e = s.envelope(events.TypeNamespaceChanged, []byte{7}) }, events.ErrMalformed},
		"schema": {func(e *events.Envelope) {
			e.Schema = 9
			e.Payload = s.keys.Cluster().Seal(nil, settings.Identity(e.Event), e.AppendHeader(nil), []byte{0, 0})
		}, events.ErrNewer},
	} {
		if err := open(c.change); !errors.Is(err, c.want) || len(raw) != 0 {
			t.Errorf("%s: %v, want %v; settings %v", name, err, c.want, raw)
		}
	}
	must(t, open(func(*events.Envelope) {}))
	broken := s.envelope(events.TypeNamespaceChanged, []byte{7})
	s.fold(broken)
	b := settings.NewCache(s.keys)
	for range 2 { // a failure is not remembered as a success
		if _, err := s.of(b); !errors.Is(err, events.ErrMalformed) {
			t.Error(err)
		}
	}
	if settings.IsErased(keyring.ErrNoKey) || !settings.IsErased(keyring.ErrDestroyed) {
		t.Error("IsErased")
	}
}
