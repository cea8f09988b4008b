package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mneme/internal/node"
)

func TestExitCodeOfEachWayNotToStart(t *testing.T) {
	for kind, want := range map[string]int{
		node.StartUsage: 2, node.StartReadOnly: 2, node.StartInUse: 5, node.StartAddress: 6, node.StartUnreachable: 6,
		node.StartDamaged: 7, node.StartNewer: 7, node.StartLostKey: 7, node.StartOther: 1, "": 1,
	} {
		w := fails(t, fmt.Errorf("start: %w", &node.StartError{Kind: kind, Message: "it is\nso", Hint: "do this", Addr: node.DefaultHTTPAddr}))
		if got := w.run("--log-level=error"); got != want {
			t.Errorf("%s: exit %d, want %d", kind, got, want)
		}
		lines := strings.Split(strings.TrimSuffix(w.err.String(), "\n"), "\n")
		if len(lines) != 2 || lines[0] != "memnode: it is so" || !strings.HasPrefix(lines[1], "hint: ") {
			t.Errorf("%s: printed %q", kind, w.err)
		}
		if w.out.String() != "" {
			t.Errorf("%s: standard output has %q", kind, w.out)
		}
	}
}

func TestOtherErrorsAndPanicsAreOneLineToo(t *testing.T) {
	w := fails(t, errors.New("the moon is full"))
	if code := w.run("--log-level=error"); code != exitOther || w.err.String() != "memnode: the moon is full\n" {
		t.Errorf("exit %d, %q", code, w.err)
	}
	w = newWorld(t, func(context.Context, node.Config) (instance, error) { panic("index out of range") })
	if code := w.run("--log-level=error"); code != exitOther {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: internal error: index out of range")
	if strings.Contains(w.err.String(), "goroutine") {
		t.Errorf("a stack was printed:\n%s", w.err)
	}
	w = newWorld(t, func(context.Context, node.Config) (instance, error) { panic("index out of range") })
	w.run("--log-level=debug")
	wantHas(t, "the debug log", w.err.String(), "goroutine", "serve.go")

	w = fails(t, nil)
	w.system.home = func() (string, error) { panic("no home") }
	if code := w.run(); code != exitOther {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: internal error: no home")
}

func TestTakenAddressNamesTheWholeCommand(t *testing.T) {
	taken := func(addr string) error {
		return &node.StartError{Kind: node.StartAddress, Addr: addr, Message: "address " + addr + " is taken"}
	}
	for _, tc := range []struct {
		name   string
		failed string
		busy   []string
		args   []string
		want   string
	}{
		{"http", node.DefaultHTTPAddr, nil, nil, "memnode --http-addr 127.0.0.1:8788"},
		{"nats", node.DefaultNATSAddr, []string{"127.0.0.1:4223"}, []string{"--dev", "--namespace", "a b"}, "memnode --dev --namespace 'a b' --nats-addr 127.0.0.1:4224"},
		{"both", node.DefaultHTTPAddr, []string{node.DefaultNATSAddr}, []string{"--http-addr", node.DefaultHTTPAddr, "--auth=token"},
			"memnode --auth=token --http-addr 127.0.0.1:8788 --nats-addr 127.0.0.1:4223"},
		{"one address for both", "127.0.0.1:9000", nil, []string{"--http-addr=127.0.0.1:9000", "--nats-addr=127.0.0.1:9000"},
			"memnode --http-addr 127.0.0.1:9001 --nats-addr 127.0.0.1:9002"},
		{"external log", node.DefaultHTTPAddr, []string{node.DefaultNATSAddr}, []string{"--nats-url", "nats://me:secret@log:1"},
			"memnode --nats-url 'nats://[redacted]@log:1' --http-addr 127.0.0.1:8788"},
		{"last port", "127.0.0.1:65535", nil, []string{"--http-addr", "127.0.0.1:65535"}, "memnode --http-addr 127.0.0.1:0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := fails(t, taken(tc.failed))
			w.isFree = func(addr string) bool {
				for _, b := range tc.busy {
					if addr == b {
						return false
					}
				}
				return true
			}
			if code := w.run(tc.args...); code != exitNetwork {
				t.Errorf("exit %d", code)
			}
			wantHas(t, "standard error", w.err.String(), "memnode: address "+tc.failed+" is taken\n", "hint: try: "+tc.want+"\n")
		})
	}
}

func TestTakenAddressOfANodeIsNotReplacedByAnyOther(t *testing.T) {
	for _, name := range []string{"--peer-addr", "--route-addr"} {
		w := fails(t, &node.StartError{Kind: node.StartAddress, Addr: "127.0.0.1:9001", Message: "address 127.0.0.1:9001 is taken"})
		if code := w.run("--node-id", "n1", name, "127.0.0.1:9001"); code != exitNetwork {
			t.Errorf("%s: exit %d", name, code)
		}
		wantHas(t, name, w.err.String(), "memnode: address 127.0.0.1:9001 is taken\n", "hint: stop what listens there, or give this node another "+name)
		if strings.Contains(w.err.String(), "try: ") {
			t.Errorf("%s: a command that keeps the taken address:\n%s", name, w.err.String())
		}
	}
}

func TestAddressThatCannotBeListenedOn(t *testing.T) {
	w := fails(t, &node.StartError{Kind: node.StartAddress, Addr: "127.0.0.1:80", Message: "address 127.0.0.1:80 is taken",
		Err: &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}})
	if code := w.run("--http-addr", "127.0.0.1:80"); code != exitNetwork {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: cannot listen on 127.0.0.1:80: bind: permission denied", "hint: choose another")
}

func TestPortThatThereIsNotIsAMistake(t *testing.T) {
	w := fails(t, &node.StartError{Kind: node.StartAddress, Addr: "127.0.0.1:99999", Message: "address 127.0.0.1:99999 is taken",
		Err: &net.OpError{Op: "listen", Net: "tcp", Err: &net.AddrError{Err: "invalid port", Addr: "99999"}}})
	if code := w.run("--http-addr", "127.0.0.1:99999"); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: cannot listen on 127.0.0.1:99999: address 99999: invalid port", "hint: choose another")
}

func TestCompletionForAnUnknownShell(t *testing.T) {
	w := fails(t, nil)
	if code := w.run("completion", "fsh"); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode completion does not take the argument \"fsh\"", "hint: did you mean fish?")
}

func TestUnreachableLogSaysWhatToLookAt(t *testing.T) {
	w := fails(t, &node.StartError{Kind: node.StartUnreachable, Message: "no log there"})
	if code := w.run("--nats-url", "nats://127.0.0.1:1"); code != exitNetwork {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: no log there\n", "hint: --nats-url", "--nats-monitor", "--dev")
}

func TestDirectoryInUseProposesAnother(t *testing.T) {
	w := fails(t, &node.StartError{Kind: node.StartInUse, Message: "data directory is in use"})
	w.isFree = func(addr string) bool { return addr != node.DefaultHTTPAddr }
	w.file(t, ".mneme-2/x", "")
	if code := w.run(); code != exitInUse {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode --data-dir "+filepath.Join(w.dir, ".mneme-3")+" --http-addr 127.0.0.1:8788\n")
}

// A restart ended with 5 where the former process took some milliseconds longer to end.
func TestDirectoryThatIsInUseIsWaitedFor(t *testing.T) {
	inUse := &node.StartError{Kind: node.StartInUse, Message: "data directory is in use"}
	waits := func(t *testing.T, open func(opens int) (instance, error)) *world {
		var w *world
		w = newWorld(t, func(context.Context, node.Config) (instance, error) { return open(w.opens) })
		w.freedWithin = freedWithin
		return w
	}
	t.Run("freed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := waits(t, func(opens int) (instance, error) {
				if opens < 3 {
					return nil, inUse
				}
				return newFake(), nil
			})
			w.system.out = writerFunc(func(p []byte) (int, error) {
				w.signals <- syscall.SIGTERM
				return w.out.Write(p)
			})
			if code := w.run(); code != 0 || w.opens != 3 {
				t.Errorf("exit %d after %d attempts: %s", code, w.opens, w.err)
			}
			if n := strings.Count(w.err.String(), "waiting for whoever has it to end: data directory is in use"); n != 1 {
				t.Errorf("%d lines say that it waits: %s", n, w.err)
			}
		})
	})
	t.Run("kept", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, from := waits(t, func(int) (instance, error) { return nil, inUse }), time.Now()
			if code := w.run(); code != exitInUse || time.Since(from) != freedWithin {
				t.Errorf("exit %d after %s: %s", code, time.Since(from), w.err)
			}
		})
	})
	t.Run("told to stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := waits(t, func(int) (instance, error) { return nil, inUse })
			from := time.Now()
			time.AfterFunc(time.Second, func() { w.signals <- syscall.SIGTERM })
			if code := w.run(); code != 0 || time.Since(from) != time.Second {
				t.Errorf("exit %d after %s: %s", code, time.Since(from), w.err)
			}
		})
	})
}

// The hint was to start another node with the same id and the same peer address.
func TestDirectoryOfAClusterNodeInUseProposesNoCopy(t *testing.T) {
	w := fails(t, &node.StartError{Kind: node.StartInUse, Message: "data directory is in use"})
	if code := w.run("--node-id", "n1", "--data-dir", "n1", "--peer-addr", "127.0.0.1:8801"); code != exitInUse {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "hint: stop the one that has it", "n1", "memctl cluster join")
	if strings.Contains(w.err.String(), "beside it") {
		t.Error(w.err.String())
	}
}

func TestReadyLines(t *testing.T) {
	for _, tc := range []struct {
		name       string
		http, nats string
		memctl     string
		environ    []string
		args       []string
		want       string
	}{
		{"defaults", node.DefaultHTTPAddr, "nats://127.0.0.1:4222", "memctl", nil, nil,
			"memnode ready http=http://127.0.0.1:8787 nats=nats://127.0.0.1:4222 data=DIR/.mneme\n" +
				"  memctl capture -n default \"deploys happen on Tuesdays\"\n" +
				"  memctl search -n default \"when do we deploy\"\n" +
				"  memctl status\n"},
		{"go run, elsewhere", "127.0.0.1:9000", "nats://127.0.0.1:9001", "go run ./cmd/memctl", nil, []string{"--namespace", "team-a", "--data-dir", "~/x"},
			"memnode ready http=http://127.0.0.1:9000 nats=nats://127.0.0.1:9001 data=DIR/x\n" +
				"  go run ./cmd/memctl capture --addr http://127.0.0.1:9000 -n team-a \"deploys happen on Tuesdays\"\n" +
				"  go run ./cmd/memctl search --addr http://127.0.0.1:9000 -n team-a \"when do we deploy\"\n" +
				"  go run ./cmd/memctl status --addr http://127.0.0.1:9000\n"},
		{"everywhere", "[::]:8787", "nats://0.0.0.0:4222", "memctl", nil, []string{"--auth=token"},
			"memnode ready http=http://127.0.0.1:8787 nats=nats://127.0.0.1:4222 data=DIR/.mneme\n" +
				"  memctl capture --token-file DIR/.mneme/keys/operator.token -n default \"deploys happen on Tuesdays\"\n" +
				"  memctl search --token-file DIR/.mneme/keys/operator.token -n default \"when do we deploy\"\n" +
				"  memctl status --token-file DIR/.mneme/keys/operator.token\n"},
		{"TLS", "127.0.0.1:8787", "tls://127.0.0.1:4222", "memctl", nil, []string{"--tls-cert", "/none/mneme.crt", "--tls-key", "/none/mneme.key"},
			"memnode ready http=https://127.0.0.1:8787 nats=tls://127.0.0.1:4222 data=DIR/.mneme\n" +
				"  memctl capture --addr https://127.0.0.1:8787 --tls-ca /none/mneme.crt -n default \"deploys happen on Tuesdays\"\n" +
				"  memctl search --addr https://127.0.0.1:8787 --tls-ca /none/mneme.crt -n default \"when do we deploy\"\n" +
				"  memctl status --addr https://127.0.0.1:8787 --tls-ca /none/mneme.crt\n"},
		{"external log, token from the environment", node.DefaultHTTPAddr, "nats://me:secret@log:4222", "memctl",
			[]string{"MNEME_AUTH_TOKEN=sesame"}, []string{"--auth=token"},
			"memnode ready http=http://127.0.0.1:8787 nats=nats://log:4222 data=DIR/.mneme\n" +
				"  MNEME_TOKEN=\"$MNEME_AUTH_TOKEN\" memctl capture -n default \"deploys happen on Tuesdays\"\n" +
				"  MNEME_TOKEN=\"$MNEME_AUTH_TOKEN\" memctl search -n default \"when do we deploy\"\n" +
				"  MNEME_TOKEN=\"$MNEME_AUTH_TOKEN\" memctl status\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newFake()
			n.http, n.nats = "http://"+tc.http, tc.nats
			if slices.Contains(tc.args, "--tls-cert") {
				n.http = "https://" + tc.http
			}
			w := stopsWhenReady(t, n)
			w.memctl, w.environ = tc.memctl, tc.environ
			if code := w.run(tc.args...); code != 0 {
				t.Fatalf("exit %d: %s", code, w.err)
			}
			if want := strings.ReplaceAll(tc.want, "DIR", w.dir); w.out.String() != want {
				t.Errorf("got\n%s\nwant\n%s", w.out, want)
			}
		})
	}
}

func TestFirstSignalDrains(t *testing.T) {
	closed := 0
	n := newFake()
	n.close = func(ctx context.Context) error {
		closed++
		if _, ok := ctx.Deadline(); !ok {
			t.Error("draining has no deadline")
		}
		return nil
	}
	w := stopsWhenReady(t, n)
	if code := w.run(); code != 0 || closed != 1 {
		t.Errorf("exit %d, closed %d times", code, closed)
	}
	wantHas(t, "the log", w.err.String(), "msg=draining", "msg=stopped")
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	n := newFake()
	release := make(chan struct{})
	var w *world
	n.close = func(context.Context) error {
		w.signals <- os.Interrupt
		<-release
		return nil
	}
	w = stopsWhenReady(t, n)
	code := w.run()
	close(release)
	if code != exitOther {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: stopped at once")
}

// TestSignalThatCameTwiceEndedTheDrain: timeout(1) signals the process and its group,
// which is the process twice.
func TestSignalThatCameTwiceEndedTheDrain(t *testing.T) {
	now := time.Unix(1, 0)
	n := newFake()
	var w *world
	n.close = func(context.Context) error {
		for range cap(w.signals) + 1 { // so the first of them was taken
			w.signals <- syscall.SIGTERM
		}
		return nil
	}
	w = stopsWhenReady(t, n)
	w.now = func() time.Time { return now }
	if code := w.run(); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
	wantHas(t, "the log", w.err.String(), "msg=stopped")

	begun := make(chan struct{})
	w = newWorld(t, func(ctx context.Context, _ node.Config) (instance, error) {
		close(begun)
		<-ctx.Done()
		for range cap(w.signals) + 1 {
			w.signals <- syscall.SIGTERM
		}
		return nil, ctx.Err()
	})
	w.now = func() time.Time { return now }
	go func() { <-begun; w.signals <- syscall.SIGTERM }()
	if code := w.run(); code != 0 {
		t.Errorf("before it was ready: exit %d: %s", code, w.err)
	}
}

func TestSignalBeforeReady(t *testing.T) {
	waits := func(ctx context.Context, _ node.Config) (instance, error) {
		<-ctx.Done()
		return nil, &node.StartError{Kind: node.StartOther, Message: "cancelled", Err: ctx.Err()}
	}
	w := newWorld(t, waits)
	w.signals <- syscall.SIGTERM
	if code := w.run(); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}

	closed := false
	n := newFake()
	n.close = func(context.Context) error { closed = true; return nil }
	w = newWorld(t, func(ctx context.Context, _ node.Config) (instance, error) { <-ctx.Done(); return n, nil })
	w.signals <- syscall.SIGTERM
	if code := w.run(); code != 0 || !closed || w.out.String() != "" {
		t.Errorf("exit %d, closed %v, printed %q", code, closed, w.out)
	}

	w = newWorld(t, func(ctx context.Context, _ node.Config) (instance, error) {
		<-ctx.Done()
		return nil, &node.StartError{Kind: node.StartDamaged, Message: "it is broken"}
	})
	w.signals <- syscall.SIGTERM
	if code := w.run(); code != exitDamaged {
		t.Errorf("exit %d", code)
	}

	release := make(chan struct{})
	w = newWorld(t, func(context.Context, node.Config) (instance, error) { <-release; return nil, errors.New("late") })
	w.signals <- syscall.SIGTERM
	w.signals <- syscall.SIGTERM
	code := w.run()
	close(release)
	if code != exitOther {
		t.Errorf("exit %d", code)
	}
}

func TestNodeThatEndsByItself(t *testing.T) {
	for _, tc := range []struct {
		why  error
		code int
		want string
	}{
		{errors.New("the disk is gone"), 1, "memnode: the node stopped by itself: the disk is gone"},
		{&node.StartError{Kind: node.StartDamaged, Message: "state is damaged", Hint: "rebuild"}, 7, "hint: rebuild"},
		{nil, 1, "no reason"},
	} {
		n := newFake()
		n.why = tc.why
		closed := false
		n.close = func(context.Context) error { closed = true; return errors.New("half of it hangs") }
		close(n.done)
		w := newWorld(t, func(context.Context, node.Config) (instance, error) { return n, nil })
		if code := w.run(); code != tc.code || !closed {
			t.Errorf("exit %d, closed %v", code, closed)
		}
		wantHas(t, "standard error", w.err.String(), tc.want, "half of it hangs")
	}
}

// A node that has to be opened again is, in the same process, and says once that it is
// ready.
func TestNodeThatStartsAgain(t *testing.T) {
	var closed []string
	lives := 0
	var w *world
	w = newWorld(t, func(context.Context, node.Config) (instance, error) {
		n, life := newFake(), fmt.Sprint("life ", lives)
		n.close = func(context.Context) error { closed = append(closed, life); return nil }
		if lives++; lives < 3 {
			n.why = fmt.Errorf("%w: its state halted", node.ErrRestart)
			close(n.done)
		} else {
			w.signals <- syscall.SIGTERM
		}
		return n, nil
	})
	if code := w.run(); code != 0 || lives != 3 || len(closed) != 3 {
		t.Errorf("exit %d after %d lives, closed %q", code, lives, closed)
	}
	if out := w.out.String(); strings.Count(out, "memnode ready") != 1 {
		t.Errorf("it printed %q", out)
	}
}

// Where a new process is needed this one is replaced once its node is closed; where that cannot
// be, it ends.
func TestNodeThatNeedsANewProcess(t *testing.T) {
	n, closed, replaced := newFake(), false, 0
	n.why = fmt.Errorf("%w: its database halted", node.ErrNewProcess)
	n.close = func(context.Context) error { closed = true; return errors.New("the database stays locked") }
	close(n.done)
	w := newWorld(t, func(context.Context, node.Config) (instance, error) { return n, nil })
	w.system.replace = func() error {
		if replaced++; !closed {
			t.Error("replaced before the node was closed")
		}
		return errors.New("no such program")
	}
	if code := w.run(); code == 0 || replaced != 1 || w.opens != 1 {
		t.Errorf("exit %d, %d replacements, %d starts", code, replaced, w.opens)
	}
	wantHas(t, "standard error", w.err.String(), "no such program", "its database halted")
}

// The process of a program that replaces itself is the same one, and holds nothing of before.
func TestProcessIsReplaced(t *testing.T) {
	const again = "MEMNODE_TEST_REPLACED"
	switch life := os.Getenv(again); life {
	case "":
		if runtime.GOOS == "windows" {
			return // no process takes another one's place there
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessIsReplaced$", "-test.v")
		cmd.Env = append(os.Environ(), again+"="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("life 2 of %d, and all is free", cmd.Process.Pid); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q in\n%s", err, want, out)
		}
	default:
		if port, err := os.ReadFile(filepath.Join(life, "port")); err == nil {
			l, err := net.Listen("tcp", string(port))
			if err != nil {
				t.Fatal("what the former life held is not free:", err)
			}
			_ = l.Close()
			fmt.Printf("life 2 of %d, and all is free\n", os.Getpid())
			return
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(life, "port"), []byte(l.Addr().String()), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Fatal(replaceProcess())
	}
}

func TestStoppingThatFails(t *testing.T) {
	n := newFake()
	n.close = func(context.Context) error { return errors.New("still writing") }
	w := stopsWhenReady(t, n)
	if code := w.run(); code != exitOther {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "memnode: stopping: still writing")
	n.close = func(context.Context) error { panic("oh") }
	w = stopsWhenReady(t, n)
	if code := w.run(); code != exitOther {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "internal error: oh")
}

func TestTokenWithoutAuthIsMentioned(t *testing.T) {
	w := stopsWhenReady(t, newFake())
	w.environ = []string{"MNEME_AUTH_TOKEN=sesame"}
	w.run("--log-format=json")
	wantHas(t, "the log", w.err.String(), `"level":"WARN"`, "auth is off")
	if strings.Contains(w.err.String(), "sesame") {
		t.Error("the token was logged")
	}
}

func TestWindowsIsToldWhatIsNotThere(t *testing.T) {
	for system, want := range map[string]bool{"windows": true, "linux": false} {
		w := stopsWhenReady(t, newFake())
		w.version.OS = system
		w.run()
		if got := strings.Contains(w.err.String(), "access list of the data directory"); got != want {
			t.Errorf("%s: %s", system, w.err.String())
		}
	}
}

func TestLibrariesAreQuiet(t *testing.T) {
	for level, want := range map[string]bool{"info": false, "debug": true} {
		out := &lockedBuffer{}
		log := newLogging(out, level, "text")
		log.Info("mine")
		log.Info("theirs", "logger", "raft")
		log.With("logger", "raft").WithGroup("g").With("a", 1).Info("theirs too")
		log.With("logger", "raft").Warn("serious")
		wantHas(t, level, out.String(), "msg=mine", "msg=serious")
		if got := strings.Contains(out.String(), "theirs"); got != want {
			t.Errorf("%s: libraries logged = %v\n%s", level, got, out)
		}
	}
}

func TestVersionHelpAndCompletion(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"version"}, []string{"memnode v1.2.3 (0123456789ab) go1.26 linux/amd64\n"}},
		{[]string{"--version"}, []string{"memnode v1.2.3"}},
		{[]string{"version", "--json"}, []string{`"version":"v1.2.3"`}},
		{[]string{"--help"}, []string{"Examples:", "--http-addr", "Exit codes", "(default \"127.0.0.1:8787\")", "completion"}},
		{[]string{"config", "--help"}, []string{"--json", "Global Flags"}},
		{[]string{"completion", "bash"}, []string{"memnode"}},
		{[]string{"__complete", "--auth", ""}, []string{"off\n", "token\n"}},
	} {
		w := fails(t, nil)
		if code := w.run(tc.args...); code != 0 {
			t.Errorf("%v: exit %d: %s", tc.args, code, w.err)
		}
		wantHas(t, strings.Join(tc.args, " "), w.out.String(), tc.want...)
	}
}

func TestHowItWasCalled(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/go-build123/b001/exe/memnode":                                   true,
		"/root/.cache/go-build/ab/" + strings.Repeat("ab", 32) + "-d/memnode": true,
		"/cache/ab/" + strings.Repeat("ab", 32) + "-d/memnode":                true,
		"/usr/local/bin/memnode":                                              false,
		"/srv/" + strings.Repeat("z", 64) + "-d/memnode":                      false,
		"memnode": false,
	} {
		if got := madeByGoRun(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	sys := osSystem(nil, nil)
	if sys.program == "" || sys.version.Go == "" || sys.open == nil {
		t.Errorf("%+v", sys)
	}
}

func TestIsFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if isFree(l.Addr().String()) {
		t.Error("a listening address counts as free")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !isFree(l.Addr().String()) {
		t.Error("a closed address counts as taken")
	}
}

func TestOddAddresses(t *testing.T) {
	w := fails(t, nil)
	if got := nextFree(w.system, "nonsense", nil); got != "127.0.0.1:0" {
		t.Error(got)
	}
	if got := reachable("nonsense"); got != "nonsense" {
		t.Error(got)
	}
	if got := reachableURL("nats://me:secret@a b:1"); strings.Contains(got, "secret") {
		t.Error(got)
	}
	if got := quote("it's"); got != `'it'\''s'` {
		t.Error(got)
	}
}

func TestRealOpenReturnsNoHalfNode(t *testing.T) {
	n, err := openNode(t.Context(), node.Config{})
	var e *node.StartError
	if n != nil || !errors.As(err, &e) || e.Kind != node.StartUsage {
		t.Errorf("%v, %v", n, err)
	}
}
