// Package devca makes certificates for a cluster whose operator has no authority of
// their own: for development, tests and small teams. A directory holds an authority
// and a certificate for each node; whoever has the directory can make more of them,
// so that its key belongs on no node. Certificates towards clients are of an authority
// of their own, in another directory: whoever has one of the nodes' is a node.
package devca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mneme/internal/files"
)

const (
	authorityCert = "ca.crt"
	authorityKey  = "ca.key"

	authorityYears = 10
	// Sooner than this after a node's clock a certificate must count all the same.
	skew = time.Hour
)

// Options of Make.
type Options struct {
	Dir   string   // made when missing
	Nodes []string // ids of nodes, or names of servers or clients, which are also names that their certificates are for
	Hosts []string // more names and addresses that each of them is for
	Use   Use
	Valid time.Duration
	Now   func() time.Time
}

// Use says what certificates are for.
type Use int

// The uses. A directory of ForNodes is none of the others, which may share one.
const (
	ForNodes   Use = iota // nodes among each other, on both sides
	ForServers            // nodes towards clients
	ForClients            // clients; they name no host
)

// AuthorityFile is the authority's certificate in a directory.
const AuthorityFile = authorityCert

// Local are the names and addresses that every certificate is for.
var Local = []string{"localhost", "127.0.0.1", "::1"}

// Made says what Make did.
type Made struct {
	Authority string // file
	New       bool   // the authority is new
	Nodes     []Node
}

// Node is one certificate.
type Node struct {
	ID      string
	Cert    string // file
	Key     string // file
	Hosts   []string
	Expires time.Time
	Renewed bool // there was one before
}

// ErrAuthority: a directory holds a part of an authority, or one that is no longer good.
var ErrAuthority = errors.New("the directory's authority cannot be used")

// Make makes certificates for nodes, and the authority if the directory has none.
// Certificates that are there are made anew.
func Make(opt Options) (*Made, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if err := files.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, err
	}
	made := &Made{Authority: filepath.Join(opt.Dir, authorityCert)}
	ca, err := load(opt)
	if ca == nil && err == nil {
		made.New = true
		ca, err = create(opt)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range opt.Nodes {
		n, err := ca.node(opt, id)
		if err != nil {
			return made, fmt.Errorf("certificate of %s: %w", id, err)
		}
		made.Nodes = append(made.Nodes, n)
	}
	return made, nil
}

// authority signs.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// load reads the directory's authority; nil if it has nothing of one.
func load(opt Options) (*authority, error) {
	certFile, keyFile := filepath.Join(opt.Dir, authorityCert), filepath.Join(opt.Dir, authorityKey)
	_, noCert := os.Stat(certFile)
	_, noKey := os.Stat(keyFile)
	switch {
	case errors.Is(noCert, fs.ErrNotExist) && errors.Is(noKey, fs.ErrNotExist):
		return nil, nil
	case errors.Is(noKey, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is there, its key %s is not", ErrAuthority, certFile, keyFile)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	switch {
	case !ok || !pair.Leaf.IsCA:
		return nil, fmt.Errorf("%w: %s is no authority", ErrAuthority, certFile)
	case pair.Leaf.Subject.CommonName != authorityName(opt.Use):
		return nil, fmt.Errorf("%w: %s is %q, which is for others: nodes and clients have no authority in common", ErrAuthority, certFile, pair.Leaf.Subject.CommonName)
	case opt.Now().After(pair.Leaf.NotAfter):
		return nil, fmt.Errorf("%w: %s ended on %s", ErrAuthority, certFile, pair.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &authority{pair.Leaf, signer}, nil
}

func create(opt Options) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: authorityName(opt.Use)},
		NotBefore: opt.Now().Add(-skew), NotAfter: opt.Now().AddDate(authorityYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if err := write(opt.Dir, authorityCert, authorityKey, der, key); err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err
}

// authorityName tells the authorities apart, for people and in load.
func authorityName(use Use) string {
	if use == ForNodes {
		return "Mneme development authority"
	}
	return "Mneme development authority towards clients"
}

func (u Use) extended() []x509.ExtKeyUsage {
	switch u {
	case ForServers:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	case ForClients:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

func (a *authority) node(opt Options, id string) (Node, error) {
	n := Node{ID: id, Cert: filepath.Join(opt.Dir, id+".crt"), Key: filepath.Join(opt.Dir, id+".key"),
		Expires: opt.Now().Add(opt.Valid).UTC().Truncate(time.Second)}
	if n.Expires.After(a.cert.NotAfter) {
		n.Expires = a.cert.NotAfter
	}
	if _, err := os.Stat(n.Cert); err == nil {
		n.Renewed = true
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return n, err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: id},
		NotBefore: opt.Now().Add(-skew), NotAfter: n.Expires,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: opt.Use.extended(),
	}
	hosts := slices.Concat([]string{id}, Local, opt.Hosts)
	if opt.Use == ForClients {
		hosts = nil
	}
	for _, host := range hosts {
		if slices.Contains(n.Hosts, host) {
			continue
		}
		n.Hosts = append(n.Hosts, host)
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return n, err
	}
	return n, write(opt.Dir, id+".crt", id+".key", der, key)
}

// write puts the key first: a certificate without its key would be of no use.
func write(dir, certName, keyName string, der []byte, key *ecdsa.PrivateKey) error {
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	err = files.Replace(filepath.Join(dir, keyName), 0o600, files.Bytes(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})))
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, certName), 0o644, files.Bytes(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}
