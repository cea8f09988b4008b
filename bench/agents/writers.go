package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

	"mneme/bench/internal/load"
)

// fate is what became of what two writers wrote at once.
type fate struct {
	acknowledged, failed, lost int
	unreadable                 error // the memory cannot be read any more
}

func (f fate) String() string {
	s := fmt.Sprintf("%d entities acknowledged, %d calls failed", f.acknowledged, f.failed)
	if f.unreadable != nil {
		s += "; the memory cannot be read any more: " + f.unreadable.Error()
	}
	return s
}

// twoWriters has two processes write into one memory at once, as two agents of one user do, and
// counts what was acknowledged and is not there afterwards.
func (b *bench) twoWriters(ctx context.Context) error {
	const ns = "two-writers"
	if _, err := b.call(ctx, "namespace", "create", ns); err != nil {
		return err
	}
	ours, err := b.fateOf(ctx, func() *exec.Cmd { return b.oursOn(ctx, ns) })
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "two-writers.jsonl")
	theirs, err := b.fateOf(ctx, func() *exec.Cmd { return b.officialOn(ctx, file) })
	if err != nil {
		return err
	}
	b.table.AtMost("lost of two writers at once", 0, float64(ours.lost), "", ours.String())
	b.table.Info("… the official server", float64(theirs.lost), "", theirs.String())
	return nil
}

func (b *bench) fateOf(ctx context.Context, server func() *exec.Cmd) (f fate, err error) {
	var sessions []session
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.Close())
		}
	}()
	for range 2 {
		s, err := connect(ctx, server())
		if err != nil {
			return f, err
		}
		sessions = append(sessions, s)
	}
	var mu sync.Mutex
	var acknowledged []string
	err = load.Parallel(ctx, len(sessions), len(sessions), func(ctx context.Context, who int) error {
		for i := range b.opt.writes {
			name := fmt.Sprintf("writer-%d-%04d", who, i)
			_, err := sessions[who].call(ctx, "create_entities", map[string]any{"entities": []any{map[string]any{"name": name, "entityType": "note", "observations": []string{"written"}}}}, nil)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			if err != nil {
				f.failed++
			} else {
				acknowledged = append(acknowledged, name)
			}
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	f.acknowledged = len(acknowledged)
	reader, err := connect(ctx, server())
	if err != nil {
		return f, err
	}
	sessions = append(sessions, reader)
	var all knowledge
	_, f.unreadable = reader.call(ctx, "read_graph", map[string]any{}, &all)
	there := map[string]bool{}
	for _, name := range all.names() {
		there[name] = true
	}
	for _, name := range acknowledged {
		if !there[name] {
			f.lost++
		}
	}
	return f, nil
}
