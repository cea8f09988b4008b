package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
)

// waiting has captures wait for the node of a desk, in order.
func (d *desk) waiting(n int) (texts []string) {
	d.t.Helper()
	d.env["MNEME_NAMESPACE"] = "default"
	for i := range n {
		texts = append(texts, fmt.Sprintf("Remember that rule number %d holds.", i))
		d.away(".", texts[i])
	}
	return texts
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come about", what)
		}
	}
}

// TestADetachedDrainSends: what a hook starts is memctl itself, which outlives it, works in another folder, and
// needs the files that the hook was given.
func TestADetachedDrainSends(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, "default")
	want := d.waiting(3)
	const token = "a-token-of-24-characters"
	d.node.mu.Lock()
	d.node.token = token
	d.node.mu.Unlock()
	home := filepath.Join(d.dir, "home")
	config := filepath.Join(d.dir, "config")
	for name, text := range map[string]string{filepath.Join(d.dir, "token"): token, filepath.Join(home, "token"): "another-one-of-24-letters"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(self, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "--addr", d.addr, "--token-file", "token", "--start", "never")
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), beMemctl+"=1", "MNEME_NAMESPACE=default", "HOME="+home, "USERPROFILE="+home, "XDG_CONFIG_HOME="+config, "AppData="+config)
	if runtime.GOOS == "darwin" { // where the configuration lies below the home
		library := filepath.Join(home, "Library")
		if err := errors.Join(os.Mkdir(library, 0o700), os.Symlink(config, filepath.Join(library, "Application Support"))); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := json.Marshal(map[string]string{"session_id": "s", "cwd": d.dir, "prompt": "when do deploys happen?"})
	cmd.Stdin = bytes.NewReader(b)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, "what waits is sent", func() bool {
		spool, err := os.ReadDir(filepath.Join(config, "mneme", "hooks", "spool"))
		return err == nil && len(spool) == 0
	})
	ended := flock.New(filepath.Join(config, "mneme", "hooks", "drain.lock"))
	if err := ended.Lock(); err != nil { // it is through with its files
		t.Fatal(err)
	}
	_ = ended.Close()
	if got := d.kept("default"); !slices.Equal(got, want) {
		t.Errorf("%q are kept", got)
	}
}

// TestADetachedDrainLeavesToAnotherWhatThatOneSends: it does not wait for its turn, as nobody waits for it.
func TestADetachedDrainLeavesToAnotherWhatThatOneSends(t *testing.T) {
	d := newDesk(t, "default")
	want := d.waiting(2)
	lock := flock.New(filepath.Join(d.dir, "config", "mneme", "hooks", "drain.lock"))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	defer func() { _ = lock.Close() }()
	ended := make(chan string)
	go func() {
		code, said := d.call(".", "", "hook", "drain", "--alone")
		ended <- fmt.Sprint(code, said)
	}()
	select {
	case got := <-ended:
		if got != "0" || len(d.kept("default")) > 0 {
			t.Errorf("%s, %q are kept", got, d.kept("default"))
		}
	case <-time.After(time.Minute):
		t.Error("it waits for the other one")
		_ = lock.Unlock()
		<-ended
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if code, said := d.call(".", "", "hook", "drain", "--alone"); code != 0 || said != "" || !slices.Equal(d.kept("default"), want) {
		t.Errorf("exit %d, %q are kept: %s", code, d.kept("default"), said)
	}
}

// slowly answers as a node that takes a second for each request, and notes when captures came.
type slowly struct {
	node     http.Handler
	asked    int
	captures []time.Time
}

func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	if strings.HasSuffix(r.URL.Path, "/events") {
		s.captures = append(s.captures, time.Now())
	}
	time.Sleep(time.Second)
	w := httptest.NewRecorder()
	s.node.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestADetachedDrainLeavesTheNodeTime: after each capture as much as that took, for the hooks that come meanwhile.
// One that a person calls, and waits for, does not.
func TestADetachedDrainLeavesTheNodeTime(t *testing.T) {
	for flag, times := range map[string]time.Duration{"--alone": 2, "--alone=false": 1} {
		t.Run(flag, func(t *testing.T) {
			d := newDesk(t, "default")
			want := d.waiting(3)
			synctest.Test(t, func(t *testing.T) {
				node := &slowly{node: d.node.handler()}
				var out, errs bytes.Buffer
				sys := userSystem(d.dir, ".", d.addr, &out, &errs)
				sys.http = &http.Client{Transport: node}
				began := time.Now()
				if code := run(context.Background(), sys, []string{"hook", "drain", flag}); code != 0 {
					t.Errorf("exit %d: %s", code, errs.String())
				}
				busy := time.Duration(node.asked) * time.Second
				if took := time.Since(began); took != times*busy {
					t.Errorf("the node was busy for %s of %s", busy, took)
				}
				for i, at := range node.captures[1:] {
					if after := at.Sub(node.captures[i]); after != times*busy/3 {
						t.Errorf("capture %d came %s after the one before", i+1, after)
					}
				}
			})
			if !slices.Equal(d.kept("default"), want) {
				t.Errorf("%q are kept", d.kept("default"))
			}
		})
	}
}
