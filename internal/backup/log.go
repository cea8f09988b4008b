package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Log is a backup of the log: files that go on from each other, the first one from the
// beginning.
type Log struct {
	Name  string // for messages
	Files []File
}

// File is one file of a log, which may be opened more than once.
type File struct {
	Name string
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Read checks the files while it hands out their messages; those of one shard come in
// order. It returns what was read, by shard. Errors as of ReadLog, and those of Open.
func (l Log) Read(ctx context.Context, message func(shard uint16, seq uint64, data []byte) error) ([]Section, error) {
	var whole []Section
	for _, f := range l.Files {
		found, err := f.read(ctx, message)
		if err == nil {
			whole, err = goOn(whole, found)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if len(whole) == 0 {
		return nil, fmt.Errorf("%s: no file: %w", l.Name, ErrNotIntact)
	}
	return whole, nil
}

func (f File) read(ctx context.Context, message func(shard uint16, seq uint64, data []byte) error) ([]Section, error) {
	r, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	found, err := ReadLog(r, func(shard uint16, seq uint64, data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return message(shard, seq, data)
	})
	return found, errors.Join(err, r.Close())
}

// goOn puts the sections of the next file behind those of the files before it.
func goOn(whole, next []Section) ([]Section, error) {
	if whole == nil {
		for _, s := range next {
			if begin := (Mark{Shard: s.After.Shard}); !s.After.meets(begin) {
				return nil, fmt.Errorf("it goes on from message %d of shard %d, and what is before it is missing: %w", s.After.Seq, s.After.Shard, ErrNotIntact)
			}
		}
		return next, nil
	}
	if len(next) != len(whole) {
		return nil, fmt.Errorf("it has %d shards, those before it have %d: %w", len(next), len(whole), ErrNotIntact)
	}
	for i, s := range next {
		w := &whole[i]
		if s.Cluster != w.Cluster {
			return nil, fmt.Errorf("it is of the cluster %s, those before it are of %s: %w", s.Cluster, w.Cluster, ErrNotIntact)
		}
		if !s.After.meets(w.End) {
			return nil, fmt.Errorf("it goes on from message %d of shard %d, those before it end at %d or are another log: %w", s.After.Seq, s.After.Shard, w.End.Seq, ErrNotIntact)
		}
		w.End, w.Frames = s.End, w.Frames+s.Frames
	}
	return whole, nil
}
