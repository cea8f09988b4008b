package main

import (
	"github.com/spf13/cobra"

	"mneme/internal/node"
)

func natsConfigCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "nats-config",
		Short: "Print the configuration that an external nats-server needs",
		Long: `Print the configuration that an external nats-server needs: the accounts that keep
agents away from the log, their permissions, and syncing before acknowledging.
The server takes the three passwords from its environment.`,
		Example: `  memctl nats-config > nats.conf
  MNEME_NATS_NODE_PASSWORD=… MNEME_NATS_AGENTS_PASSWORD=… MNEME_NATS_SYSTEM_PASSWORD=… nats-server -c nats.conf
  memnode --nats-url nats://mneme-node:PASSWORD@127.0.0.1:4222 --nats-monitor http://127.0.0.1:8222`,
		Args: wantArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			config := node.ExternalNATSConfig()
			return a.emit(map[string]string{"config": config}, nil, func() { a.printf("%s", config) })
		},
	}
}
