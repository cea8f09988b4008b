package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
)

// certManager has cert-manager's controllers make the certificates of another cluster, and
// make one anew, which running pods take.
func (c *cluster) certManager() {
	c.clear()
	c.CertManagerKinds()
	c.RunInside("certmanager")
	if out := c.walk("Certificates by cert-manager"); strings.Count(out, " voter ") != 3 {
		c.t.Errorf("not three voters:\n%s", out)
	}
	c.voters(3)
	before := c.shown("mneme-0")
	c.mneme("delete", "secret", "mneme-tls")
	c.until("pods show the certificate that was made anew", func() error {
		for _, pod := range []string{"mneme-0", "mneme-1", "mneme-2"} {
			if c.shown(pod).SerialNumber.Cmp(before.SerialNumber) == 0 {
				return errors.New(pod + " shows the former one")
			}
		}
		return nil
	})
	c.voters(3)
	c.say("a certificate that cert-manager made anew is shown by all running pods; serial %x, then %x", before.SerialNumber, c.shown("mneme-2").SerialNumber)
}

// shown is the certificate that a pod shows to clients, which must be of the authority that
// its Secret names.
func (c *cluster) shown(pod string) *x509.Certificate {
	c.t.Helper()
	var leaf *x509.Certificate
	c.until(pod+" is there and its certificate is good", func() error {
		text, err := c.Try("", "-n", "mneme", "get", "secret", "mneme-tls", "-o", `jsonpath={.data.ca\.crt}`)
		if err != nil {
			return err
		}
		authority, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		conn, err := tls.Dial("tcp", pod+".mneme-peers.mneme.svc.cluster.local:8787", &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots})
		if err != nil {
			return err
		}
		leaf = conn.ConnectionState().PeerCertificates[0]
		return conn.Close()
	})
	return leaf
}
