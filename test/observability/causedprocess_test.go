package observability

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// process starts memnode in a process of its own and returns where it answers, and how it is
// killed.
func process(t *testing.T, dir string) (url string, kill func()) {
	t.Helper()
	built, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, filepath.Join(built, "memnode"), "--data-dir", dir, "--http-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
		cancel()
	}
	t.Cleanup(kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		for word := range strings.FieldsSeq(lines.Text()) {
			if at, ok := strings.CutPrefix(word, "http="); ok {
				return at, kill
			}
		}
	}
	t.Fatal("memnode is not ready")
	return "", kill
}

// TestNodeThatIsKilledAgainAndAgainIsAlerted kills a process, which is started again, as
// somebody who has too little memory.
func TestNodeThatIsKilledAgainAndAgainIsAlerted(t *testing.T) {
	p, dir := watch(t), filepath.Join(t.TempDir(), "data")
	var kill func()
	for range 5 {
		if kill != nil {
			kill()
		}
		p.targets["n1"], kill = process(t, dir)
		p.scrape()
	}
	p.fired("MnemeNodeRestarts")
	p.says(p.follow("MnemeNodeRestarts", place{node: p.targets["n1"], dir: dir}), "all is well")
	p.recovers()
}
