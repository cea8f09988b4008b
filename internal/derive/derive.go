package derive

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"mneme/internal/embed"
	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/internal/text"
	"mneme/memory"
)

// Codes under which events are quarantined.
const (
	codeUnreadable = "unreadable" // the payload does not open or decode
	codePanicked   = "panicked"   // deriving from it panicked
)

// Deriver computes contributions. It follows the directory events that pass
// through it, so that it knows each namespace's space at each event.
type Deriver struct {
	keys *keyring.Keyring

	mu   sync.RWMutex
	raws map[events.ID]map[string]string
	open map[events.ID]*settings.Effective
	undo map[events.ID]map[string]string // raws before the last frame, where it changed spaces

	probe func(*events.Envelope) // tests make it panic; nil = none
}

// New starts from the namespaces of a state.
func New(keys *keyring.Keyring, v *projections.View) (*Deriver, error) {
	d := &Deriver{keys: keys, raws: map[events.ID]map[string]string{}, open: map[events.ID]*settings.Effective{}, undo: map[events.ID]map[string]string{}}
	for _, ns := range v.Namespaces() {
		for _, at := range ns.Settings {
			env, _, err := v.Envelope(at)
			if err != nil {
				return nil, err
			}
			if err := d.follow(&env); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// KeysIndex is an index such that a keyring that stands there has every key of what
// was derived.
func (d *Deriver) KeysIndex() uint64 { return d.keys.Machine().ChangedAt() }

// follow takes note of a directory event. It must see them in log order.
func (d *Deriver) follow(env *events.Envelope) error {
	switch {
	case env.Type == events.TypeNamespaceCreated, env.Type == events.TypeNamespaceChanged, env.Type.OfSpace():
	default:
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	raw := d.raws[env.Namespace]
	if raw == nil {
		raw = map[string]string{}
		d.raws[env.Namespace] = raw
	}
	if _, known := d.undo[env.Namespace]; env.Type.OfSpace() && !known {
		d.undo[env.Namespace] = maps.Clone(raw)
	}
	if err := settings.Open(d.keys, env, raw); err != nil {
		return err
	}
	d.open[env.Namespace] = settings.Resolve(raw)
	return nil
}

// Undo takes back what the last frame did to namespaces' spaces, because it
// did not get into the log. What follows must be derived as a replay will.
func (d *Deriver) Undo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ns, raw := range d.undo {
		d.raws[ns], d.open[ns] = raw, settings.Resolve(raw)
	}
	clear(d.undo)
}

func (d *Deriver) effective(ns events.ID) *settings.Effective {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.open[ns]
}

// Frame derives the contributions of all events of a frame. contents, if not
// nil, holds what the leader sealed into each event, to spare opening it.
func (d *Deriver) Frame(f *events.Frame, contents []*events.Content) ([]*projections.Contribution, error) {
	d.mu.Lock()
	clear(d.undo)
	d.mu.Unlock()
	envs := make([]events.Envelope, len(f.Events))
	sets := make([]*settings.Effective, len(f.Events)) // as each event finds them
	bad := make([]bool, len(f.Events))
	out := make([]*projections.Contribution, len(f.Events))
	for i, raw := range f.Events {
		env, err := events.DecodeEnvelope(raw)
		if events.IsForeign(err) {
			return nil, err
		}
		envs[i], bad[i] = env, err != nil
		if err != nil {
			continue
		}
		switch err := d.followed(&env); {
		case errors.Is(err, errPanicked):
			bad[i], out[i] = true, &projections.Contribution{Code: codePanicked}
		case errors.Is(err, keyring.ErrSealBroken), errors.Is(err, events.ErrMalformed):
			bad[i], out[i] = true, &projections.Contribution{Code: codeUnreadable}
		case err != nil:
			return nil, fmt.Errorf("frame %d event %d: %w", f.Seq, i, err)
		}
		sets[i] = d.effective(env.Namespace)
	}
	err := Parallel(len(envs), func(i int) error {
		if bad[i] {
			return nil
		}
		var known *events.Content
		if contents != nil {
			known = contents[i]
		}
		c, err := d.recovered(&envs[i], sets[i], known)
		if err != nil {
			return fmt.Errorf("frame %d event %d (%s): %w", f.Seq, i, envs[i].Header.String(), err)
		}
		out[i] = c
		return nil
	})
	return out, err
}

// recovered is event for an input that makes it panic: the event is quarantined.
// Derivation is pure, so each replica and each replay comes to the same; without
// this, one event of the log would end the process at every start.
func (d *Deriver) recovered(env *events.Envelope, set *settings.Effective, known *events.Content) (c *projections.Contribution, err error) {
	defer func() {
		if recover() != nil {
			c, err = &projections.Contribution{Code: codePanicked}, nil
		}
	}()
	if d.probe != nil {
		d.probe(env)
	}
	return d.event(env, set, known)
}

var errPanicked = errors.New("deriving from it panicked")

// followed is follow for an input that makes it panic.
func (d *Deriver) followed(env *events.Envelope) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	if d.probe != nil {
		d.probe(env)
	}
	return d.follow(env)
}

// event derives one event. A key that was destroyed gives no contribution; one
// that is missing without having been destroyed is damage, and an error.
func (d *Deriver) event(env *events.Envelope, set *settings.Effective, known *events.Content) (*projections.Contribution, error) {
	switch env.Type {
	case events.TypeCaptured, events.TypeRevised:
	case events.TypeVectorsAttached:
		return d.attached(env, set)
	case events.TypeGraphChanged:
		return d.graph(env)
	case events.TypeNamespaceCreated:
		return about(set.SpaceKey()), nil
	case events.TypeSpaceBuilding, events.TypeSpaceSwitched, events.TypeSpaceDropped:
		return d.space(env)
	default:
		return nil, nil
	}
	key, err := d.keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", env.Key[:], err)
	}
	content := known
	if content == nil {
		c, err := OpenContent(key, env)
		if events.IsForeign(err) {
			return nil, err
		}
		if err != nil {
			return &projections.Contribution{Code: codeUnreadable}, nil
		}
		content = c
	}
	// Nothing is derived in a namespace that is destroyed, whatever the event's key.
	if _, err := d.keys.Namespace(env.Namespace); settings.IsErased(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("keys of namespace %s: %w", env.Namespace, err)
	}
	return contribute(env, set, content), nil
}

// OpenContent opens a captured or revised payload.
func OpenContent(key *keyring.DataKey, env *events.Envelope) (*events.Content, error) {
	payload, err := openPayload(key, env)
	if err != nil {
		return nil, err
	}
	c, err := events.DecodeContent(payload)
	return &c, err
}

// openPayload opens a payload and gives it the form of the newest schema.
func openPayload(key *keyring.DataKey, env *events.Envelope) ([]byte, error) {
	payload, err := key.Open(nil, settings.Identity(env.Event), env.AppendHeader(nil), env.Payload)
	if err != nil {
		return nil, err
	}
	return events.Upcast(env.Type, env.Schema, payload)
}

// OpenRead opens the payload of a memory.read.
func OpenRead(key *keyring.DataKey, env *events.Envelope) (events.Read, error) {
	payload, err := openPayload(key, env)
	if err != nil {
		return events.Read{}, err
	}
	return events.DecodeRead(payload)
}

func contribute(env *events.Envelope, set *settings.Effective, c *events.Content) *projections.Contribution {
	out := &projections.Contribution{}
	words := wordsPool.Get().(*[]text.Word)
	whole := text.AnalyzeInto(*words, c.Text)
	defer giveBack(words, whole.Words)
	terms := termCounter{terms: make([]index.Term, 0, len(whole.Words)+8)}
	terms.addText(whole)
	for _, t := range WhoTerms(env, c) {
		terms.add(index.FieldWho, t)
	}
	for _, tag := range c.Tags {
		for _, t := range text.AnalyzeTag(tag) {
			terms.add(index.FieldTags, t)
		}
	}
	for _, t := range text.AnalyzeURI(c.URI) {
		terms.add(index.FieldURI, t)
	}
	out.Terms, out.Lengths = terms.count(), terms.lengths
	out.Attrs, out.URI = attributes(c), uriPath(c.URI)
	if set == nil {
		return out
	}
	out.SpaceVectors = vectors(env, whole, set.Space)
	if set.IsBuilding() {
		out.Next = vectors(env, whole, set.Next)
	}
	return out
}

// wordsPool keeps room for the words of a text, which are half of what a contribution
// takes and are needed no longer than it is made.
var wordsPool = sync.Pool{New: func() any { return new([]text.Word) }}

// keptWords bounds the room that is kept, in words of 64 bytes.
const keptWords = 4096

// giveBack puts room back, without the words in it.
func giveBack(to *[]text.Word, words []text.Word) {
	if cap(words) > keptWords {
		return
	}
	clear(words)
	*to = words
	wordsPool.Put(to)
}

// uriPath bounds the path that a memory is found by. One that no capture could
// have is dropped: the memory is named by its id.
func uriPath(full string) string {
	path := memory.URIPath(full)
	if len(path) > memory.MaxURIBytes {
		return ""
	}
	return path
}

// attributes are what the payload says of a memory beside its text.
func attributes(c *events.Content) []projections.AttrKey {
	var out []projections.AttrKey
	for _, tag := range c.Tags {
		out = append(out, projections.Attr(projections.AttrTag, text.Fold(tag)))
	}
	if c.Conversation != "" {
		out = append(out, projections.Attr(projections.AttrConversation, c.Conversation))
	}
	for _, id := range c.DerivedFrom {
		out = append(out, projections.Attr(projections.AttrDerivedFrom, string(id[:])))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// vectors embeds each chunk for a space of a built-in model, and only counts the
// chunks for any other.
func vectors(env *events.Envelope, whole text.Analysis, space embed.Space) projections.SpaceVectors {
	out := projections.SpaceVectors{Space: settings.KeyOf(space)}
	if out.Space.IsZero() {
		return out
	}
	chunks := text.Chunks(whole.Text, text.DefaultChunkTokens, text.DefaultChunkOverlap)
	out.Chunks = uint32(len(chunks))
	if model, ok := embed.Builtin(space); ok {
		out.Vectors = smallRows(builtinVectors(model, env.Agent, whole, chunks))
	}
	return out
}

// BuiltinVectors gives the vectors of a text's chunks in the space of a built-in
// model, as derivation makes them; false if the space is another's.
func BuiltinVectors(space embed.Space, agent, s string) ([][]int8, bool) {
	model, ok := embed.Builtin(space)
	if !ok {
		return nil, false
	}
	return builtinVectors(model, agent, text.NewAnalysis(s), text.Chunks(s, text.DefaultChunkTokens, text.DefaultChunkOverlap)), true
}

// builtinVectors embeds the chunks of a text.
func builtinVectors(model embed.BuiltinModel, agent string, whole text.Analysis, chunks []text.Chunk) [][]int8 {
	// Who said it helps a vector without meaning more than it costs.
	speaker := text.NewAnalysis(agent + ":")
	out := make([][]int8, len(chunks))
	for i, ch := range chunks {
		piece := whole
		if ch.Text != whole.Text {
			piece = text.NewAnalysis(ch.Text)
		}
		out[i] = make([]int8, model.Space.Dimensions)
		model.Embed(out[i], speaker, piece)
	}
	return out
}

// smallRows gives vectors of bytes the form that rows hold.
func smallRows(small [][]int8) [][]byte {
	var out [][]byte
	for _, q := range small {
		row := make([]byte, 1, 1+len(q))
		row[0] = events.VectorsSmall
		for _, x := range q {
			row = append(row, byte(x))
		}
		out = append(out, row)
	}
	return out
}

// floatRows is smallRows for floats.
func floatRows(vectors [][]float32) [][]byte {
	var out [][]byte
	for _, v := range vectors {
		row := make([]byte, 1, 1+4*len(v))
		row[0] = events.VectorsFloat
		for _, x := range v {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
		}
		out = append(out, row)
	}
	return out
}

// space tells the fold which space an event is about.
func (d *Deriver) space(env *events.Envelope) (*projections.Contribution, error) {
	space, err := settings.OpenSpace(d.keys, env)
	if err != nil {
		return nil, err
	}
	return about(settings.KeyOf(space)), nil
}

func about(space projections.SpaceKey) *projections.Contribution {
	return &projections.Contribution{SpaceVectors: projections.SpaceVectors{Space: space}}
}

// attached takes a vectors.attached payload apart into chunk vectors.
func (d *Deriver) attached(env *events.Envelope, set *settings.Effective) (*projections.Contribution, error) {
	key, err := d.keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("key %x: %w", env.Key[:], err)
	}
	payload, err := key.Open(nil, settings.Identity(env.Event), env.AppendHeader(nil), env.Payload)
	if err != nil {
		return &projections.Contribution{Code: codeUnreadable}, nil
	}
	payload, err = events.Upcast(env.Type, env.Schema, payload)
	if events.IsForeign(err) {
		return nil, err
	}
	v, err := events.DecodeVectors(payload)
	if err != nil || set == nil {
		return &projections.Contribution{Code: codeUnreadable}, nil
	}
	out := &projections.Contribution{}
	if raw, err := hex.DecodeString(v.Space); err == nil {
		copy(out.Space[:], raw)
	}
	space, known := set.SpaceOf(out.Space)
	switch {
	case !known || space.ID() != v.Space: // dropped while this was on its way
		return &projections.Contribution{}, nil
	case space.Dimensions != v.Dimensions():
		return &projections.Contribution{Code: codeUnreadable}, nil
	}
	out.Chunks = uint32(len(v.Chunks) + len(v.Small))
	out.Vectors = append(smallRows(v.Small), floatRows(v.Chunks)...)
	return out, nil
}
