package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"mneme/memory"
)

// tlsConfig is how https addresses are met; nil is as the system does by itself.
func (o *Options) tlsConfig() (*tls.Config, error) {
	given := o.CAFile != "" || o.CertFile != "" || o.KeyFile != ""
	switch {
	case o.TLS != nil && given:
		return nil, memory.Errorf(memory.CodeInvalid, "both TLS and files of certificates are given").WithHint("one of them says it all")
	case o.HTTPClient != nil && (o.TLS != nil || given):
		return nil, memory.Errorf(memory.CodeInvalid, "TLS is given for an HTTP client that has its own").WithHint("set it in the transport of that client")
	case o.TLS != nil:
		return o.TLS.Clone(), nil
	case !given:
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "read authorities: %w", err).WithHint("the file holds the authority of the node's certificate, in PEM")
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, memory.Errorf(memory.CodeInvalid, "%s holds no certificate", o.CAFile).WithHint("the file holds the authority of the node's certificate, in PEM")
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, memory.Errorf(memory.CodeInvalid, "a certificate without its key is given, or the reverse").WithHint("name both files, or none")
	}
	if o.CertFile == "" {
		return c, nil
	}
	// They are read for each connection: short-lived ones are renewed while a program runs.
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "certificate of this client: %w", err).WithHint("%s must be a certificate in PEM, and %s its key", o.CertFile, o.KeyFile)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return c, nil
}

// tlsFailure is the error of a connection that could not begin as it should, for TLS or
// the lack of it; nil is another failure. The node has taken no request then.
func tlsFailure(base *url.URL, err error) *memory.Error {
	at := addrOf(base)
	fail := func(code memory.Code, message, hint string) *memory.Error {
		return memory.Errorf(code, "%s", message).WithHint("%s", hint).WithCause(err)
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &unknown):
		return fail(memory.CodeUnavailable, "the certificate of the node at "+at+" is of an authority that is not trusted here",
			"name the authority's file: memctl --tls-ca FILE or MNEME_TLS_CA, client.Options.CAFile; the node's own certificate does as well")
	case errors.As(err, &name):
		return fail(memory.CodeUnavailable, "the certificate of the node at "+at+" is not for "+base.Hostname()+": "+name.Error(),
			"use an address with a name that the certificate is for, or have one made that is for "+base.Hostname())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(memory.CodeUnavailable, "the certificate of the node at "+at+" has ended or does not count yet: "+invalid.Detail,
			"have the node's certificate renewed, or set this machine's clock; memnode takes new files without a restart")
	case errors.As(err, &untrusted):
		return fail(memory.CodeUnavailable, "the certificate of the node at "+at+" is not trusted: "+untrusted.Err.Error(),
			"look at what the node's --tls-cert holds, and at the authority that --tls-ca names")
	case errors.Is(err, http.ErrSchemeMismatch):
		return fail(memory.CodeUnavailable, "the node at "+at+" speaks no TLS", "write http:// instead of "+base.Scheme+"://")
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "INFO ":
		return fail(memory.CodeUnavailable, "what answers at "+at+" is a NATS port", "name the node's HTTP address, as memnode prints it when it is ready")
	case errors.As(err, &record):
		return fail(memory.CodeUnavailable, "what answers at "+at+" speaks no TLS", "is it the node's HTTP address, as memnode prints it when it is ready?")
	case errors.As(err, &op) && op.Op == "remote error":
		return refusedByNode(at, op.Err.Error(), fail)
	}
	return nil
}

// refusedByNode tells the alerts of TLS apart, for which there are no errors but their
// texts.
func refusedByNode(at, alert string, fail func(code memory.Code, message, hint string) *memory.Error) *memory.Error {
	const own = "memctl --tls-cert FILE --tls-key FILE, or MNEME_TLS_CLIENT_CERT and MNEME_TLS_CLIENT_KEY, client.Options.CertFile and KeyFile"
	switch {
	case strings.Contains(alert, "certificate required"):
		return fail(memory.CodeUnauthenticated, "the node at "+at+" asks for a certificate of the client, and none was shown", "name one of an authority that the node takes: "+own)
	case strings.Contains(alert, "certificate"):
		return fail(memory.CodeUnauthenticated, "the node at "+at+" does not take the certificate of this client ("+strings.TrimPrefix(alert, "tls: ")+")",
			"name one that counts today, is for clients, and is of an authority that the node's --tls-client-ca holds: "+own)
	}
	return fail(memory.CodeUnavailable, "the node at "+at+" ended the beginning of TLS: "+alert, "memnode speaks TLS 1.3 only; is something older between?")
}

// speaksTLS recognises the answer of a port for TLS to a request in clear. It is net/http's
// and has not reached the node.
func speaksTLS(resp *http.Response, body []byte) bool {
	return resp.StatusCode == http.StatusBadRequest && strings.HasPrefix(string(body), "Client sent an HTTP request to an HTTPS server")
}
