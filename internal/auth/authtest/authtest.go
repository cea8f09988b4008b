// Package authtest is an authorization server for tests.
package authtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a small authorization server: metadata and one key.
type Server struct {
	t       *testing.T
	URL     string // the issuer
	OpenID  bool   // it has the metadata of OpenID Connect only
	Lies    bool   // about who it is
	Asked   atomic.Int32
	Keys    atomic.Int32 // how often it was asked for its keys
	Use     string       // what its key is for; "" = sig
	KeysAt  string       // where it says that its keys are; "" = where they are
	Padding string       // stands before everything else in its metadata
	// ServeKeys takes the place of the document with its key, unless it is nil.
	ServeKeys http.HandlerFunc
	Offline   atomic.Bool
	key       *ecdsa.PrivateKey
	kid       string
}

// New starts one, which ends with the test.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{t: t}
	s.Rotate("k1")
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.URL = srv.URL + "/tenant"
	return s
}

// Rotate has another key sign what follows.
func (s *Server) Rotate(kid string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	s.key, s.kid = key, kid
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Asked.Add(1)
	issuer := s.URL
	if s.Lies {
		issuer = "https://evil.example"
	}
	metadata := map[string]any{"": s.Padding, "issuer": issuer, "jwks_uri": cmp.Or(s.KeysAt, strings.TrimSuffix(s.URL, "/tenant")+"/keys")}
	switch path := r.URL.Path; {
	case s.Offline.Load():
		http.Error(w, "away", http.StatusBadGateway)
	case path == "/.well-known/oauth-authorization-server/tenant" && !s.OpenID, path == "/tenant/.well-known/openid-configuration" && s.OpenID:
		_ = json.NewEncoder(w).Encode(metadata)
	case path == "/keys" && s.ServeKeys != nil:
		s.Keys.Add(1)
		s.ServeKeys(w, r)
	case path == "/keys":
		s.Keys.Add(1)
		raw, _ := s.key.PublicKey.Bytes() // 4, x, y
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "use": cmp.Or(s.Use, "sig"), "alg": "ES256", "kid": s.kid,
			"x": base64.RawURLEncoding.EncodeToString(raw[1:33]), "y": base64.RawURLEncoding.EncodeToString(raw[33:])}}})
	default:
		http.NotFound(w, r)
	}
}

func segment(v any) string {
	b, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Token signs claims; header overrides parts of its own, nil takes one out.
func (s *Server) Token(claims any, header map[string]any) string {
	h := map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": s.kid}
	for k, v := range header {
		if h[k] = v; v == nil {
			delete(h, k)
		}
	}
	signed := segment(h) + "." + segment(claims)
	sum := sha256.Sum256([]byte(signed))
	if h["alg"] == "HS256" { // signed with what everybody knows
		mac := hmac.New(sha256.New, []byte("public"))
		mac.Write([]byte(signed))
		return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	if h["alg"] == "none" {
		return signed + "."
	}
	r, sig, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	raw := make([]byte, 64)
	r.FillBytes(raw[:32])
	sig.FillBytes(raw[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(raw)
}

// Claims are those of a good token for a resource; change overrides some, nil takes one out.
func (s *Server) Claims(resource string, change map[string]any) map[string]any {
	c := map[string]any{"iss": s.URL, "aud": resource, "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "scope": "openid mneme"}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}
