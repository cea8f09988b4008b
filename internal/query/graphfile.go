package query

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mneme/internal/index/vector"
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
	f, err := os.Open(filepath.Join(s.opt.GraphDir, set.key.graphName()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(set.set.Load(f), f.Close())
	}
	if err != nil {
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
	if err := os.MkdirAll(dir, 0o700); err != nil {
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
		if err := writeGraph(filepath.Join(dir, name), set.set); err != nil {
			errs = append(errs, fmt.Errorf("save graph %s: %w", name, err))
		}
	}
	entries, err := os.ReadDir(dir)
	errs = append(errs, err)
	for _, e := range entries {
		if name := e.Name(); strings.Contains(name, graphSuffix) && !keep[name] {
			errs = append(errs, os.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(errs...)
}

// writeGraph replaces a file: write, sync, rename.
func writeGraph(path string, set *vector.Set) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = set.Save(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
