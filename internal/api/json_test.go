package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

func checkRefusal(t *testing.T, err error, want string, code memory.Code) {
	t.Helper()
	if code == "" {
		code = memory.CodeInvalid
	}
	if err == nil || memory.CodeOf(err) != code || !strings.Contains(err.Error(), want) {
		t.Fatalf("error = %v (%s), want %s with %q", err, memory.CodeOf(err), code, want)
	}
}

type jsonTarget struct {
	S     string             `json:"s"`
	N     int                `json:"n"`
	F     *float64           `json:"f"`
	B     bool               `json:"b"`
	At    *time.Time         `json:"at"`
	List  []string           `json:"list"`
	Deep  []jsonDeep         `json:"deep"`
	Map   map[string]*string `json:"map"`
	Raw   json.RawMessage    `json:"raw"`
	Any   any                `json:"any"`
	Plain string
	Skip  string `json:"-"`
	jsonEmbedded
}

type jsonDeep struct {
	X int `json:"x"`
}

type jsonEmbedded struct {
	E string `json:"e"`
}

func TestJSONDecoder(t *testing.T) {
	tests := map[string]struct{ in, wantErr string }{
		"all":                {`{"s":"a","n":-3,"f":1.5e2,"b":true,"at":"2026-01-02T03:04:05Z","list":["x"],"deep":[{"x":1},{"x":2}],"map":{"k":null,"l":"v"},"raw":{"a":[1,{"a":1}],"a":2},"any":[1],"e":"y","Plain":"p"}`, ""},
		"nulls":              {`{"s":null,"n":null,"f":null,"list":null,"deep":null}`, ""},
		"space":              {" {\t\"s\" :\n\"a\" , \"n\" : 1 } \r\n", ""},
		"escaped name":       {`{"\u0073":"a"}`, ""},
		"empty":              {"  ", "empty"},
		"null":               {`null`, "must be an object, not null"},
		"scalar":             {`"x"`, "must be an object, not a string"},
		"array":              {`[]`, "must be an object, not an array"},
		"unknown":            {`{"x":1}`, `"x" at byte 1 is not a known field`},
		"case":               {`{"S":"a"}`, `"S" at byte 1 is not a known field`},
		"skipped":            {`{"Skip":"a"}`, "not a known field"},
		"deep unknown":       {`{"deep":[{"x":1},{"y":1}]}`, `"deep[1].y" at byte 18 is not a known field`},
		"twice":              {`{"s":"a","\u0073":"b"}`, `"s" at byte 9 appears twice`},
		"twice in a map":     {`{"map":{"a":"1","a":"2"}}`, `"map.a" at byte 16 appears twice`},
		"string":             {`{"s":1}`, `"s" at byte 5 must be a string, not 1`},
		"int":                {`{"n":1.5}`, `"n" at byte 5 must be a whole number, not 1.5`},
		"int range":          {`{"n":99999999999999999999}`, "must be a whole number"},
		"int string":         {`{"n":"1"}`, "must be a whole number, not a string"},
		"float":              {`{"f":true}`, "must be a number, not true"},
		"float range":        {`{"f":1e999}`, "must be a number"},
		"bool":               {`{"b":0}`, "must be true or false, not 0"},
		"time":               {`{"at":"yesterday"}`, `"at" at byte 6 is not an RFC 3339 time`},
		"time type":          {`{"at":5}`, "must be a time, not 5"},
		"list":               {`{"list":"x"}`, "must be an array, not a string"},
		"list element":       {`{"list":["a",{}]}`, `"list[1]" at byte 13 must be a string, not an object`},
		"object":             {`{"deep":[[]]}`, "must be an object, not an array"},
		"trailing":           {`{} {}`, "something follows the value at byte 2"},
		"syntax":             {`{"s":}`, "malformed JSON at byte 6"},
		"cut":                {`{"s":"a`, "it ends after 7 bytes"},
		"not UTF-8":          {"{\"s\":\"\xff\"}", "UTF-8"},
		"deep nesting":       {`{"raw":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "malformed"},
		"moderate nesting":   {`{"raw":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, ""},
		"brace in string":    {`{"s":"}\\\"{"}`, ""},
		"lone surrogate":     {`{"s":"\ud800"}`, ""},
		"empty nested":       {`{"list":[],"deep":[{}],"map":{}}`, ""},
		"number then spaces": {`{"n":1 ,"s":"a"}`, ""},
	}
	d := NewJSONDecoder[jsonTarget]()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := d.Decode([]byte(tt.in))
			if tt.wantErr != "" {
				checkRefusal(t, err, tt.wantErr, "")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want jsonTarget
			if err := json.Unmarshal([]byte(tt.in), &want); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v (%v)", got, want, err)
			}
		})
	}
}

func TestJSONDecoderHintNamesTheKnownFields(t *testing.T) {
	_, err := NewJSONDecoder[jsonDeep]().Decode([]byte(`{"y":1}`))
	if hint := memory.AsError(err).Hint; hint != "known fields are x" {
		t.Errorf("hint = %q", hint)
	}
}

func TestNewJSONDecoderPanicsForWhatHasNoShape(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewJSONDecoder[struct{ C chan int }]()
}

func FuzzJSONDecoder(f *testing.F) {
	for _, s := range []string{`{"text":"a","tags":["x"],"importance":0.5,"occurred_at":"2026-01-02T03:04:05Z","metadata":{"a":{}}}`,
		`{"text":1}`, `{"a":`, `[]`, `{"text":"\ud83d\ude00","text":2}`, `{"derived_from":[null]}`, "null", `{"":0}`, `{"importance":-0}`} {
		f.Add([]byte(s))
	}
	d := NewJSONDecoder[memory.Capture]()
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := d.Decode(in)
		if err != nil {
			if memory.CodeOf(err) != memory.CodeInvalid {
				t.Fatalf("code %s: %v", memory.CodeOf(err), err)
			}
			return
		}
		out, err := json.Marshal(got)
		if err != nil {
			return // metadata that only MarshalJSON minds; validated elsewhere
		}
		if _, err := d.Decode(out); err != nil {
			t.Fatalf("what was read cannot be read again: %v\n%s", err, out)
		}
	})
}

// TestLongArrayIsNotHeldToBeCounted: an array of four million ones took 0.3 GB before
// it was refused for its length.
func TestLongArrayIsNotHeldToBeCounted(t *testing.T) {
	array := []byte("[" + strings.Repeat("1,", 999_999) + "1]")
	if allocs := testing.AllocsPerRun(1, func() {
		if elements, n := Elements(array, 1000); n != 1_000_000 || len(elements) != 1000 {
			t.Errorf("%d elements of %d", len(elements), n)
		}
	}); allocs > 20 {
		t.Errorf("%v allocations", allocs)
	}
}

func FuzzElements(f *testing.F) {
	for _, s := range []string{`[]`, ` [ ] `, `[1,2]`, `[ "a,]\"" , {"b":[1,{"c":"}"}]} , null ]`, `[[],[[]],-1e5,true]`, "[\n1\t,\r{} ]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want []json.RawMessage
		if CheckJSON(data) != nil || bytes.TrimSpace(data)[0] != '[' || json.Unmarshal(data, &want) != nil {
			return
		}
		got, n := Elements(data, 3)
		if n != len(want) || len(got) != min(3, n) {
			t.Fatalf("%d of %d elements, %d are there", len(got), n, len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("element %d is %q, want %q", i, got[i], want[i])
			}
		}
	})
}
