package raftfsm

import (
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// Promise is what a replica must not forget: that it voted in a term, and up to where
// it has that term's entries, which count once it has said so. The zero value promises
// nothing.
type Promise struct {
	Term uint64 `json:"term"`
	// Voted: it gave its vote in Term.
	Voted bool `json:"voted,omitempty"`
	// Index is the last entry of Term that it has; 0 = none. A term has one leader, whose
	// entries nothing replaces within the term.
	Index uint64 `json:"index,omitempty"`
}

// And is what a replica has promised that gave both promises.
func (p Promise) And(q Promise) Promise {
	switch {
	case p.Term > q.Term:
		return p
	case p.Term < q.Term:
		return q
	}
	return Promise{Term: p.Term, Voted: p.Voted || q.Voted, Index: max(p.Index, q.Index)}
}

// Keeps reports whether a replica whose files tell p still knows that it promised q.
// What a disk held at different times is in one order: files that know a later term
// were written after everything that was promised in an earlier one.
func (p Promise) Keeps(q Promise) bool { return p.And(q) == p }

// promise is what a closed group's files tell.
func (r *recovery) promise() Promise {
	return filesPromise{r.report.currentTerm, r.report.voteTerm, r.report.last, r.report.lastTerm}.promise(r.snaps)
}

// filesPromise is what a group's files hold of a promise, beside its snapshots.
type filesPromise struct{ term, voteTerm, last, lastTerm uint64 }

func (f filesPromise) promise(snaps *snapshotStore) Promise {
	p := Promise{Term: f.term, Voted: f.voteTerm > 0 && f.voteTerm == f.term}
	if f.lastTerm == p.Term {
		p.Index = f.last
	}
	if snap := snaps.latest(); snap != nil && snap.man.Term == p.Term {
		p.Index = max(p.Index, snap.man.Index)
	}
	return p
}

// watched is a transport that tells what the other replicas promise: in answers to what
// this one asks, before raft counts them, and as leaders, which have on their own disk
// what they send. What a candidate says tells nothing, since it asks others while it
// writes its own vote; if it wins, its entries tell.
type watched struct {
	*netTransport
	saw      func(replica string, p Promise)
	requests chan raft.RPC
	ended    chan struct{}
	end      sync.Once
	work     sync.WaitGroup
}

func watch(t *netTransport, saw func(replica string, p Promise)) *watched {
	w := &watched{netTransport: t, saw: saw, requests: make(chan raft.RPC), ended: make(chan struct{})}
	w.work.Go(w.takeRequests)
	return w
}

// takeRequests hands requests on to raft.
func (w *watched) takeRequests() {
	for {
		select {
		case rpc := <-w.NetworkTransport.Consumer():
			if req, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && len(req.Entries) > 0 {
				w.sawEntries(string(req.ID), req)
			}
			select {
			case w.requests <- rpc:
			case <-w.ended:
				rpc.Respond(nil, raft.ErrTransportShutdown)
				return
			}
		case <-w.ended:
			return
		}
	}
}

// sawEntries notes that a replica has what a request ends with. Entries of earlier terms
// count for nothing until one of the leader's own term follows them.
func (w *watched) sawEntries(replica string, req *raft.AppendEntriesRequest) {
	index, term := req.PrevLogEntry, req.PrevLogTerm
	if n := len(req.Entries); n > 0 {
		index, term = req.Entries[n-1].Index, req.Entries[n-1].Term
	}
	if term == req.Term && index > 0 {
		w.saw(replica, Promise{Term: term, Index: index})
	}
}

// Consumer implements raft.Transport.
func (w *watched) Consumer() <-chan raft.RPC { return w.requests }

// Close implements raft.WithClose.
func (w *watched) Close() error {
	w.end.Do(func() { close(w.ended) })
	err := w.NetworkTransport.Close()
	w.work.Wait()
	return err
}

// AppendEntries implements raft.Transport.
func (w *watched) AppendEntries(id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := w.NetworkTransport.AppendEntries(id, to, req, resp)
	if err == nil && resp.Success {
		w.sawEntries(string(id), req)
	}
	return err
}

// RequestVote implements raft.Transport.
func (w *watched) RequestVote(id raft.ServerID, to raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	err := w.NetworkTransport.RequestVote(id, to, req, resp)
	if err == nil && resp.Granted {
		w.saw(string(id), Promise{Term: req.Term, Voted: true})
	}
	return err
}

// InstallSnapshot implements raft.Transport.
func (w *watched) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := w.NetworkTransport.InstallSnapshot(id, to, req, resp, data)
	if err == nil && resp.Success && req.LastLogTerm == req.Term {
		w.saw(string(id), Promise{Term: req.Term, Index: req.LastLogIndex})
	}
	return err
}

var (
	_ raft.WithClose   = (*watched)(nil)
	_ raft.WithPreVote = (*watched)(nil)

	_ interface{ hangUp() } = (*watched)(nil)
)
