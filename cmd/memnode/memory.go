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

// noLimit is what no machine has: cgroups of version 1 say a number of that size for none.
const noLimit = 1 << 60

// memoryLimit is the container's limit now, 0 where there is none.
func memoryLimit() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit >= noLimit {
		return 0
	}
	return limit
}

// limitMemory sets Go's memory limit to nine tenths of that of the container, so that
// garbage is collected before the kernel ends the process. GOMEMLIMIT, or
// AUTOMEMLIMIT=off, leaves it as it is; without a container there is no limit. (The
// runtime itself follows the container's limit of processors.)
func limitMemory(ctx context.Context, log *slog.Logger) { limitMemoryOf(ctx, log, memlimit.FromCgroup) }

func limitMemoryOf(ctx context.Context, log *slog.Logger, container memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithProvider(container), memlimit.WithRatio(0.9), memlimit.WithRefreshInterval(ctx, limitEvery))
	log.Debug("memory limit", "bytes", limit, "err", err)
}
