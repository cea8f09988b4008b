package sdk

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the generated files of the clients anew")

// root is the folder of go.mod, seen from here.
var root = filepath.Join("..", "..")

// patience bounds what would otherwise hang. No test waits for it to pass.
const patience = 3 * time.Minute

// programs are what was built for these tests: memnode and the Go examples, by name.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mneme-sdk-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command("go", "build", "-tags=enable_antithesis_sdk", "-o", dir+string(filepath.Separator), "mneme/cmd/memnode", "mneme/cmd/memctl", "mneme/client/examples/...").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	programs = dir
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// daemon is a running memnode.
type daemon struct {
	http string
	stop func()
}

var shared struct {
	sync.Mutex
	daemon
}

// node is the memnode that tests share which only read, or have namespaces of their own.
func node(t *testing.T) daemon {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.stop == nil {
		dir, err := os.MkdirTemp(programs, "shared-*")
		if err != nil {
			t.Fatal(err)
		}
		shared.daemon = start(t, dir)
	}
	return shared.daemon
}

// start starts a memnode on free ports and returns once it is ready.
func start(t *testing.T, dir string) daemon {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, "memnode"), "--data-dir", filepath.Join(dir, "data"), "--http-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0")
	cmd.Env = environment(dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	for lines.Scan() {
		for _, word := range strings.Fields(lines.Text()) {
			if url, ok := strings.CutPrefix(word, "http="); ok && strings.HasPrefix(lines.Text(), "memnode ready ") {
				go func() {
					for lines.Scan() { // what it says later is of no interest, but must not fill the pipe
					}
				}()
				return daemon{url, stop}
			}
		}
	}
	stop()
	said, _ := os.ReadFile(log.Name())
	t.Fatalf("memnode did not get ready:\n%s", said)
	return daemon{}
}

// environment is what programs see: nothing of the machine's settings.
func environment(home string, extra ...string) []string {
	return append([]string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "PYTHONDONTWRITEBYTECODE=1"}, extra...)
}
