package verbs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"mneme/client"
	"mneme/cmd/memctl/program"
	"mneme/memory"
)

// When a node is started by a verb that needs one.
const (
	startAuto   = "auto"
	startAlways = "always"
	startNever  = "never"
)

const (
	// startedLingers is how long a started node stays when nobody uses it.
	startedLingers = 10 * time.Minute
	startTimeout   = time.Minute
	// startCoolDown is how long a hook has no node started after one had.
	startCoolDown = time.Minute
	lookAgain     = 20 * time.Millisecond
	maxStartLog   = 1 << 20 // bytes of its log, of which the latest are kept
)

// startable is what starts the installed memnode where nothing listens at the address, nil if
// when does not allow that.
func startable(a *app, when string) (*starter, error) {
	switch when {
	case startAuto, startAlways:
	case startNever:
		return nil, nil
	default:
		return nil, memory.Errorf(memory.CodeInvalid, "--start is %q", when).WithHint("it is auto, always or never")
	}
	rem, err := a.remembered()
	if err != nil {
		return nil, err
	}
	whole, err := wholeAddr(a.addr(rem))
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(whole)
	if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) || when == startAuto && whole != client.DefaultAddr {
		if when == startAlways {
			return nil, memory.Errorf(memory.CodeInvalid, "no node can be started at %s", whole).WithHint("a node is started at one loopback address over http, such as %s", client.DefaultAddr)
		}
		return nil, nil
	}
	s := &starter{configDir: a.sys.configDir, addr: u.Host, reach: a.sys.dialer(a.addr(rem))}
	if s.reach == nil {
		s.reach = new(net.Dialer).DialContext
	}
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// starter starts a node when it is dialled and is not there.
type starter struct {
	configDir func() (string, error)
	addr      string // host:port
	reach     client.Dial

	refused atomic.Bool // nothing listened; of notice
}

// hold has a node be there from now on, and stay for as long as the agent is connected. The
// function that it returns ends that.
func (s *starter) hold(ctx context.Context, log *slog.Logger) func() {
	ctx, cancel := context.WithCancel(ctx)
	var held sync.WaitGroup
	held.Go(func() {
		c, err := s.dial(ctx, "tcp", s.addr)
		if err != nil && ctx.Err() == nil {
			log.Warn("no node yet: " + err.Error())
		}
		for again := time.NewTicker(startedLingers / 2); ; {
			if c != nil {
				_ = c.Close()
			}
			select {
			case <-ctx.Done():
				again.Stop()
				return
			case <-again.C: // who stopped the node meanwhile wants it to be so until the next call
				c, _ = s.reach(ctx, "tcp", s.addr)
			}
		}
	})
	return func() { cancel(); held.Wait() }
}

// notice is a dial that starts nothing and notes whether nothing listened.
func (s *starter) notice(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := s.reach(ctx, network, addr)
	if errors.Is(err, syscall.ECONNREFUSED) {
		s.refused.Store(true)
	}
	return c, err
}

// wake has another process start a node, by spawn, where notice found none: unless one is being
// started, or was lately.
func (s *starter) wake(now time.Time, spawn func() error) (woken bool, err error) {
	if !s.refused.Load() {
		return false, nil
	}
	dir, err := s.dir()
	if err != nil {
		return false, err
	}
	one := flock.New(filepath.Join(dir, "start.lock"), flock.SetPermissions(0o600))
	if free, err := one.TryLock(); err != nil || !free {
		return false, err
	}
	defer func() { _ = one.Close() }()
	tried := filepath.Join(dir, "start.tried")
	if info, err := os.Stat(tried); err == nil && now.Sub(info.ModTime()).Abs() < startCoolDown {
		return false, nil
	}
	if _, err := program.Find("memnode"); err != nil {
		return false, err
	}
	if err := writeConfig(tried, nil); err != nil {
		return false, err
	}
	if err := os.Chtimes(tried, now, now); err != nil {
		return false, err
	}
	return true, spawn()
}

func (s *starter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := s.reach(ctx, network, addr)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return c, err
	}
	if failed := s.start(ctx); failed != nil {
		return nil, fmt.Errorf("%w, and none could be started: %w", err, failed)
	}
	return s.reach(ctx, network, addr)
}

// start starts a node and waits until it listens, unless another program or call does so.
func (s *starter) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := s.dir()
	if err != nil {
		return err
	}
	one := flock.New(filepath.Join(dir, "start.lock"), flock.SetPermissions(0o600))
	if _, err := one.TryLockContext(ctx, lookAgain); err != nil {
		return fmt.Errorf("another program starts one: %w", err)
	}
	defer func() { _ = one.Close() }()
	if s.listens(ctx) {
		return nil
	}
	path, err := program.Find("memnode")
	if err != nil {
		return err
	}
	log, err := openStartLog(filepath.Join(dir, "memnode.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, "--http-addr", s.addr, "--linger", startedLingers.String())
	cmd.Stdout, cmd.Stderr = log, log
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home // not where the agent works, which may be removed
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !s.listens(ctx) {
		select {
		case err := <-ended:
			return fmt.Errorf("%s ended (%v): %s says why", path, err, log.Name())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen yet: %s says what it does", path, log.Name())
		case <-time.After(lookAgain):
		}
	}
	return nil
}

func (s *starter) listens(ctx context.Context) bool {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.addr)
	return err == nil && c.Close() == nil
}

// dir is where the user's files of Mneme lie.
func (s *starter) dir() (string, error) {
	dir, err := s.configDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "mneme")
	return dir, os.MkdirAll(dir, 0o700)
}

// openStartLog opens what a started node prints to.
func openStartLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxStartLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
