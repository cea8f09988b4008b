package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm/raftmodel"
)

// rates are chances in a hundred, drawn once a run, so that runs differ.
type rates struct{ log, lag, raise, fault, lose int }

// world is one run: everything in it follows from the seed.
type world struct {
	seed   uint64
	rng    *rand.Rand // what happens
	random io.Reader  // bytes of ids and keys
	ids    *events.IDSource
	rates  rates
	faulty bool
	quiet  bool     // clients do nothing more
	alone  *replica // a leader that is cut off from peers and clients, and does not know it
	apart  int      // steps for which those who are cut off stay so

	elapsed  time.Duration
	model    *raftmodel.Model
	replicas []*replica
	log      *log
	keys     *keyring.Keyring // of all replicas, where they are no cluster
	site     *site            // nil where they are no cluster
	hosts    int

	notes    []*note
	changes  int
	requests []*request
	reads    []*read

	histories map[uint64]history // what a state at a sequence is
	maxEpoch  uint32
	peak      uint64         // highest sequence that a state has reached
	raised    uint32         // highest epoch that was raised without another stream
	bit       map[string]int // faults that bit
	reached   map[string]int
	trace     []string
	err       error
}

// history identifies a state.
type history struct {
	cursor projections.Cursor
	hash   projections.StateHash
}

// stop is what a broken invariant panics with, so that a run ends where it is.
type stop struct{}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.event("broken: %v", w.err)
	}
	panic(stop{})
}

func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) event(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%6d ", w.elapsed.Milliseconds())+fmt.Sprintf(format, args...))
}

func (w *world) reach(what string) { w.reached[what]++ }

func (w *world) bite(what string) { w.bit[what]++; w.event("fault: %s", what) }

var begun = time.Unix(1_800_000_000, 0)

func newWorld(seed uint64) *world {
	w := &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), faulty: true, elapsed: time.Second,
		histories: map[uint64]history{}, bit: map[string]int{}, reached: map[string]int{}}
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	w.random = rand.NewChaCha8(key)
	w.ids = events.NewIDSource(func() time.Time { return begun.Add(w.elapsed) }, w.random)
	w.rates = rates{log: 5 + w.rng.IntN(40), lag: w.rng.IntN(40), raise: w.rng.IntN(40), fault: 1 + w.rng.IntN(4)}
	if w.rng.IntN(3) == 0 { // in the others a writer must never stop
		w.rates.lose = 10 + w.rng.IntN(30)
	}
	w.log = &log{w: w, streams: []*stream{{}}, gone: map[int]bool{}}
	return w
}

// shape is what a run is made of: so many replicas, which have one keyring and are always
// the same, or a cluster of so many nodes to begin with.
type shape struct {
	nodes   int
	cluster bool
}

// shapes are those that seeds draw, by name, a seed's remainder deciding.
var shapes = []string{"1", "3", "cluster3", "1", "cluster5", "3"}

// shapeOf is a seed's shape, or the one that is named.
func shapeOf(seed uint64, name string) (sh shape) {
	name = cmp.Or(name, shapes[seed%uint64(len(shapes))])
	number, several := strings.CutPrefix(name, "cluster")
	n, err := strconv.Atoi(number)
	if err != nil {
		panic("-sim.shape is one of " + strings.Join(shapes, ", "))
	}
	return shape{n, several}
}

var raftFaults = raftmodel.Faults{Drop: 60, Duplicate: 60, Elections: 4, Disk: 1}

func newMem() *vfs.MemFS { return vfs.NewCrashableMem() }

var ctx = context.Background()

func (w *world) build(sh shape) {
	if sh.cluster {
		newSite(w, sh)
		return
	}
	var err error
	w.keys, err = keyring.Open(keyring.Options{Dir: "/keys", AllowCreate: true, AllowNewStorage: true, Rand: w.random, FS: vfs.NewMem()})
	w.must(err)
	opt := raftmodel.Options{Seed: w.seed}
	for i := range sh.nodes {
		r := &replica{w: w, id: i, fs: newMem(), keys: w.keys}
		r.open()
		w.replicas = append(w.replicas, r)
		opt.Machines, opt.Disks = append(opt.Machines, r), append(opt.Disks, r.fs)
	}
	w.model = raftmodel.New(opt)
	for i, r := range w.replicas {
		r.raft = w.model.Replica(i)
	}
}

func (w *world) close() error {
	var err error
	for _, r := range w.replicas {
		err = cmp.Or(err, r.state.Close())
		if r.member != nil {
			err = cmp.Or(err, r.keys.Close())
		}
	}
	if w.keys != nil {
		err = cmp.Or(err, w.keys.Close())
	}
	return err
}

// step lets one thing happen.
func (w *world) step() {
	w.elapsed += time.Duration(w.rng.IntN(3)) * time.Millisecond
	if w.rng.IntN(20) == 0 {
		w.elapsed += 50 * time.Millisecond
	}
	switch k := w.rng.IntN(100); {
	case k < 35:
		w.must(w.model.Step())
	case k < 50:
		w.log.step()
	case k < 85:
		r := w.replicas[w.rng.IntN(len(w.replicas))]
		if r.host != nil {
			r.host.step()
		}
		r.operate()
	case !w.quiet:
		w.act()
	}
	if w.site != nil {
		w.site.step()
	}
	if w.apart = max(0, w.apart-1); w.apart == 0 {
		w.alone = nil
	}
	if w.faulty && w.alone == nil && w.rng.IntN(100) < w.rates.fault {
		w.strike()
	}
	w.after()
}

// strike lets something fail, or mends it.
func (w *world) strike() {
	if w.rng.IntN(100) < w.rates.lose {
		w.log.loseSome()
		return
	}
	if w.site != nil && w.rng.IntN(2) == 0 {
		w.site.strike()
		return
	}
	r := w.replicas[w.rng.IntN(len(w.replicas))]
	switch w.rng.IntN(21) {
	case 0:
		if r.runs() {
			r.crash()
		}
	case 1, 2:
		for _, r := range w.replicas {
			if !r.runs() {
				r.restart()
			}
		}
	case 3:
		if len(w.replicas) > 1 {
			w.isolate(r, w.rng.IntN(300))
		}
	case 4:
		if w.apart == 0 {
			w.heal()
		}
	case 5:
		w.bite("stepped down")
		r.raft.StepDown()
	case 6:
		w.log.full = true
	case 7:
		if w.log.full && w.bit["no space"] > 0 {
			w.reach("no space then resumed")
		}
		w.log.full = false
	case 8:
		w.log.gone[r.id] = true
	case 9:
		clear(w.log.gone)
	case 10:
		if !r.down {
			w.must(r.state.Flush())
		}
	case 11:
		r.forge()
	case 12, 13, 14:
		if i := slices.IndexFunc(w.replicas, (*replica).idle); i >= 0 && len(w.replicas) > 1 {
			w.alone = w.replicas[i]
			w.isolate(w.alone, 600)
		}
	case 15:
		w.bite("clock set")
		r.skew = time.Duration(w.rng.IntN(180)-90) * time.Second
	default:
		if !r.down && r.raft.Halted() == nil && r.raft.Snapshot() == nil {
			w.event("snapshot of %d", r.id)
			w.reach("snapshot taken")
		}
	}
}

func (w *world) isolate(r *replica, steps int) {
	w.bite("isolated")
	w.event("isolate %d", r.id)
	w.model.Isolate(r.id)
	if w.site != nil {
		w.site.model.Isolate(r.id)
	}
	w.apart = steps
}

func (w *world) heal() {
	w.model.Heal()
	if w.site != nil {
		w.site.model.Heal()
	}
}

// after follows what has happened, and checks what must always hold.
func (w *world) after() {
	if w.site != nil {
		w.site.after()
	}
	for _, r := range w.replicas {
		if r.down {
			continue
		}
		r.drain()
		if r.raft.DiskFailed() && !r.failed {
			r.failed = true
			w.bite("error of Raft's disk")
			w.reach("Raft's disk failed")
		}
		if err := r.raft.Halted(); err != nil {
			w.fail("replica %d halts: %v", r.id, err)
		}
		w.compare(r)
	}
	w.answers()
	w.serve()
}

// compare checks that states at one sequence are one.
func (w *world) compare(r *replica) {
	c := r.state.Cursor()
	if c.Seq == r.seen {
		return
	}
	r.seen, w.maxEpoch, w.peak = c.Seq, max(w.maxEpoch, c.Epoch), max(w.peak, c.Seq)
	v := r.state.View()
	hash := v.Hash()
	w.must(v.Close())
	c.RaftIndex, c.RaftTerm, c.Next = 0, 0, events.StreamRef{} // a reservation moves no sequence
	have, ok := w.histories[c.Seq]
	if !ok {
		w.histories[c.Seq] = history{c, hash}
		w.event("state at %d is %s", c.Seq, hash)
	} else if have.cursor != c || have.hash != hash {
		w.fail("replica %d at %d is %+v %s, another was %+v %s", r.id, c.Seq, c, hash, have.cursor, have.hash)
	}
}
