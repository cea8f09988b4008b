package vector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ID is a VectorID: unique in its set, given in ascending order, never reused.
type ID = uint32

// Hit is one result of a search. Score is the dot product with the query,
// which is the cosine when both are unit vectors.
type Hit struct {
	ID    ID
	Score float32
}

// Filter says which IDs a search may return. It must not change during the
// search and is called from the searching goroutine only.
type Filter interface {
	// Contains reports whether id is allowed.
	Contains(id ID) bool
	// Count is the number of allowed IDs, or -1 if that is unknown. It may
	// count IDs which the set does not hold.
	Count() int
	// Each calls yield for the allowed IDs in ascending order until it
	// returns false. It is called only where Count is not negative.
	Each(yield func(ID) bool)
}

// Engine names what answers the searches of a large set.
type Engine string

const (
	// EngineMneme is this package's own HNSW, the default.
	EngineMneme Engine = "mneme"
	// EngineCoder is github.com/coder/hnsw behind the recall guard.
	EngineCoder Engine = "coder"
	// EngineExact compares the query with every vector.
	EngineExact Engine = "exact"
)

var (
	// ErrOptions is returned for options out of range.
	ErrOptions = errors.New("invalid options")
	// ErrEngineUnavailable is returned for an engine that this platform lacks.
	ErrEngineUnavailable = errors.New("engine not available on this platform")
	// ErrDimension is returned for a vector of another length than the set's.
	ErrDimension = errors.New("wrong vector length")
	// ErrNotFinite is returned for a vector with NaN or infinity in it, or
	// whose squared length overflows.
	ErrNotFinite = errors.New("vector is not finite")
	// ErrOrder is returned for an ID that is not above the last one added.
	ErrOrder = errors.New("ids must ascend")
	// ErrFull is returned when a set holds as many vectors as it can address.
	ErrFull = errors.New("set is full")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("set is closed")
	// ErrGraphFile is returned by Load for a file that is damaged or does not
	// belong to this set. The set is unchanged and builds its graph anew.
	ErrGraphFile = errors.New("graph file not usable")
)

const (
	defaultM              = 16
	defaultEfConstruction = 200
	// Measured on 20,000 clustered vectors of 384 dimensions, where 20 gives a
	// recall@10 of 0.98 and 32 one of 0.998; the rest is for harder data.
	defaultEfSearch = 40
	maxM            = 128
	maxEf           = 1 << 16
	maxDim          = 1 << 16
	// maxSlots leaves the top bit of a slot free (see key in scratch.go).
	maxSlots = 1<<31 - 1
)

// Params are the constants of the graph, named as in the HNSW paper. The zero
// value means the defaults.
type Params struct {
	// M is the number of links of a new node; the ground layer holds up to
	// 2M a node. Default 16, 2..128.
	M int
	// EfConstruction is the size of the candidate list while inserting.
	// Default 200, at least M.
	EfConstruction int
	// EfSearch is the size of the candidate list while searching; a search
	// takes the larger of it and k. Default 40.
	EfSearch int
}

// Validate returns an ErrOptions that names the field out of range.
func (p Params) Validate() error {
	p = p.withDefaults()
	switch {
	case p.M < 2 || p.M > maxM:
		return fmt.Errorf("params M %d not in 2..%d: %w", p.M, maxM, ErrOptions)
	case p.EfConstruction < p.M || p.EfConstruction > maxEf:
		return fmt.Errorf("params EfConstruction %d not in M..%d: %w", p.EfConstruction, maxEf, ErrOptions)
	case p.EfSearch < 1 || p.EfSearch > maxEf:
		return fmt.Errorf("params EfSearch %d not in 1..%d: %w", p.EfSearch, maxEf, ErrOptions)
	}
	return nil
}

func (p Params) withDefaults() Params {
	if p.M == 0 {
		p.M = defaultM
	}
	if p.EfConstruction == 0 {
		p.EfConstruction = max(defaultEfConstruction, p.M)
	}
	if p.EfSearch == 0 {
		p.EfSearch = defaultEfSearch
	}
	return p
}

const (
	// A walk overtakes a scan at about 1,000 vectors of 384 dimensions; up to
	// 4096 a scan takes well below a millisecond, misses nothing, and needs
	// no build.
	defaultExactBelow  = 4096
	defaultGuardSample = 64
	defaultGuardRecall = 0.98
)

// Options of a Set. The zero value is good.
type Options struct {
	// Engine defaults to EngineMneme.
	Engine Engine
	// Params of the graph.
	Params Params
	// ExactBelow is the number of live vectors below which a set has no
	// graph and is scanned exactly. 0 means 4096, negative means never.
	ExactBelow int
	// GuardSample is how many queries the recall guard asks: those that were
	// asked lately, and others between stored vectors; in doubt four times as many. 0 means 64.
	GuardSample int
	// GuardRecall is the recall of the nearest ten under which a graph is not
	// used. 0 means 0.98; negative trusts every graph.
	GuardRecall float64
	// Exact gives the full-precision unit vectors of ids, by which the best
	// candidates of a search are then scored: it writes them one after the other
	// to dst, whose length is len(ids) times the dimension. NaN in the place of
	// a vector's first component says that it cannot be had; the vector keeps
	// the score of its bytes. A set that has only vectors from AddBulkInt8 never asks.
	// It is called from searching goroutines, for a few
	// dozen IDs at a time; an error fails the search. Nil: bytes are all there is.
	Exact func(ctx context.Context, ids []ID, dst []float32) error
	// BuildWorkers is the number of goroutines that build a graph. 0 means
	// GOMAXPROCS, but not above 4.
	BuildWorkers int
	// Pace says how long the builder rests after a small batch of work, so that
	// others get the processor. Nil: not at all.
	Pace func() time.Duration
	// Logger receives what the builder has nobody to return to: a tripped
	// guard. Nil discards.
	Logger *slog.Logger
}

// Validate returns an ErrOptions that names the field out of range.
func (o Options) Validate() error {
	switch o.Engine {
	case "", EngineMneme, EngineCoder, EngineExact:
	default:
		return fmt.Errorf("options engine %q: %w", o.Engine, ErrOptions)
	}
	if o.GuardSample < 0 {
		return fmt.Errorf("options GuardSample %d: %w", o.GuardSample, ErrOptions)
	}
	if o.BuildWorkers < 0 {
		return fmt.Errorf("options BuildWorkers %d: %w", o.BuildWorkers, ErrOptions)
	}
	if !(o.GuardRecall <= 1) {
		return fmt.Errorf("options GuardRecall %v above 1: %w", o.GuardRecall, ErrOptions)
	}
	return o.Params.Validate()
}

func (o Options) withDefaults() Options {
	if o.Engine == "" {
		o.Engine = EngineMneme
	}
	o.Params = o.Params.withDefaults()
	if o.ExactBelow == 0 {
		o.ExactBelow = defaultExactBelow
	}
	o.ExactBelow = max(o.ExactBelow, 0)
	if o.GuardSample == 0 {
		o.GuardSample = defaultGuardSample
	}
	if o.GuardRecall == 0 {
		o.GuardRecall = defaultGuardRecall
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// GuardState is what the recall guard last found.
type GuardState string

const (
	// GuardNone: nothing was compared yet; searches scan exactly.
	GuardNone GuardState = "none"
	// GuardOK: the graph is trusted.
	GuardOK GuardState = "ok"
	// GuardTripped: the graph finds too little; searches scan exactly.
	GuardTripped GuardState = "tripped"
)

// Stats describe a set at one moment.
type Stats struct {
	// Live is the number of vectors that a search may return.
	Live int
	// Deleted is the number of tombstones not yet compacted away.
	Deleted int
	// InGraph is the number of vectors in the graph, tombstones included.
	InGraph int
	// Tail is the number of vectors that the graph does not hold yet, where
	// it is to hold them.
	Tail int
	// Configured is the engine asked for; Engine the one that answers now:
	// exact for a small set, an unguarded or a tripped graph.
	Configured, Engine Engine
	// Guard is the state of the recall guard and Recall the recall it last
	// measured, of the nearest ten; 0 before.
	Guard  GuardState
	Recall float64
	// Kernel names the code that computes dot products: "avx512vnni",
	// "avx512bw", "avx2", "neon" or "go".
	Kernel string
	// Bytes is the memory held, spare room for growth included.
	Bytes int64
	// BytesPerVector is the memory one vector needs, without that room.
	BytesPerVector float64
}
