package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/internal/certs"
)

// The files of a directory of certificates: the authority's, and for each node its
// own and the key of it, in PEM.
const (
	AuthorityFile = "ca.crt"
	authorityKey  = "ca.key" // where memctl cluster certs is called, and on no node
	certSuffix    = ".crt"
	keySuffix     = ".key"
)

// ErrCertificates: the files are not there, do not belong together, or cannot be used.
var ErrCertificates = certs.ErrUnusable

// Certificates are a node's certificate, its key and the authorities it trusts, read
// from files and read again when those change. It may be used concurrently.
type Certificates struct{ files *certs.Files }

// OpenCertificates reads <node>.crt, <node>.key and ca.crt of a directory, where node is
// the id that the certificate is for. Errors are ErrCertificates.
func OpenCertificates(dir, node string, log *slog.Logger) (*Certificates, error) {
	opt := certs.Options{Cert: filepath.Join(dir, node+certSuffix), Key: filepath.Join(dir, node+keySuffix),
		Authorities: filepath.Join(dir, AuthorityFile), Logger: log}
	opt.Check = func(pair *tls.Certificate, roots *x509.CertPool) error {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: middle(pair.Leaf),
			Intermediates: intermediates(*pair), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
				return outOfTime(opt, pair.Leaf, invalid.Cert)
			}
			return fmt.Errorf("%s is not of the authority in %s: %w", opt.Cert, opt.Authorities, err)
		}
		if !isFor(pair.Leaf, node) {
			return fmt.Errorf("%s is for %s, not for the node %s: its common name must be the node's id", opt.Cert, certified(pair.Leaf), node)
		}
		return nil
	}
	files, err := certs.Open(opt)
	if err != nil {
		return nil, err
	}
	return &Certificates{files}, nil
}

// Reload reads the files now; see certs.Files.
func (c *Certificates) Reload() (changed bool, err error) { return c.files.Reload() }

// Expires returns the end of the node's own certificate.
func (c *Certificates) Expires() time.Time { return c.files.Expires() }

// Server returns the configuration of the side that is connected to.
func (c *Certificates) Server() *tls.Config { return c.files.Server() }

// Client returns the configuration of a connection to a host, whose certificate must
// be for that name or address.
func (c *Certificates) Client(host string) *tls.Config {
	pair, roots := c.files.Current()
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair}, RootCAs: roots, ServerName: host}
}

// Both returns one configuration for both sides, for a library that takes no more than
// one and never asks again. The certificate and, as the side that is connected to, the
// authorities follow the files. The authorities that a connection to others trusts are
// those of now: a new one is put beside the old one, and counts after a restart.
func (c *Certificates) Both() *tls.Config {
	_, roots := c.files.Current()
	both := c.Server()
	both.RootCAs = roots
	both.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, _ := c.files.Current()
		return pair, nil
	}
	return both
}

// isFor reports whether a certificate is that of the node with an id. Its common name
// says so; one without is for each of its DNS names.
func isFor(cert *x509.Certificate, id string) bool {
	if cert.Subject.CommonName == "" {
		return slices.Contains(cert.DNSNames, id)
	}
	return cert.Subject.CommonName == id
}

// outOfTime says of a certificate that counts at no time, or not together with one that it
// is signed by, which of the two that is.
func outOfTime(opt certs.Options, leaf, bad *x509.Certificate) error {
	when := func(c *x509.Certificate) string {
		return fmt.Sprintf("from %s to %s", c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
	}
	if bad.Equal(leaf) {
		return fmt.Errorf("%s is valid %s, which is at no time", opt.Cert, when(leaf))
	}
	return fmt.Errorf("%s is valid %s, when its authority, %s, is not: that one is %s", opt.Cert, when(leaf), bad.Subject, when(bad))
}

// certified says to people what a certificate is for.
func certified(cert *x509.Certificate) string {
	if cert.Subject.CommonName != "" {
		return cert.Subject.CommonName
	}
	return strings.Join(cert.DNSNames, ", ")
}

// middle is a moment at which a certificate counts: whether it does now is for each
// connection to find out.
func middle(c *x509.Certificate) time.Time { return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 2) }

func intermediates(pair tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}

// CertificatesHint says how a node gets certificates that the others trust: `memctl cluster
// certs` makes them only where the key of the authority is, which belongs on no node; in a
// folder without any authority it would make another one.
func CertificatesHint(dir, node string) string {
	is := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	switch {
	case is(authorityKey):
		return fmt.Sprintf("memctl cluster certs --out %s %s makes them", dir, node)
	case is(AuthorityFile):
		return fmt.Sprintf("memctl cluster certs --out DIR %[1]s makes them, where DIR has the authority's %[2]s, which is not in %[3]s; then copy %[1]s.crt and %[1]s.key there. An authority of your own signs them with the common name %[1]s",
			node, authorityKey, dir)
	}
	return fmt.Sprintf("where the cluster's authority is (the folder with %[2]s): memctl cluster certs --out DIR %[1]s, and copy %[1]s.crt, %[1]s.key and %[3]s to %[4]s; for a new cluster memctl cluster certs --out %[4]s %[1]s and the ids of the other nodes makes one",
		node, authorityKey, AuthorityFile, dir)
}
