// Package embed turns texts into vectors. It is the one place that speaks to
// embedding models: the built-in ones (package static, the default, and package
// builtin) and those in a directory (package local), which run in this process,
// and the servers of others (Ollama, OpenAI and
// everything compatible with it, Gemini).
//
// # Invariants
//
//   - What comes back is one finite unit vector per text, in the order of the
//     texts, with the dimensions of the Space; or an error and no vector.
//   - A Space is fixed when the Embedder is opened. Vectors of different spaces
//     never mix, so an answer of another size is an error, never a new space.
//   - With the built-in and the local provider, text does not leave the process,
//     and nothing is fetched. No other
//     provider is ever chosen because a key or a server happens to be there:
//     Detect only tells.
//   - API keys and texts appear in no error, no log line and no printed
//     configuration.
//   - Failures are typed (errors.go): the caller can tell "later" from "never"
//     without reading words.
//
// # Not its job
//
// It does not cut texts into chunks, store vectors, decide which namespace uses
// which space, or read flags and environment: the environment arrives as a
// lookup function. Only built-in vectors may be derived in a replay (IsBuiltin);
// what a server or a local model answers must be recorded by the caller as an
// event.
package embed
