package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// Options of an Exporter. Endpoint is required.
type Options struct {
	// Endpoint is the collector's address, as in https://collector.example:4318. Without a path
	// it is that of traces, /v1/traces.
	Endpoint string
	// CA is a file with the authorities of the collector's certificate (PEM); "" = the system's.
	CA string
	// Headers are sent with each request: NAME=VALUE, separated by commas, values in the
	// escapes of URLs, as in OTEL_EXPORTER_OTLP_HEADERS.
	Headers string
	Share   float64 // of the requests that are recorded
	Node    string  // its id in a cluster; "" = it has none
	Version string
	Logger  *slog.Logger
}

// Check says what cannot work, without reaching for the collector. It reads the file of
// authorities. No error holds a header's value.
func (o Options) Check() error {
	_, _, _, err := o.target()
	return err
}

// target is where spans go, and how.
func (o Options) target() (*url.URL, *http.Client, map[string]string, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, nil, nil, errors.New("the collector's address is not a URL such as https://collector.example:4318")
	case u.User != nil:
		return nil, nil, nil, errors.New("the collector's address holds a password; put it into the headers")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, nil, nil, errors.New("the collector's address has something behind its path")
	case o.CA != "" && u.Scheme == "http":
		return nil, nil, nil, errors.New("there are authorities for the collector's certificate, and its address is not https")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	headers, err := parseHeaders(o.Headers)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(headers) > 0 && u.Scheme == "http" && !onThisMachine(u.Hostname()) {
		return nil, nil, nil, errors.New("the headers for the collector would travel in clear: its address has to be https, or on this machine")
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("the authorities of the collector's certificate: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, nil, fmt.Errorf("the authorities of the collector's certificate: %s holds no certificate", o.CA)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	client := &http.Client{Transport: transport, Timeout: sendWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return u, client, headers, nil
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func parseHeaders(list string) (map[string]string, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || name == "" || strings.ContainsFunc(name, notInName) || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, errors.New("the headers for the collector are not NAME=VALUE, separated by commas")
		}
		out[name] = value
	}
	return out, nil
}

// notInName reports whether a character has no place in a header's name.
func notInName(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}
