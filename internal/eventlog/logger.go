package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// serverLog passes what nats-server logs on to slog and keeps what callers have
// to know: the fatal error that ended it, and that it cannot write.
type serverLog struct {
	log   *slog.Logger
	fatal chan string // holds the first fatal message

	mu      sync.Mutex
	write   error  // the first failed write
	last    string // the last warning, as detail for damage
	clients lineLimit
	failed  lineLimit
	node    lineLimit
	routes  lineLimit
	others  lineLimit
}

// Lines of the server that are passed on in a minute. What callers can cause by
// the thousand, without being admitted, must not fill a disk nor hide what the
// server says about itself.
const (
	failedLines = 10 // about connections that failed before they were admitted
	clientLines = 20 // about clients, and as many about the node's own connections
	routeLines  = 4  // about servers that are away, each of which is tried four times a second
	otherLines  = 200
	maxLine     = 512 // bytes
)

func newServerLog(log *slog.Logger) *serverLog {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &serverLog{log: log.With("component", "nats"), fatal: make(chan string, 1),
		clients: lineLimit{most: clientLines}, failed: lineLimit{most: failedLines}, node: lineLimit{most: clientLines},
		routes: lineLimit{most: routeLines}, others: lineLimit{most: otherLines}}
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
	l.print(slog.LevelWarn, s)
}

func (l *serverLog) Errorf(format string, v ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, v...))
	if fault := writeFault(s); fault != nil && !aboutConnection(s) {
		l.mu.Lock()
		if l.write == nil {
			l.write = fault
		}
		l.mu.Unlock()
		l.log.Error(s)
		return
	}
	if strangers(s) {
		l.printAs(&l.failed, slog.LevelWarn, s)
		return
	}
	l.print(slog.LevelError, s)
}

// connectionFault tells what a connection of the node met. Callers can cause it, by
// sending faster than the node reads, so it takes no lines from the server's own.
func (l *serverLog) connectionFault(err error) {
	l.printAs(&l.node, slog.LevelWarn, fmt.Sprintf("connection of the node: %v", err))
}

// saidAtStart are lines that servers of a cluster warn with while the others start, too.
// A route that cannot be reached is said again, at a later attempt.
var saidAtStart = []string{
	"Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
	"Error trying to connect to route (attempt 1)",
}

// aboutConnection reports whether the server says a line about a client or another server.
// They have a part in its words, by the name of a user or of a certificate, and could
// otherwise have the server say that it cannot write.
func aboutConnection(s string) bool {
	return strings.Contains(s, " - cid:") || strings.Contains(s, " - rid:")
}

// strangers reports whether the server says a line about a connection that failed before it
// was admitted, or that the other side broke off: anybody can cause that who reaches a port.
func strangers(s string) bool {
	return aboutConnection(s) && (strings.Contains(s, "handshake error: ") || strings.HasSuffix(s, "connection reset by peer"))
}

// print passes a line of the server on.
func (l *serverLog) print(level slog.Level, s string) {
	if slices.ContainsFunc(saidAtStart, func(line string) bool { return strings.Contains(s, line) }) {
		l.log.Debug(s)
		return
	}
	kind := &l.others
	switch {
	case strings.Contains(s, " - cid:"):
		kind = &l.clients
	case strings.HasPrefix(s, "Error trying to connect to route"):
		kind = &l.routes
	}
	l.printAs(kind, level, s)
}

// printAs passes a line on, clipped, as long as there are not too many of its kind.
func (l *serverLog) printAs(kind *lineLimit, level slog.Level, s string) {
	l.mu.Lock()
	ok, leftOut := kind.next(time.Now())
	l.mu.Unlock()
	if leftOut > 0 {
		l.log.Warn("lines of the NATS server were left out", "lines", leftOut)
	}
	if !ok {
		return
	}
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "…"
	}
	l.log.Log(context.Background(), level, s)
}

// lineLimit passes the first lines of each minute.
type lineLimit struct {
	most    int
	since   time.Time
	lines   int
	leftOut int
}

// next reports whether the next line is passed, and, once a minute, how many were
// left out in the one before.
func (l *lineLimit) next(now time.Time) (ok bool, leftOut int) {
	if now.Sub(l.since) >= time.Minute {
		leftOut = l.leftOut
		l.since, l.lines, l.leftOut = now, 0, 0
	}
	if l.lines++; l.lines > l.most {
		l.leftOut++
		return false, leftOut
	}
	return true, leftOut
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
