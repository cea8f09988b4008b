package query

import (
	"context"
	"errors"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// Reader reads one namespace with one capability, all at one position. Its
// methods may be called concurrently; none after Close.
type Reader struct {
	view *views.View
	s    *Service
}

// Open opens a reader of a namespace for an agent, or for the team with as "",
// once the node is as fresh as asked. Close it. Errors: invalid, not_found,
// stale_position, lost_position, unavailable, timeout.
func (s *Service) Open(ctx context.Context, namespace, as string, f views.Freshness) (*Reader, error) {
	all, err := s.OpenEach(ctx, []string{namespace}, as, f)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OpenEach is Open for one namespace or more. The readers have one snapshot: close any
// one of them when all are done with.
func (s *Service) OpenEach(ctx context.Context, namespaces []string, as string, f views.Freshness) ([]*Reader, error) {
	all, err := s.opt.Views.OpenEach(ctx, namespaces, as, f)
	if err != nil {
		return nil, err
	}
	out := make([]*Reader, len(all))
	for i, v := range all {
		out[i] = &Reader{v, s}
	}
	return out, nil
}

// Close releases what the reader holds.
func (r *Reader) Close() error { return r.view.Close() }

// Position is where in the log everything that the reader says holds.
func (r *Reader) Position() string { return r.view.Position() }

// record opens the version that an event made. Of an erased one it tells what is
// in clear, with views.ErrErased.
func (r *Reader) record(id events.ID, version uint32, at projections.Ref) (memory.Record, error) {
	env, c, err := r.view.Event(at)
	if errors.Is(err, views.ErrErased) {
		return r.describe(id, version, at, env, &events.Content{}), err
	}
	if err != nil {
		return memory.Record{}, err
	}
	return r.describe(id, version, at, env, c), nil
}

// describe gives a version its public form.
func (r *Reader) describe(id events.ID, version uint32, at projections.Ref, env *events.Envelope, c *events.Content) memory.Record {
	rec := memory.Record{
		RecordID: id.String(), Namespace: r.view.Capability.Namespace(), URI: r.uri(id, c), Version: int(version), Text: c.Text,
		Kind: env.Kind.Public(), Role: c.Role, Agent: env.Agent, Tags: c.Tags, Conversation: c.Conversation,
		Subject: c.Subject, Scope: env.Scope.Public(), Origin: c.Origin, Importance: c.Importance,
		OccurredAt: timeOf(env.OccurredAt), CreatedAt: timeOf(env.SealedAt), Metadata: c.Metadata,
		ID: c.ClientID, Source: c.Source, Position: r.view.Positions.Of(at),
	}
	for _, from := range c.DerivedFrom {
		rec.DerivedFrom = append(rec.DerivedFrom, from.String())
	}
	return rec
}

// uri is the name of a record: its own, or the one made of its id.
func (r *Reader) uri(id events.ID, c *events.Content) string {
	if c.URI != "" {
		return c.URI
	}
	return "mem://" + r.view.Capability.Namespace() + "/" + id.String()
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

func noRecord(id string) error {
	return memory.Errorf(memory.CodeNotFound, "there is no record %q", views.Clip(id))
}

var zeroID events.ID
