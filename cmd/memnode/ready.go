package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mneme/internal/node"
)

// printReady says that the node answers, where, and what to try, in one write.
// The first line is for programs: its shape is a promise.
func printReady(sys system, s *settings, n instance) {
	http := reachableURL(n.HTTPURL())
	memctl, flags := sys.memctl, ""
	cert := s.path(sys, "tls-cert")
	if cert != "" {
		http = certified(http, cert)
	}
	if http != "http://"+node.DefaultHTTPAddr {
		flags += " --addr " + http
	}
	if cert != "" { // who has a certificate itself trusts it without its authority
		flags += " --tls-ca " + quote(cert)
	}
	if s.String("tls-client-ca") != "" {
		flags += " --tls-cert FILE --tls-key FILE"
	}
	if s.String("auth") == "token" {
		if s.String("auth-token") == "" {
			flags += " --token-file " + quote(filepath.Join(s.String("data-dir"), "keys", "operator.token"))
		} else {
			memctl = `MNEME_TOKEN="$MNEME_AUTH_TOKEN" ` + memctl
		}
	}
	ns := "default"
	if names := s.Strings("namespace"); len(names) > 0 {
		ns = names[0]
	}
	_, _ = fmt.Fprintf(sys.out, "memnode ready http=%s nats=%s data=%s\n"+
		"  %[4]s capture%[5]s -n %[6]s \"deploys happen on Tuesdays\"\n"+
		"  %[4]s search%[5]s -n %[6]s \"when do we deploy\"\n"+
		"  %[4]s status%[5]s\n",
		http, reachableURL(n.NATSURL()), s.String("data-dir"), memctl, flags, ns)
}

// certified is an address with a name that the node's certificate is for, where it is not
// for the one in it.
func certified(address, file string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	b, err := os.ReadFile(file)
	block, _ := pem.Decode(b)
	if err != nil || block == nil {
		return address
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || cert.VerifyHostname(u.Hostname()) == nil || len(cert.DNSNames) == 0 || strings.Contains(cert.DNSNames[0], "*") {
		return address
	}
	u.Host = net.JoinHostPort(cert.DNSNames[0], u.Port())
	return u.String()
}

// reachable turns an address to listen on into one to connect to: everywhere
// becomes loopback.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// reachableURL does the same in a URL and takes credentials out.
func reachableURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return redactURL(raw)
	}
	u.User = nil
	u.Host = reachable(u.Host)
	return u.String()
}

// userinfo is what a URL, or each of a list of URLs, says before its host.
var userinfo = regexp.MustCompile(`://[^/?#\s]*@`)

// redactURL hides the credentials of the URLs in words.
func redactURL(words string) string {
	parts := strings.Split(words, ",")
	for i, p := range parts {
		parts[i] = userinfo.ReplaceAllString(p, "://[redacted]@")
	}
	return strings.Join(parts, ",")
}

// freeAddresses proposes a free address for each listening flag whose address
// is the one that failed or that somebody else has.
func freeAddresses(sys system, s *settings, failed string) map[string]string {
	names := []string{"http-addr", "nats-addr"}
	if s.String("nats-url") != "" {
		names = names[:1]
	}
	if s.String("health-addr") != "" {
		names = append(names, "health-addr")
	}
	out, used := map[string]string{}, map[string]bool{}
	for _, name := range names {
		used[s.String(name)] = true
	}
	twice := len(used) < len(names) // both flags name one address
	for _, name := range names {
		addr := s.String(name)
		if addr == failed || twice || !sys.isFree(addr) {
			out[name] = nextFree(sys, addr, used)
			used[out[name]] = true
		}
	}
	return out
}

// portsTried bounds how far from the wanted port a free one is looked for.
const portsTried = 100

// nextFree returns addr with the next free port, or with port 0.
func nextFree(sys system, addr string, used map[string]bool) string {
	host, words, err := net.SplitHostPort(addr)
	port, perr := strconv.Atoi(words)
	if err != nil || perr != nil {
		return "127.0.0.1:0"
	}
	for p := port + 1; p <= min(port+portsTried, 65535); p++ {
		other := net.JoinHostPort(host, strconv.Itoa(p))
		if !used[other] && sys.isFree(other) {
			return other
		}
	}
	return net.JoinHostPort(host, "0")
}

// commandLine is how memnode was called, with the flags in changed replaced,
// ready to be pasted into a shell.
func commandLine(sys system, args []string, changed map[string]string) string {
	words := []string{sys.program}
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if _, ok := changed[name]; ok && strings.HasPrefix(args[i], "--") {
			if !joined {
				i++ // its value
			}
			continue
		}
		words = append(words, quote(redactURL(args[i])))
	}
	for _, name := range []string{"data-dir", "http-addr", "nats-addr", "health-addr"} {
		if v, ok := changed[name]; ok {
			words = append(words, "--"+name, quote(v))
		}
	}
	return strings.Join(words, " ")
}

// quote makes a word safe for a shell.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("_@%+=:,./~-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
