package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"
)

func sampleGraph() []GraphStep {
	return []GraphStep{
		{Kind: GraphEntitiesCreated, Entities: []GraphEntity{{"Alice", "person", []string{"likes Go", ""}}, {"memnode", "", nil}}},
		{Kind: GraphRelationsCreated, Relations: []GraphRelation{{"Alice", "memnode", "works on"}, {"Alice", "Ghost", ""}}},
		{Kind: GraphObservationsAdded, Added: []GraphAdded{{GraphRef{N: 1}, []string{"likes 日本語"}}, {GraphRef{0x0102030405060708, 0x090a0b0c, 0x0d0e0f10}, nil}}},
		{Kind: GraphEntitiesDeleted, Ended: []GraphRef{{7, 1, 0}}, Severed: []GraphRef{{7, 1, 3}, {N: 2}}},
		{Kind: GraphObservationsDeleted, Ended: []GraphRef{{9, 0, 4}}},
		{Kind: GraphRelationsDeleted},
	}
}

func TestGoldenGraph(t *testing.T) {
	b := EncodeGraph(sampleGraph())
	golden(t, "graph", b)
	if got, err := DecodeGraph(b); err != nil || !reflect.DeepEqual(got, sampleGraph()) {
		t.Fatalf("%+v, %v", got, err)
	}
	eachCut(b, func(n int, cut []byte) {
		if _, err := DecodeGraph(cut); !errors.Is(err, ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	})
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"a newer kind":     {[]byte{1, byte(GraphRelationsDeleted) + 1, 0}, ErrNewer},
		"no kind":          {[]byte{1, 0, 0}, ErrMalformed},
		"bytes behind":     {append(slices.Clone(b), 0), ErrMalformed},
		"a huge count":     {binary.AppendUvarint([]byte{1, byte(GraphEntitiesCreated)}, 1<<60), ErrMalformed},
		"a huge string":    {binary.AppendUvarint([]byte{1, byte(GraphRelationsCreated), 1}, 1<<60), ErrMalformed},
		"a count too long": {[]byte{0x80, 0}, ErrMalformed},
	} {
		if got, err := DecodeGraph(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

// TestGraphRefsSortByAge: the bytes of references sort as the references do, and one of this
// very event becomes that event's.
func TestGraphRefsSortByAge(t *testing.T) {
	refs := []GraphRef{{}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1 << 31}, {1, 1, 0}, {1 << 40, 0, 0}}
	for i, a := range refs {
		for j, b := range refs {
			if a.Before(b) != (i < j) || (bytes.Compare(a.Append(nil), b.Append(nil)) < 0) != (i < j) {
				t.Errorf("%v and %v", a, b)
			}
		}
		if DecodeGraphRef(a.Append(nil)) != a {
			t.Errorf("%v comes back otherwise", a)
		}
	}
	if got := (GraphRef{N: 3}).At(5, 6); got != (GraphRef{5, 6, 3}) {
		t.Error(got)
	}
	if got := (GraphRef{1, 2, 3}).At(5, 6); got != (GraphRef{1, 2, 3}) {
		t.Error(got)
	}
}

func FuzzGraph(f *testing.F) {
	f.Add(EncodeGraph(sampleGraph()))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		steps, err := DecodeGraph(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if again := EncodeGraph(steps); !bytes.Equal(again, b) {
			t.Fatalf("%x becomes %x", b, again)
		}
	})
}
