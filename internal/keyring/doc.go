// Package keyring keeps the data keys of namespaces and subjects, seals and
// opens values under them, and makes the keyed hashes that stand for terms and
// names wherever plaintext must not.
//
// Invariants:
//   - A key is durable, in both copies, before the call that made it returns.
//   - After Destroy returns, the key is in neither copy, in no temporary file
//     and in no handle; the intermediate key it was wrapped under is gone as
//     well. Its id stays known as destroyed, for ever.
//   - Equal input seals to equal bytes; any other input has another nonce.
//   - A subject's name is never stored: it is found by a keyed tag. Key types
//     print as their id, whatever the verb.
//   - Readers never wait for a disk. Writers wait for each other.
//
// Keys hang together like this; every arrow to the right is AES-256-GCM or HKDF:
//
//	master.key ─► intermediate key ─► image: cluster key, namespaces, subjects
//	    └► node key                            │
//	                                           ├ data key ─► enc, nonce, mac
//	                                           └ index key ─► term, name, tag
//
// The storage keys of this node are beside it, in a file of their own that is
// wrapped under master key and node secret together; see StorageKeys.
//
// Not its job: who may read (auth), telling the log that a key was made or
// destroyed (ingest), comparing log and keyring after a restore, locking the
// data directory, replicating the image (a Store does that), or scrubbing the
// medium: a replaced file's old blocks belong to the file system until reused,
// and an old copy of the whole file still opens with the master key.
package keyring
