package rank

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	index "mneme/internal/index/text"
	"mneme/memory"
)

type all struct{}

func (all) Contains(uint32) bool     { return true }
func (all) Before(doc uint32) uint32 { return min(doc, 1000) }

// even is what a filter allows.
type even struct{}

func (even) Contains(doc uint32) bool { return doc%2 == 0 }

// conversation is one of n messages by two agents in turns, a second apart.
func conversation(n int) *Conversations {
	c := NewConversations(0)
	for i := range n {
		c.Add(uint32(i), "trip", []string{"ann", "bob"}[i%2], int64(i)*int64(time.Second))
	}
	return c
}

func newRanking(t *testing.T, q Question) (*Plan, *Ranking) {
	t.Helper()
	q.ByText, q.TextFactor, q.VectorFactor = true, 1, 1
	if q.Parts == nil {
		q.Parts = map[memory.Part]bool{memory.PartNeighbours: true}
	}
	p := NewPlan(q)
	r := NewRanking()
	r.Begin(p)
	return p, r
}

// TestRankingWithoutARow scores what is given, without state, index or clock.
func TestRankingWithoutARow(t *testing.T) {
	p, r := newRanking(t, Question{Query: "summer holiday", Partitions: []Partition{{Conversations: conversation(6), Visible: all{}, Allow: even{}}}})
	if len(p.Concepts) != 2 {
		t.Fatalf("concepts %v", p.Concepts)
	}
	r.FoundText(0, 2, 1)
	if err := r.AddNeighbours(nil); err != nil {
		t.Fatal(err)
	}
	looked := map[uint32]int{}
	r.EachLookedAt(func(row, _ int, doc uint32) { looked[doc] = row })
	for doc := range uint32(6) { // 0 and 4 are candidates, the rest stands beside one
		if _, ok := looked[doc]; !ok {
			t.Errorf("document %d is not looked at", doc)
		}
	}
	r.Evidence(looked[2])[0].Score = 3
	r.Evidence(looked[3])[1] = index.Share{Score: 2, Term: 1}
	p.SetBound(100, func(int) uint64 { return 5 }, func(int) bool { return true })
	if err := r.Keep(nil); err != nil {
		t.Fatal(err)
	}
	r.Evaluate()
	r.Order()
	var got []string
	for _, c := range r.Candidates() {
		got = append(got, fmt.Sprintf("%d by %s", c.Doc, strings.Join(c.MatchedBy(), "+")))
	}
	// 4 has 3 right before it and 2 two before; 0 has 2 two after it and 3 three.
	if want := "[2 by text+neighbours 4 by neighbours 0 by neighbours]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	best := r.Candidates()[0]
	if best.Score <= 0 || best.Score > 1 || best.TextScore() <= 0 {
		t.Errorf("%+v", best)
	}
	sum := 0.0
	for _, part := range r.Explain(&best).Parts {
		sum += part.Weight * part.Value
	}
	if d := 1/(1+math.Exp(-sum)) - best.Score; d > 1e-9 || d < -1e-9 {
		t.Errorf("parts sum to %v, score is %v", sum, best.Score)
	}
}

// TestKeepDropsWhatWasOnlyLookedAt: a vector candidate beyond the best is none any
// more, and an error of the caller is its own.
func TestKeepDropsWhatWasOnlyLookedAt(t *testing.T) {
	_, r := newRanking(t, Question{Query: "holiday", ByVector: true, Partitions: []Partition{{Visible: all{}}}})
	for i := range vectorPool + 2 {
		r.FoundVector(0, uint32(i), 1-float64(i)/200, i)
	}
	r.KeepBestVectors()
	if err := r.Keep(nil); err != nil || len(r.Candidates()) != vectorPool {
		t.Errorf("%d candidates, %v", len(r.Candidates()), err)
	}
	if err := r.Keep(func(c *Candidate) (bool, error) { return c.Doc == 3, nil }); err != nil || len(r.Candidates()) != 1 || r.Candidates()[0].Chunk != 3 {
		t.Errorf("%+v, %v", r.Candidates(), err)
	}
	broken := errors.New("broken")
	if err := r.Keep(func(*Candidate) (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestMissingCosines asks for the cosines that the vector source did not bring, once
// each.
func TestMissingCosines(t *testing.T) {
	_, r := newRanking(t, Question{Query: "holiday", ByVector: true, Partitions: []Partition{{Conversations: conversation(6), Visible: all{}}}})
	r.FoundVector(0, 2, 0.9, 0)
	r.FoundText(0, 5, 1)
	r.KeepBestVectors()
	if err := r.AddNeighbours(nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Keep(nil); err != nil {
		t.Fatal(err)
	}
	got := map[uint32]int{}
	for _, doc := range r.MissingCosines(0) {
		got[doc]++
	}
	for doc, n := range got {
		if n != 1 || doc == 2 {
			t.Errorf("document %d is asked for %d times", doc, n)
		}
	}
	if len(got) != 5 {
		t.Errorf("missing are %v, want all but 2", got)
	}
}

// TestWordsThatNobodyWroteSpeakAgainst what is found by the rest of a query, the more the
// more memories there are.
func TestWordsThatNobodyWroteSpeakAgainst(t *testing.T) {
	for _, c := range []struct {
		query string
		docs  uint64
		has   []string
		want  float64
	}{
		{"blue kiln", 1000, []string{"blue", "kiln"}, 1},
		{"blue kiln", 200, []string{"blue"}, 0.75},
		{"blue kiln", 1800, []string{"blue"}, 0.55},
		{"blue kiln", 0, []string{"blue"}, 1},
		{"blue kiln", 1000, nil, 1},  // vectors answer alone
		{"deadbeef42", 1000, nil, 0}, // but not of codes
		{"what is OPS-4711 (10.99.3.1)?", 1000, nil, 0},
		{"deadbeef42 kiln", 1000, nil, 1},
		{"10.99.3.1 4711", 1, nil, 0},
		{"blue 窑炉", 200, []string{"blue"}, 1},            // no more than what is known
		{"blue 红土 窑炉", 200, []string{"blue"}, 1 - 0.5/6}, // one pair more, by half
		{"blue 青窑炉 红土", 200, []string{"blue", "青窑"}, 1},  // what follows a known pair may be cut in a word
		{"什么时候青窑", 200, []string{"青窑"}, 1},
		{"窑炉怎么样", 200, nil, 1},
		{"今天窑炉怎么样", 200, nil, 0.75}, // vectors and a time
		{"blue 3 May 2023", 1000, []string{"blue"}, 1},
		{"the", 1000, nil, 1},
		{"main.go kiln", 200, []string{"main"}, 0.625}, // of four terms
		{"main.go", 200, []string{"main.go"}, 1},
		{"main.go kiln", 200, []string{"main.go"}, 1},       // and is exact
		{"blue oven", 200, []string{"blue", "kiln"}, 0.825}, // by what a near word counts
	} {
		near := map[string][]Alternative{"oven": {{Term: "kiln", Kind: KindRelated, Weight: 0.3}}}
		p, r := newRanking(t, Question{Query: c.query, Alternatives: near, ByVector: true, Now: time.Date(2023, 6, 1, 0, 0, 0, 0, time.UTC), Partitions: []Partition{{Visible: all{}}}})
		p.SetBound(c.docs, func(int) uint64 { return 0 }, func(term int) bool { return slices.Contains(c.has, p.Words.Terms[term].Text) })
		r.FoundVector(0, 1, 0.5, 0)
		r.EachLookedAt(func(row, _ int, _ uint32) {
			for i := range p.Concepts {
				if slices.Contains(c.has, p.Concepts[i].Alternatives[0].Term) {
					r.Evidence(row)[i] = index.Share{Score: 1, Term: p.Concepts[i].first}
				}
			}
		})
		r.Evaluate()
		if got := r.Candidates()[0].values[featureKnown]; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q of %d memories that have %v: %v is known, want %v", c.query, c.docs, c.has, got, c.want)
		}
	}
}
