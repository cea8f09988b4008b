package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/embed"
	"mneme/internal/projections"
	"mneme/memory"
)

// Status describes the node and its shard.
func (n *Node) Status(ctx context.Context) (memory.Status, error) {
	shard, err := n.shardStatus(ctx)
	if err != nil {
		return memory.Status{}, err
	}
	return memory.Status{
		ClusterID: n.dir.node.ClusterID,
		Nodes:     []memory.NodeStatus{{ID: n.dir.node.NodeID, Role: n.role(), Address: n.HTTPAddr(), Version: n.cfg.Version}},
		Shards:    []memory.ShardStatus{shard},
		Embedder:  n.defaultEmbedder(ctx),
		Vector:    n.views.VectorStatus(),
		Auth:      n.cfg.Auth,

		AdminSocket: n.socket,

		Version: n.cfg.Version,
		Dev:     n.cfg.Dev,
		UptimeS: time.Since(n.started).Seconds(),
	}, nil
}

// role says whether this node takes writes.
func (n *Node) role() string {
	if n.replica.Leads() {
		return "leader"
	}
	return "follower"
}

func (n *Node) shardStatus(ctx context.Context) (memory.ShardStatus, error) {
	v := n.state.View()
	defer v.Close()
	hash, err := v.Hash()
	if err != nil {
		return memory.ShardStatus{}, err
	}
	records, pending, err := v.Totals()
	if err != nil {
		return memory.ShardStatus{}, err
	}
	c := v.Cursor()
	leader, _ := n.replica.Group().Leader()
	out := memory.ShardStatus{ID: shard0, Leader: leader, Epoch: c.Epoch, Position: c.Position().String(), StateHash: hash.String(),
		PipelineVersion: projections.PipelineVersion, Records: records, PendingVectors: pending}
	out.Erasing = n.eraser.Status()
	if err := n.replica.Group().Halted(); err != nil {
		out.Halted = err.Error()
	}
	if info, err := n.stream.Info(ctx); err == nil {
		out.Log = memory.LogStatus{First: info.First, Last: info.Last, Lost: uint64(len(info.Lost))}
	}
	out.Log.Scrub = n.scrub.Status()
	out.Log.Void = n.voids.Load()
	if d := n.replica.Diverged(); d != nil {
		out.Log.Diverged = d.Error()
	}
	return out, nil
}

// defaultEmbedder describes what new namespaces get. It never asks a server.
func (n *Node) defaultEmbedder(ctx context.Context) memory.EmbedderInfo {
	cfg := n.cfg.Embedder
	if !embed.IsLocal(cfg.Provider) {
		return memory.EmbedderInfo{Provider: cfg.Provider, Model: cfg.Model, Dimensions: cfg.Dimensions}
	}
	s, err := n.embedders.choose(ctx, cfg)
	if err != nil {
		return memory.EmbedderInfo{Provider: cfg.Provider}
	}
	return memory.EmbedderInfo{Provider: s.Provider, Model: s.Model, Dimensions: s.Dimensions, Space: s.ID()}
}

// Rejected lists messages that were refused before the log.
func (n *Node) Rejected(_ context.Context, limit int) (memory.RejectedList, error) {
	if limit <= 0 {
		limit = 100
	}
	return n.rejections.List(limit), nil
}

// Reject counts and lists a refused message.
func (n *Node) Reject(m memory.Rejected) { n.rejections.Reject(m) }

// Quarantine lists events that are in the log but could not be understood.
func (n *Node) Quarantine(context.Context) (memory.QuarantineList, error) {
	v := n.state.View()
	defer v.Close()
	out := memory.QuarantineList{Quarantined: []memory.Quarantined{}}
	c := v.Cursor()
	err := v.Quarantined(func(at projections.Ref, code string) error {
		p := c.Position()
		p.Seq, p.Index = at.Seq, at.Index
		out.Quarantined = append(out.Quarantined, memory.Quarantined{Position: p.String(), Code: code,
			Detail: "the event's bytes are intact in the log but could not be opened or decoded"})
		return nil
	})
	return out, err
}

// Version is the program's version.
func (n *Node) Version() string { return n.cfg.Version }

// Ready says whether the node serves reads, and what holds otherwise.
func (n *Node) Ready() (bool, []memory.Check) {
	ok := n.ready.Load() && !n.draining.Load()
	checks := []memory.Check{check("node", ok, "serving", "starting or shutting down", "")}
	halted := n.replica.Group().Halted()
	checks = append(checks, check("shard 0", halted == nil, "applying", fmt.Sprint(halted), "see the node's log"))
	if d := n.replica.Diverged(); d != nil {
		checks = append(checks, memory.Check{Name: "log", State: "warn", Detail: d.Error() + "; writes are stopped, reads are up", Hint: d.Hint})
	} else {
		checks = append(checks, memory.Check{Name: "log", State: "ok", Detail: "log and state agree"})
	}
	if err := n.refuse(); err != nil {
		checks = append(checks, memory.Check{Name: "writes", State: "warn", Detail: err.Message, Hint: err.Hint})
	}
	return ok, checks
}

func check(name string, ok bool, good, bad, hint string) memory.Check {
	if ok {
		return memory.Check{Name: name, State: "ok", Detail: good}
	}
	return memory.Check{Name: name, State: "fail", Detail: bad, Hint: hint}
}

// AcceptClock has writing go on with the clock as it stands.
func (n *Node) AcceptClock(context.Context) (memory.ClockReport, error) {
	w, err := n.replica.Writer()
	if err != nil {
		return memory.ClockReport{}, err
	}
	w.AcceptClock()
	now := n.cfg.Now().UTC()
	n.cfg.Logger.Warn("an operator accepted the clock", "now", now)
	return memory.ClockReport{Now: now}, nil
}

// Doctor looks at everything that can be wrong and says what to do.
func (n *Node) Doctor(ctx context.Context) (memory.DoctorReport, error) {
	_, checks := n.Ready()
	checks = append(checks, n.checkSpace(), n.checkKeys(), n.checkVectors(), n.checkSocket(), n.checkVoid())
	checks = append(checks, n.checkWholeLog(ctx))
	if err := n.state.Fault(); err != nil {
		checks = append(checks, memory.Check{Name: "store", State: "fail", Detail: err.Error(), Hint: "check the disk, then restart the node"})
	}
	checks = append(checks, n.checkEmbedder(ctx)...)
	checks = append(checks, n.checkSwitches(ctx)...)
	if n.cfg.Auth == "off" {
		checks = append(checks, memory.Check{Name: "auth", State: "ok", Detail: "off: whoever reaches the address may read and write", Hint: "--auth token asks for the operator token"})
	}
	return report(checks), nil
}

// doctorReads is how large a log doctor reads as a whole: about a second.
const doctorReads = 256 << 20

// checkWholeLog reads the log against the state; of a large one it says when
// the scrub last did.
func (n *Node) checkWholeLog(ctx context.Context) memory.Check {
	const name = "log against state"
	if d := n.replica.Diverged(); d != nil {
		return memory.Check{Name: name, State: "fail", Detail: d.Error(), Hint: d.Hint}
	}
	if info, err := n.stream.Info(ctx); err != nil || info.Bytes > doctorReads {
		err = errors.Join(err, n.replica.CheckLog(ctx))
		read := "the whole log has not been read since the start"
		if at := n.scrub.Status().FinishedAt; !at.IsZero() {
			read = "the whole log was read " + at.Format(time.RFC3339)
		}
		return check(name, err == nil, "the last frames are the same; "+read, fmt.Sprint(err), "memctl log verify")
	}
	r, err := n.VerifyLog(ctx, nil)
	if err != nil {
		return memory.Check{Name: name, State: "warn", Detail: err.Error(), Hint: "memctl log verify"}
	}
	s := r.Shards[0]
	return check(name, s.OK, fmt.Sprintf("%d frames agree", s.Frames), fmt.Sprint(s.Problems), s.Hint)
}

func report(checks []memory.Check) memory.DoctorReport {
	out := memory.DoctorReport{Checks: checks, OK: true}
	for _, c := range checks {
		out.OK = out.OK && c.State != "fail"
	}
	return out
}

func (n *Node) checkSpace() memory.Check {
	free, ok := n.space.available()
	if !ok {
		return memory.Check{Name: "disk", State: "warn", Detail: "free space cannot be read"}
	}
	c := memory.Check{Name: "disk", State: "ok", Detail: fmt.Sprintf("%d MiB free", free>>20)}
	if free < n.space.reserve {
		c.State, c.Hint = "fail", "free some space: writes are refused"
	} else if free < 4*n.space.reserve {
		c.State, c.Hint = "warn", "little space is left"
	}
	return c
}

// checkKeys opens one event of each namespace.
func (n *Node) checkKeys() memory.Check {
	v := n.state.View()
	defer v.Close()
	list, err := v.Namespaces()
	for _, ns := range list {
		if err == nil {
			_, err = n.keys.DataKey(ns.ID, "")
		}
	}
	return check("keys", err == nil, fmt.Sprintf("keys of %d namespaces are there", len(list)), fmt.Sprint(err), "put keys/ back from a backup")
}

// checkVoid alarms when somebody else wrote into the log.
func (n *Node) checkVoid() memory.Check {
	c := memory.Check{Name: "foreign messages", State: "ok", Detail: "none in the log since the start"}
	if v := n.voids.Load(); v > 0 {
		c.State, c.Detail, c.Hint = "warn", fmt.Sprintf("%d messages in the log since the start are no frames of its writer; they change nothing", v), voidHint
	}
	return c
}

func (n *Node) checkVectors() memory.Check {
	s := n.views.VectorStatus()
	c := memory.Check{Name: "vectors", State: "ok", Detail: fmt.Sprintf("engine %s, recall guard %s", s.Engine, s.RecallGuard.State)}
	if s.RecallGuard.State == "tripped" {
		c.State = "warn"
		c.Detail = fmt.Sprintf("engine %s found only %.2f of the nearest vectors; searches scan exactly instead", s.Engine, s.RecallGuard.Recall)
		c.Hint = "use --vector-engine mneme"
	}
	return c
}

// checkEmbedder asks external embedders, and mentions an Ollama that is there.
func (n *Node) checkEmbedder(ctx context.Context) []memory.Check {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	v := n.state.View()
	list, err := v.Namespaces()
	var out []memory.Check
	for _, ns := range list {
		s, serr := n.book.Of(v, ns)
		if err = errors.Join(err, serr); serr != nil || !s.HasVectors() || embed.IsLocal(s.Space.Provider) {
			continue
		}
		e, cerr := n.embedders.For(ctx, s.Space)
		if cerr == nil {
			_, cerr = e.Embed(ctx, embed.Query, []string{"ping"})
		}
		c := check("embedder of "+ns.Name, cerr == nil, s.Space.String(), fmt.Sprint(cerr), "memories are found by text meanwhile; their vectors follow")
		if cerr != nil {
			c.State = "warn"
		}
		out = append(out, c)
	}
	if err = errors.Join(err, v.Close()); err != nil {
		out = append(out, memory.Check{Name: "embedders", State: "fail", Detail: err.Error()})
	}
	if len(out) == 0 {
		out = append(out, memory.Check{Name: "embedder", State: "ok", Detail: "built in, runs in this process"})
		for _, s := range embed.Detect(ctx, "", embed.Options{Logger: n.cfg.Logger}) {
			out = append(out, memory.Check{Name: "ollama", State: "ok", Detail: "an Ollama is running here; nothing is sent to it", Hint: "a namespace can choose it: " + s.Command()})
		}
	}
	return out
}
