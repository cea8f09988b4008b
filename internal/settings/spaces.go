package settings

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Raw settings that only the events of spaces make, beside EmbedderSpace.
const (
	embedderNext     = "embedder.next"     // JSON of the embed.Space that is being built
	embedderKept     = "embedder.kept"     // JSON of []KeptSpace
	embedderCompared = "embedder.compared" // JSON of the memory.SpaceComparison of the last switch
)

// Bounds of KeepOld. A search that is under way may need the old space a little
// longer than the switch.
const (
	defaultKeepOld = 24 * time.Hour
	minKeepOld     = time.Minute
	maxKeepOld     = 366 * 24 * time.Hour
)

// defaultMinRecall lies below what the recall guard asks of a graph: it is there
// to notice a space that is broken.
const defaultMinRecall = 0.9

// KeptSpace is a space that the namespace had before.
type KeptSpace struct {
	Space embed.Space `json:"space"`
	Since int64       `json:"since"` // sealed_at of the switch away from it, ns
}

// KeyOf is the short form of a space in row keys; zero for no space.
func KeyOf(s embed.Space) (k projections.SpaceKey) {
	if s.Provider != "" {
		if raw, err := hex.DecodeString(s.ID()); err == nil {
			copy(k[:], raw)
		}
	}
	return k
}

// Internal reports whether a raw setting is the node's own and not shown among
// a namespace's settings.
func Internal(name string) bool {
	return slices.Contains([]string{EmbedderSpace, embedderNext, embedderKept, embedderCompared}, name)
}

// Spaces lists the spaces in which the namespace has or gets vectors: the
// current one, the one being built, those that are kept.
func (e *Effective) Spaces() []embed.Space {
	var out []embed.Space
	for _, s := range []embed.Space{e.Space, e.Next} {
		if s.Provider != "" {
			out = append(out, s)
		}
	}
	for _, k := range e.Kept {
		out = append(out, k.Space)
	}
	return out
}

// SpaceOf finds one of Spaces by its key.
func (e *Effective) SpaceOf(key projections.SpaceKey) (embed.Space, bool) {
	for _, s := range e.Spaces() {
		if KeyOf(s) == key {
			return s, true
		}
	}
	return embed.Space{}, false
}

// IsBuilding reports whether a space is being built.
func (e *Effective) IsBuilding() bool { return e.Next.Provider != "" }

// SpaceEvent makes the payload of an event about a space.
func SpaceEvent(s embed.Space, compared *memory.SpaceComparison) events.Settings {
	set := events.Settings{Set: map[string]string{EmbedderSpace: EncodeSpace(s)}}
	if compared != nil {
		if b, err := json.Marshal(compared); err == nil {
			set.Set[embedderCompared] = string(b)
		}
	}
	return set
}

// resolveSpaces reads what the events of spaces left.
func (e *Effective) resolveSpaces(raw map[string]string) {
	// Written by this package; zero if not.
	decode := func(name string, dst any) {
		if raw[name] != "" {
			_ = json.Unmarshal([]byte(raw[name]), dst)
		}
	}
	decode(EmbedderSpace, &e.Space)
	decode(embedderNext, &e.Next)
	decode(embedderKept, &e.Kept)
	if raw[embedderCompared] != "" {
		e.Compared = &memory.SpaceComparison{}
		decode(embedderCompared, e.Compared)
	}
	e.KeepOld, e.MinRecall = defaultKeepOld, defaultMinRecall
	if d, err := time.ParseDuration(raw[KeepOld]); err == nil {
		e.KeepOld = d
	}
}

func keeping(v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < minKeepOld || d > maxKeepOld {
		return memory.Errorf(memory.CodeInvalid, "must be a duration from %s to %s, such as 24h", minKeepOld, maxKeepOld)
	}
	return nil
}

// spaceOf is the space that an event's payload names; zero if it names none.
func spaceOf(s *events.Settings) (space embed.Space) {
	if json.Unmarshal([]byte(s.Set[EmbedderSpace]), &space) != nil {
		return embed.Space{}
	}
	return space
}

// followSpace applies an event of spaces to raw settings. What takes effect and
// what does not is as in the fold of package projections: both follow the log.
func followSpace(t events.Type, sealedAt int64, s *events.Settings, raw map[string]string) {
	space := spaceOf(s)
	if space.Provider == "" {
		return
	}
	var e Effective
	e.resolveSpaces(raw)
	key, kept := KeyOf(space), e.Kept
	isIt := func(k KeptSpace) bool { return KeyOf(k.Space) == key }
	switch {
	case t == events.TypeSpaceBuilding && !e.IsBuilding() && KeyOf(e.Space) != key:
		raw[embedderNext] = EncodeSpace(space)
		kept = slices.DeleteFunc(kept, isIt)
	case t == events.TypeSpaceSwitched && e.IsBuilding() && KeyOf(e.Next) == key:
		if e.HasVectors() {
			kept = append(kept, KeptSpace{e.Space, sealedAt})
		}
		delete(raw, embedderNext)
		delete(raw, EmbedderDimensions)
		raw[EmbedderSpace], raw[EmbedderProvider], raw[EmbedderModel] = EncodeSpace(space), space.Provider, space.Model
		delete(raw, embedderCompared)
		if c := s.Set[embedderCompared]; c != "" {
			raw[embedderCompared] = c
		}
	case t == events.TypeSpaceDropped && e.IsBuilding() && KeyOf(e.Next) == key:
		delete(raw, embedderNext)
	case t == events.TypeSpaceDropped:
		kept = slices.DeleteFunc(kept, isIt)
	default:
		return
	}
	delete(raw, embedderKept)
	if len(kept) > 0 {
		b, err := json.Marshal(kept)
		if err == nil { // plain data always encodes
			raw[embedderKept] = string(b)
		}
	}
}
