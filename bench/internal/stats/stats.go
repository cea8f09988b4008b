// Package stats sums up measured values.
//
// Its job: percentiles, medians and recall measures, as pure functions that do
// not change their arguments. Not its job: measuring, printing.
package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Percentile is the nearest-rank percentile p (0 < p <= 100) of values: the
// smallest value that at least p percent of them do not exceed. 0 for none.
func Percentile[T cmp.Ordered](values []T, p float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle value, or the mean of the two in the middle; 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Mean is the arithmetic mean; 0 for none.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// PerSecond is n per second of took; 0 if no time passed.
func PerSecond(n int, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// resamples is how often Interval draws.
const resamples = 5000

// Interval is a 95 % bootstrap interval of the median: the 2.5th and the 97.5th
// percentile of medians of values drawn with replacement (Efron 1979). The same
// seed gives the same interval.
func Interval(values []float64, seed uint64) (low, high float64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	medians := make([]float64, resamples)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[rng.IntN(len(values))]
		}
		medians[i] = Median(drawn)
	}
	return Percentile(medians, 2.5), Percentile(medians, 97.5)
}
