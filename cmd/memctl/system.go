package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// system is the world around memctl.
type system struct {
	in         io.Reader
	out, err   io.Writer
	getenv     func(string) string
	isTerminal func(stream any) bool // of in, out or err
	width      func() int            // columns of the terminal at out; 0 = unknown
	now        func() time.Time
	sleep      func(context.Context, time.Duration) error
	configDir  func() (string, error) // the user's configuration directory
	home       func() (string, error) // nil = there is none
	workDir    func() (string, error) // where memctl was called; nil = nowhere
	program    func() (string, bool)  // memctl itself, and whether a shell finds it by its name; nil = not known
	userName   func() string          // the operating system's user, or ""
	version    memory.VersionInfo
	http       *http.Client // nil = the client's own
	// offline opens what works on data directories; nil = not in this build
	offline func() (Offline, error)
}

// Offline does on a stopped node's data directory what the node itself does
// while it runs. progress is never nil.
type Offline interface {
	Doctor(ctx context.Context, dir string) (memory.DoctorReport, error)
	VerifyLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.VerifyReport, error)
	RepairLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.RepairReport, error)
	Backup(ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error)
	Restore(ctx context.Context, dir, logPath, keysPath string, until node.Until, progress func(memory.Progress)) (memory.RebuildReport, error)
	// BackupSource opens a stopped node as what a backup into places is made from.
	BackupSource(ctx context.Context, dir string, progress func(memory.Progress), use func(backup.Source) error) error
	RestoreFrom(ctx context.Context, dir string, src node.RestoreSource, progress func(memory.Progress)) (memory.RestoreReport, error)
	Drill(ctx context.Context, scratch string, from backup.Chosen, progress func(memory.Progress)) (memory.BackupDrillReport, error)
	Recover(ctx context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error)
	Init(ctx context.Context, dir, node, certs string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error)
	Aside(dir string) (memory.AsideList, error)
	RemoveAside(ctx context.Context, dir string, req memory.RemoveAside) (memory.AsideRemoval, error)
	// Reach tries peer addresses as a node that is not started yet.
	Reach(ctx context.Context, certs, node string, addrs []string) ([]error, error)
}

func osSystem(offline func() (Offline, error)) system {
	return system{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv,
		isTerminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
		width: func() int {
			w, _, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
		now:       time.Now,
		sleep:     sleep,
		configDir: os.UserConfigDir,
		home:      os.UserHomeDir,
		workDir:   os.Getwd,
		program:   program,
		userName: func() string {
			u, err := user.Current()
			if err != nil {
				return os.Getenv("USER")
			}
			return u.Username
		},
		version: node.BuildVersion(),
		offline: offline,
	}
}

// program is the file that runs, by the name by which a shell finds it if it does: that one
// stays when another version is installed.
func program() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "memctl", false
	}
	if found, err := exec.LookPath("memctl"); err == nil {
		a, errA := os.Stat(self)
		b, errB := os.Stat(found)
		if found, err = filepath.Abs(found); err == nil && errA == nil && errB == nil && os.SameFile(a, b) {
			return found, true
		}
	}
	return self, false
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ctxReader lets a read from standard input end with the context. The blocked
// read itself cannot be stopped; its goroutine ends with the input or with the
// program.
type ctxReader struct {
	ctx     context.Context
	r       io.Reader
	pending chan ctxRead // a read that was given up
}

type ctxRead struct {
	b   []byte
	err error
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if c.pending == nil {
		done := make(chan ctxRead, 1)
		buf := make([]byte, len(p))
		go func() {
			n, err := c.r.Read(buf)
			done <- ctxRead{buf[:n], err}
		}()
		c.pending = done
	}
	select {
	case <-c.ctx.Done():
		return 0, memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(c.ctx.Err())
	case r := <-c.pending:
		n := copy(p, r.b)
		c.pending = nil
		if n < len(r.b) { // a shorter p than the one before: keep the rest
			rest := make(chan ctxRead, 1)
			rest <- ctxRead{r.b[n:], r.err}
			c.pending = rest
			return n, nil
		}
		return n, r.err
	}
}
