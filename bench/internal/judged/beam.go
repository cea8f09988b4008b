package judged

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// chat is one file of BEAM (Tavakoli et al., 2025): a long chat in batches of
// turns, and probing questions by the ability that they ask for.
type chat struct {
	Batches []struct {
		Number json.Number         `json:"batch_number"`
		Turns  [][]json.RawMessage `json:"turns"`
	} `json:"chat"`
	Questions map[string][]struct {
		Question string          `json:"question"`
		Sources  json.RawMessage `json:"source_chat_ids"`
	} `json:"probing_questions"`
}

type beamMessage struct {
	ID      *int   `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
	Anchor  string `json:"time_anchor"`
}

// loadBeam reads every file of a folder: one namespace for each chat, one
// capture for each message.
func loadBeam(dir string) (*Set, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for _, path := range paths {
		var c chat
		if err := readJSON(path, &c); err != nil {
			return nil, err
		}
		set.Namespaces = append(set.Namespaces, set.beamFile(strings.TrimSuffix(filepath.Base(path), ".json"), c))
	}
	return set, nil
}

func (s *Set) beamFile(name string, c chat) Namespace {
	ns := Namespace{Name: importer.MakeName("beam-" + name)}
	known := map[string]bool{}
	var at *time.Time // messages without a date are of the last one before
	for _, batch := range c.Batches {
		for _, turn := range batch.Turns {
			for _, raw := range turn {
				var m beamMessage
				if json.Unmarshal(raw, &m) != nil || m.ID == nil || m.Content == "" || known[beamUnit(*m.ID)] {
					s.Counts.Unread++
					continue
				}
				if day, err := time.Parse("January-2-2006", m.Anchor); err == nil {
					at = &day
				}
				known[beamUnit(*m.ID)] = true
				agent := importer.MakeName(m.Role)
				if agent == "" {
					agent = "unknown"
				}
				ns.Captures = append(ns.Captures, memory.Capture{ID: beamUnit(*m.ID), Agent: agent, Role: m.Role,
					Text: s.fit(m.Content), Kind: memory.KindMessage, Conversation: "batch-" + batch.Number.String(), OccurredAt: at})
			}
		}
	}
	for _, category := range slices.Sorted(maps.Keys(c.Questions)) {
		for _, q := range c.Questions[category] {
			// Questions of this category are about what nobody said.
			out := Question{Text: q.Question, Category: category, Apart: category == "abstention", Nothing: category == "abstention"}
			for _, id := range s.beamSources(q.Sources) {
				s.addUnit(&out, beamUnit(id), known)
			}
			s.addQuestion(&ns, out)
		}
	}
	return ns
}

func beamUnit(id int) string { return "beam/" + strconv.Itoa(id) }

// beamSources flattens what names the messages with the answer: a list of
// numbers, in places nested, or an object of such lists.
func (s *Set) beamSources(raw json.RawMessage) []int {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		s.Counts.Malformed++
		return nil
	}
	return s.flatten(v, nil)
}

func (s *Set) flatten(v any, out []int) []int {
	switch v := v.(type) {
	case nil:
	case float64:
		if v != float64(int(v)) {
			s.Counts.Malformed++
			break
		}
		out = append(out, int(v))
	case []any:
		for _, e := range v {
			out = s.flatten(e, out)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = s.flatten(v[key], out)
		}
	default:
		s.Counts.Malformed++
	}
	return out
}
