// Package rest is Mneme's HTTP surface: parse → call → write, and nothing else.
//
// Its job: one route table that the mux and the OpenAPI document are both made
// from; strict JSON in, problem documents (RFC 9457) out; server-sent events,
// newline-delimited progress and backup streams; and the checks that come
// before any handler: Host, Origin, token, body size, deadline.
//
// Invariants:
//   - A handler returns an error or has written an answer, never both. writeError
//     is the only place where an error becomes bytes; it never shows a stack or
//     the text of an internal error.
//   - A stream that fails after its first byte is broken off, so that half an
//     answer cannot be taken for a whole one.
//   - No handler starts a goroutine that outlives it.
//
// Not its job: deciding anything. What may be read or written, and what an
// answer holds, is decided behind Writer, Reader and Admin.
package rest
