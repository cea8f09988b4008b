package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"mneme/memory"
)

const (
	coolDown    = 30 * time.Second // in which the same event counts once
	together    = 5 * time.Second  // in which hooks that are told the same run for one event
	maxSessions = 64
	maxGiven    = 256 // memories that are known to stand in a conversation, and texts
	// maxLasting is for how many prompts they are taken to stand there: not every host, in
	// every version, tells that it compacts.
	maxLasting = 50
	maxCooling = 512
	// maxCaptures is how many texts of one exchange, a prompt and its reply, are kept.
	maxCaptures = 3

	stateName = "state"
)

// state is what hooks know of one another. Losing it costs a repetition.
type state struct {
	Cooling  map[string]time.Time `json:"cooling,omitempty"` // events by key, until when
	Sessions map[string]*session  `json:"sessions,omitempty"`
	// Alone is until when nodes that were slow to fail are left alone, by nodeKey.
	Alone map[string]time.Time `json:"alone,omitempty"`
	// Held is until when what a node that answers did not take is not tried again, by nodeKey, unless
	// there is something new.
	Held map[string]time.Time `json:"held,omitempty"`
	// Spooled is how many bytes the spool has at most; what was sent since it was counted is among them.
	Spooled int64  `json:"spooled,omitempty"`
	Sealed  int64  `json:"sealed,omitempty"` // and what of it does not open had when it was counted
	Counts  Counts `json:"counts"`
}

// Counts is what became of captures that were not simply stored, since the folder was made.
type Counts struct {
	Cooled   int `json:"cooled"`   // the same event within 30 s
	Over     int `json:"over"`     // more than three in an exchange
	Refused  int `json:"refused"`  // the spool was full
	Repeated int `json:"repeated"` // the same text was there, and counts once more
	Linked   int `json:"linked"`   // nearly the same text was there, and is named
}

// session is a conversation.
type session struct {
	At       time.Time `json:"at"`
	Within   bool      `json:"within,omitempty"` // it is a subagent's
	Turn     string    `json:"turn,omitempty"`
	Captured int       `json:"captured,omitempty"` // in this exchange
	Kept     []string  `json:"kept,omitempty"`     // keys of what they were
	Prompt   string    `json:"prompt,omitempty"`   // the last one, without secrets
	Pending  bool      `json:"pending,omitempty"`  // nothing was recalled for it yet
	Given    []string  `json:"given,omitempty"`    // memories that were put into it
	Said     []string  `json:"said,omitempty"`     // texts that are kept and were said in it, by markOf
	Lasting  int       `json:"lasting,omitempty"`  // prompts since the first of either
	Summary  string    `json:"summary,omitempty"`  // what its last compaction left in its context, by markOf
}

// change reads the state, has f change it, and writes it.
func (d *Disk) change(ctx context.Context, now time.Time, f func(*state) error) error {
	return d.locked(ctx, func() error {
		s := d.state()
		if err := f(s); err != nil {
			return err
		}
		s.prune(now)
		return d.save(stateName, s)
	})
}

// state reads what there is. A state that is damaged is as good as none.
func (d *Disk) state() *state {
	s := &state{}
	if d.load(stateName, s) != nil {
		s = &state{}
	}
	if s.Cooling == nil {
		s.Cooling = map[string]time.Time{}
	}
	if s.Alone == nil {
		s.Alone = map[string]time.Time{}
	}
	if s.Held == nil {
		s.Held = map[string]time.Time{}
	}
	if s.Sessions == nil {
		s.Sessions = map[string]*session{}
	}
	return s
}

// Counts reads the counts.
func (d *Disk) Counts() Counts { return d.state().Counts }

// cool reports whether an event with the key was seen in the last 30 s, and notes it.
func (s *state) cool(key string, now time.Time) bool {
	if within(s.Cooling[key], now, coolDown) {
		return true
	}
	s.Cooling[key] = now.Add(coolDown)
	return false
}

// claimed reports whether another hook has what was told, and claims it where none has: a host with
// entries for the user and for the project runs two for one event.
func (s *state) claimed(told string, now time.Time) bool {
	if within(s.Cooling[told], now, together) {
		return true
	}
	s.Cooling[told] = now.Add(together)
	return false
}

// toldAs is all that a host told, without secrets.
func toldAs(e *Event) string {
	b, _ := json.Marshal(e) // of strings and flags
	return "told " + string(b)
}

// leftAlone reports whether a node is for now.
func (s *state) leftAlone(addr string, now time.Time) bool {
	return within(s.Alone[nodeKey(addr)], now, aloneFor)
}

// held reports whether what waits for a node is not tried again for now.
func (s *state) held(addr string, now time.Time) bool {
	return within(s.Held[nodeKey(addr)], now, aloneFor)
}

// heldUp is how much earlier than another hook one may have looked at the clock, though it comes
// behind it: it waits for the lock, and for its turn at the processor.
const heldUp = 2 * lockPatience

// within reports whether until is ahead, and no further than it can be: a clock that was ahead
// and was set back switches nothing off.
func within(until, now time.Time, longest time.Duration) bool {
	return now.Before(until) && until.Sub(now) <= longest+heldUp
}

// session returns the conversation of an event. A subagent has a context of its own, and sees nothing of what
// stands in the other.
func (s *state) session(e *Event, now time.Time) *session {
	id := sessionKey(e)
	one := s.Sessions[id]
	if one == nil {
		one = &session{Within: e.Within != ""}
		s.Sessions[id] = one
	}
	one.At = now
	return one
}

// sessionKey is as long for an event of any length.
func sessionKey(e *Event) string { return key(e.Agent, first(e.Session, e.Dir), e.Within) }

// exchange begins another one where the event does.
func (one *session) exchange(e *Event) {
	if e.Turn != "" && e.Turn == one.Turn || e.Turn == "" && e.Kind != Prompt {
		return
	}
	one.Turn, one.Captured, one.Kept = e.Turn, 0, nil
}

// renews reports whether a host begins its context anew, or tells that it is about to, or did. A
// host that begins a session behind a compaction told it by that.
func renews(e *Event) bool {
	return e.Kind == SessionStart || e.Kind == CompactBefore || e.Kind == CompactAfter && e.Agent != ClaudeCode && e.Agent != Codex
}

// age forgets what stood in the context where that may be gone. A host that takes text behind
// its tools is given what fits the last prompt once more.
func (one *session) age(e *Event) {
	// They stood in another context. One that begins under a name of its own has had none: Copilot may tell its
	// first prompt before it.
	if e.Kind == SessionStart && (e.Session == "" || e.Source == "clear") {
		one.Prompt, one.Pending, one.Summary = "", false, ""
	}
	if e.Kind == Prompt && len(one.Given)+len(one.Said) > 0 {
		one.Lasting++
	}
	if !renews(e) && one.Lasting <= maxLasting {
		return
	}
	one.Given, one.Said, one.Lasting = nil, nil, 0
	if e.Kind == CompactBefore || e.Kind == CompactAfter {
		one.Pending = one.Prompt != ""
	}
}

// prune forgets what is over.
func (s *state) prune(now time.Time) {
	for key, until := range s.Cooling {
		if !now.Before(until) || len(s.Cooling) > maxCooling {
			delete(s.Cooling, key)
		}
	}
	for _, nodes := range []map[string]time.Time{s.Alone, s.Held} {
		maps.DeleteFunc(nodes, func(_ string, until time.Time) bool { return !within(until, now, aloneFor) })
	}
	for _, within := range []bool{false, true} { // subagents are many, and push no conversation out
		ids := slices.SortedFunc(maps.Keys(s.Sessions), func(a, b string) int { return s.Sessions[b].At.Compare(s.Sessions[a].At) })
		ids = slices.DeleteFunc(ids, func(id string) bool { return s.Sessions[id].Within != within })
		for _, id := range ids[min(len(ids), maxSessions):] {
			delete(s.Sessions, id)
		}
	}
	for _, one := range s.Sessions {
		one.Given = one.Given[max(0, len(one.Given)-maxGiven):]
		one.Said = one.Said[max(0, len(one.Said)-maxGiven):]
	}
}

// give notes that memories stand in the conversation now.
func (one *session) give(ids []string) {
	for _, id := range ids {
		if !slices.Contains(one.Given, id) {
			one.Given = append(one.Given, id)
		}
	}
}

// say notes that a text stands in the conversation, since it was said there.
func (one *session) say(text string) {
	if mark := markOf(text); !slices.Contains(one.Said, mark) {
		one.Said = append(one.Said, mark)
	}
}

// markOf identifies a memory by as much of its text as a search for a prompt is answered with.
func markOf(text string) string {
	n := memory.MaxSnippetRunes
	begins, _ := (&memory.Fit{MaxText: &n}).Text(text)
	return key(begins)
}

// key identifies texts without holding them.
func key(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
