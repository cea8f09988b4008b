package stats

import "math/rand/v2"

// Sample is the value of one question, and the group it is drawn with: questions
// about one conversation succeed and fail together.
type Sample struct {
	Group string
	Value float64
}

// GroupInterval is a 95 % bootstrap interval of the mean: the 2.5th and the 97.5th
// percentile of means over groups drawn with replacement, each with all of its
// samples (the cluster bootstrap: Davison and Hinkley 1997, section 3.8). The same
// seed gives the same interval; no samples give 0.
//
// It says how much the mean depends on which groups were asked about, not what
// other data would give.
func GroupInterval(samples []Sample, seed uint64) (low, high float64) {
	return resample(draws(samples, nil), seed, func(d draw) (float64, bool) { return d.after / d.nAfter, d.nAfter > 0 })
}

// GroupDifference is the same of the mean of after less that of before, paired: each
// time the same groups are drawn for both.
func GroupDifference(after, before []Sample, seed uint64) (low, high float64) {
	return resample(draws(after, before), seed, func(d draw) (float64, bool) {
		return d.after/d.nAfter - d.before/d.nBefore, d.nAfter > 0 && d.nBefore > 0
	})
}

// draw sums up samples: of one group, or of those drawn.
type draw struct{ after, nAfter, before, nBefore float64 }

// draws returns the sums of each group, in the order in which groups appear.
func draws(after, before []Sample) []draw {
	var out []draw
	at := map[string]int{}
	of := func(group string) *draw {
		i, known := at[group]
		if !known {
			i = len(out)
			at[group] = i
			out = append(out, draw{})
		}
		return &out[i]
	}
	for _, s := range after {
		d := of(s.Group)
		d.after, d.nAfter = d.after+s.Value, d.nAfter+1
	}
	for _, s := range before {
		d := of(s.Group)
		d.before, d.nBefore = d.before+s.Value, d.nBefore+1
	}
	return out
}

// resample draws as many groups as there are, again and again. value says false of a
// draw that has none.
func resample(groups []draw, seed uint64, value func(draw) (float64, bool)) (low, high float64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	values := make([]float64, 0, resamples)
	for range resamples {
		var sum draw
		for range groups {
			d := groups[rng.IntN(len(groups))]
			sum = draw{sum.after + d.after, sum.nAfter + d.nAfter, sum.before + d.before, sum.nBefore + d.nBefore}
		}
		if v, ok := value(sum); ok {
			values = append(values, v)
		}
	}
	return Percentile(values, 2.5), Percentile(values, 97.5)
}
