package projections

import "slices"

// EpochStart is an epoch of the log and its first sequence.
type EpochStart struct {
	Epoch uint32
	Seq   uint64
}

// Epochs are the epochs that have begun after epoch 0, which begins with the log.
// Both numbers rise. Numbers between two of them were passed over and hold nothing.
// A value is never changed in place.
type Epochs []EpochStart

// Of is the epoch in which a sequence was written.
func (e Epochs) Of(seq uint64) uint32 {
	for _, began := range slices.Backward(e) {
		if began.Seq <= seq {
			return began.Epoch
		}
	}
	return 0
}

// with adds the latest epoch.
func (e Epochs) with(epoch uint32, seq uint64) Epochs {
	return append(slices.Clip(e), EpochStart{epoch, seq})
}
