// Package encfs is a file system that encrypts what is written on another one.
// Pebble's files, graphs, snapshots and spools lie on it; whoever writes them
// knows nothing of it.
//
// Each file has a key of its own, random, in its header, wrapped under the
// node's storage key. The content is encrypted with AES-256-CTR by offset. A file
// key never encrypts two contents at one offset, as long as nobody overwrites
// bytes in place: Pebble appends, and a file that is reused gets a new key.
//
// Invariants:
//   - A file that is not longer than its header is empty, whatever the header
//     holds. A longer one has a header that was synced before its first byte of
//     content was written.
//   - What wraps a file key can be changed (Rewrap) while the file is read and
//     written; at any moment of a crash one of the two slots opens.
//
// It hides contents. Names, sizes, times and the number of files stay visible.
// It does not prove that nobody changed a file: AES-CTR does not authenticate,
// and Pebble's checksums have no key. A hole that was never written does not read
// as zeros. Box seals single values, with authentication.
//
// It stands below Pebble's own health checks, which pebble.Open puts outermost,
// and above anything that tries a failed write again.
package encfs
