package node

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/peer/devca"
	"mneme/memory"
)

// overTLS is the configuration of a node with TLS towards clients, and the folder with
// its certificates: mneme for the node, agents for a client.
func overTLS(t *testing.T, dir string, mutual bool) (Config, string) {
	t.Helper()
	certs := t.TempDir()
	for use, name := range map[devca.Use]string{devca.ForServers: "mneme", devca.ForClients: "agents"} {
		if _, err := devca.Make(devca.Options{Dir: certs, Nodes: []string{name}, Hosts: []string{"mneme.example"}, Use: use, Valid: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := quiet(dir)
	cfg.TLS = &TLSConfig{Cert: filepath.Join(certs, "mneme.crt"), Key: filepath.Join(certs, "mneme.key")}
	if mutual {
		cfg.TLS.ClientCA = filepath.Join(certs, "ca.crt")
	}
	return cfg, certs
}

// trusting is the TLS of a client that trusts the folder's authority and, unless name is
// "", shows the certificate of that name.
func trusting(t *testing.T, certs, name string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(certs, devca.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(pem)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(certs, name+".crt"), filepath.Join(certs, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// lockedLog is written by many and read by one.
type lockedLog struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{} // has one element when something was written since it was looked at
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *lockedLog) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), words)
}

// await waits until words were written.
func (l *lockedLog) await(t *testing.T, words string) {
	t.Helper()
	for !l.has(words) {
		select {
		case <-l.wrote:
		case <-time.After(patience):
			t.Fatalf("the log never says %q", words)
		}
	}
}

// fetch asks for a page; the connection is not kept.
func fetch(t *testing.T, url string, config *tls.Config) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.ProtoMajor != 1 {
		t.Errorf("%s speaks HTTP %d, whose streams the limits do not know", url, resp.ProtoMajor)
	}
	return string(b), err
}

func TestBothPortsSpeakTLS(t *testing.T) {
	cfg, certs := overTLS(t, t.TempDir(), false)
	n := open(t, cfg)
	if !strings.HasPrefix(n.HTTPURL(), "https://") || !strings.HasPrefix(n.NATSURL(), "tls://") {
		t.Errorf("addresses %s and %s", n.HTTPURL(), n.NATSURL())
	}
	body, err := fetch(t, n.HTTPURL()+"/v1/status", trusting(t, certs, ""))
	var status memory.Status
	if err != nil || json.Unmarshal([]byte(body), &status) != nil || len(status.Certificates) != 1 || status.Certificates[0].For != "clients" ||
		status.Certificates[0].ClientsVerified || time.Until(status.Certificates[0].ExpiresAt) > time.Hour {
		t.Errorf("%s: %v", body, err)
	}
	if body, err := fetch(t, n.HTTPURL()+"/metrics", trusting(t, certs, "")); err != nil || !strings.Contains(body, `mneme_certificate_expires_timestamp_seconds{for="clients"}`) {
		t.Errorf("metrics: %v", err)
	}
	if body, err := fetch(t, "http://"+n.HTTPAddr()+"/v1/status", nil); err != nil || !strings.Contains(body, "HTTP request to an HTTPS server") {
		t.Errorf("in clear: %q, %v", body, err)
	}
	if _, err := fetch(t, n.HTTPURL()+"/v1/status", nil); err == nil {
		t.Error("a client that does not know the authority trusts the node")
	}
	old := trusting(t, certs, "")
	old.MaxVersion = tls.VersionTLS12
	if _, err := fetch(t, n.HTTPURL()+"/v1/status", old); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	nc, err := nats.Connect(n.NATSURL(), nats.Secure(trusting(t, certs, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answer, err := nc.Request("mem.in.default.agent-7.capture", []byte("over TLS"), patience)
	if err != nil || !strings.Contains(string(answer.Data), `"status":"created"`) {
		t.Errorf("%v %v", answer, err)
	}
	if nc, err := nats.Connect(strings.Replace(n.NATSURL(), "tls://", "nats://", 1)); err == nil {
		nc.Close()
		t.Error("NATS is spoken in clear, or to whoever does not know the authority")
	}
}

// Both ports ask for a certificate of the authority, and nothing is served without, also
// not to who has the token.
func TestMutualTLS(t *testing.T) {
	cfg, certs := overTLS(t, t.TempDir(), true)
	_, others := overTLS(t, t.TempDir(), true)
	cfg.Auth, cfg.AuthToken = "token", "a-token-of-some-length-1234"
	log := &lockedLog{wrote: make(chan struct{}, 1)}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	n := open(t, cfg)
	for name, config := range map[string]*tls.Config{"none": trusting(t, certs, ""), "of a server": trusting(t, certs, "mneme"),
		"of another authority": {RootCAs: trusting(t, certs, "").RootCAs, Certificates: trusting(t, others, "agents").Certificates}} {
		if _, err := fetch(t, n.HTTPURL()+"/livez", config); err == nil {
			t.Errorf("HTTP takes a client whose certificate is %s", name)
		}
		if nc, err := nats.Connect(n.NATSURL(), nats.Secure(config), nats.Token(cfg.AuthToken)); err == nil {
			nc.Close()
			t.Errorf("NATS takes a client whose certificate is %s", name)
		}
	}
	// What is in a certificate of somebody else must not be taken for what the server says.
	if _, err := devca.Make(devca.Options{Dir: others, Nodes: []string{"no space left on device"}, Use: devca.ForClients, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	liar := trusting(t, certs, "")
	liar.Certificates = trusting(t, others, "no space left on device").Certificates
	if nc, err := nats.Connect(n.NATSURL(), nats.Secure(liar), nats.Token(cfg.AuthToken)); err == nil {
		nc.Close()
		t.Error("NATS takes a client of another authority")
	}
	log.await(t, "no space left on device") // the server may say so after the client has heard it
	if fault := n.nats.Fault(); fault != nil {
		t.Errorf("a client without a right had writes refused: %v", fault)
	}
	if body, err := fetch(t, n.HTTPURL()+"/livez", trusting(t, certs, "agents")); err != nil || body != "ok\n" {
		t.Errorf("%q %v", body, err)
	}
	if nc, err := nats.Connect(n.NATSURL(), nats.Secure(trusting(t, certs, "agents"))); err == nil {
		nc.Close()
		t.Error("NATS takes a client without the token")
	}
	nc, err := nats.Connect(n.NATSURL(), nats.Secure(trusting(t, certs, "agents")), nats.Token(cfg.AuthToken))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestCertificatesAreWarnedAboutBeforeTheyEnd(t *testing.T) {
	var log bytes.Buffer
	e := expiry{log: slog.New(slog.NewTextHandler(&log, nil)), warned: map[string]time.Time{}}
	end := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		at   time.Duration // before the end
		want string
	}{
		{15 * 24 * time.Hour, ""}, {14 * 24 * time.Hour, "level=WARN"}, {14*24*time.Hour - time.Hour, ""}, {13 * 24 * time.Hour, "level=WARN"},
		{time.Minute, "level=WARN"}, {-time.Minute, "level=ERROR"}, {-time.Hour, ""}, {-25 * time.Hour, "level=ERROR"},
	} {
		log.Reset()
		e.look(end.Add(-step.at), []memory.CertificateStatus{{For: "clients", ExpiresAt: end}, {For: "nodes", ExpiresAt: end.AddDate(1, 0, 0)}})
		if got := log.String(); got != "" != (step.want != "") || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%v before the end: %q", step.at, got)
		}
	}
	e.look(end, []memory.CertificateStatus{{For: "clients", ExpiresAt: end.AddDate(1, 0, 0)}})
	if len(e.warned) != 0 {
		t.Error("a renewed certificate is still thought to end")
	}
	cfg, _ := overTLS(t, t.TempDir(), false) // it counts for an hour
	n := open(t, cfg)
	report, err := n.doctor.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Name == "certificate for clients" && c.State == "warn" && c.Hint != "" {
			return
		}
	}
	t.Errorf("doctor: %+v", report.Checks)
}
