// Package loader brings what package importer reads into a namespace, and takes it back.
//
// Its job: to send items in batches, with what the node was too busy for again; to know
// what was imported before, so that it is left where it is the same and revised where it
// has changed; to find the records that exported memories are derived from; to change the
// knowledge graph; to forget what is no longer there; and to count all of this.
//
// Invariants: an import that is repeated, or taken up after it was cut off, adds nothing
// twice. Nothing is revised that was not imported from the same source, but by an export of itself,
// which the node has to show, and what others keep in a memory's metadata stays. Nothing is
// forgotten where something could not be read. No memory overtakes one of its conversation.
//
// Not its job: reading files (package importer), flags, questions to people, printing.
package loader
