package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"mneme/memory"
)

// TestRedirectWasFollowedWithTheToken: a 307 had the body and the token sent on,
// also to another port.
func TestRedirectWasFollowedWithTheToken(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer asked.Close()
	for name, given := range map[string]*http.Client{"its own": nil, "the caller's": {}} {
		c, err := New(asked.URL, Options{Token: "secret", HTTPClient: given})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Capture(t.Context(), "team", memory.Capture{Agent: "a", Text: "private"}, CaptureOptions{})
		if memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(err.Error(), other.URL) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if given != nil && given.CheckRedirect != nil {
			t.Error("the caller's client was changed")
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the other address got %d requests", n)
	}
	http.DefaultClient.CloseIdleConnections()
}
