// Package hooks is what runs when the host of an agent (Claude Code, Codex, Cursor …) calls a
// hook: it reads what happened, keeps what is worth it, and says what is known about it.
//
//	payload → Normalise → redact → Run ─┬─ Find → spool → the node
//	                                    └─ search → recall.Compose → Output
//
// Invariants: nothing is kept, spooled, logged or searched for before secrets were taken out
// of it; a capture is in the spool before the host is answered and before it is sent, synced
// before a hook ends, and leaves it when its node has said what became of it, so it is stored
// once however often it is sent, and on no other node; one that cannot be spooled is on its node
// before the host is answered, or said not to be kept; what lies on disk is
// sealed; a block of memories is never captured; a host gets the fields that it accepts and
// nothing else, and an empty answer where there is nothing to say.
//
// Not its job: talking to a terminal, reading flags, finding the node or the namespace, and
// installing itself into the configuration of a host.
package hooks
