package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"mneme/internal/certs"
	"mneme/memory"
)

// TLSConfig names files in PEM by which a node and its clients know each other, over
// HTTP and NATS alike. Files that are replaced count from the next connection on.
type TLSConfig struct {
	Cert, Key string // the node's certificate, with what lies between it and an authority, and its key
	// ClientCA holds the authorities of which every client must show a certificate; "" =
	// clients show none.
	ClientCA string
}

func (c *TLSConfig) validate() error {
	const hint = "memctl cluster certs --out certs --server mneme makes both for development, in certs/clients"
	switch {
	case c == nil:
		return nil
	case c.Cert == "" && c.Key == "":
		return usage("--tls-client-ca is given without --tls-cert and --tls-key", hint)
	case c.Key == "":
		return usage("--tls-cert is given without --tls-key", hint)
	case c.Cert == "":
		return usage("--tls-key is given without --tls-cert", hint)
	}
	return nil
}

// openCertificates reads the certificates towards clients.
func (f *front) openCertificates(cfg *TLSConfig, log *slog.Logger) error {
	if cfg == nil {
		return nil
	}
	files, err := certs.Open(certs.Options{Cert: cfg.Cert, Key: cfg.Key, Authorities: cfg.ClientCA, Check: forServers, Logger: log})
	if err != nil {
		return certificateError(err, "--tls-cert and --tls-key name a certificate and its own key, --tls-client-ca the authorities of clients, all in PEM")
	}
	f.certs = files
	return nil
}

// certificateError says why certificates cannot be used; hint is what helps mostly.
func certificateError(err error, hint string) error {
	if mode := (*certs.ModeError)(nil); errors.As(err, &mode) {
		hint = fmt.Sprintf("chmod 600 %s; its group may read it, 640; if somebody else may have read the key, put another certificate in its place", mode.Path)
	}
	return usage(err.Error(), hint)
}

// forServers refuses a certificate that no client would take.
func forServers(pair *tls.Certificate, _ *x509.CertPool) error {
	usages := pair.Leaf.ExtKeyUsage
	if len(usages)+len(pair.Leaf.UnknownExtKeyUsage) > 0 && !slices.Contains(usages, x509.ExtKeyUsageServerAuth) && !slices.Contains(usages, x509.ExtKeyUsageAny) {
		return errors.New("the certificate is not for a server: its extended key usage names clients or others only")
	}
	return nil
}

// tls is how the node meets clients; nil is in clear.
func (f *front) tls() *tls.Config {
	if f.certs == nil {
		return nil
	}
	return f.certs.Server()
}

// secure has the connections of a listener begin with TLS, where there are certificates.
func (f *front) secure(l net.Listener) net.Listener {
	if f.certs == nil {
		return l
	}
	return tls.NewListener(l, f.certs.Server())
}

// names are those that the certificate towards clients is for: a page of another name
// cannot have got through to this node.
func (f *front) names() (out []string) {
	if f.certs == nil {
		return nil
	}
	pair, _ := f.certs.Current()
	for _, name := range pair.Leaf.DNSNames {
		if !strings.Contains(name, "*") {
			out = append(out, name)
		}
	}
	for _, ip := range pair.Leaf.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// The certificates of a node, by whom they are shown to.
const (
	certClients = "clients"
	certNodes   = "nodes"
)

// certificates are those that the node shows.
func (d *doctor) certificates() (out []memory.CertificateStatus) {
	n := d.n
	if n.front.certs != nil {
		out = append(out, memory.CertificateStatus{For: certClients, ExpiresAt: n.front.certs.Expires(), ClientsVerified: n.cfg.TLS.ClientCA != ""})
	}
	if n.peers != nil {
		out = append(out, memory.CertificateStatus{For: certNodes, ExpiresAt: n.peers.certs.Expires()})
	}
	return out
}

// A certificate that ends within endsSoon is warned about, once in warnEvery; the files
// are looked at in steps of lookEvery also where nobody connects.
const (
	endsSoon  = 14 * 24 * time.Hour
	warnEvery = 24 * time.Hour
	lookEvery = time.Hour
)

const renewHint = "put a new certificate and its key in the place of the old ones; a restart is not needed"

// expiry remembers what was warned about.
type expiry struct {
	log    *slog.Logger
	warned map[string]time.Time
}

// look warns about certificates that end soon or have ended.
func (e *expiry) look(now time.Time, all []memory.CertificateStatus) {
	for _, c := range all {
		left := c.ExpiresAt.Sub(now)
		if left > endsSoon {
			delete(e.warned, c.For)
			continue
		}
		at, warned := e.warned[c.For]
		endedSince := left <= 0 && at.Before(c.ExpiresAt)
		if warned && !endedSince && now.Sub(at) < warnEvery {
			continue
		}
		e.warned[c.For] = now
		if left <= 0 {
			e.log.Error("a certificate has ended, new connections fail", "for", c.For, "expired", c.ExpiresAt, "hint", renewHint)
		} else {
			e.log.Warn("a certificate ends soon", "for", c.For, "expires", c.ExpiresAt, "hint", renewHint)
		}
	}
}

// watchCertificates has replaced files noticed, and warns before certificates end.
func (d *doctor) watchCertificates(ctx context.Context) {
	n := d.n
	if len(d.certificates()) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	n.onClose("watch of certificates", func(context.Context) error { stop(); <-done; return nil })
	go func() {
		defer close(done)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		watch := expiry{log: n.cfg.Logger, warned: map[string]time.Time{}}
		for {
			watch.look(n.cfg.Now(), d.certificates())
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// checkCertificates tells of certificates in doctor.
func (d *doctor) checkCertificates() (out []memory.Check) {
	now := d.n.cfg.Now()
	for _, c := range d.certificates() {
		check := memory.Check{Name: "certificate for " + c.For, State: "ok", Detail: "counts until " + c.ExpiresAt.Format(time.RFC3339)}
		if left := c.ExpiresAt.Sub(now); left <= 0 {
			check.State, check.Detail = "fail", "ended on "+c.ExpiresAt.Format(time.RFC3339)
		} else if left <= endsSoon {
			check.State, check.Detail = "warn", fmt.Sprintf("ends in %d days, on %s", int(left.Hours()/24), c.ExpiresAt.Format(time.RFC3339))
		}
		if check.State != "ok" {
			check.Hint = renewHint
		}
		out = append(out, check)
	}
	return out
}
