package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"

	"mneme/internal/node"
)

// logging is where the program's log goes, and what it holds of its last lines.
type logging struct {
	*slog.Logger
	level  *slog.LevelVar
	recent *recent
}

// newLogging writes structured logs to w. Level and format are checked values.
func newLogging(w io.Writer, level, format string) logging {
	l := logging{level: &slog.LevelVar{}, recent: &recent{}}
	l.setLevel(level)
	opts := &slog.HandlerOptions{Level: l.level}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if format == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	kept := slog.NewTextHandler(l.recent, &slog.HandlerOptions{Level: l.level, ReplaceAttr: passedOn})
	l.Logger = slog.New(&quiet{Handler: slog.NewMultiHandler(h, kept), level: l.level})
	return l
}

// setLevel takes a checked value.
func (l logging) setLevel(level string) {
	var to slog.Level
	if to.UnmarshalText([]byte(level)) != nil {
		to = slog.LevelInfo
	}
	l.level.Set(to)
}

// passedOn takes out of a line what must not leave the machine with it.
func passedOn(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		if a.Key == node.QueryKey {
			return slog.String(a.Key, "[left out]")
		}
		return slog.String(a.Key, redactURL(v))
	case error:
		return slog.String(a.Key, redactURL(v.Error()))
	}
	return a
}

// Bounds of recent.
const (
	recentLines = 2000
	recentBytes = 1 << 20
)

// recent keeps the last lines that were written to it. It is safe for concurrent use.
type recent struct {
	mu    sync.Mutex
	lines [][]byte
	size  int
}

// Write takes one line.
func (r *recent) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, bytes.Clone(line))
	r.size += len(line)
	for len(r.lines) > recentLines || r.size > recentBytes {
		r.size -= len(r.lines[0])
		r.lines = r.lines[1:]
	}
	return len(line), nil
}

// text is all of them.
func (r *recent) text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Join(r.lines, nil)
}

// quiet drops what libraries say about their own doings below a warning, unless
// everything is wanted. Their records carry the attribute "logger".
type quiet struct {
	slog.Handler
	level   slog.Leveler
	library bool // the attributes added so far name a library
}

func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	library := q.library
	r.Attrs(func(a slog.Attr) bool {
		library = library || a.Key == libraryKey
		return !library
	})
	if library && r.Level < slog.LevelWarn && q.level.Level() > slog.LevelDebug {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// libraryKey is the attribute by which records of a library are known.
const libraryKey = "logger"

func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := &quiet{Handler: q.Handler.WithAttrs(attrs), level: q.level, library: q.library}
	for _, a := range attrs {
		out.library = out.library || a.Key == libraryKey
	}
	return out
}

func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{Handler: q.Handler.WithGroup(name), level: q.level, library: q.library}
}
