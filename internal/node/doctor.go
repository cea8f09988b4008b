package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"mneme/internal/embed"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/memory"
)

// doctor looks at a running node. It implements rest.Health.
type doctor struct{ n *Node }

// Ready says whether the node serves reads, and what holds otherwise.
func (d *doctor) Ready() (bool, []memory.Check) {
	ok := d.n.ready.Load() && !d.n.draining.Load()
	checks := []memory.Check{check("node", ok, "serving", "starting or shutting down", "")}
	for _, s := range d.n.served {
		if lacks := s.lacks(); lacks != nil && ok {
			ok = false
			checks[0] = check("node", ok, "", lacks.Message, lacks.Hint)
		}
		checks = append(checks, s.ready()...)
	}
	return ok, checks
}

// ready says whether the shard applies and takes writes.
func (s *served) ready() []memory.Check {
	halted := s.replica.Group().Halted()
	checks := []memory.Check{check(fmt.Sprintf("shard %d", s.id), halted == nil, "applying", fmt.Sprint(halted), haltHint(halted))}
	if found := s.replica.Diverged(); found != nil {
		checks = append(checks, memory.Check{Name: s.named("log"), State: "warn", Detail: found.Error() + "; writes are stopped, reads are up", Hint: found.Hint})
	} else {
		checks = append(checks, memory.Check{Name: s.named("log"), State: "ok", Detail: "log and state agree"})
	}
	if err := s.refuse(); err != nil {
		checks = append(checks, memory.Check{Name: s.named("writes"), State: "warn", Detail: err.Message, Hint: err.Hint})
	}
	return checks
}

// named is the name of a check of the shard.
func (s *shard) named(what string) string {
	if len(s.shards) == 1 {
		return what
	}
	return fmt.Sprintf("%s of shard %d", what, s.id)
}

func check(name string, ok bool, good, bad, hint string) memory.Check {
	if ok {
		return memory.Check{Name: name, State: "ok", Detail: good}
	}
	return memory.Check{Name: name, State: "fail", Detail: bad, Hint: hint}
}

// Doctor looks at everything that can be wrong and says what to do.
func (d *doctor) Doctor(ctx context.Context) (memory.DoctorReport, error) {
	_, checks := d.Ready()
	checks = slices.Concat(checks, d.Led(ctx), d.checkNodes(ctx), d.checkCopies(ctx), d.checkOwnCopy(), d.checkServers(ctx), d.checkClock())
	checks = append(checks, d.checkSpace(), d.checkVectors(), d.checkSocket(), d.checkDir(), d.checkMaster())
	for _, s := range d.n.served {
		checks = append(checks, s.doctorKeys(s.state), s.checkVoid(), d.checkWholeLog(ctx, s))
		if err := s.state.Fault(); err != nil {
			checks = append(checks, memory.Check{Name: s.named("store"), State: "fail", Detail: err.Error(), Hint: s.faultHint(err)})
		}
	}
	checks = append(checks, d.checkCertificates()...)
	checks = append(checks, d.checkEmbedder(ctx)...)
	checks = append(checks, d.checkSwitches(ctx)...)
	if d.n.cfg.Auth == "off" {
		checks = append(checks, memory.Check{Name: "auth", State: "ok", Detail: "off: whoever reaches the address may read and write", Hint: "--auth token asks for the operator token"})
	}
	return report(checks), nil
}

// doctorReads is how large a log doctor reads as a whole: about a second.
const doctorReads = 256 << 20

// checkWholeLog reads the log against the state; of a large one it says when
// the scrub last did.
func (d *doctor) checkWholeLog(ctx context.Context, s *served) memory.Check {
	name := s.named("log against state")
	if found := s.replica.Diverged(); found != nil {
		return memory.Check{Name: name, State: "fail", Detail: found.Error(), Hint: found.Hint}
	}
	if info, err := s.stream.Info(ctx); err != nil || info.Bytes > doctorReads {
		if err == nil {
			err = s.replica.CheckLog(ctx)
		}
		err = notNow(err)
		if memory.CodeOf(err) == memory.CodeUnavailable {
			return memory.Check{Name: name, State: "warn", Detail: err.Error(), Hint: memory.AsError(err).Hint}
		}
		read := "the whole log has not been read since the start"
		if at := s.scrub.Status().FinishedAt; !at.IsZero() {
			read = "the whole log was read " + at.Format(time.RFC3339)
		}
		return check(name, err == nil, "the last frames are the same; "+read, fmt.Sprint(err), "memctl log verify")
	}
	var r memory.VerifyShard
	err := d.n.upkeep.exclusive(ctx, func() (err error) {
		r, err = s.verify(ctx, nil)
		return err
	})
	if err != nil {
		return memory.Check{Name: name, State: "warn", Detail: err.Error(), Hint: cmp.Or(memory.AsError(err).Hint, "memctl log verify")}
	}
	return check(name, r.OK, fmt.Sprintf("%d frames agree", r.Frames), problems(r), r.Hint)
}

func report(checks []memory.Check) memory.DoctorReport {
	out := memory.DoctorReport{Checks: checks, OK: true}
	for _, c := range checks {
		out.OK = out.OK && c.State != "fail"
	}
	return out
}

func (d *doctor) checkSpace() memory.Check {
	free, ok := d.n.space.available()
	if !ok {
		return memory.Check{Name: "disk", State: "warn", Detail: "free space cannot be read"}
	}
	c := memory.Check{Name: "disk", State: "ok", Detail: fmt.Sprintf("%d MiB free", free>>20)}
	if free < d.n.space.reserve {
		c.State, c.Hint = "fail", "free some space: writes are refused"
	} else if free < 4*d.n.space.reserve {
		c.State, c.Hint = "warn", "little space is left"
	}
	return c
}

// checkMaster looks whether the next start finds the master key: a node that runs does not miss it.
func (d *doctor) checkMaster() memory.Check {
	err := keyring.CheckMaster(d.n.keys)
	return check("master key", err == nil, "where the next start looks for it", fmt.Sprint(err),
		"do not stop this node, which has the key in memory: memctl backup --to PLACE --keys-to PLACE, each a new one, writes the key too, and memctl restore gives it back")
}

// doctorKeys compares the keyring with the state; nil is a state that does not open.
func (s *shard) doctorKeys(state *projections.State) memory.Check {
	out := memory.Check{Name: s.named("keys"), State: "ok", Detail: "keyring and master key are there"}
	if state == nil {
		return out
	}
	if err := s.checkKeys(state); err != nil {
		e := memory.AsError(publicError(err))
		return memory.Check{Name: out.Name, State: "fail", Detail: e.Message, Hint: e.Hint}
	}
	v := state.View()
	out.Detail = fmt.Sprintf("keys of %d namespaces are there", len(v.Namespaces()))
	if err := v.Close(); err != nil {
		return memory.Check{Name: out.Name, State: "fail", Detail: err.Error()}
	}
	return out
}

// checkVoid alarms when somebody else wrote into the log.
func (s *served) checkVoid() memory.Check {
	c := memory.Check{Name: s.named("foreign messages"), State: "ok", Detail: "none in the log since the start"}
	if v := s.followers.voids.Load(); v > 0 {
		c.State, c.Detail, c.Hint = "warn", fmt.Sprintf("%d messages in the log since the start are no frames of its writer; they change nothing", v), voidHint
	}
	return c
}

func (d *doctor) checkVectors() memory.Check {
	s := d.n.vectorStatus()
	c := memory.Check{Name: "vectors", State: "ok", Detail: fmt.Sprintf("engine %s, recall guard %s", s.Engine, s.RecallGuard.State)}
	if s.RecallGuard.State == "tripped" {
		c.State = "warn"
		c.Detail = fmt.Sprintf("engine %s found only %.2f of the nearest vectors; searches scan exactly instead", s.Engine, s.RecallGuard.Recall)
		c.Hint = "use --vector-engine mneme"
	}
	return c
}

// checkEmbedder asks external embedders, and mentions an Ollama that is there.
func (d *doctor) checkEmbedder(ctx context.Context) []memory.Check {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var out []memory.Check
	for _, s := range d.n.served {
		out = append(out, d.checkEmbedders(ctx, s)...)
	}
	if len(out) == 0 {
		out = append(out, memory.Check{Name: "embedder", State: "ok", Detail: "built in, runs in this process"})
		for _, s := range embed.Detect(ctx, "", embed.Options{Logger: d.n.cfg.Logger}) {
			out = append(out, memory.Check{Name: "ollama", State: "ok", Detail: "an Ollama is running here; nothing is sent to it", Hint: "a namespace can choose it: " + s.Command()})
		}
	}
	return out
}

// checkEmbedders asks the external embedders of a shard's namespaces.
func (d *doctor) checkEmbedders(ctx context.Context, of *served) (out []memory.Check) {
	v := of.state.View()
	var err error
	for _, ns := range v.Namespaces() {
		s, serr := of.settings.Of(v, ns)
		if err = errors.Join(err, serr); serr != nil || !s.HasVectors() || embed.IsBuiltin(s.Space.Provider) {
			continue
		}
		e, cerr := d.n.embedders.For(ctx, s.Space)
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
		out = append(out, memory.Check{Name: of.named("embedders"), State: "fail", Detail: err.Error()})
	}
	return out
}

// checkSocket tells doctor how the operator reaches the node.
func (d *doctor) checkSocket() memory.Check {
	if d.n.front.trouble != "" {
		return memory.Check{Name: "admin socket", State: "warn", Detail: d.n.front.trouble, Hint: socketHint}
	}
	info, err := os.Lstat(d.n.front.socket)
	if err == nil && info.Mode().Perm()&0o077 != 0 && filePermissions {
		err = fmt.Errorf("its mode is %04o: others can open it", info.Mode().Perm())
	}
	return check("admin socket", err == nil, d.n.front.socket, fmt.Sprint(err), "restart the node")
}
