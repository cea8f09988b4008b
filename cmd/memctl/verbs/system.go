package verbs

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"mneme/client"
	"mneme/cmd/memctl/offline"
	"mneme/cmd/memctl/program"
	"mneme/internal/monitor"
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
	configDir  func() (string, error)     // the user's configuration directory
	home       func() (string, error)     // nil = there is none
	workDir    func() (string, error)     // where memctl was called; nil = nowhere
	program    func() (string, bool)      // memctl itself, and whether a shell finds it by its name; nil = not known
	again      func(args []string) error  // starts memctl once more, to go on by itself; nil = not here
	userName   func() string              // the operating system's user, or ""
	connect    client.Dial                // to the address that nobody named
	listeners  func() ([]listener, error) // who listens on this machine
	version    memory.VersionInfo
	http       *http.Client // nil = the client's own
	process    process
	// offline gives who opens data directories and places of backups, or has another program
	// go on; nil = nobody does
	offline func() (offline.Work, error)
}

// process is what memctl changes of its own process.
type process struct {
	outlivePipes func() // a write to a pipe that nobody reads fails, and does not end the program
	serveOne     func() // it does with what one client needs, that calls and waits
}

func osSystem(work func() (offline.Work, error)) system {
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
		program:   program.Self,
		again:     again,
		userName: func() string {
			u, err := user.Current()
			if err != nil {
				return os.Getenv("USER")
			}
			return u.Username
		},
		connect:   new(net.Dialer).DialContext,
		listeners: readListeners,
		version:   program.Version(),
		process:   process{outlivePipes: func() { signal.Ignore(syscall.SIGPIPE) }, serveOne: func() { serveOne(os.Getenv) }},
		offline:   work,
	}
}

// work returns who opens data directories and places of backups. Where that is another
// program, it goes on from the beginning: nothing may have been asked or printed yet.
func (s system) work() (offline.Work, error) {
	if s.offline == nil {
		return nil, memory.Errorf(memory.CodeInternal, "work on a data directory is not available in this build").
			WithHint("start the node and leave out --data-dir")
	}
	return s.offline()
}

func homeOf(sys system) (string, error) {
	if sys.home == nil {
		return "", os.ErrNotExist
	}
	home, err := sys.home()
	if err != nil {
		return "", homeless("the folder of the user", err)
	}
	return home, nil
}

// again starts this program beside this process, and does not wait for it.
func again(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home // not where the agent works, which may be removed
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// oneGCPercent has the heap of a server of one client grow to about 16 MB between collections. A
// call leaves some 100 KB behind in the decoders of messages, and holds next to nothing: collected at
// twice what lives, that would be every few dozen calls, and a fifth of each.
const oneGCPercent = 400

// serveOne has goroutines share one processor, as they only hand on what one client says and what the
// node answers: to wake another one for each step takes longer than the step. What the user sets stays.
func serveOne(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(oneGCPercent)
	}
	if getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	_ = monitor.Yield() // without it calls take longer, and nothing else
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
