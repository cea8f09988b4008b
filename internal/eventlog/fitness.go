package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/events"
)

// UnfitError says why an external NATS cannot keep the log, and what helps.
type UnfitError struct {
	Problem, Remedy string
	// Passes says that it may pass by itself: servers that start find each other.
	Passes bool
}

func (e *UnfitError) Error() string { return e.Problem }

// leastStore is what an account must be able to keep: a log that is full after an hour
// helps nobody.
const leastStore = 64 << 20

// Fit is an error where the external NATS cannot keep a log of so many copies for a
// cluster: an *UnfitError, or one that wraps ErrOtherCluster or ErrUnreachable.
func (r *Remote) Fit(ctx context.Context, clusterID string, replicas int) error {
	js, err := jetstream.New(r.nc)
	if err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, 2*remoteDialTimeout)
	defer cancel()
	account, err := js.AccountInfo(ask)
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return &UnfitError{Problem: fmt.Sprintf("the external NATS has no JetStream for the account %q", r.account),
			Remedy: "memctl nats-config prints a configuration that has it"}
	case err != nil:
		return fmt.Errorf("%w: JetStream does not answer: %w", ErrUnreachable, err)
	}
	if err := fits(account, replicas); err != nil {
		return err
	}
	own, err := r.sameCluster(ask, js, clusterID)
	if err != nil || own {
		return err
	}
	return r.enoughServers(replicas)
}

// fits compares an account's limits with what a log needs: itself, and beside it the
// stream that a repair fills.
func fits(account *jetstream.AccountInfo, replicas int) error {
	limits := account.Limits
	tier, tiered := account.Tiers[fmt.Sprintf("R%d", replicas)]
	if tiered {
		limits = tier.Limits
	} else if len(account.Tiers) > 0 {
		return &UnfitError{Problem: fmt.Sprintf("the account on the external NATS has no limits for streams with %d copies", replicas),
			Remedy: fmt.Sprintf("give the account a tier R%d, or name the copies that it may have by --nats-replicas", replicas)}
	}
	switch {
	case limits.MaxStreams >= 0 && limits.MaxStreams < 2:
		return &UnfitError{Problem: fmt.Sprintf("the account on the external NATS may have %d streams, and the log needs 2: itself, and one that a repair fills", limits.MaxStreams),
			Remedy: "raise max_streams of the account"}
	case limits.MaxStore >= 0 && limits.MaxStore < leastStore:
		return &UnfitError{Problem: fmt.Sprintf("the account on the external NATS may keep %d bytes on disk, which is too little for a log", limits.MaxStore),
			Remedy: "raise max_file, the disk storage, of the account: the log is never shortened"}
	case limits.MaxBytesRequired:
		return &UnfitError{Problem: "the account on the external NATS wants a limit for each stream, and the log has none",
			Remedy: "take max_bytes_required from the account"}
	case limits.StoreMaxStreamBytes > 0 && limits.StoreMaxStreamBytes < leastStore:
		return &UnfitError{Problem: fmt.Sprintf("a stream of the account on the external NATS may have %d bytes, which is too little for a log", limits.StoreMaxStreamBytes),
			Remedy: "raise disk_max_stream_bytes of the account: the log is never shortened"}
	}
	return nil
}

// sameCluster reports whether streams of a log are there. It is an error that they are
// those of another cluster: one account has one.
func (r *Remote) sameCluster(ctx context.Context, js jetstream.JetStream, clusterID string) (own bool, err error) {
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		if _, _, ok := events.ParseStreamName(info.Config.Name); !ok {
			continue
		}
		own = true
		if other := info.Config.Metadata[metaCluster]; clusterID != "" && other != clusterID {
			return true, &ConfigError{Stream: info.Config.Name, Differences: []string{fmt.Sprintf("metadata %s is %v, must be %v", metaCluster, other, clusterID)}}
		}
	}
	if err := list.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return own, fmt.Errorf("%w: list streams: %w", ErrUnreachable, err)
	}
	return own, nil
}

// enoughServers is an error where a stream with so many copies cannot be made.
func (r *Remote) enoughServers(replicas int) error {
	if replicas <= 1 {
		return nil
	}
	remedy := fmt.Sprintf("run %d servers (memctl nats-config --route), or take a log with one copy by --nats-replicas 1: what the server loses is lost", replicas)
	if r.nc.ConnectedClusterName() == "" {
		return &UnfitError{Problem: fmt.Sprintf("the external NATS is a single server, and a log with %d copies needs %d", replicas, replicas), Remedy: remedy}
	}
	r.mu.Lock()
	servers := r.proof.size
	r.mu.Unlock()
	if servers > 0 && servers < replicas {
		return &UnfitError{Problem: fmt.Sprintf("the external NATS has %d servers with JetStream, and a log with %d copies needs %d", servers, replicas, replicas), Remedy: remedy, Passes: true}
	}
	return nil
}
