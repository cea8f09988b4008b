package query

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
	// meanOf is how many of the best results the mean is over; ones that are
	// not there count as 0.
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

// calibrate puts calibrated scores for fused ones. Candidates stand best first.
func (sc *scratch) calibrate(c calibration) {
	if len(sc.cands) == 0 || sc.cands[0].fused <= 0 {
		return
	}
	best, mean := sc.cands[0].fused, 0.0
	for i := range min(meanOf, len(sc.cands)) {
		mean += sc.cands[i].fused / meanOf
	}
	mean = max(mean, leastMean)
	for i := range sc.cands {
		x := &sc.cands[i]
		x.score = 0
		if x.fused > 0 {
			x.score = 1 / (1 + math.Exp(-c.offset-c.best*math.Log(x.fused/best)-c.mean*math.Log(x.fused/mean)))
		}
	}
}
