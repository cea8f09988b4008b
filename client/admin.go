package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// Process is what concerns the process of the node that is asked.
type Process struct{ c *Client }

// Process returns what concerns the process of the node.
func (c *Client) Process() Process { return Process{c} }

// AcceptClock has the node go by its clock as it stands, after it refused writes
// because the clock went forward further than real time.
func (p Process) AcceptClock(ctx context.Context) (memory.ClockReport, error) {
	var report memory.ClockReport
	err := p.c.do(ctx, call{method: "POST", path: []string{"admin", "clock", "accept"}, header: WriteOptions{}.header(p.c.opts.Agent), write: true}, &report)
	return report, err
}

// Aside lists what repairs have set aside on the node.
func (p Process) Aside(ctx context.Context) (memory.AsideList, error) {
	return get[memory.AsideList](ctx, p.c, "admin", "aside")
}

// RemoveAside removes what repairs have set aside before a time. It may be asked for again.
func (p Process) RemoveAside(ctx context.Context, req memory.RemoveAside) (memory.AsideRemoval, error) {
	var removal memory.AsideRemoval
	err := p.c.do(ctx, call{method: "POST", path: []string{"admin", "aside", "remove"}, body: req, write: true}, &removal)
	return removal, err
}

// Reload has the node read its settings, certificates and token again.
func (p Process) Reload(ctx context.Context) (memory.ReloadReport, error) {
	var report memory.ReloadReport
	err := p.c.do(ctx, call{method: "POST", path: []string{"admin", "reload"}, write: true}, &report)
	return report, err
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
