// Package agentsync writes Mneme into the configuration of hosts of agents, and takes it out.
//
//	Host → edits → Plan (what each file would become) → Apply (all of them, or none)
//
// Invariants: comments, unknown keys, order, indentation, line ends and the mark of the
// encoding stay; what put adds, take gives back to the byte; a second put changes nothing; a
// file that cannot be read as what it is, that may not be written, or that changed meanwhile
// is refused and left alone, and then no other file is changed either; a link stays one.
//
// Not its job: choosing a namespace, asking, printing, or starting anything.
package agentsync
