package certs_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mneme/internal/certs"
	"mneme/internal/peer/devca"
)

// issue makes a certificate of a server and one of a client, of one authority for each
// directory, and returns the directory.
func issue(t *testing.T, dir string) string {
	t.Helper()
	for use, name := range map[devca.Use]string{devca.ForServers: "server", devca.ForClients: "client"} {
		if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{name}, Use: use, Valid: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func in(dir string) (certs.Options, *bytes.Buffer) {
	var b bytes.Buffer
	return certs.Options{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"), Authorities: filepath.Join(dir, "ca.crt"),
		Logger: slog.New(slog.NewTextHandler(&b, nil))}, &b
}

// shown is the serial number of the certificate that a server shows to a client of the
// authority in dir. The client may show one of its own.
func shown(t *testing.T, f *certs.Files, dir string, own ...tls.Certificate) (string, error) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() {
		s := tls.Server(b, f.Server())
		_, err := s.Write([]byte("."))
		served <- errors.Join(err, b.Close())
	}()
	c := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: own})
	_, err = io.ReadFull(c, make([]byte, 1))
	_ = a.Close()
	if serr := <-served; err != nil {
		return "", errors.Join(err, serr)
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func client(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// A volume of a Kubernetes secret is a link to a folder, and is renewed by renaming
// another link over it.
func TestRenewalBySymlinkSwap(t *testing.T) {
	root := t.TempDir()
	one, two := issue(t, filepath.Join(root, "one")), issue(t, filepath.Join(root, "two"))
	volume := filepath.Join(root, "volume")
	if err := os.Symlink(one, volume); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	opt, log := in(volume)
	f, err := certs.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	before, err := shown(t, f, one, client(t, one))
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(root, "next")
	if err := errors.Join(os.Symlink(two, next), os.Rename(next, volume)); err != nil {
		t.Fatal(err)
	}
	after, err := shown(t, f, two, client(t, two))
	if err != nil || after == before {
		t.Errorf("after the swap: %q, %v; it was %q", after, err, before)
	}
	if _, err := shown(t, f, two, client(t, one)); err == nil {
		t.Error("a client of the authority before is still let in")
	}
	if n := strings.Count(log.String(), "certificates were replaced"); n != 1 || strings.Contains(log.String(), "WARN") {
		t.Errorf("log:\n%s", log)
	}
}

// A pair of which only one file is new does not count, and is complained about once,
// however many connections look.
func TestHalfWrittenPairKeepsTheOldOne(t *testing.T) {
	dir, other := issue(t, t.TempDir()), issue(t, t.TempDir())
	opt, log := in(dir)
	f, err := certs.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	before, err := shown(t, f, dir, client(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own := client(t, dir)
	replace("server.crt", read("server.crt"))
	for _, half := range [][]byte{read("server.key")[:40], read("server.key")[:80]} {
		replace("server.key", half)
		for range 3 {
			if now, err := shown(t, f, dir, own); err != nil || now != before {
				t.Fatalf("half of the key: %q, %v; it was %q", now, err, before)
			}
		}
	}
	if n := strings.Count(log.String(), "are not taken"); n != 1 {
		t.Errorf("complained %d times:\n%s", n, log)
	}
	replace("server.key", read("server.key"))
	replace("ca.crt", read("ca.crt"))
	if now, err := shown(t, f, other, client(t, other)); err != nil || now == before {
		t.Errorf("the whole pair: %q, %v; it was %q", now, err, before)
	}
	if n := strings.Count(log.String(), "were replaced"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log)
	}
	for _, secret := range [][]byte{read("server.key"), read("client.key")} {
		if line := strings.Split(string(secret), "\n")[1]; strings.Contains(log.String(), line) {
			t.Error("the log holds a key")
		}
	}
}

func TestClientCertificateIsAskedFor(t *testing.T) {
	dir, stranger := issue(t, t.TempDir()), issue(t, t.TempDir())
	server, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	opt, _ := in(dir)
	f, err := certs.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string][]tls.Certificate{"none": nil, "of another authority": {client(t, stranger)}, "of a server": {server}} {
		if _, err := shown(t, f, dir, own...); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	opt.Authorities = ""
	if f, err = certs.Open(opt); err != nil {
		t.Fatal(err)
	}
	if _, err := shown(t, f, dir); err != nil {
		t.Errorf("nobody asked for a certificate: %v", err)
	}
}

func TestUnusableFiles(t *testing.T) {
	dir := issue(t, t.TempDir())
	for name, change := range map[string]func(*certs.Options){
		"no certificate":     func(o *certs.Options) { o.Cert += ".none" },
		"no key":             func(o *certs.Options) { o.Key += ".none" },
		"another's key":      func(o *certs.Options) { o.Key = filepath.Join(dir, "client.key") },
		"no authority":       func(o *certs.Options) { o.Authorities += ".none" },
		"a key as authority": func(o *certs.Options) { o.Authorities = o.Key },
		"refused by the check": func(o *certs.Options) {
			o.Check = func(*tls.Certificate, *x509.CertPool) error { return errors.New("not that one") }
		},
	} {
		opt, _ := in(dir)
		change(&opt)
		if _, err := certs.Open(opt); !errors.Is(err, certs.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key that anybody on the machine could read was taken without a word.
func TestKeyThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := issue(t, t.TempDir())
	opt, log := in(dir)
	chmod := func(mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(opt.Key, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{0o644, 0o604, 0o660, 0o602} {
		chmod(mode)
		var open *certs.ModeError
		if _, err := certs.Open(opt); !errors.Is(err, certs.ErrUnusable) || !errors.As(err, &open) || open.Path != opt.Key || !strings.Contains(err.Error(), "chmod 600 "+opt.Key) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	chmod(0o640)
	f, err := certs.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := f.Current()
	issue(t, dir) // another certificate, of an authority that is there
	chmod(0o644)
	for range 3 {
		if now, _ := f.Current(); now != before {
			t.Error("a key that others may read is taken when it replaces another")
		}
	}
	if n := strings.Count(log.String(), "chmod 600 "); n != 1 {
		t.Errorf("said %d times:\n%s", n, log)
	}
	chmod(0o600)
	if now, _ := f.Current(); now == before {
		t.Error("it is not taken when nobody else may read it any more")
	}
}
