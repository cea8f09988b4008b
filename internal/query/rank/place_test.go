package rank

import (
	"math"
	"testing"

	"mneme/memory"
)

// TestTheFirstPerson: words of the first person count where they stand by themselves, with or
// without their part of the score.
func TestTheFirstPerson(t *testing.T) {
	for query, want := range map[string]bool{
		"what is my budget": true, "budget: mine": true, "our budget": true, "does it send us the budget?": true, "a budget of ours.": true,
		"show me the budget": true, "do it myself: a budget": true, "we’re late": true, "I'm late": true, "(my budget)": true, `"my budget"`: true, "my budget, in EUR": true,
		"the budget": false, "disk I/O errors": false, "us-east-1 buckets": false, "buckets in eu-west-1/us-east-1": false, "my_table": false, "/etc/my.cnf": false,
		"node.me": false, "ops@me.example": false, "US budget": false, "mysql": false, "": false,
	} {
		p := NewPlan(Question{Query: query, ByText: true, Parts: map[memory.Part]bool{}})
		if p.first != want {
			t.Errorf("%q is in the first person: %v", query, p.first)
		}
	}
}

// TestRecency: the first memory has nothing, the last one not all, and one that the reader does not
// see yet nothing.
func TestRecency(t *testing.T) {
	for _, c := range []struct {
		doc, docs uint32
		want      float64
	}{{0, 0, 0}, {0, 1, 0}, {0, 35, 0}, {34, 35, 0.06}, {1499, 1500, 0.58}, {99_999, 100_000, 0.84}, {999, 1500, 0.17}, {35, 35, 0}, {math.MaxUint32, 35, 0}} {
		if got := recency(c.doc, c.docs); math.Abs(got-c.want) > 0.005 {
			t.Errorf("document %d of %d has %.3f, want %.2f", c.doc, c.docs, got, c.want)
		}
	}
}
