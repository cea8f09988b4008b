package settings_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/settings"
	"mneme/memory"
)

// directory seals events about one namespace and follows them.
type directory struct {
	t   *testing.T
	raw map[string]string
	now int64
	add func(typ events.Type, sealedAt int64, s events.Settings)
}

func newDirectory(t *testing.T) *directory {
	keys := newShelf(t).keys
	d := &directory{t: t, raw: map[string]string{}}
	d.add = func(typ events.Type, at int64, s events.Settings) {
		t.Helper()
		h := events.Header{Type: typ, Schema: typ.Schema(), Event: events.ID{1, byte(d.now)}, Namespace: events.ID{2}, SealedAt: at, Key: keys.Cluster().ID()}
		e := events.Envelope{Header: h}
		e.Payload = keys.Cluster().Seal(nil, settings.Identity(h.Event), h.AppendHeader(nil), s.Encode())
		must(t, settings.Open(keys, &e, d.raw))
		if typ.OfSpace() {
			space, err := settings.OpenSpace(keys, &e)
			if err != nil || settings.EncodeSpace(space) != s.Set[settings.EmbedderSpace] && s.Set[settings.EmbedderSpace] != "[]" {
				t.Errorf("%s is about %s, %v", typ, space, err)
			}
		}
	}
	return d
}

// space follows one event; its sealed_at is one second later than the last.
func (d *directory) space(typ events.Type, s embed.Space, compared *memory.SpaceComparison) *settings.Effective {
	d.t.Helper()
	d.now++
	d.add(typ, d.now*int64(time.Second), settings.SpaceEvent(s, compared))
	return settings.Resolve(d.raw)
}

// say prints spaces as current, next, kept.
func say(e *settings.Effective) string {
	name := func(s embed.Space) string {
		if s.Provider == "" {
			return "-"
		}
		return s.Model
	}
	out := name(e.Space) + " " + name(e.Next)
	for _, k := range e.Kept {
		out += " " + name(k.Space) + "@" + time.Duration(k.Since).String()
	}
	return out
}

func TestSpacesFollowEvents(t *testing.T) {
	another := semantic
	another.Model = "n"
	d := newDirectory(t)
	d.add(events.TypeNamespaceCreated, 0, events.Settings{Set: map[string]string{settings.EmbedderProvider: "builtin", settings.EmbedderDimensions: "384",
		settings.EmbedderSpace: settings.EncodeSpace(local)}})
	found := &memory.SpaceComparison{Records: 7, Recall: 0.5}
	for i, step := range []struct {
		typ   events.Type
		space embed.Space
		want  string
	}{
		{events.TypeSpaceBuilding, local, "hash -"},    // it has that
		{events.TypeSpaceSwitched, semantic, "hash -"}, // was not built
		{events.TypeSpaceDropped, local, "hash -"},     // is in use
		{events.TypeSpaceBuilding, embed.Space{}, "hash -"},
		{events.TypeSpaceBuilding, semantic, "hash m"},
		{events.TypeSpaceBuilding, another, "hash m"},
		{events.TypeSpaceSwitched, another, "hash m"},
		{events.TypeSpaceSwitched, semantic, "m - hash@8s"},
		{events.TypeSpaceBuilding, local, "m hash"},
		{events.TypeSpaceDropped, local, "m -"}, // cancelled
		{events.TypeSpaceBuilding, local, "m hash"},
		{events.TypeSpaceSwitched, local, "hash - m@12s"},
		{events.TypeSpaceBuilding, another, "hash n m@12s"},
		{events.TypeSpaceSwitched, another, "n - m@12s hash@14s"},
		{events.TypeSpaceDropped, semantic, "n - hash@14s"},
		{events.TypeSpaceDropped, semantic, "n - hash@14s"},
		{events.TypeSpaceDropped, local, "n -"},
	} {
		e := d.space(step.typ, step.space, found)
		if got := say(e); got != step.want {
			t.Errorf("step %d, %s %s: %q, want %q", i, step.typ, step.space.Model, got, step.want)
		}
		if e.Compared != nil && !reflect.DeepEqual(e.Compared, found) || (e.Compared != nil) != (i >= 7) {
			t.Errorf("step %d: %+v", i, e.Compared)
		}
		for _, s := range e.Spaces() {
			if got, ok := e.SpaceOf(settings.KeyOf(s)); !ok || got != s {
				t.Errorf("step %d: %s is not found", i, s)
			}
		}
		if _, ok := e.SpaceOf(settings.KeyOf(embed.Space{})); ok {
			t.Error("no space is found")
		}
	}
	e, fresh := settings.Resolve(d.raw), settings.Resolve(map[string]string{settings.EmbedderSpace: settings.EncodeSpace(another)})
	if e.Raw[settings.EmbedderProvider] != "openai" || e.Raw[settings.EmbedderModel] != "n" || e.Raw[settings.EmbedderDimensions] != "" || e.VectorWeight != fresh.VectorWeight {
		t.Errorf("%+v", e)
	}
	for name := range e.Raw {
		shown := name == settings.EmbedderProvider || name == settings.EmbedderModel
		if settings.Internal(name) == shown {
			t.Errorf("%s is internal: %v", name, !shown)
		}
	}
	// A switch without a comparison forgets the one before.
	d.space(events.TypeSpaceBuilding, local, nil)
	if e := d.space(events.TypeSpaceSwitched, local, nil); e.Compared != nil || say(e) != "hash - n@19s" {
		t.Errorf("%+v", e)
	}
	d.now++
	d.add(events.TypeSpaceBuilding, 1, events.Settings{Set: map[string]string{settings.EmbedderSpace: "[]"}})
	if e := settings.Resolve(d.raw); e.IsBuilding() {
		t.Error("what is no space is being built")
	}
}

func TestMinRecall(t *testing.T) {
	for value, want := range map[string]float64{"": 0.9, "0": 0, "0.5": 0.5, "1": 1} {
		if got := settings.Resolve(map[string]string{settings.MinRecall: value}).MinRecall; got != want {
			t.Errorf("%q asks for %g", value, got)
		}
	}
	for value, ok := range map[string]bool{"0": true, "1": true, "1.1": false, "-1": false, "": false} {
		if err := settings.Check(map[string]string{settings.MinRecall: value}, false); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestKeepOld(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 24 * time.Hour, "nonsense": 24 * time.Hour, "90m": 90 * time.Minute} {
		if got := settings.Resolve(map[string]string{settings.KeepOld: value}).KeepOld; got != want {
			t.Errorf("%q keeps %s", value, got)
		}
	}
	for value, ok := range map[string]bool{"1m": true, "8784h": true, "59s": false, "8785h": false, "-1h": false, "1d": false, "": false, "x": false} {
		for _, creating := range []bool{true, false} {
			if err := settings.Check(map[string]string{settings.KeepOld: value}, creating); (err == nil) != ok || err != nil && !strings.Contains(err.Message, "such as 24h") {
				t.Errorf("%q: %v", value, err)
			}
		}
	}
	if err := settings.CheckReset([]string{settings.KeepOld}); err != nil {
		t.Error(err)
	}
	if err := settings.Check(map[string]string{"embedder.next": "x"}, true); err == nil {
		t.Error("anybody may say what is being built")
	}
}
