package devca_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"mneme/internal/peer/devca"
)

func options(dir string, nodes ...string) devca.Options {
	return devca.Options{Dir: dir, Nodes: nodes, Valid: 24 * time.Hour}
}

func TestCertificatesOfADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	opt := options(dir, "n1", "n2")
	opt.Hosts = []string{"mneme.example", "10.0.0.7", "n1"}
	made, err := devca.Make(opt)
	if err != nil || !made.New || len(made.Nodes) != 2 || made.Nodes[0].Renewed {
		t.Fatalf("%+v %v", made, err)
	}
	again, err := devca.Make(options(dir, "n2", "n3"))
	if err != nil || again.New || !again.Nodes[0].Renewed || again.Nodes[1].Renewed {
		t.Fatalf("%+v %v", again, err)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(made.Authority)
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	for _, id := range []string{"n1", "n2", "n3"} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, id+".crt"), filepath.Join(dir, id+".key"))
		if err != nil {
			t.Fatal(err)
		}
		names := append([]string{id}, devca.Local...)
		if id == "n1" {
			names = append(names, opt.Hosts...)
		}
		for _, name := range names {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name,
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
				t.Errorf("%s for %s: %v", id, name, err)
			}
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s as a client: %v", id, err)
		}
		if pair.Leaf.IsCA {
			t.Errorf("%s may sign", id)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if info, err := e.Info(); err != nil || runtime.GOOS != "windows" && filepath.Ext(e.Name()) == ".key" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v %v", e.Name(), info.Mode(), err)
		}
	}
	if want := []string{"ca.crt", "ca.key", "n1.crt", "n1.key", "n2.crt", "n2.key", "n3.crt", "n3.key"}; !slices.Equal(names, want) {
		t.Errorf("files %v", names)
	}
}

func TestAuthorityThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no key":  func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
		"no cert": func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) },
		"a node's cert": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "n1.crt"), filepath.Join(dir, "ca.crt")), os.Rename(filepath.Join(dir, "n1.key"), filepath.Join(dir, "ca.key")))
		},
	} {
		dir := t.TempDir()
		if _, err := devca.Make(options(dir, "n1")); err != nil {
			t.Fatal(err)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := devca.Make(options(dir, "n2")); !errors.Is(err, devca.ErrAuthority) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	old := options(dir, "n1")
	old.Now = func() time.Time { return time.Now().AddDate(-11, 0, 0) }
	if _, err := devca.Make(old); err != nil {
		t.Fatal(err)
	}
	if _, err := devca.Make(options(dir, "n2")); !errors.Is(err, devca.ErrAuthority) {
		t.Errorf("an authority that has ended: %v", err)
	}
}

// A certificate does not outlive the authority that signs it.
func TestCertificateEndsWithItsAuthority(t *testing.T) {
	opt := options(t.TempDir(), "n1")
	opt.Valid = 20 * 365 * 24 * time.Hour
	made, err := devca.Make(opt)
	if err != nil || made.Nodes[0].Expires.After(time.Now().AddDate(10, 0, 1)) {
		t.Errorf("%+v %v", made, err)
	}
}

// Certificates towards clients are of an authority that signs no node, and each only
// counts on its side.
func TestUsesHaveNoAuthorityInCommon(t *testing.T) {
	nodes, clients := t.TempDir(), t.TempDir()
	if _, err := devca.Make(options(nodes, "n1")); err != nil {
		t.Fatal(err)
	}
	for use, name := range map[devca.Use]string{devca.ForServers: "mneme", devca.ForClients: "agents"} {
		opt := options(clients, name)
		opt.Use = use
		if _, err := devca.Make(opt); err != nil {
			t.Fatal(err)
		}
		opt.Dir = nodes
		if _, err := devca.Make(opt); !errors.Is(err, devca.ErrAuthority) {
			t.Errorf("the nodes' authority signed for use %d: %v", use, err)
		}
	}
	if _, err := devca.Make(options(clients, "n2")); !errors.Is(err, devca.ErrAuthority) {
		t.Errorf("the clients' authority signed a node: %v", err)
	}
	roots := func(dir string) *x509.CertPool {
		pem, err := os.ReadFile(filepath.Join(dir, devca.AuthorityFile))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return pool
	}
	for _, tt := range []struct {
		cert, authority string
		usage           x509.ExtKeyUsage
		ok              bool
	}{
		{clients + "/mneme", clients, x509.ExtKeyUsageServerAuth, true}, {clients + "/mneme", clients, x509.ExtKeyUsageClientAuth, false},
		{clients + "/agents", clients, x509.ExtKeyUsageClientAuth, true}, {clients + "/agents", clients, x509.ExtKeyUsageServerAuth, false},
		{clients + "/agents", nodes, x509.ExtKeyUsageClientAuth, false}, {nodes + "/n1", clients, x509.ExtKeyUsageClientAuth, false},
	} {
		pair, err := tls.LoadX509KeyPair(tt.cert+".crt", tt.cert+".key")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots(tt.authority), KeyUsages: []x509.ExtKeyUsage{tt.usage}}); (err == nil) != tt.ok {
			t.Errorf("%s by %s for %v: %v", tt.cert, tt.authority, tt.usage, err)
		}
	}
}
