// Package peer has the C and C++ programs that the benchmark compares with, and talks with
// a program that runs one index: a command a line, and one line of JSON for each.
package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is a running index. It is for one goroutine at a time.
type Process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// Reply is what a process answers to a command. Which fields are filled in depends on the
// command.
type Reply struct {
	Seconds     float64      `json:"seconds"`
	Bytes       int64        `json:"bytes"`
	Queries     int          `json:"queries"`
	Hits        [][2]float64 `json:"hits,omitempty"` // document and score
	Error       string       `json:"error"`
	Unsupported bool         `json:"unsupported"`
}

// ErrUnsupported wraps what an index says it cannot do.
var ErrUnsupported = errors.New("not supported")

// Start runs a program with arguments until ctx ends or Stop is called. name is for errors.
func Start(ctx context.Context, name string, command []string) (*Process, error) {
	p := &Process{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Ask sends one command and reads its answer. It fails with ErrUnsupported where the index
// has no such command.
func (p *Process) Ask(format string, args ...any) (Reply, error) {
	var r Reply
	line := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return r, fmt.Errorf("%s: %s: %w", p.name, line, err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("%s: %s: %w", p.name, line, err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, fmt.Errorf("%s: %s: answer %q: %w", p.name, line, answer, err)
	}
	switch {
	case r.Unsupported:
		return r, fmt.Errorf("%s: %w: %s", p.name, ErrUnsupported, r.Error)
	case r.Error != "":
		return r, fmt.Errorf("%s: %s: %s", p.name, line, r.Error)
	}
	return r, nil
}

// Stop ends the process and waits for it.
func (p *Process) Stop() error {
	if err := errors.Join(p.in.Close(), p.cmd.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}
