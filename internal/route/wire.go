package route

import (
	"encoding/json"
	"fmt"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/memory"
)

// Arguments of calls. Most are their own JSON. JSON cannot say what captures and
// revisions hold: strings that are no UTF-8, which the leader has to refuse rather than
// find mended; metadata byte for byte, whose size counts; empty apart from nil.

type recordCall struct {
	Namespace string `json:"namespace"`
	As        string `json:"as"`
	ID        string `json:"id"`
	IfMatch   int    `json:"if_match,omitempty"`
}

type graphChange struct {
	Namespace string             `json:"namespace"`
	Change    memory.GraphChange `json:"change"`
}

type readNote struct {
	Namespace string          `json:"namespace"`
	Note      events.ReadNote `json:"note"`
}

type namespaceChange struct {
	Name  string                `json:"name"`
	Patch memory.PatchNamespace `json:"patch"`
}

type embedderChange struct {
	Namespace string                `json:"namespace"`
	Request   memory.SwitchEmbedder `json:"request"`
}

type embedderChanged struct {
	Status memory.EmbedderStatus `json:"status"`
	Began  bool                  `json:"began"`
}

// captures is the argument of a capture.
type captures struct {
	namespace string
	items     []memory.Capture
	opt       api.CaptureOptions
	wait      memory.Wait
}

type capturesForm struct {
	Namespace string        `json:"namespace"`
	Items     []captureForm `json:"items"`
	Origin    memory.Origin `json:"origin,omitempty"`
	Source    [][]byte      `json:"source"`
	Wait      memory.Wait   `json:"wait,omitempty"`
}

// captureForm is a capture. Its own fields are in the place of those of the same name.
type captureForm struct {
	memory.Capture
	Text         []byte   `json:"text"`
	Role         []byte   `json:"role,omitempty"`
	URI          []byte   `json:"uri,omitempty"`
	Tags         [][]byte `json:"tags"`
	Conversation []byte   `json:"conversation,omitempty"`
	Subject      []byte   `json:"subject,omitempty"`
	DerivedFrom  []string `json:"derived_from"`
	Metadata     []byte   `json:"metadata"`
}

func encodeCaptures(in captures) any {
	out := capturesForm{Namespace: in.namespace, Origin: in.opt.Origin, Source: bytesOf(in.opt.Source), Wait: in.wait, Items: make([]captureForm, len(in.items))}
	for i, c := range in.items {
		out.Items[i] = captureForm{Capture: c, Text: []byte(c.Text), Role: []byte(c.Role), URI: []byte(c.URI), Tags: bytesOf(c.Tags),
			Conversation: []byte(c.Conversation), Subject: []byte(c.Subject), DerivedFrom: c.DerivedFrom, Metadata: c.Metadata}
	}
	return out
}

func decodeCaptures(raw json.RawMessage) (captures, error) {
	var in capturesForm
	if err := json.Unmarshal(raw, &in); err != nil {
		return captures{}, err
	}
	if in.Source != nil && len(in.Source) != len(in.Items) {
		return captures{}, fmt.Errorf("%d sources for %d captures", len(in.Source), len(in.Items))
	}
	out := captures{namespace: in.Namespace, opt: api.CaptureOptions{Origin: in.Origin, Source: stringsOf(in.Source)}, wait: in.Wait, items: make([]memory.Capture, len(in.Items))}
	for i, f := range in.Items {
		c := f.Capture
		c.Text, c.Role, c.URI, c.Tags = string(f.Text), string(f.Role), string(f.URI), stringsOf(f.Tags)
		c.Conversation, c.Subject, c.DerivedFrom, c.Metadata = string(f.Conversation), string(f.Subject), f.DerivedFrom, f.Metadata
		out.items[i] = c
	}
	return out, nil
}

// revision is the argument of a revision.
type revision struct {
	recordCall
	rev      memory.Revision
	clientID string
}

type revisionForm struct {
	recordCall
	Revision revisedForm `json:"revision"`
	ClientID string      `json:"client_id,omitempty"`
}

// revisedForm is a revision, see captureForm.
type revisedForm struct {
	memory.Revision
	Text         *[]byte   `json:"text,omitempty"`
	Role         *[]byte   `json:"role,omitempty"`
	URI          *[]byte   `json:"uri,omitempty"`
	Tags         *[][]byte `json:"tags,omitempty"`
	Conversation *[]byte   `json:"conversation,omitempty"`
	DerivedFrom  *[][]byte `json:"derived_from,omitempty"`
	Metadata     *[]byte   `json:"metadata,omitempty"`
}

func encodeRevision(in revision) any {
	r := in.rev
	out := revisionForm{recordCall: in.recordCall, ClientID: in.clientID, Revision: revisedForm{Revision: r,
		Text: mapped(r.Text, fromString), Role: mapped(r.Role, fromString), URI: mapped(r.URI, fromString), Tags: mapped(r.Tags, notNil),
		Conversation: mapped(r.Conversation, fromString), DerivedFrom: mapped(r.DerivedFrom, notNil)}}
	if r.Metadata != nil {
		m := append([]byte{}, *r.Metadata...)
		out.Revision.Metadata = &m
	}
	return out
}

func decodeRevision(raw json.RawMessage) (revision, error) {
	var in revisionForm
	if err := json.Unmarshal(raw, &in); err != nil {
		return revision{}, err
	}
	f := in.Revision
	r := f.Revision
	r.Text, r.Role, r.URI, r.Tags = mapped(f.Text, toString), mapped(f.Role, toString), mapped(f.URI, toString), mapped(f.Tags, stringsOf)
	r.Conversation, r.DerivedFrom = mapped(f.Conversation, toString), mapped(f.DerivedFrom, stringsOf)
	if f.Metadata != nil {
		m := json.RawMessage(*f.Metadata)
		r.Metadata = &m
	}
	return revision{in.recordCall, r, in.ClientID}, nil
}

func fromString(s string) []byte { return []byte(s) }
func toString(b []byte) string   { return string(b) }

// notNil keeps a list behind a pointer from becoming no pointer: JSON says null for both.
func notNil(s []string) [][]byte {
	if s == nil {
		return [][]byte{}
	}
	return bytesOf(s)
}

func mapped[A, B any](p *A, f func(A) B) *B {
	if p == nil {
		return nil
	}
	b := f(*p)
	return &b
}

func bytesOf(s []string) [][]byte {
	if s == nil {
		return nil
	}
	out := make([][]byte, len(s))
	for i := range s {
		out[i] = []byte(s[i])
	}
	return out
}

func stringsOf(b [][]byte) []string {
	if b == nil {
		return nil
	}
	out := make([]string, len(b))
	for i := range b {
		out[i] = string(b[i])
	}
	return out
}
