package judged

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mneme/memory"
)

// Agents is the judged set of a team of people and agents, bench/sets/agents.
// Its README says how the set was made and how it is scored.
type Agents struct {
	Memories []memory.Capture
	Facts    []AgentFact
	Queries  []AgentQuery // empty as long as nobody has written any
}

// AgentFact is what the memories say, in other words than theirs.
type AgentFact struct {
	ID       string   `json:"id"`
	Fact     string   `json:"fact"`
	Memories []string `json:"memories,omitempty"` // hold the fact
	Stale    []string `json:"stale,omitempty"`    // hold what was true before
	Related  []string `json:"related,omitempty"`  // hold a part of it, or point at it
	Exact    []string `json:"exact,omitempty"`    // stand letter by letter in one of Memories
	None     bool     `json:"none,omitempty"`     // a subject that no memory says anything about
}

// AgentQuery is one query and its judgement.
type AgentQuery struct {
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	Query  string   `json:"query"`
	Facts  []string `json:"facts"`            // that it was written from
	Wanted []string `json:"wanted,omitempty"` // any of them is right
	May    []string `json:"may,omitempty"`    // neither right nor wrong: left out before ranks are counted
	None   bool     `json:"none,omitempty"`   // right is an empty answer
	Sealed bool     `json:"sealed,omitempty"` // not to be looked at while something is tuned
}

// AgentTypes lists the types of queries.
var AgentTypes = []string{"natural", "synonym", "identifier", "part", "prefix", "typo",
	"version", "path", "phrase", "error", "stale", "none"}

// LoadAgents reads and checks the set in the folder dir. A missing
// queries.jsonl is an empty one; a missing other file is ErrNoData.
func LoadAgents(dir string) (*Agents, error) {
	set := &Agents{}
	err := errors.Join(
		readLines(filepath.Join(dir, "memories.jsonl"), &set.Memories),
		readLines(filepath.Join(dir, "facts.jsonl"), &set.Facts))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("load agents: %w: %w", ErrNoData, err)
	}
	if more := readLines(filepath.Join(dir, "queries.jsonl"), &set.Queries); !errors.Is(more, os.ErrNotExist) {
		err = errors.Join(err, more)
	}
	if err == nil {
		err = set.check()
	}
	if err != nil {
		return nil, fmt.Errorf("load agents: %w", err)
	}
	return set, nil
}

// sealed reports whether the query with this id is of the sealed third.
func sealed(id string) bool {
	return sha256.Sum256([]byte(id))[0]%3 == 0
}

// loadAgents makes a set of the memories and of those queries that are sealed, or that are not.
// Those that were written from one fact hang together.
func loadAgents(sealed bool) func(context.Context, string) (*Set, error) {
	return func(context.Context, string) (*Set, error) {
		root, err := repository(".")
		if err != nil {
			return nil, err
		}
		agents, err := LoadAgents(filepath.Join(root, "bench", "sets", "agents"))
		if err != nil {
			return nil, err
		}
		return agents.set(sealed), nil
	}
}

func (s *Agents) set(sealed bool) *Set {
	set := &Set{Scoring: First}
	ns := Namespace{Name: "agents", Captures: s.Memories}
	if sealed {
		ns.Name = Sealed
	}
	for _, q := range s.Queries {
		if q.Sealed == sealed {
			set.addQuestion(&ns, Question{Text: q.Query, Category: q.Type, Group: q.Facts[0], Evidence: q.Wanted, May: q.May, Nothing: q.None})
		}
	}
	set.Namespaces = []Namespace{ns}
	return set
}

// Judge fills in what follows from the facts that q was written from and from
// its id: Wanted, May, None and Sealed. A fact that is unknown adds nothing.
func (s *Agents) Judge(q *AgentQuery) {
	q.Wanted, q.May, q.None, q.Sealed = nil, nil, false, sealed(q.ID)
	for _, f := range s.Facts {
		if slices.Contains(q.Facts, f.ID) {
			q.Wanted = append(q.Wanted, f.Memories...)
			q.May = append(q.May, f.Related...)
			q.None = q.None || f.None
		}
	}
	slices.Sort(q.Wanted)
	q.Wanted = slices.Compact(q.Wanted)
	slices.Sort(q.May)
	q.May = slices.DeleteFunc(slices.Compact(q.May), func(id string) bool { return slices.Contains(q.Wanted, id) })
}

// check finds what is inconsistent in the files.
func (s *Agents) check() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	texts := map[string]string{}
	for _, m := range s.Memories {
		if err := m.Validate(); err != nil {
			bad("memory %s: %s", m.ID, err.Message)
		}
		if _, twice := texts[m.ID]; twice || m.ID == "" || m.OccurredAt == nil {
			bad("memory %q: the id is empty or not the only one, or it has no time", m.ID)
		}
		texts[m.ID] = m.Text
	}
	facts := map[string]AgentFact{}
	for _, f := range s.Facts {
		if _, twice := facts[f.ID]; twice || f.ID == "" || f.Fact == "" {
			bad("fact %q: the id is empty or not the only one, or it has no words", f.ID)
		}
		facts[f.ID] = f
		if err := f.check(texts); err != nil {
			bad("fact %s: %w", f.ID, err)
		}
	}
	queries := map[string]bool{}
	for _, q := range s.Queries {
		if queries[q.ID] || q.ID == "" {
			bad("query %q: the id is empty or not the only one", q.ID)
		}
		queries[q.ID] = true
		if err := s.checkQuery(q, facts); err != nil {
			bad("query %s: %w", q.ID, err)
		}
	}
	return errors.Join(all...)
}

// check finds what is wrong with a fact about memories with these texts.
func (f AgentFact) check(texts map[string]string) error {
	ids := slices.Concat(f.Memories, f.Stale, f.Related)
	for i, id := range ids {
		if _, known := texts[id]; !known {
			return fmt.Errorf("memory %s does not exist", id)
		}
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("memory %s is named twice", id)
		}
	}
	if f.None != (len(f.Memories) == 0) {
		return errors.New("either it has memories or it is none")
	}
	for _, exact := range f.Exact {
		if !slices.ContainsFunc(f.Memories, func(id string) bool { return bytes.Contains([]byte(texts[id]), []byte(exact)) }) {
			return fmt.Errorf("no memory of it holds %q", exact)
		}
	}
	return nil
}

// checkQuery finds what is wrong with a query.
func (s *Agents) checkQuery(q AgentQuery, facts map[string]AgentFact) error {
	if !slices.Contains(AgentTypes, q.Type) || q.Query == "" || len(q.Facts) == 0 {
		return fmt.Errorf("it has no query, no facts, or its type %q is not one of %v", q.Type, AgentTypes)
	}
	for _, id := range q.Facts {
		if f, known := facts[id]; !known || f.None != (q.Type == "none") {
			return fmt.Errorf("fact %s does not exist or does not suit the type %s", id, q.Type)
		}
	}
	want := q
	s.Judge(&want)
	if !slices.Equal(q.Wanted, want.Wanted) || !slices.Equal(q.May, want.May) || q.None != want.None || q.Sealed != want.Sealed {
		return errors.New("its judgement is not that of its facts: run the test with -fill")
	}
	return nil
}

// readLines reads a file of one JSON value a line.
func readLines[T any](path string, out *[]T) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var v T
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("%s:%d: %w", filepath.Base(path), i+1, err)
		}
		*out = append(*out, v)
	}
	return nil
}
