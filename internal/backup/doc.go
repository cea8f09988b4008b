// Package backup is what backups are made of: the file of a range of the log, the
// manifest that makes a backup of it, and the place that holds several of them.
//
// Invariants:
//   - What no manifest names is no backup. The manifest is written last, after each
//     file that it names was read back and compared.
//   - A range goes on from a mark, which holds the chain over everything before it:
//     two ranges that meet in a mark are one log.
//   - Nothing here is opened: the log stays sealed, and keys are bytes.
//   - The keys of a place together open every backup but what was erased. Mostly the newest
//     do; others go only once the newest hold all that lives in them.
//   - A manifest, and the list that it names, counts where it was written by who had the keys.
//   - What any backup of a place knows as destroyed is destroyed by a restore of each.
//
// Not its job: reading a node's log, or building a state from one (node does both),
// where credentials come from (commands), or keeping two runs apart: both are whole.
package backup
