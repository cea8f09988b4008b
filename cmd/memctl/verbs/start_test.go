package verbs

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestAHookHasOneNodeStarted: where none listens, once in a while, and not while another starts
// one.
func TestAHookHasOneNodeStarted(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "memnode"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &starter{configDir: func() (string, error) { return dir, nil }, addr: l.Addr().String(), reach: new(net.Dialer).DialContext}
	started := 0
	wakes := func(at time.Time) bool {
		t.Helper()
		if c, err := s.notice(t.Context(), "tcp", s.addr); err == nil {
			_ = c.Close()
		}
		woken, err := s.wake(at, func() error { started++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return woken
	}
	if wakes(fakeNow) {
		t.Error("one that listens was started again")
	}
	_ = l.Close()
	if !wakes(fakeNow) || wakes(fakeNow.Add(startCoolDown/2)) {
		t.Error("it is started once in a while")
	}
	if !wakes(fakeNow.Add(2 * startCoolDown)) {
		t.Error("it is started again later")
	}
	if started != 2 {
		t.Errorf("%d starts", started)
	}
}

// TestHooksStartNothingWhereTheUserSaysSo, or at an address that was given.
func TestHooksStartNothingWhereTheUserSaysSo(t *testing.T) {
	for name, off := range map[string]func(*app) string{
		"--start never":       func(*app) string { return startNever },
		"an address":          func(a *app) string { a.flags.addr = "127.0.0.1:1"; return startAuto },
		"another machine":     func(a *app) string { a.flags.addr = "https://mneme.example"; return startAuto },
		"hook settings":       func(a *app) string { return startAuto },
		"nothing said at all": func(a *app) string { return startAuto },
	} {
		dir := t.TempDir()
		sys := plainSystem(nil)
		sys.configDir = func() (string, error) { return dir, nil }
		sys.getenv = func(string) string { return "" }
		sys.again = func([]string) error { return nil }
		if name == "hook settings" {
			if code := run(t.Context(), sys, []string{"hook", "settings", "start=off"}); code != 0 {
				t.Fatal(code)
			}
		}
		a := newApp(t.Context(), sys)
		hookWakes(a, off(a), func(string, ...any) {})
		if got, want := a.reach != nil, name == "nothing said at all"; got != want {
			t.Errorf("%s: it looks for a node to start: %v", name, got)
		}
	}
}

// TestServeOne: a server of one client needs one processor, unless the user says otherwise.
func TestServeOne(t *testing.T) {
	processors, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(100)
	defer func() { runtime.GOMAXPROCS(processors); debug.SetGCPercent(percent) }()
	serveOne(func(string) string { return "9" })
	if n, p := runtime.GOMAXPROCS(0), debug.SetGCPercent(100); n != processors || p != 100 {
		t.Errorf("of what the user set it is %d processors and %d %%", n, p)
	}
	serveOne(func(string) string { return "" })
	if n, p := runtime.GOMAXPROCS(0), debug.SetGCPercent(100); n != 1 || p != oneGCPercent {
		t.Errorf("it is %d processors and %d %%", n, p)
	}
}

// TestMemctlServesOne: what the world of a test leaves out, that of the program does.
func TestMemctlServesOne(t *testing.T) {
	for _, name := range []string{"GOMAXPROCS", "GOGC"} { // which would say otherwise
		t.Setenv(name, "")
	}
	processors, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(100)
	defer func() { runtime.GOMAXPROCS(processors); debug.SetGCPercent(percent) }()
	osSystem(nil).process.serveOne()
	if n, p := runtime.GOMAXPROCS(0), debug.SetGCPercent(100); n != 1 || p != oneGCPercent {
		t.Errorf("it is %d processors and %d %%", n, p)
	}
}
