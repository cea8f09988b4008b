package ingest

import (
	"context"

	"mneme/memory"
)

// ChangeGraph carries out a change of a namespace's knowledge graph as one event.
func (w *Writer) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	return memory.GraphChanged{}, memory.Errorf(memory.CodeUnavailable, "the graph is not there yet")
}
