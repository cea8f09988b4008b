package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"mneme/memory"
)

// Status describes the node and its shards.
func (c *Client) Status(ctx context.Context) (memory.Status, error) {
	return get[memory.Status](ctx, c, "status")
}

// Version names the node's build.
func (c *Client) Version(ctx context.Context) (memory.VersionInfo, error) {
	return get[memory.VersionInfo](ctx, c, "admin", "version")
}

// Doctor runs the node's checks.
func (c *Client) Doctor(ctx context.Context) (memory.DoctorReport, error) {
	return get[memory.DoctorReport](ctx, c, "admin", "doctor")
}

// Rejected lists messages that were refused before the log.
func (c *Client) Rejected(ctx context.Context) (memory.RejectedList, error) {
	return get[memory.RejectedList](ctx, c, "admin", "rejected")
}

// Quarantine lists events that are in the log but could not be understood.
func (c *Client) Quarantine(ctx context.Context) (memory.QuarantineList, error) {
	return get[memory.QuarantineList](ctx, c, "admin", "quarantine")
}

// Rebuild builds the state again from the log. progress may be nil; it is
// called from this goroutine, in order.
func (c *Client) Rebuild(ctx context.Context, progress func(memory.Progress)) (memory.RebuildReport, error) {
	return long[memory.RebuildReport](ctx, c, progress, true, "admin", "rebuild")
}

// VerifyLog checks the whole log against its chain. A report with problems is
// not an error.
func (c *Client) VerifyLog(ctx context.Context, progress func(memory.Progress)) (memory.VerifyReport, error) {
	return long[memory.VerifyReport](ctx, c, progress, false, "admin", "log", "verify")
}

// RepairLog writes lost parts of the log again from the state.
func (c *Client) RepairLog(ctx context.Context, progress func(memory.Progress)) (memory.RepairReport, error) {
	return long[memory.RepairReport](ctx, c, progress, true, "admin", "log", "repair")
}

// AcceptClock has the node go by its clock as it stands, after it refused writes
// because the clock went forward further than real time.
func (c *Client) AcceptClock(ctx context.Context) (memory.ClockReport, error) {
	var report memory.ClockReport
	err := c.do(ctx, call{method: "POST", path: []string{"admin", "clock", "accept"}, header: WriteOptions{}.header(c.opts.Agent), write: true}, &report)
	return report, err
}

// BackupLog writes the backup of the log to w. An error means that what was
// written is not a backup. The report's Bytes is what was written; its other
// numbers are those the node sent as headers or trailers, or 0. progress may be
// nil and counts bytes.
func (c *Client) BackupLog(ctx context.Context, w io.Writer, progress func(memory.Progress)) (memory.BackupReport, error) {
	return c.backup(ctx, w, progress, call{method: "GET", path: []string{"admin", "backup", "log"}})
}

// BackupKeys writes the backup of the keyring to w, under the same rules. With
// master it holds the master key too and is as secret as the memories
// themselves; without, it opens only beside the same master.key.
func (c *Client) BackupKeys(ctx context.Context, w io.Writer, master bool, progress func(memory.Progress)) (memory.BackupReport, error) {
	return c.backup(ctx, w, progress, call{method: "POST", path: []string{"admin", "backup", "keys"}, query: url.Values{"master": {strconv.FormatBool(master)}}})
}

func get[R any](ctx context.Context, c *Client, path ...string) (R, error) {
	var out R
	err := c.do(ctx, call{method: "GET", path: path}, &out)
	return out, err
}

// long posts an action that answers with memory.ProgressLine documents. write
// says that it changes something.
func long[R any](ctx context.Context, c *Client, progress func(memory.Progress), write bool, path ...string) (R, error) {
	var none R
	rc := call{method: "POST", path: path, accept: "application/x-ndjson", write: write}
	resp, err := c.send(ctx, rc)
	if err != nil {
		return none, err
	}
	defer func() { _ = resp.Body.Close() }()
	dec := json.NewDecoder(resp.Body)
	for {
		var line memory.ProgressLine[R]
		if err := dec.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return none, c.lostAnswer(ctx, rc, fmt.Errorf("read progress: %w", err))
		}
		switch {
		case line.Error != nil:
			return none, line.Error.Err()
		case line.Result != nil:
			return *line.Result, nil
		case line.Progress != nil && progress != nil:
			progress(*line.Progress)
		}
	}
}

// Names of the headers or trailers of a backup stream.
const (
	headerPosition = "Mneme-Position"
	headerFrames   = "Mneme-Frames"
	headerEvents   = "Mneme-Events"
)

func (c *Client) backup(ctx context.Context, w io.Writer, progress func(memory.Progress), rc call) (memory.BackupReport, error) {
	rc.accept = "application/octet-stream"
	part := rc.path[len(rc.path)-1]
	resp, err := c.send(ctx, rc)
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
		Events: number(find(headerEvents)), Bytes: n}, nil
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
