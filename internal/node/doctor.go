package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"mneme/internal/embed"
	"mneme/internal/projections"
	"mneme/memory"
)

// doctor looks at a running node. It implements rest.Health.
type doctor struct{ n *Node }

// Ready says whether the node serves reads, and what holds otherwise.
func (d *doctor) Ready() (bool, []memory.Check) {
	ok := d.n.ready.Load() && !d.n.draining.Load()
	checks := []memory.Check{check("node", ok, "serving", "starting or shutting down", "")}
	if lacks := d.n.lacks(); lacks != nil && ok {
		ok = false
		checks[0] = check("node", ok, "", lacks.Message, lacks.Hint)
	}
	halted := d.n.replica.Group().Halted()
	checks = append(checks, check("shard 0", halted == nil, "applying", fmt.Sprint(halted), haltHint(halted)))
	if found := d.n.replica.Diverged(); found != nil {
		checks = append(checks, memory.Check{Name: "log", State: "warn", Detail: found.Error() + "; writes are stopped, reads are up", Hint: found.Hint})
	} else {
		checks = append(checks, memory.Check{Name: "log", State: "ok", Detail: "log and state agree"})
	}
	if err := d.n.refuse(); err != nil {
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

// Doctor looks at everything that can be wrong and says what to do.
func (d *doctor) Doctor(ctx context.Context) (memory.DoctorReport, error) {
	_, checks := d.Ready()
	checks = append(checks, d.checkSpace(), d.n.doctorKeys(d.n.state), d.checkVectors(), d.checkSocket(), d.checkDir(), d.checkVoid())
	checks = append(checks, d.checkWholeLog(ctx))
	checks = append(checks, d.checkCertificates()...)
	if err := d.n.state.Fault(); err != nil {
		checks = append(checks, memory.Check{Name: "store", State: "fail", Detail: err.Error(), Hint: d.n.faultHint(err)})
	}
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
func (d *doctor) checkWholeLog(ctx context.Context) memory.Check {
	const name = "log against state"
	if found := d.n.replica.Diverged(); found != nil {
		return memory.Check{Name: name, State: "fail", Detail: found.Error(), Hint: found.Hint}
	}
	if info, err := d.n.stream.Info(ctx); err != nil || info.Bytes > doctorReads {
		err = notNow(errors.Join(err, d.n.replica.CheckLog(ctx)))
		if memory.CodeOf(err) == memory.CodeUnavailable {
			return memory.Check{Name: name, State: "warn", Detail: err.Error(), Hint: memory.AsError(err).Hint}
		}
		read := "the whole log has not been read since the start"
		if at := d.n.upkeep.scrub.Status().FinishedAt; !at.IsZero() {
			read = "the whole log was read " + at.Format(time.RFC3339)
		}
		return check(name, err == nil, "the last frames are the same; "+read, fmt.Sprint(err), "memctl log verify")
	}
	r, err := d.n.upkeep.VerifyLog(ctx, nil)
	if err != nil {
		return memory.Check{Name: name, State: "warn", Detail: err.Error(), Hint: cmp.Or(memory.AsError(err).Hint, "memctl log verify")}
	}
	s := r.Shards[0]
	return check(name, s.OK, fmt.Sprintf("%d frames agree", s.Frames), problems(s), s.Hint)
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

// doctorKeys compares the keyring with the state; nil is a state that does not open.
func (c *core) doctorKeys(state *projections.State) memory.Check {
	out := memory.Check{Name: "keys", State: "ok", Detail: "keyring and master key are there"}
	if state == nil {
		return out
	}
	if err := c.checkKeys(state); err != nil {
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
func (d *doctor) checkVoid() memory.Check {
	c := memory.Check{Name: "foreign messages", State: "ok", Detail: "none in the log since the start"}
	if v := d.n.followers.voids.Load(); v > 0 {
		c.State, c.Detail, c.Hint = "warn", fmt.Sprintf("%d messages in the log since the start are no frames of its writer; they change nothing", v), voidHint
	}
	return c
}

func (d *doctor) checkVectors() memory.Check {
	s := d.n.views.VectorStatus()
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
	v := d.n.state.View()
	var err error
	var out []memory.Check
	for _, ns := range v.Namespaces() {
		s, serr := d.n.settings.Of(v, ns)
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
		out = append(out, memory.Check{Name: "embedders", State: "fail", Detail: err.Error()})
	}
	if len(out) == 0 {
		out = append(out, memory.Check{Name: "embedder", State: "ok", Detail: "built in, runs in this process"})
		for _, s := range embed.Detect(ctx, "", embed.Options{Logger: d.n.cfg.Logger}) {
			out = append(out, memory.Check{Name: "ollama", State: "ok", Detail: "an Ollama is running here; nothing is sent to it", Hint: "a namespace can choose it: " + s.Command()})
		}
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
