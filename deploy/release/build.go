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
	"runtime"
	"strconv"
	"strings"
	"time"
)

// programs are what people run. In the image they are one file under two names: memnode is
// memctl where it is called so.
var programs = []string{"memnode", "memctl"}

// source is what a release is made from.
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
// wanted. Tags come along: the programs take their version from them.
func (src source) checkout(ctx context.Context, dir, work string, modified bool) (string, error) {
	if src.modified {
		if !modified {
			return "", errors.New("the working tree differs from the commit: commit first, or give -modified for what nobody can make again")
		}
		return dir, nil
	}
	clone := filepath.Join(work, "checkout")
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	_, err = output(ctx, ".", nil, "git", "clone", "--quiet", "--local", abs, clone)
	if err == nil {
		_, err = output(ctx, clone, nil, "git", "checkout", "--quiet", "--detach", src.commit)
	}
	return clone, err
}

// platform is what was built for one.
type platform struct {
	name, os, arch string
	built          []binary
}

// binary is a program as it was built.
type binary struct {
	name, path string
	info       *buildinfo.BuildInfo
}

// version is that of the programs.
func (p platform) version() string { return p.built[0].info.Main.Version }

func parsePlatform(name string) (platform, error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok || system == "" || arch == "" {
		return platform{}, fmt.Errorf("platform %q is not SYSTEM/ARCHITECTURE", name)
	}
	return platform{name: name, os: system, arch: arch}, nil
}

// buildImage makes the program of the image.
func buildImage(ctx context.Context, dir, work, name string) (platform, error) {
	p, err := parsePlatform(name)
	if err != nil {
		return p, err
	}
	if p.os != "linux" {
		return p, fmt.Errorf("platform %q of the image is not linux/ARCHITECTURE", name)
	}
	return p, p.build(ctx, dir, work, programs[0])
}

// buildArchive makes the programs of an archive.
func buildArchive(ctx context.Context, dir, work, name string) (platform, error) {
	p, err := parsePlatform(name)
	for _, program := range programs {
		if err == nil {
			err = p.build(ctx, dir, work, program)
		}
	}
	return p, err
}

// build makes one program.
func (p *platform) build(ctx context.Context, dir, work, program string) error {
	b := binary{name: program, path: filepath.Join(work, p.os+"-"+p.arch, program)}
	if p.os == "windows" {
		b.path += ".exe"
	}
	if _, err := output(ctx, dir, goEnv(p.os, p.arch), "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-ldflags=-s -w -buildid=", "-o", b.path, "./cmd/"+program); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	var err error
	b.info, err = buildinfo.ReadFile(b.path)
	p.built = append(p.built, b)
	return err
}

// goEnv has the variables under which programs are built. What the caller's environment
// says about building counts for nothing, or the same commit would give other bytes elsewhere.
func goEnv(system, arch string) []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"}
}

// writePages has the programs' tests write man pages and completions below a folder, which
// is as a prefix is: share/man and so on.
func writePages(ctx context.Context, dir, into string, src source) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return err
	}
	args := []string{"test", "-trimpath", "-vet=off", "-mod=readonly", "-count=1", "-run=^TestPages$"}
	args = append(args, "./cmd/memnode", "./cmd/memctl/verbs")
	env := append(goEnv(runtime.GOOS, runtime.GOARCH), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", src.made.Unix()), "TZ=UTC", "LC_ALL=C")
	_, err = output(ctx, dir, env, "go", append(args, "-args", "-pages="+into)...)
	return err
}

// output runs a command and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, &said)
	}
	return string(out), nil
}
