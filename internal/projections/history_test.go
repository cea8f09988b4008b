package projections_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// history is a random log with everything in it that may happen to a shard.
type history struct {
	*world
	rnd  *rand.Rand
	bad  map[events.ID]bool
	ns   []events.ID // ever made
	recs []made
	sent []made // with a client id, to be sent again

	at     projections.Ref                 // of the event that is made next; zero = of none that counts
	things map[events.ID][]events.GraphRef // in the graphs of namespaces, some of which are gone
}

type made struct {
	header  events.Header
	content events.Content
}

// newHistory makes about n events. The same seed gives the same bytes.
func newHistory(t testing.TB, seed uint64, n int) *history {
	h := &history{world: newWorld(t, byte(seed)), rnd: rand.New(rand.NewPCG(seed, 2)), bad: map[events.ID]bool{}, things: map[events.ID][]events.GraphRef{}}
	h.frame(h.began())
	for _, space := range []embed.Space{builtinSpace, externalSpace, {}} {
		h.add(h.made(fmt.Sprintf("ns-%d", len(h.ns)), space))
	}
	for made := 0; made < n; {
		switch h.rnd.IntN(60) {
		case 0:
			h.void()
		case 1:
			h.term++
			h.frame(h.began())
		case 2:
			h.epoch++
			h.frame(h.seal(events.Header{Type: events.TypeEpochBegan}, nil, nil))
		default:
			made += h.batch()
		}
	}
	return h
}

func (h *history) add(e ...events.Envelope) { h.frame(e...) }

func (h *history) made(name string, space embed.Space) events.Envelope {
	e := h.created(name, space)
	h.ns = append(h.ns, e.Namespace)
	return e
}

// batch puts a frame of several events at the end of the log.
func (h *history) batch() int {
	f := h.header()
	for range 1 + h.rnd.IntN(6) {
		if h.rnd.IntN(80) == 0 {
			f.Events = append(f.Events, []byte("\x00not an event"))
			continue
		}
		h.at = projections.Ref{Seq: h.seq() + 1, Index: uint32(len(f.Events))}
		e := h.event()
		f.Events = append(f.Events, e.Encode())
	}
	if n := int(h.seq()); n%5 == 0 { // drawn by nobody, so that the histories of the seeds stay what they are
		header := events.Header{Namespace: h.ns[max(0, len(h.ns)-1-n/5%4)], Scope: events.Scope(1 + n/5%2), Agent: fmt.Sprintf("agent-%d", n%3)}
		e := h.reading(header, events.Given{Record: events.ID{1}, Version: 2})
		f.Events = append(f.Events, e.Encode())
	}
	h.message(f.Encode())
	return len(f.Events)
}

// void puts something in the log that does not continue it.
func (h *history) void() {
	h.at = projections.Ref{}
	switch h.rnd.IntN(5) {
	case 0:
		h.message([]byte("hello"))
	case 1:
		h.message(nil)
	case 2:
		h.message(h.foreign(h.event()))
	case 3: // a deposed leader's
		h.term--
		e := h.event()
		f := h.header()
		f.Events = [][]byte{e.Encode()}
		h.term++
		if b := f.Encode(); h.term > 1 {
			h.message(b)
		}
	default: // an epoch that nobody opened
		e := h.event()
		f := h.header()
		f.Epoch++
		f.Events = [][]byte{e.Encode()}
		h.message(f.Encode())
	}
}

func (h *history) event() events.Envelope {
	pick := h.rnd.IntN(100)
	switch {
	case pick < 1:
		return h.deleted(h.ns[max(0, len(h.ns)-1-h.rnd.IntN(6))])
	case pick < 3:
		spaces := []embed.Space{builtinSpace, externalSpace, {}}
		return h.made(fmt.Sprintf("ns-%d", h.rnd.IntN(4)), spaces[h.rnd.IntN(3)])
	case pick < 5:
		return h.changed(h.ns[h.rnd.IntN(len(h.ns))], map[string]string{settings.MinScore: "0.5"}, settings.VectorWeight)
	case pick < 10:
		typ := []events.Type{events.TypeSpaceBuilding, events.TypeSpaceSwitched, events.TypeSpaceDropped}[h.rnd.IntN(3)]
		return h.spaceEvent(typ, h.ns[max(0, len(h.ns)-1-h.rnd.IntN(6))], h.space())
	case pick < 22 && len(h.recs) > 0:
		return h.revision()
	case pick < 28 && len(h.recs) > 0:
		r := h.recent()
		return h.forgotten(events.Header{Namespace: r.Namespace, Scope: r.Scope, Agent: r.Agent, Target: r.Record})
	case pick < 45 && len(h.recs) > 0:
		return h.vectors()
	case pick >= 92:
		return h.graph(h.ns[max(0, len(h.ns)-1-h.rnd.IntN(4))])
	case pick < 50 && len(h.sent) > 0:
		m := h.sent[h.rnd.IntN(len(h.sent))]
		if h.rnd.IntN(3) == 0 {
			m.content.Text += " changed"
		}
		return h.content(m.header, m.content)
	}
	return h.capture()
}

// graph draws a change of a namespace's graph: some of what it names was never there, or is gone.
func (h *history) graph(ns events.ID) events.Envelope {
	steps, made := drawGraph(h.rnd, h.things[ns], func() string { return h.words(1) }, true)
	header := events.Header{Namespace: ns, Agent: fmt.Sprintf("agent-%d", h.rnd.IntN(3))}
	e := h.graphChanged(header, "", steps, map[bool]string{true: fmt.Sprintf("id-%d", h.rnd.IntN(30))}[h.rnd.IntN(4) == 0])
	if h.at.Seq > 0 {
		for n := range made {
			h.things[ns] = append(h.things[ns], events.GraphRef{Seq: h.at.Seq, Index: h.at.Index, N: n})
		}
	}
	if h.rnd.IntN(20) == 0 { // sealed under another identity
		e.Payload[len(e.Payload)-1] ^= 1
		h.bad[e.Event] = true
	}
	return e
}

// drawGraph draws steps over things of before and new ones, and counts what they make.
func drawGraph(rnd *rand.Rand, things []events.GraphRef, word func() string, deletes bool) (steps []events.GraphStep, made uint32) {
	thing := func() events.GraphRef {
		if made > 0 && rnd.IntN(4) == 0 {
			return events.GraphRef{N: rnd.Uint32N(made)} // of this very event
		}
		if len(things) == 0 {
			return events.GraphRef{Seq: 1}
		}
		return things[len(things)-1-rnd.IntN(min(len(things), 30))]
	}
	texts := func() (out []string) {
		for range rnd.IntN(3) {
			out = append(out, word()+" "+word())
			made++
		}
		return out
	}
	for range 1 + rnd.IntN(3) {
		kinds := 6
		if !deletes {
			kinds = 3
		}
		s := events.GraphStep{Kind: events.GraphStepKind(1 + rnd.IntN(kinds))}
		switch s.Kind {
		case events.GraphEntitiesCreated:
			for range rnd.IntN(4) {
				made++
				s.Entities = append(s.Entities, events.GraphEntity{Name: word(), Type: word(), Observations: texts()})
			}
		case events.GraphRelationsCreated:
			for range rnd.IntN(3) {
				made++
				s.Relations = append(s.Relations, events.GraphRelation{From: word(), To: word(), Type: word()})
			}
		case events.GraphObservationsAdded:
			for range rnd.IntN(3) {
				of := thing()
				s.Added = append(s.Added, events.GraphAdded{Entity: of, Contents: texts()})
			}
		case events.GraphEntitiesDeleted:
			s.Ended, s.Severed = []events.GraphRef{thing()}, []events.GraphRef{thing()}
		default:
			s.Ended = []events.GraphRef{thing(), thing()}
		}
		steps = append(steps, s)
	}
	return steps, made
}

func (h *history) space() embed.Space {
	return []embed.Space{builtinSpace, externalSpace, anotherSpace}[h.rnd.IntN(3)]
}

// recent is a record's header, more often a late one; sometimes with a wrong agent.
func (h *history) recent() events.Header {
	r := h.recs[len(h.recs)-1-h.rnd.IntN(min(len(h.recs), 40))].header
	if h.rnd.IntN(20) == 0 {
		r.Agent = "stranger"
	}
	return r
}

func (h *history) capture() events.Envelope {
	ns := h.ns[h.rnd.IntN(3)]
	if h.rnd.IntN(2) == 0 {
		ns = h.ns[max(0, len(h.ns)-1-h.rnd.IntN(4))]
	}
	header, c := h.about(ns)
	if h.rnd.IntN(4) == 0 {
		c.ClientID = fmt.Sprintf("id-%d", h.rnd.IntN(30))
	}
	e := h.content(header, c)
	if h.rnd.IntN(60) == 0 { // sealed under another identity
		e.Payload[len(e.Payload)-1] ^= 1
		h.bad[e.Event] = true
	}
	header.Event, header.Record = events.ID{}, e.Record
	h.recs = append(h.recs, made{header, c})
	if c.ClientID != "" {
		header.Record = events.ID{}
		h.sent = append(h.sent, made{header, c})
	}
	return e
}

func (h *history) about(ns events.ID) (events.Header, events.Content) {
	header := events.Header{Namespace: ns, Agent: fmt.Sprintf("agent-%d", h.rnd.IntN(3)), Kind: events.Kind(1 + h.rnd.IntN(9)), Scope: events.ScopeTeam}
	if h.rnd.IntN(4) == 0 {
		header.Scope = events.ScopeAgent
	}
	c := events.Content{Text: h.words(1 + h.rnd.IntN(12)), Origin: "capture"}
	for range h.rnd.IntN(3) {
		c.Tags = append(c.Tags, fmt.Sprintf("tag-%d", h.rnd.IntN(5)))
	}
	if h.rnd.IntN(3) == 0 {
		c.URI = fmt.Sprintf("mem://x/dir/%d", h.rnd.IntN(12))
	}
	if h.rnd.IntN(3) == 0 {
		c.Conversation = fmt.Sprintf("talk-%d", h.rnd.IntN(3))
	}
	if h.rnd.IntN(6) == 0 {
		c.Subject = fmt.Sprintf("person-%d", h.rnd.IntN(3))
	}
	if h.rnd.IntN(4) == 0 {
		header.OccurredAt, c.OccurredSet = int64(h.rnd.IntN(40)-20)*12*3600*1e9+int64(h.rnd.IntN(3)), true
	}
	return header, c
}

func (h *history) words(n int) string {
	pool := strings.Fields("deploy tuesday rollback 部署星期二 database incident cache_ttl http://x.example/y Müller retry queue leader quorum snapshot")
	out := make([]string, n)
	for i := range out {
		out[i] = pool[h.rnd.IntN(len(pool))]
	}
	return strings.Join(out, " ")
}

func (h *history) revision() events.Envelope {
	r := h.recent()
	header, c := h.about(r.Namespace)
	header.Type, header.Scope, header.Agent = events.TypeRevised, r.Scope, r.Agent
	header.Target, header.BaseVersion = r.Record, uint32(1+h.rnd.IntN(2))
	if h.rnd.IntN(5) == 0 {
		c.ClientID = fmt.Sprintf("id-%d", h.rnd.IntN(30))
	}
	return h.content(header, c)
}

func (h *history) vectors() events.Envelope {
	m := h.recs[len(h.recs)-1-h.rnd.IntN(min(len(h.recs), 25))]
	r := m.header
	space := h.space()
	if s := h.spaces[r.Namespace]; s.Provider == embed.ProviderOllama && h.rnd.IntN(2) == 0 {
		space = s
	}
	return h.attached(events.Header{Namespace: r.Namespace, Scope: r.Scope, Agent: r.Agent, Target: r.Record, BaseVersion: uint32(1 + h.rnd.IntN(2))},
		space, h.dataKey(r.Namespace, m.content.Subject).ID(), [][]float32{{1, 0, 0, float32(h.rnd.IntN(3))}})
}
