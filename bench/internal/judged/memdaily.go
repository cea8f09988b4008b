package judged

import (
	"encoding/json"
	"fmt"
	"os"
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
		Targets  []json.RawMessage `json:"target_step_id"`
	} `json:"question_list"`
}

// loadMemDaily reads every file of a folder: one namespace for each file, all
// of its trajectories pooled.
func loadMemDaily(dir string) (*Set, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	set := &Set{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		ns, err := set.memDailyFile(name, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		set.Namespaces = append(set.Namespaces, ns)
	}
	return set, nil
}

func (s *Set) memDailyFile(name string, b []byte) (Namespace, error) {
	var all []trajectory
	if err := json.Unmarshal(b, &all); err != nil {
		return Namespace{}, err
	}
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
			out := Question{Text: q.Question, Category: name}
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
	return ns, nil
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
