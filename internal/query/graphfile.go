package query

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"mneme/internal/index/vector"
	"mneme/internal/storage"
)

const graphSuffix = ".graph"

// graphName is the file of a set's graph.
func (k setKey) graphName() string { return fmt.Sprintf("%08x-%x%s", k.part, k.space[:], graphSuffix) }

// loadGraph takes over a saved graph. A file that does not fit is no error:
// the graph is built anew.
func (s *Service) loadGraph(set *vectorSet) error {
	if s.opt.GraphDir == "" {
		return nil
	}
	f, err := s.opt.FS.Open(filepath.Join(s.opt.GraphDir, set.key.graphName()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(set.set.Load(f), f.Close())
	}
	if err == nil {
		set.kept.Store(int64(set.set.Stats().InGraph))
	} else {
		s.opt.Logger.Info("a saved graph is not used and built anew", "file", set.key.graphName(), "err", err)
	}
	return nil
}

// saveGraphs writes the graphs that there are and removes files of sets that
// there are not. Graphs are caches: what cannot be written costs time at the
// next start.
func (s *Service) saveGraphs(v *vectorView) error {
	dir := s.opt.GraphDir
	if dir == "" {
		return nil
	}
	if err := storage.MkdirAll(s.opt.FS, dir, 0o700); err != nil {
		return fmt.Errorf("save graphs: %w", err)
	}
	var errs []error
	keep := map[string]bool{}
	for _, set := range v.all() {
		if set.set.Stats().InGraph == 0 {
			continue
		}
		name := set.key.graphName()
		keep[name] = true
		if err := s.writeGraph(set); err != nil {
			errs = append(errs, fmt.Errorf("save graph %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, s.removeGraphs(keep))...)
}

// DropGraphs removes the files of graphs whose set is not there any more; what
// is dropped while it runs is left for the next call.
func (s *Service) DropGraphs() error {
	s.loadMu.Lock() // against a keepGrown or a Load that knows the set still
	defer s.loadMu.Unlock()
	if s.opt.GraphDir == "" {
		return nil
	}
	keep := map[string]bool{}
	for _, set := range s.vectors.Load().all() {
		keep[set.key.graphName()] = true
	}
	return s.removeGraphs(keep)
}

// removeGraphs removes every file of a graph that is not to be kept.
func (s *Service) removeGraphs(keep map[string]bool) error {
	names, err := s.opt.FS.List(s.opt.GraphDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range names {
		if !strings.Contains(name, graphSuffix) || keep[name] {
			continue
		}
		if err := s.opt.FS.Remove(filepath.Join(s.opt.GraphDir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

const (
	// keepEvery is how often a node looks whether graphs are worth saving.
	keepEvery = time.Minute
	// keepGrowth is by what share of itself a saved graph has grown when it is
	// saved again, so that writing costs no more than building did.
	keepGrowth = 0.2
)

// keepGraphs saves graphs that have grown, so that a node that was killed does
// not build them anew. It runs until Close.
func (s *Service) keepGraphs() {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.keepGrown()
		}
	}
}

// keepGrown saves each graph that is complete and has grown since it was last
// saved. It steps back for a Load and for Close. A file that is behind is taken
// over as far as it goes.
func (s *Service) keepGrown() {
	if !s.loadMu.TryLock() {
		return
	}
	defer s.loadMu.Unlock()
	for _, set := range s.vectors.Load().all() {
		st, had := set.set.Stats(), set.kept.Load()
		if st.Tail > 0 || st.Guard != vector.GuardOK || float64(st.InGraph) < float64(had)*(1+keepGrowth) {
			continue
		}
		err := storage.MkdirAll(s.opt.FS, s.opt.GraphDir, 0o700)
		if err == nil {
			err = s.writeGraph(set)
		}
		if err != nil {
			s.opt.Logger.Warn("a graph could not be saved; after a kill it is built anew", "file", set.key.graphName(), "err", err)
			continue
		}
		set.kept.Store(int64(st.InGraph))
	}
}

// leave ends a set that its namespace has no more, and its file.
func (s *Service) leave(set *vectorSet) {
	_ = set.set.Close() // always nil; its builder may take a moment
	if s.opt.GraphDir == "" {
		return
	}
	if err := s.opt.FS.Remove(filepath.Join(s.opt.GraphDir, set.key.graphName())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.opt.Logger.Warn("the graph of a dropped index could not be removed", "file", set.key.graphName(), "err", err)
	}
}

// writeGraph replaces the file of a set's graph.
func (s *Service) writeGraph(set *vectorSet) error {
	path := filepath.Join(s.opt.GraphDir, set.key.graphName())
	return storage.ReplaceWith(s.opt.FS, path, 0o600, set.set.Save)
}
