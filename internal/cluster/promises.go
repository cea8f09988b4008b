package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Memory keeps what this node remembers of the others. Load gives what Save stored last,
// nil if nothing was, and Save returns once that survives a loss of power.
type Memory interface {
	Load() ([]byte, error)
	Save([]byte) error
}

// Promises are what other nodes have promised in Raft groups, as far as this node saw it
// or was told: by a node's name, then by the group's. Safe for concurrent use.
type Promises struct {
	mu      sync.Mutex
	of      map[string]map[string]raftfsm.Promise
	changes uint64
}

// NewPromises remembers nothing yet.
func NewPromises() *Promises { return &Promises{of: map[string]map[string]raftfsm.Promise{}} }

// rememberEvery is how often what is remembered is stored and told, where it changed.
const rememberEvery = time.Second

// Saw notes a promise.
func (p *Promises) Saw(node, group string, promise raftfsm.Promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.of[node][group]
	now := had.And(promise)
	if now == had {
		return
	}
	if p.of[node] == nil {
		p.of[node] = map[string]raftfsm.Promise{}
	}
	p.of[node][group] = now
	p.changes++
}

// Merge notes what somebody else remembers.
func (p *Promises) Merge(of map[string]map[string]raftfsm.Promise, except func(node string) bool) {
	for node, groups := range of {
		if except(node) {
			continue
		}
		for group, promise := range groups {
			p.Saw(node, group, promise)
		}
	}
}

// forget drops what is remembered of nodes.
func (p *Promises) forget(gone func(node string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(node string, _ map[string]raftfsm.Promise) bool { return gone(node) })
}

// All returns a copy, and how often it has changed.
func (p *Promises) All() (of map[string]map[string]raftfsm.Promise, changes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of = map[string]map[string]raftfsm.Promise{}
	for node, groups := range p.of {
		of[node] = maps.Clone(groups)
	}
	return of, p.changes
}

// Forgotten is what a node promised in a group and knows no more, by what its files
// tell; false = nothing.
func (p *Promises) Forgotten(node string, files map[string]raftfsm.Promise) (Forgotten, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, group := range slices.Sorted(maps.Keys(p.of[node])) {
		if had := p.of[node][group]; !files[group].Keeps(had) {
			assert.Reachable("a node has forgotten what it promised, and others remember", nil)
			return Forgotten{Group: group, Had: had}, true
		}
	}
	return Forgotten{}, false
}

// Forgotten is one promise of a node in a group; no group = none. Serves says that the
// node which answers takes part in all its groups.
type Forgotten struct {
	Group  string          `json:"group,omitempty"`
	Had    raftfsm.Promise `json:"had"`
	Serves bool            `json:"serves,omitempty"`
	// Unusable is why the node which answers has to come back with nothing itself.
	Unusable string `json:"unusable,omitempty"`
}

// Witness is a node as one that remembers what the others promised.
type Witness struct{ *Cluster }

// Saw returns what is to be told of the promises that other replicas of a group make.
func (w Witness) Saw(group string) func(replica string, p raftfsm.Promise) {
	return func(replica string, p raftfsm.Promise) { w.promises.Saw(replica, group, p) }
}

// loadPromises begins with what this node remembered when it ended.
func (w Witness) loadPromises() error {
	if w.opt.Memory == nil {
		return nil
	}
	b, err := w.opt.Memory.Load()
	if err != nil {
		return &Error{Kind: KindStorage, Message: "what this node remembers of the others could not be read: " + err.Error(), Err: err}
	}
	of := map[string]map[string]raftfsm.Promise{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &of); err != nil {
			w.log.Warn("what this node remembers of the others is damaged; it begins anew", "err", err)
		}
	}
	w.promises.Merge(of, w.notOthers)
	return nil
}

// notOthers are this node, those that were removed, and those that nobody knows.
func (w Witness) notOthers(node string) bool {
	return node == w.Self().Name || w.Removed(node) || !w.Facts().isMember(node)
}

// keepPromises stores what this node remembers and tells the others, until ctx ends;
// then it is stored once more. A write in a group costs neither: what changed in a second
// is stored and told once.
func (w Witness) keepPromises(ctx context.Context) {
	_, saved := w.promises.All()
	told := map[string]uint64{}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(rememberEvery):
		}
		w.promises.forget(w.notOthers)
		of, changes := w.promises.All()
		if changes != saved && w.savePromises(of) {
			saved = changes
		}
		w.tellPromises(ctx, of, changes, told)
	}
}

func (w Witness) savePromises(of map[string]map[string]raftfsm.Promise) bool {
	if w.opt.Memory == nil {
		return true
	}
	b, err := json.Marshal(of)
	if err == nil {
		err = w.opt.Memory.Save(b)
	}
	if err != nil {
		w.log.Warn("what this node remembers of the others could not be written", "err", err)
	}
	return err == nil
}

// tellPromises tells those that have not heard of the last changes.
func (w Witness) tellPromises(ctx context.Context, of map[string]map[string]raftfsm.Promise, changes uint64, told map[string]uint64) {
	ctx, cancel := context.WithTimeout(ctx, rememberEvery)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	behind := slices.DeleteFunc(w.others(), func(to rpc.Target) bool { return told[to.Node] == changes })
	for _, to := range behind {
		wg.Go(func() {
			if err := w.client.Call(ctx, to, "remember", of, nil); err == nil {
				mu.Lock()
				told[to.Node] = changes
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// remember takes what another node remembers.
func (w Witness) remember(_ context.Context, from peer.Identity, of map[string]map[string]raftfsm.Promise) (struct{}, error) {
	if !w.Facts().isMember(from.Node) {
		return struct{}{}, memory.Errorf(memory.CodeForbidden, "the node %s is not one of this cluster", from.Node)
	}
	w.promises.Merge(of, w.notOthers)
	return struct{}{}, nil
}

// returns answers a node that has started, before it takes part in its groups: what it
// promised and has forgotten. Without files it asks only whether this node serves, and why not.
func (w Witness) returns(_ context.Context, from peer.Identity, files map[string]raftfsm.Promise) (Forgotten, error) {
	if w.Removed(from.Node) {
		return Forgotten{}, removedCall(from.Node)
	}
	var f Forgotten
	if files != nil {
		f, _ = w.promises.Forgotten(from.Node, files)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Serves, f.Unusable = w.removeServer != nil, w.unusable
	return f, nil
}

// RejoinError says that a node must not take part in its groups with the files that it
// has, and is to come back under another incarnation.
type RejoinError struct{ Why string }

func (e *RejoinError) Error() string { return e.Why }

// Returning is a node that has started, before it takes part in its groups.
type Returning struct{ *Cluster }

// MayTakePart returns once this node may open its replicas: what their closed files tell
// keeps what the other nodes remember of it, as all say that answer, and these are, with
// this node, most voters of each group. Those that do not answer at once have Options.News
// for it, since they may be starting too. files has no group that this node never had.
//
// A node that may not, since it has forgotten something or its files are damaged, keeps
// all it has until so many others take part that they can remove its name: where every node
// was put back from a copy nobody may give up what it has.
// Errors: *RejoinError, *Error of KindRefused, of KindRemoved, and of KindWaiting when ctx
// ends.
func (r Returning) MayTakePart(ctx context.Context, files map[string]raftfsm.Inspection) error {
	facts := r.Facts()
	others := r.others()
	if len(others) == 0 || len(files) == 0 {
		return nil
	}
	known := map[string]raftfsm.Promise{}
	for group, found := range files {
		if err := facts.Foreign(group, found.Members); err != nil {
			return err
		}
		known[group] = found.Promise
	}
	unusable := ""
	for _, group := range slices.Sorted(maps.Keys(files)) {
		found := files[group]
		switch voted := slices.Contains(facts.Groups, group); {
		case found.Damage != nil:
			unusable = fmt.Sprintf("the Raft files of the group %s are damaged: %v", group, found.Damage)
		case voted && !found.Log:
			unusable = fmt.Sprintf("the Raft files of the group %s are gone, in which this node has a vote", group)
		}
	}
	began := time.Now()
	for wait, said := firstWait, ""; ; wait = min(wait*3/2, longestWait) {
		now := r.askWhatIsForgotten(ctx, known)
		if gone := r.SelfRemoved(); gone != nil {
			return gone
		}
		unusable = cmp.Or(unusable, now.forgotten)
		r.waitsWith(unusable)
		now.others = r.Facts().othersByID(files)
		verdict, group := facts.Judge(files, unusable != "", now.answered, now.serving, now.others)
		var text, hint string
		most := verdict == TakePartLater
		switch {
		case verdict == ComeBackEmpty:
			return &RejoinError{unusable}
		case unusable != "":
			text, hint = now.cannotReturn(unusable)
		case verdict == TakePart || most && time.Since(began) >= r.opt.News:
			return nil
		default:
			text = fmt.Sprintf("most voters of the group %s have to say first what they remember of this node: %s", group, strings.Join(now.silent, "; "))
		}
		if ctx.Err() != nil {
			return &Error{Kind: KindWaiting, Message: "this node takes part in nothing yet: " + text, Hint: hint, Err: ctx.Err()}
		}
		r.waits(text, hint)
		if text != said && !most {
			if hint != "" {
				r.log.Warn("waiting for the other nodes: "+text, "hint", hint)
			} else {
				r.log.Info("waiting for the other nodes: " + text)
			}
			said = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// waitsWith lets the others hear why this node has to come back with nothing.
func (r Returning) waitsWith(unusable string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unusable = unusable
}

// Verdict is what a node that has started is to do, by what the others say.
type Verdict int

// Verdicts.
const (
	WaitForOthers Verdict = iota // and ask them again
	TakePartLater                // with what it has, if nobody else answers for a while
	TakePart                     // with what it has
	ComeBackEmpty                // under another incarnation
)

// Judge decides, for a node with these files, of which unusable says that it has forgotten
// something or that they are damaged. answered are the members that said what they
// remember, this node among them, and serving how many of the others, of which there are so
// many, take part in all groups. group is one whose voters have not all answered.
func (f Facts) Judge(files map[string]raftfsm.Inspection, unusable bool, answered map[string]bool, serving, others int) (v Verdict, group string) {
	group, most, all := f.whoAnswers(files, answered)
	switch {
	case unusable && serving >= neededToRejoin(others):
		return ComeBackEmpty, group
	case unusable:
		return WaitForOthers, group
	case all:
		return TakePart, group
	case most:
		return TakePartLater, group
	}
	return WaitForOthers, group
}

// neededToRejoin is how many others have to serve before a node gives up what it has: so
// many can remove its name, for with it they are one more.
func neededToRejoin(others int) int { return others/2 + 1 }

// othersByID counts the nodes beside this one, by their ids: of the names with one id at
// most one has a vote. The rest are incarnations that came with nothing, were welcomed and
// then refused by the groups, and never answer again. The voters of files alone are too few
// where the files are older than some node's vote.
func (f Facts) othersByID(files map[string]raftfsm.Inspection) int {
	ids := map[string]bool{}
	for _, m := range f.Members {
		ids[m.ID] = true
	}
	for _, found := range files {
		for _, m := range found.Members { // of which no member may have told
			if m.Voter && !f.removed(m.ID) {
				ids[idOf(m.ID)] = true
			}
		}
	}
	delete(ids, f.ID)
	return len(ids)
}

// Foreign refuses the files of another cluster's group: nobody in it is known here.
func (f Facts) Foreign(group string, members []raftfsm.Member) error {
	names := []string{}
	for _, m := range members {
		if m.ID == f.Name() || f.isMember(m.ID) || f.removed(m.ID) {
			return nil
		}
		names = append(names, m.ID)
	}
	if len(names) == 0 {
		return nil
	}
	return &Error{Kind: KindRefused, Message: fmt.Sprintf("the Raft files of the group %s are another cluster's: its nodes are %s, and none of them is known to this one", group, strings.Join(names, ", ")),
		Hint: fmt.Sprintf("put keys/ and shards/ back as the node %s had them last; where they are lost, remove it from the cluster (memctl cluster remove %s) and start it with an empty data directory", f.ID, f.Name())}
}

// memories are what the others say of a node that has started.
type memories struct {
	forgotten string          // what it has; "" = nothing, as far as they answered
	answered  map[string]bool // the node itself among them
	others    int             // how many there are, of each id one
	serving   int             // of the others
	silent    []string        // why some gave no answer
	unusable  []string        // of the others, those that have to come back with nothing, too, and why
}

// cannotReturn says for what a node waits that has to come back with nothing, and what helps.
// So many of the others may wait for the same that nobody comes back by itself.
func (m *memories) cannotReturn(unusable string) (text, hint string) {
	needed := neededToRejoin(m.others)
	text = strings.Join(append([]string{fmt.Sprintf("%s; it comes back with nothing once %d others take part, of which %d do; nothing is moved before", unusable, needed, m.serving)}, m.silent...), "; ")
	if m.others-len(m.unusable) >= needed {
		return text, "nothing was moved; start the other nodes, with what they had last. Where all of them were put back from copies, docs/cluster.md says what to do"
	}
	return strings.Join(append([]string{"this node and others wait for each other, and none of them comes back by itself: " + text}, m.unusable...), "; "),
		stuckHint
}

const stuckHint = "stop all nodes and keep their data directories: nothing was moved. See of each how far it reaches, and what is damaged, with memctl cluster recover --data-dir DIR --peer-certs DIR --dry-run, and recover from the one that reaches furthest, of several from one that is whole (docs/operate/nodes.md, Most nodes are damaged)"

// Alone says why this node, which has what it needs, finds no majority though others are there:
// so many of them have to come back with nothing that none does. "" = that is not so.
func (r Returning) Alone(ctx context.Context) (why, hint string) {
	now := r.askWhatIsForgotten(ctx, nil)
	others := r.Facts().othersByID(nil)
	if fit := 1 + others - len(now.unusable); len(now.unusable) == 0 || fit > (1+others)/2 {
		return "", ""
	}
	return "the others wait for each other, and none of them comes back by itself: " + strings.Join(now.unusable, "; "), stuckHint
}

// askWhatIsForgotten asks all other nodes at once, without files only how they fare.
func (r Returning) askWhatIsForgotten(ctx context.Context, files map[string]raftfsm.Promise) memories {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := memories{answered: map[string]bool{r.Self().Name: true}}
	targets := r.others()
	answers, errs := make([]Forgotten, len(targets)), make([]error, len(targets))
	var wg sync.WaitGroup
	for i, to := range targets {
		wg.Go(func() { errs[i] = r.client.Call(ctx, to, "returns", files, &answers[i]) })
	}
	wg.Wait()
	for i, to := range targets {
		if errs[i] != nil {
			why, _ := explain(errs[i])
			out.silent = append(out.silent, idOf(to.Node)+" "+why)
			continue
		}
		out.answered[to.Node] = true
		f := answers[i]
		if f.Group != "" && out.forgotten == "" {
			out.forgotten = fmt.Sprintf("this data directory is older than what %s remembers of this node: in the group %s it promised %+v, and its files tell %+v",
				idOf(to.Node), f.Group, f.Had, files[f.Group])
		}
		if f.Serves {
			out.serving++
		}
		if f.Unusable != "" {
			out.unusable = append(out.unusable, fmt.Sprintf("%s waits, too, since %s", idOf(to.Node), f.Unusable))
		}
	}
	return out
}

// whoAnswers reports whether most voters of each group have answered, and whether all
// have; group is one of which not most have, or not all. Voters of the files that were
// removed since never answer again: the members that are known now count instead.
func (f Facts) whoAnswers(files map[string]raftfsm.Inspection, answered map[string]bool) (group string, most, all bool) {
	most, all = true, true
	for _, name := range slices.Sorted(maps.Keys(files)) {
		voters := f.votersOf(files[name].Members)
		up := 0
		for _, voter := range voters {
			if answered[voter] {
				up++
			}
		}
		if up < len(voters) && all {
			group, all = name, false
		}
		if up < len(voters)/2+1 && len(voters) > 0 && most {
			group, most = name, false
		}
	}
	return group, most, all
}

func (f Facts) votersOf(members []raftfsm.Member) (voters []string) {
	replaced := false
	for _, m := range members {
		if m.Voter && f.removed(m.ID) {
			replaced = true
		} else if m.Voter {
			voters = append(voters, m.ID)
		}
	}
	if replaced {
		for _, m := range f.Members {
			if !f.removed(m.Name) && !slices.Contains(voters, m.Name) {
				voters = append(voters, m.Name)
			}
		}
	}
	return voters
}
