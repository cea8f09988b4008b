//go:build unix

package verbs

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func nonblocking(t *testing.T, f *os.File) bool {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var flags int
	if err := errors.Join(raw.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) }), err); err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK != 0
}

// blocking is a file of the runtime that blocks, as standard input is.
func blocking(t *testing.T, fd int, name string) *os.File {
	t.Helper()
	f := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func pipe(t *testing.T) (in, out *os.File) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	return blocking(t, p[0], "in"), blocking(t, p[1], "out")
}

func sockets(t *testing.T) (in, out *os.File) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	return blocking(t, p[0], "in"), blocking(t, p[1], "out")
}

// TestPolled: what a host writes is read through the runtime's poller, to its end.
func TestPolled(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (in, out *os.File){"a pipe": pipe, "a socket, as programs of Node.js give": sockets} {
		t.Run(name, func(t *testing.T) {
			in, out := open(t)
			r, done := polled(in, io.Discard, os.Stderr)
			own, ok := r.(*os.File)
			if !ok || own == in || !nonblocking(t, own) {
				t.Fatal("it is read as it was")
			}
			if nonblocking(t, in) && name == "a pipe" && runtime.GOOS == "linux" {
				t.Error("reads of who shares the pipe do not block, which stays so when this is killed")
			}
			lines := bufio.NewReader(r)
			got := make(chan string)
			go func() {
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						line = err.Error()
					}
					got <- line
					if err != nil {
						return
					}
				}
			}()
			for _, line := range []string{"one\n", strings.Repeat("long", 100_000) + "\n"} {
				if _, err := out.WriteString(line); err != nil {
					t.Fatal(err)
				}
				if l := <-got; l != line {
					t.Fatalf("read %.20q, %d bytes", l, len(l))
				}
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			if l := <-got; l != io.EOF.Error() {
				t.Fatalf("at the end: %q", l)
			}
			if done(); nonblocking(t, in) {
				t.Error("it was not left as it was")
			}
		})
	}
}

// TestPolledEndsAReadUnderWay: nobody else does when a server ends before its input.
func TestPolledEndsAReadUnderWay(t *testing.T) {
	for _, open := range []func(*testing.T) (in, out *os.File){pipe, sockets} {
		in, _ := open(t)
		r, done := polled(in)
		ended := make(chan error)
		go func() {
			_, err := r.Read(make([]byte, 1))
			ended <- err
		}()
		done()
		if err := <-ended; !errors.Is(err, os.ErrClosed) {
			t.Errorf("the read ended with %v", err)
		}
	}
}

// TestSharedStreamsBlock: of one socket for input and output, writes would fail that do not wait;
// and a file, a terminal or a test's buffer is nobody's channel.
func TestSharedStreamsBlock(t *testing.T) {
	socket, _ := sockets(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := strings.NewReader("text")
	for name, c := range map[string]struct {
		in     io.Reader
		others []any
	}{
		"one socket":           {socket, []any{socket}},
		"one socket, as error": {socket, []any{io.Discard, socket}},
		"a file":               {file, nil},
		"no file":              {text, nil},
	} {
		r, done := polled(c.in, c.others...)
		if r != c.in {
			t.Errorf("%s: it is another reader", name)
		}
		if f, ok := c.in.(*os.File); ok && nonblocking(t, f) {
			t.Errorf("%s: its reads do not block", name)
		}
		done()
	}
}
