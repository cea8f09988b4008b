// Package views holds what the reads of a node open: a capability's partitions
// at one position, and what is kept in memory beside the state, which are the
// vector sets, the order of conversations and the vocabularies of partitions.
//
// Views follows the applied commands. A View is one capability over one
// consistent snapshot of the state.
//
// Invariants:
//   - There is no View without a Capability, and what the capability does not
//     open is not read.
//   - OnApply brings the memory up to date before the result of the apply is
//     told, so a record is searchable when its acknowledgement is given.
//   - Memory may be ahead of a View. What the View does not hold yet is left out
//     of every answer.
//   - Plaintext lives for one answer. Of what is opened only vectors and names are
//     kept. Vocabularies are read from rows in clear and dropped where words are erased.
//
// Not its job: ranking (rank), answering requests (query), deciding who may act
// as which agent (auth).
package views
