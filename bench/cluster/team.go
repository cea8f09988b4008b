package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/client"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// patience bounds what is waited for.
const patience = 2 * time.Minute

// team is a cluster of processes.
type team struct {
	b       *bench
	certs   string
	members []*member
	release func()
}

// member is one node of a team: its name, its addresses and, while it runs, its
// process.
type member struct {
	team   *team
	id     string
	dir    string
	addr   struct{ http, nats, peer, route string }
	node   *proc.Node // nil while it does not run
	client *client.Client
	done   func()
}

// withTeam runs do with a cluster and ends its nodes afterwards.
func (b *bench) withTeam(ctx context.Context, do func(context.Context, *team) error) (err error) {
	addrs, release, err := testaddr.Hold(4 * nodes)
	if err != nil {
		return err
	}
	t := &team{b: b, certs: b.newDir(), release: release}
	dir := b.newDir()
	defer func() { err = errors.Join(err, t.end(), os.RemoveAll(dir), os.RemoveAll(t.certs)) }()
	opt := devca.Options{Dir: t.certs, Valid: 24 * time.Hour}
	for i := range nodes {
		m := &member{team: t, id: fmt.Sprintf("n%d", i+1)}
		m.dir = filepath.Join(dir, m.id)
		m.addr.http, m.addr.nats, m.addr.peer, m.addr.route = addrs[4*i], addrs[4*i+1], addrs[4*i+2], addrs[4*i+3]
		if m.client, m.done, err = load.NewClient("http://" + m.addr.http); err != nil {
			return err
		}
		opt.Nodes = append(opt.Nodes, m.id)
		t.members = append(t.members, m)
	}
	if _, err := devca.Make(opt); err != nil {
		return err
	}
	var wg sync.WaitGroup
	failed := make([]error, nodes)
	for i, m := range t.members {
		wg.Go(func() { failed[i] = m.start(ctx) })
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := t.settled(ctx); err != nil {
		return err
	}
	return do(ctx, t)
}

// start starts the member's process and returns once it is ready.
func (m *member) start(ctx context.Context) error {
	var join []string
	for _, o := range m.team.members {
		join = append(join, o.addr.peer)
	}
	node, err := proc.Start(ctx, m.team.b.bin, m.dir, "--http-addr", m.addr.http, "--nats-addr", m.addr.nats, "--node-id", m.id,
		"--peer-addr", m.addr.peer, "--route-addr", m.addr.route, "--join", strings.Join(join, ","),
		"--bootstrap-expect", fmt.Sprint(nodes), "--peer-certs", m.team.certs)
	if err != nil {
		return fmt.Errorf("%s: %w", m.id, err)
	}
	m.node = node
	return nil
}

// kill ends the member's process by force.
func (m *member) kill() error {
	if m.node == nil {
		return nil
	}
	err := m.node.Kill()
	m.node = nil
	return err
}

// end kills all that run.
func (t *team) end() error {
	var errs []error
	for _, m := range t.members {
		errs = append(errs, m.kill())
		if m.done != nil {
			m.done()
		}
	}
	t.release()
	return errors.Join(errs...)
}

// leader is the member that leads the shard, as all that run agree.
func (t *team) leader(ctx context.Context) (*member, error) {
	var lead *member
	err := until(ctx, "a leader", func() error {
		lead = nil
		for _, m := range t.members {
			if m.node == nil {
				continue
			}
			st, err := m.client.Status(ctx)
			if err != nil {
				return errors.Join(err, m.node.Ended())
			}
			for _, o := range t.members {
				if o.node != nil && o.id == st.Shards[0].Leader {
					if lead != nil && lead != o {
						return errors.New("the nodes do not agree who leads")
					}
					lead = o
				}
			}
		}
		if lead == nil {
			return errors.New("nobody leads")
		}
		return nil
	})
	return lead, err
}

// others are the members that run, without one.
func (t *team) others(without *member) (out []*member) {
	for _, m := range t.members {
		if m != without && m.node != nil {
			out = append(out, m)
		}
	}
	return out
}

// all are the addresses of all members, as a client takes them.
func (t *team) all() string {
	var out []string
	for _, m := range t.members {
		out = append(out, "http://"+m.addr.http)
	}
	return strings.Join(out, ",")
}

// settled waits until every member is a voter with everything, log and state.
func (t *team) settled(ctx context.Context) error {
	return until(ctx, "all nodes with everything", func() error {
		for _, m := range t.members {
			if err := m.node.Ended(); err != nil {
				return fmt.Errorf("%s: %w", m.id, err)
			}
		}
		st, err := t.members[0].client.Cluster().Status(ctx)
		if err != nil {
			return err
		}
		return whole(st, nodes)
	})
}

// quiet waits until no member works on what came before: vectors are indexed, and tables
// compacted, in the background.
func (t *team) quiet(ctx context.Context) error {
	for _, m := range t.members {
		if _, err := m.node.Quiet(ctx, 0.1, patience); err != nil {
			return err
		}
	}
	return nil
}

// whole says what keeps a cluster from being n voters with everything.
func whole(st memory.ClusterStatus, n int) error {
	voters := 0
	for _, node := range st.Nodes {
		if node.Role == memory.RoleVoter && node.Reachable {
			voters++
		}
	}
	if voters < n {
		return fmt.Errorf("%d of %d nodes are voters that answer", voters, n)
	}
	replicas := st.Shards[0].Replicas
	if len(replicas) < n {
		return fmt.Errorf("%d of %d replicas answer", len(replicas), n)
	}
	last := uint64(0)
	for _, r := range replicas {
		last = max(last, r.Log.Last)
	}
	for _, r := range replicas {
		if r.Behind > 0 || !r.Log.Current || r.Log.Last < last {
			return fmt.Errorf("%s is behind: %+v", r.Node, r)
		}
	}
	return nil
}

// until tries f until it succeeds.
func until(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %v for %s", patience, what))
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
