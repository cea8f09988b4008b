package projections

import (
	"context"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// heardRows are rows that tell of each key that is read and each iterator that is
// opened, so that a test can count them.
type heardRows struct {
	pebble.Reader
	onRead func()
}

// Get implements pebble.Reader.
func (h heardRows) Get(key []byte) ([]byte, io.Closer, error) {
	h.onRead()
	return h.Reader.Get(key)
}

// NewIter implements pebble.Reader.
func (h heardRows) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	h.onRead()
	return h.Reader.NewIter(o)
}

// NewIterWithContext implements pebble.Reader.
func (h heardRows) NewIterWithContext(ctx context.Context, o *pebble.IterOptions) (*pebble.Iterator, error) {
	h.onRead()
	return h.Reader.NewIterWithContext(ctx, o)
}
