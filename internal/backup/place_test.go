package backup

import (
	"context"
	"errors"
	"io"
	"testing"
)

// endless is a place whose files have no end.
type endless struct{ *mem }

func (endless) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(zeros{}), nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestFileThatHasNoEndIsNotReadWhole(t *testing.T) {
	for _, size := range []int64{0, 100, maxWhole + 1, -1} {
		if b, err := readAs(t.Context(), endless{}, "keys/x", FileRef{Bytes: size}); !errors.Is(err, ErrNotIntact) || len(b) > 101 {
			t.Errorf("%d bytes of %d: %v", len(b), size, err)
		}
	}
	if set, err := ReadSet(t.Context(), endlessManifest{newMem(firstDay)}); err != nil || len(set.Bad) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
}

type endlessManifest struct{ *mem }

func (endlessManifest) List(context.Context, string) ([]Info, error) {
	return []Info{{Name: "backups/20260301T030000Z-abcdef.json"}}, nil
}

func (endlessManifest) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	return endless{}.Open(ctx, name)
}
