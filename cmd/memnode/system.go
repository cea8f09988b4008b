package main

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mneme/cmd/memctl/program"
	"mneme/internal/node"
	"mneme/memory"
)

// system is the world around memnode.
type system struct {
	out, err io.Writer
	environ  []string // NAME=value
	home     func() (string, error)
	program  string // how memnode was called
	memctl   string // how memctl is called here
	signals  <-chan os.Signal
	hangups  <-chan os.Signal // each asks for the settings to be read again
	now      func() time.Time
	isFree   func(addr string) bool // nobody listens there
	open     func(context.Context, node.Config) (instance, error)
	version  memory.VersionInfo
	// replace makes this process another one of the same program; it returns where it cannot.
	replace func() error
	// freedWithin is how long a data directory is waited for that another process has.
	freedWithin time.Duration
	// limitMemory keeps the memory of the process below the limit of its container until
	// the context ends; nil does nothing.
	limitMemory func(context.Context, *slog.Logger)
}

// instance is a running node; *node.Node is one.
type instance interface {
	HTTPURL() string
	NATSURL() string
	Done() <-chan struct{}
	Err() error
	Close(context.Context) error
	Reload(context.Context) (memory.ReloadReport, error)
}

func osSystem(signals, hangups <-chan os.Signal) system {
	memnode, memctl := commands(os.Args[0])
	return system{
		out: os.Stdout, err: os.Stderr,
		environ: os.Environ(),
		home:    os.UserHomeDir,
		program: memnode, memctl: memctl,
		signals: signals,
		hangups: hangups,
		now:     time.Now,
		isFree:  isFree,
		open:    openNode,
		version: program.Version(),
		replace: replaceProcess,

		freedWithin: freedWithin,
		limitMemory: limitMemory,
	}
}

// openNode keeps a failed *node.Node from becoming an instance that is not nil.
func openNode(ctx context.Context, cfg node.Config) (instance, error) {
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// commands returns how the two programs are called, given this one's path.
func commands(executable string) (memnode, memctl string) {
	if madeByGoRun(executable) {
		return "go run ./cmd/memnode", "go run ./cmd/memctl"
	}
	return "memnode", "memctl"
}

// madeByGoRun recognises where `go run` puts programs: in a work directory
// (go-build123/b001/exe) or, since Go 1.24, in the build cache (<hash>-d).
func madeByGoRun(executable string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(executable), "/") {
		if strings.HasPrefix(part, "go-build") {
			return true
		}
		if hash, ok := strings.CutSuffix(part, "-d"); ok && len(hash) == 64 {
			if _, err := hex.DecodeString(hash); err == nil {
				return true
			}
		}
	}
	return false
}

func isFree(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
