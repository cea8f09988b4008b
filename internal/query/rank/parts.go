package rank

import (
	index "mneme/internal/index/text"
	"mneme/memory"
)

// part is one addend of a score.
type part int

// The parts. From partText on they are of the text side: they come from the
// query's words.
const (
	partVector part = iota
	partVectorNeighbours
	partText
	partNeighbours
	partSpeaker
	partDate
	numParts
)

// sources are the names of the parts in matched_by and explain.
var sources = [numParts]string{"vector", "vector_neighbours", "text", string(memory.PartNeighbours),
	string(memory.PartSpeaker), string(memory.PartDates)}

// shares are the weights of the text side's parts beside one another. They were
// measured on the development sets (bench/retrieval -ablate) and are round on
// purpose: from half to twice each, recall@10 moves by less than 0.01. Neighbours
// add what the text itself lacks, so the two share one weight.
var shares = [numParts]float64{partText: 1, partNeighbours: 1, partSpeaker: 0.23, partDate: 0.1}

const (
	// shareVectorNeighbours is the weight of the neighbours' vectors beside a
	// message's own.
	shareVectorNeighbours = 0.5
	// fullIDF is the sum of idf up to which vectors have their whole weight. The
	// more words a query has, the more they say beside its one vector.
	fullIDF = 20
)

// weigh gives the parts their weights, which never let a score exceed 1: text
// and neighbours together have at most the value 1. It needs the bound.
func (p *Plan) weigh() {
	p.weight = [numParts]float64{}
	if !p.HasText() {
		p.weight[partVector] = p.side[0]
		return
	}
	sum := shares[partText]
	on := [numParts]bool{partText: true, partNeighbours: p.Parts[memory.PartNeighbours], partSpeaker: len(p.speakers) > 0, partDate: len(p.dates) > 0}
	for k := partSpeaker; k < numParts; k++ {
		if on[k] {
			sum += shares[k]
		}
	}
	for k := partText; k < numParts; k++ {
		if on[k] {
			p.weight[k] = p.side[1] * shares[k] / sum
		}
	}
	vector := p.side[0] * min(1, fullBound/p.bound)
	if !on[partNeighbours] {
		p.weight[partVector] = vector
		return
	}
	p.weight[partVector] = vector / (1 + shareVectorNeighbours)
	p.weight[partVectorNeighbours] = vector * shareVectorNeighbours / (1 + shareVectorNeighbours)
}

// fullBound is the bound of fullIDF.
const fullBound = (index.DefaultK1 + 1) * fullIDF
