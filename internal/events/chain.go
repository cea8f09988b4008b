package events

import (
	"crypto/sha256"
	"encoding/binary"
)

// Chain is the running hash over everything in a shard's log. Every sequence
// advances it, also a void frame's, so that it names one history.
type Chain = Hash

// NextChain is SHA-256("mneme.chain.1" ‖ previous ‖ sequence ‖ SHA-256(frame)).
func NextChain(previous Chain, seq uint64, frame []byte) Chain {
	body := sha256.Sum256(frame)
	const domain = "mneme.chain.1"
	var buf [len(domain) + 32 + 8 + 32]byte
	b := append(buf[:0], domain...)
	b = append(b, previous[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, body[:]...)
	return sha256.Sum256(b)
}

// HashEnvelope is the hash of one sealed event as audit rows carry it.
func HashEnvelope(envelope []byte) Hash {
	return sha256.Sum256(envelope)
}
