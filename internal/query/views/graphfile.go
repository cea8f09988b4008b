package views

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/index/vector"
	"mneme/internal/storage"
)

const graphSuffix = ".graph"

// graphName is the file of a set's graph.
func (k setKey) graphName() string {
	return fmt.Sprintf("%08x-%x%s", k.partition, k.space[:], graphSuffix)
}

// graphs is the folder of saved graphs. Graphs are caches: what cannot be written
// costs time at the next start.
type graphs struct {
	fs     vfs.FS
	dir    string // "" = nothing is saved
	logger *slog.Logger
}

func (g *graphs) path(set *VectorSet) string { return filepath.Join(g.dir, set.key.graphName()) }

// load takes over a saved graph. One that does not fit is built anew.
func (g *graphs) load(set *VectorSet) {
	if g.dir == "" {
		return
	}
	f, err := g.fs.Open(g.path(set))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = errors.Join(set.set.Load(f), f.Close())
	}
	if err != nil {
		g.logger.Info("a saved graph is not used and built anew", "file", set.key.graphName(), "err", err)
		return
	}
	set.saved.Store(int64(set.Stats().InGraph))
}

// save writes the graphs of sets, which it may reorder, and removes all other files.
func (g *graphs) save(sets []*VectorSet) error {
	if g.dir == "" {
		return nil
	}
	var errs []error
	sets = slices.DeleteFunc(sets, func(set *VectorSet) bool { return set.Stats().InGraph == 0 })
	for _, set := range sets {
		if err := g.write(set); err != nil {
			errs = append(errs, fmt.Errorf("save graph %s: %w", set.key.graphName(), err))
		}
	}
	return errors.Join(append(errs, g.removeOthers(sets))...)
}

// removeOthers removes every graph that is not of one of sets.
func (g *graphs) removeOthers(sets []*VectorSet) error {
	if g.dir == "" {
		return nil
	}
	names, err := g.fs.List(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keep := map[string]bool{}
	for _, set := range sets {
		keep[set.key.graphName()] = true
	}
	errs := []error{err}
	for _, name := range names {
		if !strings.Contains(name, graphSuffix) || keep[name] {
			continue
		}
		if err := g.fs.Remove(filepath.Join(g.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// saveGrowth is by what share of itself a saved graph has grown when it is saved
// again, so that writing costs no more than building did.
const saveGrowth = 0.2

// saveGrown writes each graph that is complete and has grown since it was last
// saved. A file that is behind is taken over as far as it goes.
func (g *graphs) saveGrown(v *vectorView) {
	for _, set := range v.all() {
		st, had := set.Stats(), set.saved.Load()
		if st.Tail > 0 || st.Guard != vector.GuardOK || float64(st.InGraph) < float64(had)*(1+saveGrowth) {
			continue
		}
		if err := g.write(set); err != nil {
			g.logger.Warn("a graph could not be saved; after a kill it is built anew", "file", set.key.graphName(), "err", err)
			continue
		}
		set.saved.Store(int64(st.InGraph))
	}
}

// remove removes the file of a set that was dropped.
func (g *graphs) remove(set *VectorSet) {
	if g.dir == "" {
		return
	}
	if err := g.fs.Remove(g.path(set)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.logger.Warn("the graph of a dropped index could not be removed", "file", set.key.graphName(), "err", err)
	}
}

// write replaces the file of a set's graph.
func (g *graphs) write(set *VectorSet) error {
	if err := storage.MkdirAll(g.fs, g.dir, 0o700); err != nil {
		return err
	}
	return storage.ReplaceWith(g.fs, g.path(set), 0o600, set.set.Save)
}
