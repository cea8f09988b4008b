package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"mneme/internal/peer"
	"mneme/memory"
)

// Kind says what kept a node out of its cluster.
type Kind string

// The kinds of an Error.
const (
	KindUsage        Kind = "usage"        // the options
	KindOtherCluster Kind = "othercluster" // nodes of another cluster answer
	KindCertificates Kind = "certificates" // no other node and this one trust each other
	KindDuplicate    Kind = "duplicate"    // another node has the same id
	KindAddress      Kind = "address"      // this node's peer address reaches another node
	KindStorage      Kind = "storage"      // the facts could not be read or written
	KindRefused      Kind = "refused"      // a Raft group does not take the node
	KindRemoved      Kind = "removed"      // this node was removed
	KindWaiting      Kind = "waiting"      // the context ended first
)

// Error is for people: what happened, to what, and what to do.
type Error struct {
	Kind    Kind
	Message string
	Hint    string // may be empty
	Err     error  // underneath; may be nil
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Explain says of the error of a call what explain does.
func Explain(err error) (string, Kind) { return explain(err) }

// explain says in a few words why an address gave no answer, and what kind of error
// it would be if nothing else answered either; "" means that waiting may help.
func explain(err error) (string, Kind) {
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		dns     *net.DNSError
		said    *memory.Error
		slow    net.Error
	)
	const alert = "remote error: tls: "
	text := err.Error()
	switch {
	case errors.Is(err, peer.ErrReplaced):
		return "says: " + innermost(err), KindOtherCluster
	case errors.Is(err, peer.ErrOtherCluster):
		return "is a node of another cluster", KindOtherCluster
	case errors.Is(err, peer.ErrOtherName):
		return "and this node do not take each other's names: " + innermost(err), KindCertificates
	case errors.As(err, &unknown):
		return "has a certificate of another authority than this node's " + peer.AuthorityFile, KindCertificates
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("has a certificate that is valid from %s to %s", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter)), KindCertificates
	case errors.As(err, &host):
		return "has a certificate for other names: " + host.Error(), KindCertificates
	case errors.As(err, &invalid):
		return "has a certificate that cannot be used: " + invalid.Error(), KindCertificates
	case strings.Contains(text, alert+"expired certificate"):
		return "does not take this node's certificate: it has expired, or does not count yet", KindCertificates
	case strings.Contains(text, alert+"unknown certificate authority"):
		return "does not take this node's certificate: it is of another authority", KindCertificates
	case strings.Contains(text, alert):
		return "does not take this node's certificate: " + text[strings.Index(text, alert)+len(alert):], KindCertificates
	case errors.As(err, &dns) && dns.IsNotFound:
		return "is a name that does not resolve", ""
	case errors.As(err, &dns):
		return "is a name that cannot be resolved: " + dns.Err, ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "does not answer: connection refused", ""
	case errors.Is(err, peer.ErrOtherNode):
		return innermost(err), ""
	case errors.Is(err, peer.ErrNoService):
		return "is a node that is not ready for others yet", ""
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "does not answer in time", ""
	case errors.As(err, &said):
		return "refuses: " + said.Message, ""
	}
	return "does not answer: " + innermost(err), ""
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// innermost leaves out who called what.
func innermost(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	text := err.Error()
	const dial = "connect to peer "
	if i := strings.LastIndex(text, dial); i >= 0 {
		text = text[i+len(dial):]
		if _, why, ok := strings.Cut(text, ": "); ok {
			text = why
		}
	}
	return text
}

// untrusted is the error of a node that trusts none of the others, or they not it.
func untrusted(waits []string) *Error {
	return &Error{Kind: KindCertificates, Message: "nodes do not trust each other's certificates: " + strings.Join(waits, "; "),
		Hint: "give every node a certificate of the same authority that is valid now and names its --peer-addr: memctl cluster certs --out DIR NODE…"}
}

// otherCluster is the error of a node at whose addresses another cluster answers.
func otherCluster(facts Facts, strange []string) error {
	hint := "correct --join, or start with the data directory of that cluster's node"
	if facts.Former != nil {
		hint = "nodes of the cluster that this one was recovered from run: stop them, keep their data directories aside, and start them with empty ones after this one"
	}
	return &Error{Kind: KindOtherCluster, Message: fmt.Sprintf("this data directory is of the cluster %s, and who answers is not: %s",
		facts.Cluster, strings.Join(strange, "; ")), Hint: hint}
}
