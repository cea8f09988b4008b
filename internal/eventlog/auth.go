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

const (
	nodeUser = "mneme-node"
	// systemUser is the node, too, where it changes which servers there are.
	systemUser = "mneme-system"
	// nodeInbox is where the node gets its own answers: services refuse replies
	// outside inboxes and imports, and this one is neither.
	nodeInbox = "_MNEME"
)

// authenticator tells the node from everyone else.
type authenticator struct {
	nodePassword string
	admit        ClientAuth
	account      func(name string) (*server.Account, error)
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

// Check implements server.Authentication. What a client claims about itself in
// other ways than user, password and token is cleared: nobody has checked it,
// and the server would pass it on to responders as if somebody had.
func (a *authenticator) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	o.Nkey, o.Sig, o.JWT = "", "", ""
	if own := map[string]string{nodeUser: nodeAccount, systemUser: systemAccount}[o.Username]; own != "" {
		if subtle.ConstantTimeCompare([]byte(o.Password), []byte(a.nodePassword)) != 1 {
			return false
		}
		return a.register(c, own, &server.User{Username: o.Username})
	}
	if a.admit != nil && !a.admit(o.Username, o.Password, o.Token) {
		return false
	}
	return a.register(c, publicAccount, &server.User{Username: events.PublicPrincipal, Permissions: publicPermissions()})
}

// register puts a connection in its account. Without one it would land in the
// server's global account, so it is refused then.
func (a *authenticator) register(c server.ClientAuthentication, account string, u *server.User) bool {
	acc, err := a.account(account)
	if err != nil {
		return false
	}
	u.Account = acc
	c.RegisterUser(u)
	return true
}
