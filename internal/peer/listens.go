package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"syscall"
)

// ErrListens: somebody took the connection who may well be the node that was meant, and
// did not greet: its certificate does not count, say, or its process stands still. An error
// without it says that the node is not there, or not to be reached.
var ErrListens = errors.New("somebody listens there")

// listening is an error that is ErrListens as well, in its own words.
type listening struct{ error }

func (l listening) Unwrap() error        { return l.error }
func (l listening) Is(target error) bool { return target == ErrListens }

// listens tells by why a greeting failed, over a connection that was taken, whether the
// node that was meant may be there; empty means whoever is. It is not where another node
// answers, where what answers speaks no TLS, and where the connection ended without a
// word: so ends one of a forwarder in front of a port that nobody has.
func listens(err error, c *tls.Conn, node string) bool {
	var plain tls.RecordHeaderError
	switch state := c.ConnectionState(); {
	case errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, ErrOtherNode), errors.Is(err, ErrOtherCluster), errors.Is(err, ErrReplaced), errors.As(err, &plain):
		return false
	case state.HandshakeComplete:
		return node == "" || isFor(state.PeerCertificates[0], IDOf(node))
	}
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) {
		return node == "" || saysToBe(unverified.UnverifiedCertificates, IDOf(node))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE)
}

// saysToBe reports whether certificates that were not verified are those of a node.
func saysToBe(chain []*x509.Certificate, id string) bool {
	return len(chain) > 0 && isFor(chain[0], id)
}
