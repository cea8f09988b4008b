// Package settings gives a namespace's settings their meaning: which there
// are, what they may hold, what the defaults are, and how they follow from the
// events that set them.
//
// Settings are sealed under the cluster key. A Cache opens them and remembers
// the result as long as no new event changes it.
package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme/internal/embed"
	"mneme/internal/projections"
	"mneme/memory"
)

// Names of the settings. Names under "embedder." are chosen at creation, but
// for KeepOld and MinRecall; a switch changes them by an event of its own.
const (
	VectorWeight       = "search.vector_weight"
	TextWeight         = "search.text_weight"
	MinScore           = "search.min_score"
	Aliases            = "search.aliases"   // other names for one thing, see aliases
	Captures           = "captures"         // Off: nothing is captured or revised
	Searches           = "searches"         // Off: nothing is searched
	AuditInjections    = "audit.injections" // On: reads for a prompt are audited
	EmbedderProvider   = "embedder.provider"
	EmbedderModel      = "embedder.model"
	EmbedderDimensions = "embedder.dimensions"
	KeepOld            = "embedder.keep_old"   // how long a space is kept after a switch
	MinRecall          = "embedder.min_recall" // what a search of a new space must find of the nearest
	EmbedderSpace      = "embedder.space"      // JSON of the embed.Space that the choice came to
)

// DefaultMinScore is the floor of a namespace that sets none (decision 0039).
const DefaultMinScore = 0.25

// retired are settings that mean nothing any more. A namespace may still have them: they
// are shown and may be reset, and change nothing.
var retired = []string{"search.fusion", "search.candidate_multiplier", "search.conversation", "search.calibration"}

// PartSetting is the name of the setting that switches a part of a search.
func PartSetting(p memory.Part) string { return "search." + string(p) }

// Values of a switch.
const (
	On  = "on"
	Off = "off"
)

// Effective is what a namespace's settings come to.
type Effective struct {
	VectorWeight float64
	TextWeight   float64
	MinScore     float64
	Parts        map[memory.Part]bool // all of them; each is on unless its setting says Off
	Space        embed.Space          // zero when the namespace has no embedder
	Aliases      [][]string           // groups of names for one thing
	Raw          map[string]string

	Next      embed.Space             // the space being built; zero = none
	Kept      []KeptSpace             // those before, oldest first
	KeepOld   time.Duration           // how long they stay
	MinRecall float64                 // of a search of the next space, for a switch to it
	Compared  *memory.SpaceComparison // what the last switch found; nil = there was none
}

// HasVectors reports whether the namespace has a vector space.
func (e *Effective) HasVectors() bool { return e.Space.Provider != "" }

// SpaceKey is the short form of the namespace's space in row keys.
func (e *Effective) SpaceKey() projections.SpaceKey {
	return KeyOf(e.Space)
}

// maxFactor keeps one source from drowning what the other says.
const maxFactor = 3

// Factors are what the weights of words and of vectors in a search are multiplied with: 1
// unless the namespace favours one of them. Vectors of hashes count half of those of the
// built-in model that knows meaning, with which the weights were chosen.
func (e *Effective) Factors() (text, vector float64) {
	usual := defaultVectorWeight(e.Space)
	if e.TextWeight+e.VectorWeight <= 0 {
		return 1, usual / max(usual, staticVectorWeight)
	}
	return min(e.TextWeight/(1-usual), maxFactor), min(e.VectorWeight/max(usual, staticVectorWeight), maxFactor)
}

// Info is the public form of the namespace's embedder.
func (e *Effective) Info() memory.EmbedderInfo {
	return InfoOf(e.Space)
}

// InfoOf is the public form of a space.
func InfoOf(s embed.Space) memory.EmbedderInfo {
	if s.Provider == "" {
		return memory.EmbedderInfo{Provider: embed.ProviderNone}
	}
	return memory.EmbedderInfo{Provider: s.Provider, Model: s.Model, Dimensions: s.Dimensions, Space: s.ID()}
}

// Audits reports whether reads of a purpose are noted in the audit log.
func (e *Effective) Audits(p memory.Purpose) bool {
	return p == memory.PurposeInject && e.Raw[AuditInjections] == On
}

// Refuses is the answer where a namespace has switched Captures or Searches off; nil where it
// has not. What takes memories away, reads them by id or changes settings is never switched off.
func (e *Effective) Refuses(what, namespace string) *memory.Error {
	if e.Raw[what] != Off {
		return nil
	}
	return memory.Errorf(memory.CodeForbidden, "%s are switched off in namespace %q", what, namespace).
		WithHint("who operates the node has a reason, and takes them again: ask there, and do not send it again meanwhile")
}

// check says what a setting may hold.
type check func(value string) error

func number(lo, hi float64) check {
	return func(v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= lo && f <= hi) {
			return memory.Errorf(memory.CodeInvalid, "must be a number from %g to %g", lo, hi)
		}
		return nil
	}
}

func whole(lo, hi int) check {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < lo || n > hi {
			return memory.Errorf(memory.CodeInvalid, "must be a whole number from %d to %d", lo, hi)
		}
		return nil
	}
}

func oneOf(values ...string) check {
	return func(v string) error {
		if !slices.Contains(values, v) {
			return memory.Errorf(memory.CodeInvalid, "must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

var table = map[string]check{
	VectorWeight:    number(0, 1),
	TextWeight:      number(0, 1),
	MinScore:        number(0, 1),
	Aliases:         aliases,
	Captures:        oneOf(On, Off),
	Searches:        oneOf(On, Off),
	AuditInjections: oneOf(On, Off),
	KeepOld:         keeping,
	MinRecall:       number(0, 1),

	PartSetting(memory.PartNeighbours): oneOf(On, Off),
	PartSetting(memory.PartSpeaker):    oneOf(On, Off),
	PartSetting(memory.PartDates):      oneOf(On, Off),
	PartSetting(memory.PartVocabulary): oneOf(On, Off),
	PartSetting(memory.PartOpening):    oneOf(On, Off),
	PartSetting(memory.PartRecent):     oneOf(On, Off),
	PartSetting(memory.PartNewer):      oneOf(On, Off),
}

var creationTable = map[string]check{
	EmbedderProvider:   oneOf(embed.ProviderAuto, embed.ProviderBuiltin, embed.ProviderLocal, embed.ProviderOllama, embed.ProviderOpenAI, embed.ProviderGemini, embed.ProviderNone),
	EmbedderModel:      func(string) error { return nil },
	EmbedderDimensions: whole(1, 16384),
}

// Check validates settings that a user gives. At creation the embedder may be
// chosen as well.
func Check(set map[string]string, creating bool) *memory.Error {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		c, ok := table[name]
		if !ok {
			c, ok = creationTable[name]
			if ok && !creating {
				return memory.Errorf(memory.CodeInvalid, "%s is chosen when the namespace is created", name)
			}
		}
		if !ok {
			return memory.Errorf(memory.CodeInvalid, "setting %q is unknown", clip(name)).WithHint("settings are %s", strings.Join(names(), ", "))
		}
		if err := c(set[name]); err != nil {
			return memory.Errorf(memory.CodeInvalid, "setting %s: %q %v", name, clip(set[name]), err)
		}
	}
	return nil
}

// CheckReset validates names of settings to be reset.
func CheckReset(reset []string) *memory.Error {
	for _, name := range reset {
		if _, ok := table[name]; !ok && !slices.Contains(retired, name) {
			return memory.Errorf(memory.CodeInvalid, "setting %q is unknown or cannot be reset", clip(name)).WithHint("settings are %s", strings.Join(names(), ", "))
		}
	}
	return nil
}

func clip(s string) string { return s[:min(len(s), 60)] }

func names() []string { return slices.Sorted(maps.Keys(table)) }

// Default weights of vectors beside text: what measured best, see
// docs/benchmarks.md. The more a model knows of meaning, the more it weighs.
const (
	hashVectorWeight    = 0.1 // built-in hashing
	staticVectorWeight  = 0.2 // other built-in models
	outsideVectorWeight = 0.7 // not measured here: there is no such model to measure
)

func defaultVectorWeight(s embed.Space) float64 {
	switch {
	case !embed.IsBuiltin(s.Provider):
		return outsideVectorWeight
	case s.Model == "" || s.Model == embed.ModelHash:
		return hashVectorWeight
	}
	return staticVectorWeight
}

// Resolve gives raw settings their meaning.
func Resolve(raw map[string]string) *Effective {
	e := &Effective{Raw: raw}
	e.resolveSpaces(raw)
	e.VectorWeight = defaultVectorWeight(e.Space)
	e.TextWeight = 1 - e.VectorWeight
	float := func(name string, dst *float64) bool {
		v, err := strconv.ParseFloat(raw[name], 64)
		if raw[name] != "" && err == nil {
			*dst = v
			return true
		}
		return false
	}
	vector, text := float(VectorWeight, &e.VectorWeight), float(TextWeight, &e.TextWeight)
	switch {
	case vector && !text:
		e.TextWeight = 1 - e.VectorWeight
	case text && !vector:
		e.VectorWeight = 1 - e.TextWeight
	}
	if sum := e.VectorWeight + e.TextWeight; sum > 0 {
		e.VectorWeight, e.TextWeight = e.VectorWeight/sum, e.TextWeight/sum
	}
	e.MinScore = DefaultMinScore
	float(MinScore, &e.MinScore)
	float(MinRecall, &e.MinRecall)
	e.Aliases = aliasGroups(raw[Aliases])
	e.Parts = make(map[memory.Part]bool, len(memory.Parts))
	for _, p := range memory.Parts {
		e.Parts[p] = raw[PartSetting(p)] != Off
	}
	return e
}

// EncodeSpace is the value of the EmbedderSpace setting.
func EncodeSpace(s embed.Space) string {
	b, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(b)
}
