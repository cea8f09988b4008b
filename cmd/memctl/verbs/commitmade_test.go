package verbs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"mneme/memory"
)

// repository is one whose commits become memories, with a node that takes them.
type repository struct {
	t      *testing.T
	dir    string
	config string
	env    map[string]string
	addr   string
	away   bool
	proxy  int // the status that something else answers with
	onSend func()
	stored []memory.Capture
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir(), config: t.TempDir(), env: map[string]string{"MNEME_NAMESPACE": "team-a"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(req.URL.Path, "/events") {
			_, _ = w.Write([]byte(`{"name":"team-a"}`))
			return
		}
		if r.onSend != nil {
			r.onSend()
		}
		if r.proxy > 0 {
			w.WriteHeader(r.proxy)
			return
		}
		if r.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var items []memory.Capture
		if err := json.NewDecoder(req.Body).Decode(&items); err != nil {
			t.Error(err)
		}
		resp := memory.CaptureResponse{Position: "p0.0.1.0", Results: []memory.CaptureResult{}}
		for _, item := range items {
			resp.Results = append(resp.Results, memory.CaptureResult{ID: item.ID, Status: memory.StatusCreated, RecordID: "01J00000000000000000000001"})
		}
		r.stored = append(r.stored, items...)
		if err := json.NewEncoder(w).Encode(resp); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	r.addr = srv.URL
	r.git("init", "-q")
	return r
}

func (r *repository) git(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (r *repository) commit(name string) {
	r.t.Helper()
	r.write(name, "x")
	r.git("add", name)
	r.git("commit", "-q", "-m", "store: add the file "+name)
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// call runs memctl in the repository.
func (r *repository) call(args ...string) (code int, said string) {
	r.t.Helper()
	var out bytes.Buffer
	sys := plainSystem(&out)
	sys.in, sys.out = strings.NewReader(""), &out
	sys.configDir = func() (string, error) { return r.config, nil }
	sys.workDir = func() (string, error) { return r.dir, nil }
	sys.getenv = func(k string) string { return r.env[k] }
	return run(r.t.Context(), sys, append(args, "--addr", r.addr)), out.String()
}

func (r *repository) unsent() []string {
	b, _ := os.ReadFile(filepath.Join(r.dir, ".git", "mneme-unsent"))
	return strings.Fields(string(b))
}

// TestACommitIsLeftAlone where hooks are off or keep nothing, and where commits are made anew.
func TestACommitIsLeftAlone(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	for name, c := range map[string]struct{ begin, end func() }{
		"capture is off": {
			func() { r.call("hook", "settings", "capture=off") }, func() { r.call("hook", "settings", "capture=on") }},
		"hooks are off": {func() { r.env["MNEME_HOOKS"] = "off" }, func() { delete(r.env, "MNEME_HOOKS") }},
		"a rebase": {
			func() { r.write(".git/rebase-merge/onto", "x") }, func() { _ = os.RemoveAll(filepath.Join(r.dir, ".git", "rebase-merge")) }},
		"another rebase": {
			func() { r.write(".git/rebase-apply/onto", "x") }, func() { _ = os.RemoveAll(filepath.Join(r.dir, ".git", "rebase-apply")) }},
	} {
		c.begin()
		code, said := r.call("hook", "commits")
		if c.end(); code != 0 || len(r.stored) > 0 || len(r.unsent()) > 0 {
			t.Errorf("%s: exit %d, %d stored, %d wait: %s", name, code, len(r.stored), len(r.unsent()), said)
		}
	}
	r.call("hook", "settings", "scope=agent")
	if code, said := r.call("hook", "commits"); code != 0 || len(r.stored) != 1 || r.stored[0].Scope != memory.ScopeAgent {
		t.Errorf("exit %d, stored %+v: %s", code, r.stored, said)
	}
}

// TestACommitIsNotedBeforeItIsSent: one whose hook is killed meanwhile is sent by the next.
func TestACommitIsNotedBeforeItIsSent(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	head, asked := gitHead(t, r.dir, "HEAD"), false
	r.onSend = func() {
		asked = true
		if got := strings.Join(r.unsent(), " "); got != head {
			t.Errorf("while it is sent %q is noted, not %s", got, head)
		}
	}
	if code, said := r.call("hook", "commits"); code != 0 || !asked || len(r.unsent()) != 0 {
		t.Errorf("exit %d, asked %v, %d wait: %s", code, asked, len(r.unsent()), said)
	}
}

// TestCommitsThatWereSentWaitedWithTheRest: where time or the node ends between two batches,
// the next hook goes on behind the first.
func TestCommitsThatWereSentWaitedWithTheRest(t *testing.T) {
	r := newRepository(t)
	var history strings.Builder
	for i := range commitBatch + 3 {
		fmt.Fprintf(&history, "commit refs/heads/all\ncommitter Ann <ann@example.org> %d +0000\ndata <<.\nstore: add the file number %d\n.\nM 644 inline f%d\ndata 1\nx\n", 1_790_000_000+i, i, i)
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", r.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(history.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.git("checkout", "-q", "all")
	out, err := exec.CommandContext(t.Context(), "git", "-C", r.dir, "rev-list", "--reverse", "HEAD~1").Output()
	if err != nil {
		t.Fatal(err)
	}
	r.write(".git/mneme-unsent", string(out))
	r.onSend = func() { r.away = len(r.stored) > 0 }
	if code, said := r.call("hook", "commits", "--connect-timeout", "1ms"); code == 0 || len(r.stored) != commitBatch || len(r.unsent()) != 3 {
		t.Errorf("exit %d, %d stored, %d wait: %s", code, len(r.stored), len(r.unsent()), said)
	}
	r.onSend, r.away = nil, false
	if code, said := r.call("hook", "commits"); code != 0 || len(r.unsent()) != 0 || r.stored[len(r.stored)-1].ID != "commit-"+gitHead(t, r.dir, "HEAD") {
		t.Errorf("exit %d, %d wait: %s", code, len(r.unsent()), said)
	}
}

// TestUnsentCommitsAreBounded: the latest are kept.
func TestUnsentCommitsAreBounded(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	r.write(".git/mneme-unsent", strings.Repeat(strings.Repeat("f", 40)+"\n", maxUnsent+9))
	r.away = true
	if _, said := r.call("hook", "commits", "--connect-timeout", "1ms"); !strings.Contains(said, "10 commits that waited longest wait no more") || !strings.Contains(said, "memctl hook commits --since 90d") {
		t.Errorf("what goes is not said: %s", said)
	}
	if all := r.unsent(); len(all) != maxUnsent || all[maxUnsent-1] != gitHead(t, r.dir, "HEAD") {
		t.Errorf("%d wait, the last is %s", len(all), all[len(all)-1])
	}
}

// TestACommitThatWasNotNotedWasNotSaid: another call held the lock for as long as one waits.
func TestACommitThatWasNotNotedWasNotSaid(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	lock := flock.New(filepath.Join(r.dir, ".git", "mneme-unsent.lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	if code, said := r.call("hook", "commits"); code == 0 || !strings.Contains(said, "this commit was not noted") || !strings.Contains(said, "memctl hook commits --since 90d") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestCommitsThatWereMadeAtOnceWereLost: where the node does not answer, a call sends for as long as another one waits.
func TestCommitsThatWereMadeAtOnceWereLost(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	sending := flock.New(filepath.Join(r.dir, ".git", "mneme-unsent.sending"))
	if err := sending.Lock(); err != nil {
		t.Fatal(err)
	}
	if code, said := r.call("hook", "commits"); code == 0 || !strings.Contains(said, "this one waits for the next") || strings.Join(r.unsent(), " ") != gitHead(t, r.dir, "HEAD") {
		t.Errorf("exit %d, %q wait: %s", code, r.unsent(), said)
	}
	if err := sending.Unlock(); err != nil {
		t.Fatal(err)
	}
	r.commit("b.go")
	meanwhile := strings.Repeat("f", 40)
	r.onSend = func() {
		if err := (unsent{filepath.Join(r.dir, ".git", "mneme-unsent")}).change(t.Context(), func(all []string) []string { return append(all, meanwhile) }); err != nil {
			t.Error(err)
		}
	}
	if code, said := r.call("hook", "commits"); code != 0 || len(r.stored) != 2 || strings.Join(r.unsent(), " ") != meanwhile {
		t.Errorf("exit %d, %d stored, %q wait: %s", code, len(r.stored), r.unsent(), said)
	}
}

// TestALineThatIsNoHashWasAnOptionOfGit, which wrote over any file of the user's.
func TestALineThatIsNoHashWasAnOptionOfGit(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	file := filepath.Join(t.TempDir(), "written")
	if err := os.WriteFile(filepath.Join(r.dir, ".git", "mneme-unsent"), []byte("--output="+file+"\nHEAD~50"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := r.call("hook", "commits"); code != 0 || len(r.stored) != 1 || len(r.unsent()) != 0 {
		t.Errorf("exit %d, %d stored, %q wait: %s", code, len(r.stored), r.unsent(), said)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("Git wrote it")
	}
}

// TestACommitWaitsWhateverAProxyAnswers.
func TestACommitWaitsWhateverAProxyAnswers(t *testing.T) {
	r := newRepository(t)
	r.commit("a.go")
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge} {
		r.proxy = status
		if code, said := r.call("hook", "commits"); code == 0 || len(r.unsent()) != 1 {
			t.Errorf("%d: exit %d, %d wait: %s", status, code, len(r.unsent()), said)
		}
	}
	r.proxy = 0
	if code, said := r.call("hook", "commits"); code != 0 || len(r.unsent()) != 0 || len(r.stored) != 1 {
		t.Errorf("exit %d, %d wait: %s", code, len(r.unsent()), said)
	}
}

// TestSharedHooksAreNotEdited: what is in them runs for each repository of the user.
func TestSharedHooksAreNotEdited(t *testing.T) {
	r := newRepository(t)
	shared := t.TempDir()
	global := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(global, []byte("[core]\n\thooksPath = "+filepath.ToSlash(shared)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	code, said := r.call("integrate", "git", "-n", "team-a")
	if code != 2 || !strings.Contains(said, "core.hooksPath") {
		t.Errorf("exit %d: %s", code, said)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("written: %v, %v", left, err)
	}
	// The remedy works, in a worktree as well, where a relative path leads to no folder.
	main := r.dir
	r.commit("a.go")
	tree := filepath.Join(t.TempDir(), "of it")
	r.git("worktree", "add", "-q", "-b", "other", tree)
	r.dir = tree
	for _, relative := range []bool{false, true} {
		if relative {
			r.git("config", "--local", "core.hooksPath", ".git/hooks")
		}
		code, said := r.call("integrate", "git", "-n", "team-a")
		_, remedy, _ := strings.Cut(said, "`")
		remedy, _, _ = strings.Cut(remedy, "`")
		if code != 2 || !strings.HasPrefix(remedy, "git -C ") {
			t.Fatalf("exit %d: %s", code, said)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", remedy).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", remedy, err, out)
		}
		if code, said := r.call("integrate", "git", "-n", "team-a"); code != 0 {
			t.Errorf("exit %d: %s", code, said)
		}
		if _, err := os.Stat(filepath.Join(main, ".git", "hooks", "post-commit")); err != nil {
			t.Error(err)
		}
	}
}

// TestHooksAreOff, whatever is sent.
func TestHooksAreOff(t *testing.T) {
	r := newRepository(t)
	r.env["MNEME_HOOKS"] = "off"
	var out bytes.Buffer
	sys := plainSystem(&out)
	sys.in, sys.out = strings.NewReader(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Remember that deploys happen on Tuesdays."}`), &out
	sys.configDir = func() (string, error) { return r.config, nil }
	sys.getenv = func(k string) string { return r.env[k] }
	if code := run(t.Context(), sys, []string{"hook", "--agent", "claude-code", "--addr", r.addr}); code != 0 || out.Len() > 0 {
		t.Errorf("exit %d: %s", code, out.String())
	}
	if _, err := os.Stat(filepath.Join(r.config, "mneme", "hooks")); !os.IsNotExist(err) {
		t.Errorf("something is kept: %v", err)
	}
}
