package raftfsm

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A replica that is away is looked for again and again within one call, so that raft
// counts one failure in ten seconds and not one in each of ever longer waits.
func TestDialFindsAReplicaThatComesBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	tr := NewTransport(Network{ID: "a", Addr: "127.0.0.1:1", Listener: l, Dial: func(context.Context, string, string) (net.Conn, error) {
		if tries++; tries < 4 {
			return nil, errors.New("connection refused")
		}
		c, other := net.Pipe()
		t.Cleanup(func() { other.Close() })
		return c, nil
	}}).(*netTransport)
	defer tr.Close()
	c, err := tr.streams.Dial(raft.ServerAddress(Address("b", "127.0.0.1:2")), time.Minute)
	if err != nil || tries != 4 {
		t.Fatalf("%d tries: %v", tries, err)
	}
	c.Close()
	tries = -1 << 30
	if c, err := tr.streams.Dial(raft.ServerAddress(Address("b", "127.0.0.1:2")), 2*redialEvery); err == nil {
		c.Close()
		t.Error("connected to a replica that is away")
	}
}

// Raft waits for its calls before it closes the transport: a group that closes does not
// wait for a replica that is away.
func TestHangUpEndsWhatWaitsForAReplica(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tried := make(chan struct{}, 1)
	tr := NewTransport(Network{ID: "a", Addr: "127.0.0.1:1", Listener: l, Dial: func(context.Context, string, string) (net.Conn, error) {
		select {
		case tried <- struct{}{}:
		default:
		}
		return nil, errors.New("connection refused")
	}}).(*netTransport)
	defer tr.Close()
	done := make(chan error)
	go func() {
		_, err := tr.streams.Dial(raft.ServerAddress(Address("b", "127.0.0.1:2")), time.Hour)
		done <- err
	}()
	<-tried
	hangUp(tr)
	if err := <-done; err == nil {
		t.Error("connected to a replica that is away")
	}
	if _, err := tr.streams.Dial(raft.ServerAddress(Address("b", "127.0.0.1:2")), time.Hour); err == nil {
		t.Error("connected after hanging up")
	}
}
