package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mneme/client"
	"mneme/memory"
)

// rate of the load, in captures a second.
const rate = 100

// longGap is from when on it is told that nothing was acknowledged for so long.
const longGap = 500 * time.Millisecond

// load captures through the service until it ends, and remembers each acknowledgement.
type load struct {
	c         *cluster
	namespace string
	client    *client.Client
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	acked  map[string]bool // ids of records
	last   time.Time       // when something was acknowledged
	gaps   []string        // long times in which nothing was
	failed int             // calls that had to be made again
}

// startLoad begins, in a namespace of its own.
func (c *cluster) startLoad(namespace string) *load {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{c: c, namespace: namespace, client: c.client(), stop: stop, acked: map[string]bool{}, last: time.Now()}
	c.t.Cleanup(func() { stop(); l.running.Wait() })
	if _, err := l.client.CreateNamespace(ctx, memory.CreateNamespace{Name: namespace}); err != nil {
		c.t.Fatal(err)
	}
	l.running.Go(func() {
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.running.Go(func() { l.capture(i) })
			}
		}
	})
	return l
}

// capture sends one memory, again and again under the same id until it is acknowledged:
// a capture that began is carried through also when the load ends.
func (l *load) capture(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	item := memory.Capture{ID: fmt.Sprintf("%s-%d", l.namespace, i), Agent: "load", Text: fmt.Sprintf("the number %d was seen by the load %s", i, l.namespace)}
	for {
		resp, err := l.client.Capture(ctx, l.namespace, item, client.CaptureOptions{})
		l.mu.Lock()
		if err == nil {
			l.acked[resp.Results[0].RecordID] = true
			now := time.Now()
			if gap := now.Sub(l.last); gap > longGap {
				l.gaps = append(l.gaps, fmt.Sprintf("%.2f s until %s", gap.Seconds(), now.UTC().Format("15:04:05.000")))
			}
			l.last = now
			l.mu.Unlock()
			return
		}
		l.failed++
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			l.c.t.Errorf("capture %d: %v", i, err)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wait returns when so many are acknowledged.
func (l *load) wait(n int) {
	l.c.until(fmt.Sprintf("%d captures are acknowledged", n), func() error {
		if have := l.count(); have < n {
			return fmt.Errorf("%d are", have)
		}
		return nil
	})
}

// count is how many are acknowledged.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// end stops the load and looks for everything that was acknowledged.
func (l *load) end() {
	l.c.t.Helper()
	l.stop()
	l.running.Wait()
	l.whole()
	l.c.say("load %s: %d captures acknowledged, 0 lost, %d calls made again, without an acknowledgement for %q", l.namespace, len(l.acked), l.failed, l.gaps)
}

// whole looks for every memory that was acknowledged, once. It may be called again later.
func (l *load) whole() {
	t := l.c.t
	t.Helper()
	found := map[string]bool{}
	opts := client.ListOptions{ReadOptions: client.ReadOptions{Consistency: memory.ConsistencyLinearizable}}
	opts.Limit = 200
	for {
		page, err := l.client.List(l.c.ctx, l.namespace, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			if found[r.RecordID] {
				t.Errorf("%s is listed twice", r.RecordID)
			}
			found[r.RecordID] = true
		}
		if opts.Cursor = page.Cursor; opts.Cursor == "" {
			break
		}
	}
	lost := 0
	for id := range l.acked {
		if !found[id] {
			lost++
		}
	}
	if lost > 0 || len(found) != len(l.acked) || len(found) == 0 {
		t.Fatalf("load %s: %d acknowledged, %d of them lost, %d found", l.namespace, len(l.acked), lost, len(found))
	}
}
