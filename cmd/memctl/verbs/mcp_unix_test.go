//go:build unix

package verbs

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMCPWaitsInThePollerOnOneProcessor: a thread that waits in a read, and goroutines that wake others on another
// processor, each cost a call more than the call does. The stream is left as it was.
func TestMCPWaitsInThePollerOnOneProcessor(t *testing.T) {
	d := newDesk(t, "default")
	in, host := sockets(t)
	answers, out := io.Pipe()
	sys := userSystem(d.dir, ".", d.addr, new(bytes.Buffer), new(bytes.Buffer))
	sys.in, sys.out = in, out
	served := make(chan struct{}, 2)
	sys.process.serveOne = func() { served <- struct{}{} }
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), sys, []string{"mcp", "--start", "never", "-n", "default"})
		_ = out.Close()
	}()
	if _, err := host.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	line, err := lines.ReadString('\n')
	if err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Fatalf("%s, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if !nonblocking(t, in) {
		t.Error("a thread waits for what the host says")
	}
	if len(served) != 1 {
		t.Errorf("one processor was asked for %d times", len(served))
	}
	endsWith(t, host, ended)
	if nonblocking(t, in) {
		t.Error("the stream was not left as it was")
	}
}

// TestTheEndOfMCPWasToldAsAnError: a host ends its servers by a signal, and shows what they then say.
func TestTheEndOfMCPWasToldAsAnError(t *testing.T) {
	d := newDesk(t, "default")
	in, host := sockets(t)
	defer func() { _ = host.Close() }()
	answers, out := io.Pipe()
	said := new(bytes.Buffer)
	sys := userSystem(d.dir, ".", d.addr, new(bytes.Buffer), said)
	sys.in, sys.out = in, out
	ctx, signalled := context.WithCancel(t.Context())
	defer signalled()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, sys, []string{"mcp", "--start", "never", "-n", "default"}) }()
	if _, err := host.WriteString(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(answers).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	signalled()
	if code := <-ended; code != 0 || said.Len() > 0 {
		t.Errorf("exit %d, and it says %s", code, said)
	}
}

// TestAHostThatReadsNoErrorsHadNoAnswers, and had memctl mcp stay: a warning waited to be read, and all else behind it.
func TestAHostThatReadsNoErrorsHadNoAnswers(t *testing.T) {
	d := newDesk(t, "default")
	in, host := sockets(t)
	answers, out := io.Pipe()
	unread, errs := io.Pipe()
	defer func() { _ = unread.Close() }()
	sys := userSystem(d.dir, ".", d.addr, new(bytes.Buffer), new(bytes.Buffer))
	sys.in, sys.out, sys.err = in, out, errs
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), sys, []string{"mcp", "--start", "never", "-n", "default"})
		_ = out.Close()
	}()
	const early = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" // which is told as an error
	if _, err := host.WriteString(early + early + early + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"); err != nil {
		t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(answers)
		l, _ := lines.ReadString('\n')
		line <- l
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case l := <-line:
		if !strings.Contains(l, `"id":1`) {
			t.Errorf("the answer is %s", l)
		}
	case <-time.After(time.Minute):
		t.Fatal("a call has no answer")
	}
	endsWith(t, host, ended)
}

// endsWith closes the input of a program, which ends well then.
func endsWith(t *testing.T, host *os.File, ended <-chan int) {
	t.Helper()
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end with its input")
	}
}
