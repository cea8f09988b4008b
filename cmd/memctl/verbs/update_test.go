package verbs

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mneme/memory"
)

// sumsOf is a list of checksums as a release has it.
func sumsOf(version string) string {
	sum := strings.Repeat("0123456789abcdef", 4)
	var b strings.Builder
	for _, name := range []string{"install.sh", "mneme-" + version + "-linux-amd64.tar.gz", "mneme-" + version + "-windows-amd64.zip", "mneme-" + version + ".cdx.json"} {
		b.WriteString(sum + "  " + name + "\n")
	}
	return b.String()
}

// updating calls memctl update of a version and platform.
func updating(t *testing.T, version, platform string, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	sys := plainSystem(&stderr)
	sys.out, sys.getenv = &stdout, func(k string) string { return env[k] }
	sys.version.Version = version
	sys.version.OS, sys.version.Arch, _ = strings.Cut(platform, "/")
	code = run(t.Context(), sys, append([]string{"update"}, args...))
	return code, stdout.String(), stderr.String()
}

func TestUpdateComparesWithTheRelease(t *testing.T) {
	latest := "v0.2.0"
	asked := 0
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/mneme/SHA256SUMS" || r.Method != http.MethodGet {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, sumsOf(latest))
	}))
	t.Cleanup(host.Close)
	base := host.URL + "/mneme"
	for _, c := range []struct{ current, latest, platform, state, says string }{
		{"v0.1.9", "v0.2.0", "linux/amd64", releaseNewer, "v0.2.0 is there; this memctl is v0.1.9\nnext: curl -fsSL " + base + "/install.sh | sh -s -- --from " + base},
		{"v0.2.0", "v0.2.0", "linux/amd64", releaseSame, "v0.2.0 is the newest release"},
		{"v0.2.0+dirty", "v0.2.0", "linux/amd64", releaseSame, "newest release"},
		{"v0.10.0", "v0.2.0", "linux/amd64", releaseOlder, "the newest release v0.2.0 is older"},
		{"v0.2.0", "v0.2.0-rc.1", "linux/amd64", releaseOlder, "is older"},
		{"v0.0.0-20261126094604-888794ae2d1c", "v0.2.0", "linux/amd64", releaseNewer, "v0.2.0 is there"},
		{"v0.2.0", "v0.2.1-0.20261126094604-888794ae2d1c", "windows/amd64", releaseNewer, "next: " + base + "/mneme-v0.2.1-0.20261126094604-888794ae2d1c-windows-amd64.zip"},
		{"devel", "v0.2.0", "linux/amd64", releaseUnknown, "does not say its version (devel)"},
		{"v0.1.0", "v0.2.0", "plan9/386", releaseNewer, "no archive for plan9/386"},
	} {
		latest = c.latest
		code, out, errs := updating(t, c.current, c.platform, nil, "--check", "--from", base+"/")
		if code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s beside %s: exit %d: %s%s, want %q", c.current, c.latest, code, out, errs, c.says)
		}
		code, out, errs = updating(t, c.current, c.platform, map[string]string{"MNEME_RELEASES": base}, "--check", "--json")
		var found updateFound
		if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 || found.State != c.state || found.Latest != c.latest || found.Current != c.current || found.From != base {
			t.Errorf("%s beside %s: exit %d: %s%s, %v", c.current, c.latest, code, out, errs, err)
		}
		if has := found.Archive != ""; has != (c.platform != "plan9/386") {
			t.Errorf("%s: archive %q", c.platform, found.Archive)
		}
	}
	if asked != 18 {
		t.Errorf("asked %d times", asked)
	}
}

func TestUpdateSaysWhatIsWrong(t *testing.T) {
	hang := make(chan struct{})
	answers := map[string]http.HandlerFunc{
		"/garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") },
		"/two": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, sumsOf("v0.1.0")+sumsOf("v0.2.0"))
		},
		"/version": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, sumsOf("v0.1.x")) },
		"/empty":   func(http.ResponseWriter, *http.Request) {},
		"/none":    http.NotFound,
		"/locked":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"/broken":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"/huge": func(w http.ResponseWriter, r *http.Request) {
			line := []byte(sumsOf("v0.2.0"))
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		},
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4000")
			_, _ = io.WriteString(w, sumsOf("v0.2.0"))
		},
		"/hangs": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		},
		"/stalls": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, sumsOf("v0.2.0"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		},
		"/elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://releases.example/SHA256SUMS", http.StatusFound)
		},
		"/circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[strings.TrimSuffix(r.URL.Path, "/SHA256SUMS")](w, r)
	}))
	t.Cleanup(host.Close)
	t.Cleanup(func() { close(hang) }) // before the server is closed
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	for _, c := range []struct {
		from, says string
		code       memory.Code
	}{
		{"", "no public host yet", memory.CodeInvalid},
		{host.URL + "/garbage", "does not list the archives", memory.CodeInvalid},
		{host.URL + "/two", "does not list the archives of one release", memory.CodeInvalid},
		{host.URL + "/version", "does not list the archives", memory.CodeInvalid},
		{host.URL + "/empty", "does not list the archives", memory.CodeInvalid},
		{host.URL + "/none", "there is no " + host.URL + "/none/SHA256SUMS", memory.CodeNotFound},
		{host.URL + "/locked", "may not be read", memory.CodeForbidden},
		{host.URL + "/broken", "502", memory.CodeUnavailable},
		{host.URL + "/huge", "more than 65536 bytes", memory.CodeTooLarge},
		{host.URL + "/cut", "unexpected EOF", memory.CodeUnavailable},
		{host.URL + "/hangs", "did not answer within 300ms", memory.CodeTimeout},
		{host.URL + "/stalls", "did not answer within 300ms", memory.CodeTimeout},
		{host.URL + "/elsewhere", "leads on to where it must not", memory.CodeUnavailable},
		{host.URL + "/circle", "leads on to where it must not", memory.CodeUnavailable},
		{gone.URL, "cannot read " + gone.URL, memory.CodeUnavailable},
		{"http://releases.example", "in clear", memory.CodeInvalid},
		{"http://127.0.0.1.example/x", "in clear", memory.CodeInvalid},
		{"https://ann:secret@releases.example", "more than a host and a folder", memory.CodeInvalid},
		{"ftp://releases.example", "is not like https://", memory.CodeInvalid},
		{"releases.example", "is not like https://", memory.CodeInvalid},
	} {
		args := []string{"--check", "--from", c.from}
		if strings.Contains(c.says, "300ms") {
			args = append(args, "--timeout", "300ms")
		} else {
			args = append(args, "--timeout", "1m") // a busy machine is no reason
		}
		code, out, errs := updating(t, "v0.1.0", "linux/amd64", nil, args...)
		if code != c.code.ExitCode() || out != "" || !strings.Contains(errs, c.says) || !strings.Contains(errs, "hint: ") || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d, want %d: %s%s, want %q", c.from, code, c.code.ExitCode(), out, errs, c.says)
		}
		code, _, errs = updating(t, "v0.1.0", "linux/amd64", nil, append(args, "--json")...)
		var doc struct {
			Error struct{ Code memory.Code }
		}
		if err := json.Unmarshal([]byte(errs), &doc); err != nil || doc.Error.Code != c.code || code != c.code.ExitCode() {
			t.Errorf("%s: exit %d: %s", c.from, code, errs)
		}
	}
}

func TestUpdateReplacesNothing(t *testing.T) {
	for _, args := range [][]string{{}, {"--from", "https://releases.example"}, {"--check=false"}, {"--check", "v0.2.0"}, {"--check", "--timeout", "0s"}, {"--check", "--timeout", "2h"}} {
		if code, out, errs := updating(t, "v0.1.0", "linux/amd64", nil, args...); code != 2 || out != "" || !strings.Contains(errs, "hint: ") {
			t.Errorf("update %q: exit %d: %s%s", args, code, out, errs)
		}
	}
}
