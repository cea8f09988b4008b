package client

import (
	"encoding/json"
	"errors"
	"fmt"
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

// answer decodes the answer to a call into what out points to. JSON of another shape is ErrForeign, so that
// what a portal says to everything passes for no success.
type answer struct{ out any }

func (a answer) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, a.out); err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if !hasMost(raw, required(reflect.TypeOf(a.out).Elem())) {
		return fmt.Errorf("%w: its JSON is that of something else", ErrForeign)
	}
	return nil
}

// required are the names that a memnode writes into each answer of a type, also where there is nothing to say.
func required(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, required(f.Type)...)
		case name != "" && name != "-" && !strings.Contains(options, "omit"):
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
