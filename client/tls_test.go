package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/peer/devca"
	"mneme/memory"
)

// issued makes certificates in a folder: mneme for a server, agents for a client.
func issued(t *testing.T, at time.Time) string {
	t.Helper()
	dir := t.TempDir()
	for use, name := range map[devca.Use]string{devca.ForServers: "mneme", devca.ForClients: "agents"} {
		if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{name}, Use: use, Valid: time.Hour, Now: func() time.Time { return at }}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pair(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	p, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// node answers every request over TLS with the certificate of dir, and in clear without
// one, and counts them. authorities is the folder of those whose clients it takes.
func node(t *testing.T, dir, authorities string) (addr string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, `{"position":"p0.0.1.0","results":[{"id":"k","record_id":"r","status":"created"}]}`)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(srv.Close)
	if dir == "" {
		srv.Start()
		return srv.Listener.Addr().String(), requests
	}
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair(t, dir, "mneme")}}
	if authorities != "" {
		pem, err := os.ReadFile(filepath.Join(authorities, devca.AuthorityFile))
		if err != nil {
			t.Fatal(err)
		}
		srv.TLS.ClientAuth, srv.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		srv.TLS.ClientCAs.AppendCertsFromPEM(pem)
	}
	srv.StartTLS()
	return srv.Listener.Addr().String(), requests
}

// greeter answers each connection with the first line of NATS.
func greeter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, `INFO {"server_id":"x"}`+"\r\n")
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// What goes wrong with TLS says what it is and what helps, has a code, keeps its cause,
// and has carried nothing out: also a write goes on to the next node.
func TestWhatGoesWrongWithTLS(t *testing.T) {
	now := time.Now()
	good, other, old := issued(t, now), issued(t, now), issued(t, now.AddDate(0, 0, -7))
	files := func(dir, name string) client.Options {
		o := client.Options{Agent: "a", CAFile: filepath.Join(dir, devca.AuthorityFile)}
		if name != "" {
			o.CertFile, o.KeyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		}
		return o
	}
	mixed := files(other, "agents")
	mixed.CAFile = filepath.Join(good, devca.AuthorityFile)
	ofServer := files(good, "mneme")
	plain, _ := node(t, "", "")
	simple, _ := node(t, good, "")
	mutual, _ := node(t, good, good)
	ended, _ := node(t, old, "")
	for name, tt := range map[string]struct {
		addr string
		opts client.Options
		code memory.Code // "" = it works
		says string
		hint string
		is   func(error) bool
	}{
		"works":                         {"https://" + simple, files(good, ""), "", "", "", nil},
		"tls is https":                  {"tls://" + simple, files(good, ""), "", "", "", nil},
		"the node's own certificate":    {"https://" + simple, client.Options{Agent: "a", CAFile: filepath.Join(good, "mneme.crt")}, "", "", "", nil},
		"with a certificate":            {"https://" + mutual, files(good, "agents"), "", "", "", nil},
		"unknown authority":             {"https://" + simple, files(other, ""), memory.CodeUnavailable, "not trusted here", "--tls-ca", isA[x509.UnknownAuthorityError]},
		"no authority given":            {"https://" + simple, client.Options{Agent: "a"}, memory.CodeUnavailable, "not trusted", "--tls-ca", isA[*tls.CertificateVerificationError]},
		"another name":                  {"", files(good, ""), memory.CodeUnavailable, "is not for 127.0.0.2", "have one made that is for 127.0.0.2", nil},
		"ended":                         {"https://" + ended, files(old, ""), memory.CodeUnavailable, "has ended", "renewed", isA[x509.CertificateInvalidError]},
		"https to a port in clear":      {"https://" + plain, files(good, ""), memory.CodeUnavailable, "speaks no TLS", "http://", nil},
		"https to NATS":                 {"https://" + greeter(t), files(good, ""), memory.CodeUnavailable, "NATS port", "HTTP address", isA[tls.RecordHeaderError]},
		"http to a port for TLS":        {"http://" + simple, client.Options{Agent: "a"}, memory.CodeUnavailable, "speaks TLS", "https://", nil},
		"no certificate":                {"https://" + mutual, files(good, ""), memory.CodeUnauthenticated, "none was shown", "--tls-cert", isA[*net.OpError]},
		"certificate of another":        {"https://" + mutual, mixed, memory.CodeUnauthenticated, "does not take the certificate", "--tls-client-ca", isA[*net.OpError]},
		"certificate that is no client": {"https://" + mutual, ofServer, memory.CodeUnauthenticated, "does not take the certificate", "for clients", isA[*net.OpError]},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.addr == "" {
				tt.addr = "https://" + elsewhere(t, good)
			}
			c, err := client.New(tt.addr, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Capture(t.Context(), "team", memory.Capture{Text: "x"}, client.CaptureOptions{})
			if cerr := c.Close(); cerr != nil {
				t.Error(cerr)
			}
			e := memory.AsError(err)
			if tt.code == "" {
				if err != nil {
					t.Errorf("%v (%s)", err, e.Hint)
				}
				return
			}
			if memory.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) || !strings.Contains(e.Hint, tt.hint) {
				t.Fatalf("%s: %v\nhint: %s", memory.CodeOf(err), err, e.Hint)
			}
			if tt.is != nil && !tt.is(err) {
				t.Errorf("the cause is lost: %#v", errors.Unwrap(err))
			}
		})
	}
}

// A node that could not be met for TLS or the lack of it has taken nothing, so that also a
// write goes on to the next one.
func TestWriteGoesOnFromANodeThatIsNotTrusted(t *testing.T) {
	now := time.Now()
	good, other := issued(t, now), issued(t, now)
	plain, _ := node(t, "", "")
	simple, _ := node(t, good, "")
	strange, _ := node(t, other, "")
	closed, _ := node(t, good, other)
	working, requests := node(t, good, good)
	opts := client.Options{Agent: "a", CAFile: filepath.Join(good, devca.AuthorityFile), CertFile: filepath.Join(good, "agents.crt"), KeyFile: filepath.Join(good, "agents.key")}
	for name, addr := range map[string]string{"in clear": "https://" + plain, "of another authority": "https://" + strange, "which does not take the client": "https://" + closed,
		"asked in clear": "http://" + simple, "NATS": "https://" + greeter(t)} {
		c, err := client.New(addr+",https://"+working, opts)
		if err != nil {
			t.Fatal(err)
		}
		before := requests.Load()
		if _, err := c.Capture(t.Context(), "team", memory.Capture{Text: "x"}, client.CaptureOptions{}); err != nil || requests.Load() != before+1 {
			t.Errorf("a node %s: %v, and %d requests at the next one", name, err, requests.Load()-before)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c, err := client.New("https://"+strange+",https://"+plain, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Status(t.Context())
	if e := memory.AsError(err); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(err.Error(), "not trusted here; ") || strings.Contains(e.Hint, "running") {
		t.Errorf("%v\nhint: %s", err, e.Hint)
	}
}

// elsewhere is a node at 127.0.0.2, which its certificate is not for.
func elsewhere(t *testing.T, dir string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("there is no 127.0.0.2 here:", err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = srv.Listener.Close()
	srv.Listener, srv.Config.ErrorLog = l, log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair(t, dir, "mneme")}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return l.Addr().String()
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// A client's certificate is read for each connection: the one that replaced it is shown.
func TestClientCertificateIsRenewed(t *testing.T) {
	dir, next := issued(t, time.Now()), issued(t, time.Now())
	addr, _ := node(t, dir, next) // which takes clients of the next authority only
	opts := client.Options{Agent: "a", CAFile: filepath.Join(dir, devca.AuthorityFile), CertFile: filepath.Join(dir, "agents.crt"), KeyFile: filepath.Join(dir, "agents.key")}
	c, err := client.New("https://"+addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	capture := func() error {
		_, err := c.Capture(t.Context(), "team", memory.Capture{Text: "x"}, client.CaptureOptions{})
		return err
	}
	if err := capture(); memory.CodeOf(err) != memory.CodeUnauthenticated {
		t.Fatal(err)
	}
	for _, name := range []string{"agents.key", "agents.crt"} {
		if err := os.Rename(filepath.Join(next, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := capture(); err != nil {
		t.Error(err)
	}
}

func TestTLSOptionsThatCannotBe(t *testing.T) {
	dir := issued(t, time.Now())
	ca, cert, key := filepath.Join(dir, devca.AuthorityFile), filepath.Join(dir, "agents.crt"), filepath.Join(dir, "agents.key")
	for name, opts := range map[string]client.Options{
		"both":           {TLS: &tls.Config{}, CAFile: ca},
		"another's":      {HTTPClient: &http.Client{}, CAFile: ca},
		"no file":        {CAFile: ca + ".none"},
		"no authority":   {CAFile: key},
		"no key":         {CertFile: cert},
		"no certificate": {KeyFile: key},
		"another key":    {CertFile: cert, KeyFile: filepath.Join(dir, "mneme.key")},
	} {
		if _, err := client.New("https://127.0.0.1:1", opts); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
