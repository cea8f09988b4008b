package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/internal/events"
	"mneme/memory"
)

// load is clients at work in one namespace, each at one node after the other by chance,
// as long as ctx lasts. Every operation is noted with what its client was told.
type load struct {
	*history
	tm    *team
	ns    string
	shard int // that holds ns
	seed  uint64
	began time.Time
	stop  context.CancelFunc
	work  sync.WaitGroup
}

const (
	// attempt bounds one request. A client goes to another node then.
	attempt = 3 * time.Second
	// pace is the mean pause of a client between two operations.
	pace      = 25 * time.Millisecond
	registers = 3
)

// startLoad makes the namespace with its registers and lets the clients begin.
func (tm *team) startLoad(ctx context.Context, ns string, seed uint64) *load {
	tm.t.Helper()
	l := &load{tm: tm, ns: ns, seed: seed, began: time.Now()}
	for {
		_, err := tm.nodes[0].client.CreateNamespace(ctx, memory.CreateNamespace{Name: ns})
		if err == nil || memory.CodeOf(err) == memory.CodeConflict {
			break
		}
		if ctx.Err() != nil {
			tm.t.Fatalf("create the namespace %s: %v", ns, err)
		}
		time.Sleep(pace)
	}
	var regs []*register
	for i := range registers {
		began := l.now()
		value := fmt.Sprintf("register %d", i)
		c := memory.Capture{Agent: "register", ID: fmt.Sprintf("register-%d", i), Text: value}
		result, o := l.captureOnce(ctx, tm.nodes[0], c)
		if o != done {
			tm.t.Fatalf("the register %d could not be made", i)
		}
		at, err := events.ParsePosition(result.Position)
		must(tm.t, err)
		l.shard = int(at.Shard)
		r := &register{id: result.RecordID, seen: map[registerState]string{}}
		r.note(0, began, l.now(), registerInput{kind: registerWrite, value: value}, registerOutput{state: registerState{version: 1}})
		regs = append(regs, r)
	}
	l.history = newHistory(regs)
	ctx, l.stop = context.WithCancel(ctx)
	clients := []func(context.Context, *rand.Rand, int){l.publishInOrder, l.publishInOrder, l.publishBatches, l.publishOnce, l.publishOverNATS}
	for range registers {
		clients = append(clients, l.useRegisters)
	}
	for i, c := range clients {
		l.work.Go(func() { c(ctx, rand.New(rand.NewPCG(seed, uint64(i))), i) })
	}
	return l
}

// end stops the clients and waits for them.
func (l *load) end() {
	l.stop()
	l.work.Wait()
}

func (l *load) now() time.Duration { return time.Since(l.began) }

// rest pauses a client; false: the load has ended.
func (l *load) rest(ctx context.Context, r *rand.Rand) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(r.Int64N(2 * int64(pace)))):
		return true
	}
}

func (l *load) node(r *rand.Rand) *process { return l.tm.nodes[r.IntN(len(l.tm.nodes))] }

// captureOnce is one attempt. It is carried to its end also when the load ends.
func (l *load) captureOnce(ctx context.Context, p *process, c memory.Capture) (memory.CaptureResult, outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	resp, err := p.client.Capture(ctx, l.ns, c, client.CaptureOptions{})
	if err != nil || len(resp.Results) != 1 {
		return memory.CaptureResult{}, outcomeOf(err)
	}
	return resp.Results[0], done
}

// publishInOrder captures one memory after the other, each again and again under its id
// until it is acknowledged; then it reads it at another node, at its position.
func (l *load) publishInOrder(ctx context.Context, r *rand.Rand, i int) {
	agent := fmt.Sprintf("agent-%d", i)
	for n := 0; l.rest(ctx, r); n++ {
		c := captured{agent: agent, id: fmt.Sprintf("%s-%d", agent, n), text: fmt.Sprintf("memory %d of %s", n, agent), n: n, outcome: unknown}
		for more := true; more; more = c.outcome != done && l.rest(ctx, r) {
			var o outcome
			c.result, o = l.captureOnce(ctx, l.node(r), memory.Capture{Agent: agent, ID: c.id, Text: c.text})
			l.count("capture", o)
			if o == done {
				c.outcome = done
			}
		}
		l.capture(c)
		if c.outcome == done && r.IntN(4) == 0 {
			l.readAt(ctx, l.node(r), c)
		}
	}
}

// readAt reads what was acknowledged at the position that came with it.
func (l *load) readAt(ctx context.Context, p *process, c captured) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	rec, err := p.client.Get(ctx, l.ns, c.result.RecordID, client.GetOptions{ReadOptions: client.ReadOptions{AtLeast: c.result.Position}})
	l.count("read", outcomeOf(err))
	if code := memory.CodeOf(err); code == memory.CodeNotFound || err == nil && rec.Text != c.text {
		l.tm.t.Errorf("%s read %s at its position %s: %q, %v", p.id, c.id, c.result.Position, rec.Text, err)
	}
}

// publishBatches captures several memories at once, acknowledged once they are in the log.
func (l *load) publishBatches(ctx context.Context, r *rand.Rand, i int) {
	agent := fmt.Sprintf("agent-%d", i)
	for n := 0; l.rest(ctx, r); {
		var cs []captured
		var items []memory.Capture
		for range 1 + r.IntN(5) {
			c := captured{agent: agent, id: fmt.Sprintf("%s-%d", agent, n), text: fmt.Sprintf("memory %d of %s", n, agent), n: n, outcome: unknown}
			cs, items = append(cs, c), append(items, memory.Capture{Agent: agent, ID: c.id, Text: c.text})
			n++
		}
		for more := true; more; more = cs[len(cs)-1].outcome != done && l.rest(ctx, r) {
			try, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
			resp, err := l.node(r).client.CaptureBatch(try, l.ns, items, client.CaptureOptions{Wait: memory.WaitAccepted})
			cancel()
			l.count("batch", outcomeOf(err))
			if err != nil {
				continue
			}
			for k, res := range resp.Results {
				if res.Error == nil {
					cs[k].result, cs[k].outcome = res, done
				}
			}
		}
		for _, c := range cs {
			l.capture(c)
		}
	}
}

// publishOnce sends each memory once: what is refused must not be there.
func (l *load) publishOnce(ctx context.Context, r *rand.Rand, i int) {
	agent := fmt.Sprintf("agent-%d", i)
	// This client does not send again what has no answer.
	for n := 0; l.rest(ctx, r); n++ {
		c := captured{agent: agent, id: fmt.Sprintf("%s-%d", agent, n), text: fmt.Sprintf("memory %d of %s", n, agent), n: n}
		c.result, c.outcome = l.captureOnce(ctx, l.node(r), memory.Capture{Agent: agent, ID: c.id, Text: c.text})
		l.count("single", c.outcome)
		l.capture(c)
	}
}

// publishOverNATS is publishInOrder over NATS.
func (l *load) publishOverNATS(ctx context.Context, r *rand.Rand, i int) {
	agent := fmt.Sprintf("agent-%d", i)
	var nc *nats.Conn
	defer func() {
		if nc != nil {
			nc.Close()
		}
	}()
	for n := 0; l.rest(ctx, r); n++ {
		c := captured{agent: agent, id: fmt.Sprintf("%s-%d", agent, n), text: fmt.Sprintf("memory %d of %s", n, agent), n: n, outcome: unknown}
		for more := true; more; more = c.outcome != done && l.rest(ctx, r) {
			if nc == nil {
				var err error
				if nc, err = nats.Connect(l.node(r).addrs.agents, nats.NoReconnect(), nats.Timeout(attempt)); err != nil {
					nc = nil
					continue
				}
			}
			msg := nats.NewMsg("mem.in." + l.ns + "." + agent + ".capture")
			msg.Header.Set("Nats-Msg-Id", c.id)
			msg.Data = []byte(c.text)
			answer, err := nc.RequestMsg(msg, attempt)
			var said struct {
				memory.CaptureResult
				Error *struct{ Description string }
			}
			if err != nil || json.Unmarshal(answer.Data, &said) != nil || said.Error != nil || said.RecordID == "" {
				l.count("nats", unknown)
				nc.Close()
				nc = nil
				continue
			}
			l.count("nats", done)
			c.result, c.outcome = said.CaptureResult, done
		}
		l.capture(c)
	}
}

// useRegisters reads, writes, swaps and forgets the registers.
func (l *load) useRegisters(ctx context.Context, r *rand.Rand, i int) {
	known := map[*register]registerState{}
	for n := 0; l.rest(ctx, r); n++ {
		reg := l.registers[r.IntN(len(l.registers))]
		p, value := l.node(r), fmt.Sprintf("value %d of client %d", n, i)
		switch k := r.IntN(100); {
		case k < 35:
			l.readRegister(ctx, p, i, reg, known)
		case k < 50:
			l.glance(ctx, p, reg)
		case k < 65:
			l.change(ctx, p, i, reg, registerInput{kind: registerWrite, value: value}, known)
		case k < 99 || n < 100:
			l.change(ctx, p, i, reg, registerInput{kind: registerSwap, base: max(1, known[reg].version), value: value}, known)
		default:
			l.change(ctx, p, i, reg, registerInput{kind: registerForget, base: max(1, known[reg].version)}, known)
		}
	}
}

// readRegister is a linearizable read.
func (l *load) readRegister(ctx context.Context, p *process, i int, reg *register, known map[*register]registerState) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	began := l.now()
	rec, err := p.client.Get(ctx, l.ns, reg.id, client.GetOptions{ReadOptions: client.ReadOptions{Consistency: memory.ConsistencyLinearizable}})
	gone := memory.CodeOf(err) == memory.CodeNotFound
	if err != nil && !gone {
		l.count("read", outcomeOf(err))
		return
	}
	l.count("read", done)
	at := registerState{version: rec.Version, value: rec.Text, gone: gone}
	reg.note(i, began, l.now(), registerInput{}, registerOutput{state: at})
	known[reg] = at
}

// glance is a local read. It may be old, but must have been true.
func (l *load) glance(ctx context.Context, p *process, reg *register) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	rec, err := p.client.Get(ctx, l.ns, reg.id, client.GetOptions{})
	l.count("read", outcomeOf(err))
	if err == nil {
		reg.mu.Lock()
		reg.seen[registerState{version: rec.Version, value: rec.Text}] = p.id
		reg.mu.Unlock()
	}
}

// change writes a register.
func (l *load) change(ctx context.Context, p *process, i int, reg *register, in registerInput, known map[*register]registerState) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	began := l.now()
	opts := client.WriteOptions{As: "register", IfVersion: in.base}
	var err error
	var out registerOutput
	if in.kind == registerForget {
		_, err = p.client.Forget(ctx, l.ns, reg.id, opts)
	} else {
		var resp memory.RevisionResponse
		resp, err = p.client.Revise(ctx, l.ns, reg.id, memory.Revision{Text: &in.value}, opts)
		out.state.version = resp.Version
	}
	out.outcome = outcomeOf(err)
	code := memory.CodeOf(err)
	// A revision that names no version may meet too many others.
	out.conflict = code == memory.CodeNotFound || code == memory.CodeConflict && in.base > 0
	l.count([]string{"read", "write", "swap", "forget"}[in.kind], out.outcome)
	switch {
	case out.conflict:
		out.outcome = done
		delete(known, reg)
	case out.outcome == refused:
		return
	case out.outcome == done:
		known[reg] = registerState{version: out.state.version, value: in.value}
	}
	reg.note(i, began, l.now(), in, out)
}

// summary says how operations ended.
func (h *history) summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var parts []string
	for _, what := range []string{"capture", "batch", "single", "nats", "read", "write", "swap", "forget"} {
		parts = append(parts, fmt.Sprintf("%s %d/%d/%d", what, h.counts[what+" done"], h.counts[what+" refused"], h.counts[what+" unknown"]))
	}
	return strings.Join(parts, ", ")
}
