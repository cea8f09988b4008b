package projections

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/storage"
)

// generation is one open database of a state and what of it is kept in memory.
// A rebuild or restore makes the next one beside it and swaps last.
type generation struct {
	name          string // folder below the state's directory
	db            *storage.DB
	terms         *text.Writer
	onRead, onRow func()     // of Options
	now           *published // guarded by State.mu; what it points to does not change
	refs          int        // open views; guarded by State.mu
	stale         bool
	gone          chan struct{} // closed once it is closed and removed
}

// MergeTable lists how the shard's merged rows combine.
func MergeTable() storage.MergeTable {
	table := text.MergeTable()
	table[prefixBitmap] = storage.Merge{Fold: mergeBitmaps}
	return table
}

const currentFile = "CURRENT"

// currentGeneration reads which folder holds the state; "" if there is none yet.
// Where there are generations, a CURRENT that is missing is damage: which of them
// is the state is not known, and none may be deleted.
func currentGeneration(fsys vfs.FS, dir string) (string, error) {
	b, err := storage.ReadFile(fsys, fsys.PathJoin(dir, currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("state %s: %w", dir, err)
	}
	name := strings.TrimSpace(string(b))
	if !isGeneration(name) || strings.ContainsAny(name, "/\\") {
		return "", fmt.Errorf("state %s: file %s is damaged: %w", dir, currentFile, storage.ErrDamaged)
	}
	if _, err := fsys.Stat(fsys.PathJoin(dir, name)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("state %s: %s, which holds it, is missing: %w", dir, name, storage.ErrDamaged)
	}
	return name, nil
}

// setCurrentGeneration makes name the state. Its folder is made durable first: a
// crash must not leave a CURRENT that names nothing.
func setCurrentGeneration(fsys vfs.FS, dir, name string) error {
	err := storage.SyncDir(fsys, dir)
	if err == nil {
		err = storage.ReplaceFile(fsys, fsys.PathJoin(dir, currentFile), []byte(name+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("state %s: %w", dir, err)
	}
	return nil
}

func isGeneration(name string) bool { return strings.HasPrefix(name, "gen-") }

// generations lists the folders of a state.
func generations(fsys vfs.FS, dir string) ([]string, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("state %s: %w", dir, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isGeneration(name) })
	slices.Sort(names)
	return names, nil
}

// removeOthers deletes every generation folder but keep.
func removeOthers(fsys vfs.FS, dir, keep string, log *slog.Logger) {
	names, err := generations(fsys, dir)
	if err != nil {
		log.Warn("old states could not be listed", "err", err)
	}
	for _, name := range names {
		if name != keep {
			if err := fsys.RemoveAll(fsys.PathJoin(dir, name)); err != nil {
				log.Warn("old state could not be removed", "dir", name, "err", err)
			}
		}
	}
}

// nextName is a folder name that no generation has or had: its number is higher
// than that of every one that is there, the present one included. So what removes
// a former generation, once nobody reads it, never meets a later one.
func nextName(fsys vfs.FS, dir string) (string, error) {
	names, err := generations(fsys, dir)
	if err != nil {
		return "", err
	}
	last := 0
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "gen-")); err == nil {
			last = max(last, n)
		}
	}
	return fmt.Sprintf("gen-%06d", last+1), nil
}

// openGeneration opens one folder and loads what is kept in memory.
func openGeneration(opt Options, name string) (*generation, error) {
	db, err := storage.Open(storage.Options{Dir: opt.FS.PathJoin(opt.Dir, name), FS: opt.FS, Logger: opt.Logger,
		CacheBytes: opt.CacheBytes, Merge: MergeTable(), ReadOnly: opt.ReadOnly, Filling: opt.Filling, OnFault: opt.OnFault, ReserveBytes: opt.ReserveBytes})
	if err != nil {
		return nil, err
	}
	g := &generation{name: name, db: db, gone: make(chan struct{}), terms: text.NewWriter(db), onRead: opt.OnRead, onRow: opt.OnRow}
	if err := g.load(opt); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return g, nil
}

// load reads the cursor and what is kept in memory.
func (g *generation) load(opt Options) error {
	now := &published{memory: newMemory(), cursor: Cursor{Shard: opt.Shard, Pipeline: PipelineVersion}}
	raw, err := getRow(g.db, metaCursorKey)
	if err == nil && raw != nil {
		now.cursor, err = decodeCursor(raw)
	}
	switch {
	case err != nil:
		return err
	case now.cursor.Pipeline > PipelineVersion:
		return fmt.Errorf("state of pipeline version %d: %w", now.cursor.Pipeline, events.ErrNewer)
	case now.cursor.Pipeline < PipelineVersion:
		return &OlderError{Cursor: now.cursor}
	}
	for _, d := range declarations() {
		if d.load == nil {
			continue
		}
		err := d.load(g.db, &now.memory)
		if errors.Is(err, events.ErrMalformed) {
			err = fmt.Errorf("%w: %w", storage.ErrDamaged, err)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", d.name, err)
		}
	}
	g.now = now
	return nil
}

// OlderError says that a state was built by an older pipeline version. It has
// to be built anew from the log that led to its cursor.
type OlderError struct{ Cursor Cursor }

func (e *OlderError) Error() string {
	return fmt.Sprintf("the state is of pipeline version %d, this program's is %d", e.Cursor.Pipeline, PipelineVersion)
}

// publish makes a committed transaction the present position. The caller holds
// State.mu.
func (g *generation) publish(t *tx) {
	g.now = &published{memory: t.publish(&g.now.memory), cursor: t.cursor}
}

func prefixOptions(prefix []byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)}
}

// eachRow visits the rows below a prefix in key order. Key and value are valid
// during the call only.
func eachRow(r pebble.Reader, prefix []byte, visit func(key, value []byte) error) error {
	it, err := r.NewIter(prefixOptions(prefix))
	if err != nil {
		return fmt.Errorf("scan rows %#x: %w", prefix[0], err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = visit(it.Key(), v)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}
