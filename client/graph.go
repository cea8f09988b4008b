package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"mneme/memory"
)

// Graph is the knowledge graph of a namespace: entities, their observations, and relations.
type Graph struct {
	c         *Client
	namespace string
}

// GraphOf returns the knowledge graph of a namespace.
func GraphOf(c *Client, namespace string) Graph { return Graph{c, namespace} }

// Change carries out a change as a whole or not at all. A change without an id gets one, so
// that it is carried out once where it had to be sent twice; an empty Agent means
// Options.Agent. Errors: not_found where observations are added to an entity that is not there.
func (g Graph) Change(ctx context.Context, change memory.GraphChange) (memory.GraphChanged, error) {
	if change.ID == "" {
		change.ID = g.c.opts.NewID()
	}
	if change.Agent == "" {
		change.Agent = g.c.opts.Agent
	}
	return repeated[memory.GraphChanged](ctx, g.c, call{method: "POST", path: g.path(), body: change, write: true, repeat: true})
}

// Read returns the whole graph, or the part that req selects. Errors: too_large, see Stream.
func (g Graph) Read(ctx context.Context, req memory.GraphRequest, opts ReadOptions) (memory.Graph, error) {
	var out memory.Graph
	err := g.c.do(ctx, call{method: "GET", path: g.path(), query: g.c.values(opts, req.Values())}, &out)
	return out, err
}

// Stream yields the whole graph, however large, in the order of creation: the entities, then
// the relations. An error of yield ends it.
func (g Graph) Stream(ctx context.Context, opts ReadOptions, yield func(memory.GraphLine) error) error {
	return g.StreamAfter(ctx, "", opts, yield)
}

// StreamAfter is Stream without the entities up to the one of this name, which are not read
// either. Errors: not_found if there is none of this name.
func (g Graph) StreamAfter(ctx context.Context, entity string, opts ReadOptions, yield func(memory.GraphLine) error) error {
	var more url.Values
	if entity != "" {
		more = url.Values{"after": {entity}}
	}
	rc := call{method: "GET", path: g.path("export"), query: g.c.values(opts, more), accept: "application/x-ndjson"}
	resp, err := g.c.send(ctx, rc)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	for dec := json.NewDecoder(resp.Body); ; {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return g.c.lostAnswer(ctx, rc, fmt.Errorf("read graph: %w", err))
		}
		line, err := graphLine(raw)
		if err == nil {
			err = yield(line)
		}
		if err != nil {
			return err
		}
	}
}

func (g Graph) path(more ...string) []string {
	return append([]string{"namespaces", g.namespace, "graph"}, more...)
}

// graphLine reads one line of a stream; the last one may say why it breaks off.
func graphLine(raw []byte) (memory.GraphLine, error) {
	var line memory.GraphLine
	err := json.Unmarshal(raw, &line)
	if err == nil && line.Entity == nil && line.Relation == nil {
		var end memory.ProgressLine[struct{}]
		if err = json.Unmarshal(raw, &end); err == nil && end.Error != nil {
			return line, end.Error.Err()
		}
		err = memory.Errorf(memory.CodeInternal, "a line of the graph is neither an entity nor a relation")
	}
	return line, err
}
