package raftfsm

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// Resumer is a Machine of which a group may go on that has halted: somebody has agreed
// with the others on a command that makes it able to apply what it could not. The command
// lies behind what halted the group, so it is looked at before it is applied. All replicas
// that halt at the same entry go on by the same command, also those that come to both
// later: after a start, or because they were away.
type Resumer interface {
	Machine
	// Resume is given each committed command while the group is halted. True: what is
	// behind AppliedIndex can be applied, and is given to Apply again, the command
	// last.
	Resume(e Entry, halted error) bool
}

// Resumption is what an owner does with a group that has halted.
type Resumption struct{ Group *Group }

// Propose is Group.Propose for a command by which the group may go on. Where it has not
// halted, the command is applied like any other.
func (r Resumption) Propose(ctx context.Context, data []byte) *Future {
	end, err := r.Group.begin("propose")
	if err != nil {
		return failedFuture(fmt.Errorf("%w: %w", err, ErrRefused))
	}
	defer end()
	return r.Group.proposer.propose(ctx, raft.Log{Data: data})
}

// applyHalted answers entries that come while the group is halted, until one of them makes
// it go on.
func (f *fsm) applyHalted(logs []*raft.Log, out []any) []any {
	fill(out, f.progress.haltedErr())
	for i, l := range logs {
		if !f.resumes(l) {
			continue
		}
		result, err := f.again(l)
		if err != nil {
			f.log.Error("group halts again", "error", err)
			fill(out, err)
			continue
		}
		out[i] = outcome{result: result}
		if rest := logs[i+1:]; len(rest) > 0 {
			f.apply(rest, out[i+1:])
		}
		return out
	}
	return out
}

// resumes reports whether the group can go on by an entry.
func (f *fsm) resumes(l *raft.Log) bool {
	m, ok := f.machine.(Resumer)
	return ok && f.kept != nil && l.Type == raft.LogCommand && !isMarker(l) &&
		m.Resume(Entry{Index: l.Index, Term: l.Term, Data: l.Data}, f.progress.haltedErr())
}

// again applies what the machine has not, up to an entry, and has the group go on. After
// an error it is halted where that says.
func (f *fsm) again(to *raft.Log) (result any, err error) {
	applied, _ := f.machine.AppliedIndex()
	for index := applied + 1; index <= to.Index; index++ {
		l := to
		if index < to.Index {
			l = &raft.Log{} // a new one: what is read would overwrite the bytes of another
			if err := f.kept(index, l); err != nil {
				return nil, f.progress.haltAgain(&HaltError{Index: index, Cause: err})
			}
		}
		if l.Type != raft.LogCommand || isMarker(l) {
			continue
		}
		results, err := f.applyEntries([]Entry{{Index: l.Index, Term: l.Term, Data: l.Data}})
		if err != nil {
			return nil, f.progress.haltAgain(&HaltError{Index: index, Cause: err})
		}
		result = results[0]
	}
	f.seen = to.Index
	f.progress.resume(f.seen)
	f.log.Warn("group goes on", "index", f.seen)
	if f.resumed != nil {
		f.resumed()
	}
	return result, nil
}

// haltAgain says where a group that is halted has halted now.
func (p *progress) haltAgain(h *HaltError) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = h
	return h
}

// resume ends a halt.
func (p *progress) resume(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted, p.haltCh, p.index = nil, make(chan struct{}), max(p.index, index)
	p.wakeLocked()
}

// haltedCh is closed when the group halts next, or is halted.
func (p *progress) haltedCh() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.haltCh
}
