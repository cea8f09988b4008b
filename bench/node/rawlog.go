package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mneme/bench/internal/stats"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/memory"
)

// readFrames returns the frames that a stopped node wrote after the status was
// taken, out of its own log.
func readFrames(ctx context.Context, dataDir string, before memory.Status) (frames [][]byte, err error) {
	if len(before.Shards) == 0 {
		return nil, errors.New("the node's status names no shard")
	}
	err = withStream(ctx, filepath.Join(dataDir, "nats"), eventlog.StreamConfig{ClusterID: before.ClusterID, MustExist: true},
		func(s *eventlog.JetStream) error {
			return s.Read(ctx, before.Shards[0].Log.Last+1, 0, func(m eventlog.Message) error {
				frames = append(frames, slices.Clone(m.Data))
				return nil
			})
		})
	if err != nil {
		return nil, fmt.Errorf("read the node's log: %w", err)
	}
	if len(frames) == 0 {
		return nil, errors.New("read the node's log: nothing was written")
	}
	return frames, nil
}

// rawAppend publishes frames to a log of its own, one in flight, each synced
// before it is acknowledged, and returns how long that took.
func rawAppend(ctx context.Context, dir string, frames [][]byte) (took time.Duration, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = withStream(ctx, dir, eventlog.StreamConfig{ClusterID: "bench"}, func(s *eventlog.JetStream) error {
		if err := s.Append(ctx, []byte("warm"), 0); err != nil {
			return err
		}
		began := time.Now()
		for i, frame := range frames {
			if err := s.Append(ctx, frame, uint64(i+1)); err != nil {
				return err
			}
		}
		took = time.Since(began)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("publish raw: %w", err)
	}
	return took, nil
}

// single splits frames into at most limit frames of one event each, which is
// what a publisher without batches would send.
func single(frames [][]byte, limit int) ([][]byte, error) {
	var out [][]byte
	for _, b := range frames {
		frame, err := events.DecodeFrame(b)
		if err != nil {
			return nil, fmt.Errorf("split frames: %w", err)
		}
		for _, e := range frame.Events {
			if len(out) == limit {
				return out, nil
			}
			one := frame
			one.Events = [][]byte{e}
			out = append(out, one.Encode())
		}
	}
	return out, nil
}

// withStream runs do with the log in dir, on an embedded server of its own.
func withStream(ctx context.Context, dir string, cfg eventlog.StreamConfig, do func(*eventlog.JetStream) error) (err error) {
	server, err := eventlog.StartServer(ctx, eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Shutdown(ctx)) }()
	if !server.SyncAlways() {
		return errors.New("the server does not sync before it acknowledges")
	}
	nc, err := server.NodeConn(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	stream, err := eventlog.OpenStream(ctx, nc, cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(stream), stream.Close())
}

// fsyncTime is the median time of writing and syncing 4 KiB in dir.
func fsyncTime(dir string) (d time.Duration, err error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	var took []time.Duration
	for range 100 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return stats.Percentile(took, 50), nil
}
