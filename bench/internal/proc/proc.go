// Package proc runs memnode as a real process for benchmarks.
//
// Its job: build the program, start it on loopback with ports of its own, wait
// until it says that it is ready, read its memory and processor time, end it
// by SIGTERM or by force.
//
// Invariants: a process that was started is waited for by Stop, Kill or the
// end of the context it was started with; nothing listens off loopback.
//
// Not its job: talking to the node (package client).
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Bounds on waiting.
const (
	readyWithin = 10 * time.Minute // with a million records and no saved graph
	stopWithin  = 5 * time.Minute
)

// Build builds memnode into dir, from the module that the working directory
// belongs to, and returns the program's path.
func Build(ctx context.Context, dir string) (string, error) {
	return build(ctx, dir, "memnode", nil)
}

// BuildRelease builds a program as a release has it: without cgo and without what only
// debuggers want.
func BuildRelease(ctx context.Context, dir, program string) (string, error) {
	return build(ctx, dir, program, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags=-s -w")
}

func build(ctx context.Context, dir, program string, env []string, flags ...string) (string, error) {
	bin := filepath.Join(dir, program)
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", bin}, flags...), "mneme/cmd/"+program)...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return bin, nil
}

// Node is a running memnode.
type Node struct {
	HTTP    string // URL of the REST interface
	NATS    string // URL for agents
	Ready   time.Duration
	dataDir string
	cmd     *exec.Cmd
	stderr  *tail
	done    chan struct{} // closed when the process has ended
	err     error         // how; valid once done is closed
}

// Start starts memnode on a data directory and returns once it is ready. The
// process is killed when ctx ends. args are further flags; it listens on any port of
// loopback unless they name one.
func Start(ctx context.Context, bin, dataDir string, args ...string) (*Node, error) {
	for _, name := range []string{"--nats-addr", "--http-addr"} {
		if !slices.Contains(args, name) {
			args = append([]string{name, "127.0.0.1:0"}, args...)
		}
	}
	args = append([]string{"--data-dir", dataDir}, args...)
	first := newFirstLine()
	n := &Node{dataDir: dataDir, cmd: exec.CommandContext(ctx, bin, args...), stderr: &tail{max: 4096}, done: make(chan struct{})}
	n.cmd.Stdout, n.cmd.Stderr = first, n.stderr
	n.cmd.WaitDelay = stopWithin
	n.cmd.Env = clean(os.Environ())
	began := time.Now()
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start memnode: %w", err)
	}
	go func() {
		n.err = n.cmd.Wait()
		close(n.done)
	}()
	timer := time.NewTimer(readyWithin)
	defer timer.Stop()
	select {
	case line := <-first.line:
		n.Ready = time.Since(began)
		if err := n.parseReady(line); err != nil {
			return nil, errors.Join(err, n.Kill())
		}
		return n, nil
	case <-n.done:
		return nil, fmt.Errorf("memnode ended before it was ready: %w: %s", n.ended(), n.stderr)
	case <-timer.C:
		return nil, errors.Join(fmt.Errorf("memnode was not ready within %v: %s", readyWithin, n.stderr), n.Kill())
	}
}

// clean leaves out the settings of memnode that the caller's environment holds.
func clean(env []string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, "MNEME_") {
			out = append(out, kv)
		}
	}
	return out
}

// parseReady reads "memnode ready http=… nats=… data=…".
func (n *Node) parseReady(line string) error {
	for _, field := range strings.Fields(line) {
		if v, ok := strings.CutPrefix(field, "http="); ok {
			n.HTTP = withScheme("http", v)
		}
		if v, ok := strings.CutPrefix(field, "nats="); ok {
			n.NATS = withScheme("nats", v)
		}
	}
	if !strings.HasPrefix(line, "memnode ready ") || n.HTTP == "" || n.NATS == "" {
		return fmt.Errorf("memnode said %q instead of where it listens", line)
	}
	return nil
}

func withScheme(scheme, addr string) string {
	if strings.Contains(addr, "://") {
		return addr
	}
	return scheme + "://" + addr
}

// ended says how the process ended; only after done.
func (n *Node) ended() error {
	if n.err != nil {
		return n.err
	}
	return errors.New("exit status 0")
}

// Ended is an error, with what the process said last, once it has ended by itself; nil
// while it runs.
func (n *Node) Ended() error {
	select {
	case <-n.done:
		return fmt.Errorf("memnode ended: %w: %s", n.ended(), n.stderr)
	default:
		return nil
	}
}

// Stop asks the process to drain (SIGTERM) and waits for it. A process that
// does not end in time is killed, which is an error, like a bad exit code.
func (n *Node) Stop() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stop memnode: %w", err), n.Kill())
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-n.done:
	case <-timer.C:
		return errors.Join(fmt.Errorf("memnode did not stop within %v: %s", stopWithin, n.stderr), n.Kill())
	}
	if n.err != nil {
		return fmt.Errorf("stop memnode: %w: %s", n.err, n.stderr)
	}
	return nil
}

// Kill ends the process by force and waits for it. It may follow Stop.
func (n *Node) Kill() error {
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill memnode: %w", err)
	}
	<-n.done
	return nil
}

// Pause makes the process stand still until Resume, as a machine does that is
// suspended: its connections stay open and say nothing.
func (n *Node) Pause() error { return n.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (n *Node) Resume() error { return n.cmd.Process.Signal(syscall.SIGCONT) }

// DataDir is the folder the node works in.
func (n *Node) DataDir() string { return n.dataDir }
