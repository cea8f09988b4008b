package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// faultyMemnode is memnode with a clock that can be put forward and back, and a disk that
// can be slow: the same sources, built with a standard library in which time.Now adds a
// number and fsync waits, as a file beside the data directory says (testdata/faulty). So
// they hold for all that runs in the process, NATS and Raft too, and memnode itself has
// nothing for it.
var faultyMemnode = sync.OnceValues(func() (string, error) {
	if _, err := memnode(); err != nil { // it makes the folder
		return "", err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	src, dir := filepath.Join(strings.TrimSpace(string(goroot)), "src"), filepath.Join(built, "faulty")
	command, err := filepath.Abs(filepath.Join("..", "..", "cmd", "memnode", "disturbed.go"))
	if err != nil {
		return "", err
	}
	replace := map[string]string{
		command: "memnode.go.txt",
		filepath.Join(src, "time", "disturbed.go"):    "time.go.txt",
		filepath.Join(src, "syscall", "disturbed.go"): "syscall.go.txt",
	}
	for to, from := range replace {
		if replace[to], err = filepath.Abs(filepath.Join("testdata", "faulty", from)); err != nil {
			return "", err
		}
	}
	for _, edit := range []struct{ file, after, insert string }{
		{"time/time.go", "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "\tsec += shift.Load()\n"},
		{"syscall/syscall_linux.go", "\truntime_entersyscall()\n", "\tdelay(trap)\n"},
	} {
		text, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(edit.file)))
		if err != nil {
			return "", err
		}
		if !strings.Contains(string(text), edit.after) {
			return "", fmt.Errorf("%s of this Go release has no %q", edit.file, edit.after)
		}
		edited := filepath.Join(dir, filepath.Base(edit.file))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(edited, []byte(strings.ReplaceAll(string(text), edit.after, edit.after+edit.insert)), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(src, filepath.FromSlash(edit.file))] = edited
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "memnode")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", asserted, "-overlay", list, "-o", program, "mneme/cmd/memnode").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build memnode with faults: %w\n%s", err, out)
	}
	return program, nil
})

// notFaulty says why there are no clocks that jump and no slow disks, "" if there are.
func notFaulty(tm *team) string {
	if tm.faulty != nil {
		return "no memnode with such faults: " + tm.faulty.Error()
	}
	return ""
}

// disturbance is what a faulty memnode is told.
type disturbance struct {
	clock time.Duration // by whole seconds
	sync  time.Duration
}

func (p *process) faultsFile() string { return p.dir + ".faults" }

// disturb tells a faulty memnode, and waits until it is so. It returns what the node's clock
// shows more than this one's, and how many syncs took longer since it began.
func (p *process) disturb(ctx context.Context, d disturbance) (ahead time.Duration, delayed int) {
	p.team.t.Helper()
	must(p.team.t, os.WriteFile(p.faultsFile(), fmt.Appendf(nil, "%d %d\n", int64(d.clock/time.Second), int64(d.sync)), 0o600))
	for {
		var shift, slow, now int64
		b, err := os.ReadFile(p.faultsFile() + ".is")
		if err == nil {
			if n, _ := fmt.Sscan(string(b), &shift, &slow, &now, &delayed); n == 4 && shift == int64(d.clock/time.Second) && slow == int64(d.sync) {
				return time.Duration(now-time.Now().Unix()) * time.Second, delayed
			}
		}
		if ctx.Err() != nil {
			p.team.t.Fatalf("%s is not disturbed: %s %v", p.id, b, err)
		}
		pause(ctx, 20*time.Millisecond)
	}
}
