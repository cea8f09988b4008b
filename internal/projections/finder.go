package projections

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
)

// finder looks for many rows of which most are not there, with one iterator for all
// of them. That costs half of what reading each by itself does. The iterator is
// opened for the first one. A finder has one user at a time.
type finder struct {
	rows pebble.Reader
	it   *pebble.Iterator
}

// find reads a row; nil when it is not there. The value is valid until the next call.
func (f *finder) find(key []byte) ([]byte, error) {
	if f.it == nil {
		it, err := f.rows.NewIter(&pebble.IterOptions{UseL6Filters: true}) // they say that a row is not there
		if err != nil {
			return nil, fmt.Errorf("find row %#x: %w", key[0], err)
		}
		f.it = it
	}
	if !f.it.SeekPrefixGE(key) { // a key's prefix is all of it
		return nil, f.failed(key)
	}
	v, err := f.it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("%w: row %#x: %w", errRead, key[0], err)
	}
	return v, nil
}

func (f *finder) failed(key []byte) error {
	if err := f.it.Error(); err != nil {
		return fmt.Errorf("%w: row %#x: %w", errRead, key[0], err)
	}
	return nil
}

func (f *finder) close() error {
	if f.it == nil {
		return nil
	}
	err := f.it.Close()
	f.it = nil
	return err
}

// UsedKeys finds what client ids were used for, many one after the other. Close it
// before its view. It has one user at a time.
type UsedKeys struct{ rows finder }

// Find is View.UsedKey.
func (u *UsedKeys) Find(ns events.ID, client events.MAC, agent string) (UsedKey, bool, error) {
	raw, err := u.rows.find(idemKey(ns, client, agent))
	if err != nil || raw == nil {
		return UsedKey{}, false, err
	}
	used, err := decodeUsedKey(raw)
	return used, err == nil, err
}

// Close releases what it reads from.
func (u *UsedKeys) Close() error { return u.rows.close() }
