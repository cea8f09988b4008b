package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"mneme/bench/internal/points"
	"mneme/bench/internal/report"
	"mneme/bench/search/internal/vectors"
)

//go:embed peers/*.cpp peers/*.h
var peers embed.FS

// smallVectors is the size up to which slow and bad indexes are measured too.
const smallVectors = 20_000

// buildPeers compiles the C++ program into dir.
func buildPeers(ctx context.Context, dir string) (bin string, err error) {
	files, err := fs.Glob(peers, "peers/*")
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "peers")
	args := []string{"-O3", "-march=native", "-std=c++17", "-fopenmp", "-w", "-o", bin}
	for _, name := range files {
		b, err := peers.ReadFile(name)
		if err != nil {
			return "", err
		}
		at := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return "", err
		}
		if filepath.Ext(at) == ".cpp" {
			args = append(args, at)
		}
	}
	args = append(args, "-lfaiss", "-lblas", "-llapack", "-lpthread")
	if out, err := exec.CommandContext(ctx, "g++", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile with g++, libhnswlib-dev and libfaiss-dev: %w: %.300s", err, out)
	}
	return bin, nil
}

func runVectors(ctx context.Context, opt options) ([]*report.Table, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := vectors.Options{Dir: opt.dir, Own: []string{self, serveVectors}, Threads: opt.threads, Queries: opt.queries, Runs: opt.runs, Least: opt.least,
		Seed: opt.seed, Texts: opt.texts, Indexes: opt.indexes, PerCluster: 100, Noise: 1, Small: smallVectors, Debian: opt.debian, ReplaceUpto: opt.replaceUpto, Progress: opt.say}
	opt.say("vectors: compile the peers")
	programs := filepath.Join(opt.dir, "bin")
	if err := os.Mkdir(programs, 0o700); err != nil {
		return nil, err
	}
	if v.Peers, v.Missing = buildPeers(ctx, programs); v.Missing != nil {
		opt.say("vectors: %v", v.Missing)
	}
	var out []*report.Table
	for _, v.Of = range opt.of {
		for i, dim := range opt.dims {
			for _, n := range opt.sizes {
				if i > 0 && n != widest(opt.sizes) {
					continue
				}
				tables, err := vectors.Run(ctx, v, n, dim)
				if errors.Is(err, points.ErrTooFew) {
					missing := report.NewTargets(fmt.Sprintf("Vectors (%s): %d of %d dimensions", v.Of, n, dim))
					missing.Failed("queries/s at recall@10 0.98", "", err)
					tables, err = []*report.Table{missing}, nil
				}
				if err != nil {
					return nil, fmt.Errorf("%d %s of %d dimensions: %w", n, v.Of, dim, err)
				}
				out = append(out, tables...)
			}
		}
	}
	return out, nil
}

// widest is the size at which further dimensions are measured: the largest up
// to 100,000, else the smallest.
func widest(sizes []int) int {
	best, least := 0, sizes[0]
	for _, n := range sizes {
		least = min(least, n)
		if n <= 100_000 {
			best = max(best, n)
		}
	}
	if best == 0 {
		return least
	}
	return best
}
