package ingest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

var nemesisSeed = flag.Uint64("seed", 0, "run the nemesis with this seed only")

// fate is what a client was told about one write.
type fate int

const (
	refused fate = iota // definitely not stored
	unknown
	acked
)

// note is one record as its client knows it.
type note struct {
	id     string // of the record
	token  string
	client string // id given by the client; may be empty
	at     events.Position
	fate   fate
	// versions told of, and revisions of unknown outcome
	versions map[int]string
	maybe    int
	forgot   fate
	tried    bool // a forget was tried
	uri      string
}

// client is one goroutine of the nemesis with its own records.
type client struct {
	w     *world
	rng   *rand.Rand
	n     int
	agent string
	notes []*note
	last  events.Position
	step  int
	errs  []string
}

func (c *client) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Sprintf(format, args...))
}

// fateOf says what an error tells about a write, and complains about errors
// that nobody should get.
func (c *client) fateOf(err error) fate {
	switch memory.CodeOf(err) {
	case memory.CodeUnavailable, memory.CodeNoSpace, memory.CodeOverloaded:
		return refused
	case memory.CodeOutcomeUnknown:
		return unknown
	}
	c.errorf("unexpected error: %v", err)
	return unknown
}

// context is sometimes one that ends while the write is under way.
func (c *client) context() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.rng.IntN(8) == 0 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			cancel()
		}()
		return ctx, func() { <-done }
	}
	return ctx, cancel
}

func (c *client) capture() {
	c.step++
	n := &note{token: fmt.Sprintf("client %d note %d", c.n, c.step), versions: map[int]string{}}
	item := Item{Capture: memory.Capture{Agent: c.agent, Text: n.token}}
	if c.rng.IntN(3) > 0 {
		n.client = fmt.Sprint("id", c.step)
		item.ID = n.client
	}
	switch c.rng.IntN(4) {
	case 0:
		n.uri = fmt.Sprint("shared/", c.rng.IntN(5))
		item.URI = n.uri
	case 1:
		item.Subject = fmt.Sprint("subject", c.rng.IntN(4))
	case 2:
		item.Scope = memory.ScopeAgent
	}
	c.notes = append(c.notes, n)
	wait := []memory.Wait{memory.WaitApplied, memory.WaitAccepted}[c.rng.IntN(2)]
	again := 1
	if n.client != "" {
		again = 40 // the same id may be sent until the outcome is known, and once more
	}
	for try := range again {
		ctx, end := c.context()
		resp, err := c.w.writer.Capture(ctx, "team-a", []Item{item}, wait)
		end()
		var r memory.CaptureResult
		if err == nil {
			r = resp.Results[0]
			err = itemError(&r)
		}
		if memory.CodeOf(err) == memory.CodeConflict && err != nil && n.uri != "" {
			if n.fate == acked {
				c.errorf("%s: conflict after it was stored", n.token)
			}
			n.fate = refused
			return
		}
		if err != nil {
			if n.fate != acked {
				n.fate = max(n.fate, c.fateOf(err))
			}
			continue
		}
		c.acknowledged(n, r, try)
		if c.rng.IntN(3) > 0 {
			return
		}
		if n.client == "" {
			return
		}
	}
}

func (c *client) acknowledged(n *note, r memory.CaptureResult, try int) {
	at, err := events.ParsePosition(r.Position)
	if err != nil {
		c.errorf("%s: position %q", n.token, r.Position)
		return
	}
	if n.fate == acked {
		if r.Status != memory.StatusDuplicate || r.RecordID != n.id || at != n.at {
			c.errorf("%s: sent again: %+v, first was %s at %s", n.token, r, n.id, n.at)
		}
		return
	}
	if r.Status == memory.StatusDuplicate && n.fate != unknown {
		c.errorf("%s: a duplicate of what was never stored (try %d)", n.token, try)
	}
	n.fate, n.id, n.at, n.versions[1] = acked, r.RecordID, at, n.token
	if r.Status == memory.StatusCreated {
		if !c.last.Before(at) {
			c.errorf("%s is at %s, an earlier write of the same client at %s", n.token, at, c.last)
		}
		c.last = at
	}
}

// some gives one of the client's living records.
func (c *client) some() *note {
	var living []*note
	for _, n := range c.notes {
		if n.fate == acked && !n.tried {
			living = append(living, n)
		}
	}
	if len(living) == 0 {
		return nil
	}
	return living[c.rng.IntN(len(living))]
}

func (c *client) revise() {
	n := c.some()
	if n == nil {
		return
	}
	c.step++
	text := fmt.Sprintf("%s revised %d", n.token, c.step)
	ctx, end := c.context()
	resp, err := c.w.writer.Revise(ctx, "team-a", c.agent, n.id, memory.Revision{Text: &text}, 0, "")
	end()
	switch {
	case err == nil:
		if old, twice := n.versions[resp.Version]; twice {
			c.errorf("%s: version %d is %q and %q", n.token, resp.Version, old, text)
		}
		n.versions[resp.Version] = text
	case memory.CodeOf(err) == memory.CodeNotFound:
		// Accepted, but not applied yet.
	case memory.CodeOf(err) == memory.CodeConflict && n.maybe > 0:
		// An earlier revision of unknown outcome came in between.
	case c.fateOf(err) == unknown:
		n.maybe++
	}
}

func (c *client) forget() {
	n := c.some()
	if n == nil {
		return
	}
	ctx, end := c.context()
	_, err := c.w.writer.Forget(ctx, "team-a", c.agent, n.id, 0)
	end()
	switch {
	case err == nil:
		n.forgot, n.tried = acked, true
	case memory.CodeOf(err) == memory.CodeNotFound:
	default:
		if n.forgot = c.fateOf(err); n.forgot == unknown {
			n.tried = true
		}
	}
}

func (c *client) run(steps int) {
	for range steps {
		switch k := c.rng.IntN(10); {
		case k < 6:
			c.capture()
		case k < 9:
			c.revise()
		default:
			c.forget()
		}
	}
}

// stored is what the log's records say, by the text of their first version.
func stored(w *world) map[string][]projections.AuditRow {
	v := w.state.View()
	defer v.Close()
	out := map[string][]projections.AuditRow{}
	for _, row := range w.audit("team-a") {
		if row.Type == events.TypeCaptured && row.Outcome == projections.OutcomeCreated {
			text := w.content(v, row.At).Text
			out[text] = append(out[text], row)
		}
	}
	return out
}

func (c *client) verify(rows map[string][]projections.AuditRow) {
	for _, n := range c.notes {
		got := rows[n.token]
		switch {
		case len(got) > 1:
			c.errorf("%s is there %d times", n.token, len(got))
		case n.fate == refused && len(got) != 0:
			c.errorf("%s was refused and is there", n.token)
		case n.fate == acked && len(got) == 0:
			c.errorf("%s was acknowledged and is not there", n.token)
		case n.fate == acked && (got[0].Record.String() != n.id || got[0].At != (projections.Ref{Seq: n.at.Seq, Index: n.at.Index})):
			c.errorf("%s is %s at %v, its client was told %s at %s", n.token, got[0].Record, got[0].At, n.id, n.at)
		}
		if n.fate == acked && len(got) == 1 {
			c.verifyVersions(n)
		}
	}
}

func (c *client) verifyVersions(n *note) {
	texts := c.w.texts(n.id)
	if len(texts) < len(n.versions) || len(texts) > len(n.versions)+n.maybe {
		c.errorf("%s has %d versions; %d were acknowledged, %d are unknown", n.token, len(texts), len(n.versions), n.maybe)
	}
	for v, text := range n.versions {
		if v > len(texts) || texts[v-1] != text {
			c.errorf("%s: version %d is not %q", n.token, v, text)
		}
	}
	_, version := c.w.text(n.id)
	if n.forgot == acked && version != 0 || version == 0 && n.forgot == refused {
		c.errorf("%s is at version %d; forget: %v %v", n.token, version, n.tried, n.forgot)
	}
}

// nemesis runs clients against a failing log and then checks what they were
// told against what is there.
func nemesis(t *testing.T, seed uint64) (bit map[eventlogtest.Fault]int) {
	f := eventlogtest.NewFake()
	w := newWorld(t, f)
	w.opt = func(o *Options) { o.MaxFrameBytes = 3000 }
	w.mustStart()
	w.namespace("team-a")
	first := f.Messages()[1]
	f.SecondWriter(func(seq uint64) []byte {
		if seq%2 == 0 {
			return first // a frame of the past
		}
		return fmt.Append(nil, "garbage at ", seq)
	})
	f.Random(rand.New(rand.NewPCG(seed, 1)), 0.35)
	clients := make([]*client, 6)
	var wg sync.WaitGroup
	for i := range clients {
		c := &client{w: w, rng: rand.New(rand.NewPCG(seed, uint64(i)+2)), n: i, agent: fmt.Sprint("agent-", i%3)}
		if i >= 3 {
			c.step = 100_000 // two clients of one agent use different ids
		}
		clients[i] = c
		wg.Go(func() { c.run(25) })
	}
	// While they write, the log is away now and then, and the shard is paused.
	var finished atomic.Bool
	var nemeses sync.WaitGroup
	nemeses.Go(func() {
		away := rand.New(rand.NewPCG(seed, 99))
		for !finished.Load() {
			next := len(f.Messages()) + 5 + away.IntN(20)
			await(t, "traffic", func() bool { return finished.Load() || len(f.Messages()) >= next })
			f.Offline(1 + away.IntN(4))
		}
	})
	nemeses.Go(func() {
		for !finished.Load() {
			resume, err := w.writer.Pause(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			next := len(f.Messages()) + 10
			resume()
			await(t, "traffic", func() bool { return finished.Load() || len(f.Messages()) >= next })
		}
	})
	wg.Wait()
	finished.Store(true)
	nemeses.Wait()
	f.Offline(0)
	f.Random(nil, 0)
	f.Deliver()
	if w.writer.Diverged() != nil {
		t.Fatalf("diverged: %v", w.writer.Diverged())
	}
	if r := w.capture("team-a", memory.Capture{Text: "after the storm"}); r.Status != memory.StatusCreated {
		t.Fatalf("%+v", r)
	}
	rows := stored(w)
	for _, c := range clients {
		c.verify(rows)
		for _, e := range c.errs {
			t.Error(e)
		}
	}
	w.refold()
	hash := w.hash()
	w.stop()
	w.mustStart()
	if got := w.hash(); got != hash {
		t.Errorf("a restart changed the state from %s to %s", hash, got)
	}
	w.refold()
	return f.Bit()
}

func TestNemesis(t *testing.T) {
	seeds := []uint64{1, 2, 3, 30}
	if *nemesisSeed != 0 {
		seeds = []uint64{*nemesisSeed}
	}
	total := map[eventlogtest.Fault]int{}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("reproduce: go test ./internal/ingest -run TestNemesis -seed=%d", seed)
			for fault, n := range nemesis(t, seed) {
				total[fault] += n
			}
		})
	}
	t.Logf("faults that bit: %v", total)
	for _, fault := range eventlogtest.Faults {
		if total[fault] == 0 && *nemesisSeed == 0 {
			t.Errorf("%s never bit", fault)
		}
	}
}
