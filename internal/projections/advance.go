package projections

import (
	"fmt"

	"mneme/internal/events"
)

// Answer says what a command did to the state. All replicas that are sound give
// the same answer to the same command.
type Answer uint8

const (
	// AnswerApplied: the range, or what of it was not known yet, was folded.
	AnswerApplied Answer = iota
	// AnswerBehind: the state holds the whole range already.
	AnswerBehind
	// AnswerAhead: frames between the state and the range are missing. Nothing
	// was changed; the proposer's round is over.
	AnswerAhead
	// AnswerOtherChain: the range belongs to another history. Nothing was
	// changed; the proposer's round is over.
	AnswerOtherChain
)

func (a Answer) String() string {
	switch a {
	case AnswerApplied:
		return "applied"
	case AnswerBehind:
		return "behind"
	case AnswerAhead:
		return "ahead"
	case AnswerOtherChain:
		return "other chain"
	}
	return fmt.Sprintf("answer %d", uint8(a))
}

// RangeResult is what became of one range.
type RangeResult struct {
	Answer Answer
	Cursor Cursor        // where the state stands after it
	Events []EventResult // one for each event of the valid frames folded now, in order
}

// Done reports whether the state holds the range.
func (r *RangeResult) Done() bool { return r.Answer == AnswerApplied || r.Answer == AnswerBehind }

// DivergedError says that this replica does not hold what the proposer of a
// command held when it made it. Only this replica stops: it fetches a snapshot
// or is built again from the log.
type DivergedError struct {
	Leader Mark // what the command names
	Here   Mark // the same place in this state, or its end if that lies before
}

func (e *DivergedError) Error() string {
	if e.Here.Seq < e.Leader.Seq {
		return fmt.Sprintf("this replica has diverged: it stands at sequence %d, the leader had applied %d; rebuild it", e.Here.Seq, e.Leader.Seq)
	}
	return fmt.Sprintf("this replica has diverged: it holds another history up to sequence %d than the leader; rebuild it", e.Leader.Seq)
}

// PipelineError says that a command was derived by another pipeline version.
type PipelineError struct{ Command uint32 }

func (e *PipelineError) Error() string {
	return fmt.Sprintf("the command is of pipeline version %d, this state of %d: run one version of Mneme on all nodes", e.Command, PipelineVersion)
}

// CommandError names the Raft entry at which applying failed.
type CommandError struct {
	Index uint64
	Err   error
}

func (e *CommandError) Error() string { return fmt.Sprintf("command %d: %v", e.Index, e.Err) }

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// agrees checks that this state is one of which the proposer's is a beginning.
func (t *tx) agrees(leader Mark) error {
	if t.cursor.Seq < leader.Seq {
		return &DivergedError{Leader: leader, Here: t.cursor.Mark()}
	}
	chain, err := t.chainAt(leader.Seq)
	if err != nil || chain == leader.Chain {
		return err
	}
	return &DivergedError{Leader: leader, Here: Mark{leader.Seq, chain}}
}

// compare says how a range relates to the state, and how many of its frames the
// state holds already.
func (t *tx) compare(r *Range) (known int, answer Answer, err error) {
	if t.cursor.Seq < r.Previous {
		return 0, AnswerAhead, nil
	}
	chain := r.Chain
	if have, err := t.chainAt(r.Previous); err != nil || have != chain {
		return 0, AnswerOtherChain, err
	}
	known = int(min(t.cursor.Seq-r.Previous, uint64(len(r.Frames))))
	for i := range known {
		chain = events.NextChain(chain, r.Previous+uint64(i)+1, r.Frames[i].Bytes)
	}
	if known > 0 {
		if have, err := t.chainAt(r.Previous + uint64(known)); err != nil || have != chain {
			return 0, AnswerOtherChain, err
		}
		if known == len(r.Frames) {
			return known, AnswerBehind, nil
		}
	}
	return known, AnswerApplied, nil
}

// chainAt gives the chain after a sequence that the state holds. A valid frame
// names the chain before it; behind void ones it is computed.
func (t *tx) chainAt(seq uint64) (events.Chain, error) {
	if seq == t.cursor.Seq {
		return t.cursor.Chain, nil
	}
	if seq == 0 {
		return events.Chain{}, nil
	}
	if chain, ok, err := t.chainBefore(seq + 1); err != nil || ok {
		return chain, err
	}
	from := seq
	for ; from > 1; from-- {
		chain, ok, err := t.chainBefore(from)
		if err != nil {
			return events.Chain{}, err
		}
		if ok {
			return t.chainOver(chain, from, seq)
		}
	}
	return t.chainOver(events.Chain{}, from, seq)
}

// chainBefore reads the previous hash of a frame; false where it is void.
func (t *tx) chainBefore(seq uint64) (events.Chain, bool, error) {
	row, err := t.get(frameKey(seq))
	if err != nil {
		return events.Chain{}, false, err
	}
	if len(row) == 0 {
		return events.Chain{}, false, fmt.Errorf("frame %d is not in the state: %w", seq, events.ErrMalformed)
	}
	if row[0] != frameValid {
		return events.Chain{}, false, nil
	}
	previous, err := events.PreviousOf(row[1:])
	return previous, true, err
}

// chainOver continues the chain over frames that the state holds.
func (t *tx) chainOver(chain events.Chain, from, to uint64) (events.Chain, error) {
	for seq := from; seq <= to; seq++ {
		message, err := frameOf(t.b, t.get, seq)
		if err != nil {
			return chain, err
		}
		if message == nil {
			return chain, fmt.Errorf("frame %d is not in the state: %w", seq, events.ErrMalformed)
		}
		chain = events.NextChain(chain, seq, message)
	}
	return chain, nil
}
