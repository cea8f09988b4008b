package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"mneme/internal/node"
)

// nodeVariable makes this test program a node over the directory it names, with
// a Raft snapshot every few entries: what memnode does every few thousand.
const nodeVariable = "MNEME_E2E_NODE"

const snapshotEvery = 8

func nodeMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := node.Open(ctx, node.Config{DataDir: os.Getenv(nodeVariable), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0",
		SnapshotThreshold: snapshotEvery, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		fmt.Fprintln(os.Stderr, "memnode:", err)
		return 1
	}
	fmt.Printf("memnode ready http=http://%s nats=%s data=%s\n", n.HTTPAddr(), n.NATSURL(), os.Getenv(nodeVariable))
	select {
	case <-ctx.Done():
	case <-n.Done():
	}
	if err := n.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "memnode:", err)
		return 1
	}
	return 0
}
