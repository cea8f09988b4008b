package k8s

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"mneme/internal/peer"
)

// signer makes what Certificates ask for, as cert-manager does: a Secret's tls.crt, tls.key
// and ca.crt.
type signer struct {
	t       *testing.T
	issuers map[string]*certmanagerv1.Issuer
	signed  map[string]*x509.Certificate // by the name of the Secret
	keys    map[string]*ecdsa.PrivateKey
	secrets map[string]map[string][]byte
}

func sign(t *testing.T, objects []runtime.Object) *signer {
	t.Helper()
	s := &signer{t: t, issuers: map[string]*certmanagerv1.Issuer{}, signed: map[string]*x509.Certificate{}, keys: map[string]*ecdsa.PrivateKey{}, secrets: map[string]map[string][]byte{}}
	r := rendered{objects: objects}
	for _, i := range all[*certmanagerv1.Issuer](r) {
		s.issuers[i.Name] = i
	}
	certificates := all[*certmanagerv1.Certificate](r)
	slices.SortStableFunc(certificates, func(a, b *certmanagerv1.Certificate) int { // authorities first
		if a.Spec.IsCA == b.Spec.IsCA {
			return 0
		} else if a.Spec.IsCA {
			return -1
		}
		return 1
	})
	for _, c := range certificates {
		s.certificate(c)
	}
	return s
}

func (s *signer) certificate(c *certmanagerv1.Certificate) {
	s.t.Helper()
	spec := c.Spec
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(len(s.signed) + 1)), Subject: pkix.Name{CommonName: spec.CommonName}, DNSNames: spec.DNSNames,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(spec.Duration.Duration), IsCA: spec.IsCA, BasicConstraintsValid: true}
	for _, usage := range spec.Usages {
		switch usage {
		case certmanagerv1.UsageDigitalSignature:
			template.KeyUsage |= x509.KeyUsageDigitalSignature
		case certmanagerv1.UsageCertSign:
			template.KeyUsage |= x509.KeyUsageCertSign
		case certmanagerv1.UsageServerAuth:
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		case certmanagerv1.UsageClientAuth:
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		default:
			s.t.Errorf("%s is for %s", c.Name, usage)
		}
	}
	issuer := s.issuers[spec.IssuerRef.Name]
	if issuer == nil || spec.IssuerRef.Kind != "Issuer" {
		s.t.Fatalf("%s has the issuer %+v, which is not there", c.Name, spec.IssuerRef)
	}
	parent, by := template, key
	if issuer.Spec.CA != nil {
		if parent, by = s.signed[issuer.Spec.CA.SecretName], s.keys[issuer.Spec.CA.SecretName]; parent == nil {
			s.t.Fatalf("the Secret %s, which %s signs with, is nobody's", issuer.Spec.CA.SecretName, issuer.Name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	if parent == template {
		parent = cert
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	s.signed[spec.SecretName], s.keys[spec.SecretName] = cert, key
	s.secrets[spec.SecretName] = map[string][]byte{"tls.crt": text("CERTIFICATE", der), "tls.key": text("EC PRIVATE KEY", private), "ca.crt": text("CERTIFICATE", parent.Raw)}
}

// What cert-manager makes by the component and by the chart is what pods need: each is a node
// to each other by the name that it is reached by, and nobody else is.
func TestCertManagerMakesNodes(t *testing.T) {
	chart, _ := chartObjects(t, release{name: "mneme", values: "certManager: {enabled: true}"})
	for from, objects := range map[string][]runtime.Object{"kustomize": render(t, "../../deploy/k8s/examples/cert-manager"), "chart": chart} {
		t.Run(from, func(t *testing.T) {
			s := sign(t, objects)
			dir := t.TempDir()
			for _, v := range one[*appsv1.StatefulSet](t, rendered{objects: objects}).Spec.Template.Spec.Volumes {
				if v.Name != "peers" {
					continue
				}
				for _, source := range v.Projected.Sources {
					for _, item := range source.Secret.Items {
						if err := os.WriteFile(filepath.Join(dir, item.Path), s.secrets[source.Secret.Name][item.Key], 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			roots := x509.NewCertPool()
			roots.AddCert(s.signed["mneme-peers-ca"])
			for i, pod := range []string{"mneme-0", "mneme-1", "mneme-2", "mneme-3", "mneme-4"} {
				if _, err := peer.OpenCertificates(dir, pod, nil); err != nil {
					t.Error(err)
				}
				cert := s.signed["mneme-peer-"+pod[len("mneme-"):]]
				for _, host := range []string{pod + ".mneme-peers.mneme.svc.cluster.local", pod + ".mneme-peers.mneme.svc"} {
					for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
						if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
							t.Errorf("%s as %s: %v", pod, host, err)
						}
					}
				}
				if i > 0 && cert.VerifyHostname("mneme-0.mneme-peers.mneme.svc.cluster.local") == nil {
					t.Errorf("%s may pass for mneme-0", pod)
				}
			}
			clients := s.signed["mneme-tls"]
			for _, host := range []string{"localhost", "mneme.mneme.svc", "mneme.mneme.svc.cluster.local", "mneme-2.mneme-peers.mneme.svc.cluster.local"} {
				if err := clients.VerifyHostname(host); err != nil {
					t.Error(err)
				}
			}
			if _, err := clients.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
				t.Error("the certificate towards clients is of the peers' authority")
			}
			for name, cert := range s.signed {
				if life := cert.NotAfter.Sub(cert.NotBefore); life < 60*24*time.Hour || strings.HasSuffix(name, "-ca") != cert.IsCA {
					t.Errorf("%s counts for %s, signs others: %v", name, life, cert.IsCA)
				}
			}
		})
	}
}

// A renewal comes before the alert that it is late. A node keeps the authority that it started
// with, so that an authority keeps its key, and outlives what it signs.
func TestCertificatesAreRenewedBeforeAnAlert(t *testing.T) {
	const day = 24 * time.Hour
	chart, _ := chartObjects(t, release{name: "mneme", values: "certManager: {enabled: true}"})
	for from, objects := range map[string][]runtime.Object{"kustomize": render(t, "../../deploy/k8s/examples/cert-manager"), "chart": chart} {
		found := all[*certmanagerv1.Certificate](rendered{objects: objects})
		if len(found) != 8 {
			t.Errorf("%s has %d certificates", from, len(found))
		}
		for _, c := range found {
			spec := c.Spec
			usages := []certmanagerv1.KeyUsage{certmanagerv1.UsageDigitalSignature, certmanagerv1.UsageServerAuth, certmanagerv1.UsageClientAuth}
			rotation, before, most := certmanagerv1.RotationPolicyAlways, 14*day, 120*day
			if c.Name == "mneme-tls" {
				usages = usages[:2] // a client has no certificate
			}
			if spec.IsCA {
				usages = []certmanagerv1.KeyUsage{certmanagerv1.UsageDigitalSignature, certmanagerv1.UsageCertSign}
				rotation, before, most = certmanagerv1.RotationPolicyNever, 120*day, 20*365*day
			}
			if spec.PrivateKey.RotationPolicy != rotation || !slices.Equal(spec.Usages, usages) {
				t.Errorf("%s: %s: its key is rotated %s, and is for %q", from, c.Name, spec.PrivateKey.RotationPolicy, spec.Usages)
			}
			if spec.RenewBefore.Duration <= before || spec.Duration.Duration > most || 2*spec.RenewBefore.Duration > spec.Duration.Duration {
				t.Errorf("%s: %s counts for %s, and is renewed %s before", from, c.Name, spec.Duration.Duration, spec.RenewBefore.Duration)
			}
		}
	}
}
