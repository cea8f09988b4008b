package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"mneme/internal/events"
	"mneme/memory"
)

// OAuth says whose access tokens are taken beside the operator token, where that is allowed.
type OAuth struct {
	Issuer   string   // its URL, as its metadata and its tokens spell it
	Resource string   // what tokens must be for: the URL by which clients reach this service
	Scopes   []string // of which a token has to have all
}

// Check says what is wrong with it.
func (o *OAuth) Check() error {
	for what, s := range map[string]string{"issuer": o.Issuer, "resource": o.Resource} {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" {
			return fmt.Errorf("the OAuth %s %.200q is not a URL", what, s)
		}
		if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
			return fmt.Errorf("the OAuth %s %.200q is not https, and only this machine's own may be without", what, s)
		}
	}
	for _, s := range o.Scopes {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return fmt.Errorf("%.80q is not an OAuth scope", s)
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// algorithms are the asymmetric ones: a token that is not signed, or by a shared secret, is
// none of an issuer's.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

const (
	issuerTimeout = 10 * time.Second
	issuerAgain   = 10 * time.Second // after a failure, before it is asked again
	maxMetadata   = 1 << 20
	maxTokenBytes = 16 << 10
)

// Issuer checks the access tokens of an authorization server (RFC 9068): JSON web tokens whose
// keys it publishes. It is asked for its metadata (RFC 8414, or OpenID Connect's) with the first
// token and then no more; for its keys when a token names one that is not known. It is safe for
// concurrent use.
type Issuer struct {
	OAuth
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until its metadata are known
	failed   error                 // why they are not
	failedAt time.Time
}

// NewIssuer makes one. client may be nil.
func NewIssuer(o OAuth, client *http.Client) (*Issuer, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if client == nil {
		client = &http.Client{Timeout: issuerTimeout}
	}
	return &Issuer{OAuth: o, client: client, now: time.Now}, nil
}

// Request admits a request that presents an access token. The error is CodeUnauthenticated,
// CodeForbidden if the token lacks a scope, or CodeUnavailable if the issuer cannot be asked.
func (i *Issuer) Request(r *http.Request) (Identity, error) {
	token, ok := bearer(r)
	if !ok {
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "this service asks for an access token of %s", i.Issuer).
			WithHint("have the client sign in; its metadata are at %s", i.MetadataURL())
	}
	if len(token) > maxTokenBytes || strings.Count(token, ".") != 2 { // which the issuer need not be asked for
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the token is neither the one of this node nor an access token of %s", i.Issuer).
			WithHint("have the client sign in; its metadata are at %s", i.MetadataURL())
	}
	verifier, err := i.ready(r.Context())
	if err != nil {
		return Identity{}, memory.Errorf(memory.CodeUnavailable, "access tokens cannot be checked: %w", err).
			WithHint("see whether %s is up and reached from the node; the operator token is taken all the same", i.Issuer)
	}
	// The library's errors quote claims and never the token.
	verified, err := verifier.Verify(oidc.ClientContext(r.Context(), i.client), token)
	if expired := (*oidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the access token has expired").WithHint("have the client get another one")
	}
	if err != nil {
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the access token is not one of %s for %s", i.Issuer, i.Resource).
			WithHint("have the client sign in again, for this service").WithCause(err)
	}
	var claims struct {
		Scope  string `json:"scope"`
		Scopes any    `json:"scp"` // of issuers that are older than the standard
	}
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the access token's claims cannot be read").WithCause(err)
	}
	for _, s := range i.Scopes {
		if !slices.Contains(scopesOf(claims.Scope, claims.Scopes), s) {
			return Identity{}, memory.Errorf(memory.CodeForbidden, "the access token lacks the scope %q", s).WithHint("have the client ask for it")
		}
	}
	return Identity{Principal: events.PublicPrincipal}, nil
}

func scopesOf(scope string, scp any) []string {
	out := strings.Fields(scope)
	switch v := scp.(type) {
	case string:
		out = append(out, strings.Fields(v)...)
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// bearer is the token of a request.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// ready asks the issuer who it is, unless it is known.
func (i *Issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if i.failed != nil && i.now().Sub(i.failedAt) < issuerAgain {
		return nil, i.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTimeout) // whoever asks first asks for all
	defer cancel()
	keys, err := i.discover(ctx)
	if err != nil {
		i.failed, i.failedAt = err, i.now()
		return nil, err
	}
	// The set outlives this request.
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), i.client), keys)
	i.verifier = oidc.NewVerifier(i.Issuer, set, &oidc.Config{ClientID: i.Resource, SupportedSigningAlgs: algorithms, Now: i.now})
	i.failed = nil
	return i.verifier, nil
}

// discover finds where the issuer's keys are.
func (i *Issuer) discover(ctx context.Context) (keys string, err error) {
	u, err := url.Parse(i.Issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var tried []error
	for _, at := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"} {
		u.Path = at
		var found struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := i.get(ctx, u.String(), &found)
		switch {
		case err == nil && found.Issuer != i.Issuer:
			err = fmt.Errorf("%s says that it is %.200q", u, found.Issuer)
		case err == nil:
			if err = (&OAuth{Issuer: found.Keys, Resource: found.Keys}).Check(); err == nil {
				return found.Keys, nil
			}
			err = fmt.Errorf("%s says that its keys are at %.200q", u, found.Keys)
		}
		tried = append(tried, err)
	}
	return "", errors.Join(tried...)
}

func (i *Issuer) get(ctx context.Context, at string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(out); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// ResourceMetadata is the protected resource's metadata (RFC 9728).
type ResourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name"`
}

// Metadata says whose tokens are taken.
func (i *Issuer) Metadata() ResourceMetadata {
	return ResourceMetadata{Resource: i.Resource, Servers: []string{i.Issuer}, Scopes: i.Scopes, Methods: []string{"header"}, Name: "Mneme"}
}

// MetadataURL is where clients find them.
func (i *Issuer) MetadataURL() string {
	u, err := url.Parse(i.Resource)
	if err != nil {
		return "" // it was checked
	}
	u.Path = WellKnownResource + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// WellKnownResource is where the metadata of a protected resource are (RFC 9728); the path of
// the resource follows.
const WellKnownResource = "/.well-known/oauth-protected-resource"

// Challenge is the header WWW-Authenticate that goes with a refusal.
func (i *Issuer) Challenge(code memory.Code) string {
	c := `Bearer resource_metadata="` + i.MetadataURL() + `"`
	if len(i.Scopes) > 0 {
		c += `, scope="` + strings.Join(i.Scopes, " ") + `"`
	}
	if code == memory.CodeForbidden {
		c += `, error="insufficient_scope"`
	}
	return c
}
