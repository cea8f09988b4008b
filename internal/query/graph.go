package query

import (
	"context"

	"mneme/memory"
)

// Graph reads a part of the knowledge graph.
func (r *Reader) Graph(ctx context.Context, req memory.GraphRequest) (memory.Graph, error) {
	return memory.Graph{}, memory.Errorf(memory.CodeUnavailable, "the graph is not there yet")
}

// StreamGraph yields the whole knowledge graph.
func (r *Reader) StreamGraph(ctx context.Context, yield func(memory.GraphLine) error) error {
	return memory.Errorf(memory.CodeUnavailable, "the graph is not there yet")
}
