package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"mneme/cmd/memctl/direct"
	"mneme/cmd/memctl/offline"
	"mneme/cmd/memctl/program"
)

// memctl returns the arguments for memctl, where that is what this program is asked to be: by
// the name under which it was called, or by memctl.
func memctl(args []string) ([]string, bool) {
	switch {
	case len(args) == 0:
		return nil, false
	case strings.TrimSuffix(filepath.Base(args[0]), ".exe") == "memctl":
		return args[1:], true
	case len(args) > 1 && args[1] == program.Ctl:
		return args[2:], true
	}
	return nil, false
}

// openDirectly is what memctl's verbs find in this program: it opens data directories itself.
func openDirectly() (offline.Work, error) {
	return direct.New(func() (direct.Node, error) { return direct.OpenNode(os.Getenv) },
		direct.Env{Getenv: os.Getenv, Home: os.UserHomeDir, Now: time.Now, Version: program.Version().Version}), nil
}
