package stats

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // descending: order must not matter
	}
	for _, c := range []struct {
		values []int
		p      float64
		want   int
	}{
		{nil, 50, 0},
		{[]int{7}, 1, 7},
		{[]int{7}, 99, 7},
		{[]int{2, 1}, 50, 1},
		{[]int{2, 1}, 51, 2},
		{[]int{15, 20, 35, 40, 50}, 30, 20},
		{[]int{15, 20, 35, 40, 50}, 40, 20},
		{[]int{15, 20, 35, 40, 50}, 100, 50},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 99.5, 100},
	} {
		if got := Percentile(c.values, c.p); got != c.want {
			t.Errorf("Percentile(%v, %v) = %d, want %d", c.values, c.p, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("Percentile sorted its argument")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", before, got, c.want)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("Median changed its argument %v", before)
		}
	}
	if Mean(nil) != 0 || Mean([]float64{1, 2, 6}) != 3 {
		t.Error("Mean")
	}
	if PerSecond(10, 2*time.Second) != 5 || PerSecond(10, 0) != 0 {
		t.Error("PerSecond")
	}
}

func TestRecall(t *testing.T) {
	ranked := []string{"x", "a", "a", "y", "b", "z"}
	for _, c := range []struct {
		name     string
		relevant []string
		k        int
		r, all   float64
	}{
		{"none relevant", nil, 5, 0, 0},
		{"k 0", []string{"a"}, 0, 0, 0},
		{"not reached", []string{"a"}, 1, 0, 0},
		{"reached", []string{"a"}, 2, 1, 1},
		{"a repeat counts once", []string{"a", "b"}, 3, 0.5, 0},
		{"both", []string{"a", "b"}, 5, 1, 1},
		{"one of them nowhere", []string{"a", "b", "nowhere"}, 100, 2.0 / 3, 0},
	} {
		if got := Recall(ranked, c.relevant, c.k); math.Abs(got-c.r) > 1e-12 {
			t.Errorf("%s: Recall = %v, want %v", c.name, got, c.r)
		}
		if got := RecallAll(ranked, c.relevant, c.k); got != c.all {
			t.Errorf("%s: RecallAll = %v, want %v", c.name, got, c.all)
		}
	}
}

func TestReciprocalRank(t *testing.T) {
	ranked := []string{"x", "a", "b"}
	for _, c := range []struct {
		relevant []string
		want     float64
	}{{nil, 0}, {[]string{"x"}, 1}, {[]string{"b", "a"}, 0.5}, {[]string{"b"}, 1.0 / 3}, {[]string{"q"}, 0}} {
		if got := ReciprocalRank(ranked, c.relevant); got != c.want {
			t.Errorf("ReciprocalRank(%v) = %v, want %v", c.relevant, got, c.want)
		}
	}
}

func TestInterval(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	low, high := Interval(values, 1)
	if again, _ := Interval(values, 1); again != low {
		t.Errorf("the same seed gives %v and %v", low, again)
	}
	// The exact bootstrap distribution of a median of nine puts 2.5 % below 2 or 3.
	if low < 2 || low > 3 || high < 7 || high > 8 {
		t.Errorf("got %v to %v around 5", low, high)
	}
	if low, high := Interval([]float64{3, 3, 3}, 1); low != 3 || high != 3 {
		t.Errorf("equal values give %v to %v", low, high)
	}
}
