// Package mneme runs a node inside another Go program.
//
// A node that is embedded is the same node that the memnode command runs: it
// listens on loopback (port 0 picks a free port), keeps everything below its
// data directory, and is talked to with package client or any NATS client.
//
//	n, err := mneme.Open(ctx, mneme.Options{DataDir: dir})
//	if err != nil { … }
//	defer n.Close(ctx)
//	c, err := client.New(n.URL(), client.Options{})
package mneme

import (
	"context"
	"log/slog"

	"mneme/internal/node"
)

// Options of an embedded node. DataDir is required.
type Options struct {
	DataDir  string
	HTTPAddr string // host:port; "" = a free port on loopback
	NATSAddr string // host:port; "" = a free port on loopback
	Token    string // operator token; "" = no authentication
	// TLSCert and TLSKey are files in PEM with which both ports speak TLS, and TLSClientCA
	// one with authorities of which each client must then show a certificate. Off loopback
	// a token needs TLS, and where there is no token clients must show certificates.
	TLSCert, TLSKey, TLSClientCA string
	InsecureListen               bool         // listen off loopback also without that
	Namespaces                   []string     // made at start if missing
	Logger                       *slog.Logger // nil discards
}

// Node is a running node.
type Node struct{ n *node.Node }

// Open starts a node and returns when it is ready. The context bounds the start.
func Open(ctx context.Context, opt Options) (*Node, error) {
	cfg := node.Config{DataDir: opt.DataDir, HTTPAddr: opt.HTTPAddr, NATSAddr: opt.NATSAddr, Namespaces: opt.Namespaces, Logger: opt.Logger}
	if cfg.HTTPAddr == "" {
		cfg.HTTPAddr = "127.0.0.1:0"
	}
	if cfg.NATSAddr == "" {
		cfg.NATSAddr = "127.0.0.1:0"
	}
	if opt.Token != "" {
		cfg.Auth, cfg.AuthToken = "token", opt.Token
	}
	if opt.TLSCert != "" || opt.TLSKey != "" || opt.TLSClientCA != "" {
		cfg.TLS = &node.TLSConfig{Cert: opt.TLSCert, Key: opt.TLSKey, ClientCA: opt.TLSClientCA}
	}
	cfg.Insecure = opt.InsecureListen
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Node{n}, nil
}

// URL is the address of the REST API.
func (n *Node) URL() string { return n.n.HTTPURL() }

// NATSURL is where agents publish.
func (n *Node) NATSURL() string { return n.n.NATSURL() }

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.n.Done() }

// Close drains and stops the node: what was admitted is written first.
func (n *Node) Close(ctx context.Context) error { return n.n.Close(ctx) }
