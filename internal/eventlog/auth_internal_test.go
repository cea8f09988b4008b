package eventlog

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// caller is a connection that asks to be let in.
type caller struct {
	opts server.ClientOpts
	as   *server.User
}

func (c *caller) GetOpts() *server.ClientOpts                 { return &c.opts }
func (c *caller) GetTLSConnectionState() *tls.ConnectionState { return nil }
func (c *caller) RegisterUser(u *server.User)                 { c.as = u }
func (c *caller) RemoteAddress() net.Addr                     { return nil }
func (c *caller) GetNonce() []byte                            { return nil }
func (c *caller) Kind() int                                   { return server.CLIENT }
func (c *caller) GetID() uint64                               { return 1 }

// TestClientCannotClaimAnIdentity: an nkey, a signature or a JWT that a client sends
// has been checked by nobody; left in place, the server names the client by it to
// responders and in its lists of connections.
func TestClientCannotClaimAnIdentity(t *testing.T) {
	a, err := newAuthenticator(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var accounts []string
	a.account = func(name string) (*server.Account, error) {
		accounts = append(accounts, name)
		return server.NewAccount(name), nil
	}
	c := &caller{opts: server.ClientOpts{Username: "mneme", Password: "x", Nkey: "UAAAA", Sig: "signed", JWT: "e.y.J"}}
	if !a.Check(c) {
		t.Fatal("refused")
	}
	if c.opts.Nkey != "" || c.opts.Sig != "" || c.opts.JWT != "" {
		t.Errorf("the claim stays: %+v", c.opts)
	}
	if len(accounts) != 1 || accounts[0] != publicAccount || c.as == nil || c.as.Username == nodeUser || c.as.Permissions == nil {
		t.Errorf("let in to %v as %+v", accounts, c.as)
	}
	for _, name := range []string{nodeUser, systemUser} {
		if a.Check(&caller{opts: server.ClientOpts{Username: name, Password: "x", Nkey: "UAAAA"}}) {
			t.Errorf("%s is let in without the password", name)
		}
	}
}
