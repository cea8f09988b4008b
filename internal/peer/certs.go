package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The files of a directory of certificates: the authority's, and for each node its
// own and the key of it, in PEM.
const (
	AuthorityFile = "ca.crt"
	certSuffix    = ".crt"
	keySuffix     = ".key"
)

// ErrCertificates: the files are not there, do not belong together, or cannot be used.
var ErrCertificates = errors.New("certificates cannot be used")

// Certificates are a node's certificate, its key and the authorities it trusts, read
// from files and read again when those change. It may be used concurrently.
type Certificates struct {
	node                 string // the id
	cert, key, authority string
	log                  *slog.Logger

	mu    sync.Mutex
	state [3]fileState
	pair  *tls.Certificate
	roots *x509.CertPool
}

// fileState is what tells that a file was replaced.
type fileState struct {
	size     int64
	modified time.Time
	file     fs.FileInfo
}

func (s fileState) equal(o fileState) bool {
	return s.size == o.size && s.modified.Equal(o.modified) && (s.file == nil) == (o.file == nil) && (s.file == nil || os.SameFile(s.file, o.file))
}

// OpenCertificates reads <node>.crt, <node>.key and ca.crt of a directory, where node is
// the id that the certificate is for. Errors are ErrCertificates.
func OpenCertificates(dir, node string, log *slog.Logger) (*Certificates, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificates{node: node, cert: filepath.Join(dir, node+certSuffix), key: filepath.Join(dir, node+keySuffix),
		authority: filepath.Join(dir, AuthorityFile), log: log}
	c.state = c.look()
	if err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// Expires returns the end of the node's own certificate.
func (c *Certificates) Expires() time.Time {
	pair, _ := c.current()
	return pair.Leaf.NotAfter
}

// Server returns the configuration of the side that is connected to.
func (c *Certificates) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, roots := c.current()
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair}, ClientCAs: roots,
				ClientAuth: tls.RequireAndVerifyClientCert, SessionTicketsDisabled: true}, nil
		},
	}
}

// Client returns the configuration of a connection to a host, whose certificate must
// be for that name or address.
func (c *Certificates) Client(host string) *tls.Config {
	pair, roots := c.current()
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair}, RootCAs: roots, ServerName: host}
}

// Both returns one configuration for both sides, for a library that takes no more than
// one and never asks again. The certificate and, as the side that is connected to, the
// authorities follow the files. The authorities that a connection to others trusts are
// those of now: a new one is put beside the old one, and counts after a restart.
func (c *Certificates) Both() *tls.Config {
	_, roots := c.current()
	both := c.Server()
	both.RootCAs = roots
	both.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, _ := c.current()
		return pair, nil
	}
	return both
}

// current returns what counts now. Files that were replaced but cannot be used, for
// one of them may still be the old one, leave what counted before.
func (c *Certificates) current() (*tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.look(); !c.same(now) {
		c.state = now
		if err := c.read(); err != nil {
			c.log.Warn("replaced certificates are not taken", "err", err)
		} else {
			c.log.Info("certificates were replaced", "expires", c.pair.Leaf.NotAfter)
		}
	}
	return c.pair, c.roots
}

func (c *Certificates) same(now [3]fileState) bool {
	for i := range now {
		if !now[i].equal(c.state[i]) {
			return false
		}
	}
	return true
}

func (c *Certificates) look() (now [3]fileState) {
	for i, path := range []string{c.cert, c.key, c.authority} {
		if info, err := os.Stat(path); err == nil {
			now[i] = fileState{info.Size(), info.ModTime(), info}
		}
	}
	return now
}

func (c *Certificates) read() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCertificates, c.cert, err)
	}
	pem, err := os.ReadFile(c.authority)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificates, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%w: %s holds no certificate", ErrCertificates, c.authority)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: middle(pair.Leaf),
		Intermediates: intermediates(pair), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return fmt.Errorf("%w: %s is not of the authority in %s: %w", ErrCertificates, c.cert, c.authority, err)
	}
	if !isFor(pair.Leaf, c.node) {
		return fmt.Errorf("%w: %s is for %s, not for the node %s: its common name must be the node's id", ErrCertificates, c.cert, certified(pair.Leaf), c.node)
	}
	c.pair, c.roots = &pair, roots
	return nil
}

// isFor reports whether a certificate is that of the node with an id. Its common name
// says so; one without is for each of its DNS names.
func isFor(cert *x509.Certificate, id string) bool {
	if cert.Subject.CommonName == "" {
		return slices.Contains(cert.DNSNames, id)
	}
	return cert.Subject.CommonName == id
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
