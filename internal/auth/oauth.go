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
	"github.com/go-jose/go-jose/v4"

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
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA}

func names[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}

const (
	issuerTimeout = 10 * time.Second
	issuerAgain   = 10 * time.Second // after a failure, before it is asked again
	maxMetadata   = 1 << 20
	maxTokenBytes = 16 << 10
)

// Issuer checks the access tokens of an authorization server (RFC 9068): JSON web tokens whose
// keys it publishes. It is asked for its metadata (RFC 8414, or OpenID Connect's) with the first
// token and then no more; for its keys when a token was not signed by one that is known, but not
// more often than every half a minute. What it answers is bounded, and it sends nobody elsewhere.
// It is safe for concurrent use.
type Issuer struct {
	OAuth
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	keys     *keySet // nil until its metadata are known
	failed   error   // why they are not
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
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Issuer{OAuth: o, client: &own, now: time.Now}, nil
}

// Request admits a request that presents an access token. The error is CodeUnauthenticated,
// CodeForbidden if the token lacks a scope, or CodeUnavailable if the issuer cannot be asked.
func (i *Issuer) Request(r *http.Request) (Identity, error) {
	token, ok := bearer(r)
	if !ok {
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "this service asks for an access token of %s", i.Issuer).
			WithHint("have the client sign in; its metadata are at %s", i.MetadataURL()).WithCause(errNoToken)
	}
	if len(token) > maxTokenBytes || strings.Count(token, ".") != 2 { // which the issuer need not be asked for
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the token is neither the one of this node nor an access token of %s", i.Issuer).
			WithHint("have the client sign in; its metadata are at %s", i.MetadataURL())
	}
	claims, err := i.check(r.Context(), token)
	switch expired := (*oidc.TokenExpiredError)(nil); {
	case errors.Is(err, errAway):
		return Identity{}, memory.Errorf(memory.CodeUnavailable, "access tokens cannot be checked: %w", err).
			WithHint("see whether %s is up and reached from the node; the operator token is taken all the same", i.Issuer)
	case errors.As(err, &expired):
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the access token has expired").WithHint("have the client get another one")
	case errors.Is(err, errNoAccess):
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the token is no access token for any bearer: %w", err).
			WithHint("have the client present the access token that it got for %s", i.Resource)
	case err != nil:
		return Identity{}, memory.Errorf(memory.CodeUnauthenticated, "the access token is not one of %s for %s", i.Issuer, i.Resource).
			WithHint("have the client sign in again, for this service").WithCause(err)
	}
	for _, s := range i.Scopes {
		if !claims.has(s) {
			return Identity{}, memory.Errorf(memory.CodeForbidden, "the access token lacks the scope %q", s).WithHint("have the client ask for it").WithCause(errScope)
		}
	}
	return Identity{Principal: events.PublicPrincipal}, nil
}

// Why a token was not taken, besides those that were not the issuer's for this resource.
var (
	errNoToken  = errors.New("there is none")
	errScope    = errors.New("it lacks a scope")
	errAway     = errors.New("the issuer cannot be asked")
	errNoAccess = errors.New("it may not be used by itself")
)

// check reads a token and checks it. The issuer is asked only about what claims to be its own,
// for this resource. Errors quote claims and never the token.
func (i *Issuer) check(ctx context.Context, token string) (*claims, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, err
	}
	c, err := claimsOf(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	if c.Issuer != i.Issuer || !slices.Contains(c.Audience, i.Resource) {
		return nil, fmt.Errorf("it is of %.200q, for %.200q", c.Issuer, c.Audience)
	}
	keys, err := i.ready(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	switch _, err = keys.verify(ctx, jws); {
	case errors.Is(err, errSignature):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	// From here on the claims are the issuer's.
	verifier := oidc.NewVerifier(i.Issuer, verified(c.dated()), &oidc.Config{ClientID: i.Resource, SupportedSigningAlgs: names(algorithms), Now: i.now})
	if _, err := verifier.Verify(ctx, token); err != nil {
		return nil, err
	}
	if err := c.access(jws); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAccess, err)
	}
	return c, nil
}

// verified is the payload of a token whose signature was checked.
type verified []byte

// VerifySignature implements oidc.KeySet.
func (v verified) VerifySignature(context.Context, string) ([]byte, error) { return v, nil }

// bearer is the token of a request.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// ready asks the issuer who it is, unless it is known.
func (i *Issuer) ready(ctx context.Context) (*keySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	if i.failed != nil && i.now().Sub(i.failedAt) < issuerAgain {
		return nil, i.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTimeout) // whoever asks first asks for all
	defer cancel()
	at, err := i.discover(ctx)
	if err != nil {
		i.failed, i.failedAt = err, i.now()
		return nil, err
	}
	i.keys = &keySet{at: at, get: i.get, now: i.now}
	i.failed = nil
	return i.keys, nil
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

// HasMetadataAt reports whether clients look for the metadata under a path, by the resource's address
// as they know it: what stands in front of this service may serve it below another one.
func (i *Issuer) HasMetadataAt(path string) bool {
	u, err := url.Parse(i.MetadataURL())
	return err == nil && u.Path == path
}

// WellKnownResource is where the metadata of a protected resource are (RFC 9728); the path of
// the resource follows.
const WellKnownResource = "/.well-known/oauth-protected-resource"

// Challenge is the header WWW-Authenticate that goes with a refusal (RFC 6750, section 3); "" where
// another token would change nothing. Only what came with a token has an error.
func (i *Issuer) Challenge(refusal error) string {
	c := `Bearer resource_metadata="` + i.MetadataURL() + `"`
	if len(i.Scopes) > 0 {
		c += `, scope="` + strings.Join(i.Scopes, " ") + `"`
	}
	switch {
	case errors.Is(refusal, errScope):
		return c + `, error="insufficient_scope"`
	case memory.CodeOf(refusal) != memory.CodeUnauthenticated:
		return ""
	case errors.Is(refusal, errNoToken):
		return c
	}
	return c + `, error="invalid_token"`
}
