package events

import "fmt"

// Upcaster turns a payload of one schema version into the next one's.
type Upcaster func(payload []byte) ([]byte, error)

// Upcasters holds, for each type, the step from version v to v+1 at index v-1.
type Upcasters map[Type][]Upcaster

// upcasters are the steps of this program. A new schema version adds one here
// and never changes an old one: old events stay in the log for ever.
var upcasters = Upcasters{
	TypeVectorsAttached: {func(payload []byte) ([]byte, error) {
		return append([]byte{VectorsFloat}, payload...), nil // schema 1 had floats only
	}},
}

// Upcast brings an opened payload to the newest schema version of its type.
// A schema this program does not know is ErrNewer.
func Upcast(t Type, schema uint8, payload []byte) ([]byte, error) {
	return upcasters.Apply(t, schema, t.Schema(), payload)
}

// Apply runs the steps from schema to newest.
func (u Upcasters) Apply(t Type, schema, newest uint8, payload []byte) ([]byte, error) {
	if schema > newest || !t.Known() {
		return nil, fmt.Errorf("%s schema %d: %w", t, schema, ErrNewer)
	}
	if schema == 0 {
		return nil, fmt.Errorf("%s schema 0: %w", t, ErrMalformed)
	}
	steps := u[t]
	for v := schema; v < newest; v++ {
		if int(v) > len(steps) || steps[v-1] == nil {
			return nil, fmt.Errorf("%s has no step from schema %d: %w", t, v, ErrMalformed)
		}
		next, err := steps[v-1](payload)
		if err != nil {
			return nil, fmt.Errorf("%s schema %d to %d: %w", t, v, v+1, err)
		}
		payload = next
	}
	return payload, nil
}
