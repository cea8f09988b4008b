package slots

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestLowerLimitCountsForWhatComesNext(t *testing.T) {
	p := New(2)
	if !p.Take() || !p.Take() || p.Take() {
		t.Fatal("two of two were not to be had, or three were")
	}
	p.Set(1)
	if p.Leave(); p.Take() || p.Taken() != 1 || p.Limit() != 1 {
		t.Errorf("%d of %d are taken", p.Taken(), p.Limit())
	}
	if p.Leave(); !p.Take() || p.Take() {
		t.Error("one of one")
	}
	if p.Set(2); !p.Take() || p.Take() {
		t.Error("a higher limit did not count")
	}
}

func TestWhoWaitsGetsInByTurnsAndByAHigherLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		p.Take()
		in := make(chan int, 3)
		for i := range 3 {
			go func() {
				if p.Wait(t.Context()) == nil {
					in <- i
				}
			}()
			synctest.Wait()
		}
		p.Set(2)
		if first := <-in; first != 0 {
			t.Errorf("%d came before the first", first)
		}
		synctest.Wait()
		if len(in) != 0 || p.Take() {
			t.Error("more than two are in, or somebody went before those who wait")
		}
		p.Leave()
		if second := <-in; second != 1 {
			t.Errorf("%d came before the second", second)
		}
		p.Leave()
		<-in
		p.Leave()
		p.Leave()
		if p.Taken() != 0 {
			t.Errorf("%d are taken", p.Taken())
		}
	})
}

func TestWhoGivesUpTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		p.Take()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Wait(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if p.Leave(); p.Taken() != 0 || !p.Take() {
			t.Error("who gave up has a slot")
		}
	})
}

// TestNeverMoreThanTheLimit has many come, give up and leave while the limit moves: when
// something begins, no more than the highest limit are under way, and at the end none is.
func TestNeverMoreThanTheLimit(t *testing.T) {
	const most = 5
	p := New(most)
	var under atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(3) == 0 {
					go cancel()
				}
				if p.Wait(ctx) == nil {
					if n := under.Add(1); n > most {
						t.Errorf("%d are under way", n)
					}
					under.Add(-1)
					p.Leave()
				}
				cancel()
				p.Set(1 + rand.IntN(most))
			}
		})
	}
	all.Wait()
	if p.Taken() != 0 || len(p.waiting) != 0 {
		t.Errorf("%d are taken, %d wait", p.Taken(), len(p.waiting))
	}
}
