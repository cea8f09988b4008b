package stats

import (
	"math"
	"strconv"
	"testing"
)

// ones returns n samples, the first k of them 1 and the rest 0, in groups of size.
func ones(n, k, size int) []Sample {
	out := make([]Sample, n)
	for i := range out {
		out[i].Group = strconv.Itoa(i / size)
		if i < k {
			out[i].Value = 1
		}
	}
	return out
}

// TestGroupInterval compares with the closed form: the mean over n groups, each all 0
// or all 1, is that of a binomial variable, whatever the size of a group. Quantiles
// are those of B(100, 0.3) and B(10, 0.5), where they are clear of a step.
func TestGroupInterval(t *testing.T) {
	for _, c := range []struct {
		name      string
		samples   []Sample
		low, high float64
		within    float64
	}{
		{"100 questions, 30 right", ones(100, 30, 1), 0.21, 0.39, 0.0101},
		{"the same in groups of ten", ones(1000, 300, 10), 0.21, 0.39, 0.0101},
		{"ten groups, half of them right", ones(100, 50, 10), 0.2, 0.8, 1e-9},
		{"nothing", nil, 0, 0, 0},
		{"all equal", ones(40, 40, 2), 1, 1, 0},
		{"one group", ones(10, 5, 10), 0.5, 0.5, 0},
	} {
		low, high := GroupInterval(c.samples, 1)
		if math.Abs(low-c.low) > c.within || math.Abs(high-c.high) > c.within {
			t.Errorf("%s: %v to %v, want %v to %v", c.name, low, high, c.low, c.high)
		}
		if l, h := GroupInterval(c.samples, 1); l != low || h != high {
			t.Errorf("%s: the same seed gives %v to %v, then %v to %v", c.name, low, high, l, h)
		}
	}
}

func TestGroupDifference(t *testing.T) {
	before := ones(100, 30, 1)
	if low, high := GroupDifference(before, before, 1); low != 0 || high != 0 {
		t.Errorf("of the same: %v to %v", low, high)
	}
	// Each question 0.1 better: unpaired, the interval would be 0.25 wide.
	after := ones(100, 30, 1)
	for i := range after {
		after[i].Value += 0.1
	}
	if low, high := GroupDifference(after, before, 1); math.Abs(low-0.1) > 1e-9 || math.Abs(high-0.1) > 1e-9 {
		t.Errorf("of all 0.1 better: %v to %v", low, high)
	}
	// Ten more right of 100: the difference is that of a binomial, B(100, 0.1)/100.
	if low, high := GroupDifference(ones(100, 40, 1), before, 1); math.Abs(low-0.05) > 0.0101 || math.Abs(high-0.16) > 0.0101 {
		t.Errorf("of ten more right: %v to %v, want 0.05 to 0.16", low, high)
	}
	// A measure that after says of fewer questions: means are over those that have it.
	if low, high := GroupDifference(ones(100, 30, 1)[:30], before, 1); low < 0.6 || high > 0.8 || high < low {
		t.Errorf("of 1.0 beside 0.3: %v to %v", low, high)
	}
	if low, high := GroupDifference(nil, before, 1); low != 0 || high != 0 {
		t.Errorf("of nothing: %v to %v", low, high)
	}
}
