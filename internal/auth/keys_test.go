package auth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/auth/authtest"
	"mneme/memory"
)

// clock is a time that the test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func timed(t *testing.T, s *authtest.Server) (*Issuer, *clock) {
	i, c := issuerOf(t, s), &clock{at: time.Now()}
	i.now = c.now
	return i, c
}

func admits(t *testing.T, i *Issuer, token string, want memory.Code) {
	t.Helper()
	if _, err := i.Request(presented(token)); memory.CodeOf(err) != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestBadTokensHadTheIssuerAsked: each made-up key and each bad signature had it asked once.
func TestBadTokensHadTheIssuerAsked(t *testing.T) {
	s := authtest.New(t)
	i, c := timed(t, s)
	for _, token := range []string{
		s.Token(s.Claims(resource, map[string]any{"iss": "https://x.example"}), nil), s.Token(s.Claims("https://x.example", nil), nil), "e30.e30.AA",
	} {
		admits(t, i, token, memory.CodeUnauthenticated)
	}
	if n := s.Asked.Load(); n != 0 {
		t.Errorf("tokens that are not even said to be of the issuer, for this resource, had it asked %d times", n)
	}
	good := s.Token(s.Claims(resource, nil), nil)
	admits(t, i, good, "")
	bad := authtest.New(t).Token(s.Claims(resource, nil), nil) // by another key of the same name
	for n := range 100 {
		admits(t, i, s.Token(s.Claims(resource, nil), map[string]any{"kid": fmt.Sprint("made up ", n)}), memory.CodeUnauthenticated)
		admits(t, i, bad, memory.CodeUnauthenticated)
		admits(t, i, good, "")
	}
	if n := s.Keys.Load(); n != 2 { // the first time, and once more
		t.Errorf("200 bad tokens had the issuer asked for its keys %d times", n)
	}
	s.Rotate("k2")
	rotated := s.Token(s.Claims(resource, nil), nil)
	admits(t, i, rotated, memory.CodeUnauthenticated)
	c.pass(keyPause)
	admits(t, i, rotated, "")
	for range 10 {
		c.pass(keyPause / 10)
		admits(t, i, bad, memory.CodeUnauthenticated)
	}
	if n := s.Keys.Load(); n > 4 {
		t.Errorf("within one pause more it was asked %d times", n)
	}
}

// TestKeysOfAnIssuerThatIsAway: a token of an unknown key was refused as a bad one, and whatever
// came in the place of keys took theirs.
func TestKeysOfAnIssuerThatIsAway(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	for name, keys := range map[string]http.HandlerFunc{
		"away":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusBadGateway) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
		"empty":     func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"keys":[]}`) },
		"no keys":   func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{}`) },
		"other keys": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"keys":[{"kty":"oct","k":"AAAA","kid":"k2"},{"kty":"x"},5]}`)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"keys":[],"x":"`)
			for piece, n := []byte(strings.Repeat("x", 1<<20)), 0; n < 64; n++ {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := authtest.New(t)
			i, c := timed(t, s)
			old := s.Token(s.Claims(resource, nil), nil)
			admits(t, i, old, "")
			s.Rotate("k2")
			next := s.Token(s.Claims(resource, nil), nil)
			s.ServeKeys = keys
			for range 3 {
				admits(t, i, next, memory.CodeUnavailable)
				admits(t, i, old, "")
			}
			if n := s.Keys.Load(); n != 2 {
				t.Errorf("it was asked %d times", n)
			}
			s.ServeKeys = nil
			c.pass(keyPause)
			admits(t, i, next, "")
			admits(t, i, old, memory.CodeUnauthenticated) // its key is withdrawn
		})
	}
}

// A key that is marked for encryption signs nothing.
func TestKeyForEncryption(t *testing.T) {
	s := authtest.New(t)
	s.Use = "enc"
	i, c := timed(t, s)
	token := s.Token(s.Claims(resource, nil), nil)
	admits(t, i, token, memory.CodeUnavailable) // it has no keys for signatures
	s.Use = "sig"
	c.pass(keyPause)
	admits(t, i, token, "")
}

// Many tokens of a new key at once have the issuer asked once.
func TestManyTokensOfANewKey(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	admits(t, i, s.Token(s.Claims(resource, nil), nil), "")
	s.Rotate("k2")
	token := s.Token(s.Claims(resource, nil), nil)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { admits(t, i, token, "") })
	}
	all.Wait()
	if n := s.Keys.Load(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}
