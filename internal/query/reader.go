package query

import (
	"errors"
	"fmt"
	"slices"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// Reader reads one namespace with one capability, all at one position. Its
// methods may be called concurrently; none after Close.
type Reader struct {
	s      *Service
	view   *projections.View
	cap    Capability
	info   projections.NamespaceInfo
	set    *settings.Effective
	names  *keyring.NamespaceKeys
	parts  []openPart
	epochs epochs
}

func (r *Reader) open(namespace, as string) (err error) {
	if r.cap, r.info, err = r.s.OpenCapability(r.view, namespace, as); err != nil {
		return err
	}
	r.parts = r.cap.partitions(r.view)
	if r.set, err = r.s.opt.Book.Of(r.view, r.info); err != nil {
		return err
	}
	r.names, err = r.s.opt.Keys.Namespace(r.info.ID)
	if settings.IsErased(err) {
		return memory.NoNamespace(namespace) // its deletion is on the way
	}
	if err != nil {
		return fmt.Errorf("keys of namespace %s: %w", namespace, err)
	}
	r.epochs, err = readEpochs(r.view)
	return err
}

// Close releases the reader's view.
func (r *Reader) Close() error { return r.view.Close() }

// Position is where in the log everything this reader says holds.
func (r *Reader) Position() string { return r.view.Position().String() }

// Capability is what the reader may open.
func (r *Reader) Capability() Capability { return r.cap }

// position is the public form of a reference.
func (r *Reader) position(at projections.Ref) string {
	return events.Position{Shard: r.s.opt.Shard, Epoch: r.epochs.of(at.Seq), Seq: at.Seq, Index: at.Index}.String()
}

// part finds an open partition by its number.
func (r *Reader) part(id uint32) (*openPart, bool) {
	for i := range r.parts {
		if r.parts[i].ID == id {
			return &r.parts[i], true
		}
	}
	return nil, false
}

// narrowed lists the open partitions of a scope; "" = all of them.
func (r *Reader) narrowed(scope memory.Scope) ([]openPart, error) {
	switch scope {
	case "":
		return r.parts, nil
	case memory.ScopeTeam, memory.ScopeAgent:
	default:
		return nil, memory.Errorf(memory.CodeInvalid, "scope %q is unknown", clip(string(scope))).WithHint("scopes are team and agent")
	}
	if scope == memory.ScopeAgent && r.cap.agent == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "scope agent needs to know whose memories").WithHint("say who is reading: as=AGENT, or the header Mneme-Agent")
	}
	want := events.ScopeOf(scope)
	return slices.DeleteFunc(slices.Clone(r.parts), func(p openPart) bool { return p.Scope != want }), nil
}

// head finds a record in the open partitions. A record that lies elsewhere is
// as good as none.
func (r *Reader) head(id events.ID) (projections.Head, *openPart, bool, error) {
	h, ok, err := r.view.Head(r.cap.ns, id)
	if err != nil || !ok {
		return h, nil, false, err
	}
	p, ok := r.part(h.Partition)
	return h, p, ok, nil
}

// errErased says that the key of what was to be opened was destroyed.
var errErased = errors.New("erased")

// openEnvelope opens the content of a captured or revised event. Errors:
// errErased; a key that is missing without having been destroyed is damage.
func (s *Service) openEnvelope(env *events.Envelope) (*events.Content, error) {
	key, err := s.opt.Keys.KeyByID(env.Key)
	if err == nil {
		var c *events.Content
		if c, err = derive.OpenContent(key, env); err == nil {
			return c, nil
		}
	}
	if settings.IsErased(err) {
		return nil, errErased
	}
	return nil, fmt.Errorf("open event %s: %w", env.Event, err)
}

// record opens the version that an event made.
func (r *Reader) record(id events.ID, version uint32, at projections.Ref) (memory.Record, error) {
	env, _, err := r.view.Envelope(at)
	if err != nil {
		return memory.Record{}, err
	}
	c, err := r.s.openEnvelope(&env)
	if errors.Is(err, errErased) {
		return r.describe(id, version, at, &env, &events.Content{}), err
	}
	if err != nil {
		return memory.Record{}, err
	}
	return r.describe(id, version, at, &env, c), nil
}

// describe gives a version its public form.
func (r *Reader) describe(id events.ID, version uint32, at projections.Ref, env *events.Envelope, c *events.Content) memory.Record {
	rec := memory.Record{
		RecordID: id.String(), Namespace: r.cap.name, URI: r.uri(id, c), Version: int(version), Text: c.Text,
		Kind: env.Kind.Public(), Role: c.Role, Agent: env.Agent, Tags: c.Tags, Conversation: c.Conversation,
		Subject: c.Subject, Scope: env.Scope.Public(), Origin: c.Origin, Importance: c.Importance,
		OccurredAt: timeOf(env.OccurredAt), CreatedAt: timeOf(env.SealedAt), Metadata: c.Metadata,
		ID: c.ClientID, Source: c.Source, Position: r.position(at),
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
	return "mem://" + r.cap.name + "/" + id.String()
}
