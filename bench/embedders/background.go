package main

import (
	"math"

	"mneme/bench/internal/judged"
)

// pairsEach is how many texts each question is compared with.
const pairsEach = 20

// background returns the mean and the standard deviation of the cosines of a set's
// questions with texts that they have nothing to do with: those of the next namespace.
func background(set *judged.Set, e embedder) (mean, deviation float64) {
	n, sum, squares := 0.0, 0.0, 0.0
	for i, ns := range set.Namespaces {
		other := set.Namespaces[(i+1)%len(set.Namespaces)].Captures
		var texts [][]float32
		for k := range pairsEach {
			texts = append(texts, e.vector(other[k*len(other)/pairsEach].Text))
		}
		for _, q := range ns.Questions {
			v := e.vector(q.Text)
			for _, t := range texts {
				dot := 0.0
				for d := range v {
					dot += float64(v[d]) * float64(t[d])
				}
				n, sum, squares = n+1, sum+dot, squares+dot*dot
			}
		}
	}
	mean = sum / n
	return mean, math.Sqrt(squares/n - mean*mean)
}
