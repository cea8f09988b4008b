package projections

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// TestNilAndEmptyContributions: nothing was derived of the one, because its key
// is gone; the other was opened. Bitmaps of agent, kind and day are for the
// second only, so replicas must tell them apart.
func TestNilAndEmptyContributions(t *testing.T) {
	var none *Contribution
	if b := none.append(nil); len(b) != 0 {
		t.Errorf("nil is %x", b)
	}
	for name, want := range map[string]*Contribution{
		"nil": nil, "empty": {}, "code": {Code: "unreadable"}, "uri": {URI: "a/b"},
		"about a space": {SpaceVectors: SpaceVectors{Space: SpaceKey{1}}},
		"no terms":      {Terms: []text.Term{}, Lengths: [text.NumFields]uint32{0, 1}},
	} {
		got, err := decodeContribution(want.append(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s comes back as %+v, %v", name, got, err)
		}
	}
}

func TestContributionRefusals(t *testing.T) {
	tag := func(value string) string { return string(Attr(AttrTag, value)) }
	section := func(tag byte, v string) string { return string(appendBytes([]byte{tag}, []byte(v))) }
	for name, c := range map[string]struct {
		b    string
		want error
	}{
		"unknown section":            {section(sectionURI, "a") + section(byte(len(sections))+1, "x"), events.ErrNewer},
		"section 0":                  {section(0, "x"), events.ErrMalformed},
		"section twice":              {section(sectionURI, "a") + section(sectionURI, "b"), events.ErrMalformed},
		"sections out of order":      {section(sectionURI, "a") + section(sectionCode, "b"), events.ErrMalformed},
		"empty section":              {section(sectionURI, ""), events.ErrMalformed},
		"empty section beside":       {section(sectionAttributes, "") + section(sectionURI, "a"), events.ErrMalformed},
		"cut":                        {section(sectionURI, "abc")[:3], events.ErrMalformed},
		"no length":                  {"\x04", events.ErrMalformed},
		"attributes out of order":    {section(sectionAttributes, tag("b")+tag("a")), events.ErrMalformed},
		"attribute twice":            {section(sectionAttributes, tag("a")+tag("a")), events.ErrMalformed},
		"attribute cut":              {section(sectionAttributes, tag("ab")[:3]), events.ErrMalformed},
		"attribute of no field":      {section(sectionAttributes, "\x00\x01a"), events.ErrMalformed},
		"text with bytes behind":     {section(sectionText, string(text.AppendDoc(nil, [text.NumFields]uint32{}, nil))+"\x00"), events.ErrMalformed},
		"text of terms out of order": {section(sectionText, "\x03\x00\x00\x00\x02\x00\x00\x01b\x01\x01a\x01"), events.ErrMalformed},
		"vectors without a space":    {section(sectionVectors, strings.Repeat("\x00", 8)+"\x01"), events.ErrMalformed},
		"vectors of a cut space":     {section(sectionVectors, "\x01\x02"), events.ErrMalformed},
		"uri longer than a key can":  {section(sectionURI, strings.Repeat("a", 1<<16)), events.ErrMalformed},
	} {
		if got, err := decodeContribution([]byte(c.b)); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

// TestLongAttributes: keys are bounded, and values that differ far behind stay
// different.
func TestLongAttributes(t *testing.T) {
	long := strings.Repeat("v", maxAttrValue)
	if got := Attr(AttrTag, long); got.Value() != long || got.Field() != AttrTag {
		t.Errorf("a value of %d bytes is cut", len(long))
	}
	a, b := Attr(AttrTag, long+"va"), Attr(AttrTag, long+"vb")
	if a == b || len(a) != 2+cutAttrValue || len(b) != len(a) {
		t.Errorf("long values: %d and %d bytes, equal %v", len(a), len(b), a == b)
	}
	if k, rest := cutAttr([]byte(a)); k != a || len(rest) != 0 {
		t.Error("a cut value does not come back")
	}
	for k, want := range map[AttrKey]string{Attr(AttrTag, "ops"): `tag "ops"`, "": "none", AttrKey("\xff\x01x"): `"x"`} {
		if k.String() != want {
			t.Errorf("%q prints as %s", string(k), k)
		}
	}
}
