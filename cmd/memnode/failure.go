package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"mneme/internal/node"
)

// Exit codes of memnode.
const (
	exitFinished = 0
	exitOther    = 1
	exitUsage    = 2 // usage, configuration, read-only directory
	exitInUse    = 5 // data directory in use
	exitNetwork  = 6 // address taken, log unreachable
	exitDamaged  = 7 // damaged, newer format, lost key
)

// failure is why memnode ends, for people.
type failure struct {
	code    int
	message string
	hint    string // what to do; may be empty
	err     error  // underneath; may be nil
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.err }

// misuse is a mistake in flags, environment or file.
func misuse(hint, format string, args ...any) *failure {
	return &failure{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
}

// exitCode of a kind of node.StartError.
func exitCode(kind string) int {
	switch kind {
	case node.StartUsage, node.StartReadOnly:
		return exitUsage
	case node.StartInUse:
		return exitInUse
	case node.StartAddress, node.StartUnreachable:
		return exitNetwork
	case node.StartDamaged, node.StartNewer, node.StartLostKey:
		return exitDamaged
	}
	return exitOther
}

// asFailure gives any error an exit code and words.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var start *node.StartError
	if !errors.As(err, &start) {
		return &failure{code: exitOther, message: err.Error(), err: err}
	}
	f = &failure{code: exitCode(start.Kind), message: start.Message, hint: start.Hint, err: err}
	if f.hint == "" && start.Kind == node.StartUnreachable {
		f.hint = "--nats-url says where the log is; --nats-monitor http://HOST:8222, one for each server, proves that it syncs; --dev does without the proof"
	}
	if start.Kind == node.StartAddress && notTaken(start.Err) {
		f.message = fmt.Sprintf("cannot listen on %s: %v", start.Addr, plainNetError(start.Err))
		if impossible := new(net.AddrError); errors.As(start.Err, &impossible) {
			f.code = exitUsage
		}
		if f.hint == "" {
			f.hint = "choose another --http-addr or --nats-addr"
		}
	}
	return f
}

// notTaken recognises the failures to listen that another port would not mend,
// or not for the reason that somebody else has it.
func notTaken(err error) bool {
	var dns *net.DNSError
	var addr *net.AddrError
	return errors.As(err, &dns) || errors.As(err, &addr) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// plainNetError drops "listen tcp 1.2.3.4:80:", which the message says already.
func plainNetError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// report prints one line, and one more with the hint.
func report(w io.Writer, f *failure) {
	_, _ = fmt.Fprintln(w, "memnode: "+oneLine(f.message)) // there is nowhere left to report to
	if f.hint != "" {
		_, _ = fmt.Fprintln(w, "hint: "+oneLine(f.hint))
	}
}

// oneLine keeps a message on its line and control characters off the terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
