package natsapi

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
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
	ce := newCloudEvents()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, source, err := ce.fromStructured([]byte(tt.body))
			if tt.wantErr != "" {
				checkRefusal(t, err, tt.wantErr, tt.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("capture = %+v, want %+v", got, tt.want)
			}
			if source != "//ci.example/job 7" {
				t.Errorf("source = %q", source)
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
	ce := newCloudEvents()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, source, err := ce.fromBinary(func(name string) string {
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
			if got.Text != tt.wantText || got.ID != "a b" || source != "/café%" {
				t.Errorf("got %+v of %q", got, source)
			}
			if (tt.set["ce-time"] != "") != (got.OccurredAt != nil) {
				t.Errorf("occurred_at = %v", got.OccurredAt)
			}
		})
	}
}

func FuzzCloudEventStructured(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","data":{"text":"x"}}`))
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","datacontenttype":"text/plain","data":"x"}`))
	f.Add([]byte(`{"specversion":"1.0","type":"io.mneme.memory.captured.v1","id":"1","source":"s","data_base64":"e30="}`))
	f.Add([]byte(`{}`))
	ce := newCloudEvents()
	f.Fuzz(func(t *testing.T, in []byte) {
		got, source, err := ce.fromStructured(in)
		if err == nil && (got.ID == "" || source == "") {
			t.Fatalf("accepted %+v of %q", got, source)
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
	ce := newCloudEvents()
	f.Fuzz(func(t *testing.T, id, source, contentType, at string, data []byte) {
		h := map[string]string{"ce-specversion": "1.0", "ce-type": events.TypeCaptured.CloudEventType(), "ce-id": id,
			"ce-source": source, "content-type": contentType, "ce-time": at}
		_, from, err := ce.fromBinary(func(n string) string { return h[n] }, data)
		if err != nil {
			if memory.CodeOf(err) != memory.CodeInvalid {
				t.Fatalf("code %s: %v", memory.CodeOf(err), err)
			}
			return
		}
		if plain, err := url.PathUnescape(source); err != nil || plain != from {
			t.Fatalf("source %q became %q", source, from)
		}
	})
}
