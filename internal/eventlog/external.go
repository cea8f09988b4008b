package eventlog

import (
	"cmp"
	"fmt"
	"strings"
)

// ExternalServer is one server of an external NATS, as ExternalConfig configures it.
// The zero value is one that is alone, on this machine.
type ExternalServer struct {
	Name    string // of the server, for ever; "" = mneme-log
	Listen  string // host:port for clients
	Monitor string // host:port where it is asked whether it syncs
	Store   string // directory of the streams
	// Cert and Key are files with the certificate that clients are shown, and its key; none
	// is a server that speaks to them in clear.
	Cert, Key string
	// Routes are the host:port of all servers of a cluster, RouteListen is where this one
	// listens for the others, and Certs is the directory with ca.crt and <name>.crt and
	// .key, by which they know each other. None is a server that is alone.
	Routes      []string
	RouteListen string
	Certs       string
}

// ExternalConfig is a nats-server configuration file under which an external
// server gives Mneme the same wall, and the same durability, as the embedded
// one. Passwords come from the environment of that server.
func ExternalConfig(s ExternalServer) string {
	p := publicPermissions()
	users := func(account string) string {
		switch account {
		case nodeAccount:
			return "    users: [ { user: \"mneme-node\", password: $MNEME_NATS_NODE_PASSWORD } ]\n"
		case systemAccount:
			return "    users: [ { user: \"mneme-system\", password: $MNEME_NATS_SYSTEM_PASSWORD } ]\n"
		}
		return fmt.Sprintf(`    users: [
      { user: "mneme-agents", password: $MNEME_NATS_AGENTS_PASSWORD
        permissions: {
          publish: { allow: [ %s ] }
          subscribe: { allow: [ %s ] }
        }
      }
    ]
`, quoted(p.Publish.Allow), quoted(p.Subscribe.Allow))
	}
	listen, monitor := cmp.Or(s.Listen, "127.0.0.1:4222"), cmp.Or(s.Monitor, "127.0.0.1:8222")
	scheme, tls := "nats", ""
	if s.Cert != "" {
		scheme, tls = "tls", fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", s.Cert, s.Key)
	}
	return fmt.Sprintf(`# Configuration of an external nats-server for Mneme.
# memnode connects with --nats-url %s://mneme-node:PASSWORD@%s and proves that the
# server syncs with --nats-monitor http://%s, agents connect as mneme-agents. Several
# servers or nodes name all addresses, separated by commas. One Mneme, whether a node or
# a cluster, has the account NODE for itself.
# The file is read at start only: a reload would drop what was added at run time.

server_name: %q
listen: %q
http: %q
%smax_payload: %d
max_connections: %d

# sync_interval is what an acknowledgement rests on; nothing is written without it.
jetstream {
  store_dir: %q
  sync_interval: always
}
%s
%s`, scheme, listen, monitor, cmp.Or(s.Name, "mneme-log"), listen, monitor, tls, DefaultMaxPayload, maxCallers+reservedConns,
		cmp.Or(s.Store, "/var/lib/nats"), s.clusterConfig(), accountsConfig("", users, maxCallers))
}

// clusterConfig is the block by which the server is one of several. Whoever could open a
// route could write into the log, so that the others show a certificate.
func (s ExternalServer) clusterConfig() string {
	if len(s.Routes) == 0 {
		return ""
	}
	var routes strings.Builder
	for _, r := range s.Routes {
		fmt.Fprintf(&routes, "    \"nats-route://%s\"\n", r)
	}
	certs := strings.TrimSuffix(cmp.Or(s.Certs, "certs"), "/")
	file := certs + "/" + cmp.Or(s.Name, "mneme-log")
	return fmt.Sprintf(`
cluster {
  name: "mneme-log"
  listen: %q
  no_advertise: true
  ping_interval: %q
  ping_max: %d
  tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }
  routes: [
%s  ]
}
`, cmp.Or(s.RouteListen, "127.0.0.1:6222"), routePing, routePings, file+".crt", file+".key", certs+"/ca.crt", routes.String())
}
