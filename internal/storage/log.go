package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// faults remembers what went wrong in the background and whether the database
// is halted. Safe for concurrent use.
type faults struct {
	halted  atomic.Pointer[haltError] // the fatal error, once
	stopped chan struct{}             // closed after halted is set
	count   atomic.Uint64
	failed  chan error // the last error of background work that nobody took

	mu    sync.Mutex
	first error

	onFault func(error)
	stalls  stalls
}

// stalls counts how often writes waited for flushes or compactions, and for how long.
type stalls struct {
	mu     sync.Mutex
	begun  uint64
	waited time.Duration // without the one that is under way
	since  time.Time     // it began then; zero: none is under way
}

func (s *stalls) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun++
	s.since = time.Now()
}

func (s *stalls) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.waited += time.Since(s.since)
		s.since = time.Time{}
	}
}

// sum counts the one that is under way up to now: on a disk that hangs it is the only one.
func (s *stalls) sum() (begun uint64, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waited = s.waited; !s.since.IsZero() {
		waited += time.Since(s.since)
	}
	return s.begun, waited
}

// haltError is what the logger panics with.
type haltError struct{ cause error }

func (e *haltError) Error() string   { return fmt.Sprintf("%v: %v", ErrHalted, e.cause) }
func (e *haltError) Unwrap() []error { return []error{ErrHalted, e.cause} }

func (f *faults) report(err error) {
	f.count.Add(1)
	f.mu.Lock()
	if f.first == nil {
		f.first = err
	}
	f.mu.Unlock()
	if f.onFault != nil {
		f.onFault(err)
	}
}

func (f *faults) earliest() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.halted.Load(); f.first == nil && h != nil {
		return h
	}
	return f.first
}

// halt stops writes for good; the first cause stays.
func (f *faults) halt(cause error) *haltError {
	e := &haltError{cause: cause}
	if f.halted.CompareAndSwap(nil, e) {
		f.report(e)
		close(f.stopped)
		return e
	}
	return f.halted.Load()
}

func (f *faults) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			err = typed("background", "work", err)
			f.report(err)
			select {
			case f.failed <- err:
			default:
			}
		},
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			f.report(fmt.Errorf("read %s: %w: %w", i.Path, ErrDamaged, i.Details))
		},
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { f.stalls.begin() },
		WriteStallEnd:   f.stalls.end,
	}
}

// logger hands Pebble's lines on. Pebble narrates all it does as "info", which
// is "debug" for us.
type logger struct {
	to     *slog.Logger
	faults *faults
}

func (l *logger) Infof(format string, args ...any) {
	l.to.Debug("pebble", "msg", fmt.Sprintf(format, args...))
}

func (l *logger) Errorf(format string, args ...any) {
	l.to.Error("pebble", "msg", fmt.Sprintf(format, args...))
}

// Fatalf does not return and does not end the process: see the package comment.
func (l *logger) Fatalf(format string, args ...any) {
	e := l.faults.halt(fatalCause(format, args))
	l.to.Error("pebble halted", "err", e)
	if onPebbleGoroutine() {
		runtime.Goexit()
	}
	panic(e)
}

// fatalCause keeps the errors among args reachable for errors.Is.
func fatalCause(format string, args []any) error {
	causes := []error{errors.New(fmt.Sprintf(format, args...))}
	for _, a := range args {
		if err, ok := a.(error); ok {
			causes = append(causes, err)
		}
	}
	return errors.Join(causes...)
}

const pebblePath = "github.com/cockroachdb/pebble/"

// onPebbleGoroutine reports whether Pebble started this goroutine, in which case
// no caller of ours could recover a panic.
func onPebbleGoroutine() bool {
	pcs := make([]uintptr, 256)
	for n := runtime.Callers(1, pcs); n == len(pcs); n = runtime.Callers(1, pcs) {
		pcs = make([]uintptr, 2*len(pcs))
	}
	frames := runtime.CallersFrames(pcs)
	root := ""
	for {
		f, more := frames.Next()
		if f.Function != "" && f.Function != "runtime.goexit" {
			root = f.Function
		}
		if !more {
			return strings.HasPrefix(root, pebblePath)
		}
	}
}
