package verbs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// desk is a user's machine with a node that may be away, on which hooks name no namespace.
type desk struct {
	t    *testing.T
	dir  string
	node *fakeNode
	addr string // where the node is
	down *atomic.Bool
	env  map[string]string
}

func newDesk(t *testing.T, namespaces ...string) *desk {
	t.Helper()
	n := newFakeNode()
	server, down := fakeServer(t, n)
	d := &desk{t: t, dir: t.TempDir(), node: n, addr: server.URL, down: down, env: map[string]string{}}
	for _, ns := range namespaces {
		d.call("", "", "namespace", "create", ns)
	}
	return d
}

// call is one in a folder below the user's, and what it says.
func (d *desk) call(in, input string, args ...string) (code int, said string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	sys := userSystem(d.dir, in, d.addr, &out, &errs)
	sys.in = strings.NewReader(input)
	getenv := sys.getenv
	sys.getenv = func(k string) string { return first(d.env[k], getenv(k)) }
	code = run(d.t.Context(), sys, args)
	return code, out.String() + errs.String()
}

// away is a hook in a folder while the node is.
func (d *desk) away(in, prompt string) (said string) {
	d.t.Helper()
	d.down.Store(true)
	defer d.down.Store(false)
	b, _ := json.Marshal(map[string]string{"session_id": "s", "cwd": filepath.Join(d.dir, in), "prompt": prompt})
	code, said := d.call(".", string(b), "hook", "--agent", "claude-code", "--event", "UserPromptSubmit")
	if code != 0 {
		d.t.Fatalf("exit %d: %s", code, said)
	}
	return said
}

func (d *desk) kept(ns string) (texts []string) {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	for _, r := range d.node.namespaces[ns].records {
		texts = append(texts, r.current().Text)
	}
	return texts
}

func (d *desk) repository(name, remote string) {
	d.t.Helper()
	if err := makeRepository(filepath.Join(d.dir, name), remote); err != nil {
		d.t.Fatal(err)
	}
}

const tuesdays = "Remember that deploys happen on Tuesdays."

// TestAHookWithoutANamespaceKeptNothing while the node was away. What is said goes to the namespace that it would
// go to when it is sent.
func TestAHookWithoutANamespaceKeptNothing(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces []string
		meanwhile  func(d *desk)
		want       string
	}{
		"the only one":               {[]string{"default"}, func(*desk) {}, "default"},
		"the one that is remembered": {[]string{"default", "mine"}, func(d *desk) { d.call(".", "", "use", "mine") }, "mine"},
		"the one that is remembered, of a project that is gone": {[]string{"default", "mine"}, func(d *desk) {
			d.repository("other", "git@github.com:acme/other.git")
			d.call("other", "", "project", "use", "default")
			d.call(".", "", "use", "mine")
			if err := os.RemoveAll(filepath.Join(d.dir, "shop")); err != nil {
				d.t.Fatal(err)
			}
		}, "mine"},
		"the project's": {[]string{"default", "shop"}, func(d *desk) { d.call("shop", "", "use", "default"); d.call("shop", "", "project", "use", "shop") }, "shop"},
		"the project's, elsewhere": {[]string{"default", "shop"}, func(d *desk) {
			d.repository("other", "git@github.com:acme/shop.git")
			d.call("other", "", "project", "use", "shop")
		}, "shop"},
		"the project's, which is gone": {[]string{"default", "shop"}, func(d *desk) {
			d.repository("other", "git@github.com:acme/shop.git")
			d.call("other", "", "project", "use", "shop")
			if err := os.RemoveAll(filepath.Join(d.dir, "shop")); err != nil {
				d.t.Fatal(err)
			}
		}, "shop"},
		"the project's, whose place another one has": {[]string{"default", "shop"}, func(d *desk) {
			d.repository("other", "git@github.com:acme/shop.git")
			d.call("other", "", "project", "use", "shop")
			d.repository("shop", "https://github.com/acme/moon")
			d.call("shop", "", "project", "use", "default")
		}, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.namespaces...)
			d.repository("shop", "https://github.com/acme/shop")
			where := filepath.Join(d.dir, "shop")
			if said := d.away("shop", tuesdays); !strings.Contains(said, "the node cannot be asked where memories of "+where+" go, what is kept waits for that: ") || !strings.Contains(said, "captures wait") {
				t.Error(said)
			}
			c.meanwhile(d)
			if code, said := d.call(".", "", "hook", "drain"); code != 0 || !strings.Contains(said, "1 capture sent") || !slices.Equal(d.kept(c.want), []string{tuesdays}) {
				t.Errorf("exit %d, %q: %s", code, d.kept(c.want), said)
			}
		})
	}
}

// TestWhatIsNotDecidedIsNotGuessed: of two namespaces, or two that a project may have. It waits, with the command
// that decides it, and what another call names decides nothing.
func TestWhatIsNotDecidedIsNotGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		lies   func(d *desk)
		why    string
		hint   string
		decide []string
	}{
		"two namespaces, in a project": {"shop", func(*desk) {}, "there are 2 namespaces, and none was chosen", "`memctl project use NAMESPACE` in DIR/shop decides", []string{"project", "use", "team"}},
		"two namespaces, in a folder":  {"plain", func(*desk) {}, "there are 2 namespaces, and none was chosen", "`memctl use NAMESPACE` decides", []string{"use", "team"}},
		"two remotes": {"shop", func(d *desk) {
			d.repository("up", "https://github.com/up/shop")
			d.call("up", "", "project", "use", "default")
			f := filepath.Join(d.dir, "shop", ".git", "config")
			b, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(f, append(b, "[remote \"upstream\"]\n\turl = https://github.com/up/shop\n"...), 0o644)
			}
			if err != nil {
				d.t.Fatal(err)
			}
		}, "is project github.com/acme/shop, which has no namespace, and project github.com/up/shop, whose namespace is default", "`memctl project use NAMESPACE` in DIR/shop decides", []string{"project", "use", "team"}},
		"another project at its place": {"shop", func(d *desk) { d.repository("shop", "https://github.com/acme/moon") }, "there are 2 namespaces, and none was chosen", "`memctl project use NAMESPACE` in a clone of github.com/acme/shop decides", nil},
		"a damaged file": {"shop", func(d *desk) {
			if err := os.WriteFile(filepath.Join(d.dir, "config", "mneme", "projects.json"), []byte("{"), 0o600); err != nil {
				d.t.Fatal(err)
			}
		}, "projects.json is damaged", "correct it, or delete it", nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, "default", "team")
			d.repository("shop", "https://github.com/acme/shop")
			if err := os.Mkdir(filepath.Join(d.dir, "plain"), 0o700); err != nil {
				t.Fatal(err)
			}
			d.away(c.in, tuesdays)
			c.lies(d)
			hint := strings.ReplaceAll(c.hint, "DIR", d.dir)
			stays := func(args ...string) {
				t.Helper()
				code, said := d.call("plain", "", append([]string{"hook", "drain"}, args...)...)
				if code != 5 || !strings.Contains(said, "memctl: 1 capture of 1 wait still: it is not decided where memories of "+filepath.Join(d.dir, c.in)+" go: ") ||
					!strings.Contains(said, c.why) || !strings.Contains(said, "hint: "+hint) {
					t.Errorf("exit %d: %s", code, said)
				}
			}
			stays()
			stays("-n", "team")
			d.env["MNEME_NAMESPACE"] = "team"
			stays()
			delete(d.env, "MNEME_NAMESPACE")
			log, err := os.ReadFile(filepath.Join(d.dir, "config", "mneme", "hooks", "log"))
			if err != nil || !bytes.Contains(log, []byte(hint)) || bytes.Contains(log, []byte("Tuesdays")) {
				t.Errorf("%s%v", log, err)
			}
			if len(d.kept("default"))+len(d.kept("team")) > 0 {
				t.Fatal("it was guessed")
			}
			if c.decide == nil {
				return
			}
			if code, said := d.call(c.in, "", c.decide...); code != 0 {
				t.Fatalf("exit %d: %s", code, said)
			}
			if code, said := d.call("plain", "", "hook", "drain"); code != 0 || !slices.Equal(d.kept("team"), []string{tuesdays}) {
				t.Errorf("exit %d, %q: %s", code, d.kept("team"), said)
			}
		})
	}
}

// TestNoNamespaceAndNoToken: also a file that the call needs may be what is missing.
func TestNoNamespaceAndNoToken(t *testing.T) {
	d := newDesk(t, "default")
	b, _ := json.Marshal(map[string]string{"session_id": "s", "cwd": d.dir, "prompt": tuesdays})
	missing := filepath.Join(d.dir, "nope")
	code, said := d.call(".", string(b), "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "--token-file", missing)
	if code != 0 || !strings.Contains(said, "the node cannot be asked where memories of "+d.dir+" go, what is kept waits for that: read token: ") {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, said := d.call(".", "", "hook", "drain"); code != 0 || !slices.Equal(d.kept("default"), []string{tuesdays}) {
		t.Errorf("exit %d, %q: %s", code, d.kept("default"), said)
	}
}

// hangs is the address of a node that answers nothing, and how often it was asked.
func hangs(t *testing.T) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestANodeThatHangsWasAskedByEachHook, for a second, which its host waits.
func TestANodeThatHangsWasAskedByEachHook(t *testing.T) {
	url, asked := hangs(t)
	d := &desk{t: t, dir: t.TempDir(), addr: url, down: new(atomic.Bool)}
	d.away(".", tuesdays)
	first := asked.Load()
	said := d.away(".", "Remember that releases happen on Fridays.")
	spool, err := os.ReadDir(filepath.Join(d.dir, "config", "mneme", "hooks", "spool"))
	if first == 0 || asked.Load() != first || len(spool) != 2 || err != nil || !strings.Contains(said, "was slow to fail a moment ago, and is left alone") {
		t.Errorf("asked %d times, then %d, %d wait, %v: %s", first, asked.Load()-first, len(spool), err, said)
	}
}

// TestASilentNodeWasWaitedForTwice where a conversation begins: by the recall, and to tell whether it has the namespace.
func TestASilentNodeWasWaitedForTwice(t *testing.T) {
	url, asked := hangs(t)
	dir := t.TempDir()
	if err := makeRepository(filepath.Join(dir, "shop"), "https://github.com/acme/shop"); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	sys := userSystem(dir, "shop", url, &out, &errs)
	sys.in = strings.NewReader(`{"conversation_id":"s","hook_event_name":"sessionStart"}`)
	if code := run(t.Context(), sys, []string{"hook", "--agent", "cursor", "-n", "shop"}); code != 0 || asked.Load() != 1 {
		t.Errorf("exit %d, asked %d times: %s", code, asked.Load(), errs.String())
	}
}
