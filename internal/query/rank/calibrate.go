package rank

import "math"

// calibration says how likely a result is relevant, as a logistic function of
// how its score stands out: beside the best, and beside the mean of the ten
// best. How high scores are means little on its own, since questions differ in
// how many of their words any text holds.
//
//	p = 1 / (1 + exp(-(offset + best·ln(s/max) + mean·ln(s/mean10))))
//
// With positive best and mean it keeps the order, and 0 stays 0. The numbers
// were fitted to the development sets, each counting the same; bench/retrieval
// prints how well they hold.
type calibration struct{ offset, best, mean float64 }

const (
	// meanOf is how many of the best results the mean is over; missing ones
	// count as 0.
	meanOf = 10
	// leastMean stands for the mean where hardly anything competes: then the
	// score itself must be high.
	leastMean = 0.1
)

// Calibrations by what answers.
var (
	calibrateText   = calibration{offset: -1.9, best: 2, mean: 5.5}
	calibrateHybrid = calibration{offset: -1.9, best: 2, mean: 5.5}
)

// calibrate replaces sums by calibrated scores. Candidates stand best first.
func (r *Ranking) calibrate(c calibration) {
	if len(r.candidates) == 0 || r.candidates[0].Sum <= 0 {
		return
	}
	best, mean := r.candidates[0].Sum, 0.0
	for i := range min(meanOf, len(r.candidates)) {
		mean += r.candidates[i].Sum / meanOf
	}
	mean = max(mean, leastMean)
	for i := range r.candidates {
		x := &r.candidates[i]
		x.Score = 0
		if x.Sum > 0 {
			x.Score = 1 / (1 + math.Exp(-c.offset-c.best*math.Log(x.Sum/best)-c.mean*math.Log(x.Sum/mean)))
		}
	}
}
