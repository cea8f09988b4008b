package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// hookSystem is a world with a folder of its own and no node.
func hookSystem(t *testing.T, in io.Reader, out, errs io.Writer) system {
	t.Helper()
	dir := t.TempDir()
	sys := plainSystem(errs)
	sys.in, sys.out = in, out
	sys.configDir = func() (string, error) { return dir, nil }
	getenv := sys.getenv
	sys.getenv = func(k string) string {
		if k == "MNEME_NAMESPACE" {
			return "team-a"
		}
		return getenv(k)
	}
	return sys
}

// TestAHookEndsWellWhateverIsSent: huge, random and cut input ends with 0, without a word to the
// host, and without a trace of a defect.
func TestAHookEndsWellWhateverIsSent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	whole := `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Remember that deploys happen on Tuesdays."}`
	inputs := map[string]string{
		"nothing": "", "random": string(noise), "deep": strings.Repeat(`{"a":`, 100_000), "huge": `{"prompt":"` + strings.Repeat("x", 5<<20) + `"}`,
		"a long prompt": `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"` + strings.Repeat("always x ", 400_000) + `"}`, "utf-16": "\xff\xfe{\x00}\x00",
	}
	for range 20 {
		n := random.IntN(len(whole))
		inputs[whole[:n]] = whole[:n]
	}
	for name, in := range inputs {
		var out, errs bytes.Buffer
		if code := run(t.Context(), hookSystem(t, strings.NewReader(in), &out, &errs), []string{"hook", "--agent", "claude-code"}); code != 0 {
			t.Errorf("%.60q ends with %d: %.300s", name, code, errs.String())
		}
		if out.Len() > 0 {
			t.Errorf("%.60q is answered %.100q", name, out.String())
		}
		if strings.Contains(errs.String(), "defect") || strings.Contains(errs.String(), "Tuesdays") {
			t.Errorf("%.60q: %.3000s", name, errs.String())
		}
	}
}

// TestAHookDoesNotWaitForAHostThatSendsNothing.
func TestAHookDoesNotWaitForAHostThatSendsNothing(t *testing.T) {
	r, w := io.Pipe()
	var errs bytes.Buffer
	done := make(chan int, 1)
	sys := hookSystem(t, r, io.Discard, &errs)
	go func() { done <- run(t.Context(), sys, []string{"hook", "--agent", "claude-code"}) }()
	select {
	case code := <-done:
		if code != 0 || !strings.Contains(errs.String(), "did not end what it sends within 3s") {
			t.Errorf("%d: %s", code, errs.String())
		}
	case <-time.After(time.Minute):
		t.Error("it waits still")
	}
	_ = w.Close()
}

// TestAHookWithoutAFolder: a user's folder that cannot be used costs the memories, not the
// agent.
func TestAHookWithoutAFolder(t *testing.T) {
	var out, errs bytes.Buffer
	sys := hookSystem(t, strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Remember that deploys happen on Tuesdays."}`), &out, &errs)
	sys.configDir = func() (string, error) { return "/dev/null/no", nil }
	if code := run(t.Context(), sys, []string{"hook", "--agent", "claude-code"}); code != 0 || out.Len() > 0 || errs.Len() == 0 {
		t.Errorf("%d, %q, %s", code, out.String(), errs.String())
	}
}

// TestAHookOutlivesItsPipes: a host that reads neither answer nor standard error, or is gone,
// costs no memory, and the hook ends with 0.
func TestAHookOutlivesItsPipes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const said = "Remember that deploys happen on Tuesdays."
	for _, c := range []struct {
		name     string
		out, err bool // is read
		away     bool // the node is
	}{
		{"no answer is read", false, true, false},
		{"no notes are read, and the node is away", true, false, true},
		{"nothing is read", false, false, false},
		{"nothing is read, and the node is away", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newFakeNode()
			server := httptest.NewServer(n.handler())
			defer server.Close()
			dir, addr := t.TempDir(), server.URL
			call := func(args ...string) *exec.Cmd {
				cmd := exec.Command(self, args...)
				cmd.Env = append(os.Environ(), beMemctl+"=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "AppData="+dir, "MNEME_NAMESPACE=team-a", "MNEME_ADDR="+addr)
				return cmd
			}
			for _, args := range [][]string{{"namespace", "create", "team-a"}, {"capture", "We once said: " + said}} {
				if out, err := call(args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			if c.away {
				addr = "127.0.0.1:1"
			}
			cmd := call("hook", "--agent", "claude-code")
			cmd.Stdin = strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"` + said + `"}`)
			var closed []*os.File
			unread := func(read bool) io.Writer {
				if read {
					return io.Discard
				}
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				_ = r.Close()
				closed = append(closed, w)
				return w
			}
			cmd.Stdout, cmd.Stderr = unread(c.out), unread(c.err)
			if err := cmd.Run(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			for _, w := range closed {
				_ = w.Close()
			}
			spool, err := filepath.Glob(filepath.Join(dir, "*", "hooks", "spool", "*"))
			more, _ := filepath.Glob(filepath.Join(dir, "*", "*", "mneme", "hooks", "spool", "*")) // macOS
			n.mu.Lock()
			defer n.mu.Unlock()
			if kept := len(n.namespaces["team-a"].records) - 1 + len(spool) + len(more); err != nil || kept != 1 {
				t.Errorf("%d are kept, %v", kept, err)
			}
		})
	}
}

// TestADrainSaysWhyWhatWaitsWaits: without a token it asked whether the node runs.
func TestADrainSaysWhyWhatWaitsWaits(t *testing.T) {
	addr, _ := tokenNode(t, "a-token-of-24-characters")
	dir := t.TempDir()
	call := func(input string, args ...string) (code int, said string) {
		t.Helper()
		var out, errs bytes.Buffer
		sys := userSystem(dir, ".", addr, &out, &errs)
		sys.in = strings.NewReader(input)
		code = run(t.Context(), sys, args)
		return code, errs.String()
	}
	if code, said := call(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "shop"); code != 0 {
		t.Fatalf("the hook ends with %d: %s", code, said)
	}
	code, said := call("", "hook", "drain")
	if code != 4 || !strings.Contains(said, "memctl: 1 capture of 1 wait still: ") || !strings.Contains(said, "this node asks for a token") || !strings.Contains(said, "hint: give --token-file FILE or set MNEME_TOKEN") {
		t.Errorf("exit %d: %s", code, said)
	}
	if strings.Contains(said, "is the node running") {
		t.Errorf("it asks for something else: %s", said)
	}
}

// TestTheTextOfAnEventStoodInTheLog: a host may pass it as an argument where it should not, as the entry of
// a host that was written by hand does.
func TestTheTextOfAnEventStoodInTheLog(t *testing.T) {
	secret := "the password of the shop is hunter2"
	for _, args := range [][]string{{`{"type":"agent-turn-complete","last-assistant-message":"` + secret + `"}`}, {secret}, {"- " + secret}, {"--" + secret}, {"--notify=" + secret},
		{"--agent", secret}, {"--event", secret}, {"--notify", secret}, {"--timeout", secret}, {"-n", secret}, {"--addr", secret}, {"--as", secret}, {"--start", secret}, {"hunter2"}, {strings.Repeat("hunter-", 5)}} {
		dir := t.TempDir()
		var out, errs bytes.Buffer
		sys := userSystem(dir, ".", "http://127.0.0.1:1", &out, &errs)
		if slices.Contains([]string{"--agent", "-n", "--addr", "--as", "--start"}, args[0]) { // what comes first would be wrong else
			sys.in = strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"when is lunch?"}`)
		}
		if code := run(t.Context(), sys, append([]string{"hook", "-n", "shop"}, args...)); code != 0 {
			t.Errorf("%q ends with %d", args, code)
		}
		log, err := os.ReadFile(filepath.Join(dir, "config", "mneme", "hooks", "log"))
		if err != nil || !bytes.Contains(log, []byte("memctl hook: ")) || strings.Contains(string(log)+errs.String(), "hunter") {
			t.Errorf("%q: %s%v", args, log, err)
		}
	}
	var out, errs bytes.Buffer
	if run(t.Context(), userSystem(t.TempDir(), ".", "http://127.0.0.1:1", &out, &errs), []string{"hook", "drian"}); !strings.Contains(errs.String(), `"drian" is no command`) {
		t.Errorf("a word that was mistyped: %s", errs.String())
	}
}

// TestALostKeyWasNotSaid, to whoever comes first.
func TestALostKeyWasNotSaid(t *testing.T) {
	for _, args := range [][]string{{"recalls"}, {"hook", "drain"}, {"hook", "--agent", "claude-code", "-n", "shop"}} {
		dir := t.TempDir()
		call := func(args ...string) string {
			t.Helper()
			var out, errs bytes.Buffer
			sys := userSystem(dir, ".", "http://127.0.0.1:1", &out, &errs)
			sys.in = strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Remember that deploys happen on Tuesdays."}`)
			run(t.Context(), sys, args)
			return errs.String()
		}
		call("hook", "--agent", "claude-code", "-n", "shop")
		keys, err := filepath.Glob(filepath.Join(dir, "config", "mneme", "hooks", "key*"))
		if err != nil || len(keys) != 2 {
			t.Fatal(keys, err)
		}
		for _, key := range keys {
			if err := os.Remove(key); err != nil {
				t.Fatal(err)
			}
		}
		if said := call(args...); !strings.Contains(said, "was made anew; what waited before (1 in the spool)") || !strings.Contains(said, "copy the former key, from a copy of ") {
			t.Errorf("%q: %s", args, said)
		}
	}
}

// fakeServer serves a fake node, which takes nothing while down is set.
func fakeServer(t *testing.T, n *fakeNode) (server *httptest.Server, down *atomic.Bool) {
	t.Helper()
	down = &atomic.Bool{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		n.handler().ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server, down
}

// TestAHookHasAnotherProcessSendWhatWaits: the host waits for the hook's own work alone.
func TestAHookHasAnotherProcessSendWhatWaits(t *testing.T) {
	n := newFakeNode()
	server, down := fakeServer(t, n)
	dir, token := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-24-characters"), 0o600); err != nil {
		t.Fatal(err)
	}
	var started [][]string
	var failing error
	call := func(input string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		sys := userSystem(dir, ".", "", &out, &errs)
		sys.in = strings.NewReader(input)
		sys.again = func(args []string) error { started = append(started, args); return failing }
		if code := run(t.Context(), sys, append(args, "--addr", server.URL, "--token-file", token)); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		return out.String() + errs.String()
	}
	hook := func(prompt string) string {
		t.Helper()
		return call(`{"session_id":"s","prompt":"`+prompt+`"}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "shop")
	}
	call("", "namespace", "create", "shop")
	down.Store(true)
	for _, day := range []string{"Mondays", "Tuesdays", "Fridays"} {
		hook("Remember that deploys happen on " + day + ".")
	}
	if len(started) != 0 {
		t.Errorf("while the node is away %v is started", started)
	}
	down.Store(false)
	hook("when do deploys happen?")
	kept := func() (texts []string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, r := range n.namespaces["shop"].records {
			texts = append(texts, r.current().Text)
		}
		return texts
	}
	if want := []string{"hook", "drain", "--alone", "--start", "auto", "--addr", server.URL, "--token-file", token}; len(kept()) != 1 || len(started) != 1 || !slices.Equal(started[0], want) {
		t.Fatalf("%q are kept, %v is started", kept(), started)
	}
	if said := call("", started[0][:5]...); said != "" {
		t.Errorf("it says %q", said)
	}
	if want := []string{"Remember that deploys happen on Mondays.", "Remember that deploys happen on Tuesdays.", "Remember that deploys happen on Fridays."}; !slices.Equal(kept(), want) || len(started) != 1 {
		t.Errorf("%q are kept, %v is started", kept(), started)
	}
	// Where no other process can be started, it does what it can.
	down.Store(true)
	hook("Remember that the pumpkin is ripe.")
	hook("Remember that the walrus is asleep.")
	down.Store(false)
	failing = errors.New("no more processes")
	if said := hook("when do deploys happen?"); len(kept()) != 5 || len(started) != 2 || !strings.Contains(said, "no more processes") {
		t.Errorf("%q are kept: %s", kept(), said)
	}
}

// TestNothingIsStartedForANodeThatFails: what waits for it is not tried by another process, for it has
// just been slow to fail.
func TestNothingIsStartedForANodeThatFails(t *testing.T) {
	n := newFakeNode()
	var down, slow atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		search := strings.HasSuffix(r.URL.Path, "/search")
		if body, _ := io.ReadAll(r.Body); slow.Load() && search && bytes.Contains(body, []byte("inject")) {
			time.Sleep(400 * time.Millisecond) // longer than a node may take to fail without being left alone
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		} else if r.Body = io.NopCloser(bytes.NewReader(body)); down.Load() {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		n.handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	dir, started := t.TempDir(), 0
	call := func(input string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		sys := userSystem(dir, ".", server.URL, &out, &errs)
		sys.in = strings.NewReader(input)
		sys.again = func([]string) error { started++; return nil }
		if code := run(t.Context(), sys, args); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		return errs.String()
	}
	hook := func(prompt string) string {
		t.Helper()
		return call(`{"session_id":"s","prompt":"`+prompt+`"}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "shop")
	}
	call("", "namespace", "create", "shop")
	down.Store(true)
	hook("Remember that deploys happen on Tuesdays.")
	hook("Remember that releases happen on Fridays.")
	down.Store(false)
	slow.Store(true)
	if said := hook("when do deploys happen?"); started != 0 || !strings.Contains(said, "recall: ") {
		t.Errorf("%d are started: %s", started, said)
	}
	slow.Store(false)
	if hook("when do releases happen?"); started != 0 {
		t.Error("a node that is left alone is asked")
	}
}

// TestWhereAProjectIsWorkedOnIsNotedUnderTheLock: two hooks in two clones at once would each take the
// other's place away. One that cannot have the lock goes on without, and the next one notes it.
func TestWhereAProjectIsWorkedOnIsNotedUnderTheLock(t *testing.T) {
	dir := t.TempDir()
	n := newFakeNode()
	server := httptest.NewServer(n.handler())
	defer server.Close()
	for _, clone := range []string{"a", "b"} {
		if err := makeRepository(filepath.Join(dir, clone), "https://github.com/acme/shop"); err != nil {
			t.Fatal(err)
		}
	}
	call := func(in, input string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		sys := userSystem(dir, in, server.URL, &out, &errs)
		sys.in = strings.NewReader(input)
		if code := run(t.Context(), sys, args); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		return out.String() + errs.String()
	}
	hook := func() string {
		t.Helper()
		b, _ := json.Marshal(map[string]string{"session_id": "s", "cwd": filepath.Join(dir, "b"), "prompt": "go on"})
		return call("b", string(b), "hook", "--agent", "claude-code", "--event", "UserPromptSubmit")
	}
	call("a", "", "project", "use", "shop", "--create")
	a := newApp(t.Context(), userSystem(dir, "a", server.URL, new(bytes.Buffer), new(bytes.Buffer)))
	letGo, err := projectsOf(a).hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if said := hook(); !strings.Contains(said, "where the project is worked on was not noted") || strings.Contains(said, "another place") {
		t.Errorf("beside another one: %s", said)
	}
	letGo()
	if said := hook(); !strings.Contains(said, "another place of the project github.com/acme/shop") {
		t.Errorf("the next one: %s", said)
	}
	if said := hook(); strings.Contains(said, "another place") {
		t.Errorf("it is said again: %s", said)
	}
}

// TestADefectWhileSendingStopsNoAgent: it is noted, and the hook ends well.
func TestADefectWhileSendingStopsNoAgent(t *testing.T) {
	var out, errs bytes.Buffer
	sys := hookSystem(t, strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Remember that deploys happen on Tuesdays."}`), &out, &errs)
	sys.http = &http.Client{Transport: defect{}}
	if code := run(t.Context(), sys, []string{"hook", "--agent", "claude-code"}); code != 0 || out.Len() > 0 || !strings.Contains(errs.String(), "defect: the transport is broken") {
		t.Errorf("exit %d: %q, %s", code, out.String(), errs.String())
	}
}

type defect struct{}

func (defect) RoundTrip(*http.Request) (*http.Response, error) { panic("the transport is broken") }

// TestADrainWaitsForTheOneThatSends, as a hook does not.
func TestADrainWaitsForTheOneThatSends(t *testing.T) {
	n := newFakeNode()
	server, down := fakeServer(t, n)
	dir := t.TempDir()
	call := func(input string, args ...string) (int, string) {
		var out, errs bytes.Buffer
		sys := userSystem(dir, ".", server.URL, &out, &errs)
		sys.in = strings.NewReader(input)
		return run(t.Context(), sys, args), out.String() + errs.String()
	}
	call("", "namespace", "create", "shop")
	down.Store(true)
	call(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "shop")
	down.Store(false)
	lock := flock.New(filepath.Join(dir, "config", "mneme", "hooks", "drain.lock"))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	release := time.AfterFunc(50*time.Millisecond, func() { _ = lock.Unlock() })
	defer release.Stop()
	if code, said := call("", "hook", "drain"); code != 0 || !strings.Contains(said, "1 capture sent") {
		t.Errorf("exit %d: %s", code, said)
	}
}
