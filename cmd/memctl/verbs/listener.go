package verbs

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"mneme/client"
	"mneme/memory"
)

// Where nobody named an address, calls go to the one at which a user's own node listens. Any
// user of the machine may take it while no node has it, and would get what hooks and
// tools say. So nothing is sent there unless this user or root listens, where the system
// tells who does.

// dialer is how the node at an address is reached, which is "" where nobody named one; nil is as the
// client does.
func (s *system) dialer(addr string) client.Dial {
	if addr != "" {
		return nil
	}
	return s.dialOwn
}

// dialOwn is a dial of a loopback address that refuses a listener of another user.
func (s *system) dialOwn(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := s.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	// Behind the connection, so that who listened before cannot have gone by now without a trace.
	if err := checkListener(c.RemoteAddr(), os.Geteuid(), s.listeners); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// checkListener reports that others than a user and root listen at an address of this machine.
// Where nothing tells, it reports nothing.
func checkListener(at net.Addr, user int, read func() ([]listener, error)) error {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil
	}
	all, err := read()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return memory.Errorf(memory.CodeUnavailable, "who listens at %s is not known: %w", at, err).WithHint("%s", trustHint(at))
	}
	there := slices.DeleteFunc(all, func(l listener) bool { return !l.takes(tcp.AddrPort()) })
	// Of those that may take it, the kernel gives it to one that names the address.
	if named := slices.DeleteFunc(slices.Clone(there), func(l listener) bool { return !l.names(tcp.AddrPort()) }); len(named) > 0 {
		there = named
	}
	if len(there) == 0 {
		return memory.Errorf(memory.CodeUnavailable, "something answers at %s, and no user of this machine listens there: nothing was sent", at).
			WithHint("a port that is forwarded, as one of a container, looks like that: %s", trustHint(at))
	}
	for _, l := range there {
		if l.user != user && l.user != 0 {
			return memory.Errorf(memory.CodeUnavailable, "user %d listens at %s, and not you: nothing was sent", l.user, at).WithHint("%s", trustHint(at))
		}
	}
	return nil
}

func trustHint(at net.Addr) string {
	return fmt.Sprintf("if you trust it, `memctl use --addr http://%s` says so; or start a node of your own at another address and name that", at)
}

// listener is a socket that waits for connections, and whose it is.
type listener struct {
	at   netip.AddrPort
	user int
}

// takes reports whether a connection to an address of this machine may be the listener's.
func (l listener) takes(addr netip.AddrPort) bool {
	own, other := l.at.Addr().Unmap(), addr.Addr().Unmap()
	return l.at.Port() == addr.Port() && (own == other || own == netip.IPv6Unspecified() || own == netip.IPv4Unspecified() && other.Is4())
}

// names reports whether the listener is at that very address, and not at all of the machine's.
func (l listener) names(addr netip.AddrPort) bool {
	return l.at.Port() == addr.Port() && l.at.Addr().Unmap() == addr.Addr().Unmap()
}

const listening = "0A" // the state, in the tables of Linux

// parseListeners reads a table of sockets as Linux has it in /proc/net/tcp and tcp6.
func parseListeners(r io.Reader) (all []listener, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// number, local address, remote address, state, queues, timer, retransmits, user
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[3] != listening {
			continue
		}
		at, err := parseSocket(f[1])
		if err != nil {
			return nil, err
		}
		user, err := strconv.Atoi(f[7])
		if err != nil {
			return nil, err
		}
		all = append(all, listener{at, user})
	}
	return all, lines.Err()
}

// parseSocket reads an address, whose words are written as numbers of the machine, and a port.
func parseSocket(s string) (netip.AddrPort, error) {
	words, digits, _ := strings.Cut(s, ":")
	port, err := strconv.ParseUint(digits, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b, err := hex.DecodeString(words)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", s)
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}
