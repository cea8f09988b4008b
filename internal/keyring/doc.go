// Package keyring keeps the data keys of namespaces and subjects, seals and
// opens values under them, and makes the keyed hashes that stand for names
// wherever plaintext must not.
//
// Invariants:
//   - It is a state machine: Apply gives the same answer and the same state on
//     every node that brings the same commands, and Snapshot and Restore move that
//     state. All randomness stands in the command, drawn by who proposed it.
//   - A key is durable, in both copies, before the call that made it returns.
//   - After Destroy returns, the key is in neither copy, in no temporary file, in
//     no record of a command that opens, and in no handle; the node secret that the
//     files were wrapped under is gone as well, so older copies stay shut. Its id
//     stays known as destroyed, for ever.
//   - Equal input seals to equal bytes; any other input has another nonce.
//   - A subject's name is never stored: it is found by a keyed tag. Key types
//     print as their id, whatever the verb.
//   - Readers never wait for a disk. Writers wait for each other.
//
// Keys hang together like this; every arrow to the right is AES-256-GCM or HKDF:
//
//	master key ─┬ node.secret ─► keyring.v1: command key, cluster key, namespaces, subjects
//	            │          │           │                           │
//	            │          │           └ records: commands         ├ data key ─► enc, nonce, mac
//	            │          └► storage.keys                         └ index key ─► name, tag
//	            └► node key
//
// A write appends its command, sealed under the command key, to the two copies of
// one file, A and then B. What destroys writes the file anew under a new node
// secret, with a new command key, and so do records that outgrow the image.
//
// Not its job: who may read (auth), telling the log that a key was made or
// destroyed (ingest), comparing log and keyring after a restore, locking the
// data directory, ordering the commands of several nodes (a Proposer does that),
// or scrubbing the medium: a replaced file's old blocks belong to the file system
// until reused. Who has older copies of keyring and node.secret, and the master
// key, still opens them.
package keyring
