package eventlog

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/nats-io/nats-server/v2/server"

	"mneme/internal/events"
)

// ClientAuth decides whether a client may connect as the public user. It gets
// what the client sent, empty where it sent nothing, and runs concurrently.
type ClientAuth func(user, password, token string) bool

// TokenAuth admits clients that present the token as token or as password.
func TokenAuth(secret string) ClientAuth {
	equal := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(secret)) == 1 }
	return func(_, password, token string) bool {
		return secret != "" && (equal(token) || equal(password))
	}
}

const (
	nodeUser   = "mneme-node"
	publicUser = "public"
	// nodeInbox is where the node gets its answers. The public may use _INBOX,
	// so acks sent there could be read, and forged.
	nodeInbox = "_MNEME"
)

// publicPermissions is all that a client who is not the node may do.
func publicPermissions() *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			events.SubjectIn + ".>", events.SubjectAPI + ".>", "_INBOX.>", "$SRV.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{
			"_INBOX.>", events.SubjectFeed + ".>",
		}},
	}
}

// authenticator tells the node from everyone else.
type authenticator struct {
	nodePassword string
	admit        ClientAuth
}

func newAuthenticator(admit ClientAuth, random io.Reader) (*authenticator, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("password of the node: %w", err)
	}
	return &authenticator{nodePassword: hex.EncodeToString(b[:]), admit: admit}, nil
}

// Check implements server.Authentication.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.Username == nodeUser {
		if subtle.ConstantTimeCompare([]byte(o.Password), []byte(a.nodePassword)) != 1 {
			return false
		}
		c.RegisterUser(&server.User{Username: nodeUser})
		return true
	}
	if a.admit != nil && !a.admit(o.Username, o.Password, o.Token) {
		return false
	}
	c.RegisterUser(&server.User{Username: publicUser, Permissions: publicPermissions()})
	return true
}
