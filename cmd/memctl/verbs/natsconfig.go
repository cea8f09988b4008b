package verbs

import (
	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
)

func natsConfigCmd(a *app) *cobra.Command {
	var s offline.NATSServer
	cmd := &cobra.Command{
		Use:   "nats-config",
		Short: "Print the configuration that an external nats-server needs",
		Long: `Print the configuration that an external nats-server needs: the accounts that keep
agents away from the log, their permissions, and syncing before acknowledging.
The server takes the three passwords from its environment. With --tls-cert it speaks TLS
to memnode and agents. With --route it is one of several, which know each other by
certificates of 'memctl cluster certs'; a log with three copies needs three.`,
		Example: `  memctl nats-config > nats.conf
  MNEME_NATS_NODE_PASSWORD=… MNEME_NATS_AGENTS_PASSWORD=… MNEME_NATS_SYSTEM_PASSWORD=… nats-server -c nats.conf
  memnode --nats-url nats://mneme-node:PASSWORD@127.0.0.1:4222 --nats-monitor http://127.0.0.1:8222

  memctl cluster certs --out certs log-1.example log-2.example log-3.example
  memctl nats-config --name log-1.example --listen 0.0.0.0:4222 --monitor log-1.example:8222 --route-listen 0.0.0.0:6222 --certs certs \
    --route log-1.example:6222,log-2.example:6222,log-3.example:6222 > log-1.conf`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(s.Routes) == 2 {
				return usage(cmd, "two servers survive no more losses than one: name three with --route, or none")
			}
			if (s.Cert == "") != (s.Key == "") {
				return usage(cmd, "a certificate needs its key, and the key its certificate: give --tls-cert and --tls-key both")
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			config := work.NATSConfig(s)
			return a.emit(map[string]string{"config": config}, nil, func() { a.printf("%s", config) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Name, "name", "mneme-log", "`name` of the server, for ever; among several each has another")
	f.StringVar(&s.Listen, "listen", "127.0.0.1:4222", "where it listens for memnode and agents, as host:port")
	f.StringVar(&s.Monitor, "monitor", "127.0.0.1:8222", "where it is asked whether it syncs, as host:port; only memnode has to reach it")
	f.StringVar(&s.Store, "store", "/var/lib/nats", "`directory` of the log")
	f.StringVar(&s.Cert, "tls-cert", "", "`file` with the certificate that memnode and agents are shown, as memctl cluster certs --server makes it")
	f.StringVar(&s.Key, "tls-key", "", "`file` with its key")
	f.StringSliceVar(&s.Routes, "route", nil, "where the other servers reach each of the servers, this one among them, as host:port (repeatable, or separated by commas)")
	f.StringVar(&s.RouteListen, "route-listen", "127.0.0.1:6222", "where it listens for the other servers, as host:port")
	f.StringVar(&s.Certs, "certs", "certs", "`directory` with ca.crt and NAME.crt and NAME.key, as memctl cluster certs makes them; for servers with --route")
	return cmd
}
