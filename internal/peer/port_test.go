package peer_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority makes certificates for nodes in a new directory.
func authority(t *testing.T, nodes ...string) string {
	t.Helper()
	dir := t.TempDir()
	makeCerts(t, devca.Options{Dir: dir, Nodes: nodes})
	return dir
}

func makeCerts(t *testing.T, opt devca.Options) {
	t.Helper()
	if opt.Valid == 0 {
		opt.Valid = time.Hour
	}
	if _, err := devca.Make(opt); err != nil {
		t.Fatal(err)
	}
}

func certificates(t *testing.T, dir, node string) *peer.Certificates {
	t.Helper()
	c, err := peer.OpenCertificates(dir, node, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listen opens a node's port; the test closes it.
func listen(t *testing.T, certs *peer.Certificates, self peer.Identity, change func(*peer.Options)) *peer.Port {
	t.Helper()
	opt := peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Self: func() peer.Identity { return self }, Greeting: 30 * time.Second}
	if change != nil {
		change(&opt)
	}
	p, err := peer.Listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// echo answers on a service what it is told, with who said it in front.
func echo(t *testing.T, p *peer.Port, service string) {
	t.Helper()
	l, err := p.Service(service)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				from, _ := peer.From(c)
				b, _ := io.ReadAll(c)
				_, _ = io.WriteString(c, service+" "+from.Node+" "+from.Cluster+": "+string(b))
			})
		}
	})
}

// say opens a connection, says something and returns the answer.
func say(t *testing.T, from, to *peer.Port, node, service, what string) (string, error) {
	t.Helper()
	c, err := from.Dial(t.Context(), to.Addr().String(), node, service)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, what); err != nil {
		return "", err
	}
	if err := c.(*tls.Conn).CloseWrite(); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

func TestServicesOfTwoNodes(t *testing.T) {
	dir := authority(t, "n1", "n2")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil)
	echo(t, two, "raft/0")
	echo(t, two, "http")
	for _, c := range []struct{ node, service, want string }{
		{"n2-b", "raft/0", "raft/0 n1-a c: hello"},
		{"", "http", "http n1-a c: hello"},
	} {
		if got, err := say(t, one, two, c.node, c.service, "hello"); err != nil || got != c.want {
			t.Errorf("%+v: %q %v", c, got, err)
		}
	}
	if _, err := two.Service("http"); err == nil {
		t.Error("a service was taken twice")
	}
	large := strings.Repeat("x", 1<<20)
	if got, err := say(t, one, two, "n2-b", "http", large); err != nil || !strings.HasSuffix(got, large) {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
}

func TestWhoIsRefused(t *testing.T) {
	dir := authority(t, "n1", "n2")
	admit := func(from peer.Identity, service string) error {
		if from.Node == "n1-removed" {
			return errors.New("it was removed")
		}
		return nil
	}
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, func(o *peer.Options) { o.Admit = admit })
	echo(t, two, "http")
	echo(t, two, "join")
	two.AdmitStrangers("join")
	for _, c := range []struct {
		name  string
		self  peer.Identity
		node  string
		asked string
		want  error
		says  string
	}{
		{"another cluster", peer.Identity{Cluster: "d", Node: "n1-a"}, "", "http", peer.ErrOtherCluster, "is of d"},
		{"another incarnation", peer.Identity{Cluster: "c", Node: "n1-a"}, "n2-a", "http", peer.ErrOtherNode, "n2-b, not n2-a"},
		{"a removed node", peer.Identity{Cluster: "c", Node: "n1-removed"}, "", "http", peer.ErrNotAdmitted, "was removed"},
		{"a service that is not there", peer.Identity{Cluster: "c", Node: "n1-a"}, "", "raft/7", peer.ErrNoService, `"raft/7"`},
		{"a node that joins", peer.Identity{Node: "n1-a"}, "", "join", nil, ""},
		{"a node without a cluster", peer.Identity{Node: "n1-a"}, "", "http", peer.ErrNoCluster, `"http"`},
		{"another node's name", peer.Identity{Cluster: "c", Node: "n2-b"}, "", "join", peer.ErrOtherName, `"n2-b"`},
		{"another node's name, without a cluster", peer.Identity{Node: "n2-b"}, "", "join", peer.ErrOtherName, `"n2-b"`},
		{"a name that begins with another node's", peer.Identity{Cluster: "c", Node: "n1-a-b"}, "", "http", peer.ErrOtherName, `"n1-a-b"`},
		{"no name", peer.Identity{Cluster: "c"}, "", "http", peer.ErrOtherName, ""},
		{"an endless name", peer.Identity{Cluster: "c", Node: "n1-" + strings.Repeat("a", 300)}, "", "http", peer.ErrProtocol, "255"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := listen(t, certificates(t, dir, "n1"), c.self, nil)
			one.AdmitStrangers("join")
			_, err := say(t, one, two, c.node, c.asked, "hello")
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// Who is dialled has to show the certificate of the node that it says it is, and the
// same cluster.
func TestWhoIsNotBelieved(t *testing.T) {
	dir := authority(t, "n1", "n2", "n3")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	one.AdmitStrangers("join")
	for _, c := range []struct {
		name  string
		self  peer.Identity // of who answers, with the certificate of n3
		asked string
		want  error
	}{
		{"itself", peer.Identity{Cluster: "c", Node: "n3-x"}, "http", nil},
		{"another node", peer.Identity{Cluster: "c", Node: "n2-b"}, "http", peer.ErrOtherName},
		{"the node that asks", peer.Identity{Cluster: "c", Node: "n1-a"}, "http", peer.ErrOtherName},
		{"another node, for strangers", peer.Identity{Node: "n2-b"}, "join", peer.ErrOtherName},
		{"no cluster", peer.Identity{Node: "n3-x"}, "http", peer.ErrNoCluster},
		{"no cluster, for strangers", peer.Identity{Node: "n3-x"}, "join", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := tls.Listen("tcp", "127.0.0.1:0", certificates(t, dir, "n3").Server())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() { // says whatever it wants, and looks at nothing
				c1, err := l.Accept()
				if err != nil {
					return
				}
				defer c1.Close()
				body := fmt.Appendf(nil, `{"version":1,"cluster":%q,"node":%q}`, c.self.Cluster, c.self.Node)
				_, _ = c1.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...))
				_, _ = io.Copy(io.Discard, c1)
			})
			got, err := one.Dial(t.Context(), l.Addr().String(), c.self.Node, c.asked)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if got != nil {
				_ = got.Close()
			}
		})
	}
}

// A certificate without a common name is for each of its DNS names.
func TestCertificatesOfAnotherAuthority(t *testing.T) {
	dir := t.TempDir()
	made := func(file, common string, names ...string) {
		t.Helper()
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: common}, DNSNames: names,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			BasicConstraintsValid: true, IsCA: file == "ca"}
		parent, signer := template, key
		if file != "ca" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
			if err != nil {
				t.Fatal(err)
			}
			parent, signer = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		pkcs, err := x509.MarshalPKCS8PrivateKey(key)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs}), 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	made("ca", "somebody's own")
	made("n1", "", "host1.example", "n1")
	made("n2", "n2", "host2.example", "n3")
	made("n3", "host3.example", "n3")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil)
	echo(t, two, "http")
	if _, err := say(t, one, two, "n2-b", "http", "hello"); err != nil {
		t.Error(err)
	}
	as3 := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n3-b"}, nil)
	if _, err := say(t, as3, two, "n2-b", "http", "hello"); !errors.Is(err, peer.ErrOtherName) {
		t.Errorf("beside its common name, a DNS name counted: %v", err)
	}
	if _, err := peer.OpenCertificates(dir, "n3", nil); !errors.Is(err, peer.ErrCertificates) || !strings.Contains(err.Error(), "is for host3.example, not for the node n3") {
		t.Error(err)
	}
}

// A certificate that memctl makes for a client admits to no node, whatever the client is
// called.
func TestClientCertificateIsNoNode(t *testing.T) {
	dir := t.TempDir()
	clients := filepath.Join(dir, "clients")
	makeCerts(t, devca.Options{Dir: dir, Nodes: []string{"n1", "n2"}})
	makeCerts(t, devca.Options{Dir: clients, Nodes: []string{"n2"}, Use: devca.ForClients})
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	echo(t, one, "http")
	if _, err := say(t, listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil), one, "n1-a", "http", "hello"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(clients, "n2.crt"), filepath.Join(clients, "n2.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := certificates(t, dir, "n2").Client("127.0.0.1")
	config.Certificates = []tls.Certificate{pair}
	c, err := tls.Dial("tcp", one.Addr().String(), config)
	if err == nil { // in TLS 1.3 a client hears of its refusal when it reads
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "remote error: tls:") {
		t.Errorf("a client came in as a node: %v", err)
	}
	if _, err := peer.OpenCertificates(clients, "n2", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(clients, "n2.key"), filepath.Join(dir, "n2.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(clients, "n2.crt"), filepath.Join(dir, "n2.crt")); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.OpenCertificates(dir, "n2", nil); !errors.Is(err, peer.ErrCertificates) {
		t.Errorf("a node starts with a client's certificate: %v", err)
	}
}

// A certificate of another authority, one that has ended, none at all, or one for
// another name opens nothing, on either side.
func TestCertificatesThatDoNotCount(t *testing.T) {
	past := func() time.Time { return time.Now().Add(-48 * time.Hour) }
	good, ended, other := t.TempDir(), t.TempDir(), authority(t, "n1")
	makeCerts(t, devca.Options{Dir: good, Now: past})
	for _, name := range []string{"ca.crt", "ca.key"} {
		copyFile(t, filepath.Join(good, name), filepath.Join(ended, name))
	}
	makeCerts(t, devca.Options{Dir: good, Nodes: []string{"n1", "n2"}})
	makeCerts(t, devca.Options{Dir: ended, Nodes: []string{"n1"}, Now: past})
	two := listen(t, certificates(t, good, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil)
	echo(t, two, "http")
	self := peer.Identity{Cluster: "c", Node: "n1-a"}
	for name, dir := range map[string]string{"another authority": other, "it has ended": ended} {
		one := listen(t, certificates(t, dir, "n1"), self, nil)
		if _, err := say(t, one, two, "", "http", "hello"); err == nil {
			t.Errorf("%s: it was let in", name)
		}
		echo(t, one, "http")
		back := listen(t, certificates(t, good, "n2"), peer.Identity{Cluster: "c", Node: "n2-c"}, nil)
		if _, err := say(t, back, one, "", "http", "hello"); err == nil {
			t.Errorf("%s: it was believed", name)
		}
	}
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(good, "ca.crt"))
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", two.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "n2"})
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	if err == nil {
		t.Error("without a certificate: let in")
	}
	if _, err := tls.Dial("tcp", two.Addr().String(), certificates(t, good, "n1").Client("elsewhere.example")); err == nil {
		t.Error("a certificate for other names was believed")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Certificates that were replaced count from the next connection on; files that do not
// belong together leave what counted before.
func TestReplacedCertificates(t *testing.T) {
	dir := authority(t, "n1", "n2")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil)
	echo(t, two, "http")
	reaches := func(what string, want bool) {
		t.Helper()
		if _, err := say(t, one, two, "n2-b", "http", "hello"); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	held, err := one.Dial(t.Context(), two.Addr().String(), "", "http")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	reaches("before", true)
	serial := func() string {
		c, err := one.Dial(t.Context(), two.Addr().String(), "", "http")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	makeCerts(t, devca.Options{Dir: dir, Nodes: []string{"n1", "n2"}})
	if serial() == before {
		t.Error("the replaced certificate is not shown")
	}
	if err := os.WriteFile(filepath.Join(dir, "n2.key"), []byte("half of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	reaches("with half a key on disk", true)
	other := authority(t, "n2")
	for _, name := range []string{"ca.crt", "n2.crt", "n2.key"} {
		copyFile(t, filepath.Join(other, name), filepath.Join(dir, name))
	}
	reaches("with another authority on both sides' disk", false)
	if _, err := io.WriteString(held, "still open"); err != nil {
		t.Errorf("an open connection was cut: %v", err)
	}
}

func TestCertificateFilesThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no certificate":    func(dir string) error { return os.Remove(filepath.Join(dir, "n1.crt")) },
		"no key":            func(dir string) error { return os.Remove(filepath.Join(dir, "n1.key")) },
		"no authority":      func(dir string) error { return os.Remove(filepath.Join(dir, "ca.crt")) },
		"empty authority":   func(dir string) error { return os.Truncate(filepath.Join(dir, "ca.crt"), 0) },
		"another's key":     func(dir string) error { return os.Rename(filepath.Join(dir, "n2.key"), filepath.Join(dir, "n1.key")) },
		"another authority": func(dir string) error { return os.Rename(filepath.Join(dir, "n2.crt"), filepath.Join(dir, "ca.crt")) },
	} {
		dir := authority(t, "n1", "n2")
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.OpenCertificates(dir, "n1", nil); !errors.Is(err, peer.ErrCertificates) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A certificate that counts at no time was called one of another authority.
func TestCertificateOutOfTimeIsOfItsAuthority(t *testing.T) {
	dir := authority(t)
	makeCerts(t, devca.Options{Dir: dir, Nodes: []string{"n1"}, Valid: -48 * time.Hour})
	_, err := peer.OpenCertificates(dir, "n1", nil)
	if !errors.Is(err, peer.ErrCertificates) || !strings.Contains(err.Error(), "which is at no time") || strings.Contains(err.Error(), "authority") {
		t.Error(err)
	}
	makeCerts(t, devca.Options{Dir: dir, Nodes: []string{"n1"}, Now: func() time.Time { return time.Now().Add(-20 * 365 * 24 * time.Hour) }})
	if _, err = peer.OpenCertificates(dir, "n1", nil); !errors.Is(err, peer.ErrCertificates) || !strings.Contains(err.Error(), ", when its authority, ") {
		t.Error(err)
	}
}

// The hint was to call memctl cluster certs, in a folder where it has no authority to sign
// with, or would make one that the other nodes do not trust.
func TestCertificatesAreMadeWhereTheAuthorityIs(t *testing.T) {
	dir := authority(t, "n1")
	says := func(want, not string) {
		t.Helper()
		if hint := peer.CertificatesHint(dir, "n2"); !strings.HasPrefix(hint, want) || not != "" && strings.Contains(hint, not) {
			t.Errorf("%q, want %q", hint, want)
		}
	}
	here := "memctl cluster certs --out " + dir + " n2"
	says(here+" makes them", "copy")
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	says("memctl cluster certs --out DIR n2 makes them, where DIR has the authority's ca.key, which is not in "+dir, here)
	if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	says("where the cluster's authority is (the folder with ca.key): memctl cluster certs --out DIR n2, and copy n2.crt, n2.key and ca.crt to "+dir+"; for a new cluster "+here, "")
}

// Whoever connects and says nothing, too much or nonsense holds nothing up.
func TestStrangersAtThePort(t *testing.T) {
	dir := authority(t, "n1", "n2")
	short := func(o *peer.Options) { o.Greeting = 200 * time.Millisecond }
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, short)
	echo(t, two, "http")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	var silent []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", two.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	for _, words := range [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0}, 1<<16)} {
		c, err := net.Dial("tcp", two.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(words)
		silent = append(silent, c)
	}
	for _, words := range []string{"\xff\xff", "\x00\x02{}", "\x00\x05{\"ver", "\x00\x0d{\"version\":9}"} {
		c, err := tls.Dial("tcp", two.Addr().String(), certificates(t, dir, "n1").Client("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, words)
		silent = append(silent, c)
	}
	if got, err := say(t, one, two, "n2-b", "http", "hello"); err != nil || !strings.HasSuffix(got, "hello") {
		t.Errorf("beside them: %q %v", got, err)
	}
	for i, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d is still open", i)
		}
		_ = c.Close()
	}
}

// However many connections say nothing, a node's greeting comes through; and those are
// closed long before a greeting has to be over.
func TestSilentStrangersShutNobodyOut(t *testing.T) {
	dir := authority(t, "n1", "n2")
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, func(o *peer.Options) { o.Greeting = 10 * time.Minute })
	echo(t, two, "http")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	var silent []net.Conn
	for i := range 600 {
		c, err := net.Dial("tcp", two.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
		if i >= 300 && i%100 == 0 {
			if got, err := say(t, one, two, "n2-b", "http", "hello"); err != nil || !strings.HasSuffix(got, "hello") {
				t.Errorf("beside %d that say nothing: %q %v", i, got, err)
			}
		}
	}
	for i, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d is still open", i)
		}
	}
}

// A node that answers with nonsense, or not at all, fails a dial and no more.
func TestDialsThatFail(t *testing.T) {
	dir := authority(t, "n1", "n2")
	certs := certificates(t, dir, "n2")
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, func(o *peer.Options) { o.Greeting = 300 * time.Millisecond })
	huge := binary.BigEndian.AppendUint16(nil, 1<<15)
	for name, says := range map[string][]byte{
		"silence": nil, "a huge message": huge, "no JSON": []byte("\x00\x03abc"), "another version": []byte("\x00\x0d{\"version\":9}"),
		"an unknown code": []byte("\x00\x1a{\"version\":1,\"code\":\"odd\"}"),
	} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", certs.Server())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write(says)
			_, _ = io.Copy(io.Discard, c)
		})
		if c, err := one.Dial(t.Context(), l.Addr().String(), "", "http"); err == nil {
			t.Errorf("%s: connected", name)
			_ = c.Close()
		}
		_ = l.Close()
		wg.Wait()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Dial(gone, one.Addr().String(), "", "http"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, addr := range []string{"no port", "127.0.0.1:1", "name.invalid:1"} {
		if _, err := one.Dial(t.Context(), addr, "", "http"); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestClosedPort(t *testing.T) {
	dir := authority(t, "n1")
	p := listen(t, certificates(t, dir, "n1"), peer.Identity{Node: "n1-a"}, nil)
	l, err := p.Service("http")
	if err != nil {
		t.Fatal(err)
	}
	held, err := net.Dial("tcp", p.Addr().String()) // never greets
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := p.Service("http"); !errors.Is(err, peer.ErrClosed) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A service that was closed can be taken again, as a restarted Raft group does.
func TestServiceIsTakenAgain(t *testing.T) {
	dir := authority(t, "n1")
	p := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	for range 3 {
		l, err := p.Service("raft/0")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	echo(t, p, "raft/0")
	if got, err := say(t, p, p, "n1-a", "raft/0", "x"); err != nil || !strings.HasSuffix(got, "x") {
		t.Error(got, err)
	}
}

// What a service does not take is bounded, and its peers are told.
func TestAServiceThatTakesNothing(t *testing.T) {
	dir := authority(t, "n1", "n2")
	two := listen(t, certificates(t, dir, "n2"), peer.Identity{Cluster: "c", Node: "n2-b"}, nil)
	l, err := two.Service("raft/0")
	if err != nil {
		t.Fatal(err)
	}
	one := listen(t, certificates(t, dir, "n1"), peer.Identity{Cluster: "c", Node: "n1-a"}, nil)
	opened := 0
	for range 200 {
		c, err := one.Dial(t.Context(), two.Addr().String(), "n2-b", "raft/0")
		if err == nil {
			opened++
			defer c.Close()
		} else if !errors.Is(err, peer.ErrBusy) {
			t.Fatal(err)
		}
	}
	if opened != 128 {
		t.Errorf("%d connections wait", opened)
	}
	for range opened {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	for { // the last one is taken a moment before it counts no more
		c, err := one.Dial(t.Context(), two.Addr().String(), "n2-b", "raft/0")
		if err == nil {
			_ = c.Close()
			return
		}
		if !errors.Is(err, peer.ErrBusy) {
			t.Fatal(err)
		}
	}
}

// Who is refused again and again, and with long names, does not fill the log: each name is
// warned of once.
func TestRefusalsFilledTheLog(t *testing.T) {
	dir := authority(t, "n1", "n2")
	var log bytes.Buffer
	two, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certificates(t, dir, "n2"), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: "n2-b"} }})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 3000)
	for i := range 60 {
		self, service := peer.Identity{Cluster: "c", Node: "n1-" + long}, "http"
		if i%2 == 0 {
			self.Node, service = "n1-a", long
		}
		one := listen(t, certificates(t, dir, "n1"), self, nil)
		if _, err := one.Dial(t.Context(), two.Addr().String(), "", service); !errors.Is(err, peer.ErrProtocol) {
			t.Fatalf("%.200v", err)
		}
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 || log.Len() > 2*400 {
		t.Errorf("%d lines of %d bytes, the last %.300s", lines, log.Len(), log.String())
	}
}
