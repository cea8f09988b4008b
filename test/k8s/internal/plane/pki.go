package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// The addresses of a node: its own, and its pods'.
const (
	NodeIP   = "10.0.0.1"
	podRange = "10.244.0.0/24"
	services = "10.96.0.0/16"
	names    = "10.96.0.10" // of the service that pods ask for names
)

// user is somebody whom the API server knows by a certificate.
type user struct {
	file, name string
	group      string
	hosts      []string
}

var users = []user{
	{"apiserver", "kube-apiserver", "", []string{"127.0.0.1", "10.96.0.1", "localhost", "kubernetes", "kubernetes.default.svc"}},
	{"admin", "admin", "system:masters", nil},
	{"controllers", "system:kube-controller-manager", "", nil},
	{"scheduler", "system:kube-scheduler", "", nil},
	{"kubelet", "system:node:node1", "system:nodes", []string{"127.0.0.1", NodeIP, "node1"}},
}

// makePKI makes an authority and a certificate for each user.
func (p *Plane) makePKI() {
	ca := p.key("ca")
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	p.certificate("ca", root, root, ca, ca)
	for i, u := range users {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: u.name}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		if u.group != "" {
			c.Subject.Organization = []string{u.group}
		}
		for _, host := range u.hosts {
			if ip := net.ParseIP(host); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, host)
			}
		}
		p.certificate(u.file, c, root, p.key(u.file), ca)
	}
	sa := p.key("sa")
	public, err := x509.MarshalPKIXPublicKey(sa.Public())
	p.check(err)
	p.write("pki/sa.pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

func (p *Plane) key(name string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.check(err)
	der, err := x509.MarshalECPrivateKey(key)
	p.check(err)
	p.write("pki/"+name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	return key
}

func (p *Plane) certificate(name string, c, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	p.check(err)
	p.write("pki/"+name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

func (p *Plane) check(err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatal(err)
	}
}

func (p *Plane) writeKubeconfigs() {
	for _, u := range users {
		p.write("pki/"+u.file+".conf", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: u, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, p.api, p.pki("ca.crt"), p.pki(u.file+".crt"), p.pki(u.file+".key")))
	}
}
