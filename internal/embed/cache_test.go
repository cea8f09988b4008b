package embed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// counting is an embedder that counts texts; hook may hold or fail a call.
type counting struct {
	hook func(ctx context.Context, texts []string) error

	mu     sync.Mutex
	asked  map[string]int
	calls  int
	closed bool
}

func (c *counting) Space() Space {
	return Space{Provider: "test", Model: "m", Dimensions: testDims, Normalised: true, Version: 1}
}

func (c *counting) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	c.mu.Lock()
	c.calls++
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	for _, text := range texts {
		c.asked[p.String()+text]++
	}
	c.mu.Unlock()
	if c.hook != nil {
		if err := c.hook(ctx, texts); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = unit(reference(p.String()+text, testDims))
	}
	return out, nil
}

func (c *counting) Close() error { c.closed = true; return nil }

func (c *counting) times(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[key]
}

const entryCost = 4*testDims + entryOverhead

// lruTwin is a list with the most recent last.
type lruTwin struct {
	keys []string
	room int
}

func (l *lruTwin) use(key string) (hit bool) {
	if i := slices.Index(l.keys, key); i >= 0 {
		l.keys, hit = slices.Delete(l.keys, i, i+1), true
	}
	l.keys = append(l.keys, key)
	if len(l.keys) > l.room {
		l.keys = l.keys[1:]
	}
	return hit
}

// TestCacheAgainstTwin asks for one text at a time, so that the order is plain.
func TestCacheAgainstTwin(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for _, room := range []int{0, 1, 5, 20} {
		inner := &counting{}
		c := Cached(inner, room*entryCost+entryCost/2)
		twin := &lruTwin{room: room}
		want := CacheStats{}
		for step := range 2000 {
			text, p := fmt.Sprint(r.IntN(15)), Purpose(r.IntN(2))
			got, err := c.Embed(t.Context(), p, []string{text})
			if err != nil || !slices.Equal(got[0], unit(reference(p.String()+text, testDims))) {
				t.Fatalf("seed %d, room %d, step %d: %v, %v", seed, room, step, got, err)
			}
			got[0][0] = 99
			if twin.use(p.String() + text) {
				want.Hits++
			} else {
				want.Misses++
			}
		}
		want.Entries, want.Bytes = len(twin.keys), len(twin.keys)*entryCost
		if c.Stats() != want || room == 5 && (want.Hits == 0 || want.Misses == 0) {
			t.Errorf("seed %d, room %d: %+v, twin %+v", seed, room, c.Stats(), want)
		}
	}
}

func TestCacheBatches(t *testing.T) {
	inner := &counting{}
	c := Cached(inner, 1<<20)
	for range 2 {
		got, err := c.Embed(t.Context(), Query, []string{"a", "b", "a", "c", "b"})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"a", "b", "a", "c", "b"} {
			if !slices.Equal(got[i], unit(reference("query"+text, testDims))) {
				t.Errorf("text %d", i)
			}
		}
		got[0][0] = 99
		if got[2][0] == 99 {
			t.Error("equal texts share one vector")
		}
	}
	if inner.calls != 1 || inner.times("querya") != 1 {
		t.Errorf("%d calls, %v", inner.calls, inner.asked)
	}
	if c.Space() != inner.Space() || c.Close() != nil || !inner.closed || c.Stats().Entries != 0 {
		t.Error("close")
	}
}

// TestCacheShares holds the first call until others wait for its text.
func TestCacheShares(t *testing.T) {
	hold, started := make(chan struct{}), make(chan struct{}, 100)
	inner := &counting{hook: func(context.Context, []string) error {
		started <- struct{}{}
		<-hold
		return nil
	}}
	c := Cached(inner, 1<<20)
	var wg sync.WaitGroup
	ask := func(texts ...string) {
		wg.Go(func() {
			if _, err := c.Embed(t.Context(), Document, texts); err != nil {
				t.Error(err)
			}
		})
	}
	ask("x")
	<-started
	for i := range 10 {
		ask("x", fmt.Sprint("own", i))
	}
	for range 10 {
		<-started
	}
	close(hold)
	wg.Wait()
	if inner.times("documentx") != 1 || c.Stats().Shared != 10 {
		t.Errorf("asked %d times, %+v", inner.times("documentx"), c.Stats())
	}
}

// TestCacheFollowersOfAFailure: what became of the leader is the follower's
// business only if it says something about the provider.
func TestCacheFollowersOfAFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		shared bool
	}{
		{"cancelled", context.Canceled, false},
		{"bad neighbour", &Error{Kind: ErrBadInput, Index: 1}, false},
		{"bad answer", &Error{Kind: ErrBadAnswer, Index: 1}, false},
		{"unavailable", &Error{Kind: ErrUnavailable, Index: -1}, true},
		{"closed", ErrClosed, true},
		{"panic", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			hold, started, first := make(chan struct{}), make(chan struct{}), true
			inner := &counting{}
			inner.hook = func(context.Context, []string) error {
				if !first {
					return nil
				}
				first = false
				close(started)
				<-hold
				if c.err == nil {
					panic("test")
				}
				return c.err
			}
			cache := Cached(inner, 1<<20)
			leader := make(chan error, 1)
			go func() {
				defer func() {
					if recover() != nil {
						leader <- errFlightLost
					}
				}()
				_, err := cache.Embed(t.Context(), Document, []string{"x", "bad"})
				leader <- err
			}()
			<-started
			follower := make(chan error)
			go func() {
				_, err := cache.Embed(t.Context(), Document, []string{"x"})
				follower <- err
			}()
			waitFor(t, func() bool { return cache.Stats().Shared == 1 })
			close(hold)
			if err := <-leader; err == nil {
				t.Error("the leader did not fail")
			}
			err := <-follower
			if c.shared && !errors.Is(err, c.err) || !c.shared && err != nil {
				t.Errorf("follower: %v", err)
			}
			if len(cache.flights) != 0 {
				t.Error("a flight is left")
			}
		})
	}
}

func TestCacheFollowerGivesUp(t *testing.T) {
	hold := make(chan struct{})
	inner := &counting{hook: func(context.Context, []string) error { <-hold; return nil }}
	c := Cached(inner, 1<<20)
	leader := make(chan error)
	go func() {
		_, err := c.Embed(t.Context(), Document, []string{"x"})
		leader <- err
	}()
	waitFor(t, func() bool { return c.Stats().Misses == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	follower := make(chan error)
	go func() {
		_, err := c.Embed(ctx, Document, []string{"x"})
		follower <- err
	}()
	waitFor(t, func() bool { return c.Stats().Shared == 1 })
	cancel()
	if err := <-follower; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Purge() // what is on its way is not kept either
	close(hold)
	if err := <-leader; err != nil || c.Stats().Entries != 0 {
		t.Error(err, c.Stats())
	}
}

func TestCacheNamesTheBadTextOfTheCall(t *testing.T) {
	inner := &counting{}
	c := Cached(inner, 1<<20)
	if _, err := c.Embed(t.Context(), Document, []string{"known"}); err != nil {
		t.Fatal(err)
	}
	inner.hook = func(_ context.Context, texts []string) error {
		return &Error{Kind: ErrBadInput, Index: slices.Index(texts, "bad")}
	}
	_, err := c.Embed(t.Context(), Document, []string{"known", "new", "known", "new", "bad"})
	var e *Error
	if !errors.As(err, &e) || e.Index != 4 {
		t.Fatal(err)
	}
}

// TestCacheManyAtOnce is for the race detector, with evictions.
func TestCacheManyAtOnce(t *testing.T) {
	c := Cached(&counting{}, 10*entryCost)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range 300 {
				texts := make([]string, 1+r.IntN(6))
				for i := range texts {
					texts[i] = fmt.Sprint(r.IntN(40))
				}
				got, err := c.Embed(t.Context(), Document, texts)
				for i, text := range texts {
					if err != nil || !slices.Equal(got[i], unit(reference("document"+text, testDims))) {
						t.Errorf("seed %d: text %q: %v", g, text, err)
						return
					}
				}
				if r.IntN(50) == 0 {
					c.Purge()
				}
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Bytes > 10*entryCost || s.Bytes != s.Entries*entryCost || s.Hits == 0 {
		t.Errorf("%+v", s)
	}
}
