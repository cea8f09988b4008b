package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/program"
	"mneme/client"
	"mneme/internal/node"
)

// profiles runs a node inside this process and writes a CPU profile of each
// path. The client's own work is in the profiles too.
func (b *bench) profiles(ctx context.Context) error {
	if err := os.MkdirAll(b.opt.profile, 0o755); err != nil {
		return err
	}
	cfg := node.Config{DataDir: b.newDir(), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"}
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	if err := errors.Join(b.profilePaths(ctx, n), n.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return b.profiled("start", len(b.texts.Texts), func() error {
		n, err := node.Open(ctx, cfg)
		if err != nil {
			return err
		}
		return n.Close(context.WithoutCancel(ctx))
	})
}

// profilePaths profiles what a running node does.
func (b *bench) profilePaths(ctx context.Context, n *node.Node) error {
	c, done, err := load.NewClient(n.HTTPAddr())
	if err != nil {
		return err
	}
	defer done()
	count := len(b.texts.Texts)
	queries, questions := b.texts.Queries(b.opt.searches), b.texts.Questions(b.opt.searches, questionWords, true)
	for _, step := range []struct {
		name string
		n    int
		do   func() error
	}{
		{"capture-rest", b.opt.captures, func() error {
			return load.Batches(ctx, c, 4, b.opt.captures, load.BatchSize, func(i int) string { return b.texts.Sized(i, load.TextSize) })
		}},
		{"capture-nats", b.opt.requests, func() error { return load.Requests(ctx, n.NATSURL(), b.texts, 0, b.opt.requests) }},
		{"load", count, func() error {
			return load.Talks(ctx, c, 4, count, load.BatchSize, func(i int) string { return b.texts.Texts[i] })
		}},
		{"search-after-load", len(queries), func() error { _, _, err := searches(ctx, c, queries); return err }},
		{"settle", 1, func() error { return program.Sleep(ctx, min(b.opt.settle, 2*time.Minute)) }},
		{"search", len(queries), func() error { _, _, err := searches(ctx, c, queries); return err }},
		{"questions", len(questions), func() error { _, _, err := searches(ctx, c, questions); return err }},
		{"rebuild", count, func() error { return rebuildOnce(ctx, c) }},
	} {
		if err := b.profiled(step.name, step.n, step.do); err != nil {
			return fmt.Errorf("profile %s: %w", step.name, err)
		}
	}
	return nil
}

func rebuildOnce(ctx context.Context, c *client.Client) error {
	_, err := rebuildByOperator(ctx, c)
	return err
}

func (b *bench) profiled(name string, n int, do func() error) (err error) {
	f, err := os.Create(filepath.Join(b.opt.profile, name+".pprof"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	began := time.Now()
	err = do()
	pprof.StopCPUProfile()
	took := time.Since(began)
	b.say("%s: %d in %.2f s, %.0f/s, profile in %s", name, n, took.Seconds(), float64(n)/took.Seconds(), f.Name())
	return err
}
