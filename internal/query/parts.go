package query

import "mneme/memory"

// part is one addend of a score.
type part int

// The parts. All but the vectors belong to the text side: they speak in terms
// of the query's words.
const (
	partVector part = iota
	partText
	partNear
	partTalk
	partSpeaker
	partDate
	partExpand
	numParts
)

// sources are the names of the parts in matched_by and explain.
var sources = [numParts]string{"vector", "text", string(memory.PartNeighbours), string(memory.PartConversation),
	string(memory.PartSpeaker), string(memory.PartDates), string(memory.PartExpansion)}

// shares are the weights of the text side's parts beside one another. They were
// measured on the development sets (bench/retrieval -ablate) and are round on
// purpose: from half to twice each, recall@10 moves by less than 0.01. What
// neighbours lend fills in what the text itself lacks, so the two share one.
var shares = [numParts]float64{partText: 1, partNear: 1, partTalk: 0.2, partSpeaker: 0.23, partDate: 0.1, partExpand: 0.1}

// weigh gives the parts their weights, which never let a score exceed 1: text
// and neighbours together have at most the value 1.
func (p *plan) weigh(vector, text float64) {
	p.side = [2]float64{vector, text}
	sum := shares[partText]
	on := [numParts]bool{partText: true, partNear: p.on[memory.PartNeighbours], partTalk: p.on[memory.PartConversation],
		partSpeaker: len(p.speakers) > 0, partDate: len(p.dates) > 0,
		partExpand: p.on[memory.PartExpansion]}
	for k := partTalk; k < numParts; k++ {
		if on[k] {
			sum += shares[k]
		}
	}
	p.weight[partVector] = vector
	for k := partText; k < numParts; k++ {
		p.weight[k] = 0
		if on[k] {
			p.weight[k] = text * shares[k] / sum
		}
	}
}
