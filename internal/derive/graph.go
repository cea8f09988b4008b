package derive

import (
	"fmt"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// OpenGraph opens the payload of a graph.changed.
func OpenGraph(key *keyring.DataKey, env *events.Envelope) ([]events.GraphStep, error) {
	payload, err := openPayload(key, env)
	if err != nil {
		return nil, err
	}
	return events.DecodeGraph(payload)
}

// graph gives the fold the steps of a graph.changed in clear.
func (d *Deriver) graph(env *events.Envelope) (*projections.Contribution, error) {
	key, err := d.keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", env.Key[:], err)
	}
	steps, err := OpenGraph(key, env)
	if events.IsForeign(err) {
		return nil, err
	}
	if err != nil {
		return &projections.Contribution{Code: codeUnreadable}, nil
	}
	// Nothing is derived in a namespace that is destroyed, whatever the event's key.
	if _, err := d.keys.Namespace(env.Namespace); settings.IsErased(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("keys of namespace %s: %w", env.Namespace, err)
	}
	return &projections.Contribution{Graph: steps}, nil
}
