package testaddr

import (
	"net"
	"testing"
)

func TestReservedAddressesAreNotGivenTwice(t *testing.T) {
	seen := map[string]bool{}
	for _, addr := range Reserve(t, 200) {
		if seen[addr] {
			t.Errorf("%s was given twice", addr)
		}
		seen[addr] = true
	}
	for addr := range seen {
		if held, err := net.ListenPacket("udp", addr); err == nil {
			held.Close()
			t.Errorf("another process could reserve %s", addr)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("nobody was to listen there: %v", err)
			continue
		}
		l.Close()
	}
}

func TestAddressesAreFreeAgainAfterTheTest(t *testing.T) {
	var addr string
	t.Run("reserve", func(t *testing.T) { addr = Reserve(t, 1)[0] })
	held, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatalf("still reserved: %v", err)
	}
	held.Close()
}
