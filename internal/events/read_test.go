package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"
)

func sampleRead() Read {
	return Read{Purpose: ReadInject, Linear: true, Seq: 0x0102030405060708, Index: 0x090a0b0c, Query: testMAC(0x80),
		Given: []Given{{testID(0x30), 1}, {testID(0x40), 0xfffffffe}}}
}

func TestGoldenRead(t *testing.T) {
	r := sampleRead()
	b := r.Encode()
	golden(t, "read", b)
	if got, err := DecodeRead(b); err != nil || !reflect.DeepEqual(got, r) {
		t.Fatalf("%+v, %v", got, err)
	}
	eachCut(b, func(n int, cut []byte) {
		if _, err := DecodeRead(cut); !errors.Is(err, ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	})
	edit := func(at int, to byte) []byte {
		out := slices.Clone(b)
		out[at] = to
		return out
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"a newer purpose":  {edit(0, byte(ReadInject)+1), ErrNewer},
		"no purpose":       {edit(0, 0), ErrMalformed},
		"an unknown flag":  {edit(1, 2), ErrMalformed},
		"bytes behind":     {append(slices.Clone(b), 0), ErrMalformed},
		"a huge count":     {binary.AppendUvarint(slices.Clone(b[:30]), 1<<60), ErrMalformed},
		"a huge version":   {binary.AppendUvarint(append(slices.Clone(b[:30]), append([]byte{1}, b[31:47]...)...), 1<<40), ErrMalformed},
		"a count too long": {append(slices.Clone(b[:30]), 0x80, 0), ErrMalformed},
	} {
		if got, err := DecodeRead(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	r := sampleRead()
	f.Add(r.Encode())
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRead(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if again := r.Encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x becomes %x", b, again)
		}
	})
}
