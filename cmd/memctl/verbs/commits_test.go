package verbs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// A commit that the node could not take yet is sent with the next one.
func TestACommitWaitsForANodeThatIsBusy(t *testing.T) {
	repo := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + repo, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(name, subject string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", name)
		git("commit", "-q", "-m", subject)
	}
	git("init", "-q")
	busy, stored := true, []string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []memory.Capture
		if err := json.NewDecoder(r.Body).Decode(&items); err != nil {
			t.Error(err)
		}
		resp := memory.CaptureResponse{Position: "p0.0.1.0", Results: []memory.CaptureResult{}}
		for i, item := range items {
			res := memory.CaptureResult{ID: item.ID, Status: memory.StatusCreated, RecordID: "01J00000000000000000000001"}
			if busy && i > 0 { // the first is taken
				res = memory.CaptureResult{ID: item.ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: memory.CodeOverloaded, Detail: "too busy"}}
			} else {
				subject, _, _ := strings.Cut(item.Text, "\n")
				stored = append(stored, subject)
			}
			resp.Results = append(resp.Results, res)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(resp); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	call := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		sys := hookSystem(t, strings.NewReader(""), &out, &errs)
		sys.workDir = func() (string, error) { return repo, nil }
		if code := run(t.Context(), sys, append([]string{"hook", "commits", "--addr", srv.URL}, args...)); code != 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String()
	}
	commit("a.go", "store: keep the index in memory")
	call()
	commit("b.go", "store: drop the index again")
	if err := os.WriteFile(filepath.Join(repo, ".git", "mneme-unsent"), []byte(gitHead(t, repo, "HEAD~1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := call(); !strings.Contains(said, "1 waits for the next commit") || strings.Contains(said, "refused") {
		t.Errorf("a busy node: %q", said)
	}
	busy = false
	commit("c.go", "store: count what is read")
	call()
	if want := "store: keep the index in memory; store: keep the index in memory; store: drop the index again; store: count what is read"; strings.Join(stored, "; ") != want {
		t.Errorf("stored %q", stored)
	}
	if unsent, err := os.ReadFile(filepath.Join(repo, ".git", "mneme-unsent")); err != nil || len(unsent) != 0 {
		t.Errorf("unsent is %q, %v", unsent, err)
	}
}

func gitHead(t *testing.T, repo, rev string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", repo, "rev-parse", rev).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
