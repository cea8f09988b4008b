package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/events"
)

// StreamConfig says which stream to open and how it must be configured.
type StreamConfig struct {
	Shard uint16
	// Ref is the stream: its epoch gives the name, its identity is kept in the
	// metadata of a stream that is made.
	Ref       events.StreamRef
	ClusterID string // kept in the stream's metadata; another one is refused
	Replicas  int    // 0 means 1
	// AnyReplicas takes a stream that is there with as many as it has; Replicas is then
	// for one that is made.
	AnyReplicas bool
	// Copies, if not nil, says at each attempt to make a stream how many it gets, instead
	// of Replicas.
	Copies   func(context.Context) int
	MaxBytes int64 // 0 means no limit; may be changed later
	// MustExist refuses to create the stream: the state knows it. One that is not
	// there holds nothing and takes nothing.
	MustExist bool
	// AckTimeout is how long an append waits for its ack before the outcome
	// counts as unknown; 0 means 5 s.
	AckTimeout time.Duration
	// Fault, if not nil, tells after a missing ack whether the server reported
	// that it cannot write; Server.WriteFault is meant.
	Fault func() error
	// Guard, if not nil, says why an acknowledgement of the stream would not mean that
	// the message is on disk; Remote.Vouch is meant, which is told of the stream's copies
	// whenever the server names them. While it does nothing is appended, and what was is
	// not taken for stored.
	Guard func(stream string, copies []Copy) error
}

const (
	metaCluster  = "mneme-cluster"
	metaIdentity = "mneme-stream"
	// dedupeWindow is the smallest that the server accepts. Message ids are
	// never sent: they are stream-wide, and a repeated one is dropped with a
	// good-looking ack.
	dedupeWindow  = 100 * time.Millisecond
	ackTimeout    = 5 * time.Second
	apiRetryPause = 50 * time.Millisecond
	askTimeout    = 2 * time.Second
	knownFor      = time.Second // and nobody makes another stream of its name and length
)

// JetStream is the Stream of one shard on JetStream.
type JetStream struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cfg     StreamConfig
	name    string
	subject string
	sending chan struct{} // one publish in flight
	known   time.Time     // when the stream was last known to be this cluster's; whoever sends has it
	closed  atomic.Bool
	sealed  atomic.Bool // when it was opened, or by Seal
}

var _ Stream = (*JetStream)(nil)

// OpenStream opens the stream of a shard, and creates it if it may. A stream
// that exists under another configuration is a *ConfigError; only MaxBytes is
// adjusted. The connection stays the caller's.
func OpenStream(ctx context.Context, nc *nats.Conn, cfg StreamConfig) (*JetStream, error) {
	j, err := newStream(nc, cfg)
	if err != nil {
		return nil, err
	}
	if err := j.open(ctx); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", j.name, err)
	}
	return j, nil
}

// newStream returns a stream that the server was not asked for.
func newStream(nc *nats.Conn, cfg StreamConfig) (*JetStream, error) {
	cfg.Replicas = max(cfg.Replicas, 1)
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = -1
	}
	if cfg.AckTimeout <= 0 {
		cfg.AckTimeout = ackTimeout
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	return &JetStream{
		nc: nc, js: js, cfg: cfg,
		name: events.StreamName(cfg.Shard, cfg.Ref.Epoch), subject: events.LogSubject(cfg.Shard, cfg.Ref.Epoch),
		sending: make(chan struct{}, 1),
	}, nil
}

// ask asks the server about the stream, once. A question that comes while the stream
// has no leader, or just before its leader is gone, is never answered.
func (j *JetStream) ask(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return j.js.Stream(ctx, j.name)
}

func (j *JetStream) open(ctx context.Context) error {
	st, err := j.ask(ctx)
	for err != nil && retryable(err) && ctx.Err() == nil {
		if err := pause(ctx, apiRetryPause); err != nil {
			return err
		}
		st, err = j.ask(ctx)
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && j.cfg.MustExist:
		return nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return j.create(ctx)
	case err != nil:
		return err
	}
	_ = j.guard(st.CachedInfo()) // before an append it is asked again
	have := st.CachedInfo().Config
	if j.cfg.AnyReplicas {
		j.cfg.Replicas = max(have.Replicas, 1)
	}
	want := j.want()
	j.sealed.Store(have.Sealed)
	if diff := configDifferences(have, want); len(diff) > 0 {
		return &ConfigError{Stream: j.name, Differences: diff}
	}
	if have.MaxBytes != want.MaxBytes {
		have.MaxBytes = want.MaxBytes
		if _, err := j.js.UpdateStream(ctx, have); err != nil {
			return fmt.Errorf("change the size limit: %w", err)
		}
	}
	return nil
}

// guard asks Guard, and tells it what the server says of the stream; nil is nothing new.
func (j *JetStream) guard(info *jetstream.StreamInfo) error {
	if j.cfg.Guard == nil {
		return nil
	}
	var copies []Copy
	if info != nil {
		copies = copiesOf(info.Cluster)
	}
	return j.cfg.Guard(j.name, copies)
}

// create retries while the API does not answer, because a cluster that just
// came up drops the first requests, and while there are fewer servers than the
// stream is to have replicas.
func (j *JetStream) create(ctx context.Context) error {
	for {
		if j.cfg.Copies != nil {
			j.cfg.Replicas = j.cfg.Copies(ctx)
		}
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := j.js.CreateStream(try, j.want())
		cancel()
		if err == nil && j.cfg.Guard != nil {
			if st, err := j.ask(ctx); err == nil { // else Guard finds out
				_ = j.guard(st.CachedInfo())
			}
		}
		if err == nil {
			return j.elected(ctx)
		}
		if ctx.Err() != nil || !retryable(err) && !j.alone(err) {
			return createError(err)
		}
		if err := pause(ctx, apiRetryPause); err != nil {
			return err
		}
	}
}

// elected waits, for a while, until a stream that was just made has a leader.
func (j *JetStream) elected(ctx context.Context) error {
	for began := time.Now(); j.cfg.Replicas > 1 && time.Since(began) < electing; {
		if _, err := j.Info(ctx); !errors.Is(err, ErrNoLeader) {
			return nil
		}
		if err := pause(ctx, apiRetryPause); err != nil {
			return err
		}
	}
	return nil
}

// createError tells a server that has no room for a stream from other refusals.
func createError(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (errors.Is(ackMeaning(int(api.ErrorCode), api.Description), ErrNoSpace) || errors.Is(writeFault(api.Description), ErrNoSpace)) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

func retryable(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeNotNow {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders)
}

// alone reports whether a stream was not made because there are too few servers now.
func (j *JetStream) alone(err error) bool {
	var api *jetstream.APIError
	return j.cfg.Replicas > 1 && errors.As(err, &api) && api.ErrorCode == codeNoPeers
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (j *JetStream) want() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        j.name,
		Description: "Mneme: what happened, in order. Only memnode writes here.",
		Subjects:    []string{j.subject},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		Replicas:    j.cfg.Replicas,
		MaxBytes:    j.cfg.MaxBytes,
		MaxMsgs:     -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1,
		Duplicates:  dedupeWindow,
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: j.cfg.Replicas == 1, // with several, any of them would answer
		Compression: jetstream.NoCompression,
		Metadata:    map[string]string{},
	}
	if j.cfg.ClusterID != "" {
		c.Metadata[metaCluster] = j.cfg.ClusterID
	}
	if j.cfg.Ref.Identity != "" {
		c.Metadata[metaIdentity] = j.cfg.Ref.Identity
	}
	return c
}

// configDifferences lists where have would break what an ack promises.
func configDifferences(have, want jetstream.StreamConfig) []string {
	var diff []string
	check := func(field string, have, want any) {
		if have != want {
			diff = append(diff, fmt.Sprintf("%s is %v, must be %v", field, have, want))
		}
	}
	check("subjects", fmt.Sprint(have.Subjects), fmt.Sprint(want.Subjects))
	check("retention", have.Retention, want.Retention)
	check("storage", have.Storage, want.Storage)
	check("discard", have.Discard, want.Discard)
	check("replicas", have.Replicas, want.Replicas)
	check("max_age", have.MaxAge, want.MaxAge)
	check("max_msgs", have.MaxMsgs, want.MaxMsgs)
	check("max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	check("deny_delete", have.DenyDelete, true)
	check("deny_purge", have.DenyPurge, true)
	check("allow_direct", have.AllowDirect, want.AllowDirect)
	check("compression", have.Compression, want.Compression)
	check("no_ack", have.NoAck, false)
	check("allow_rollup_hdrs", have.AllowRollup, false)
	check("allow_msg_ttl", have.AllowMsgTTL, false)
	check("persist_mode", have.PersistMode, want.PersistMode)
	check("mirror", have.Mirror != nil, false)
	check("sources", len(have.Sources), 0)
	check("subject_transform", have.SubjectTransform != nil, false)
	if id := want.Metadata[metaCluster]; id != "" {
		check("metadata "+metaCluster, have.Metadata[metaCluster], id)
	}
	return diff
}

// Ref names the stream.
func (j *JetStream) Ref() events.StreamRef { return j.cfg.Ref }

// others reports whether a stream that is there is another cluster's: it holds nothing of this log, and is
// left as it is.
func (j *JetStream) others(c *jetstream.StreamConfig) bool {
	return j.cfg.ClusterID != "" && c.Metadata[metaCluster] != j.cfg.ClusterID
}

// Seal lets the stream take nothing any more, for good. A stream that is not
// there, or is another cluster's, is sealed.
func (j *JetStream) Seal(ctx context.Context) error {
	st, err := j.js.Stream(ctx, j.name)
	if err == nil && !st.CachedInfo().Config.Sealed && !j.others(&st.CachedInfo().Config) {
		c := st.CachedInfo().Config
		c.Sealed = true
		_, err = j.js.UpdateStream(ctx, c)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("seal %s: %w", j.name, err)
	}
	j.sealed.Store(true)
	return nil
}

// Close ends the use of the stream; the connection stays open.
func (j *JetStream) Close() error {
	j.closed.Store(true)
	return nil
}
