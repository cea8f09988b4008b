package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"mneme/memory"
)

// ErrForeign is the cause of an error that was answered, but not by a memnode: by a proxy in between,
// or by another server. Its code is a guess from the HTTP status, good for a message and an exit code.
// It decides nothing, for of the request and of what it is about no memnode has said anything: see Said.
var ErrForeign = errors.New("what answered is no memnode")

// Said is the code by which to decide what happens next. It is that of the error, but
// memory.CodeUnavailable for what is no memnode's answer (ErrForeign), unless that says itself to be
// transient or asks for a credential.
func Said(err error) memory.Code {
	code := memory.CodeOf(err)
	if !errors.Is(err, ErrForeign) || code.Transient() || code == memory.CodeUnauthenticated {
		return code
	}
	return memory.CodeUnavailable
}

// foreignHint is what to do where no memnode answered.
const foreignHint = "is that a memnode? it did not answer like one; a proxy, or a network that asks to sign in first, may stand in between"

const mediaJSON = "application/json"

// foreign is why an answer is no memnode's by its media type; nil where it may be one's. What a memnode sends as it comes
// begins with the type that was asked for, also where nothing follows: by that an empty export is told from the empty answer
// of a portal.
func foreign(media string, resp *http.Response) error {
	sent := resp.Header.Get("Content-Type")
	if is, _, _ := strings.Cut(sent, ";"); strings.EqualFold(strings.TrimSpace(is), media) {
		return nil
	}
	if sent == "" {
		sent = "nothing"
	}
	return fmt.Errorf("%w: it sent %.60s where a memnode sends %s", ErrForeign, sent, media)
}

// decode decodes the answer to a call into what out points to. What is no JSON, or has another shape, is ErrForeign, so that
// what a portal says to everything passes for no success.
func decode(resp *http.Response, out any) error {
	var body bytes.Buffer
	if n := resp.ContentLength; n > 0 && n < maxAnswer {
		body.Grow(int(n) + bytes.MinRead) // without room behind it, it would grow once more to find the end
	}
	if _, err := body.ReadFrom(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	raw := body.Bytes()
	err := json.NewDecoder(bytes.NewReader(raw)).Decode(out)
	if err != nil {
		if other := foreign(mediaJSON, resp); other != nil {
			return other
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // it broke off
		return fmt.Errorf("decode answer: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if names := required(reflect.TypeOf(out).Elem()); 2*said(reflect.ValueOf(out).Elem()) <= len(names) && !hasMost(raw, names) {
		return fmt.Errorf("%w: its JSON is that of something else", ErrForeign)
	}
	return nil
}

// said counts the required names that have a value other than none in what was decoded: mostly it is not
// needed to look for the names.
func said(v reflect.Value) (n int) {
	if v.Kind() != reflect.Struct {
		return 0
	}
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Anonymous && f.Tag.Get("json") == "":
			n += said(v.Field(i))
		case isRequired(f) && !v.Field(i).IsZero():
			n++
		}
	}
	return n
}

// isRequired reports whether a memnode writes a field also where there is nothing to say.
func isRequired(f reflect.StructField) bool {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name != "" && name != "-" && !strings.Contains(options, "omit")
}

// required are the names that a memnode writes into each answer of a type, also where there is nothing to say.
func required(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, required(f.Type)...)
		case isRequired(f):
			names = append(names, name)
		}
	}
	return names
}

// hasMost reports whether a JSON object has more than half of the names. A memnode of another version need not know each.
func hasMost(raw []byte, names []string) bool {
	var has map[string]passedOver
	_ = json.Unmarshal(raw, &has) // what is no object has none
	n := 0
	for _, name := range names {
		if _, ok := has[name]; ok {
			n++
		}
	}
	return 2*n > len(names) || len(names) == 0
}

// passedOver is a value that is not kept.
type passedOver struct{}

func (*passedOver) UnmarshalJSON([]byte) error { return nil }
