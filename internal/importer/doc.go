// Package importer reads what other tools keep of memories as a stream of captures.
//
// Its job: to find out what a file or folder is (Find), and one Source for each
// format, which yields items one by one, in the order of the file, each with an id
// that is the same at every reading, so that a repeated import adds nothing. A
// malformed item is an *ItemError and something left out on purpose is a *Skip;
// both name the place, and reading goes on behind them.
//
// Invariants: equal bytes and options give equal items; memory is bounded: one
// line, one conversation, one Markdown file or one element of an array is held at
// a time, each of a largest size, apart from a digest for each jsonl line without
// an id; nothing that is read makes it panic, allocate without bound, follow a
// path out of the folder that was named, or write a file.
//
// Not its job: sending, creating namespaces, updating, reporting.
package importer
