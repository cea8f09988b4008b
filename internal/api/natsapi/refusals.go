package natsapi

import "mneme/memory"

// maxRefusals is how many may wait to be listed: 16 MiB of bodies at most.
const maxRefusals = 256

// refusals hands refused messages to the rejecter, which writes to disk, on a
// goroutine of its own: whoever refuses a message has others to answer. What does
// not fit into the queue is only counted.
type refusals struct {
	to    Rejecter
	queue chan memory.Rejected
	stop  chan struct{}
	done  chan struct{}
}

func newRefusals(to Rejecter) *refusals {
	r := &refusals{to: to, queue: make(chan memory.Rejected, maxRefusals), stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

func (r *refusals) note(m memory.Rejected) {
	select {
	case r.queue <- m:
	default:
		r.to.Count(m.Code)
	}
}

func (r *refusals) run() {
	defer close(r.done)
	for {
		select {
		case m := <-r.queue:
			r.to.Reject(m)
		case <-r.stop:
			for {
				select {
				case m := <-r.queue:
					r.to.Reject(m)
				default:
					return
				}
			}
		}
	}
}

// close lists what waits and returns when that is done.
func (r *refusals) close() {
	close(r.stop)
	<-r.done
}
