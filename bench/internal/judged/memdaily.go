package judged

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// trajectory is one of MemDaily (Zhang et al., 2024): some days' messages of
// one user, and questions about them.
type trajectory struct {
	TID      int `json:"tid"`
	Messages []struct {
		MID     int    `json:"mid"`
		Message string `json:"message"`
		Time    string `json:"time"`
	} `json:"message_list"`
	Questions []struct {
		Question string            `json:"question"`
		Time     string            `json:"time"`
		Targets  []json.RawMessage `json:"target_step_id"`
	} `json:"question_list"`
}

// loadMemDaily reads every file of a folder: one namespace for each file, all
// of its trajectories pooled.
func loadMemDaily(dir string) (*Set, error) {
	return readMemDaily(dir, func(question, _ string) string { return question })
}

// pooled loads all files of a folder into one namespace, and no message says to
// which trajectory it belongs. ask makes the query out of a question and the time
// at which it was asked.
func pooled(name string, ask func(question, at string) string) func(dir string) (*Set, error) {
	return func(dir string) (*Set, error) {
		set, err := readMemDaily(dir, ask)
		if err != nil {
			return nil, err
		}
		all := Namespace{Name: name}
		for _, ns := range set.Namespaces {
			own := func(unit string) string { return ns.Name + strings.TrimPrefix(unit, "memdaily") }
			for _, c := range ns.Captures {
				c.ID, c.Conversation = own(c.ID), ""
				all.Captures = append(all.Captures, c)
			}
			for _, q := range ns.Questions {
				for i, unit := range q.Evidence {
					q.Evidence[i] = own(unit)
				}
				all.Questions = append(all.Questions, q)
			}
		}
		set.Namespaces = []Namespace{all}
		return set, nil
	}
}

func readMemDaily(dir string, ask func(question, at string) string) (*Set, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for _, path := range paths {
		var all []trajectory
		if err := readJSON(path, &all); err != nil {
			return nil, err
		}
		set.Namespaces = append(set.Namespaces, set.memDailyFile(strings.TrimSuffix(filepath.Base(path), ".json"), all, ask))
	}
	return set, nil
}

func (s *Set) memDailyFile(name string, all []trajectory, ask func(question, at string) string) Namespace {
	ns := Namespace{Name: importer.MakeName("memdaily-" + name)}
	for _, t := range all {
		known := map[string]bool{}
		unit := func(mid int) string { return fmt.Sprintf("memdaily/%d/%d", t.TID, mid) }
		for _, m := range t.Messages {
			if m.Message == "" || known[unit(m.MID)] {
				s.Counts.Unread++
				continue
			}
			known[unit(m.MID)] = true
			c := memory.Capture{ID: unit(m.MID), Agent: "user", Text: s.fit(m.Message), Kind: memory.KindMessage,
				Conversation: "trajectory-" + strconv.Itoa(t.TID), OccurredAt: chineseTime(m.Time)}
			ns.Captures = append(ns.Captures, c)
		}
		for _, q := range t.Questions {
			out := Question{Text: ask(q.Question, q.Time), Category: name, Group: ns.Name + " trajectory-" + strconv.Itoa(t.TID)}
			for _, raw := range q.Targets {
				var mid int
				if json.Unmarshal(raw, &mid) != nil {
					s.Counts.Malformed++
					continue
				}
				s.addUnit(&out, unit(mid), known)
			}
			s.addQuestion(&ns, out)
		}
	}
	return ns
}

// chineseTime reads "2024年04月01日 周一 08:30", taken as UTC; nil if it is
// something else.
func chineseTime(s string) *time.Time {
	fields := strings.Fields(s)
	if len(fields) != 3 {
		return nil
	}
	at, err := time.Parse("2006年01月02日 15:04", fields[0]+" "+fields[2])
	if err != nil {
		return nil
	}
	return &at
}
