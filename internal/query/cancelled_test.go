package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mneme/memory"
)

// TestSearchesThatEndEarlyLeaveNothing: a search that is cancelled at any point, while its vectors
// are asked beside its words, gives back memory that nobody writes to any more. Others at the same time get
// what they get alone.
func TestSearchesThatEndEarlyLeaveNothing(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	g := rand.New(rand.NewPCG(seed, 1))
	vocabulary := strings.Fields("deploy billing tuesday zebra backup garden staging release train coffee friday database tunnel port host team review build node")
	words := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = vocabulary[g.IntN(len(vocabulary))]
		}
		return strings.Join(out, " ")
	}
	for talk := range 4 {
		var batch []memory.Capture
		for range 100 {
			batch = append(batch, memory.Capture{Agent: "ann", Text: words(14), Tags: []string{vocabulary[g.IntN(3)]}, Conversation: fmt.Sprint("talk-", talk)})
		}
		w.Capture("team", batch...)
	}
	w.OK(w.views.Sets()[0].Wait(t.Context()))
	r := w.reader("team", "ann")
	ask := func(ctx context.Context, req memory.SearchRequest) string {
		res, err := r.Search(ctx, req)
		res.Position, res.TookMS = "", 0
		return printed(res, err)
	}
	var reqs []memory.SearchRequest
	var want []string
	for i := range 20 {
		req := memory.SearchRequest{Query: words(4), Explain: true}
		switch i % 4 {
		case 0:
			req.Filter = &memory.Filter{Tags: []string{"deploy"}}
		case 1:
			req.Query = `"` + words(2) + `" depoly ` + words(2)
		}
		reqs, want = append(reqs, req), append(want, ask(t.Context(), req))
	}
	var cut atomic.Int64
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			h := rand.New(rand.NewPCG(seed, uint64(k)+2))
			for range 150 {
				early, cancel := context.WithCancel(context.Background())
				turns := h.IntN(200)
				all.Go(func() { // at some point of the search
					for range turns {
						runtime.Gosched()
					}
					cancel()
				})
				if _, err := r.Search(early, reqs[h.IntN(len(reqs))]); err != nil {
					cut.Add(1)
				}
				<-early.Done()
				i := h.IntN(len(reqs))
				if got := ask(context.Background(), reqs[i]); got != want[i] {
					t.Errorf("%q differs beside others:\n%.500s\nalone:\n%.500s", reqs[i].Query, got, want[i])
					return
				}
			}
		})
	}
	all.Wait()
	if cut.Load() == 0 {
		t.Error("no search was cut")
	}
}
