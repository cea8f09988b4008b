package projections

import (
	"context"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// heardRows are rows that tell of each key that is read and each iterator that is
// opened, and of each row that an iterator comes to, so that a test can count them.
type heardRows struct {
	pebble.Reader
	onRead, onRow func()
}

// Get implements pebble.Reader.
func (h heardRows) Get(key []byte) ([]byte, io.Closer, error) {
	h.onRead()
	return h.Reader.Get(key)
}

// NewIter implements pebble.Reader.
func (h heardRows) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	h.onRead()
	return h.Reader.NewIter(h.heard(o))
}

// NewIterWithContext implements pebble.Reader.
func (h heardRows) NewIterWithContext(ctx context.Context, o *pebble.IterOptions) (*pebble.Iterator, error) {
	h.onRead()
	return h.Reader.NewIterWithContext(ctx, h.heard(o))
}

func (h heardRows) heard(o *pebble.IterOptions) *pebble.IterOptions {
	if h.onRow == nil {
		return o
	}
	var out pebble.IterOptions
	if o != nil {
		out = *o
	}
	skips := out.SkipPoint
	out.SkipPoint = func(key []byte) bool {
		h.onRow()
		return skips != nil && skips(key)
	}
	return &out
}
