package judged

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// persona is one file of RealMem (RealMemBench): a person's sessions with an
// assistant in order. Some of the person's turns need what was said in sessions
// before, and name it.
type persona struct {
	Sessions []struct {
		ID    string `json:"id"`
		Time  string `json:"time"`
		Turns []struct {
			Speaker string `json:"speaker"`
			Text    string `json:"text"`
			Query   *struct {
				Category string   `json:"category"`
				Turns    []string `json:"turns"` // session:turn
				Sessions []string `json:"sessions"`
			} `json:"query"`
		} `json:"turns"`
	} `json:"sessions"`
}

// loadRealMem reads every file of a folder: one namespace for each persona, one
// capture for each turn, and turns that need former ones as questions, asked
// before they are sent themselves.
func loadRealMem(dir string) (*Set, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	set := &Set{Scoring: Stream, Streamed: true}
	for _, path := range paths {
		var p persona
		if err := readJSON(path, &p); err != nil {
			return nil, err
		}
		set.Namespaces = append(set.Namespaces, set.realMemFile(strings.TrimSuffix(filepath.Base(path), ".json"), p))
	}
	return set, nil
}

func (s *Set) realMemFile(name string, p persona) Namespace {
	ns := Namespace{Name: importer.MakeName("realmem-" + name)}
	known := map[string]bool{} // units that were sent
	for _, session := range p.Sessions {
		at := firstDate(session.Time)
		for i, t := range session.Turns {
			if t.Query != nil {
				q := Question{Text: s.cut(t.Text, memory.MaxQueryBytes), Category: t.Query.Category, Session: session.ID,
					After: len(ns.Captures), Group: ns.Name + " " + session.ID}
				for _, unit := range t.Query.Turns {
					s.addUnit(&q, "realmem/"+unit, known)
				}
				q.Sessions = sessionsOf(t.Query.Sessions, session.ID)
				s.addQuestion(&ns, q)
			}
			unit := fmt.Sprintf("realmem/%s:%d", session.ID, i)
			if strings.TrimSpace(t.Text) == "" || known[unit] {
				s.Counts.Unread++
				continue
			}
			known[unit] = true
			ns.Captures = append(ns.Captures, memory.Capture{ID: unit, Agent: importer.MakeName(t.Speaker), Role: t.Speaker,
				Text: s.fit(t.Text), Kind: memory.KindMessage, Conversation: session.ID, OccurredAt: at})
		}
	}
	return ns
}

// sessionsOf returns each session once, but for the one that asks.
func sessionsOf(sessions []string, asking string) []string {
	var out []string
	for _, id := range sessions {
		if id != asking && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// firstDate reads the date with which a text begins, "2025-12-15 (Monday)"; nil
// if there is none.
func firstDate(s string) *time.Time {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return nil
	}
	at, err := time.Parse(time.DateOnly, fields[0])
	if err != nil {
		return nil
	}
	return &at
}
