package dates

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// openLocomo reads the development split of LoCoMo, which is no part of the
// repository.
func openLocomo(t *testing.T) []locomoSample {
	t.Helper()
	const name = "locomo/dev.json"
	dir := os.Getenv("MNEME_DATA")
	for at, _ := os.Getwd(); dir == ""; at = filepath.Dir(at) {
		if at == filepath.Dir(at) {
			t.Skipf("no test data: set MNEME_DATA to a folder with %s", name)
		}
		if try := filepath.Join(at, "..", "shared", "data"); fileExists(filepath.Join(try, name)) {
			dir = try
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Skipf("no test data: %v", err)
	}
	var samples []locomoSample
	if err := json.Unmarshal(data, &samples); err != nil {
		t.Fatal(err)
	}
	return samples
}

func fileExists(name string) bool { _, err := os.Stat(name); return err == nil }

type locomoSample struct {
	QA []struct {
		Question string
		Evidence []string
		Category int
	}
	Conversation map[string]json.RawMessage
}

type locomoTurn struct {
	ID string `json:"dia_id"`
	at time.Time
}

// turns returns the turns of a sample with their sittings' dates, which the
// parser reads.
func (s locomoSample) turns(t *testing.T) []locomoTurn {
	t.Helper()
	var all []locomoTurn
	for key, raw := range s.Conversation {
		var date string
		var turns []locomoTurn
		if json.Unmarshal(s.Conversation[key+"_date_time"], &date) != nil {
			continue
		}
		if err := json.Unmarshal(raw, &turns); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		if err != nil {
			t.Fatal(err)
		}
		if e := one(t, date); !e.From.Equal(at.Truncate(24*time.Hour)) || e.Grain != GrainDay {
			t.Errorf("%q: %v", date, e)
		}
		for _, turn := range turns {
			turn.at = at
			all = append(all, turn)
		}
	}
	slices.SortFunc(all, func(a, b locomoTurn) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// tally compares scores of evidence with those of all turns.
type tally struct{ evidence, evidenceSum, turns, turnSum float64 }

func (c *tally) add(score float64, evidence bool) {
	c.turns, c.turnSum = c.turns+1, c.turnSum+score
	if evidence {
		c.evidence, c.evidenceSum = c.evidence+1, c.evidenceSum+score
	}
}

func (c *tally) lift() float64 { return c.evidenceSum / c.evidence / (c.turnSum / c.turns) }

// TestDatesFindEvidence: of questions that name a time, the turns that answer them
// fit it better than others do, by when they were said.
func TestDatesFindEvidence(t *testing.T) {
	id := regexp.MustCompile(`D\d+:\d+`)
	var when, onDay tally
	questions, dated, better, pairs := 0, 0, 0.0, 0.0
	for _, s := range openLocomo(t) {
		turns := s.turns(t)
		newest := slices.MaxFunc(turns, func(a, b locomoTurn) int { return a.at.Compare(b.at) }).at
		for _, qa := range s.QA {
			if qa.Category == 5 {
				continue
			}
			questions++
			query := slices.DeleteFunc(Parse(qa.Question, newest), func(e Expr) bool { return e.Confidence < 0.5 })
			if len(query) == 0 {
				continue
			}
			dated++
			answers := id.FindAllString(strings.Join(qa.Evidence, " "), -1)
			var hits, others []float64
			for _, turn := range turns {
				w := Best(query, turn.at)
				evidence := slices.Contains(answers, turn.ID)
				when.add(w, evidence)
				if query[0].Grain <= GrainDay {
					onDay.add(w, evidence)
				}
				if evidence {
					hits = append(hits, w)
				} else {
					others = append(others, w)
				}
			}
			for _, h := range hits {
				for _, o := range others {
					pairs++
					switch {
					case h > o:
						better++
					case h == o:
						better += 0.5
					}
				}
			}
		}
	}
	t.Logf("%d of %d questions name a time; mean fit of %v evidence turns %.3f, of all %.3f; lift %.1f, days only %.1f; AUC %.3f",
		dated, questions, when.evidence, when.evidenceSum/when.evidence, when.turnSum/when.turns, when.lift(), onDay.lift(), better/pairs)
	if dated < 40 || when.lift() < 2 || onDay.lift() < 8 || better/pairs < 0.8 {
		t.Error("dates tell evidence from other turns less well than they did")
	}
}
