// Package lint holds the house rules as tests: which package may import which,
// where flags and environment are read, how long a file may get, that every
// package says its job and every dependency its reason.
//
// Invariants: a violation says why the rule exists and what to do instead; each
// rule is itself tested against code that breaks it; nothing but the source tree
// is read, so that a tree that does not compile is checked too.
//
// Not its job: what go vet and gofmt find (format is checked here only so that
// one command finds everything).
package lint
