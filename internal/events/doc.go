// Package events is the ground floor: what an event is and what its bytes are.
//
// It holds identities and positions, the envelope (clear header and sealed
// payload), the event types with their schema versions, frames, the hash chain
// that ties frames together, and the subjects by which events enter and leave.
// Nothing here does I/O, reads a clock or knows a key.
//
// Invariants:
//   - Encoding is canonical: one value has one byte string, and
//     Decode(Encode(v)) = v. What does not decode to itself is refused.
//   - Numbers (event types, kinds, field tags, presence bits) are append-only:
//     they are in logs that are never rewritten.
//   - Decoders accept any bytes: they return ErrMalformed or ErrNewer, never
//     panic, and allocate no more than a small multiple of the input.
//
// Not its job: sealing (keyring), storing (eventlog), meaning (projections).
package events
