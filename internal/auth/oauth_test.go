package auth

import (
	"context"
	"encoding/json"
	"errors"
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

const resource = "https://mneme.example/mcp"

func presented(token string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func issuerOf(t *testing.T, s *authtest.Server) *Issuer {
	t.Helper()
	i, err := NewIssuer(OAuth{Issuer: s.URL, Resource: resource, Scopes: []string{"mneme"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAccessTokens(t *testing.T) {
	for _, openid := range []bool{false, true} {
		s := authtest.New(t)
		s.OpenID = openid
		other := authtest.New(t)
		i, clock := timed(t, s)
		past := time.Now().Add(-time.Hour).Unix()
		for name, c := range map[string]struct {
			token string
			code  memory.Code
		}{
			"good":                  {s.Token(s.Claims(resource, nil), nil), ""},
			"of several audiences":  {s.Token(s.Claims(resource, map[string]any{"aud": []string{"x", resource}}), nil), ""},
			"scopes by the old way": {s.Token(s.Claims(resource, map[string]any{"scope": nil, "scp": []string{"mneme"}}), nil), ""},
			"none":                  {"", memory.CodeUnauthenticated},
			"not a token":           {"sesame", memory.CodeUnauthenticated},
			"expired":               {s.Token(s.Claims(resource, map[string]any{"exp": past}), nil), memory.CodeUnauthenticated},
			"without an end":        {s.Token(s.Claims(resource, map[string]any{"exp": nil}), nil), memory.CodeUnauthenticated},
			"not yet":               {s.Token(s.Claims(resource, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), nil), memory.CodeUnauthenticated},
			"for another service":   {s.Token(s.Claims(resource, map[string]any{"aud": "https://other.example"}), nil), memory.CodeUnauthenticated},
			"for nobody":            {s.Token(s.Claims(resource, map[string]any{"aud": nil}), nil), memory.CodeUnauthenticated},
			"of another issuer":     {s.Token(s.Claims(resource, map[string]any{"iss": other.URL}), nil), memory.CodeUnauthenticated},
			"by another key":        {other.Token(s.Claims(resource, nil), nil), memory.CodeUnauthenticated},
			"unsigned":              {s.Token(s.Claims(resource, nil), map[string]any{"alg": "none"}), memory.CodeUnauthenticated},
			"by a shared secret":    {s.Token(s.Claims(resource, nil), map[string]any{"alg": "HS256"}), memory.CodeUnauthenticated},
			"changed":               {strings.Replace(s.Token(s.Claims(resource, nil), nil), ".", ".e30", 1), memory.CodeUnauthenticated},
			"without the scope":     {s.Token(s.Claims(resource, map[string]any{"scope": "openid mnemes"}), nil), memory.CodeForbidden},
			"by its whole type":     {s.Token(s.Claims(resource, nil), map[string]any{"typ": "application/AT+JWT"}), ""},
			"by the old profile":    {s.Token(s.Claims(resource, nil), map[string]any{"typ": "JWT"}), ""},
			"of no type":            {s.Token(s.Claims(resource, map[string]any{"scope": nil, "scp": "mneme"}), map[string]any{"typ": nil}), ""},
			"of Keycloak":           {s.Token(s.Claims(resource, map[string]any{"typ": "Bearer"}), map[string]any{"typ": "JWT"}), ""},
			"too long":              {strings.Repeat("a", maxTokenBytes+1), memory.CodeUnauthenticated},
		} {
			id, err := i.Request(presented(c.token))
			if got := memory.CodeOf(err); got != c.code {
				t.Errorf("%s: %v, want %q", name, err, c.code)
			}
			if err == nil && (id.Operator || id.Principal == "") {
				t.Errorf("%s: %+v", name, id)
			}
			if err != nil && c.token != "" && strings.Contains(err.Error(), c.token) {
				t.Errorf("%s: the error holds the token", name)
			}
		}
		before := s.Asked.Load()
		if _, err := i.Request(presented(s.Token(s.Claims(resource, nil), nil))); err != nil || s.Asked.Load() != before {
			t.Errorf("a token of a known key has the issuer asked %d times: %v", s.Asked.Load()-before, err)
		}
		s.Rotate("k2")
		clock.pass(keyPause) // a bad signature had it asked just now
		if _, err := i.Request(presented(s.Token(s.Claims(resource, nil), nil))); err != nil {
			t.Errorf("after a new key: %v", err)
		}
	}
}

// TestAnyTokenOfTheIssuerWasTaken: what it signs for other purposes went for an access token.
func TestAnyTokenOfTheIssuerWasTaken(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	type m = map[string]any
	for name, c := range map[string]struct{ claims, header m }{
		"a logout":                     {nil, m{"typ": "logout+jwt"}},
		"a proof":                      {nil, m{"typ": "dpop+jwt"}},
		"a type that is no string":     {m{"scope": nil}, m{"typ": 5}},
		"an event, as an access token": {m{"events": m{"x": m{}}}, nil},
		"an event, as a plain one":     {m{"events": m{"x": m{}}}, m{"typ": "JWT"}},
		"one bound to a key":           {m{"cnf": m{"jkt": "abc"}}, nil},
		"one bound to a certificate":   {m{"cnf": m{"x5t#S256": "abc"}}, m{"typ": "JWT"}},
		"an id token":                  {m{"nonce": "n"}, m{"typ": "JWT"}},
		"an id token beside another":   {m{"at_hash": "h"}, m{"typ": nil}},
		"an id token of Keycloak":      {m{"typ": "ID"}, m{"typ": "JWT"}},
		"an id token of Cognito":       {m{"token_use": "id"}, m{"typ": nil}},
		"of another, in other case":    {m{"iss": "https://x.example", "i\u017fs": s.URL}, nil}, // the long s folds to one
		"without an end but in case":   {m{"exp": nil, "EXP": time.Now().Add(time.Hour).Unix()}, nil},
	} {
		if _, err := i.Request(presented(s.Token(s.Claims(resource, c.claims), c.header))); memory.CodeOf(err) != memory.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, claims := range map[string]m{"a scope in other case": {"scope": nil, "SCOPE": "mneme"}, "scopes in other case": {"scope": nil, "Scp": "mneme"}} {
		if _, err := i.Request(presented(s.Token(s.Claims(resource, claims), nil))); memory.CodeOf(err) != memory.CodeForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, twice := range []string{`"aud":"https://x.example","AUD":%q`, `"aud":"https://x.example","aud":%q`} { // the last would count
		claims := fmt.Sprintf(`{"iss":%q,"exp":%d,"scope":"mneme",`+twice+`}`, s.URL, time.Now().Add(time.Hour).Unix(), resource)
		if _, err := i.Request(presented(s.Token(json.RawMessage(claims), nil))); memory.CodeOf(err) != memory.CodeUnauthenticated {
			t.Errorf("%s: %v", claims, err)
		}
	}
	plain := s.Claims(resource, m{"scope": nil})
	anything := issuerOf(t, s)
	anything.Scopes = nil
	if _, err := anything.Request(presented(s.Token(plain, m{"typ": "JWT"}))); memory.CodeOf(err) != memory.CodeUnauthenticated {
		t.Errorf("a plain token with no sign of access: %v", err)
	}
	if _, err := anything.Request(presented(s.Token(plain, nil))); err != nil {
		t.Errorf("an access token without a scope, where none is asked for: %v", err)
	}
	plain["client_id"] = "c"
	if _, err := anything.Request(presented(s.Token(plain, m{"typ": "JWT"}))); err != nil {
		t.Errorf("a plain token of a client: %v", err)
	}
}

// Who cannot be asked, or says that it is another one, admits nobody, and is asked again later.
func TestIssuerThatIsAway(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	now := time.Now()
	i.now = func() time.Time { return now }
	good := s.Token(s.Claims(resource, nil), nil)
	s.Offline.Store(true)
	for range 2 {
		if _, err := i.Request(presented(good)); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Fatal(err)
		}
	}
	if s.Asked.Load() != 2 { // both addresses, once
		t.Errorf("it was asked %d times", s.Asked.Load())
	}
	s.Offline.Store(false)
	s.Lies = true
	now = now.Add(issuerAgain)
	if _, err := i.Request(presented(good)); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Fatal(err)
	}
	s.Lies = false
	now = now.Add(issuerAgain)
	if _, err := i.Request(presented(good)); err != nil {
		t.Fatal(err)
	}
}

func TestOAuthIsChecked(t *testing.T) {
	for _, bad := range []OAuth{
		{}, {Issuer: "https://a.example"}, {Issuer: "a.example", Resource: resource}, {Issuer: "http://a.example", Resource: resource},
		{Issuer: "https://a.example?x=1", Resource: resource}, {Issuer: "https://u:p@a.example", Resource: resource}, {Issuer: "https://a.example", Resource: "mcp"},
		{Issuer: "https://a.example", Resource: resource, Scopes: []string{"a b"}}, {Issuer: "https://a.example", Resource: resource, Scopes: []string{`"`}},
	} {
		if _, err := NewIssuer(bad, nil); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	i, err := NewIssuer(OAuth{Issuer: "http://127.0.0.1:1", Resource: resource, Scopes: []string{"a", "b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]string{"https://a.example": "", "https://a.example/": "", "https://a.example/b/mcp/": "/b/mcp"} {
		if got := (&Issuer{OAuth: OAuth{Resource: resource}}).MetadataURL(); got != "https://a.example/.well-known/oauth-protected-resource"+want {
			t.Errorf("the metadata of %s are at %s", resource, got)
		}
	}
	const challenge = `Bearer resource_metadata="https://mneme.example/.well-known/oauth-protected-resource/mcp", scope="a b"`
	for refusal, want := range map[error]string{
		errors.Join(errScope): challenge + `, error="insufficient_scope"`,
		memory.Errorf(memory.CodeUnauthenticated, "none").WithCause(errNoToken): challenge,
		memory.Errorf(memory.CodeUnauthenticated, "expired"):                    challenge + `, error="invalid_token"`,
		memory.Errorf(memory.CodeForbidden, "the origin"):                       "",
		memory.Errorf(memory.CodeUnavailable, "the issuer is away"):             "",
	} {
		if got := i.Challenge(refusal); got != want {
			t.Errorf("%v: got %s, want %s", refusal, got, want)
		}
	}
}

// Every scope that is asked for has to be there, as docs/security.md says: what a request needs is the
// resource's affair, and insufficient_scope says that it needs more (RFC 6750, section 3.1).
func TestEveryScopeIsAskedFor(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	i.Scopes = []string{"read", "write"}
	for claims, code := range map[*map[string]any]memory.Code{
		{"scope": "read"}:                           memory.CodeForbidden,
		{"scope": "write"}:                          memory.CodeForbidden,
		{"scope": "readwrite read,write"}:           memory.CodeForbidden,
		{"scope": "write openid read"}:              "",
		{"scope": "read", "scp": []string{"write"}}: "",
		{"scope": nil, "scp": []string{"write"}}:    memory.CodeForbidden,
		{"scope": []string{"read", "write"}}:        "", // as Duende IdentityServer writes them
		{"scope": []string{"read write"}}:           memory.CodeForbidden,
		{"scope": []any{"read", 7, nil}}:            memory.CodeForbidden,
	} {
		admits(t, i, s.Token(s.Claims(resource, *claims), nil), code)
	}
}

// TestALongTokenIsNotRead, though it is a good one.
func TestALongTokenIsNotRead(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	token := s.Token(s.Claims(resource, map[string]any{"pad": strings.Repeat("a", maxTokenBytes)}), nil)
	admits(t, i, token, memory.CodeUnauthenticated)
	if n := s.Asked.Load(); n != 0 {
		t.Errorf("the issuer was asked %d times", n)
	}
	admits(t, i, s.Token(s.Claims(resource, map[string]any{"pad": strings.Repeat("a", maxTokenBytes*3/4-1000)}), nil), "")
}

// asked is who was asked for anything.
type asked struct {
	mu    sync.Mutex
	hosts map[string]int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.hosts[r.URL.Scheme+"://"+r.URL.Host]++
	a.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// TestMetadataThatLeadElsewhere: keys have to come by https, and metadata have a bound.
func TestMetadataThatLeadElsewhere(t *testing.T) {
	for name, change := range map[string]func(*authtest.Server){
		"keys without TLS":   func(s *authtest.Server) { s.KeysAt = "http://192.0.2.1/keys" },
		"keys in a file":     func(s *authtest.Server) { s.KeysAt = "file:///etc/passwd" },
		"keys of a user":     func(s *authtest.Server) { s.KeysAt = "https://u:p@192.0.2.1/keys" },
		"keys nowhere":       func(s *authtest.Server) { s.KeysAt = "keys" },
		"a mebibyte and one": func(s *authtest.Server) { s.Padding = strings.Repeat("x", maxMetadata) },
	} {
		s := authtest.New(t)
		change(s)
		a := &asked{hosts: map[string]int{}}
		i, err := NewIssuer(OAuth{Issuer: s.URL, Resource: resource}, &http.Client{Transport: a, Timeout: issuerTimeout})
		if err != nil {
			t.Fatal(err)
		}
		admitted, err := i.Request(presented(s.Token(s.Claims(resource, nil), nil)))
		if memory.CodeOf(err) != memory.CodeUnavailable || admitted != (Identity{}) {
			t.Errorf("%s: %+v, %v", name, admitted, err)
		}
		if len(a.hosts) != 1 || s.Keys.Load() != 0 {
			t.Errorf("%s: asked %v, for keys %d times", name, a.hosts, s.Keys.Load())
		}
	}
}

// TestWhoAsksFirstAsksForAll: one that goes away does not leave those behind it without an issuer.
func TestWhoAsksFirstAsksForAll(t *testing.T) {
	s := authtest.New(t)
	i := issuerOf(t, s)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	token := s.Token(s.Claims(resource, nil), nil)
	if _, err := i.Request(presented(token).WithContext(gone)); err != nil {
		t.Errorf("what was asked for it is not there: %v", err)
	}
	admits(t, i, token, "")
	if n := s.Keys.Load(); n != 1 {
		t.Errorf("its keys were asked for %d times", n)
	}
}
