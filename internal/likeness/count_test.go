package likeness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mneme/client"
	"mneme/memory"
)

// slowNode takes its time to answer, so that others come between.
type slowNode struct {
	mu sync.Mutex
	fakeNode
}

const answering = 10 * time.Millisecond

func (n *slowNode) Get(ctx context.Context, ns, id string, opts client.GetOptions) (memory.Record, error) {
	time.Sleep(answering)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fakeNode.Get(ctx, ns, id, opts)
}

func (n *slowNode) Revise(ctx context.Context, ns, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	time.Sleep(answering)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fakeNode.Revise(ctx, ns, id, rev, opts)
}

// TestManyAtOnceWereNotCounted: each tried four times, without a pause.
func TestManyAtOnceWereNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 64
		node := &slowNode{fakeNode: fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1}}}
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				got, err := Count(t.Context(), node, "team", "a", fmt.Sprint("n", i), &memory.Capture{Agent: "ann", Text: "Tuesdays."}, nil)
				if err != nil || !got.Again {
					t.Errorf("%d: %+v, %v", i, got, err)
				}
			})
		}
		all.Wait()
		if s := SaidOf(node.rec.Metadata); s.Repeats != n {
			t.Errorf("%d of %d were counted", s.Repeats, n)
		}
	})
}

// TestACountThatOthersAlwaysOvertake ends within its time, or with the caller's, and says that it was
// overtaken.
func TestACountThatOthersAlwaysOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		item := memory.Capture{Agent: "ann", Text: "Tuesdays."}
		node := &slowNode{fakeNode: fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1}, meddle: 1 << 30}}
		began := time.Now()
		if _, err := Count(t.Context(), node, "team", "a", "n", &item, nil); memory.CodeOf(err) != memory.CodeConflict {
			t.Error(err)
		}
		if took := time.Since(began); took < patience || took > patience+longestPause+2*answering {
			t.Errorf("it took %s", took)
		}
		if tried := 1<<30 - node.meddle; tried < 10 || tried > 200 {
			t.Errorf("it tried %d times", tried)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := Count(ctx, node, "team", "a", "n", &item, nil); memory.CodeOf(err) != memory.CodeConflict {
			t.Error(err)
		}
		if took := time.Since(began); took < time.Second-longestPause || took > time.Second+4*answering {
			t.Errorf("of a second it took %s", took)
		}
	})
}

// TestWhatACountIsRefusedBy its caller is not written.
func TestWhatACountIsRefusedBy(t *testing.T) {
	refusal := errors.New("no room")
	node := &fakeNode{rec: memory.Record{RecordID: "a", Text: "Tuesdays.", Version: 1}}
	_, err := Count(t.Context(), node, "team", "a", "n", &memory.Capture{Agent: "ann", Text: "Tuesdays."}, func(rec *memory.Record, rev *memory.Revision) error {
		rev.Tags = &[]string{strings.ToLower(rec.Text)}
		return refusal
	})
	if !errors.Is(err, refusal) || node.rec.Version != 1 {
		t.Errorf("%v, version %d", err, node.rec.Version)
	}
}
