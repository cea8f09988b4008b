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
		"how do I get to the budget": false, "where can we see the budget": false, "can I see the budget?": false, "should we cut the budget": false,
		"which budget do we use": true, "where did we put the budget": true, "how do I see my budget": true, "How it is. Do I like the budget?": true,
		"the budget": false, "disk I/O errors": false, "us-east-1 buckets": false, "buckets in eu-west-1/us-east-1": false, "my_table": false, "/etc/my.cnf": false,
		"node.me": false, "ops@me.example": false, "US budget": false, "mysql": false, "": false,
	} {
		p := NewPlan(Question{Query: query, ByText: true, Parts: map[memory.Part]bool{}})
		if p.first != want {
			t.Errorf("%q is in the first person: %v", query, p.first)
		}
	}
}

// TestRecency: the first memory has nothing, and the last one not all.
func TestRecency(t *testing.T) {
	for _, c := range []struct {
		newer, n uint32
		want     float64
	}{{0, 0, 0}, {0, 1, 0}, {34, 35, 0}, {0, 35, 0.06}, {0, 1500, 0.58}, {0, 100_000, 0.84}, {500, 1500, 0.17}} {
		if got := recency(c.newer, c.n); math.Abs(got-c.want) > 0.005 {
			t.Errorf("%d newer ones of %d: %.3f, want %.2f", c.newer, c.n, got, c.want)
		}
	}
}
