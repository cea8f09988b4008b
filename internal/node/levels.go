package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/peer"
	"mneme/memory"
)

// While the nodes of a cluster are upgraded one by one, each may be put back to the program
// before. That ends with the feature level of the log: once it is raised, only programs that
// know it can go on. It is raised when every node knows more, and has for a while.

const (
	// raiseAfter is how long every node has known a level when it is raised.
	raiseAfter = time.Hour
	// askLevelsEvery is how often the node that leads asks the others what they know.
	askLevelsEvery = time.Minute
	// raiseFor bounds how long a raise that was asked for may take.
	raiseFor = 10 * time.Second
)

// levels raises the feature level of a shard, at the node that leads it.
type levels struct{ of *served }

// Work implements replica.Worker.
func (l levels) Work(ctx context.Context, w *ingest.Writer) {
	var since time.Time // when every node was first found to know more
	for sleep(ctx, askLevelsEvery) == nil {
		known := l.of.n.operator.knownLevel(ctx)
		switch {
		case known <= ingest.Level(w):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= raiseAfter:
			if err := l.raise(ctx, w, known); err != nil {
				l.of.cfg.Logger.Warn("the log's feature level could not be raised yet", "to", known, "err", err)
			}
		}
	}
}

func (l levels) raise(ctx context.Context, w *ingest.Writer, to uint16) error {
	was := ingest.Level(w)
	if to <= was {
		return nil
	}
	if _, err := ingest.RaiseLevel(ctx, w, to); err != nil {
		return err
	}
	l.of.cfg.Logger.Info("the log's feature level is raised: programs that do not know it cannot take this one's place any more", "from", was, "to", to)
	return nil
}

// allow raises the level for a first use of what needs it, where nothing has to wait for that: on
// a node on its own, which nobody else writes for, and on a log that this leader has begun and
// of which every node knows the level. Elsewhere the hour is waited for, and the use is refused.
func (l levels) allow(ctx context.Context, w *ingest.Writer, level uint16) error {
	if ingest.Level(w) >= level {
		return nil
	}
	if l.of.n.peers != nil {
		if began, err := ingest.BeganLog(w); err != nil || !began {
			return err
		}
	}
	known := l.of.n.operator.knownLevel(ctx)
	if known < level {
		return nil
	}
	return l.raise(ctx, w, known)
}

// knownLevel is the level that every node of the cluster knows; 0 where one did not say.
func (o *operator) knownLevel(ctx context.Context) uint16 {
	_, reports := o.everywhere(ctx)
	known := uint16(events.FeatureLevel)
	for _, r := range reports {
		known = min(known, r.Level)
	}
	return known
}

// Upgrade says how far an upgrade of the cluster's programs has come.
func (o *operator) Upgrade(ctx context.Context) (memory.UpgradeStatus, error) {
	out := memory.UpgradeStatus{Level: events.FeatureLevel, Known: events.FeatureLevel, Nodes: []memory.UpgradeNode{}}
	nodes, reports := o.everywhere(ctx)
	for i, n := range nodes {
		level := int(reports[i].Level)
		out.Known = min(out.Known, level)
		out.Nodes = append(out.Nodes, memory.UpgradeNode{ID: n.ID, Name: n.Name, Version: n.Version, Level: level, Reachable: n.Role != memory.RoleUnreachable})
	}
	for _, s := range o.n.served {
		at := s.state.Cursor()
		out.Level = min(out.Level, int(at.FeatureLevel()))
	}
	return out, nil
}

// raiseLevel is what a node asks of the one that leads a shard.
type raiseLevel struct {
	Shard uint16 `json:"shard"`
	Level uint16 `json:"level"`
}

// FinishUpgrade raises the feature level of all shards to what every node knows. It may be
// asked for again.
func (o *operator) FinishUpgrade(ctx context.Context) (memory.UpgradeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, raiseFor)
	defer cancel()
	before, err := o.Upgrade(ctx)
	if err != nil {
		return before, err
	}
	if lacking := behindLevel(before); lacking != "" {
		return before, memory.Errorf(memory.CodeConflict, "not every node is known to run a program of level %d: %s", events.FeatureLevel, lacking).
			WithHint("upgrade and start those nodes, or take away for ever those that are gone with memctl cluster remove; memctl upgrade check shows them")
	}
	for _, s := range o.n.served {
		if err := o.raiseAt(ctx, s, raiseLevel{s.id, uint16(before.Known)}); err != nil {
			return before, err
		}
	}
	return o.Upgrade(ctx)
}

// behindLevel names the nodes that do not say that they know this program's level.
func behindLevel(st memory.UpgradeStatus) string {
	var out []string
	for _, n := range st.Nodes {
		switch {
		case !n.Reachable:
			out = append(out, n.ID+" does not answer")
		case n.Level < events.FeatureLevel:
			out = append(out, fmt.Sprintf("%s knows %d", n.ID, n.Level))
		}
	}
	return strings.Join(out, ", ")
}

// raiseAt raises a shard's level at the node that leads it, and waits until this one has it.
func (o *operator) raiseAt(ctx context.Context, s *served, req raiseLevel) error {
	if o.n.peers != nil {
		to, self, known := s.leader()
		if !known {
			return memory.Errorf(memory.CodeUnavailable, "nobody is known to lead shard %d", s.id).WithHint("memctl cluster status shows which nodes answer; ask again when most of them do")
		}
		if !self {
			m, err := o.n.peers.cluster.Named(to.Node)
			if err != nil {
				return err
			}
			if err := o.ask(ctx, m, callRaise, req, &struct{}{}); err != nil {
				return err
			}
			return s.linear(ctx)
		}
	}
	w, err := s.replica.Writer()
	if err != nil {
		return err
	}
	return levels{s}.raise(ctx, w, req.Level)
}

// raiseHere answers another node, where this one leads the shard.
func (o *operator) raiseHere(ctx context.Context, _ peer.Identity, req raiseLevel) (struct{}, error) {
	if int(req.Shard) >= len(o.n.served) {
		return struct{}{}, memory.Errorf(memory.CodeNotFound, "there is no shard %d", req.Shard)
	}
	ctx, cancel := context.WithTimeout(ctx, raiseFor-statusWait)
	defer cancel()
	s := o.n.served[req.Shard]
	w, err := s.replica.Writer()
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, levels{s}.raise(ctx, w, req.Level)
}
