package embed

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
)

// entryOverhead estimates what an entry costs besides its numbers: key, list
// element, map slot, headers.
const entryOverhead = 256

// cacheKey is SHA-256 over space id, purpose and text, so that no text is kept.
type cacheKey [sha256.Size]byte

// Cache is an Embedder that remembers vectors in memory, up to a number of
// bytes, and forgets the least recently used. A text that is on its way for one
// caller is not asked for by another. It may be used concurrently.
//
// The flights are its own and not x/sync/singleflight, which knows single keys:
// here the missing texts of a call travel in one request.
type Cache struct {
	inner    Embedder
	spaceID  string
	maxBytes int

	mu         sync.Mutex
	entries    map[cacheKey]*list.Element // of *cacheEntry
	recent     *list.List                 // front: used last
	bytes      int
	generation uint64 // raised by Purge: flights from before are not kept
	flights    map[cacheKey]*flight
	stats      CacheStats
}

// CacheStats counts texts since the cache was made, except Entries and Bytes.
type CacheStats struct {
	Hits, Misses, Shared int // Shared: waited for another caller's request
	Entries, Bytes       int
}

type cacheEntry struct {
	key    cacheKey
	vector []float32 // never changed, never handed out
}

// flight is a text on its way. vector and err are set before done is closed.
type flight struct {
	done   chan struct{}
	vector []float32
	err    error
}

// Cached wraps e. The cache owns e from then on: its Close closes e.
func Cached(e Embedder, maxBytes int) *Cache {
	return &Cache{
		inner: e, spaceID: e.Space().ID(), maxBytes: maxBytes,
		entries: map[cacheKey]*list.Element{}, recent: list.New(),
		flights: map[cacheKey]*flight{},
	}
}

// Space returns the space of the embedder behind.
func (c *Cache) Space() Space { return c.inner.Space() }

// Close forgets everything and closes the embedder behind.
func (c *Cache) Close() error {
	err := c.inner.Close()
	c.Purge()
	return err
}

// Purge forgets everything, also what is on its way; for when a text was erased.
func (c *Cache) Purge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.recent.Init()
	c.bytes = 0
	c.generation++
}

// Stats returns what happened so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries, s.Bytes = c.recent.Len(), c.bytes
	return s
}

// Embed implements Embedder.
func (c *Cache) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	if err := checkTexts(c.Space().Provider, p, texts); err != nil {
		return nil, err
	}
	keys := make([]cacheKey, len(texts))
	todo := make([]int, len(texts))
	for i, text := range texts {
		keys[i], todo[i] = c.key(p, text), i
	}
	out := make([][]float32, len(texts))
	for len(todo) > 0 {
		lead, follow := c.sort(keys, todo, out)
		if err := c.fetch(ctx, p, texts, keys, lead, out); err != nil {
			return nil, err
		}
		again, err := c.await(ctx, follow, out)
		if err != nil {
			return nil, err
		}
		todo = again
	}
	return out, nil
}

// key hashes; the space id has a fixed length and the purpose one byte.
func (c *Cache) key(p Purpose, text string) cacheKey {
	h := sha256.New()
	h.Write([]byte(c.spaceID))
	h.Write([]byte{byte(p)})
	h.Write([]byte(text))
	return cacheKey(h.Sum(nil))
}

// sort answers what is known, and splits the rest into texts that this call has
// to ask for and texts that are on their way already. For each of the former it
// leaves a flight, which fetch must end.
func (c *Cache) sort(keys []cacheKey, todo []int, out [][]float32) (lead []int, follow map[int]*flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	follow = map[int]*flight{}
	for _, i := range todo {
		if element, ok := c.entries[keys[i]]; ok {
			c.recent.MoveToFront(element)
			out[i] = slices.Clone(element.Value.(*cacheEntry).vector)
			c.stats.Hits++
		} else if f, ok := c.flights[keys[i]]; ok {
			follow[i] = f
			c.stats.Shared++
		} else {
			c.flights[keys[i]] = &flight{done: make(chan struct{})}
			lead = append(lead, i)
			c.stats.Misses++
		}
	}
	return lead, follow
}

// fetch asks for the texts at lead and ends their flights, also if asking fails
// or panics.
func (c *Cache) fetch(ctx context.Context, p Purpose, texts []string, keys []cacheKey, lead []int, out [][]float32) error {
	if len(lead) == 0 {
		return nil
	}
	c.mu.Lock()
	generation := c.generation
	c.mu.Unlock()
	missing := make([]string, len(lead))
	for j, i := range lead {
		missing[j] = texts[i]
	}
	vectors, err := [][]float32(nil), error(errFlightLost)
	defer func() { c.land(keys, lead, vectors, err, generation) }()
	vectors, err = c.inner.Embed(ctx, p, missing)
	if err != nil {
		return reindex(err, lead)
	}
	for j, i := range lead {
		out[i] = slices.Clone(vectors[j])
	}
	return nil
}

// errFlightLost is what followers see when the leader panicked: they try themselves.
var errFlightLost = errors.New("request was abandoned")

// land ends flights and keeps what came, unless a purge came first.
func (c *Cache) land(keys []cacheKey, lead []int, vectors [][]float32, err error, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, i := range lead {
		f := c.flights[keys[i]]
		delete(c.flights, keys[i])
		if f.err = err; err == nil {
			f.vector = vectors[j]
			if generation == c.generation {
				c.keepLocked(keys[i], vectors[j])
			}
		}
		close(f.done)
	}
}

func (c *Cache) keepLocked(key cacheKey, v []float32) {
	cost := 4*len(v) + entryOverhead
	if cost > c.maxBytes {
		return
	}
	c.entries[key] = c.recent.PushFront(&cacheEntry{key: key, vector: v})
	c.bytes += cost
	for c.bytes > c.maxBytes {
		oldest := c.recent.Back()
		e := c.recent.Remove(oldest).(*cacheEntry)
		delete(c.entries, e.key)
		c.bytes -= 4*len(e.vector) + entryOverhead
	}
}

// await takes over what other calls brought. It returns the texts whose flight
// failed for a reason that is not ours: the other caller gave up, or another of
// its texts was bad.
func (c *Cache) await(ctx context.Context, follow map[int]*flight, out [][]float32) (again []int, err error) {
	for i, f := range follow {
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		var e *Error
		switch {
		case f.err == nil:
			out[i] = slices.Clone(f.vector)
		case errors.As(f.err, &e) && e.Kind != ErrBadInput && e.Kind != ErrBadAnswer, errors.Is(f.err, ErrClosed):
			return nil, f.err
		default:
			again = append(again, i)
		}
	}
	slices.Sort(again)
	return again, nil
}

// reindex translates the index of a bad text from the request to the call.
func reindex(err error, lead []int) error {
	var e *Error
	if !errors.As(err, &e) || e.Index < 0 || e.Index >= len(lead) {
		return err
	}
	moved := *e
	moved.Index = lead[e.Index]
	return &moved
}
