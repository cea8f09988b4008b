package derive_test

import (
	"reflect"
	"testing"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

func (b *bench) spaceEvent(typ events.Type, ns events.ID, s embed.Space) events.Envelope {
	set := settings.SpaceEvent(s, nil)
	return b.seal(events.Header{Type: typ, Namespace: ns}, b.keys.Cluster(), set.Encode())
}

// TestSpacesWithinAFrame: each event is derived for the spaces that those
// before it left, and Undo takes a frame's changes back.
func TestSpacesWithinAFrame(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, externalSpace)
	out := b.mustFrame(nil, ns)
	outer, inner := settings.KeyOf(externalSpace), settings.KeyOf(builtinSpace)
	if out[0].Space != outer || out[0].Chunks != 0 {
		t.Errorf("the beginning: %s", printContribution(out[0]))
	}
	text := events.Content{Text: "the same words"}
	id := ns.Namespace
	check := func(what string, c *projections.Contribution, current, next projections.SpaceKey) {
		t.Helper()
		if c.Space != current || c.Next.Space != next || c.Chunks != 1 || (c.Next.Chunks == 1) != !next.IsZero() ||
			(len(c.Vectors) == 1) != (current == inner) || (len(c.Next.Vectors) == 1) != (next == inner) {
			t.Errorf("%s: current %x with %d vectors, next %x with %d", what, c.Space, len(c.Vectors), c.Next.Space, len(c.Next.Vectors))
		}
	}
	var none projections.SpaceKey
	frame := []events.Envelope{
		b.capture(id, events.Header{}, text), b.spaceEvent(events.TypeSpaceBuilding, id, builtinSpace),
		b.capture(id, events.Header{}, text), b.spaceEvent(events.TypeSpaceSwitched, id, builtinSpace),
		b.capture(id, events.Header{}, text), b.spaceEvent(events.TypeSpaceDropped, id, externalSpace),
		b.capture(id, events.Header{}, text),
	}
	first := b.mustFrame(nil, frame...)
	check("before", first[0], outer, none)
	check("building", first[2], outer, inner)
	check("switched", first[4], inner, none)
	check("dropped", first[6], inner, none)
	for i, want := range map[int]projections.SpaceKey{1: inner, 3: inner, 5: outer} {
		if first[i].Space != want || first[i].Code != "" {
			t.Errorf("event %d: %s", i, printContribution(first[i]))
		}
	}
	b.d.Undo()
	b.d.Undo() // once is enough, twice no harm
	if again := b.mustFrame(nil, frame...); !reflect.DeepEqual(again, first) {
		t.Error("after Undo the same frame is derived otherwise")
	}
	// Only the last frame is taken back.
	after := b.mustFrame(nil, b.capture(id, events.Header{}, text))
	b.d.Undo()
	check("a frame later", after[0], inner, none)
	check("and after Undo", b.mustFrame(nil, b.capture(id, events.Header{}, text))[0], inner, none)
}

// TestAttachedToAnySpace: vectors come for the current space, the next one and
// a kept one, as floats or as bytes.
func TestAttachedToAnySpace(t *testing.T) {
	b := newBench(t)
	ns := b.namespace(1, builtinSpace)
	id := ns.Namespace
	b.mustFrame(nil, ns, b.spaceEvent(events.TypeSpaceBuilding, id, externalSpace))
	key, err := b.keys.DataKey(id, "")
	must(t, err)
	attach := func(v events.Vectors) *projections.Contribution {
		t.Helper()
		return b.mustFrame(nil, b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: id}, key, v.Encode()))[0]
	}
	same, ok := derive.BuiltinVectors(builtinSpace, "agent-7", "the same words")
	if _, outside := derive.BuiltinVectors(externalSpace, "agent-7", "the same words"); !ok || outside {
		t.Errorf("built in %v, outside %v", ok, outside)
	}
	small := events.Vectors{Space: builtinSpace.ID(), Small: same}
	floats := events.Vectors{Space: externalSpace.ID(), Chunks: [][]float32{{0, 1, 0}}}
	for range 2 {
		if c := attach(small); c.Space != settings.KeyOf(builtinSpace) || c.Chunks != 1 || len(c.Vectors) != 1 || len(c.Vectors[0]) != 1+builtinSpace.Dimensions {
			t.Error(printContribution(c))
		}
		if c := attach(floats); c.Space != settings.KeyOf(externalSpace) || c.Chunks != 1 || len(c.Vectors) != 1 || len(c.Vectors[0]) != 1+4*externalSpace.Dimensions {
			t.Error(printContribution(c))
		}
		b.mustFrame(nil, b.spaceEvent(events.TypeSpaceSwitched, id, externalSpace))
	}
	derived := b.mustFrame(nil, b.capture(id, events.Header{}, events.Content{Text: "the same words"}))
	if len(derived[0].Vectors) != 0 || derived[0].Chunks != 1 {
		t.Error(printContribution(derived[0]))
	}
	// What derivation makes is what BuiltinVectors gives.
	b.mustFrame(nil, b.spaceEvent(events.TypeSpaceBuilding, id, builtinSpace))
	e := b.capture(id, events.Header{}, events.Content{Text: "the same words"})
	c := b.mustFrame(nil, e)[0]
	plain := c.Next.Vectors[0]
	for i, x := range small.Small[0] {
		if plain[0] != events.VectorsSmall || int8(plain[1+i]) != x {
			t.Fatalf("number %d is %d, derived as %d", i, x, int8(plain[1+i]))
		}
	}
	b.mustFrame(nil, b.spaceEvent(events.TypeSpaceDropped, id, builtinSpace))
	if c := attach(small); !c.Space.IsZero() || c.Code != "" || len(c.Vectors) != 0 {
		t.Errorf("dropped: %s", printContribution(c))
	}
	for name, payload := range map[string][]byte{"space event": {9}, "nothing": {}} {
		if c := b.mustFrame(nil, b.seal(events.Header{Type: events.TypeSpaceBuilding, Namespace: id}, b.keys.Cluster(), payload))[0]; c == nil || c.Code != "unreadable" {
			t.Errorf("%s: %s", name, printContribution(c))
		}
	}
	newer := b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: id}, key, floats.Encode())
	newer.Schema++
	newer.Payload = key.Seal(nil, settings.Identity(newer.Event), newer.AppendHeader(nil), floats.Encode())
	if _, err := b.frame(b.d, nil, newer); err == nil {
		t.Error("vectors of a newer schema are taken")
	}
	if c := b.mustFrame(nil, b.seal(events.Header{Type: events.TypeVectorsAttached, Namespace: events.ID{9}}, key, floats.Encode()))[0]; c.Code != "unreadable" {
		t.Errorf("a namespace that is not there: %s", printContribution(c))
	}
}
