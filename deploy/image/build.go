package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// programs of the image. They are one file under two names, for they have most of their
// code in common, and the built-in embedder's weights.
var programs = []string{"memnode", "memctl"}

// source is what the image is made from.
type source struct {
	commit   string
	made     time.Time // when the commit was
	modified bool      // the working tree differs from it
}

// describe asks git for the commit.
func describe(ctx context.Context, dir string) (source, error) {
	out, err := output(ctx, dir, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return source{}, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(out), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("time of the commit: %w", err)
	}
	changed, err := output(ctx, dir, nil, "git", "status", "--porcelain")
	return source{commit, time.Unix(at, 0).UTC(), changed != ""}, err
}

// checkout gives the folder that is built: a clone of the commit in work, which has what
// the commit has and nothing else, or the working tree itself where it differs and that is
// wanted.
func (src source) checkout(ctx context.Context, dir, work string, modified bool) (string, error) {
	if src.modified {
		if !modified {
			return "", errors.New("the working tree differs from the commit: commit first, or give -modified for an image of it that nobody can make again")
		}
		return dir, nil
	}
	clone := filepath.Join(work, "checkout")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	_, err = output(ctx, ".", nil, "git", "clone", "--quiet", "--local", "--no-tags", abs, clone)
	if err == nil {
		_, err = output(ctx, clone, nil, "git", "checkout", "--quiet", "--detach", src.commit)
	}
	return clone, err
}

// platform is what was built for one.
type platform struct {
	name, os, arch string
	binary         string // file
	info           *buildinfo.BuildInfo
}

// build makes the programs for one platform. What the caller's environment says about
// building counts for nothing, or the same commit would give other bytes elsewhere.
func build(ctx context.Context, dir, work, name string) (platform, error) {
	system, arch, ok := strings.Cut(name, "/")
	p := platform{name: name, os: system, arch: arch, binary: filepath.Join(work, system+"-"+arch, "mneme")}
	if !ok || system != "linux" {
		return p, fmt.Errorf("platform %q is not linux/ARCHITECTURE", name)
	}
	joined, err := join(dir, filepath.Join(work, "joined"))
	if err != nil {
		return p, err
	}
	env := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"}
	if _, err := output(ctx, dir, env, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-ldflags=-s -w -buildid=", "-overlay", joined, "-o", p.binary, "./"+joinedDir); err != nil {
		return p, err
	}
	p.info, err = buildinfo.ReadFile(p.binary)
	return p, err
}

// output runs a command and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &said)
	}
	return string(out), nil
}
