// Package testaddr gives tests addresses that must be known before anybody
// listens there, as the nodes of a cluster must know each other's.
package testaddr

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The ports lie below those that systems give to outgoing connections and to
// listeners that ask for any port (32768 and up on Linux, 49152 on macOS), so
// that nobody is given one by chance before the test listens there.
const first, last = 20_000, 32_000

// Reserve returns n addresses of 127.0.0.1 on which nobody listens, and which
// no other caller gets, in this process or another, before the test has ended.
func Reserve(t testing.TB, n int) []string {
	t.Helper()
	addrs, release, err := Hold(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return addrs
}

// Hold is Reserve for programs: the addresses are held until release is called,
// by the UDP ports of the same numbers.
func Hold(n int) (addrs []string, release func(), err error) {
	var held []net.PacketConn
	release = func() {
		for _, h := range held {
			_ = h.Close()
		}
	}
	for tries := 0; len(addrs) < n; tries++ {
		if tries > 1000+100*n {
			release()
			return nil, nil, fmt.Errorf("found %d free ports of %d between %d and %d", len(addrs), n, first, last)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		h, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			_ = h.Close()
			continue
		}
		_ = l.Close()
		held, addrs = append(held, h), append(addrs, addr)
	}
	return addrs, release, nil
}
