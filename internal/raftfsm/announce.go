package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// settles is how long the leader leaves it to entries that follow at once to tell what is
// committed.
const settles = 2 * time.Millisecond

// A request that failed is sent again after pauses that double, so long that raft's timer
// (Options.commitTimeout) may be slow to do it.
const (
	againFirst   = 10 * time.Millisecond
	againLongest = 250 * time.Millisecond
	againFor     = time.Second
)

// announcer is raft's transport, and tells each other replica what is committed once
// nothing is under way and it has that. Raft tells it with the next entries, and where
// none follow, when it next looks (Options.commitTimeout): the last entry of each burst
// would be applied late by all replicas but the leader's, and to look more often makes
// idle replicas talk all the time.
type announcer struct {
	raft.Transport
	g     *Group
	wake  chan struct{}  // a replica has more than before
	sends sync.WaitGroup // end with the transport
	beats beats
	hung  context.Context // ends when nothing is to wait for a replica any more
	end   context.CancelFunc

	mu    sync.Mutex
	peers map[raft.ServerID]*told
}

// told is what another replica has acknowledged.
type told struct {
	has    uint64 // entries up to here
	commit uint64 // that they are committed up to here
	busy   bool   // it is being told
}

func newAnnouncer(t raft.Transport, g *Group) *announcer {
	a := &announcer{Transport: t, g: g, wake: make(chan struct{}, 1), beats: newBeats(g.opt.HeartbeatTimeout), peers: map[raft.ServerID]*told{}}
	a.hung, a.end = context.WithCancel(context.Background())
	if t, ok := t.(interface{ whenConnected(func(raft.ServerID)) }); ok {
		t.whenConnected(a.tellAgain)
	}
	return a
}

// AppendEntries implements raft.Transport. What stands in for an entry is not sent: the
// log was cut between raft's looking for the one before and its reading this one. Raft tries
// again then, and sends a snapshot.
//
// A follower is told of no commit behind what the request shows it to have: it takes all that it
// has up to there for committed, also entries of its own that the leader's have yet to replace.
// Raft sends such a request where the follower refused later entries again and again, say on a
// full disk, and is sent earlier ones each time.
func (a *announcer) AppendEntries(id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	for _, l := range req.Entries {
		if isStandIn(l) {
			return fmt.Errorf("entry %d: %w: it is in a snapshot by now", l.Index, raft.ErrLogNotFound)
		}
	}
	if isHeartbeat(req) && a.beats.wait(id) && a.g.raft.State() != raft.Leader {
		resp.Term, resp.Success = req.Term, false // whoever asks whether this replica leads hears that it does not
		return nil
	}
	has := req.PrevLogEntry + uint64(len(req.Entries))
	shown := *req // raft's own: a transport that gave up on it may hold it still
	shown.LeaderCommitIndex = min(req.LeaderCommitIndex, has)
	send := func() error { return a.Transport.AppendEntries(id, to, &shown, resp) }
	began := time.Now()
	err := send()
	if err != nil && !isHeartbeat(req) {
		err = a.sendAgain(began, err, send)
	}
	if err != nil || !resp.Success {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.peerLocked(id)
	t.commit = max(t.commit, shown.LeaderCommitIndex)
	if has > t.has {
		t.has = has
		a.wakeUp()
	}
	return nil
}

// sendAgain repeats a request that failed, as the network might double it, while this replica
// leads. It returns the last failure, nil once it went through.
func (a *announcer) sendAgain(began time.Time, failed error, send func() error) error {
	for pause := againFirst; failed != nil && time.Since(began)+pause < againFor; pause = min(2*pause, againLongest) {
		select {
		case <-time.After(pause):
		case <-a.hung.Done():
			return failed
		}
		if a.g.raft.State() != raft.Leader {
			return failed
		}
		failed = send()
	}
	return failed
}

// AppendEntriesPipeline implements raft.Transport: see oneAtATime.
func (a *announcer) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// RequestPreVote implements raft.WithPreVote.
func (a *announcer) RequestPreVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if t, ok := a.Transport.(raft.WithPreVote); ok {
		return t.RequestPreVote(id, to, req, resp)
	}
	return errors.New("the transport has no pre-vote")
}

// Close implements raft.WithClose.
func (a *announcer) Close() (err error) {
	if t, ok := a.Transport.(raft.WithClose); ok {
		err = t.Close()
	}
	return err
}

func (a *announcer) hangUp() {
	a.end()
	a.beats.end()
	hangUp(a.Transport)
}

func (a *announcer) peerLocked(id raft.ServerID) *told {
	t, known := a.peers[id]
	if !known {
		t = &told{}
		a.peers[id] = t
	}
	return t
}

// tellAgain has a replica told once more: where it was started again it has what it was
// sent, and no longer knows up to where that is committed.
func (a *announcer) tellAgain(id raft.ServerID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t, known := a.peers[id]; known && t.has > 0 {
		t.commit = 0
		a.wakeUp()
	}
}

func (a *announcer) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run follows what this replica has applied and what the others have, until ctx ends or
// the group halts.
func (a *announcer) run(ctx context.Context) {
	for seen := uint64(0); ; seen = a.g.fsm.progress.reached() {
		done, applied, err := a.g.fsm.progress.poll(seen + 1)
		if err != nil {
			return
		}
		if !done {
			select {
			case <-applied:
			case <-a.wake:
			case <-ctx.Done():
				return
			}
		}
		if a.g.raft.State() != raft.Leader {
			continue
		}
		select {
		case <-time.After(settles):
		case <-ctx.Done():
			return
		}
		// Where more is under way, it will be committed, and this loop goes on.
		if commit := a.g.raft.CommitIndex(); a.g.raft.LastIndex() == commit {
			a.tell(commit)
		}
	}
}

// tell sends those that have the committed entry, and have not heard that it is, a request
// without entries whose previous entry it is. A replica that has another one there refuses
// it, so that nobody takes for committed what the leader does not have: followers do so
// with all they have up to the leader's commit index.
func (a *announcer) tell(commit uint64) {
	term := a.g.raft.CurrentTerm()
	var last raft.Log
	if err := a.g.store.GetLog(commit, &last); err != nil {
		return // it is in a snapshot, or cannot be read: raft finds out
	}
	if a.g.raft.State() != raft.Leader || a.g.raft.CurrentTerm() != term {
		return
	}
	self := raft.ServerID(a.g.opt.ID)
	addr := a.EncodePeer(self, a.LocalAddr())
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.g.configuration().Servers {
		t := a.peerLocked(s.ID)
		if s.ID == self || t.busy || t.has < commit || t.commit >= commit {
			continue
		}
		t.busy = true
		a.sends.Go(func() {
			_ = a.AppendEntries(s.ID, s.Address, &raft.AppendEntriesRequest{ // raft tells it later otherwise
				RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: addr},
				Term:      term, Leader: addr, PrevLogEntry: last.Index, PrevLogTerm: last.Term, LeaderCommitIndex: commit,
			}, &raft.AppendEntriesResponse{})
			a.mu.Lock()
			defer a.mu.Unlock()
			t.busy = false
			if t.has > commit {
				a.wakeUp() // it got more meanwhile
			}
		})
	}
}
