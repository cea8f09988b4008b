package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"mneme/internal/peer"
)

const (
	reachTimeout = 2 * time.Second
	// refusalTimeout is how long a peer may take to refuse a certificate: with TLS 1.3 it
	// says so after the handshake, as this side sees it.
	refusalTimeout = 300 * time.Millisecond
)

// Reach tries peer addresses as a node with an id that is not started yet: whether each is
// reached from here, and whether it and the node's certificate trust each other. It says
// nothing to them. An error is about the certificate; those of addresses stand in the order
// of addrs, nil where all is well.
func (o Offline) Reach(ctx context.Context, certs, id string, addrs []string) ([]error, error) {
	own, err := peer.OpenCertificates(certs, id, o.Config.Logger)
	if err != nil {
		return nil, publicError(usage(err.Error(), peer.CertificatesHint(certs, id)))
	}
	out := make([]error, len(addrs))
	var asking sync.WaitGroup
	for i, addr := range addrs {
		asking.Go(func() { out[i] = reach(ctx, own, addr) })
	}
	asking.Wait()
	return out, nil
}

func reach(ctx context.Context, own *peer.Certificates, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: own.Client(host)}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(refusalTimeout)); err != nil {
		return err
	}
	if _, err = conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // it waits to hear who this is
	}
	return fmt.Errorf("it does not take this node's certificate: %w", err)
}
