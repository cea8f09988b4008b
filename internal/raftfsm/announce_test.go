package raftfsm

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// The last entry of a burst was applied by the leader at once, and by the others when
// raft's timer had it send something again: a node that forwarded a write waited as long.
func TestFollowersHearAtOnceWhatIsCommitted(t *testing.T) { overBoth(t, 3, hearAtOnce) }

func hearAtOnce(t *testing.T, net network) {
	c := openClusterOver(t, net, 3)
	c.join(t, 1)
	c.join(t, 2)
	for _, s := range c.shards {
		s.close(t)
	}
	for i := range c.shards { // raft itself tells what is committed with the next entries only
		c.open(t, i, func(o *Options) { o.commitTimeout = time.Hour })
	}
	lead := c.leader(t)
	for i := range 20 {
		lead.putMany(t, i*3, i*3+3)
		index := lead.put(t, "last=1")
		c.same(t, index)
	}
}

// A replica that another one leads, or that has another entry, takes nothing for committed
// because a former leader says so.
func TestFormerLeaderTellsNobody(t *testing.T) {
	c := openCluster(t, 3, func(o *Options) { o.HeartbeatTimeout, o.ElectionTimeout = 2*time.Second, 2*time.Second })
	c.join(t, 1)
	c.join(t, 2)
	former := c.leader(t)
	former.putMany(t, 0, 10)
	index, err := former.group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	for c.leader(t) == former { // a slow machine's may have to be tried again
		if err := former.group.TransferLeadership(testCtx(t)); err != nil {
			t.Log(err)
		}
	}
	before := make([]uint64, len(c.shards))
	for i, s := range c.shards {
		before[i] = s.group.raft.CurrentTerm()
	}
	a := former.group.opt.Transport.(*announcer)
	a.mu.Lock()
	for _, told := range a.peers {
		told.commit = 0
	}
	a.mu.Unlock()
	a.tell(former.group.raft.CommitIndex())
	a.sends.Wait()
	for i, s := range c.shards {
		if id, _ := s.group.Leader(); id == former.group.opt.ID || s.group.raft.CurrentTerm() != before[i] {
			t.Errorf("replica %d took it for its leader", i)
		}
	}
}

// A replica that was started again has its entries, and heard that they are committed when
// raft's timer next spoke to it.
func TestRestartedReplicaHearsAtOnceWhatIsCommitted(t *testing.T) {
	c := openClusterOver(t, newPorts(t, 3), 3)
	c.join(t, 1)
	c.join(t, 2)
	for i, s := range c.shards {
		s.close(t)
		c.open(t, i, func(o *Options) { o.commitTimeout = time.Hour })
	}
	lead := c.leader(t)
	lead.putMany(t, 0, 10)
	c.same(t, lead.put(t, "last=1"))
	for i, s := range c.shards {
		if s == lead {
			continue
		}
		s.close(t)
		c.open(t, i, func(o *Options) { o.commitTimeout = time.Hour })
		again := c.shards[i].group.raft
		for ctx := testCtx(t); again.CommitIndex() < lead.group.raft.CommitIndex(); {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("replica %d takes %d for committed, the leader %d", i, again.CommitIndex(), lead.group.raft.CommitIndex())
			}
		}
		return // another one might lead by now
	}
}

// failing is a transport that fails so many requests with entries.
type failing struct {
	Transport
	left *atomic.Int32
}

func (r failing) AppendEntries(id raft.ServerID, to raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if len(req.Entries) > 0 && r.left.Add(-1) >= 0 {
		return errors.New("connection reset by peer")
	}
	return r.Transport.AppendEntries(id, to, req, resp)
}

// A request that failed was sent again when raft's timer next had it send something, or with
// the next write: a write behind it waited.
func TestWriteWaitedBehindAFailedRequest(t *testing.T) {
	var left atomic.Int32
	c := openCluster(t, 3, func(o *Options) {
		o.Transport, o.commitTimeout = failing{o.Transport, &left}, time.Hour
	})
	c.join(t, 1)
	c.join(t, 2)
	lead := c.leader(t)
	for i := range 5 {
		left.Store(6) // three for each of the others
		lead.putMany(t, i, i+1)
	}
	if left.Load() >= 0 {
		t.Errorf("%d requests were to fail and did not", left.Load())
	}
}

// What a replica sends again stops with its lead, and does not hold up its end.
func TestFailedRequestDoesNotHoldUpTheEnd(t *testing.T) {
	a := newAnnouncer(newLocalTransport("n1"), &Group{opt: Options{HeartbeatTimeout: time.Hour}})
	a.hangUp()
	failed := errors.New("connection reset by peer")
	err := a.sendAgain(time.Now(), failed, func() error { t.Error("sent again"); return nil })
	if err != failed {
		t.Error(err)
	}
}

// What fails is sent again for a second at most, by who leads, and stays a failure. A heartbeat is
// not: raft sends the next one.
func TestFailedRequestIsSentAgainOnlyByWhoLeads(t *testing.T) {
	c := openCluster(t, 2)
	failed := errors.New("connection reset by peer")
	for i, began := range []time.Time{time.Now().Add(-againFor), time.Now()} { // the second one follows nobody
		a := c.shards[i].group.opt.Transport.(*announcer)
		if err := a.sendAgain(began, failed, func() error { t.Error("sent again"); return nil }); err != failed {
			t.Errorf("replica %d: %v", i, err)
		}
	}
	sent := &unsent{Transport: newLocalTransport("n1"), err: failed}
	a := newAnnouncer(sent, c.shards[0].group)
	defer a.end()
	if err := a.AppendEntries("n2", "n2", &raft.AppendEntriesRequest{}, &raft.AppendEntriesResponse{}); err != failed || sent.requests != 1 {
		t.Errorf("a heartbeat was sent %d times: %v", sent.requests, err)
	}
}

// unsent is a transport over which nothing arrives.
type unsent struct {
	Transport
	err      error
	requests int
}

func (u *unsent) AppendEntries(raft.ServerID, raft.ServerAddress, *raft.AppendEntriesRequest, *raft.AppendEntriesResponse) error {
	u.requests++
	return u.err
}

// keepsRequest is a transport that holds the request that it was given.
type keepsRequest struct {
	raft.Transport
	got *raft.AppendEntriesRequest
}

func (k *keepsRequest) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	k.got, resp.Success = req, true
	return nil
}

// Raft sends one request again and again, and a transport within a process hands it to a
// follower that may read it long after the sender gave up: writing to it was a race.
func TestRequestOfRaftIsNotWrittenTo(t *testing.T) {
	under := &keepsRequest{}
	a := &announcer{Transport: under, wake: make(chan struct{}, 1), peers: map[raft.ServerID]*told{}}
	req := raft.AppendEntriesRequest{PrevLogEntry: 3, LeaderCommitIndex: 9}
	if err := a.AppendEntries("b", "b", &req, &raft.AppendEntriesResponse{}); err != nil {
		t.Fatal(err)
	}
	if under.got == &req || req.LeaderCommitIndex != 9 || under.got.LeaderCommitIndex != 3 {
		t.Errorf("raft's request is %+v, and what was sent %+v", req, *under.got)
	}
}
