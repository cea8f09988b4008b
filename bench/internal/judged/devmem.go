package judged

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"mneme/internal/importer"
	"mneme/memory"
)

type devSession struct {
	ID    string `json:"id"`
	Date  string `json:"date"`
	Turns []struct {
		Speaker string `json:"speaker"`
		Text    string `json:"text"`
	} `json:"turns"`
}

type devQuestion struct {
	Type     string   `json:"type"`
	Question string   `json:"question"`
	Sessions []string `json:"sessions"`
}

// loadDevMem reads DevMem (opencode-memory): coding sessions in one namespace, a
// capture for each turn, and questions that name the sessions with the answer. A
// question without a session is about what nobody said.
func loadDevMem(dir string) (*Set, error) {
	var sessions []devSession
	var questions []devQuestion
	if err := readJSON(filepath.Join(dir, "sessions.json"), &sessions); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, "questions.json"), &questions); err != nil {
		return nil, err
	}
	set := &Set{Scoring: Sessions}
	ns := Namespace{Name: "devmem"}
	order := map[string]int{}
	for i, session := range sessions {
		if _, twice := order[session.ID]; twice {
			set.Counts.Unread += len(session.Turns)
			continue
		}
		order[session.ID] = i + 1
		for j, t := range session.Turns {
			if t.Text == "" {
				set.Counts.Unread++
				continue
			}
			ns.Captures = append(ns.Captures, memory.Capture{ID: fmt.Sprintf("devmem/%s:%d", session.ID, j), Agent: importer.MakeName(t.Speaker),
				Role: t.Speaker, Text: set.fit(t.Text), Kind: memory.KindMessage, Conversation: session.ID, OccurredAt: firstDate(session.Date)})
		}
	}
	for _, q := range questions {
		out := Question{Text: q.Question, Category: q.Type, Sessions: sessionsOf(q.Sessions, ""), Nothing: len(q.Sessions) == 0}
		for _, id := range out.Sessions {
			if _, ok := order[id]; !ok {
				set.Counts.Missing++
			}
		}
		slices.SortStableFunc(out.Sessions, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
		set.addQuestion(&ns, out)
	}
	set.Namespaces = []Namespace{ns}
	return set, nil
}
