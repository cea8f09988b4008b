package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme/internal/certs"
	"mneme/internal/eventlog"
	"mneme/memory"
)

// ExternalNATS says how an external NATS is reached, beside its address, and how it
// keeps the log.
type ExternalNATS struct {
	// Monitors are the monitoring addresses of all its servers, which prove that they
	// sync before they acknowledge. SystemURL, the address with a user of the system
	// account, proves it without them.
	Monitors  []string
	SystemURL string
	Access    NATSAccess
	// Replicas is how many copies the log has: 1, 3 or 5. 0 is as many as it has; one
	// that is made gets 3 in a cluster, and 1 else.
	Replicas int
}

// NATSAccess is how the node proves to an external NATS who it is, by files.
type NATSAccess = eventlog.Access

// validateExternal refuses what does not go together.
func (c *Config) validateExternal() error {
	e := c.External
	if c.NATSURL == "" {
		if e.SystemURL != "" || e.Access != (NATSAccess{}) || e.Replicas != 0 {
			return usage("an external NATS is described and none is named", "--nats-url says where it is; the other --nats-… options but --nats-addr are for it")
		}
		return nil
	}
	if !slices.Contains([]int{0, 1, 3, 5}, e.Replicas) {
		return usage(fmt.Sprintf("a log with %d copies is not supported", e.Replicas), "--nats-replicas takes 1, 3 or 5: an even number bears no more losses than one less")
	}
	if (e.Access.Cert == "") != (e.Access.Key == "") {
		return usage("a certificate for the external NATS needs its key, and the key its certificate", "give --nats-cert and --nats-key both")
	}
	if e.Access.Creds != "" && e.Access.NKey != "" {
		return usage("there are two ways for the node to prove who it is", "give --nats-creds or --nats-nkey")
	}
	return nil
}

// copies is how many copies a log gets that is made.
func (c *Config) copies() int {
	if c.Cluster == nil {
		return max(c.External.Replicas, 1)
	}
	return cmp.Or(c.External.Replicas, defaultReplicas)
}

const (
	// externalAppend is how long an append waits for its ack: the servers elect after
	// some seconds, and what was under way then is mostly lost.
	externalAppend = 2 * time.Second
	externalRetry  = time.Second
	externalSay    = 5 * time.Second
	// externalForms is how long servers that start may take to find each other.
	externalForms = 20 * time.Second
)

// openExternal connects to the external NATS and says how the shard's log is kept there.
// A node on its own does not wait for it. One of several does, as it waits for the others.
func (c *core) openExternal(ctx context.Context, cfg eventlog.StreamConfig) (natsServer, eventlog.StreamConfig, error) {
	if err := c.peers.sameKindOfLog(); err != nil {
		return nil, cfg, err
	}
	remote, err := c.reachExternal(ctx, cfg.ClusterID)
	if err != nil {
		return nil, cfg, err
	}
	replicas := c.cfg.External.Replicas
	cfg.Guard, cfg.Replicas, cfg.AnyReplicas = remote.Vouch, c.cfg.copies(), replicas == 0
	if c.peers != nil {
		cfg.AckTimeout = externalAppend
	}
	if replicas == 1 && c.peers != nil {
		c.cfg.Logger.Warn("the log has one copy: what its server loses is lost, whichever node has it in its state", "hint", "three servers and --nats-replicas 3 keep three")
	}
	return &externalNATS{Remote: remote, url: c.cfg.NATSURL}, cfg, nil
}

// lookAtExternal refuses an external NATS that cannot keep the log, while the data
// directory of this node of several belongs to no cluster yet: it can be started again with
// another one. Which cluster has the account is asked where one is founded.
func (c *core) lookAtExternal(ctx context.Context, clusterID string) error {
	if c.cfg.NATSURL == "" || (facts{c.dir}).identity().Cluster != "" {
		return nil
	}
	remote, err := c.reachExternal(ctx, clusterID)
	if err != nil {
		return err
	}
	remote.Close()
	return nil
}

// reachExternal connects to an external NATS that can keep the log of a cluster; "" is one
// that is not known yet.
func (c *core) reachExternal(ctx context.Context, clusterID string) (*eventlog.Remote, error) {
	e, began, said := c.cfg.External, time.Now(), time.Time{}
	for _, secret := range []string{e.Access.Creds, e.Access.NKey, e.Access.Key} {
		if err := certs.Kept(secret); err != nil {
			return nil, usage(err.Error(), fmt.Sprintf("chmod 600 %s; its group may read it, 640; if somebody else may have read it, give the node others on that NATS", secret))
		}
	}
	for {
		remote, err := eventlog.OpenExternal(ctx, eventlog.RemoteOptions{URL: c.cfg.NATSURL, Access: e.Access, SystemURL: e.SystemURL, MonitorURLs: e.Monitors,
			Dev: c.cfg.Dev, Logger: c.cfg.Logger})
		if err == nil {
			if err = remote.Fit(ctx, clusterID, c.cfg.copies()); err == nil {
				return remote, nil
			}
			remote.Close()
		}
		if c.peers == nil || !passes(err, time.Since(began)) {
			return nil, externalError(err)
		}
		if gone := c.peers.removed(); gone != nil {
			return nil, clusterError(gone)
		}
		c.peers.waitsFor("this node waits for the external NATS that keeps the log", "", "it comes up by itself then; the node's log says why it waits. "+waitsForNATSHint(err))
		if time.Since(said) >= externalSay {
			said = time.Now()
			c.cfg.Logger.Warn("waiting for the external NATS", "why", err, "hint", waitsForNATSHint(err))
		}
		select {
		case <-time.After(externalRetry):
		case <-ctx.Done():
			return nil, externalError(errors.Join(ctx.Err(), err))
		}
	}
}

// waitsForNATSHint says what ends the waiting.
func waitsForNATSHint(err error) string {
	var unfit *eventlog.UnfitError
	switch {
	case errors.As(err, &unfit):
		return unfit.Remedy
	case errors.Is(err, eventlog.ErrNoSyncProof):
		return proofHint(err)
	}
	return "start its servers; if they run, --nats-url names others"
}

// passes reports whether a node of several waits for the end of an error that it has met
// for a while.
func passes(err error, since time.Duration) bool {
	var unfit *eventlog.UnfitError
	switch {
	case errors.As(err, &unfit):
		return unfit.Passes && since < externalForms
	case errors.Is(err, eventlog.ErrCredentials), errors.Is(err, eventlog.ErrLazySync), errors.Is(err, eventlog.ErrNobodyToAsk):
		return false
	}
	return errors.Is(err, eventlog.ErrUnreachable) || errors.Is(err, eventlog.ErrNoSyncProof)
}

// externalError says for people why the external NATS cannot be used.
func externalError(err error) error {
	e := startError("external NATS", err)
	var unfit *eventlog.UnfitError
	start := (*StartError)(nil)
	if !errors.As(e, &start) {
		return e
	}
	switch {
	case errors.As(err, &unfit):
		return &StartError{Kind: StartUnreachable, Message: unfit.Problem, Hint: unfit.Remedy, Err: err}
	case errors.Is(err, eventlog.ErrAccess):
		start.Kind, start.Hint = StartUsage, "--nats-creds, --nats-nkey, --nats-ca, --nats-cert and --nats-key name files that this user can read"
	case errors.Is(err, eventlog.ErrOtherCluster):
		start.Hint = "an account of a NATS is for one Mneme, a node or a cluster: give this one an account, or servers, of its own"
	case errors.Is(err, eventlog.ErrCredentials):
		start.Hint = "user and password stand in --nats-url or in the file of --nats-creds, a token in --nats-url; --nats-nkey names a file"
	case errors.Is(err, eventlog.ErrNoSyncProof):
		start.Hint = proofHint(err) + "; --dev does without"
	}
	return start
}

// proofHint says what helps where it is not proven that the servers sync.
func proofHint(err error) string {
	if errors.Is(err, eventlog.ErrLazySync) {
		return "set sync_interval: always in the jetstream block of those servers (memctl nats-config prints it) and restart them"
	}
	return "each server with a copy of the log has to say that it syncs: name the monitoring address of each by --nats-monitor, or a user of the system account by --nats-system-url"
}

// sameKindOfLog refuses a node that keeps the log elsewhere than the others.
func (p *peers) sameKindOfLog() error {
	if p == nil {
		return nil
	}
	facts := p.cluster.Facts()
	for _, m := range facts.Members {
		switch outside := p.c.cfg.NATSURL != ""; {
		case m.Name == facts.Name():
		case outside && m.Route != "":
			return usage(fmt.Sprintf("node %s of the cluster keeps the log with its embedded NATS, and this one is to keep it on an external one", m.ID), "leave out --nats-url and give --route-addr: all nodes keep one log in one place")
		case !outside && m.Route == "":
			return usage(fmt.Sprintf("node %s of the cluster keeps the log on an external NATS, and this one is to keep it itself", m.ID), "give this node the same --nats-url, without --route-addr")
		}
	}
	return nil
}

// externalNATS is a server that somebody else runs.
type externalNATS struct {
	*eventlog.Remote
	url string
}

// ClientURL names the servers without the node's credentials: agents have their own.
func (s *externalNATS) ClientURL() string { return withoutCredentials(s.url) }

// Wanted is true, for nobody here knows.
func (s *externalNATS) Wanted(string) bool { return true }

// EndCallers implements natsServer.
func (s *externalNATS) EndCallers() (int, error) { return 0, nil }

// HasCallers implements natsServer: nobody can know.
func (s *externalNATS) HasCallers() bool { return true }

// Holds is nothing: its servers are not the nodes'.
func (s *externalNATS) Holds(string) (uint64, bool) { return 0, false }

// RemoveServer does nothing: its servers are not the nodes'.
func (s *externalNATS) RemoveServer(context.Context, string) error { return nil }

func (s *externalNATS) Close(context.Context) error {
	s.Remote.Close()
	return nil
}

func (s *externalNATS) Fault() *memory.Error {
	if err := s.Proven(); err != nil {
		return memory.Errorf(memory.CodeUnavailable, "nothing is written to the log: %v", err).
			WithHint("%s; writes go on by themselves then", proofHint(err))
	}
	return nil
}
