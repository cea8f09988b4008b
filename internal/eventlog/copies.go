package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// CopiesOfNew sets StreamConfig.Copies, before any stream is made.
func (l *Log) CopiesOfNew(copies func(context.Context) int) { l.cfg.Copies = copies }

// Copies says how many copies the stream that counts is to have, as the servers know it.
// While they make or take copies it is that already. Errors: those of Info.
func (l *Log) Copies(ctx context.Context) (int, error) {
	st, err := l.now.Load().copied(ctx)
	if err != nil {
		return 0, err
	}
	return max(st.CachedInfo().Config.Replicas, 1), nil
}

// SetCopies has the stream that counts get so many copies; nobody has to stop writing. It
// returns once the servers have agreed on it. They carry it out by themselves, one server
// after the other: one gets its copy whole before it counts, and of those that are there
// the leader and what lags the least stay. It is refused where there are too few servers.
func (l *Log) SetCopies(ctx context.Context, n int) error {
	j := l.now.Load()
	st, err := j.copied(ctx)
	if err != nil {
		return err
	}
	c := st.CachedInfo().Config
	if c.Replicas == n {
		return nil
	}
	if c.Sealed {
		return fmt.Errorf("%s to have %d copies: another stream takes its place", j.name, n)
	}
	c.Replicas = n
	if _, err := j.js.UpdateStream(ctx, c); err != nil {
		return fmt.Errorf("%s to have %d copies: %w", j.name, n, err)
	}
	return nil
}

// copied asks about the stream, which must be led: who else answers may know less.
func (j *JetStream) copied(ctx context.Context) (jetstream.Stream, error) {
	if j.closed.Load() {
		return nil, fmt.Errorf("copies: %w", ErrClosed)
	}
	st, err := j.ask(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("copies of %s: %w", j.name, ErrNotFound)
	case err != nil && retryable(err):
		return nil, fmt.Errorf("copies of %s: %w: %w", j.name, ErrNoLeader, err)
	case err != nil:
		return nil, fmt.Errorf("copies of %s: %w", j.name, err)
	}
	if in := st.CachedInfo(); in.Config.Replicas > 1 && (in.Cluster == nil || in.Cluster.Leader == "") {
		return nil, fmt.Errorf("copies of %s: %w", j.name, ErrNoLeader)
	}
	return st, nil
}
