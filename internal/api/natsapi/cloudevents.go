package natsapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/memory"
)

// Content types of a CloudEvent in JSON form and of plain JSON.
const (
	contentTypeCloudEvent = "application/cloudevents+json"
	contentTypeJSON       = "application/json"
)

// maxAttribute bounds one CloudEvents attribute, in bytes.
const maxAttribute = 1024

// wireEvent is a CloudEvent in the JSON format of CloudEvents 1.0.2. Extension
// attributes are allowed and ignored.
type wireEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            *time.Time      `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Data            json.RawMessage `json:"data"`
	DataBase64      *string         `json:"data_base64"`
}

// cloudEvents reads CloudEvents that carry memories, in structured or binary mode,
// as a capture and its source. The capture has the event's id and, where the data
// names no time of its own, the event's time. It is immutable. Errors are
// *memory.Error with CodeInvalid or CodeTooLarge.
type cloudEvents struct {
	envelope api.JSONDecoder[wireEvent]
	capture  api.JSONDecoder[memory.Capture]
}

func newCloudEvents() *cloudEvents {
	return &cloudEvents{envelope: api.NewOpenJSONDecoder[wireEvent](), capture: api.NewJSONDecoder[memory.Capture]()}
}

// fromStructured reads an event in structured mode: body is the whole event as
// a JSON object. Its data is a capture, or a JSON string that is the text.
func (c *cloudEvents) fromStructured(body []byte) (memory.Capture, string, error) {
	if len(body) > memory.MaxBatchBytes {
		return memory.Capture{}, "", memory.Errorf(memory.CodeTooLarge, "the CloudEvent has %d bytes, at most %d are allowed", len(body), memory.MaxBatchBytes)
	}
	w, err := c.envelope.Decode(body)
	if err != nil {
		return memory.Capture{}, "", err
	}
	if err := w.check(); err != nil {
		return memory.Capture{}, "", err
	}
	data, contentType := []byte(w.Data), w.DataContentType
	switch {
	case w.DataBase64 != nil && w.Data != nil:
		return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "a CloudEvent has data or data_base64, not both")
	case w.DataBase64 != nil:
		data, err = base64.StdEncoding.DecodeString(*w.DataBase64)
		if err != nil {
			return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "data_base64 is not base64: %w", err)
		}
	case len(data) > 0 && data[0] == '"':
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "data is not a string: %w", err)
		}
		data, contentType = []byte(text), "text/plain"
	case contentType == "":
		contentType = contentTypeJSON
	}
	return c.finish(w, contentType, data)
}

// fromBinary reads an event in binary mode: attributes come as headers named
// ce-<attribute>, percent-encoded, and data is the body. header returns the
// value of a header, "" if there is none; names are given in lower case.
func (c *cloudEvents) fromBinary(header func(name string) string, data []byte) (memory.Capture, string, error) {
	var w wireEvent
	for _, a := range []struct {
		name string
		into *string
	}{{"ce-specversion", &w.SpecVersion}, {"ce-id", &w.ID}, {"ce-source", &w.Source}, {"ce-type", &w.Type}} {
		v, err := decodeHeader(a.name, header(a.name))
		if err != nil {
			return memory.Capture{}, "", err
		}
		*a.into = v
	}
	if v := header("ce-time"); v != "" {
		plain, err := decodeHeader("ce-time", v)
		if err != nil {
			return memory.Capture{}, "", err
		}
		t, perr := time.Parse(time.RFC3339, plain)
		if perr != nil {
			return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "ce-time %.60q is not an RFC 3339 time", plain)
		}
		w.Time = &t
	}
	if err := w.check(); err != nil {
		return memory.Capture{}, "", err
	}
	contentType := header("ce-datacontenttype")
	if contentType == "" {
		contentType = header("content-type")
	}
	return c.finish(w, contentType, data)
}

// decodeHeader undoes the percent-encoding of the HTTP and NATS bindings.
func decodeHeader(name, v string) (string, error) {
	if len(v) > 3*maxAttribute {
		return "", memory.Errorf(memory.CodeInvalid, "header %s has %d bytes, at most %d are allowed", name, len(v), 3*maxAttribute)
	}
	plain, err := url.PathUnescape(v)
	if err != nil {
		return "", memory.Errorf(memory.CodeInvalid, "header %s is not percent-encoded: %w", name, err)
	}
	return plain, nil
}

// check validates the attributes that every memory event needs.
func (w *wireEvent) check() error {
	if w.SpecVersion != "1.0" {
		return memory.Errorf(memory.CodeInvalid, "CloudEvents specversion %.20q is not supported", w.SpecVersion).
			WithHint("specversion must be 1.0")
	}
	for _, a := range []struct{ name, value string }{
		{"id", w.ID}, {"source", w.Source}, {"type", w.Type},
	} {
		if a.value == "" {
			return memory.Errorf(memory.CodeInvalid, "the CloudEvent has no %s", a.name)
		}
		if len(a.value) > maxAttribute {
			return memory.Errorf(memory.CodeInvalid, "CloudEvents %s has %d bytes, at most %d are allowed", a.name, len(a.value), maxAttribute)
		}
		if !utf8.ValidString(a.value) || strings.ContainsFunc(a.value, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return memory.Errorf(memory.CodeInvalid, "CloudEvents %s contains control characters or is not UTF-8", a.name)
		}
	}
	if want := events.TypeCaptured.CloudEventType(); w.Type != want {
		return memory.Errorf(memory.CodeInvalid, "CloudEvents type %.80q is not something to remember", w.Type).
			WithHint("the type must be %s", want)
	}
	return nil
}

func (c *cloudEvents) finish(w wireEvent, contentType string, data []byte) (memory.Capture, string, error) {
	item, err := c.content(contentType, data)
	if err != nil {
		return memory.Capture{}, "", err
	}
	item.ID = w.ID
	if item.OccurredAt == nil {
		item.OccurredAt = w.Time
	}
	return item, w.Source, nil
}

// content reads data as a capture or as text. Without a content type an object
// is a capture.
func (c *cloudEvents) content(contentType string, data []byte) (memory.Capture, error) {
	kind := ""
	if contentType != "" {
		media, _, err := mime.ParseMediaType(contentType)
		if err != nil {
			return memory.Capture{}, memory.Errorf(memory.CodeInvalid, "content type %.80q: %w", contentType, err)
		}
		kind = media
	}
	trimmed := bytes.TrimSpace(data)
	switch {
	case kind == contentTypeJSON || strings.HasSuffix(kind, "+json"),
		kind == "" && len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed):
		return c.capture.Decode(data)
	case kind == "", strings.HasPrefix(kind, "text/"):
		if !utf8.Valid(data) {
			return memory.Capture{}, memory.Errorf(memory.CodeInvalid, "text is not valid UTF-8")
		}
		return memory.Capture{Text: string(data)}, nil
	}
	return memory.Capture{}, memory.Errorf(memory.CodeInvalid, "content type %.80q is not supported", contentType).
		WithHint("use application/json for a capture or text/plain for its text")
}
