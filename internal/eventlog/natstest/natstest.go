// Package natstest runs servers of an external NATS in the process of a test, exactly as
// memctl nats-config configures them. It is for tests only.
package natstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"mneme/internal/eventlog"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
)

// Passwords of the three users.
const (
	NodePassword   = "node-sesame"
	AgentsPassword = "agents-sesame"
	SystemPassword = "system-sesame"
)

// Servers are one external NATS.
type Servers struct {
	Names    []string
	Clients  []string // host:port for clients
	Monitors []string // URLs
	configs  []eventlog.ExternalServer

	mu sync.Mutex
	up []*server.Server
}

// Start starts n servers, which are a cluster if they are several, and waits until
// they answer. They are stopped with the test.
func Start(t testing.TB, n int) *Servers {
	t.Helper()
	return start(t, n, func(*eventlog.ExternalServer) {})
}

// StartTLS starts one that speaks TLS, and returns the authority of its certificate, too.
func StartTLS(t testing.TB) (s *Servers, authority string) {
	t.Helper()
	made, err := devca.Make(devca.Options{Dir: t.TempDir(), Use: devca.ForServers, Nodes: []string{"log"}, Hosts: []string{"127.0.0.1"}, Valid: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, 1, func(c *eventlog.ExternalServer) { c.Cert, c.Key = made.Nodes[0].Cert, made.Nodes[0].Key })
	return s, made.Authority
}

func start(t testing.TB, n int, configure func(*eventlog.ExternalServer)) *Servers {
	t.Helper()
	if n > 1 {
		eventlog.ShortenElections()
	}
	s := &Servers{up: make([]*server.Server, n)}
	certs, addrs := t.TempDir(), testaddr.Reserve(t, 3*n)
	var routes []string
	for i := range n {
		s.Names = append(s.Names, fmt.Sprintf("log-%d", i+1))
		s.Clients, s.Monitors = append(s.Clients, addrs[3*i]), append(s.Monitors, "http://"+addrs[3*i+1])
		routes = append(routes, addrs[3*i+2])
	}
	if n > 1 {
		if _, err := devca.Make(devca.Options{Dir: certs, Nodes: s.Names, Hosts: []string{"127.0.0.1"}, Valid: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range s.Names {
		c := eventlog.ExternalServer{Name: name, Listen: addrs[3*i], Monitor: addrs[3*i+1], Store: t.TempDir()}
		if n > 1 {
			c.Routes, c.RouteListen, c.Certs = routes, routes[i], certs
		}
		configure(&c)
		s.configs = append(s.configs, c)
	}
	t.Cleanup(func() {
		for i := range s.up {
			s.Stop(i)
		}
	})
	var starting sync.WaitGroup
	for i := range n {
		starting.Go(func() { s.Up(t, i, "", "") })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// Up starts a server with one text of its configuration replaced by another, such as
// "sync_interval: always" by "sync_interval: 1m".
func (s *Servers) Up(t testing.TB, i int, old, now string) {
	t.Helper()
	text := strings.NewReplacer("$MNEME_NATS_NODE_PASSWORD", NodePassword, "$MNEME_NATS_AGENTS_PASSWORD", AgentsPassword, "$MNEME_NATS_SYSTEM_PASSWORD", SystemPassword).
		Replace(eventlog.ExternalConfig(s.configs[i]))
	if old != "" && !strings.Contains(text, old) {
		t.Errorf("the configuration does not say %q", old)
	}
	text = strings.Replace(text, old, now, 1)
	file := filepath.Join(s.configs[i].Store, "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
		return
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Errorf("%s: %v", s.Names[i], err)
		return
	}
	o.NoLog, o.NoSigs = true, true
	ns, err := server.NewServer(o)
	if err != nil {
		t.Errorf("%s: %v", s.Names[i], err)
		return
	}
	go ns.Start()
	s.mu.Lock()
	s.up[i] = ns
	s.mu.Unlock()
	if !ns.ReadyForConnections(30 * time.Second) {
		t.Errorf("%s is not ready", s.Names[i])
	}
}

// Stop stops a server.
func (s *Servers) Stop(i int) {
	s.mu.Lock()
	ns := s.up[i]
	s.up[i] = nil
	s.mu.Unlock()
	if ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// URL is how the node reaches the servers, or those whose numbers are given.
func (s *Servers) URL(only ...int) string { return s.url("mneme-node:"+NodePassword, only) }

// AgentsURL is how agents do, SystemURL how a user of the system account does.
func (s *Servers) AgentsURL(only ...int) string { return s.url("mneme-agents:"+AgentsPassword, only) }

// SystemURL is how a user of the system account reaches the servers.
func (s *Servers) SystemURL(only ...int) string { return s.url("mneme-system:"+SystemPassword, only) }

func (s *Servers) url(who string, only []int) string {
	var out []string
	for i, addr := range s.Clients {
		if len(only) == 0 {
			out = append(out, "nats://"+who+"@"+addr)
		}
		for _, o := range only {
			if o == i {
				out = append(out, "nats://"+who+"@"+addr)
			}
		}
	}
	return strings.Join(out, ",")
}

// Number is the number of the server with a name, -1 if there is none.
func (s *Servers) Number(name string) int {
	for i, n := range s.Names {
		if n == name {
			return i
		}
	}
	return -1
}
