package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// A table as a little-endian Linux has it: user 1000 listens at 127.0.0.1:8787, 1001 at every
// address of port 9000, root at 10.0.0.5:7000, and 1001 has connected from port 8787.
const socketTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1613 1 00000000762c754f 100 0 0 10 0
   1: 00000000:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1614 1 00000000762c754f 100 0 0 10 0
   2: 0500000A:1B58 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1615 1 00000000762c754f 100 0 0 10 0
   3: 0100007F:2253 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1001        0 1616 1 00000000762c754f 20 4 30 10 -1
`

const socketTable6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1002        0 22 1 0 100 0 0 10 0
   1: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 23 1 0 100 0 0 10 0
   2: 00000000000000000000000000000000:2253 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1002        0 24 1 0 100 0 0 10 0
`

func TestWhoListens(t *testing.T) {
	four, err := parseListeners(strings.NewReader(socketTable))
	if err != nil {
		t.Fatal(err)
	}
	six, err := parseListeners(strings.NewReader(socketTable6))
	if err != nil {
		t.Fatal(err)
	}
	all := append(four, six...)
	if len(all) != 6 {
		t.Fatalf("%+v", all)
	}
	read := func() ([]listener, error) { return append([]listener{}, all...), nil }
	for _, c := range []struct {
		at     string
		user   int
		reason string
	}{
		{"127.0.0.1:8787", 1000, ""},
		{"127.0.0.1:8787", 1001, "user 1000 listens at 127.0.0.1:8787, and not you"},
		{"127.0.0.1:8787", 0, "user 1000 listens"},
		{"[::1]:8787", 1000, "user 1002 listens"},
		{"127.0.0.1:9000", 1000, "user 1001 listens"},
		{"[::1]:9000", 1001, "no user of this machine listens there"},
		{"127.0.0.1:7000", 1000, "no user of this machine listens there"},
		{"127.0.0.1:1", 1000, "no user of this machine listens there"},
		{"[::1]:8080", 1002, ""},
		{"127.0.0.1:8080", 1002, "no user of this machine listens there"},
		{"127.0.0.1:8081", 1003, ""},
		{"127.0.0.1:8081", 1000, "user 1003 listens"},
		{"192.0.2.1:8787", 1001, ""}, // is not on this machine
	} {
		err := checkListener(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.at)), c.user, read)
		if c.reason == "" && err != nil || c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason) || memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(memory.AsError(err).Hint, "memctl use --addr http://"+c.at)) {
			t.Errorf("user %d at %s: %v", c.user, c.at, err)
		}
	}
	for at, forwarded := range map[string]bool{"127.0.0.1:7000": true, "127.0.0.1:9000": false} { // what may explain it
		err := checkListener(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at)), 1000, read)
		if said := strings.Contains(memory.AsError(err).Hint, "a port that is forwarded, as one of a container"); said != forwarded {
			t.Errorf("%s: %v", at, memory.AsError(err).Hint)
		}
	}
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:8787"))
	if err := checkListener(at, 1000, func() ([]listener, error) { return nil, errors.ErrUnsupported }); err != nil {
		t.Errorf("where nothing tells: %v", err)
	}
	if err := checkListener(at, 1000, func() ([]listener, error) { return nil, os.ErrPermission }); err == nil {
		t.Error("where it may not be known, something is sent")
	}
	for _, bad := range []string{"0: 0100007F:xx 0 0A 0 0 0 1", "0: 0100007:2253 0 0A 0 0 0 1", "0: 01:2253 0 0A 0 0 0 1", "0: 0100007F:2253 0 0A 0 0 0 x"} {
		if _, err := parseListeners(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestOwnListenersAreReached: what the system tells of a listener of this very process.
func TestOwnListenersAreReached(t *testing.T) {
	own := plainSystem(io.Discard)
	for _, addr := range []string{"127.0.0.1:0", ":0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.Addr().(*net.TCPAddr).Port}
		c, err := own.dialOwn(t.Context(), "tcp", at.String())
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		_ = c.Close()
		if runtime.GOOS == "linux" { // elsewhere nothing tells
			if err := checkListener(at, os.Geteuid()+1, readListeners); os.Geteuid() != 0 && err == nil {
				t.Errorf("%s: another user would reach it", addr)
			}
			_ = l.Close()
			if err := checkListener(at, os.Geteuid(), readListeners); err == nil {
				t.Errorf("%s: one that has gone is trusted", addr)
			}
		}
		_ = l.Close()
	}
}

// TestNothingIsSentToAnotherUsersListener: whatever memctl is asked to do, who listens in place of the
// user's own node gets not a byte.
func TestNothingIsSentToAnotherUsersListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var calls, ended, got atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, c) // until memctl closes it
			got.Add(n)
			_ = c.Close()
			ended.Add(1)
		}
	}()
	home := t.TempDir()
	for _, c := range []struct {
		args []string
		in   string
		code int
	}{
		{args: []string{"status"}, code: 6},
		{args: []string{"capture", "-n", "team", "the pumpkin is ripe"}, code: 6},
		{args: []string{"hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "team", "--start", "never"}, in: `{"session_id":"s","cwd":"/","prompt":"Remember that the pumpkin is ripe."}`},
		{args: []string{"hook", "--agent", "claude-code", "--event", "Stop", "-n", "team"}, in: `{"session_id":"s","cwd":"/"}`}, // which may have a node started
	} {
		var out, errs bytes.Buffer
		sys := plainSystem(&errs)
		sys.in, sys.out = strings.NewReader(c.in), &out
		sys.getenv = func(string) string { return "" }
		sys.configDir = func() (string, error) { return home, nil }
		sys.connect = func(ctx context.Context, network, _ string) (net.Conn, error) {
			calls.Add(1)
			return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		}
		sys.listeners = func() ([]listener, error) {
			return []listener{{netip.MustParseAddrPort(l.Addr().String()), os.Geteuid() + 1}}, nil
		}
		before := calls.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code := run(ctx, sys, c.args)
		for ended.Load() != calls.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if calls.Load() == before {
			t.Errorf("%q: nobody was called", c.args)
		}
		if got.Load() != 0 || code != c.code {
			t.Errorf("%q: %d bytes to another user, exit code %d\n%s%s", c.args, got.Load(), code, out.String(), errs.String())
		}
	}
}

// TestOnlyAnAddressThatNobodyNamedIsChecked.
func TestOnlyAnAddressThatNobodyNamedIsChecked(t *testing.T) {
	for _, c := range []struct {
		flag, variable, remembered string
		checked                    bool
	}{
		{"", "", "", true},
		{client.DefaultAddr, "", "", false},
		{"", client.DefaultAddr, "", false},
		{"", "", client.DefaultAddr, false},
	} {
		var errs bytes.Buffer
		sys := plainSystem(&errs)
		dir := t.TempDir()
		sys.configDir = func() (string, error) { return dir, nil }
		sys.getenv = func(k string) string { return map[string]string{"MNEME_ADDR": c.variable}[k] }
		a := newApp(t.Context(), sys)
		a.flags.addr = c.flag
		if c.remembered != "" {
			if err := a.remember(remembered{Addr: c.remembered}); err != nil {
				t.Fatal(err)
			}
		}
		rem, err := a.remembered()
		if err != nil {
			t.Fatal(err)
		}
		if dial := a.sys.dialer(a.addr(rem)); (dial != nil) != c.checked {
			t.Errorf("%+v: %v", c, dial != nil)
		}
	}
}
