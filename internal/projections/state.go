package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// Options of a state. Dir is required.
type Options struct {
	Dir          string
	Shard        uint16
	FS           vfs.FS // for every file; nil is the system's
	Logger       *slog.Logger
	CacheBytes   int64
	ReserveBytes int64
	ReadOnly     bool
	Filling      bool        // from a log; see storage.Options
	OnFault      func(error) // background errors of the store
	// OnApply hears what a command changed, after it is committed and before
	// its result is given. It is called by the applying goroutine and must not
	// wait. May be nil.
	OnApply func(*Applied)
	// OnRead hears of each key that a view reads and of each iterator that it
	// opens, so that a test can count them. May be nil.
	OnRead func()
	// OnRow hears of each row that such an iterator comes to. It counts with OnRead only.
	OnRow func()
}

// Command is one committed Raft entry.
type Command struct {
	Index, Term uint64
	Data        []byte
}

// Applied says what a batch of commands changed.
type Applied struct {
	Cursor  Cursor
	Events  []AppliedEvent
	Docs    []AppliedDoc
	Deaths  []AppliedDoc
	Vectors []AppliedVector
	Dropped []events.ID // namespaces deleted
	Erased  bool        // data keys ended
	Voids   []uint64    // sequences of void frames
	// DroppedSpaces come before Vectors: of a space that was dropped and built
	// again only the later vectors are listed.
	DroppedSpaces []DroppedSpace
	Quarantined   int
}

// AppliedEvent is one event with its audit row.
type AppliedEvent struct {
	Row       AuditRow
	Namespace events.ID
	Version   uint32
}

// AppliedDoc is a record version that began or ended. Of one that ended,
// Namespace and what follows it are zero.
type AppliedDoc struct {
	Partition, Doc uint32
	Record         events.ID
	Namespace      events.ID
	Conversation   AttrKey // "" = none
	OccurredAt     int64   // Unix nanoseconds
	Agent          string
}

// AppliedVector is one new vector.
type AppliedVector struct {
	Partition uint32
	Space     SpaceKey
	ID        uint32
	Row       VectorRow
}

// State is a shard's state. Apply, Checkpoint, Restore and Swap are called one
// at a time; View and AppliedIndex may be called at any time.
type State struct {
	opt Options
	mu  sync.RWMutex // guards gen, its published views and former
	gen *generation
	// former were replaced; a view may still read them, or their folders are left.
	former []*generation
	// marked are events that an operator put in quarantine. Transactions have the map, so
	// it is never changed.
	marked map[Ref]Quarantine
	// moved is closed and replaced whenever the cursor moves.
	moved chan struct{}

	opened     uint64           // views opened so far
	views      map[*View]uint64 // the open ones, by how many there were when it was opened
	viewClosed chan struct{}    // closed and replaced whenever a view is closed
}

// Open opens the state in opt.Dir, creating an empty one. Errors of damaged,
// newer or locked directories are those of package storage.
func Open(opt Options) (*State, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.FS == nil {
		opt.FS = vfs.Default
	}
	name, err := currentGeneration(opt.FS, opt.Dir)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return first(opt)
	}
	g, err := openGeneration(opt, name)
	if err != nil {
		return nil, err
	}
	if !opt.ReadOnly {
		removeOthers(opt.FS, opt.Dir, name, opt.Logger)
	}
	return newState(opt, g), nil
}

func newState(opt Options, g *generation) *State {
	return &State{opt: opt, gen: g, moved: make(chan struct{}), views: map[*View]uint64{}, viewClosed: make(chan struct{})}
}

// first makes the first generation. One that is there already was begun by a
// start that was cut short, unless it holds something.
func first(opt Options) (*State, error) {
	if opt.ReadOnly {
		return nil, fmt.Errorf("state %s: %w", opt.Dir, storage.ErrNoDatabase)
	}
	if err := storage.MkdirAll(opt.FS, opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("state %s: %w", opt.Dir, err)
	}
	lost := fmt.Errorf("state %s: there are states, but no file %s that says which counts: %w", opt.Dir, currentFile, storage.ErrDamaged)
	names, err := generations(opt.FS, opt.Dir)
	if err != nil {
		return nil, err
	}
	if len(names) > 1 {
		return nil, lost
	}
	names = append(names, "gen-000001")
	g, err := openGeneration(opt, names[0])
	if err != nil {
		return nil, err
	}
	if g.now.cursor.Seq > 0 {
		return nil, errors.Join(lost, g.db.Close())
	}
	if err := setCurrentGeneration(opt.FS, opt.Dir, names[0]); err != nil {
		return nil, errors.Join(err, g.db.Close())
	}
	return newState(opt, g), nil
}

// begin starts a transaction. There is one at a time.
func (s *State) begin() (*generation, *tx) {
	s.mu.RLock()
	g := s.gen
	t := newTx(g)
	t.marked = s.marked
	s.mu.RUnlock()
	t.b = g.db.NewIndexedBatch()
	return g, t
}

// applyBytes is how many bytes of commands one batch takes, unless its first is longer.
// What a batch holds is many times as long as the command, and a view waits for all of it.
const applyBytes = 1 << 20

// Apply folds commands in order, in batches that each commit with the cursor. Commands at or below the applied index are skipped with a nil result. An
// error, a *CommandError or the store's, leaves the state behind the commands that have
// a result: only what is behind them may be given to Apply again.
func (s *State) Apply(commands []Command) ([]any, error) {
	results := make([]any, 0, len(commands))
	for len(results) < len(commands) {
		some, err := s.applyUpTo(beginning(commands[len(results):]))
		results = append(results, some...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// applyUpTo folds commands in one batch. Where one holds an event that cannot be folded,
// those in front of it are: so all replicas stop at the same place.
func (s *State) applyUpTo(commands []Command) ([]any, error) {
	results, err := s.applySome(commands)
	at, poison := (*CommandError)(nil), (*PoisonError)(nil)
	if !errors.As(err, &poison) || !errors.As(err, &at) {
		return results, err
	}
	n := slices.IndexFunc(commands, func(c Command) bool { return c.Index == at.Index })
	if n <= 0 {
		return nil, err
	}
	results, before := s.applySome(commands[:n])
	if before != nil {
		return nil, before
	}
	return results, err
}

// beginning gives as many commands as one batch takes.
func beginning(commands []Command) []Command {
	size := 0
	for i, c := range commands {
		if size += len(c.Data); size > applyBytes && i > 0 {
			return commands[:i]
		}
	}
	return commands
}

// applySome folds commands in one batch.
func (s *State) applySome(commands []Command) ([]any, error) {
	g, t := s.begin()
	defer t.close()
	results := make([]any, len(commands))
	for i, c := range commands {
		if c.Index <= t.cursor.RaftIndex {
			continue
		}
		res, err := t.command(c.Data)
		if err != nil {
			g.terms.Reset()
			return nil, &CommandError{c.Index, err}
		}
		t.cursor.RaftIndex, t.cursor.RaftTerm = c.Index, c.Term
		results[i] = res
	}
	if err := s.commit(g, t); err != nil {
		return nil, s.blame(commands, err)
	}
	return results, nil
}

// ApplyLocal folds one range that comes from a replay instead of Raft: a
// rebuild or a restore from backup.
func (s *State) ApplyLocal(r *Range) (RangeResult, error) {
	g, t := s.begin()
	defer t.close()
	res, err := t.applyRange(r)
	if err != nil {
		return res, err
	}
	return res, s.commit(g, t)
}

// CommandLocal carries out a command that does not come through Raft: work on a
// stopped node that has no peers.
func (s *State) CommandLocal(data []byte) (any, error) {
	g, t := s.begin()
	defer t.close()
	res, err := t.command(data)
	if err != nil {
		return nil, err
	}
	return res, s.commit(g, t)
}

// SetOrigin records the Raft index that a state built from the log takes over,
// before it is swapped in, and the stream that it was built from.
func (s *State) SetOrigin(index, term uint64, stream events.StreamRef) error {
	g, t := s.begin()
	defer t.close()
	t.cursor.RaftIndex, t.cursor.RaftTerm = index, term
	t.cursor.feed(stream)
	return s.commit(g, t)
}

func (s *State) commit(g *generation, t *tx) error {
	defer g.terms.Reset()
	if err := t.finishGuarded(); err != nil {
		return err
	}
	s.mu.Lock()
	was := g.hold()
	s.mu.Unlock()
	err := g.db.Commit(t.b, false)
	s.mu.Lock()
	if err == nil {
		g.publish(t)
	}
	err = errors.Join(err, was.release())
	moved := s.moved
	if err == nil {
		s.moved = make(chan struct{})
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	g.terms.Committed()
	if s.opt.OnApply != nil {
		t.out.Cursor = t.cursor
		s.opt.OnApply(t.out)
	}
	close(moved)
	return nil
}

// AppliedIndex returns the Raft index and term the state stands at.
func (s *State) AppliedIndex() (index, term uint64) {
	c := s.Cursor()
	return c.RaftIndex, c.RaftTerm
}

// Cursor returns where the state stands.
func (s *State) Cursor() Cursor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gen.now.cursor
}

// Moved returns a channel that is closed when the cursor moves next.
func (s *State) Moved() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.moved
}

// Flush puts everything applied so far on stable storage.
func (s *State) Flush() error {
	g := s.use()
	defer s.unuse(g)
	return g.db.Sync()
}

// Checkpoint makes a consistent hard-linked copy of the state in dir.
func (s *State) Checkpoint(dir string) error {
	g := s.use()
	defer s.unuse(g)
	return g.db.Checkpoint(dir)
}

// Restore replaces the state by the checkpoint in dir, swapping last. dir is on
// the state's file system.
func (s *State) Restore(dir string) error {
	name, err := nextName(s.opt.FS, s.opt.Dir)
	if err == nil {
		err = s.opt.FS.Rename(dir, s.opt.FS.PathJoin(s.opt.Dir, name))
	}
	if err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	return s.swapTo(name)
}

// Sibling opens an empty state beside this one, to be filled from the log. Give it to
// Swap or to Discard.
func (s *State) Sibling() (*State, error) {
	opt := s.opt
	opt.OnApply, opt.Filling = nil, true
	name, err := nextName(opt.FS, opt.Dir)
	if err != nil {
		return nil, err
	}
	g, err := openGeneration(opt, name)
	if err != nil {
		return nil, err
	}
	sibling := newState(opt, g)
	return sibling, s.tell(sibling)
}

// tell gives a sibling what an operator put in quarantine here: the log may not tell yet.
func (s *State) tell(sibling *State) error {
	v := s.View()
	noted, err := v.Noted()
	for _, n := range noted {
		sibling.Quarantine(n.Quarantine)
	}
	return errors.Join(err, v.Close())
}

// Sort compacts a sibling that has been filled. Swap opens it anew, which would wait for
// its compactions with nothing applied meanwhile.
func (s *State) Sort(ctx context.Context) error { return s.gen.db.Sort(ctx) }

// Discard closes a sibling and removes it.
func (s *State) Discard() error {
	return errors.Join(s.gen.db.Close(), s.opt.FS.RemoveAll(s.opt.FS.PathJoin(s.opt.Dir, s.gen.name)))
}

// Swap puts the sibling's rows in this state's place. The sibling must not be
// used afterwards. Closing it makes its rows durable, before CURRENT names them.
func (s *State) Swap(sibling *State) error {
	if err := sibling.gen.db.Close(); err != nil {
		return err
	}
	return s.swapTo(sibling.gen.name)
}

func (s *State) swapTo(name string) error {
	next, err := openGeneration(s.opt, name)
	if err != nil {
		return err
	}
	if err := setCurrentGeneration(s.opt.FS, s.opt.Dir, name); err != nil {
		return errors.Join(err, next.db.Close())
	}
	s.mu.Lock()
	old := s.gen
	s.gen, s.former = next, append(s.former, old)
	moved := s.moved
	s.moved = make(chan struct{})
	old.stale = true
	idle := old.refs == 0
	s.mu.Unlock()
	close(moved)
	if idle {
		s.retire(old)
	}
	return nil
}

// retire closes and removes a generation that nobody reads any more.
func (s *State) retire(g *generation) {
	defer close(g.gone)
	if err := g.db.Close(); err != nil {
		s.opt.Logger.Warn("old state could not be closed", "dir", g.name, "err", err)
		return
	}
	if err := s.removeFormer(g); err != nil {
		s.opt.Logger.Warn("old state could not be removed", "dir", g.name, "err", err)
	}
}

// CheckTables reads all that the state has on disk and compares it with its checksums.
// What is damaged matches storage.ErrDamaged.
func (s *State) CheckTables(ctx context.Context) error {
	g := s.use()
	defer s.unuse(g)
	return g.db.CheckTables(ctx)
}

// Fault returns the first background error of the store, or nil.
func (s *State) Fault() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gen.db.Fault()
}

// Metrics are those of the database that holds the state now.
func (s *State) Metrics() storage.Metrics {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gen.db.Metrics()
}

// Close closes the state. All views must be closed before.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gen.db.Close()
}
