package peer

import (
	"net"
	"time"
)

// Anybody who reaches the port can open connections and say nothing. So a connection
// has little time for its first words, and when there are too many that have not
// greeted, who has the most of them loses the oldest: a node greets within
// milliseconds.
const (
	maxGreetings = 256
	// firstWords bounds how long a connection takes to begin TLS, which it has waited
	// with for nobody.
	firstWords = 2 * time.Second
)

// greetings are the connections that have not greeted yet. Whoever has them calls one
// method at a time.
type greetings struct {
	of   map[net.Conn]greeting
	last uint64
}

type greeting struct {
	host  string
	order uint64
}

// add counts a connection. drop, if not nil, had to make room for it.
func (g *greetings) add(c net.Conn) (drop net.Conn) {
	if len(g.of) >= maxGreetings {
		drop = g.leastWelcome()
		delete(g.of, drop)
	}
	if g.of == nil {
		g.of = map[net.Conn]greeting{}
	}
	g.last++
	g.of[c] = greeting{hostOf(c), g.last}
	return drop
}

// leastWelcome is the oldest connection of the host that has the most.
func (g *greetings) leastWelcome() net.Conn {
	has := map[string]int{}
	for _, at := range g.of {
		has[at.host]++
	}
	var worst net.Conn
	var is greeting
	for c, at := range g.of {
		if worst == nil || has[at.host] > has[is.host] || has[at.host] == has[is.host] && at.order < is.order {
			worst, is = c, at
		}
	}
	return worst
}

func (g *greetings) done(c net.Conn) { delete(g.of, c) }

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}
