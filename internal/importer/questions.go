package importer

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
)

// locomoQA is one question as it stands in the file. Category 5 has no answer.
type locomoQA struct {
	Question string          `json:"question"`
	Category int             `json:"category"`
	Evidence json.RawMessage `json:"evidence"`
}

// Question is one question about a conversation and where its answer stands.
type Question struct {
	Sample   string // sample_id
	Question string
	Category int      // 1 to 5; 5 cannot be answered
	Evidence []string // dia_ids such as "D1:3", without repeats, in order
}

// QuestionCounts counts the oddities of a file.
type QuestionCounts struct {
	Questions  int
	NoEvidence int // questions left with no evidence at all
	Malformed  int // evidence entries that are not exactly one dia_id
	Missing    int // dia_ids that no turn has
}

var diaID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`D\d+:\d+`) })

// Questions reads the questions of a LoCoMo file. Evidence that is malformed is
// counted, and what can be read of it is kept; evidence that points nowhere is
// counted and kept, because it cannot be found and must weigh on recall.
func Questions(r io.Reader) ([]Question, QuestionCounts, error) {
	var out []Question
	var counts QuestionCounts
	in := newSamples(r)
	for {
		sample, err := in.next()
		if errors.Is(err, io.EOF) {
			return out, counts, nil
		}
		if err != nil {
			return nil, QuestionCounts{}, err
		}
		turns := turnIDs(sample)
		for _, qa := range sample.QA {
			q := Question{Sample: sample.SampleID, Question: qa.Question, Category: qa.Category}
			q.Evidence = evidence(qa.Evidence, turns, &counts)
			counts.Questions++
			if len(q.Evidence) == 0 {
				counts.NoEvidence++
			}
			out = append(out, q)
		}
	}
}

// turnIDs returns the dia_ids that exist.
func turnIDs(sample locomoSample) map[string]bool {
	ids := map[string]bool{}
	for key, raw := range sample.Conversation {
		if !strings.HasPrefix(key, "session_") {
			continue
		}
		var turns []locomoTurn
		_ = json.Unmarshal(raw, &turns) // what is no list of turns has no ids
		for _, t := range turns {
			ids[t.DiaID] = true
		}
	}
	return ids
}

func evidence(raw json.RawMessage, turns map[string]bool, counts *QuestionCounts) []string {
	var entries []any
	if len(raw) > 0 && json.Unmarshal(raw, &entries) != nil {
		counts.Malformed++
	}
	var out []string
	seen := map[string]bool{}
	for _, entry := range entries {
		s, _ := entry.(string)
		found := diaID().FindAllString(s, -1)
		if len(found) != 1 || found[0] != s {
			counts.Malformed++
		}
		for _, id := range found {
			if seen[id] {
				continue
			}
			seen[id] = true
			out = append(out, id)
			if !turns[id] {
				counts.Missing++
			}
		}
	}
	return out
}
