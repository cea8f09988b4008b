package client

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"mneme/memory"
)

// Backups reads what a node's backup is made of.
type Backups struct{ c *Client }

// Backups returns the verbs of backups.
func (c *Client) Backups() Backups { return Backups{c} }

// Log writes the backup of the log to w: all of it, or what follows the marks of an earlier
// backup, one for each shard, separated by commas. An error means that what was written is
// not a backup; it is CodeConflict where the node's log does not go on from the marks. The
// report's Bytes is what was written; the rest is what the node sent as headers or trailers,
// or nothing. progress may be nil and counts bytes.
func (b Backups) Log(ctx context.Context, w io.Writer, after string, progress func(memory.Progress)) (memory.BackupReport, error) {
	rc := call{method: "GET", path: []string{"admin", "backup", "log"}}
	if after != "" {
		rc.query = url.Values{"after": {after}}
	}
	return b.read(ctx, w, progress, rc)
}

// Keys writes the backup of the keyring to w, under the same rules. With master it holds the
// master key too and is as secret as the memories themselves; without, it opens only beside
// the same master.key.
func (b Backups) Keys(ctx context.Context, w io.Writer, master bool, progress func(memory.Progress)) (memory.BackupReport, error) {
	return b.read(ctx, w, progress, call{method: "POST", path: []string{"admin", "backup", "keys"}, query: url.Values{"master": {strconv.FormatBool(master)}}})
}

// Destroyed lists the ids of all keys that were destroyed.
func (b Backups) Destroyed(ctx context.Context) (memory.DestroyedKeys, error) {
	return get[memory.DestroyedKeys](ctx, b.c, "admin", "backup", "destroyed")
}

// Names of the headers or trailers of a backup stream.
const (
	headerPosition = "Mneme-Position"
	headerFrames   = "Mneme-Frames"
	headerEvents   = "Mneme-Events"
	headerHash     = "Mneme-State-Hash"
	headerPipeline = "Mneme-Pipeline-Version"
)

func (b Backups) read(ctx context.Context, w io.Writer, progress func(memory.Progress), rc call) (memory.BackupReport, error) {
	rc.accept = "application/octet-stream"
	part := rc.path[len(rc.path)-1]
	resp, err := b.c.send(ctx, rc)
	if err != nil {
		return memory.BackupReport{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	counted := &countingWriter{w: w, progress: progress, total: uint64(max(resp.ContentLength, 0))}
	n, err := io.Copy(counted, resp.Body)
	if counted.err != nil {
		return memory.BackupReport{}, fmt.Errorf("write backup of the %s: %w", part, counted.err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return memory.BackupReport{}, ended(ctx, "backup of the "+part+" is incomplete")
		}
		return memory.BackupReport{}, memory.Errorf(memory.CodeUnavailable, "backup of the %s broke off after %d bytes: %w", part, n, err).
			WithHint("what was written is not a backup; run it again")
	}
	find := func(key string) string {
		if v := resp.Trailer.Get(key); v != "" {
			return v
		}
		return resp.Header.Get(key)
	}
	return memory.BackupReport{Position: find(headerPosition), Frames: number(find(headerFrames)),
		Events: number(find(headerEvents)), Bytes: n, StateHash: find(headerHash), PipelineVersion: uint32(number(find(headerPipeline)))}, nil
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// countingWriter reports bytes as they are written and keeps the writer's own
// error apart from the network's.
type countingWriter struct {
	w           io.Writer
	progress    func(memory.Progress)
	done, total uint64
	err         error
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.done += uint64(n)
	c.err = err
	if c.progress != nil {
		c.progress(memory.Progress{Done: c.done, Total: c.total, Unit: "bytes"})
	}
	return n, err
}
