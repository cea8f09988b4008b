package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	exact "github.com/go-jose/go-jose/v4/json" // the names of claims in their own case, each once
)

// claims are those of a token that count, by exactly these names.
type claims struct {
	Issuer   string   `json:"iss"`
	Audience audience `json:"aud"`
	Scope    any      `json:"scope"` // by the standard a string; Duende IdentityServer has a list
	Scopes   any      `json:"scp"`   // of issuers that are older than the standard
	ClientID string   `json:"client_id"`

	Bound  any    `json:"cnf"`       // to a key that the sender has to prove
	Events any    `json:"events"`    // it tells of something, such as a logout
	Nonce  any    `json:"nonce"`     // it answers a sign-in
	Hash   any    `json:"at_hash"`   // so does what goes with an access token
	Type   string `json:"typ"`       // as Keycloak says what it is
	Use    string `json:"token_use"` // as Cognito does

	all map[string]exact.RawMessage
}

type audience []string

func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

func claimsOf(payload []byte) (*claims, error) {
	c := &claims{}
	return c, errors.Join(exact.Unmarshal(payload, c), exact.Unmarshal(payload, &c.all))
}

// dated are the claims of which the verifier judges, without others that it would take for them:
// it does not tell their case.
func (c *claims) dated() []byte {
	of := map[string]json.RawMessage{}
	for _, name := range []string{"iss", "aud", "exp", "nbf"} {
		if v, ok := c.all[name]; ok {
			of[name] = json.RawMessage(v)
		}
	}
	b, _ := json.Marshal(of) // it was JSON
	return b
}

// access says why a token is no access token that whoever holds it may use. By its type it is one
// (RFC 9068), or, as many issuers say no more than JWT, by what it holds.
func (c *claims) access(jws *jose.JSONWebSignature) error {
	typ, _ := jws.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string)
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	switch {
	case c.Bound != nil:
		return errors.New("it is bound to a key (cnf), whose proof this service does not check")
	case c.Events != nil:
		return errors.New("it tells of an event")
	case typ == "at+jwt":
		return nil
	case typ != "" && typ != "jwt":
		return fmt.Errorf("its type is %.40q", typ)
	case c.Nonce != nil || c.Hash != nil:
		return errors.New("it tells a client who signed in")
	case c.Type != "" && c.Type != "Bearer", c.Use != "" && c.Use != "access":
		return fmt.Errorf("it calls itself %.40q", c.Type+c.Use)
	case (c.Scope == nil || c.Scope == "") && c.Scopes == nil && c.ClientID == "":
		return errors.New("it has neither a scope nor a client_id")
	}
	return nil
}

// has reports whether the token has a scope.
func (c *claims) has(scope string) bool {
	for _, of := range []any{c.Scope, c.Scopes} {
		switch v := of.(type) {
		case string:
			if slices.Contains(strings.Fields(v), scope) {
				return true
			}
		case []any:
			if slices.Contains(v, any(scope)) {
				return true
			}
		}
	}
	return false
}
