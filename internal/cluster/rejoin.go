package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mneme/internal/peer"
	"mneme/memory"
)

// Rejoin stores that this node takes part in nothing any more under the name that it
// has: at its next start it comes back with nothing, under another one.
func (r Returning) Rejoin(why string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	facts := r.forming.facts
	facts.Rejoin = why
	return r.forming.set(facts)
}

// Anew are the facts of a node that comes back with nothing, under another incarnation:
// it is of the same cluster, and its former names are to be removed.
func (f Facts) Anew(incarnation string) Facts {
	old := f.Name()
	anew := Facts{ID: f.ID, Incarnation: incarnation, Cluster: f.Cluster, Shards: f.Shards, Removed: f.Removed, Replaces: append(slices.Clone(f.Replaces), old)}
	anew.Members = slices.DeleteFunc(slices.Clone(f.Members), func(m Member) bool { return m.Name == old })
	return anew
}

// replaceTimeout bounds one question to remove a former name.
const replaceTimeout = removeTimeout + joinTimeout

// Replace returns once the former names of this node are removed: it asks the others
// again and again, of which most have to agree. Errors: *Error of KindStorage, of
// KindRemoved, and of KindWaiting when ctx ends.
func (r Returning) Replace(ctx context.Context) error {
	for _, old := range r.Facts().Replaces {
		if err := r.replaceOne(ctx, old); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	facts := r.forming.facts
	if len(facts.Replaces) == 0 {
		return nil
	}
	facts.Replaces = nil
	return r.forming.set(facts)
}

func (r Returning) replaceOne(ctx context.Context, old string) error {
	said := ""
	for wait := firstWait; ; wait = min(wait*3/2, longestWait) {
		why := "no other node is known"
		for _, to := range r.others() {
			if idOf(to.Node) == r.Self().ID {
				continue
			}
			one, cancel := context.WithTimeout(ctx, replaceTimeout)
			err := r.client.Call(one, to, "replace", old, nil)
			cancel()
			if err == nil {
				r.log.Warn("the other nodes removed the former name of this one", "name", old)
				return nil
			}
			text, _ := explain(err)
			why = idOf(to.Node) + " " + text
		}
		if gone := r.SelfRemoved(); gone != nil {
			return gone
		}
		text := fmt.Sprintf("they have to remove its former name %s, which takes most of them: %s", old, why)
		if ctx.Err() != nil {
			return &Error{Kind: KindWaiting, Message: "this node waits for the others: " + text, Err: ctx.Err()}
		}
		r.waits(text, "")
		if text != said {
			r.log.Info("waiting for the other nodes: " + text)
			said = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// ServeReplacing lets nodes that come back with nothing have their former names removed
// through this one, which serves all its groups by now. server is as for Remove.
func (w Witness) ServeReplacing(server func(ctx context.Context, name string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeServer = server
}

// replace removes a former name of the node that asks.
func (w Witness) replace(ctx context.Context, from peer.Identity, old string) (struct{}, error) {
	if idOf(old) != idOf(from.Node) || old == from.Node {
		return struct{}{}, memory.Errorf(memory.CodeForbidden, "%.100q is no former name of the node %s", old, from.Node)
	}
	if w.Removed(from.Node) {
		return struct{}{}, removedCall(from.Node)
	}
	if !w.Facts().isMember(from.Node) {
		return struct{}{}, memory.Errorf(memory.CodeForbidden, "the node %s is not one of this cluster", from.Node)
	}
	w.mu.Lock()
	server := w.removeServer
	w.mu.Unlock()
	if server == nil {
		return struct{}{}, memory.Errorf(memory.CodeUnavailable, "it does not serve all groups yet")
	}
	_, err := w.Remove(ctx, old, false, server)
	if memory.CodeOf(err) == memory.CodeNotFound {
		err = nil
	}
	return struct{}{}, err
}
