package main

import (
	"context"
	"io"
	"log/slog"
)

// newLogger writes structured logs to w. Level and format are checked values.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if l.UnmarshalText([]byte(level)) != nil {
		l = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: l}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if format == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	return slog.New(&quiet{Handler: h, all: l <= slog.LevelDebug})
}

// quiet drops what libraries say about their own doings below a warning, unless
// everything is wanted. Their records carry the attribute "logger".
type quiet struct {
	slog.Handler
	all     bool
	library bool // the attributes added so far name a library
}

func (q *quiet) Handle(ctx context.Context, r slog.Record) error {
	library := q.library
	r.Attrs(func(a slog.Attr) bool {
		library = library || a.Key == libraryKey
		return !library
	})
	if library && !q.all && r.Level < slog.LevelWarn {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// libraryKey is the attribute by which records of a library are known.
const libraryKey = "logger"

func (q *quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := &quiet{Handler: q.Handler.WithAttrs(attrs), all: q.all, library: q.library}
	for _, a := range attrs {
		out.library = out.library || a.Key == libraryKey
	}
	return out
}

func (q *quiet) WithGroup(name string) slog.Handler {
	return &quiet{Handler: q.Handler.WithGroup(name), all: q.all, library: q.library}
}
