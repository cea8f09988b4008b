package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain plays memnode when it is started as one: the value says how it
// behaves.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST_PLAYS") {
	case "":
		goleak.VerifyTestMain(m)
	case "node":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Println("memnode ready http=127.0.0.1:1 nats=nats://127.0.0.1:2 data=x")
		fmt.Println("more")
		<-stop
	case "refuses":
		fmt.Fprintln(os.Stderr, "memnode: address taken")
		os.Exit(6)
	case "babbles":
		fmt.Println("hello")
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	case "bad end":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Println("memnode ready http=127.0.0.1:1 nats=127.0.0.1:2")
		<-stop
		fmt.Fprintln(os.Stderr, "could not flush")
		os.Exit(1)
	}
}

func start(t *testing.T, plays string) (*Node, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM on Windows")
	}
	t.Setenv("PROC_TEST_PLAYS", plays)
	return Start(context.Background(), os.Args[0], t.TempDir())
}

func TestStartStop(t *testing.T) {
	n, err := start(t, "node")
	if err != nil {
		t.Fatal(err)
	}
	if n.HTTP != "http://127.0.0.1:1" || n.NATS != "nats://127.0.0.1:2" || n.Ready <= 0 || n.DataDir() == "" {
		t.Errorf("got %q, %q, %v", n.HTTP, n.NATS, n.Ready)
	}
	if m, err := n.Memory(); runtime.GOOS == "linux" && (err != nil || m.Resident <= 0 || m.Peak < m.Resident) {
		t.Errorf("memory %+v, %v", m, err)
	}
	if _, err := n.CPU(); runtime.GOOS == "linux" && err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" {
		if _, err := n.Quiet(context.Background(), 1e9, time.Minute); err != nil {
			t.Error(err)
		}
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
	if err := n.Kill(); err != nil {
		t.Errorf("kill after the end: %v", err)
	}
	if _, err := n.Memory(); runtime.GOOS == "linux" && !errors.Is(err, ErrNoUsage) {
		t.Errorf("memory of a dead process: %v", err)
	}
}

func TestKill(t *testing.T) {
	n, err := start(t, "node")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Kill(); err != nil {
		t.Error(err)
	}
	if err := n.Stop(); err == nil {
		t.Error("a killed process stopped well")
	}
}

func TestBadStart(t *testing.T) {
	if _, err := start(t, "refuses"); err == nil || !strings.Contains(err.Error(), "address taken") {
		t.Errorf("got %v", err)
	}
	if _, err := start(t, "babbles"); err == nil || !strings.Contains(err.Error(), `"hello"`) {
		t.Errorf("got %v", err)
	}
	if _, err := Start(context.Background(), "/does/not/exist", t.TempDir()); err == nil {
		t.Error("a missing program starts")
	}
}

func TestBadEnd(t *testing.T) {
	n, err := start(t, "bad end")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err == nil || !strings.Contains(err.Error(), "could not flush") {
		t.Errorf("got %v", err)
	}
}

func TestParseUsage(t *testing.T) {
	m, err := parseStatus("Name:\tx\nVmHWM:\t  2000 kB\nVmRSS:\t 1000 kB\nRssAnon:\t 700 kB\nThreads:\t3\n")
	if err != nil || m.Resident != 1000<<10 || m.Peak != 2000<<10 || m.Anonymous != 700<<10 {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := parseStatus("VmRSS:\tmany kB"); !errors.Is(err, ErrNoUsage) {
		t.Errorf("got %v", err)
	}
	d, err := parseStat("12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20")
	if err != nil || d != 2*time.Second {
		t.Errorf("got %v, %v", d, err)
	}
	for _, bad := range []string{"", "1 (x) S", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 0 0 20"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestParseMachine(t *testing.T) {
	busy, all, err := parseMachine("cpu  10 1 5 100 20 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil || busy != 25 || all != 145 {
		t.Errorf("got %d of %d, %v", busy, all, err)
	}
	own, err := parseOwn("12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 7 3 20")
	if err != nil || own != 210 {
		t.Errorf("got %d, %v", own, err)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu a 1 5 100 20 2 3 4 0 0"} {
		if _, _, err := parseMachine(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	for _, bad := range []string{"", "12 (a) S 1 2 3 4 5 6 7 8 9 10 150 50 7 x 20"} {
		if _, err := parseOwn(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if s, err := Watch()(); runtime.GOOS == "linux" && (err != nil || s.Own < 0 || s.Others < 0) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestOutput(t *testing.T) {
	f := newFirstLine()
	for _, s := range []string{"one", " line\r", "\ntwo\n", "three\n"} {
		fmt.Fprint(f, s)
	}
	if got := <-f.line; got != "one line" || len(f.line) != 0 {
		t.Errorf("got %q", got)
	}
	k := &tail{max: 5}
	fmt.Fprint(k, "abcd")
	fmt.Fprint(k, "efg\n")
	if k.String() != "defg" {
		t.Errorf("got %q", k)
	}
	if got := clean([]string{"A=1", "MNEME_ADDR=x", "B=2"}); !slices.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("got %q", got)
	}
}
