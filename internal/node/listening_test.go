package node

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every combination of where a node listens, who is asked for what, and whether it is
// wanted: off loopback nobody gets in without a proof, and no token goes in clear.
func TestWhatMayBeOpenToOthers(t *testing.T) {
	const here, there, every = "127.0.0.1:0", "192.0.2.7:0", ":0"
	files := &TLSConfig{Cert: "c", Key: "k"}
	verified := &TLSConfig{Cert: "c", Key: "k", ClientCA: "ca"}
	for _, where := range []struct {
		http, nats, url string
		off             string // the address that others reach
	}{
		{here, here, "", ""}, {"localhost:0", "[::1]:0", "", ""}, {here, there, "nats://log:4222", ""},
		{there, here, "", there}, {here, there, "", there}, {every, here, "", every}, {here, "[::]:0", "", "[::]:0"},
		{"mneme.example:0", here, "", "mneme.example:0"}, {there, here, "nats://log:4222", there},
	} {
		for _, how := range []struct {
			name, auth string
			tls        *TLSConfig
			why        string // it is refused off loopback
			try        []string
		}{
			{"off", "off", nil, "auth is off", []string{"--auth", "token", "--insecure-listen"}},
			{"off, TLS", "off", files, "auth is off", []string{"--auth", "token"}},
			{"off, mutual TLS", "off", verified, "", nil},
			{"token", "token", nil, "in clear", []string{"--insecure-listen"}},
			{"token, TLS", "token", files, "", nil},
			{"token, mutual TLS", "token", verified, "", nil},
		} {
			for _, insecure := range []bool{false, true} {
				var log bytes.Buffer
				c := Config{DataDir: "d", HTTPAddr: where.http, NATSAddr: where.nats, NATSURL: where.url, Auth: how.auth, TLS: how.tls, Insecure: insecure,
					Logger: slog.New(slog.NewTextHandler(&log, nil))}
				c.setDefaults()
				name := strings.Join([]string{where.http, where.nats, where.url, how.name}, " ")
				err := c.validate()
				if open := where.off != "" && how.why != ""; !open || insecure {
					if err != nil {
						t.Errorf("%s, insecure %t: %v", name, insecure, err)
					}
					c.warnListening()
					if warned := strings.Contains(log.String(), "level=WARN"); warned != open {
						t.Errorf("%s, insecure %t: warned %t:\n%s", name, insecure, warned, &log)
					}
					continue
				}
				var e *StartError
				if !errors.As(err, &e) || e.Kind != StartUsage || !strings.Contains(e.Message, where.off+" can be reached") || !strings.Contains(e.Message, how.why) ||
					!strings.Contains(e.Hint, "--insecure-listen") || !slices.Equal(e.Try, how.try) {
					t.Errorf("%s: %+v", name, err)
				}
				// What is proposed works.
				c.Auth = map[bool]string{true: "token", false: c.Auth}[slices.Contains(e.Try, "--auth")]
				c.Insecure = slices.Contains(e.Try, "--insecure-listen")
				if err := c.validate(); err != nil {
					t.Errorf("%s: with %v: %v", name, e.Try, err)
				}
			}
		}
	}
}

// Probes need no certificate at the address for health, and find nothing else there.
func TestHealthAddress(t *testing.T) {
	cfg, _ := overTLS(t, t.TempDir(), true)
	cfg.HealthAddr = "127.0.0.1:0"
	n := open(t, cfg)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/readyz?verbose": 200, "/": 404, "/v1/status": 404, "/metrics": 404, "/v1/namespaces/default/search": 404} {
		resp, err := http.Get("http://" + n.front.health + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if cerr := resp.Body.Close(); err != nil || cerr != nil || resp.StatusCode != want || want == 200 && string(body) != "ok\n" {
			t.Errorf("%s: %d %q %v", path, resp.StatusCode, body, errors.Join(err, cerr))
		}
	}
	n.draining.Store(true)
	resp, err := http.Get("http://" + n.front.health + "/readyz")
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a node that drains: %v %v", resp, err)
	}
	if err == nil {
		_ = resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	cfg = quiet(t.TempDir())
	cfg.HealthAddr = "here"
	fails(t, cfg, StartUsage)
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	good, certs := overTLS(t, t.TempDir(), true)
	for name, change := range map[string]func(c *TLSConfig){
		"no key":             func(c *TLSConfig) { c.Key = "" },
		"no certificate":     func(c *TLSConfig) { c.Cert = "" },
		"authority alone":    func(c *TLSConfig) { c.Cert, c.Key = "", "" },
		"files that are not": func(c *TLSConfig) { c.Cert += ".none" },
		"another's key":      func(c *TLSConfig) { c.Key = filepath.Join(certs, "agents.key") },
		"a client's certificate": func(c *TLSConfig) {
			c.Cert, c.Key = filepath.Join(certs, "agents.crt"), filepath.Join(certs, "agents.key")
		},
		"no authority in it": func(c *TLSConfig) { c.ClientCA = c.Key },
	} {
		dir := filepath.Join(t.TempDir(), "data")
		cfg := quiet(dir)
		files := *good.TLS
		cfg.TLS = &files
		change(cfg.TLS)
		if e := fails(t, cfg, StartUsage); e.Hint == "" {
			t.Errorf("%s: no hint: %v", name, e)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a data directory was made", name)
		}
	}
}
