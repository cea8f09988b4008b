package eventlog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog passes what nats-server logs on to slog and keeps what callers have
// to know: the fatal error that ended it, and that it cannot write.
type serverLog struct {
	log   *slog.Logger
	fatal chan string // holds the first fatal message

	mu    sync.Mutex
	write error  // the first failed write
	last  string // the last warning, as detail for damage
}

func newServerLog(log *slog.Logger) *serverLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &serverLog{log: log.With("component", "nats"), fatal: make(chan string, 1)}
}

// Noticef logs at debug level: the server's notices are about itself.
func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *serverLog) Warnf(format string, v ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, v...))
	l.mu.Lock()
	l.last = s
	l.mu.Unlock()
	l.log.Warn(s)
}

func (l *serverLog) Errorf(format string, v ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, v...))
	if fault := writeFault(s); fault != nil {
		l.mu.Lock()
		if l.write == nil {
			l.write = fault
		}
		l.mu.Unlock()
	}
	l.log.Error(s)
}

// Fatalf does not end the process: StartServer returns the message.
func (l *serverLog) Fatalf(format string, v ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, v...))
	select {
	case l.fatal <- s:
	default:
	}
	l.log.Error(s)
}

// writeFault recognises the messages by which the server says that it stopped
// storing; it has no other way of telling an embedder.
func writeFault(s string) error {
	switch {
	case strings.Contains(s, "no space left on device"), strings.Contains(s, "JetStream out of"),
		strings.Contains(s, "disk quota exceeded"):
		return fmt.Errorf("%w: %s", ErrNoSpace, s)
	case strings.Contains(s, "JetStream failed to store a msg"):
		return errors.New(s)
	}
	return nil
}

func (l *serverLog) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write
}

func (l *serverLog) lastWarning() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
