package views

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// View is one capability over one consistent snapshot of a namespace. Its
// methods may be called concurrently; none after Close.
type View struct {
	State      *projections.View
	Capability Capability
	Settings   *settings.Effective
	Partitions []Partition // that the capability opens, the team's first
	Positions  Positions
	keys       *keyring.Keyring
	words      *vocabularies
	knowledge  *knowledge
}

// Open opens a view of a namespace for an agent, or for the team with as "",
// once the node is as fresh as asked. Close it. Errors: invalid, not_found,
// stale_position, lost_position, unavailable, timeout, those of Options.Lacks.
func (s *Views) Open(ctx context.Context, namespace, as string, f Freshness) (*View, error) {
	all, err := s.OpenEach(ctx, []string{namespace}, as, f)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// OpenEach is Open for one namespace or more. The views have one snapshot: close any
// one of them when all are done with.
func (s *Views) OpenEach(ctx context.Context, namespaces []string, as string, f Freshness) ([]*View, error) {
	target, err := s.await(ctx, f)
	if err != nil {
		return nil, err
	}
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	all := make([]*View, len(namespaces))
	for i, namespace := range namespaces {
		all[i] = &View{State: state, keys: s.opt.Keys, words: s.words, knowledge: s.knowledge}
		if err := all[i].open(s, namespace, as); err != nil {
			return nil, Failed("open "+Clip(namespace), errors.Join(err, state.Close()))
		}
	}
	if err := all[0].Positions.Check(target); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	assert.Always(state.Cursor().Seq >= target.Seq, "a read at a position finds the state there, or behind it", nil)
	return all, nil
}

func (v *View) open(s *Views, namespace, as string) error {
	c, info, err := OpenCapability(v.State, namespace, as)
	if err != nil {
		return err
	}
	v.Capability = c
	v.Partitions = c.Partitions(v.State)
	if v.Settings, err = s.opt.Settings.Of(v.State, info); err != nil {
		return err
	}
	_, err = s.opt.Keys.Namespace(info.ID)
	if settings.IsErased(err) {
		return memory.NoNamespace(namespace) // its deletion is on the way
	}
	if err != nil {
		return fmt.Errorf("keys of namespace %s: %w", namespace, err)
	}
	v.Positions = s.Positions(v.State)
	return nil
}

// Close releases the snapshot.
func (v *View) Close() error { return v.State.Close() }

// Position is where in the log everything that the view says holds.
func (v *View) Position() string { return v.State.Position().String() }

// partition finds an open partition by its number.
func (v *View) partition(id uint32) (*Partition, bool) {
	for i := range v.Partitions {
		if v.Partitions[i].ID == id {
			return &v.Partitions[i], true
		}
	}
	return nil, false
}

// InScope lists the open partitions of a scope; "" = all of them.
func (v *View) InScope(scope memory.Scope) ([]Partition, error) {
	switch scope {
	case "":
		return v.Partitions, nil
	case memory.ScopeTeam, memory.ScopeAgent:
	default:
		return nil, memory.Errorf(memory.CodeInvalid, "scope %q is unknown", Clip(string(scope))).WithHint("scopes are team and agent")
	}
	if scope == memory.ScopeAgent && v.Capability.agent == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "scope agent needs to know whose memories").WithHint("say who is reading: as=AGENT, or the header Mneme-Agent")
	}
	want := events.ScopeOf(scope)
	return slices.DeleteFunc(slices.Clone(v.Partitions), func(p Partition) bool { return p.Scope != want }), nil
}

// Head finds a record in the open partitions; the partition is nil if it is in
// none of them. A record that lies elsewhere is as good as none.
func (v *View) Head(id events.ID) (projections.Head, *Partition, error) {
	h, ok, err := v.State.Head(v.Capability.ns, id)
	if err != nil || !ok {
		return h, nil, err
	}
	p, _ := v.partition(h.Partition)
	return h, p, nil
}

// Content opens what a captured or revised event holds. Errors: ErrErased.
func (v *View) Content(at projections.Ref) (*events.Content, error) {
	_, c, err := v.Event(at)
	return c, err
}

// Event reads the envelope of a captured or revised event and opens its content.
// With ErrErased the envelope is good.
func (v *View) Event(at projections.Ref) (*events.Envelope, *events.Content, error) {
	env, _, err := v.State.Envelope(at)
	if err != nil {
		return nil, nil, err
	}
	c, err := OpenContent(v.keys, &env)
	return &env, c, err
}

// ErrErased says that the key of what was to be opened was destroyed.
var ErrErased = errors.New("erased")

// OpenContent opens the content of a captured or revised event. Errors:
// ErrErased; a key that is missing without having been destroyed is damage.
func OpenContent(keys *keyring.Keyring, env *events.Envelope) (*events.Content, error) {
	return opened(keys, env, derive.OpenContent)
}

// opened opens a payload under the key that its header names.
func opened[T any](keys *keyring.Keyring, env *events.Envelope, open func(*keyring.DataKey, *events.Envelope) (T, error)) (T, error) {
	var none T
	key, err := keys.KeyByID(env.Key)
	if err == nil {
		var v T
		if v, err = open(key, env); err == nil {
			return v, nil
		}
	}
	if settings.IsErased(err) {
		return none, ErrErased
	}
	return none, fmt.Errorf("open event %s: %w", env.Event, err)
}

// OpenGraph opens the steps of a graph.changed. Errors as of OpenContent.
func OpenGraph(keys *keyring.Keyring, env *events.Envelope) ([]events.GraphStep, error) {
	return opened(keys, env, derive.OpenGraph)
}

// OpenRead opens what a memory.read holds. Errors as of OpenContent.
func OpenRead(keys *keyring.Keyring, env *events.Envelope) (events.Read, error) {
	return opened(keys, env, derive.OpenRead)
}
