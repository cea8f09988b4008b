package rest

import (
	"net/http"
	"strings"
	"testing"

	"mneme/internal/auth"
	"mneme/internal/auth/authtest"
	"mneme/memory"
)

// Access tokens open /mcp, and what it asks the API for whoever was admitted, and nothing else.
func TestAccessTokensOpenMCPOnly(t *testing.T) {
	const token, resource = "0123456789abcdef0123456789abcdef", "https://mneme.example/mcp"
	gate, err := auth.NewGate(auth.ModeToken, token)
	if err != nil {
		t.Fatal(err)
	}
	as := authtest.New(t)
	issuer, err := auth.NewIssuer(auth.OAuth{Issuer: as.URL, Resource: resource, Scopes: []string{"mneme"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := "" // of the API, by what serves /mcp
	b := newBench(t, func(o *Options) {
		o.Auth, o.OAuth = gate, issuer
		o.MCP = func(inner http.RoundTripper) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path := r.Header.Get("Ask")
				req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://inside"+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := inner.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				asked = resp.Status
				w.WriteHeader(http.StatusAccepted)
			}), nil
		}
	})
	b.remote = true
	good := "Bearer " + as.Token(as.Claims(resource, nil), nil)
	small := "Bearer " + as.Token(as.Claims(resource, map[string]any{"scope": "other"}), nil)
	for name, c := range map[string]struct {
		token, ask string
		code       int
		inner      string
	}{
		"the operator":                {"Bearer " + token, "/v1/namespaces", 202, "OK"},
		"an access token":             {good, "/v1/namespaces", 202, "OK"},
		"for what is the operator's":  {good, "/v1/admin/doctor", 202, "Forbidden"},
		"the operator, for the same":  {"Bearer " + token, "/v1/admin/doctor", 202, "OK"},
		"nobody":                      {"", "/v1/namespaces", 401, ""},
		"a wrong one":                 {"Bearer nonsense", "/v1/namespaces", 401, ""},
		"one without the right scope": {small, "/v1/namespaces", 403, ""},
	} {
		asked = ""
		rec := b.do("POST", "/mcp", "{}", "Authorization", c.token, "Ask", c.ask, "Content-Type", "application/json")
		challenge := rec.Header().Get("WWW-Authenticate")
		if rec.Code != c.code || asked != c.inner {
			t.Errorf("%s: %d and %q, want %d and %q", name, rec.Code, asked, c.code, c.inner)
		}
		if refused := c.code >= 400; refused != strings.Contains(challenge, `resource_metadata="https://mneme.example/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: %d with the challenge %q", name, rec.Code, challenge)
		}
		for code, of := range map[string]string{"invalid_token": "a wrong one", "insufficient_scope": "one without the right scope"} {
			if has := strings.Contains(challenge, `error="`+code+`"`); has != (name == of) {
				t.Errorf("%s: the challenge %q", name, challenge)
			}
		}
	}
	if rec := b.do("POST", "/mcp", "{}", "Authorization", good, "Origin", "https://evil.example", "Content-Type", "application/json"); rec.Code != 403 || rec.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("from another origin: %d, and another token is asked for: %v", rec.Code, rec.Header())
	}
	if rec := b.do("GET", "/v1/namespaces", "", "Authorization", good); rec.Code != 401 || problemOf(t, rec).Code != memory.CodeUnauthenticated {
		t.Errorf("an access token opens the API: %d", rec.Code)
	}
	if rec := b.do("GET", "/.well-known/oauth-protected-resource/mcp", ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"authorization_servers":["`+as.URL+`"]`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// TestALookForAStreamHadUsersSignInAgain: a client that may read a stream looks for one by GET, where a
// good token got 401. The official SDK renewed it and asked again, hundreds of times a second, or
// sent its user to sign in.
func TestALookForAStreamHadUsersSignInAgain(t *testing.T) {
	gate, err := auth.NewGate(auth.ModeToken, "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	as := authtest.New(t)
	const resource = "https://mneme.example/mcp"
	issuer, err := auth.NewIssuer(auth.OAuth{Issuer: as.URL, Resource: resource}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *Options) {
		o.Auth, o.OAuth = gate, issuer
		o.MCP = func(http.RoundTripper) (http.Handler, error) { return http.NotFoundHandler(), nil }
	})
	b.remote = true
	for _, method := range []string{"GET", "DELETE"} {
		rec := b.do(method, "/mcp", "", "Authorization", "Bearer "+as.Token(as.Claims(resource, nil), nil))
		if rec.Code != 405 || rec.Header().Get("Allow") != "POST" || rec.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%s with an access token: %d, %v", method, rec.Code, rec.Header())
		}
		for token, invalid := range map[string]bool{"": false, "Bearer nonsense": true} {
			rec := b.do(method, "/mcp", "", "Authorization", token)
			challenge := rec.Header().Get("WWW-Authenticate")
			if rec.Code != 401 || !strings.Contains(challenge, "resource_metadata=") || strings.Contains(challenge, "error=") != invalid {
				t.Errorf("%s with %q: %d, %q", method, token, rec.Code, challenge)
			}
		}
	}
}

// TestMetadataBehindAPathOfAProxy were where no challenge says that they are: those of /mcp are asked for
// by the address that clients know.
func TestMetadataBehindAPathOfAProxy(t *testing.T) {
	gate, err := auth.NewGate(auth.ModeToken, "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	const resource, wellKnown = "https://mneme.example/agents/mcp", "/.well-known/oauth-protected-resource"
	issuer, err := auth.NewIssuer(auth.OAuth{Issuer: "https://login.example", Resource: resource}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *Options) {
		o.Auth, o.OAuth = gate, issuer
		o.MCP = func(http.RoundTripper) (http.Handler, error) { return http.NotFoundHandler(), nil }
	})
	b.remote = true
	if c := b.do("POST", "/mcp", "{}", "Content-Type", "application/json").Header().Get("WWW-Authenticate"); !strings.Contains(c, "https://mneme.example"+wellKnown+"/agents/mcp") {
		t.Errorf("the challenge %q", c)
	}
	for path, code := range map[string]int{wellKnown + "/agents/mcp": 200, wellKnown + "/mcp": 200, wellKnown: 200, wellKnown + "/agents": 401, wellKnown + "/agents/mcp/x": 401} {
		if rec := b.do("GET", path, ""); rec.Code != code || code == 200 && !strings.Contains(rec.Body.String(), `"resource":"`+resource+`"`) {
			t.Errorf("%s: %d %s, want %d", path, rec.Code, rec.Body, code)
		}
	}
}
