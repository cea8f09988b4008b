package settings

import (
	"errors"
	"fmt"
	"sync"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
)

// Cache opens the settings of namespaces and keeps what they come to. It is safe for concurrent use.
type Cache struct {
	keys *keyring.Keyring
	mu   sync.RWMutex
	open map[events.ID]entry
}

type entry struct {
	events    int // how many events it comes from
	effective *Effective
}

// NewCache returns an empty cache.
func NewCache(keys *keyring.Keyring) *Cache {
	return &Cache{keys: keys, open: map[events.ID]entry{}}
}

// Of returns the settings of a namespace as the view sees it.
func (b *Cache) Of(v *projections.View, ns projections.NamespaceInfo) (*Effective, error) {
	b.mu.RLock()
	e, ok := b.open[ns.ID]
	b.mu.RUnlock()
	if ok && e.events == len(ns.Settings) {
		return e.effective, nil
	}
	raw := map[string]string{}
	for _, at := range ns.Settings {
		env, _, err := v.Envelope(at)
		if err != nil {
			return nil, err
		}
		if err := Open(b.keys, &env, raw); err != nil {
			return nil, err
		}
	}
	e = entry{len(ns.Settings), Resolve(raw)}
	b.mu.Lock()
	b.open[ns.ID] = e
	b.mu.Unlock()
	return e.effective, nil
}

// Open applies one directory event to raw settings.
func Open(keys *keyring.Keyring, env *events.Envelope, raw map[string]string) error {
	s, err := open(keys, env)
	if err != nil {
		return err
	}
	if env.Type.OfSpace() {
		followSpace(env.Type, env.SealedAt, &s, raw)
		return nil
	}
	for k, v := range s.Set {
		raw[k] = v
	}
	for _, k := range s.Reset {
		delete(raw, k)
	}
	return nil
}

// OpenSpace returns the space that an event is about; zero if it names none.
func OpenSpace(keys *keyring.Keyring, env *events.Envelope) (embed.Space, error) {
	s, err := open(keys, env)
	return spaceOf(&s), err
}

func open(keys *keyring.Keyring, env *events.Envelope) (events.Settings, error) {
	key, err := keys.KeyByID(env.Key)
	if err != nil {
		return events.Settings{}, fmt.Errorf("settings of %s: %w", env.Namespace, err)
	}
	payload, err := key.Open(nil, Identity(env.Event), env.AppendHeader(nil), env.Payload)
	if err != nil {
		return events.Settings{}, fmt.Errorf("settings of %s: %w", env.Namespace, err)
	}
	payload, err = events.Upcast(env.Type, env.Schema, payload)
	if err != nil {
		return events.Settings{}, err
	}
	return events.DecodeSettings(payload)
}

// Identity is the sealing identity of an event's payload: part 0, under no
// pipeline, since the log outlives them.
func Identity(event events.ID) keyring.Identity { return keyring.Identity{Event: event} }

// IsErased reports whether err means that a key was destroyed on purpose.
func IsErased(err error) bool { return errors.Is(err, keyring.ErrDestroyed) }
