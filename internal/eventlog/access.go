package eventlog

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// Access is how a client proves to an external NATS who it is, and knows its servers, by
// files. User and password, or a token, may stand in the URL instead. Certificates and
// credentials are read again at each connection.
type Access struct {
	Creds         string // a JWT and the seed of its key, as nsc writes them, or USER:PASSWORD
	NKey          string // the seed of a key
	CA, Cert, Key string // PEM: authorities for the servers, and the client's certificate
}

func (a Access) options() ([]nats.Option, error) {
	if _, err := a.tls(); err != nil {
		return nil, err
	}
	var out []nats.Option
	if a.Creds != "" {
		creds, err := credentials(a.Creds)
		if err != nil {
			return nil, err
		}
		out = append(out, creds)
	}
	if a.NKey != "" {
		if _, err := os.Stat(a.NKey); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAccess, err)
		}
		seed, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil { // its words may hold what stands in the file
			return nil, fmt.Errorf("%w: %s holds no seed of an NKey", ErrAccess, a.NKey)
		}
		out = append(out, seed)
	}
	if a.CA != "" {
		out = append(out, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		out = append(out, nats.ClientCert(a.Cert, a.Key))
	}
	return out, nil
}

// credentials are those of a file, which says by how it begins of which kind they are.
func credentials(file string) (nats.Option, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccess, err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN NATS")) {
		return nats.UserCredentials(file), nil
	}
	user, password, ok := userPassword(text)
	if !ok {
		return nil, fmt.Errorf("%w: %s holds neither a JWT with its key nor USER:PASSWORD", ErrAccess, file)
	}
	return nats.UserInfoHandler(func() (string, string) {
		if text, err := os.ReadFile(file); err == nil {
			if u, p, ok := userPassword(text); ok {
				return u, p
			}
		}
		return user, password // while the file is away or half written, the ones that it had
	}), nil
}

// userPassword reads one line of both.
func userPassword(text []byte) (user, password string, ok bool) {
	line := strings.TrimRight(string(text), "\r\n")
	user, password, ok = strings.Cut(line, ":")
	return user, password, ok && user != "" && password != "" && !strings.ContainsAny(line, "\r\n")
}

// tls is what HTTP uses of it; nil is the system's.
func (a Access) tls() (*tls.Config, error) {
	if a.CA == "" && a.Cert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		pem, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAccess, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: %s holds no certificate of an authority", ErrAccess, a.CA)
		}
	}
	if a.Cert != "" {
		if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
			return nil, fmt.Errorf("%w: certificate %s with key %s: %w", ErrAccess, a.Cert, a.Key, err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
			return &pair, err
		}
	}
	return c, nil
}
