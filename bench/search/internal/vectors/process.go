package vectors

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

// process is a running index.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// reply is what a process answers to a command.
type reply struct {
	Seconds     float64 `json:"seconds"`
	Bytes       int64   `json:"bytes"`
	Queries     int     `json:"queries"`
	Error       string  `json:"error"`
	Unsupported bool    `json:"unsupported"`
}

// errUnsupported wraps what an index says it cannot do.
var errUnsupported = errors.New("not supported")

// start runs a program with arguments until ctx ends or stop is called.
func start(ctx context.Context, name string, command []string) (*process, error) {
	p := &process{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
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

// ask sends one command and reads its answer.
func (p *process) ask(format string, args ...any) (reply, error) {
	var r reply
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
		return r, fmt.Errorf("%s: %w: %s", p.name, errUnsupported, r.Error)
	case r.Error != "":
		return r, fmt.Errorf("%s: %s: %s", p.name, line, r.Error)
	}
	return r, nil
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	if err := errors.Join(p.in.Close(), p.cmd.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}
