package importer

import (
	"encoding/json"
	"errors"
	"io"
)

// mcpMemory reads the file of the official MCP memory server: one entity or
// relation a line, as {"type":"entity",…} and {"type":"relation",…}.
type mcpMemory struct {
	noFiles
	in   *lines
	opts Options
}

func newMCPMemory(r io.Reader, opts Options) *mcpMemory {
	return &mcpMemory{in: newLines(r, maxTranscriptLine), opts: opts}
}

type mcpMemoryLine struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	RelationType string   `json:"relationType"`
}

// Next returns the next entity or relation. Lines of another type are left out, as
// the server leaves them out.
func (s *mcpMemory) Next() (Item, error) {
	line, err := s.in.next()
	if err != nil {
		return Item{}, err
	}
	var l mcpMemoryLine
	if err := json.Unmarshal(line, &l); err != nil {
		return Item{}, s.in.bad(plainJSONError(err))
	}
	item := Item{Namespace: s.opts.Namespace, Line: s.in.n, Where: s.in.where()}
	if hasHalf(line) {
		item.Left = []Skip{{Line: item.Line, Where: item.Where, Why: halved}}
	}
	switch l.Type {
	case "entity":
		if l.Name == "" {
			return Item{}, s.in.bad(errors.New("an entity without a name"))
		}
		item.Entity = &Entity{Name: l.Name, Type: l.EntityType, Observations: l.Observations}
	case "relation":
		if l.From == "" || l.To == "" {
			return Item{}, s.in.bad(errors.New("a relation without both of its ends"))
		}
		item.Relation = &Relation{From: l.From, To: l.To, Type: l.RelationType}
	default:
		return Item{}, s.in.skip("neither an entity nor a relation")
	}
	return item, nil
}
