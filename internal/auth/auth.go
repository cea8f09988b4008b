// Package auth decides whether a caller may talk to this node at all.
//
// Its job: one gate with one operator token, asked by HTTP and by NATS alike,
// and the file in which that token lives.
//
// Invariants: tokens are compared in constant time; no error and no log line
// holds a token; a token file that others can read is refused, not used.
//
// Not its job: what an authenticated caller may see or do.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync/atomic"

	"mneme/internal/events"
	"mneme/memory"
)

// Mode says how callers prove who they are.
type Mode string

// The modes.
const (
	ModeOff   Mode = "off"   // nobody has to
	ModeToken Mode = "token" // everyone presents the operator token
)

// Gate admits callers. It is safe for concurrent use.
type Gate struct {
	mode  Mode
	token atomic.Pointer[counting]
}

// counting is the token that counts.
type counting struct {
	sum      [sha256.Size]byte
	replaced chan struct{} // closed when another one counts
}

// NewGate makes a gate. ModeToken needs a token that CheckToken accepts;
// ModeOff ignores it.
func NewGate(mode Mode, token string) (*Gate, error) {
	switch mode {
	case ModeOff:
		return &Gate{mode: mode}, nil
	case ModeToken:
		g := &Gate{mode: mode}
		_, err := g.SetToken(token)
		return g, err
	}
	return nil, memory.Errorf(memory.CodeInvalid, "auth mode %.40q is unknown", string(mode)).WithHint("modes are off and token")
}

// SetToken has another token count from the next request on, and says whether it is another
// one. What was admitted before hears of it by Replaced.
func (g *Gate) SetToken(token string) (changed bool, err error) {
	if err := CheckToken(token); err != nil {
		return false, err
	}
	next := &counting{sum: sha256.Sum256([]byte(token)), replaced: make(chan struct{})}
	before := g.token.Load()
	if before != nil && subtle.ConstantTimeCompare(next.sum[:], before.sum[:]) == 1 {
		return false, nil
	}
	if before = g.token.Swap(next); before != nil {
		close(before.replaced)
	}
	return true, nil
}

// Replaced is closed when the token that counts now does not any more; nil, where none is asked
// for. Who asks before a request is admitted hears of every replacement since.
func (g *Gate) Replaced() <-chan struct{} {
	if g.mode == ModeOff {
		return nil
	}
	return g.token.Load().replaced
}

// matches compares digests, so that neither length nor content of the token
// shows in the time it takes.
func (g *Gate) matches(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token.Load().sum[:]) == 1
}

// Identity is who a caller was admitted as.
type Identity struct {
	Principal string
	// Operator says that the caller proved to be the operator: by the token, or
	// by reaching the node through its admin socket.
	Operator bool
}

type localKey struct{}

// Local marks a context as that of connections to the admin socket, which only
// the user who runs the node can open.
func Local(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

// IsLocal reports whether a request came through the admin socket.
func IsLocal(ctx context.Context) bool { return ctx.Value(localKey{}) != nil }

type admittedKey struct{}

// Admitted marks a context as that of requests which the node makes to itself for a caller
// that was admitted.
func Admitted(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, admittedKey{}, id)
}

// IsAdmitted reports whether a request is one that the node makes to itself.
func IsAdmitted(ctx context.Context) bool { return ctx.Value(admittedKey{}) != nil }

// Request admits an HTTP request that presents the token as
// "Authorization: Bearer <token>", or that came through the admin socket, or that the node
// makes for somebody who was admitted. The error is CodeUnauthenticated.
func (g *Gate) Request(r *http.Request) (Identity, error) {
	if id, ok := r.Context().Value(admittedKey{}).(Identity); ok {
		return id, nil
	}
	if IsLocal(r.Context()) {
		return Identity{Principal: events.PublicPrincipal, Operator: true}, nil
	}
	if g.mode == ModeOff {
		return Identity{Principal: events.PublicPrincipal}, nil
	}
	if err := g.checkToken(r); err != nil {
		return Identity{}, err
	}
	return Identity{Principal: events.PublicPrincipal, Operator: true}, nil
}

func (g *Gate) checkToken(r *http.Request) error {
	const hint = "send the operator token as \"Authorization: Bearer …\"; memctl takes it from --token-file or MNEME_TOKEN"
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return memory.Errorf(memory.CodeUnauthenticated, "this node asks for a token").WithHint(hint)
	}
	if !g.matches(strings.TrimSpace(token)) {
		return memory.Errorf(memory.CodeUnauthenticated, "the token is not the one of this node").
			WithHint("the operator token is in <data-dir>/keys/operator.token unless MNEME_AUTH_TOKEN was set")
	}
	return nil
}

// Credentials admits a NATS connection that presents the token as auth token
// or as password, with any user name.
func (g *Gate) Credentials(_, password, token string) bool {
	if g.mode == ModeOff {
		return true
	}
	// Both are always compared: the time must not say which one was right.
	byToken, byPassword := g.matches(token), g.matches(password)
	return byToken || byPassword
}
