package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// fuzzDecoder holds a decoder to its promise for any bytes.
func fuzzDecoder[T any](f *testing.F, decode func([]byte) (T, error), encode func(*T) []byte, seeds ...[]byte) {
	for _, s := range append(seeds, nil, []byte{0}, bytes.Repeat([]byte{0xff}, 80)) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode(b)
		checkDecoded(t, -1, b, err, func() []byte { return encode(&v) })
	})
}

func FuzzEnvelope(f *testing.F) {
	var seeds [][]byte
	for _, e := range sampleEnvelopes() {
		seeds = append(seeds, e.Encode())
	}
	fuzzDecoder(f, DecodeEnvelope, (*Envelope).Encode, seeds...)
}

func FuzzFrame(f *testing.F) {
	s := sampleFrame()
	f.Add(s.Encode(), false)
	f.Add(s.Encode(), true)
	f.Add([]byte("MF"), true)
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		if sum && len(b) >= 4 { // get past the checksum
			b = seal(b[: len(b)-4 : len(b)-4])
		}
		v, err := DecodeFrame(b)
		checkDecoded(t, -1, b, err, v.Encode)
		if err != nil {
			return
		}
		if joined, err := JoinFrame(b[:frameHeader], v.Events); err != nil || !bytes.Equal(joined, b) {
			t.Fatalf("joined %x, %v", joined, err)
		}
	})
}

func FuzzContent(f *testing.F) {
	c, text := sampleContent(), Content{Text: "x"}
	fuzzDecoder(f, DecodeContent, (*Content).Encode, c.Encode(), text.Encode())
}

func FuzzSettings(f *testing.F) {
	s := Settings{Set: map[string]string{"a": "1", "b": ""}, Reset: []string{"c"}}
	fuzzDecoder(f, DecodeSettings, (*Settings).Encode, s.Encode(), []byte{0, 0}, binary.AppendUvarint(nil, 1<<63))
}

func FuzzVectors(f *testing.F) {
	v := Vectors{Space: "s", Chunks: [][]float32{{1, 2}, {3, 4}}}
	small := Vectors{Space: "s", Small: [][]int8{{1, 2}, {3, -4}}}
	fuzzDecoder(f, DecodeVectors, (*Vectors).Encode, v.Encode(), small.Encode(), []byte{2, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
}

func FuzzPosition(f *testing.F) {
	f.Add("p0.1.42.3")
	f.Add("p65535.4294967295.18446744073709551615.4294967295")
	f.Add("p0.0.0.-0")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePosition(s)
		switch {
		case err == nil && p.String() != s:
			t.Fatalf("%q is %s", s, p)
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Fatal(err)
		}
	})
}

func FuzzCaptureSubject(f *testing.F) {
	f.Add("mem.in.team-a.agent-7.capture")
	f.Add("mem.in.*.>.capture")
	f.Fuzz(func(t *testing.T, s string) {
		ns, agent, err := ParseCaptureSubject(s)
		if err == nil && "mem.in."+ns+"."+agent+".capture" != s {
			t.Fatalf("%q is %s and %s", s, ns, agent)
		}
	})
}

func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":[1,2.50,null],"a":{"x":"\u003c<"}}`))
	f.Add([]byte(`{} x`))
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := CanonicalJSON(b)
		if err != nil {
			return
		}
		if twice, err := CanonicalJSON(once); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q, %v", once, twice, err)
		}
	})
}
