package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// Comparer searches a namespace's two spaces for a sample. It fills in what a
// search finds: Sample, Recall and Agreement.
type Comparer func(ctx context.Context, ns events.ID, from, to embed.Space) (memory.SpaceComparison, error)

// Builder changes namespaces' embedders behind everything else: it fills a
// space that is being built, has it compared with the current one, switches by
// an event, and drops what was kept long enough. What is left to do follows from
// the state alone, so that another leader or the next start goes on.
type Builder struct {
	writer  *Writer
	source  EmbedderSource
	compare Comparer
	wake    chan struct{}
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	jobs map[events.ID]*job // by namespace; their status is guarded, the rest is run's
}

const (
	buildBatch = 64        // versions embedded and written together
	buildBytes = 256 << 10 // … but no further one once they have so much text
	// A builder rests as long as it worked, and this many times as long while
	// writers queue.
	restShare     = 1
	restShareBusy = 4
	restMin       = time.Millisecond
	restMax       = 2 * time.Second
	// idleRound is how often it looks for spaces that were kept long enough.
	idleRound = time.Minute
	// lastRounds catch up with what was captured while spaces were compared.
	lastRounds = 3
)

// job is one namespace on its way to another space.
type job struct {
	space        embed.Space
	at           map[uint32]uint32 // next DocID to look at, by partition
	unembeddable map[projections.PendingDoc]bool
	rescan       bool // everything was looked at once more
	retry        time.Duration
	last         time.Time // begin of the step before
	status       BuildStatus
}

// BuildStatus is how the building of a space goes on this node, since it leads.
type BuildStatus struct {
	Space          embed.Space
	Phase          string // memory.PhaseFilling, …
	Skipped        uint64 // versions that have no vector in it
	Rate           float64
	Err            string
	ErrAt, RetryAt time.Time
}

// NewBuilder starts a builder; Close stops it.
func NewBuilder(writer *Writer, source EmbedderSource, compare Comparer) *Builder {
	ctx, cancel := context.WithCancel(context.Background())
	b := newBuilder(writer, source, compare)
	b.cancel = cancel
	b.wg.Add(1)
	go b.run(ctx)
	return b
}

func newBuilder(writer *Writer, source EmbedderSource, compare Comparer) *Builder {
	return &Builder{writer: writer, source: source, compare: compare, wake: make(chan struct{}, 1), jobs: map[events.ID]*job{}}
}

// Wake says that a namespace's spaces or settings have changed.
func (b *Builder) Wake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Close stops the builder and waits for it.
func (b *Builder) Close() {
	b.cancel()
	b.wg.Wait()
}

// Status tells how the building of a namespace's space goes; false if this
// node has not begun with it.
func (b *Builder) Status(ns events.ID) (BuildStatus, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[ns]
	if j == nil {
		return BuildStatus{}, false
	}
	return j.status, true
}

func (b *Builder) run(ctx context.Context) {
	defer b.wg.Done()
	for {
		t := time.NewTimer(b.round(ctx))
		select {
		case <-t.C:
		case <-b.wake:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// round takes one step in each namespace and returns how long to rest.
func (b *Builder) round(ctx context.Context) time.Duration {
	began := time.Now()
	list, sets, err := b.namespaces()
	if err != nil {
		b.writer.opt.Logger.Warn("spaces could not be looked at", "err", err)
		return attachRetryMax
	}
	b.forget(sets)
	wait, worked := idleRound, false
	for _, ns := range list {
		if ctx.Err() != nil {
			return 0
		}
		set := sets[ns.ID]
		wait = min(wait, b.dropKept(ctx, ns, set))
		if !set.IsBuilding() {
			continue
		}
		j := b.job(ns.ID, set.Next)
		if left := j.status.RetryAt.Sub(b.writer.opt.Now()); left > 0 {
			wait = min(wait, left)
			continue
		}
		err := b.step(ctx, ns, set, j)
		b.note(ns, j, err)
		if err == nil {
			worked = true
		} else {
			wait = min(wait, j.retry)
		}
	}
	if worked {
		wait = min(wait, b.rest(time.Since(began)))
	}
	return wait
}

// rest is how long the builder steps back after it worked.
func (b *Builder) rest(took time.Duration) time.Duration {
	share := time.Duration(restShare)
	if waiting, _ := b.writer.QueueDepth(); waiting > 0 {
		share = restShareBusy
	}
	return min(max(share*took, restMin), restMax)
}

// namespaces lists those that have something to build or to drop.
func (b *Builder) namespaces() (list []projections.NamespaceInfo, sets map[events.ID]*settings.Effective, err error) {
	v := b.writer.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	all, err := v.Namespaces()
	sets = map[events.ID]*settings.Effective{}
	for _, ns := range all {
		if ns.Next.IsZero() && len(ns.Kept) == 0 {
			continue
		}
		set, err := b.writer.opt.Book.Of(v, ns)
		if err != nil {
			return nil, nil, fmt.Errorf("namespace %s: %w", ns.Name, err)
		}
		list, sets[ns.ID] = append(list, ns), set
	}
	return list, sets, err
}

// forget ends jobs whose namespace has no space to build any more.
func (b *Builder) forget(sets map[events.ID]*settings.Effective) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.jobs, func(ns events.ID, j *job) bool {
		set := sets[ns]
		return set == nil || set.Next != j.space
	})
}

func (b *Builder) job(ns events.ID, space embed.Space) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[ns]
	if j == nil {
		j = &job{space: space, at: map[uint32]uint32{}, unembeddable: map[projections.PendingDoc]bool{},
			status: BuildStatus{Space: space, Phase: memory.PhaseFilling}}
		b.jobs[ns] = j
	}
	return j
}

// note keeps what a step came to, and backs off after an error.
func (b *Builder) note(ns projections.NamespaceInfo, j *job, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.status.Skipped = uint64(len(j.unembeddable))
	if err == nil {
		j.retry = 0
		if j.status.Phase == memory.PhaseWaiting {
			j.status.Phase = memory.PhaseFilling
		}
		return
	}
	j.retry = min(max(2*j.retry, attachRetryMin), attachRetryMax)
	j.status.Phase, j.status.Err, j.status.ErrAt = memory.PhaseWaiting, err.Error(), b.writer.opt.Now()
	j.status.RetryAt = j.status.ErrAt.Add(j.retry)
	b.writer.opt.Logger.Warn("a vector space is not built for now", "namespace", ns.Name, "space", j.space.String(), "err", err, "retry", j.retry)
}

func (b *Builder) phase(j *job, phase string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.status.Phase, j.status.RetryAt = phase, time.Time{}
}

// step fills in one batch. At the end of the records it has the spaces
// compared and switches.
func (b *Builder) step(ctx context.Context, ns projections.NamespaceInfo, set *settings.Effective, j *job) error {
	b.phase(j, memory.PhaseFilling)
	n, end, err := b.fill(ctx, ns, j)
	if err != nil || !end {
		return err
	}
	left, err := b.left(ns, j)
	if err != nil {
		return err
	}
	if n == 0 && left > 0 && !j.rescan {
		// Events that were not applied after all: look at everything again.
		j.rescan, j.at = true, map[uint32]uint32{}
		return nil
	}
	return b.finish(ctx, ns, set, j)
}

// left is how many records lack vectors that they could have.
func (b *Builder) left(ns projections.NamespaceInfo, j *job) (uint64, error) {
	records, done, err := b.counts(ns.ID, j.space)
	return records - min(records, done+uint64(len(j.unembeddable))), err
}

func (b *Builder) counts(id events.ID, space embed.Space) (records, done uint64, err error) {
	v := b.writer.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	done, err = v.SpaceRecords(id, settings.KeyOf(space))
	return v.NamespaceTotals(id).Records, done, err
}

// fill gives the next versions without vectors theirs and reports how many it
// took, and whether it has seen the last record.
func (b *Builder) fill(ctx context.Context, ns projections.NamespaceInfo, j *job) (n int, end bool, err error) {
	began := time.Now()
	work, at, end, err := b.collect(ns, j)
	if err != nil {
		return 0, false, err
	}
	if len(work) > 0 {
		e, err := b.source.For(ctx, j.space)
		if err != nil {
			return 0, false, err
		}
		drafts, err := b.writer.embedAll(ctx, e, j.space, work)
		if err != nil {
			return 0, false, err
		}
		if err := b.write(ctx, ns, j, work, drafts); err != nil {
			return 0, false, err
		}
	}
	j.at = at
	b.measure(j, began, len(work))
	return len(work), end, nil
}

func (b *Builder) write(ctx context.Context, ns projections.NamespaceInfo, j *job, work []pendingText, all []*draft) error {
	var docs []projections.PendingDoc
	var drafts []*draft
	for i, d := range all {
		if d == nil {
			j.unembeddable[work[i].doc] = true // it is found by text
			continue
		}
		docs, drafts = append(docs, work[i].doc), append(drafts, d)
	}
	results, err := b.writer.attachAll(ctx, ns.ID, drafts)
	for i, r := range results {
		// Conflict and rejected: it was revised or forgotten meanwhile.
		if r.Outcome == projections.OutcomeQuarantined {
			j.unembeddable[docs[i]] = true
		}
	}
	return err
}

// measure keeps a moving average of versions a second, rests included.
func (b *Builder) measure(j *job, began time.Time, n int) {
	since := cmp.Or(j.last, began)
	j.last = time.Now()
	took := j.last.Sub(since).Seconds()
	if took <= 0 || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	const weight = 0.2
	now := float64(n) / took
	if j.status.Rate == 0 {
		j.status.Rate = now
	}
	j.status.Rate += weight * (now - j.status.Rate)
}

// collect opens the next versions that lack vectors. at is where to go on after
// them.
func (b *Builder) collect(ns projections.NamespaceInfo, j *job) (work []pendingText, at map[uint32]uint32, end bool, err error) {
	v := b.writer.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	parts, err := v.Partitions(ns.ID)
	if err != nil {
		return nil, nil, false, err
	}
	at, key, size := maps.Clone(j.at), settings.KeyOf(j.space), 0
	for _, p := range parts {
		for done := false; !done; {
			if len(work) == buildBatch {
				return work, at, false, nil
			}
			var docs []projections.PendingDoc
			docs, at[p.ID], done, err = v.Lacking(p, key, at[p.ID], buildBatch-len(work))
			if err != nil {
				return nil, nil, false, err
			}
			for _, doc := range docs {
				if j.unembeddable[doc] {
					continue
				}
				if size >= buildBytes {
					at[p.ID] = doc.Doc
					return work, at, false, nil
				}
				w, err := b.writer.openText(v, ns.ID, j.space, doc)
				if err != nil {
					return nil, nil, false, err
				}
				work, size = append(work, w), size+len(w.text)
			}
		}
	}
	return work, at, true, nil
}
