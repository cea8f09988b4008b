package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limitEvery is how often the limit of the container is read again: Kubernetes changes it
// while a pod runs.
const limitEvery = 10 * time.Second

// limitMemory sets Go's memory limit to nine tenths of that of the container, so that
// garbage is collected before the kernel ends the process. GOMEMLIMIT, or
// AUTOMEMLIMIT=off, leaves it as it is; without a container there is no limit. (The
// runtime itself follows the container's limit of processors.)
func limitMemory(ctx context.Context, log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRefreshInterval(ctx, limitEvery))
	log.Debug("memory limit", "bytes", limit, "err", err)
}
