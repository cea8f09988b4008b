package raftfsm

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Sentinels. Compare with errors.Is.
var (
	// ErrNotLeader, ErrUnknownOutcome and ErrRefused say what became of a
	// command; each error of a Propose matches exactly one of them.
	//
	// ErrNotLeader: this replica does not lead the group, or hands over. The
	// command is not in the log and never will be.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknownOutcome: the command may be in the log and may yet be applied.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrRefused: the command never reached the log and never will; who leads has
	// nothing to do with it.
	ErrRefused = errors.New("command refused")
	// ErrHalted: the machine failed; the group applies nothing more until it is
	// opened again, or goes on as Resumer says. The error in the chain is a *HaltError.
	ErrHalted = errors.New("group is halted")
	// ErrClosed: the group is closed or closing.
	ErrClosed = errors.New("group is closed")
	// ErrTooLarge: the command is longer than Options.MaxCommandBytes.
	ErrTooLarge = errors.New("command is too large")
	// ErrStorage: the Raft log could not be written (the cause follows in the
	// chain, for example ENOSPC).
	ErrStorage = errors.New("raft log cannot be written")
	// ErrCorruptLog: a value of the Raft log fails its checksum or its shape.
	ErrCorruptLog = errors.New("raft log is corrupt")
	// ErrCorruptSnapshot: a snapshot's manifest, stream or file fails its checksum.
	ErrCorruptSnapshot = errors.New("snapshot is corrupt")
	// ErrDamaged: the Raft log is damaged, missing or ends before the machine's
	// index, and the group may not repair it by itself because it has, or may
	// have, more than one voter. The error in the chain is a *RejoinError.
	ErrDamaged = errors.New("raft log does not fit the state")
	// ErrStateLost: the machine lies behind the Raft log's beginning and no
	// intact snapshot bridges the gap.
	ErrStateLost = errors.New("state lies behind the raft log: build it anew from the event log")
	// ErrNotCaughtUp: this replica has not been handed everything yet that its
	// log held when it was opened. It helps to try again later.
	ErrNotCaughtUp = errors.New("replica has not caught up since its start")
	// ErrLocked: another process, or another group, has the directory open.
	ErrLocked = errors.New("directory is in use")
	// ErrNoPeer: there is no other voter that could take over.
	ErrNoPeer = errors.New("no peer to hand over to")
	// ErrOtherNode: the directory holds the Raft files of another node, the only
	// voter of its group.
	ErrOtherNode = errors.New("the raft files are those of another node")
	// ErrMembersUnknown: no file of the group that can be read says who its voters
	// are, and one that cannot be read would.
	ErrMembersUnknown = errors.New("no readable file says who the group's voters are")
	// ErrNoSync: NoSync is for a group with a single voter only.
	ErrNoSync = errors.New("NoSync is for a single voter")
)

// RejoinError says that a replica with peers cannot go on with its own files.
// Nothing was moved or removed: a voter that forgot its vote may elect two
// leaders, and a peer has everything. It matches ErrDamaged and its cause.
type RejoinError struct {
	Dir   string // the group's directory
	Cause error
}

func (e *RejoinError) Error() string {
	return fmt.Sprintf("raft files in %s cannot be used: %v: this replica has peers and must rejoin: "+
		"remove it from the group through another replica, move the directory away, and let it join anew", e.Dir, e.Cause)
}

// Unwrap makes errors.Is(err, ErrDamaged) and errors.Is(err, cause) true.
func (e *RejoinError) Unwrap() []error { return []error{ErrDamaged, e.Cause} }

// HaltError says where and why a group stopped applying. It matches ErrHalted
// and its cause.
type HaltError struct {
	Index uint64 // Raft index of the entry, or of the first entry of its batch
	Cause error
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("group is halted at raft index %d: %v", e.Index, e.Cause)
}

// Unwrap makes errors.Is(err, ErrHalted) and errors.Is(err, cause) true.
func (e *HaltError) Unwrap() []error { return []error{ErrHalted, e.Cause} }

// ApplyError may be returned by Machine.Apply to name the entry that failed;
// without it the first index of the batch is reported.
type ApplyError struct {
	Index uint64
	Err   error
}

func (e *ApplyError) Error() string { return fmt.Sprintf("entry %d: %v", e.Index, e.Err) }

// Unwrap returns the cause.
func (e *ApplyError) Unwrap() error { return e.Err }

// raftErr translates an error of the raft library to this package's sentinels.
func raftErr(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("raftfsm %s: %w: %w", op, ErrNotLeader, err)
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return fmt.Errorf("raftfsm %s: %w: %w", op, ErrUnknownOutcome, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("raftfsm %s: %w", op, ErrClosed)
	default:
		return fmt.Errorf("raftfsm %s: %w", op, err)
	}
}

// proposeErr is raftErr for a command that was handed to raft. A failed write of
// the log leaves open what the disk holds, and a group that is opened again
// commits what it finds there.
func proposeErr(err error) error {
	out := raftErr("propose", err)
	if errors.Is(out, ErrNotLeader) || errors.Is(out, ErrUnknownOutcome) {
		return out
	}
	return fmt.Errorf("%w: %w", out, ErrUnknownOutcome)
}
