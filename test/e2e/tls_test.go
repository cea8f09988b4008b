package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// natsVariable makes this test program the nats command, as far as docs/nats.md shows it
// with TLS.
const natsVariable = "MNEME_E2E_NATS"

func natsMain(args []string) int {
	f := flag.NewFlagSet("nats", flag.ContinueOnError)
	server, ca, cert, key := f.String("server", "", ""), f.String("tlsca", "", ""), f.String("tlscert", "", ""), f.String("tlskey", "", "")
	user, password := f.String("user", "", ""), f.String("password", "", "")
	if err := f.Parse(args); err != nil || f.NArg() != 3 || f.Arg(0) != "request" {
		fmt.Fprintln(os.Stderr, "nats:", err, f.Args())
		return 2
	}
	nc, err := nats.Connect(*server, nats.RootCAs(*ca), nats.ClientCert(*cert, *key), nats.UserInfo(*user, *password))
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		return 1
	}
	defer nc.Close()
	answer, err := nc.Request(f.Arg(1), []byte(f.Arg(2)), patience)
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		return 1
	}
	fmt.Println(string(answer.Data))
	return 0
}

// certificates makes mneme for the node and agents for a client, in a folder.
func certificates(t testing.TB, dir string, servers ...string) string {
	t.Helper()
	for use, names := range map[devca.Use][]string{devca.ForServers: append([]string{"mneme"}, servers...), devca.ForClients: {"agents"}} {
		if _, err := devca.Make(devca.Options{Dir: dir, Nodes: names, Use: use, Valid: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// dialling is the TLS of a client with the folder's authority and its certificate.
func dialling(t testing.TB, dir string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, devca.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "agents.crt"), filepath.Join(dir, "agents.key"))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	c.RootCAs.AppendCertsFromPEM(pem)
	return c
}

// startTLS starts a node whose both ports ask for a certificate and a token.
func startTLS(t testing.TB, certs string) *daemon {
	t.Helper()
	d := launch{args: []string{"--auth", "token", "--tls-cert", filepath.Join(certs, "mneme.crt"), "--tls-key", filepath.Join(certs, "mneme.key"),
		"--tls-client-ca", filepath.Join(certs, devca.AuthorityFile)}, env: []string{"MNEME_AUTH_TOKEN=" + tlsToken}}.start(t, t.TempDir())
	d.token = tlsToken
	c, err := client.New(d.http, client.Options{Agent: "tester", Token: tlsToken, TLS: dialling(t, certs)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	d.client = c
	return d
}

const tlsToken = "a-token-for-tests-of-tls-1234"

// Whoever shows no certificate, or the wrong one, or has the wrong address, is told what to
// do about it, with an exit code that says whose turn it is.
func TestMemctlSaysWhatIsWrongWithTLS(t *testing.T) {
	t.Parallel()
	certs, others := certificates(t, t.TempDir()), certificates(t, t.TempDir())
	d := startTLS(t, certs)
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	clear := strings.Replace(d.http, "https://", "http://", 1)
	ca, own := "--tls-ca="+in(certs, "ca.crt"), []string{"--tls-cert=" + in(certs, "agents.crt"), "--tls-key=" + in(certs, "agents.key")}
	for name, tt := range map[string]struct {
		args  []string
		code  int
		parts []string
	}{
		"right":               {append([]string{ca}, own...), 0, nil},
		"unknown authority":   {append([]string{"--tls-ca=" + in(others, "ca.crt")}, own...), 6, []string{"not trusted here", "--tls-ca"}},
		"no certificate":      {[]string{ca}, 4, []string{"none was shown", "--tls-cert"}},
		"others' certificate": {[]string{ca, "--tls-cert=" + in(others, "agents.crt"), "--tls-key=" + in(others, "agents.key")}, 4, []string{"does not take the certificate", "--tls-client-ca"}},
		"in clear":            {append([]string{ca, "--addr", clear}, own...), 6, []string{"speaks TLS", "https://"}},
		"the NATS port":       {append([]string{ca, "--addr", strings.Replace(d.nats, "tls://", "https://", 1)}, own...), 6, []string{"NATS port"}},
		"no key":              {[]string{ca, own[0]}, 2, []string{"without its key"}},
		"no such file":        {[]string{"--tls-ca=" + in(certs, "none.crt")}, 2, []string{"none.crt"}},
	} {
		e := d.memctl(append([]string{"capture", "-n", "default", "kept"}, tt.args...)...)
		if tt.code == 0 {
			if e.code != 0 {
				t.Errorf("%s: %d %s", name, e.code, e.err)
			}
			continue
		}
		plainEnd(t, e, tt.code, append(tt.parts, "hint: ")...)
	}
	env := []string{"MNEME_ADDR=" + strings.Replace(d.http, "https://", "tls://", 1), "MNEME_TOKEN=" + tlsToken, "MNEME_TLS_CA=" + in(certs, "ca.crt"),
		"MNEME_TLS_CLIENT_CERT=" + in(certs, "agents.crt"), "MNEME_TLS_CLIENT_KEY=" + in(certs, "agents.key")}
	if e := memctl(t, "", env, "status"); e.code != 0 || !strings.Contains(e.out, "certificate for clients until ") {
		t.Errorf("by variables: %d %s%s", e.code, e.out, e.err)
	}
	plain := start(t, t.TempDir())
	e := plain.memctl("status", "--addr", strings.Replace(plain.http, "http://", "https://", 1))
	plainEnd(t, e, 6, "speaks no TLS", "hint: write http://")
	d.term()
	for _, secret := range []string{tlsToken, "PRIVATE"} {
		if strings.Contains(d.stderr.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, d.stderr)
		}
	}
}

// Certificates are renewed while connections come and go on both ports: none fails, and in
// the end both show the last one, without a restart.
func TestCertificatesAreRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	certs := certificates(t, t.TempDir())
	d := startTLS(t, certs)
	config := dialling(t, certs)
	const renewals, workers = 20, 2
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var connections atomic.Int64
	var load sync.WaitGroup
	made, failed, over := make(chan struct{}), make(chan error, 2*workers), make(chan struct{})
	stop := sync.OnceFunc(func() { close(over); load.Wait() })
	defer stop()
	again := func(connect func(i int) error) {
		load.Go(func() {
			for i := 0; ; i++ {
				if err := connect(i); err != nil {
					failed <- err
					return
				}
				connections.Add(1)
				select {
				case made <- struct{}{}:
				case <-over:
					return
				}
			}
		})
	}
	for w := range workers {
		again(func(i int) error {
			c, err := client.New(d.http, client.Options{Agent: fmt.Sprintf("agent-%d", w), Token: tlsToken, TLS: config})
			if err != nil {
				return err
			}
			_, err = c.Capture(ctx, "default", memory.Capture{Text: fmt.Sprintf("memory %d", i)}, client.CaptureOptions{})
			return errors.Join(err, c.Close())
		})
		again(func(i int) error {
			nc, err := nats.Connect(d.nats, nats.Secure(config.Clone()), nats.Token(tlsToken), nats.MaxReconnects(0))
			if err != nil {
				return err
			}
			defer nc.Close()
			_, err = nc.RequestWithContext(ctx, fmt.Sprintf("mem.in.default.bus-%d.capture", w), fmt.Appendf(nil, "memory %d", i))
			return err
		})
	}
	for range renewals { // the key first, then the certificate
		if _, err := devca.Make(devca.Options{Dir: certs, Nodes: []string{"mneme"}, Use: devca.ForServers, Valid: time.Hour}); err != nil {
			t.Error(err)
		}
		for range 2 * workers {
			select {
			case <-made:
			case err := <-failed:
				t.Fatalf("after %d connections: %v", connections.Load(), err)
			case <-ctx.Done():
				t.Fatalf("after %d connections: %v", connections.Load(), ctx.Err())
			}
		}
	}
	stop()
	if len(failed) > 0 {
		t.Errorf("after %d connections: %v", connections.Load(), <-failed)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "mneme.crt"), filepath.Join(certs, "mneme.key"))
	if err != nil {
		t.Fatal(err)
	}
	var shown []*x509.Certificate
	u, err := url.Parse(d.http)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", u.Host, config)
	if err != nil {
		t.Fatal(err)
	}
	shown = append(shown, c.ConnectionState().PeerCertificates[0])
	_ = c.Close()
	nc := d.bus(nats.Secure(config.Clone()), nats.Token(tlsToken))
	state, err := nc.TLSConnectionState()
	if err != nil {
		t.Fatal(err)
	}
	for i, cert := range append(shown, state.PeerCertificates[0]) {
		if !cert.Equal(pair.Leaf) {
			t.Errorf("port %d shows a certificate that was replaced", i)
		}
	}
	t.Logf("%d connections over %d renewals", connections.Load(), renewals)
}

// The commands with TLS in docs/nats.md work as they stand there. The nats command is this
// program, as far as they use it, and the ports are free ones.
func TestCommandsWithTLSInTheDocs(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "nats.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## TLS\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, found := strings.Cut(block, "```")
	server, rest, started := strings.Cut(block, " &\n")
	before, server, split := strings.Cut(server, "\nmemnode ")
	if !found || !started || !split {
		t.Fatalf("docs/nats.md has no commands that start memnode with TLS:\n%s", block)
	}
	home, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "nats"), fmt.Appendf(nil, "#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", natsVariable, self), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	addrs := testaddr.Reserve(t, 2)
	env := append(environment(home), "PATH="+filepath.Dir(built.memctl)+":"+bin+":"+os.Getenv("PATH"))
	shell := func(script string) string {
		t.Helper()
		script = strings.NewReplacer("127.0.0.1:8787", addrs[0], "127.0.0.1:4222", addrs[1]).Replace(script)
		cmd := exec.Command("sh", "-euc", script)
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
		return string(out)
	}
	shell(before)
	cmd := exec.Command("sh", "-c", "exec memnode "+server)
	cmd.Dir, cmd.Env = home, append(env, "MNEME_HTTP_ADDR="+addrs[0], "MNEME_NATS_ADDR="+addrs[1])
	log, first, exited := &output{}, &firstLine{found: make(chan string, 1)}, make(chan struct{})
	cmd.Stdout, cmd.Stderr = first, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-exited })
	select {
	case <-first.found:
	case <-exited:
		t.Fatalf("memnode ended:\n%s", log)
	case <-time.After(patience):
		t.Fatalf("memnode is not ready:\n%s", log)
	}
	out := shell(rest)
	for _, want := range []string{`"status":"created"`, "using namespace default", "deploys happen on Tuesdays"} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
}
