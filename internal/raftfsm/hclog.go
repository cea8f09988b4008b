package raftfsm

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// hclogBridge is an hclog.Logger that writes to slog. Trace and debug become
// debug; info, warn and error keep their level. Levels are slog's business, so
// SetLevel does nothing.
type hclogBridge struct {
	out  *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = (*hclogBridge)(nil)

func newHclogBridge(out *slog.Logger, name string) *hclogBridge {
	return &hclogBridge{out: out, name: name}
}

func toSlog(level hclog.Level) slog.Level {
	switch level {
	case hclog.Trace, hclog.Debug, hclog.NoLevel:
		return slog.LevelDebug
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Log implements hclog.Logger.
func (b *hclogBridge) Log(level hclog.Level, msg string, args ...any) {
	ctx, to := context.Background(), toSlog(level)
	if isNormal(msg, args) {
		to = slog.LevelDebug
	}
	if level == hclog.Off || !b.out.Enabled(ctx, to) {
		return
	}
	b.out.Log(ctx, to, msg, append([]any{"logger", b.name}, append(plainArgs(b.args), plainArgs(args)...)...)...)
}

// isNormal reports whether a line that Raft warns with is said by a healthy group.
func isNormal(msg string, args []any) bool {
	says := func(text string) bool {
		return slices.ContainsFunc(args, func(arg any) bool {
			err, ok := arg.(error)
			return ok && strings.Contains(err.Error(), text)
		})
	}
	switch {
	case strings.HasPrefix(msg, "heartbeat timeout reached"): // at every start of a single voter
		return true
	case strings.HasPrefix(msg, "appendEntries rejected, sending older logs"): // to a new replica, and one that was away
		return true
	case msg == "failed to get log": // it is in a snapshot, which is sent instead
		return says(raft.ErrLogNotFound.Error())
	case msg == "failed to decode incoming command": // at a stop, for each connection
		return says(net.ErrClosed.Error())
	}
	return false
}

// plainArgs turns hclog's wrappers into values that slog can print.
func plainArgs(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			if format, ok := f[0].(string); ok {
				out[i] = fmt.Sprintf(format, f[1:]...)
				continue
			}
		}
		out[i] = a
	}
	return out
}

func (b *hclogBridge) Trace(msg string, args ...any) { b.Log(hclog.Trace, msg, args...) }
func (b *hclogBridge) Debug(msg string, args ...any) { b.Log(hclog.Debug, msg, args...) }
func (b *hclogBridge) Info(msg string, args ...any)  { b.Log(hclog.Info, msg, args...) }
func (b *hclogBridge) Warn(msg string, args ...any)  { b.Log(hclog.Warn, msg, args...) }
func (b *hclogBridge) Error(msg string, args ...any) { b.Log(hclog.Error, msg, args...) }

func (b *hclogBridge) enabled(level slog.Level) bool {
	return b.out.Enabled(context.Background(), level)
}

func (b *hclogBridge) IsTrace() bool { return b.IsDebug() }
func (b *hclogBridge) IsDebug() bool { return b.enabled(slog.LevelDebug) }
func (b *hclogBridge) IsInfo() bool  { return b.enabled(slog.LevelInfo) }
func (b *hclogBridge) IsWarn() bool  { return b.enabled(slog.LevelWarn) }
func (b *hclogBridge) IsError() bool { return b.enabled(slog.LevelError) }

// ImpliedArgs implements hclog.Logger.
func (b *hclogBridge) ImpliedArgs() []any { return b.args }

// With implements hclog.Logger.
func (b *hclogBridge) With(args ...any) hclog.Logger {
	return &hclogBridge{out: b.out, name: b.name, args: append(b.args[:len(b.args):len(b.args)], args...)}
}

// Name implements hclog.Logger.
func (b *hclogBridge) Name() string { return b.name }

// Named implements hclog.Logger.
func (b *hclogBridge) Named(name string) hclog.Logger {
	if b.name != "" {
		name = b.name + "." + name
	}
	return b.ResetNamed(name)
}

// ResetNamed implements hclog.Logger.
func (b *hclogBridge) ResetNamed(name string) hclog.Logger {
	return &hclogBridge{out: b.out, name: name, args: b.args}
}

// SetLevel implements hclog.Logger and does nothing.
func (b *hclogBridge) SetLevel(hclog.Level) {}

// GetLevel implements hclog.Logger.
func (b *hclogBridge) GetLevel() hclog.Level {
	switch {
	case b.IsDebug():
		return hclog.Debug
	case b.IsInfo():
		return hclog.Info
	case b.IsWarn():
		return hclog.Warn
	default:
		return hclog.Error
	}
}

// StandardLogger implements hclog.Logger.
func (b *hclogBridge) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(b.out.Handler(), slog.LevelInfo)
}

// StandardWriter implements hclog.Logger.
func (b *hclogBridge) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	return b.StandardLogger(opts).Writer()
}
