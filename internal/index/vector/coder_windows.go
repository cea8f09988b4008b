package vector

import "fmt"

// newCoder fails: github.com/coder/hnsw v0.6.1 does not build on Windows,
// where its dependency renameio has no TempFile.
func newCoder(Params, *kernel, *store) (graph, error) {
	return nil, fmt.Errorf("engine %s: %w", EngineCoder, ErrEngineUnavailable)
}
