package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"mneme/internal/node"
	"mneme/internal/otlp"
)

// opened is what starting a node gave.
type opened struct {
	node instance
	err  error
}

// serve runs a node until it is told to stop or ends by itself.
func serve(ctx context.Context, sys system, s *settings, args []string) error {
	r := newRunning(sys, s)
	cfg := s.nodeConfig(sys)
	cfg.Logger, cfg.Process = r.log.Logger, r.process()
	var err error
	if cfg.MasterKey, err = node.MasterKeySource(s.String("master-key"), sys.getenv); err != nil {
		return explain(sys, s, args, err)
	}
	log := cfg.Logger
	if cfg.AuthToken != "" && cfg.Auth == "off" {
		log.Warn("MNEME_AUTH_TOKEN is set but auth is off, so nobody is asked for it; --auth token changes that")
	}
	if sys.version.OS == "windows" {
		log.Warn("on Windows the modes of files keep nobody out: see to it that the access list of the data directory does. The vector engine coder and SIGHUP are not there, and only a node on its own is meant to run here")
	}
	if sys.limitMemory != nil {
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		sys.limitMemory(limited, log)
	}
	if opt := s.traces(sys); opt != nil {
		opt.Logger = log
		traces, err := otlp.Open(*opt)
		if err != nil {
			return badTraces(err)
		}
		defer func() {
			if err := traces.Close(context.WithoutCancel(ctx)); err != nil {
				log.Warn("the exporter of traces did not stop cleanly", "err", err)
			}
		}()
		cfg.Traces = traces
	}
	log.Info("starting", "version", sys.version.Version, "data", cfg.DataDir)
	for again := false; ; again = true {
		err := serveOnce(ctx, sys, s, args, cfg, again)
		if errors.Is(err, node.ErrNewProcess) {
			log.Warn("this process makes room for a new one")
			log.Error("no new process began", "err", sys.replace())
			return err
		}
		if !errors.Is(err, node.ErrRestart) {
			return err
		}
	}
}

// serveOnce is serve for one life of the node: it ends with node.ErrRestart where the
// node needs another one.
func serveOnce(ctx context.Context, sys system, s *settings, args []string, cfg node.Config, again bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := cfg.Logger
	starting := start(ctx, sys, cfg)
	var r opened
	select {
	case r = <-starting:
	case sig := <-sys.signals:
		told := sys.now()
		log.Info("stopping before the node is ready", "signal", sig.String())
		cancel()
		return abandon(sys, cfg, starting, told)
	}
	if r.err != nil {
		logStack(log, r.err)
		return explain(sys, s, args, r.err)
	}
	if again {
		log.Info("started again")
	} else {
		printReady(sys, s, r.node)
	}
	return wait(ctx, sys, cfg, r.node)
}

// start opens the node beside the caller, who meanwhile listens for signals.
func start(ctx context.Context, sys system, cfg node.Config) <-chan opened {
	out := make(chan opened, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				out <- opened{err: panicked(p)}
			}
		}()
		n, err := openFreed(ctx, sys, cfg)
		out <- opened{n, err}
	}()
	return out
}

const (
	// freedWithin is how long a start waits for the data directory: whoever restarts a
	// node starts the new one while the former one still ends.
	freedWithin = 5 * time.Second
	freedEvery  = 50 * time.Millisecond
)

// openFreed opens the node, and waits for a data directory that another process has.
func openFreed(ctx context.Context, sys system, cfg node.Config) (instance, error) {
	tooLong := time.After(sys.freedWithin)
	for first := true; ; first = false {
		n, err := sys.open(ctx, cfg)
		var e *node.StartError
		if !errors.As(err, &e) || e.Kind != node.StartInUse {
			return n, err
		}
		if first && sys.freedWithin > 0 {
			cfg.Logger.Info("waiting for whoever has it to end: "+e.Message, "at_most", sys.freedWithin)
		}
		select {
		case <-tooLong:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(freedEvery):
		}
	}
}

// abandon waits for a start that was cancelled. A second signal does not wait.
func abandon(sys system, cfg node.Config, starting <-chan opened, told time.Time) error {
	for {
		select {
		case r := <-starting:
			switch {
			case r.err == nil:
				return stop(sys, cfg, r.node, told)
			case errors.Is(r.err, context.Canceled):
				return nil
			}
			return asFailure(r.err)
		case <-sys.signals:
			if another(sys, told) {
				return stoppedAtOnce()
			}
		}
	}
}

// oneSignal is how long after a signal the next ones are taken for the same. What
// signals a process and its group, as timeout(1) does, signals the process twice.
const oneSignal = 200 * time.Millisecond

// another reports whether a signal that came now is not the one that came at told.
func another(sys system, told time.Time) bool { return sys.now().Sub(told) >= oneSignal }

// wait returns when the node has ended.
func wait(ctx context.Context, sys system, cfg node.Config, n instance) error {
	for {
		select {
		case <-sys.hangups:
			reload(ctx, cfg, n)
		case <-n.Done():
			return endedItself(sys, cfg, n)
		case sig := <-sys.signals:
			told := sys.now()
			cfg.Logger.Info("draining", "signal", sig.String(), "timeout", cfg.DrainTimeout)
			return stop(sys, cfg, n, told)
		}
	}
}

// endedItself says why a node ended that nobody has stopped.
func endedItself(sys system, cfg node.Config, n instance) error {
	why := n.Err()
	if errors.Is(why, node.ErrIdle) {
		cfg.Logger.Info("ending: "+why.Error(), "linger", cfg.Linger)
		return stop(sys, cfg, n, time.Time{})
	}
	if why == nil {
		why = errors.New("no reason was given")
	}
	f := asFailure(why)
	f = &failure{code: f.code, message: "the node stopped by itself: " + f.message, hint: f.hint, err: why}
	if err := stop(sys, cfg, n, time.Time{}); err != nil {
		cfg.Logger.Warn("the rest of the node did not stop cleanly", "err", err)
	}
	return f
}

// stop drains and closes the node; a signal meanwhile leaves it where it is, unless it
// is the one that came at told (zero: none did).
func stop(sys system, cfg node.Config, n instance, told time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	closing := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				closing <- panicked(p)
			}
		}()
		closing <- n.Close(ctx)
	}()
	for {
		select {
		case err := <-closing:
			if err != nil {
				logStack(cfg.Logger, err)
				f := asFailure(err)
				return &failure{code: f.code, message: "stopping: " + f.message, hint: f.hint, err: err}
			}
			cfg.Logger.Info("stopped")
			return nil
		case <-sys.signals:
			if another(sys, told) {
				return stoppedAtOnce()
			}
		}
	}
}

func stoppedAtOnce() error {
	return &failure{code: exitOther, message: "stopped at once by a second signal", hint: "what was acknowledged is kept; the next start takes a little longer"}
}

// logStack logs where a panic happened, for those who look for it.
func logStack(log *slog.Logger, err error) {
	var f *failure
	if errors.As(err, &f) && f.err != nil {
		log.Debug("internal error", "message", f.message, "stack", f.err.Error())
	}
}

// explain adds to a failed start what only the command line knows: for what is
// taken, the whole command with something free.
func explain(sys system, s *settings, args []string, err error) error {
	f := asFailure(err)
	var e *node.StartError
	if !errors.As(err, &e) {
		return f
	}
	taken := map[string]string{}
	switch {
	case e.Kind == node.StartAddress && e.Addr != "" && e.Addr == s.String("peer-addr"):
		f.hint = "stop what listens there, or give this node another --peer-addr, which the others need in their --join"
	case e.Kind == node.StartAddress && e.Addr != "" && e.Addr == s.String("route-addr"):
		f.hint = "stop what listens there, or give this node another --route-addr"
	case e.Kind == node.StartAddress && !notTaken(e.Err):
		taken = freeAddresses(sys, s, e.Addr)
		f.hint = fmt.Sprintf("try: %s", commandLine(sys, args, taken))
	case e.Kind == node.StartInUse && s.String("node-id") != "":
		f.hint = fmt.Sprintf("stop the one that has it: most likely this node, %s, runs already; another node has a --node-id, a --data-dir, a certificate and addresses of its own: memctl cluster join --help", s.String("node-id"))
	case e.Kind == node.StartInUse:
		taken = freeAddresses(sys, s, "")
		taken["data-dir"] = freeDir(s.String("data-dir"))
		f.hint = fmt.Sprintf("stop the one that has it, or start another one beside it: %s", commandLine(sys, args, taken))
	case e.Try != nil:
		for _, flag := range e.Try {
			taken[strings.TrimPrefix(flag, "--")] = "" // it is given anew, at the end
		}
		f.hint = fmt.Sprintf("%s; try: %s %s", f.hint, commandLine(sys, args, taken), strings.Join(e.Try, " "))
	}
	return f
}

// freeDir proposes a directory beside dir that does not exist.
func freeDir(dir string) string {
	for i := 2; ; i++ {
		other := fmt.Sprintf("%s-%d", dir, i)
		if _, err := os.Lstat(other); err != nil {
			return other
		}
	}
}
