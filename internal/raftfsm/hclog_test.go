package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func TestHclogBridge(t *testing.T) {
	for level, want := range map[slog.Level]hclog.Level{
		slog.LevelDebug: hclog.Debug, slog.LevelInfo: hclog.Info, slog.LevelWarn: hclog.Warn, slog.LevelError: hclog.Error,
	} {
		var buf bytes.Buffer
		out := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: level}))
		var l hclog.Logger = newHclogBridge(out, "raft")
		l = l.With("peer", "n2").Named("sub")
		l.SetLevel(hclog.Off) // levels are slog's
		if l.Name() != "raft.sub" || l.GetLevel() != want || len(l.ImpliedArgs()) != 2 || l.ResetNamed("x").Name() != "x" {
			t.Fatalf("%s %v %v", l.Name(), l.GetLevel(), l.ImpliedArgs())
		}
		l.Trace("m-trace")
		l.Debug("m-debug")
		l.Info("m-info", "n", hclog.Fmt("<%d>", 7), "bad", hclog.Format{})
		l.Warn("m-warn")
		l.Error("m-error")
		l.Log(hclog.Off, "m-off")
		for msg, enabled := range map[string]bool{
			"DEBUG msg=m-trace": l.IsTrace(), "DEBUG msg=m-debug": l.IsDebug(), "INFO msg=m-info": l.IsInfo(),
			"WARN msg=m-warn": l.IsWarn(), "ERROR msg=m-error": l.IsError(),
		} {
			if strings.Contains(buf.String(), msg) != enabled {
				t.Errorf("at %v: %q, enabled %v, in %s", level, msg, enabled, buf.String())
			}
		}
		if strings.Contains(buf.String(), "m-off") || (l.IsInfo() && !strings.Contains(buf.String(), "peer=n2 n=<7>")) {
			t.Error(buf.String())
		}
		l.StandardLogger(nil).Print("m-std")
		if strings.Contains(buf.String(), "m-std") != l.IsInfo() {
			t.Error("standard logger", buf.String())
		}
		if l.StandardWriter(nil) == nil {
			t.Error("no writer")
		}
	}
}

// What a healthy group says at a stop, at a start and to a new replica is no warning;
// the same words about anything else are.
func TestHealthyGroupsWarned(t *testing.T) {
	closed := &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	for _, c := range []struct {
		msg   string
		args  []any
		quiet bool
	}{
		{"heartbeat timeout reached, starting election", nil, true},
		{"appendEntries rejected, sending older logs", []any{"peer", "n2", "next", 7}, true},
		{"failed to get log", []any{"index", 7, "error", fmt.Errorf("read: %w", raft.ErrLogNotFound)}, true},
		{"failed to get log", []any{"index", 7, "error", errors.New("damaged")}, false},
		{"failed to decode incoming command", []any{"error", closed}, true},
		{"failed to decode incoming command", []any{"error", errors.New("unknown rpc type 9")}, false},
		{"failed to send snapshot to", []any{"error", closed}, false},
	} {
		var buf bytes.Buffer
		newHclogBridge(slog.New(slog.NewTextHandler(&buf, nil)), "raft").Error(c.msg, c.args...)
		if (buf.Len() == 0) != c.quiet {
			t.Errorf("%s %v: logged %q", c.msg, c.args, buf.String())
		}
	}
}
