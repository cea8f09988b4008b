package web

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func fetchPage(t *testing.T) (policy, body string) {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	b, err := io.ReadAll(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("Content-Type = %q", got)
	}
	return rec.Header().Get("Content-Security-Policy"), string(b)
}

func TestPolicyAllowsThePageAndNothingElse(t *testing.T) {
	policy, body := fetchPage(t)
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q is unsafe", policy)
	}
	for _, element := range []string{"script", "style"} {
		m := regexp.MustCompile(`(?s)<` + element + `>(.*?)</` + element + `>`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no %s", element)
		}
		sum := sha256.Sum256([]byte(m[1]))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
}

func TestPageHasNoExternalResourcesAndNoInlineHandlers(t *testing.T) {
	_, body := fetchPage(t)
	for _, bad := range []string{`https?://`, `\son\w+=`, `\sstyle=`, `<link`, `<img`, `innerHTML`, `src=`} {
		if m := regexp.MustCompile(bad).FindString(body); m != "" {
			t.Errorf("the page contains %q", m)
		}
	}
}

func TestInlineHashRefusesAPageItCannotVouchFor(t *testing.T) {
	if _, err := inlineHash("template"); err == nil {
		t.Error("no error for an element that is not there")
	}
}
