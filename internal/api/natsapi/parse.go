package natsapi

import (
	"bytes"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/memory"
)

// waitHeader says how far a capture must have come before it is answered.
const waitHeader = "Mneme-Wait"

// parsed is a capture message before it is written.
type parsed struct {
	principal        string // who published it, by its account
	namespace, agent string
	item             memory.Capture
	source           string
	wait             memory.Wait
}

// parser reads capture messages. It is immutable.
type parser struct {
	cloudEvents *cloudEvents
	captures    api.JSONDecoder[memory.Capture]
}

func newParser() *parser {
	return &parser{cloudEvents: newCloudEvents(), captures: api.NewJSONDecoder[memory.Capture]()}
}

// header finds a header whatever its case, as HTTP does and NATS does not.
func header(h nats.Header, name string) string {
	if v := h.Get(name); v != "" {
		return v
	}
	for k, vs := range h {
		if len(vs) > 0 && strings.EqualFold(k, name) {
			return vs[0]
		}
	}
	return ""
}

// refusedHeaders are prefixes, in lower case, of what JetStream would do with a
// message and Mneme's log does not: better refused than ignored.
func refusedHeaders() []string {
	return []string{"nats-expected-", "nats-rollup", "nats-ttl", "nats-batch-", "nats-schedule", "nats-incr"}
}

// parse reads a message. The first error decides; what was read until then is
// returned with it. Errors are *memory.Error.
func (p *parser) parse(m *nats.Msg) (parsed, error) {
	out, err := addressed(m.Subject)
	if err != nil {
		return out, err
	}
	for _, name := range headerNames(m.Header) {
		for _, prefix := range refusedHeaders() {
			if strings.HasPrefix(strings.ToLower(name), prefix) {
				return out, memory.Errorf(memory.CodeInvalid, "header %.60s is not supported for memories", name).
					WithHint("the order of the log belongs to the node; use If-Match on a record over REST")
			}
		}
	}
	out.wait = memory.Wait(header(m.Header, waitHeader))
	switch out.wait {
	case "", memory.WaitAccepted, memory.WaitApplied, memory.WaitSearchable:
	default:
		return out, memory.Errorf(memory.CodeInvalid, "%s %.40q is unknown", waitHeader, string(out.wait)).
			WithHint("levels are accepted, applied and searchable")
	}
	out.item, out.source, err = p.body(m)
	if err != nil {
		return out, err
	}
	if a := out.item.Agent; a != "" && a != out.agent {
		return out, memory.Errorf(memory.CodeInvalid, "the subject says agent %q, the body says %.70q", out.agent, a).
			WithHint("leave the agent out of the body")
	}
	out.item.Agent = out.agent
	if id := header(m.Header, nats.MsgIdHdr); id != "" {
		out.item.ID = id
	}
	return out, nil
}

// addressed reads what the subject says.
func addressed(subject string) (out parsed, err error) {
	principal, said, err := events.ParseSpoken(subject)
	if err != nil {
		return out, err
	}
	out.principal = principal
	out.namespace, out.agent, err = events.ParseCaptureSubject(said)
	return out, err
}

func headerNames(h nats.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same message always gives the same error
	return names
}

// body decides what the body is: ce- headers or a content type say so; else an
// object with text or specversion is JSON; any other object is refused; else it is
// text.
func (p *parser) body(m *nats.Msg) (item memory.Capture, source string, err error) {
	for name := range m.Header {
		if len(name) > 3 && strings.EqualFold(name[:3], "ce-") {
			return p.cloudEvents.fromBinary(func(n string) string { return header(m.Header, n) }, m.Data)
		}
	}
	if contentType := header(m.Header, "content-type"); contentType != "" {
		return p.typed(contentType, m.Data)
	}
	switch sniff(m.Data) {
	case "specversion":
		return p.cloudEvents.fromStructured(m.Data)
	case "text":
		item, err = p.captures.Decode(m.Data)
		return item, "", err
	}
	if trimmed := bytes.TrimSpace(m.Data); len(trimmed) > 0 && trimmed[0] == '{' {
		return item, "", notACapture(trimmed)
	}
	return plainText(m.Data)
}

// notACapture refuses what looks like JSON and is no capture: models write
// broken JSON, and stored as text it would never be noticed.
func notACapture(data []byte) error {
	const hint = "a capture is an object with \"text\"; to store this as it stands, send the header Content-Type: text/plain"
	if err := api.CheckJSON(data); err != nil {
		return memory.AsError(err).WithHint(hint)
	}
	return memory.Errorf(memory.CodeInvalid, "the object has neither \"text\" nor \"specversion\"").WithHint(hint)
}

func (p *parser) typed(contentType string, data []byte) (memory.Capture, string, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "content type %.80q: %w", contentType, err)
	}
	switch {
	case kind == "application/cloudevents" || kind == contentTypeCloudEvent:
		return p.cloudEvents.fromStructured(data)
	case kind == contentTypeJSON:
		item, err := p.captures.Decode(data)
		return item, "", err
	case strings.HasPrefix(kind, "text/"):
		return plainText(data)
	}
	return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "content type %.80q is not supported", contentType).
		WithHint("use application/json, application/cloudevents+json or text/plain")
}

func plainText(data []byte) (memory.Capture, string, error) {
	if !utf8.Valid(data) {
		return memory.Capture{}, "", memory.Errorf(memory.CodeInvalid, "the text is not valid UTF-8")
	}
	return memory.Capture{Text: string(data)}, "", nil
}

// sniff looks whether data is a JSON object that wants to be a CloudEvent
// ("specversion") or a capture ("text"); "" if it is neither.
func sniff(data []byte) string {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return ""
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(trimmed, &top) != nil {
		return ""
	}
	for _, name := range []string{"specversion", "text"} {
		if _, ok := top[name]; ok {
			return name
		}
	}
	return ""
}
