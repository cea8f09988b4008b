package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Copy is one server's copy of a stream, as the stream's leader sees it.
type Copy struct {
	Server string
	// Gone says that the leader has not heard of it for a while, or never: it takes part
	// in no acknowledgement.
	Gone bool
	// Behind says that the leader does not count it as whole.
	Behind bool
}

// copyGone is how long the leader of a stream has not heard of a copy that is gone: it
// hears of a living one every second.
const copyGone = 3 * time.Second

// copiesOf lists the copies of a stream; nil where nobody leads it.
func copiesOf(c *jetstream.ClusterInfo) []Copy {
	if c == nil || c.Leader == "" {
		return nil
	}
	out := []Copy{{Server: c.Leader}}
	for _, r := range c.Replicas {
		// A server that died with the leader before is unknown to the next one, which has
		// never heard of it and says so by zero. Offline it becomes after minutes.
		out = append(out, Copy{Server: r.Name, Gone: r.Offline || r.Active > copyGone || r.Active == 0, Behind: !r.Current})
	}
	return out
}

// wholeOf counts the copies that are there and whole.
func wholeOf(copies []Copy) (n int) {
	for _, c := range copies {
		if !c.Gone && !c.Behind {
			n++
		}
	}
	return n
}

// proof is what is known of the servers of an external NATS. An acknowledgement is as
// good as the servers that gave it: it counts while each server with a living copy of
// the stream is known to sync, and these are a majority of the copies. What a server has
// said holds as long as it is the same process. Of the one that the node is connected to
// the connection tells; another one says it again every second. A server that is silent
// for a moment is dead, or slow, or was restarted and is not asked yet: for silentFor it
// counts as what it was.
type proof struct {
	conn interface { // nil before there is one
		ConnectedServerName() string
		ConnectedServerId() string
	}
	servers map[string]logServer
	round   uint64
	held    bool   // a round has held
	since   uint64 // reconnects before it
	lazy    []string
	size    int // servers with JetStream that know each other; 0 = not known
	streams map[string][]Copy
}

// logServer is what a server with JetStream has said last.
type logServer struct {
	lazy  bool
	at    time.Time
	round uint64
	since uint64 // reconnects before that
}

// silentFor is longer than the leader of a stream needs to notice that a copy is gone.
const silentFor = copyGone + 2*time.Second

func newProof(servers map[string]logServer) proof {
	if servers == nil {
		servers = map[string]logServer{}
	}
	return proof{servers: servers, streams: map[string][]Copy{}}
}

// heard takes in what servers answered in one round; reconnects is how often the
// connection was made anew before it.
func (p *proof) heard(found []varz, now time.Time, reconnects uint64) error {
	p.round++
	p.lazy, p.size = nil, 0
	name, id := p.conn.ConnectedServerName(), p.conn.ConnectedServerId()
	some := false
	for _, v := range found {
		if v.Name == name && v.ID != id {
			return fmt.Errorf("%w: a server called %s answered that is not the one to which the node is connected", ErrNoSyncProof, name)
		}
		if v.JetStream.Config == nil {
			continue
		}
		some = true
		if v.JetStream.Meta != nil {
			p.size = max(p.size, v.JetStream.Meta.Size)
		}
		lazy := !v.JetStream.Config.SyncAlways
		p.servers[v.Name] = logServer{lazy: lazy, at: now, round: p.round, since: reconnects}
		if lazy {
			p.lazy = append(p.lazy, v.Name)
		}
	}
	slices.Sort(p.lazy)
	if !some {
		return fmt.Errorf("%w: no server with JetStream answered", ErrNoSyncProof)
	}
	if p.lazy == nil {
		p.held, p.since = true, reconnects
	}
	return p.holds(reconnects)
}

// holds is nil where the servers that answer say what they should, whoever has copies.
func (p *proof) holds(reconnects uint64) error {
	switch {
	case len(p.lazy) > 0:
		return lazyError(p.lazy)
	case !p.held || p.since != reconnects:
		return fmt.Errorf("%w: it was not asked on this connection yet, which is a new one", ErrNoSyncProof)
	}
	return nil
}

// lazyError is an ErrLazySync of these servers. It does not say that a proof is missing:
// there is one of the contrary.
type lazyError []string

func (e lazyError) Error() string {
	return fmt.Sprintf("%v on %s: what is acknowledged there is not on disk yet", ErrLazySync, strings.Join(e, ", "))
}

func (e lazyError) Is(target error) bool { return target == ErrLazySync || target == ErrNoSyncProof }

// covers is nil where an acknowledgement of these copies means that a majority has
// synced.
func (p *proof) covers(copies []Copy, now time.Time, reconnects uint64) error {
	if len(copies) == 0 {
		return fmt.Errorf("%w: it is not known which servers have copies of the log", ErrNoSyncProof)
	}
	here := p.conn.ConnectedServerName()
	var lazy, silent []string
	synced := 0
	for _, c := range copies {
		s, known := p.servers[c.Server]
		known = known && (c.Server != here || s.since == reconnects)
		same := s.round == p.round || c.Server == here // it is the process that said so
		switch {
		case known && !s.lazy && same:
			synced++
		case c.Gone:
		case known && s.lazy:
			lazy = append(lazy, c.Server)
		case known && now.Sub(s.at) < silentFor:
			synced++
		default:
			silent = append(silent, c.Server)
		}
	}
	switch {
	case len(lazy) > 0:
		return lazyError(lazy)
	case len(silent) > 0:
		return fmt.Errorf("%w: %s keeps a copy of the log and does not say that it syncs", ErrNoSyncProof, strings.Join(silent, ", "))
	case 2*synced <= len(copies):
		return fmt.Errorf("%w: only %d of %d servers with a copy of the log answer", ErrNoSyncProof, synced, len(copies))
	}
	return nil
}

// Vouch is nil while an acknowledgement of a stream means what it should; else it wraps
// ErrNoSyncProof. copies are those that the stream has now, none if it is not there; nil is
// what was known before. With RemoteOptions.Dev it is always nil.
func (r *Remote) Vouch(stream string, copies []Copy) error {
	reconnects := r.nc.Stats().Reconnects
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := copies != nil && len(copies) == 0
	if gone {
		delete(r.proof.streams, stream)
	} else if copies != nil {
		r.proof.streams[stream] = copies
	} else if _, known := r.proof.streams[stream]; !known {
		r.proof.streams[stream] = nil // to be asked for
		r.askAgain()
	}
	if r.opt.Dev {
		return nil
	}
	if err := r.proof.holds(reconnects); err != nil || gone {
		return err
	}
	return r.proof.covers(r.proof.streams[stream], time.Now(), reconnects)
}

// Proven is nil while acknowledgements mean what they should on all streams that Vouch was
// asked about; else it wraps ErrNoSyncProof. With RemoteOptions.Dev it is always nil.
func (r *Remote) Proven() error {
	if r.opt.Dev {
		return nil
	}
	return r.unproven()
}

// SyncAlways reports whether there is a proof for the present connection.
func (r *Remote) SyncAlways() bool { return r.unproven() == nil }

func (r *Remote) unproven() error {
	reconnects := r.nc.Stats().Reconnects
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.proof.holds(reconnects); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.proof.streams)) {
		if copies := r.proof.streams[name]; copies != nil {
			if err := r.proof.covers(copies, time.Now(), reconnects); err != nil {
				return err
			}
		}
	}
	return nil
}

// Servers names the servers that have said last that they sync.
func (r *Remote) Servers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for name, s := range r.proof.servers {
		if !s.lazy && s.round == r.proof.round {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Prove asks the servers again. It succeeds only if at least one server with
// JetStream answers, all that answer sync always, and the connection stays the
// same meanwhile.
func (r *Remote) Prove(ctx context.Context) error {
	before := r.nc.Stats().Reconnects
	found, err := r.asks.servers(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if herr := r.proof.heard(found, time.Now(), before); herr != nil {
		if err != nil {
			herr = fmt.Errorf("%w; %w", herr, err)
		}
		return herr
	}
	return nil
}

// lookAtCopies asks which servers have copies of the streams that Vouch was asked about.
func (r *Remote) lookAtCopies(ctx context.Context) {
	r.mu.Lock()
	names := slices.Sorted(maps.Keys(r.proof.streams))
	r.mu.Unlock()
	for _, name := range names {
		copies, there, err := r.Copies(ctx, name)
		if err != nil {
			continue // nobody leads it: nothing is acknowledged either
		}
		r.mu.Lock()
		if there {
			r.proof.streams[name] = copies
		} else {
			delete(r.proof.streams, name)
		}
		r.mu.Unlock()
	}
}

// Copies lists the copies of a stream as its leader sees them. there is false where the
// servers have no such stream. Errors: ErrNoLeader, those of NATS.
func (r *Remote) Copies(ctx context.Context, stream string) (copies []Copy, there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteDialTimeout)
	defer cancel()
	msg, err := r.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Cluster *jetstream.ClusterInfo `json:"cluster"`
		Error   *jetstream.APIError    `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return nil, false, err
	}
	if answer.Error != nil {
		if answer.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound {
			return nil, false, nil
		}
		return nil, false, answer.Error
	}
	if copies = copiesOf(answer.Cluster); copies == nil {
		return nil, false, ErrNoLeader
	}
	return copies, true, nil
}

// askAgain wants a round at once.
func (r *Remote) askAgain() {
	select {
	case r.again <- struct{}{}:
	default:
	}
}
