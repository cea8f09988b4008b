package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
)

// seal ends a frame's bytes with their checksum.
func seal(body []byte) []byte {
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

func TestFrameRefusals(t *testing.T) {
	f := sampleFrame()
	good := f.Encode()
	body := good[:len(good)-4]
	edit := func(change func(b []byte) []byte) []byte { return seal(change(bytes.Clone(body))) }
	count := func(n uint32) []byte {
		return edit(func(b []byte) []byte { binary.BigEndian.PutUint32(b[60:], n); return b })
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":        {nil, ErrMalformed},
		"text":           {[]byte("hello, this is not a frame at all, but it is long enough to hold the header of one"), ErrMalformed},
		"newer version":  {edit(func(b []byte) []byte { b[2]++; return b }), ErrNewer},
		"version 0":      {edit(func(b []byte) []byte { b[2] = 0; return b }), ErrMalformed},
		"flags":          {edit(func(b []byte) []byte { b[3] = 1; return b }), ErrMalformed},
		"newer feature":  {edit(func(b []byte) []byte { b[7] = FeatureLevel + 1; return b }), ErrNewer},
		"no events":      {count(0), ErrMalformed},
		"too few events": {count(2), ErrMalformed},
		"many events":    {count(4), ErrMalformed},
		"huge count":     {count(1<<32 - 1), ErrMalformed},
		"trailing":       {edit(func(b []byte) []byte { return append(b, 0) }), ErrMalformed},
		"long event":     {edit(func(b []byte) []byte { b[64] = 0xff; return b }), ErrMalformed},
	} {
		if _, err := DecodeFrame(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		header []byte
		events [][]byte
	}{"short header": {body[:63], f.Events}, "long header": {body[:65], f.Events}, "missing event": {body[:64], f.Events[1:]}} {
		if _, err := JoinFrame(c.header, c.events); !errors.Is(err, ErrMalformed) {
			t.Errorf("join with %s: %v", name, err)
		}
	}
}

func TestFrameContinues(t *testing.T) {
	f := sampleFrame()
	if !f.Continues(7, f.Seq, f.Previous, 9) || !f.Continues(7, f.Seq, f.Previous, 8) {
		t.Error("a frame that follows is void")
	}
	for name, ok := range map[string]bool{
		"shard":    f.Continues(8, f.Seq, f.Previous, 9),
		"sequence": f.Continues(7, f.Seq-1, f.Previous, 9),
		"chain":    f.Continues(7, f.Seq, Chain{1}, 9),
		"term":     f.Continues(7, f.Seq, f.Previous, 10),
	} {
		if ok {
			t.Errorf("a frame with another %s follows", name)
		}
	}
}

// TestNewerEnvelopeIsNotMalformed: a header field this program does not know
// moves everything behind it, so what is left looks broken. It must still be
// told from damage: damage is quarantined, a newer event stops the node.
func TestNewerEnvelopeIsNotMalformed(t *testing.T) {
	e := sampleEnvelopes()[TypeCaptured]
	b := e.Encode()
	at := len(b) - len(e.Payload) - 4
	for bit := range 32 {
		if hasAll>>bit&1 != 0 {
			continue
		}
		newer := append(bytes.Clone(b[:at]), append(make([]byte, 16), b[at:]...)...)
		binary.BigEndian.PutUint32(newer[6:], binary.BigEndian.Uint32(newer[6:])|1<<bit)
		if _, err := DecodeEnvelope(newer); !errors.Is(err, ErrNewer) {
			t.Errorf("presence bit %d: %v", bit, err)
		}
	}
	b[0]++
	if _, err := DecodeEnvelope(b); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

// TestOlderEnvelopeIsNotMalformed: the first version had other presence bits.
// Its events would be quarantined one by one if they passed for damage.
func TestOlderEnvelopeIsNotMalformed(t *testing.T) {
	e := sampleEnvelopes()[TypeCaptured]
	b := e.Encode()
	b[0] = 1
	if _, err := DecodeEnvelope(b); !errors.Is(err, ErrOlder) || !IsForeign(err) {
		t.Error(err)
	}
}

// TestFeatureOfActor: a reader that knows no principals must not read the
// frames that name one; all others stay readable for it.
func TestFeatureOfActor(t *testing.T) {
	plain := sampleEnvelopes()[TypeRevised]
	if got := FeatureOf([][]byte{plain.Encode(), nil}); got != featureFirst {
		t.Errorf("plain events need level %d", got)
	}
	for name, change := range map[string]func(*Header){
		"principal": func(h *Header) { h.Principal = testID(1) },
		"directory": func(h *Header) { h.Directory = Position{Seq: 1} },
	} {
		e := plain
		change(&e.Header)
		if got := FeatureOf([][]byte{plain.Encode(), e.Encode()}); got != featureActor {
			t.Errorf("%s: level %d", name, got)
		}
	}
	home := plain
	home.Home = 3
	if got := FeatureOf([][]byte{home.Encode(), plain.Encode()}); got != featureHome {
		t.Errorf("with a home: level %d", got)
	}
}

// TestFeatureOfRaised: a frame that raises the level is of what it raises at least, so that
// a program which does not know that level stops before it and not somewhere behind.
func TestFeatureOfRaised(t *testing.T) {
	plain, raised := sampleEnvelopes()[TypeRevised], sampleEnvelopes()[TypeLevelRaised]
	for level, want := range map[uint16]uint16{1: featureRaised, featureRaised: featureRaised, 9: 9} {
		raised.Payload = EncodeLevel(level)
		if got := FeatureOf([][]byte{plain.Encode(), raised.Encode()}); got != want {
			t.Errorf("raised to %d: level %d, not %d", level, got, want)
		}
		if got, err := DecodeLevel(raised.Payload); err != nil || got != level {
			t.Errorf("level %d becomes %d, %v", level, got, err)
		}
	}
	for _, bad := range []string{"", "1", "123"} {
		if _, err := DecodeLevel([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("payload %q: %v", bad, err)
		}
		raised.Payload = []byte(bad)
		if got := FeatureOf([][]byte{raised.Encode()}); got != featureRaised {
			t.Errorf("payload %q: level %d", bad, got)
		}
	}
}

func TestEnvelopeRefusals(t *testing.T) {
	long := sampleEnvelopes()[TypeCaptured]
	long.Agent = string(bytes.Repeat([]byte{'a'}, 64))
	named := sampleEnvelopes()[TypeNamespaceCreated]
	named.Name = string(bytes.Repeat([]byte{'a'}, 64))
	zero := sampleEnvelopes()[TypeNamespaceDeleted]
	present := zero.Encode()
	clear(present[43 : 43+16]) // says that there is a namespace, and it is the zero one
	version := zero.Encode()
	version[0] = 0
	for name, b := range map[string][]byte{"agent": long.Encode(), "name": named.Encode(), "zero namespace": present,
		"version 0": version, "trailing": append(zero.Encode(), 0)} {
		if _, err := DecodeEnvelope(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContentFieldTwice: importance, metadata, origin and the occurred mark
// were once accepted twice, the last one winning, so that two byte strings
// meant one content.
func TestContentFieldTwice(t *testing.T) {
	field := func(tag byte, v string) []byte { return appendField(nil, tag, v) }
	values := map[byte]string{tagImportance: "12345678", tagDerived: string(make([]byte, 16)), tagOccurredSet: "\x01", tagMetadata: "{}"}
	for tag := byte(1); tag <= lastTag; tag++ {
		v := values[tag]
		if v == "" {
			v = "x"
		}
		once, twice := field(tag, v), append(field(tag, v), field(tag, v)...)
		if _, err := DecodeContent(once); err != nil {
			t.Errorf("field %d: %v", tag, err)
		}
		_, err := DecodeContent(twice)
		if repeats := tag == tagTag || tag == tagDerived; repeats != (err == nil) {
			t.Errorf("field %d twice: %v", tag, err)
		}
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"unknown":       {field(lastTag+1, "x"), ErrNewer},
		"zero":          {field(0, "x"), ErrMalformed},
		"order":         {append(field(tagRole, "x"), field(tagText, "x")...), ErrMalformed},
		"empty":         {[]byte{tagText, 0}, ErrMalformed},
		"long":          {[]byte{tagText, 2, 'x'}, ErrMalformed},
		"wide length":   {[]byte{tagText, 0x81, 0, 'x'}, ErrMalformed},
		"huge length":   {[]byte{tagText, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, ErrMalformed},
		"cut":           {[]byte{tagText}, ErrMalformed},
		"importance":    {field(tagImportance, "1234567"), ErrMalformed},
		"derived":       {field(tagDerived, "short"), ErrMalformed},
		"occurred mark": {field(tagOccurredSet, "\x02"), ErrMalformed},
	} {
		if _, err := DecodeContent(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestSettingsRefusals(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"order":          {2, 1, 'b', 0, 1, 'a', 0, 0},
		"twice":          {2, 1, 'a', 0, 1, 'a', 0, 0},
		"empty name two": {2, 0, 0, 0, 0, 0},
		"reset order":    {0, 2, 1, 'b', 1, 'a'},
		"no resets":      {0},
		"long name":      {1, 9, 'a', 0, 0},
		"count":          {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"trailing":       {0, 0, 0},
	} {
		if _, err := DecodeSettings(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVectorsRefusals(t *testing.T) {
	good := Vectors{Space: "s", Chunks: [][]float32{{1, 2}}}
	empty := Vectors{Space: "s"}
	b := good.Encode()
	edit := func(at int, v uint32) []byte {
		c := bytes.Clone(b)
		binary.BigEndian.PutUint32(c[at:], v)
		return c
	}
	for name, b := range map[string][]byte{"nothing": nil, "none": empty.Encode(), "no dimensions": edit(3, 0), "dimensions": edit(3, 1<<31), "encoding": append([]byte{3}, b[1:]...),
		"count": edit(7, 1<<31), "no count with dimensions": append([]byte{2, 1, 's'}, 0, 0, 0, 2, 0, 0, 0, 0),
		"cut": b[:len(b)-1], "trailing": append(bytes.Clone(b), 0)} {
		if _, err := DecodeVectors(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		``:                             ``,
		`{}`:                           ``,
		`null`:                         ``,
		` { "b" : 1.50 , "a": [1,2] }`: `{"a":[1,2],"b":1.50}`,
		`{"n":12345678901234567890}`:   `{"n":12345678901234567890}`,
		`{"a":1,"a":2}`:                `{"a":2}`,
	} {
		got, err := CanonicalJSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s gives %s, %v", in, got, err)
		}
		again, err := CanonicalJSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s is not canonical: %s, %v", got, again, err)
		}
	}
	for _, in := range []string{`[1]`, `"a"`, `1`, `{`, `{} {}`, `{"a":1} x`, `{"a":1}]`} {
		if got, err := CanonicalJSON([]byte(in)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s gives %s, %v", in, got, err)
		}
	}
}

func TestBody(t *testing.T) {
	c, h := sampleContent(), Header{Scope: ScopeTeam, Kind: 1, Agent: "a", OccurredAt: 5, SealedAt: 6}
	body := c.Body(&h)
	same := func(change func(*Content, *Header)) bool {
		c, h := sampleContent(), h
		change(&c, &h)
		return bytes.Equal(c.Body(&h), body)
	}
	for name, change := range map[string]func(*Content, *Header){
		"client id": func(c *Content, _ *Header) { c.ClientID = "other" },
		"source":    func(c *Content, _ *Header) { c.Source = "" },
		"origin":    func(c *Content, _ *Header) { c.Origin = "" },
		"sealed_at": func(_ *Content, h *Header) { h.SealedAt++ },
		"event":     func(_ *Content, h *Header) { h.Event = testID(9) },
	} {
		if !same(change) {
			t.Errorf("another %s makes another request", name)
		}
	}
	for name, change := range map[string]func(*Content, *Header){
		"text":     func(c *Content, _ *Header) { c.Text += "." },
		"tags":     func(c *Content, _ *Header) { c.Tags = c.Tags[:1] },
		"scope":    func(_ *Content, h *Header) { h.Scope = ScopeAgent },
		"kind":     func(_ *Content, h *Header) { h.Kind = 2 },
		"agent":    func(_ *Content, h *Header) { h.Agent = "b" },
		"occurred": func(_ *Content, h *Header) { h.OccurredAt++ },
		"no time":  func(c *Content, _ *Header) { c.OccurredSet = false },
	} {
		if same(change) {
			t.Errorf("another %s is the same request", name)
		}
	}
	c.OccurredSet = false // then the server filled it in
	filled := c.Body(&h)
	if h.OccurredAt++; !bytes.Equal(c.Body(&h), filled) {
		t.Error("a time that the server filled in makes another request")
	}
}
