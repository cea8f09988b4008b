//go:build !linux

package vectors

import (
	"bytes"
	"encoding/binary"
	"os"
)

// resident is unknown on this system.
func resident() int64 { return 0 }

// mapped is what a file of float32 holds.
type mapped struct{ floats []float32 }

func mapFloats(path string, n int) (*mapped, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &mapped{floats: make([]float32, n)}
	return m, binary.Read(bytes.NewReader(b), binary.NativeEndian, m.floats)
}

func (m *mapped) close() error { return nil }
