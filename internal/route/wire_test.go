package route

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/memory"
)

// sent is what becomes of an argument on its way.
func sent[In, Out any](t *testing.T, m method[In, Out], in In) In {
	t.Helper()
	form := any(in)
	if m.encode != nil {
		form = m.encode(in)
	}
	raw, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.read(raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return out
}

// refusedAnyway are the fields of captures and revisions whose strings are names: what is
// no UTF-8 is refused there whatever it is read as.
const refusedAnyway = " ID Agent Kind Scope "

// broken sets every string to one that is no UTF-8, and everything else to what a careless
// form loses.
func broken(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("\xff\x00<&>\u2028" + strings.Repeat("\xc3", 3))
		if strings.Contains(refusedAnyway, " "+name+" ") {
			v.SetString("plain")
		}
	case reflect.Float64:
		v.SetFloat(0)
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*time.Time]() {
			at := time.Date(2026, 1, 2, 3, 4, 5, 1, time.UTC)
			v.Set(reflect.ValueOf(&at))
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		broken(v.Elem(), name)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.ValueOf(json.RawMessage("{ \xff not JSON")))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			broken(v.Index(i), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			broken(v.Field(i), v.Type().Field(i).Name)
		}
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

// The leader decides on what the caller sent, byte for byte: what cannot be read must not
// be mended on the way, and limits count bytes.
func TestCapturesTravelByteForByte(t *testing.T) {
	var c memory.Capture
	broken(reflect.ValueOf(&c).Elem(), "")
	c.DerivedFrom = []string{"a", ""}
	zero, empty := memory.Capture{}, memory.Capture{Tags: []string{}, DerivedFrom: []string{}, Metadata: json.RawMessage{}}
	for name, in := range map[string]captures{
		"broken":     {namespace: "n", items: []memory.Capture{c, zero, empty}, opt: api.CaptureOptions{Origin: "import", Source: []string{"\xff", "", "x"}}, wait: "accepted"},
		"no sources": {items: []memory.Capture{zero}},
		"no items":   {items: []memory.Capture{}, opt: api.CaptureOptions{Source: []string{}}},
	} {
		if out := sent(t, capture, in); !reflect.DeepEqual(in, out) {
			t.Errorf("%s:\nsent %#v\ngot  %#v", name, in, out)
		}
	}
	if n := reflect.TypeFor[api.CaptureOptions]().NumField(); n != 2 {
		t.Errorf("api.CaptureOptions has %d fields: capturesForm carries 2", n)
	}
}

func TestRevisionsTravelByteForByte(t *testing.T) {
	var all memory.Revision
	broken(reflect.ValueOf(&all).Elem(), "")
	noTags, noBytes, none, nothing := []string{}, json.RawMessage{}, []string(nil), ""
	for name, rev := range map[string]memory.Revision{
		"broken": all,
		"nil":    {},
		"empty":  {Text: &nothing, Tags: &noTags, DerivedFrom: &noTags, Metadata: &noBytes},
	} {
		in := revision{recordCall{"n", "as", "id", 3}, rev, "key"}
		if out := sent(t, revise, in); !reflect.DeepEqual(in, out) {
			t.Errorf("%s:\nsent %#v\ngot  %#v", name, in, out)
		}
	}
	// A list that is there and nil takes away what the record has, as an empty one does.
	if out := sent(t, revise, revision{rev: memory.Revision{Tags: &none, DerivedFrom: &none}}); out.rev.Tags == nil || out.rev.DerivedFrom == nil {
		t.Errorf("lists that are there are gone: %#v", out.rev)
	}
}

func TestWhatJSONCannotSayIsInvalid(t *testing.T) {
	nan, far := math.NaN(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []memory.Capture{{Importance: &nan}, {OccurredAt: &far}} {
		_, err := json.Marshal(encodeCaptures(captures{items: []memory.Capture{c}}))
		if err == nil || !cannotBeSent(err) {
			t.Errorf("%v", err)
		}
	}
}

func TestSourcesThatAreNotThoseOfTheItemsAreRefused(t *testing.T) {
	raw, err := json.Marshal(encodeCaptures(captures{items: make([]memory.Capture, 2), opt: api.CaptureOptions{Source: []string{"x"}}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeCaptures(raw); err == nil {
		t.Error("one source for two captures was taken")
	}
}
