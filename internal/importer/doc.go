// Package importer reads files of memories as a stream of captures.
//
// Its job: one Source for each format, which yields captures one by one, in the
// order of the file, each with an id that is the same at every reading, so that
// a repeated import adds nothing. A malformed item is an *ItemError that names
// its line, and reading goes on behind it.
//
// Invariants: equal bytes and options give equal items; no Source holds more
// than one line (jsonl) or one conversation (locomo) at a time, apart from a
// digest for each jsonl line without an id; nothing panics or allocates without
// bound on bad input.
//
// Not its job: sending, creating namespaces, reporting.
package importer
