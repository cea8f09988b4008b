package events

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

func TestFromStructured(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	earlier := at.Add(-time.Hour)
	head := `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"e-1","source":"//ci.example/job 7","subject":"ignored","time":"2026-01-02T03:04:05Z","tenant":"x",`
	tests := map[string]struct {
		body    string
		want    memory.Capture
		wantErr string
		code    memory.Code
	}{
		"object":        {body: head + `"data":{"text":"hi","kind":"fact","id":"mine"}}`, want: memory.Capture{ID: "e-1", Text: "hi", Kind: "fact", OccurredAt: &at}},
		"own time wins": {body: head + `"data":{"text":"hi","occurred_at":"2026-01-02T02:04:05Z"}}`, want: memory.Capture{ID: "e-1", Text: "hi", OccurredAt: &earlier}},
		"string":        {body: head + `"data":"plain \u00e9"}`, want: memory.Capture{ID: "e-1", Text: "plain é", OccurredAt: &at}},
		"string that is JSON stays text": {body: head + `"datacontenttype":"text/plain","data":"{\"text\":\"x\"}"}`,
			want: memory.Capture{ID: "e-1", Text: `{"text":"x"}`, OccurredAt: &at}},
		"base64 text":         {body: head + `"datacontenttype":"text/plain","data_base64":"aGk="}`, want: memory.Capture{ID: "e-1", Text: "hi", OccurredAt: &at}},
		"base64 JSON":         {body: head + `"datacontenttype":"application/json","data_base64":"` + base64.StdEncoding.EncodeToString([]byte(`{"text":"b"}`)) + `"}`, want: memory.Capture{ID: "e-1", Text: "b", OccurredAt: &at}},
		"both":                {body: head + `"data":"x","data_base64":"aGk="}`, wantErr: "not both"},
		"bad base64":          {body: head + `"data_base64":"%"}`, wantErr: "base64"},
		"unknown field":       {body: head + `"data":{"text":"hi","txet":1}}`, wantErr: `"txet"`},
		"content type":        {body: head + `"datacontenttype":"image/png","data_base64":"aGk="}`, wantErr: "image/png"},
		"broken content type": {body: head + `"datacontenttype":"a/b; =","data_base64":"aGk="}`, wantErr: "content type"},
		"invalid UTF-8":       {body: head + `"datacontenttype":"text/plain","data_base64":"/w=="}`, wantErr: "UTF-8"},
		"no data":             {body: head + `"x":1}`, wantErr: "empty"},
		"version":             {body: `{"specversion":"0.3","type":"io.mneme.memory.captured.v1","id":"1","source":"s"}`, wantErr: "specversion"},
		"no id":               {body: `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","source":"s"}`, wantErr: "no id"},
		"no source":           {body: `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"s"}`, wantErr: "no source"},
		"foreign type":        {body: `{"specversion":"1.0","type":"io.mneme.memory.forgotten.v1","id":"1","source":"s","data":"x"}`, wantErr: "not something to remember"},
		"control characters":  {body: `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"a\u0007","data":"x"}`, wantErr: "control"},
		"long source":         {body: `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"` + strings.Repeat("s", 1025) + `","data":"x"}`, wantErr: "1025 bytes"},
		"bad time":            {body: `{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","time":"today","data":"x"}`, wantErr: "RFC 3339"},
		"not an object":       {body: `[1]`, wantErr: "must be an object"},
		"huge":                {body: strings.Repeat(" ", memory.MaxBatchBytes+1), wantErr: "at most", code: memory.CodeTooLarge},
	}
	ce := NewCloudEvents()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ce.FromStructured([]byte(tt.body))
			if tt.wantErr != "" {
				checkRefusal(t, err, tt.wantErr, tt.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Capture, tt.want) {
				t.Errorf("capture = %+v, want %+v", got.Capture, tt.want)
			}
			if got.ID != "e-1" || got.Source != "//ci.example/job 7" || !got.Time.Equal(at) {
				t.Errorf("attributes = %q %q %v", got.ID, got.Source, got.Time)
			}
		})
	}
}

func checkRefusal(t *testing.T, err error, want string, code memory.Code) {
	t.Helper()
	if code == "" {
		code = memory.CodeInvalid
	}
	if err == nil || memory.CodeOf(err) != code || !strings.Contains(err.Error(), want) {
		t.Fatalf("error = %v (%s), want %s with %q", err, memory.CodeOf(err), code, want)
	}
}

func TestFromBinary(t *testing.T) {
	base := map[string]string{"ce-specversion": "1.0", "ce-id": "a%20b", "ce-source": "/caf%C3%A9%25", "ce-type": "io.mneme.memory.captured.v1"}
	tests := map[string]struct {
		set      map[string]string
		data     string
		wantText string
		wantErr  string
	}{
		"text":                {data: "hello", wantText: "hello"},
		"capture, no type":    {data: ` {"text":"t"}`, wantText: "t"},
		"capture, typed":      {set: map[string]string{"ce-datacontenttype": "application/json; charset=utf-8"}, data: `{"text":"t"}`, wantText: "t"},
		"content-type":        {set: map[string]string{"content-type": "text/plain"}, data: `{"text":"t"}`, wantText: `{"text":"t"}`},
		"vendor JSON":         {set: map[string]string{"content-type": "application/vnd.x+json"}, data: `{"text":"v"}`, wantText: "v"},
		"broken object":       {data: `{"text":`, wantText: `{"text":`},
		"time":                {set: map[string]string{"ce-time": "2026-01-02T03:04:05%2B01:00"}, data: "x", wantText: "x"},
		"bad time":            {set: map[string]string{"ce-time": "noon"}, wantErr: "ce-time"},
		"bad time escape":     {set: map[string]string{"ce-time": "%zz"}, wantErr: "ce-time"},
		"bad escape":          {set: map[string]string{"ce-source": "100%"}, wantErr: "percent-encoded"},
		"long":                {set: map[string]string{"ce-source": strings.Repeat("s", 4000)}, wantErr: "4000 bytes"},
		"missing specversion": {set: map[string]string{"ce-specversion": ""}, wantErr: "specversion"},
		"not UTF-8":           {set: map[string]string{"ce-source": "%ff"}, wantErr: "UTF-8"},
	}
	ce := NewCloudEvents()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ce.FromBinary(func(name string) string {
				if v, ok := tt.set[name]; ok {
					return v
				}
				return base[name]
			}, []byte(tt.data))
			if tt.wantErr != "" {
				checkRefusal(t, err, tt.wantErr, "")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Capture.Text != tt.wantText || got.ID != "a b" || got.Capture.ID != "a b" || got.Source != "/café%" {
				t.Errorf("got %+v", got)
			}
			if (tt.set["ce-time"] != "") != (got.Capture.OccurredAt != nil) {
				t.Errorf("occurred_at = %v", got.Capture.OccurredAt)
			}
		})
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

func FuzzCloudEventStructured(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","data":{"text":"x"}}`))
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","datacontenttype":"text/plain","data":"x"}`))
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","data_base64":"e30="}`))
	f.Add([]byte(`{}`))
	ce := NewCloudEvents()
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := ce.FromStructured(in)
		if err == nil && (got.ID == "" || got.Source == "" || got.Capture.ID != got.ID) {
			t.Fatalf("accepted %+v", got)
		}
		if err != nil && memory.CodeOf(err) == memory.CodeInternal {
			t.Fatalf("internal: %v", err)
		}
	})
}

func FuzzCloudEventBinary(f *testing.F) {
	f.Add("id", "/src", "application/json", "2026-01-02T03:04:05Z", []byte(`{"text":"x"}`))
	f.Add("%41", "%", "", "", []byte("x"))
	f.Add("a", "b", "text/plain; charset=x", "x", []byte{0xff})
	ce := NewCloudEvents()
	f.Fuzz(func(t *testing.T, id, source, contentType, at string, data []byte) {
		h := map[string]string{"ce-specversion": "1.0", "ce-type": TypeCaptured.CloudEventType(), "ce-id": id,
			"ce-source": source, "content-type": contentType, "ce-time": at}
		got, err := ce.FromBinary(func(n string) string { return h[n] }, data)
		if err != nil {
			if memory.CodeOf(err) != memory.CodeInvalid {
				t.Fatalf("code %s: %v", memory.CodeOf(err), err)
			}
			return
		}
		if plain, err := url.PathUnescape(source); err != nil || plain != got.Source {
			t.Fatalf("source %q became %q", source, got.Source)
		}
	})
}
