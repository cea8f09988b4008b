package raftfsm

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// Each replica got the heartbeats of each group at a time of their own, so that an idle
// node woke for each of them. They go out together, and the pause before one is never
// longer than raft's longest.
func TestHeartbeatsGoOutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span = 100 * time.Second
		timeout := time.Second
		begin := time.Now()
		var mu sync.Mutex
		at := map[time.Time]int{} // how many went out
		var senders sync.WaitGroup
		for seed := range 2 {
			group := newBeats(timeout)
			for i, to := range []raft.ServerID{"n2", "n3"} {
				random := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
				senders.Go(func() {
					for last := time.Now(); last.Sub(begin) < span; last = time.Now() {
						time.Sleep(timeout/10 + time.Duration(random.Int64N(int64(timeout/10)))) // as raft does
						group.wait(to)
						if pause := time.Since(last); pause > timeout/5 {
							t.Errorf("a pause of %v before a heartbeat of %s", pause, to)
						}
						mu.Lock()
						at[time.Now()]++
						mu.Unlock()
						time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond) // the answer
					}
				})
			}
		}
		senders.Wait()
		alone := 0
		for _, n := range at {
			if n == 1 {
				alone++
			}
		}
		if ticks := int(span / (timeout / 5)); len(at)-alone > ticks+1 || alone > ticks/10 {
			t.Errorf("heartbeats went out at %d times, at %d of them one alone, in %d fifths of the timeout", len(at), alone, ticks)
		}
	})
}

// A reader that asks whether this replica leads waits for heartbeats: none waits meanwhile.
func TestNoHeartbeatWaitsWhileAReaderDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeats(time.Second)
		b.wait("n2") // the first one does not wait
		time.Sleep(time.Millisecond)
		began := time.Now()
		for _, end := range []func(send func() error) error{
			b.hurry,
			func(send func() error) error { b.end(); return send() },
		} {
			waiting := make(chan bool)
			go func() { waiting <- b.wait("n2") }()
			synctest.Wait() // it waits
			_ = end(func() error {
				if !<-waiting {
					t.Error("the heartbeat did not wait for others")
				}
				if b.wait("n2") {
					t.Error("a heartbeat waits for others")
				}
				return nil
			})
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("heartbeats waited for %v", took)
		}
	})
}
