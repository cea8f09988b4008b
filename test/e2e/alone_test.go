//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// link puts a program under a name into a folder of its own, and returns the two.
func link(t *testing.T, program, name string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, name)
	b, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(path, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// calls runs a program with a path to look for others in.
func calls(t *testing.T, program, path string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(environment(t.TempDir()), "PATH="+path)
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errOut.String(), state: cmd.ProcessState.String()}
}

// memctl holds no node: what opens data directories and backups is memnode's, which it finds
// beside itself or in the path. Help, completion and mistakes need none.
func TestMemctlAlone(t *testing.T) {
	dir, alone := link(t, built.memctl, "memctl")
	there, _ := link(t, built.memnode, "memnode")
	_, other := link(t, built.memnode, "memctl")
	nothing := filepath.Join(dir, "nothing")
	for _, args := range [][]string{{"doctor", "--data-dir", nothing}, {"backup", "list", "--from", nothing}, {"restore", "--data-dir", nothing, "--log", "l", "--keys", "k"}, {"nats-config"}} {
		if e := calls(t, alone, "", args...); e.code != 6 || !strings.Contains(e.err, "memnode is neither beside memctl nor in PATH\nhint: memctl holds no node") || e.out != "" {
			t.Errorf("%v without memnode: %d, %s%s", args, e.code, e.out, e.err)
		}
	}
	if e := calls(t, alone, "", "doctor", "--data-dir", nothing, "--json"); e.code != 6 || !strings.HasPrefix(e.err, `{"error":{"code":"unavailable",`) {
		t.Errorf("with --json: %d, %s", e.code, e.err)
	}
	for _, args := range [][]string{{"backup", "drill", "--help"}, {"__complete", "backup", ""}, {"restore"}} {
		one, both := calls(t, alone, "", args...), calls(t, built.memctl, "", args...)
		if one.code != both.code || one.out != both.out || one.err != both.err {
			t.Errorf("%v needs memnode: %d, %s%s", args, one.code, one.out, one.err)
		}
	}
	for _, how := range []struct{ program, path string }{{alone, there}, {built.memctl, ""}, {other, ""}} {
		if e := calls(t, how.program, how.path, "doctor", "--data-dir", nothing); e.code != 2 || !strings.HasPrefix(e.err, "memctl: "+nothing+" is not a data directory\n") {
			t.Errorf("%s with %q: %d, %s", how.program, how.path, e.code, e.err)
		}
		if e := calls(t, how.program, how.path, "backup", "list", "--from", nothing, "--json"); e.code != 0 || !strings.HasPrefix(e.out, `{"place":`) {
			t.Errorf("%s with %q: %d, %s%s", how.program, how.path, e.code, e.out, e.err)
		}
	}
	if e := calls(t, other, "", "version"); !strings.HasPrefix(e.out, "memctl ") {
		t.Errorf("memnode that is called memctl says %s", e.out)
	}
}

// A signal to memctl reaches the program that goes on in its place, which ends as memctl does.
func TestMemctlThatWentOnIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "keys")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, []byte("a log"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built.memctl, "restore", "--data-dir", filepath.Join(dir, "new"), "--log", log, "--keys", pipe)
	var errOut bytes.Buffer
	cmd.Stderr, cmd.Env = &errOut, environment(dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	// It is there once the pipe has a reader.
	var writer *os.File
	for end := time.Now().Add(patience); ; {
		var err error
		writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENXIO) || time.Now().After(end) {
			_ = cmd.Process.Kill()
			t.Fatal(err)
		}
		select {
		case err := <-done:
			t.Fatalf("it ended: %v, %s", err, errOut.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	defer writer.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case <-done:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("it goes on after a signal: %s", errOut.String())
	}
	if code := cmd.ProcessState.ExitCode(); code < 1 || !strings.HasPrefix(errOut.String(), "memctl: ") {
		t.Errorf("%s, %s", cmd.ProcessState, errOut.String())
	}
}
