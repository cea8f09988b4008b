package hooks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/internal/project"
	"mneme/internal/recall"
	"mneme/memory"
)

const (
	// patience is how long a node may take where a host waits, and drainPatience where none does.
	patience      = time.Second
	drainPatience = 10 * time.Second
	// sendPatience is how long a hook sends: longer than a node may take for one capture, so that one
	// that does not answer is told from one for which there was no time.
	sendPatience = 3 * patience / 2

	// slow is how long a node that fails may take without being left alone for a while.
	slow     = 300 * time.Millisecond
	aloneFor = 10 * time.Second
)

// Node is what hooks need of a node.
type Node interface {
	Search(ctx context.Context, namespace string, req memory.SearchRequest) (memory.SearchResponse, error)
	CaptureBatch(ctx context.Context, namespace string, items []memory.Capture, opts client.CaptureOptions) (memory.CaptureResponse, error)
	List(ctx context.Context, namespace string, opts client.ListOptions) (memory.RecordList, error)
	Get(ctx context.Context, namespace, id string, opts client.GetOptions) (memory.Record, error)
	History(ctx context.Context, namespace, id string, opts client.ReadOptions) (memory.History, error)
	Revise(ctx context.Context, namespace, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error)
}

// Runner does what one hook has to. It is used once: Keep first, then Recall and Send, which may run
// at the same time.
type Runner struct {
	Node      Node
	Addr      string   // of the node, whole: what waits is for this one and goes to no other
	Was       []string // addresses that the node had before: what waits for those is for it, too
	Disk      *Disk
	Settings  Settings
	Namespace string        // "" where it is not known yet
	Place     *project.Seen // where it is to be looked for then, what is kept until that is known waits
	// Choose tells the namespace that a place has now; the error is the node's, or Undecided.
	Choose func(ctx context.Context, place project.Seen) (namespace string, err error)
	Agent  string // who acts
	Now    func() time.Time
	NewID  func() string        // never the same twice
	Note   func(string, ...any) // what a person may want to know; holds no text of an event
	Told   string               // what the user is told, where the host shows it
	begun  *begun
	why    error // what was sent last waits on
}

// begun is what is known of an event before the node is asked.
type begun struct {
	at      time.Time
	ask     string   // what to search for
	given   []string // what was given before
	said    []string // what was said before and is kept, by mark
	summary string   // the summary that the context begins with, by mark
	alone   bool     // the node is left alone for now
	twin    bool     // another hook was told the same a moment ago, and answers it
	crowded bool     // other hooks did not let go of the state
}

// LeftAlone reports that the node was slow to fail a moment ago, and is left alone.
func (r *Runner) LeftAlone() bool { return r.Disk.state().leftAlone(r.Addr, r.Now()) }

// Answers reports whether this hook keeps or recalls anything, and no other one answers the event. Keep was called before.
func (r *Runner) Answers() bool {
	return (r.Settings.Capture || r.Settings.Recall) && !r.begun.twin
}

// Recall returns the block of memories for an event, "" where there is nothing to say.
func (r *Runner) Recall(ctx context.Context, e *Event) string {
	b := r.begin(ctx, e)
	now, ask := b.at, b.ask
	if b.twin || ask == "" && !standing(e) || !r.Settings.Recall || r.Namespace == "" {
		return ""
	}
	made := Recalled{At: now, Namespace: r.Namespace, Agent: e.Agent, Event: e.Name, Query: first(clip(ask, maxJournalQuery), standingQuery), Hits: []RecalledHit{}}
	block := recall.Block{}
	if b.alone {
		made.Outcome = "node left alone"
	} else {
		block = r.search(ctx, e, b, &made)
	}
	r.remember(ctx, e, &made, block)
	return block.Text
}

// begin takes secrets out of the event and notes how far the conversation is, once.
func (r *Runner) begin(ctx context.Context, e *Event) *begun {
	if r.begun != nil {
		return r.begun
	}
	r.begun = &begun{at: r.Now()}
	r.clean(e)
	b, now := r.begun, r.begun.at
	if !e.Injects && !renews(e) && e.Kind != Prompt && e.Kind != TurnEnd {
		return b
	}
	err := r.Disk.change(ctx, now, func(s *state) error {
		one := s.session(e, now)
		if b.twin = s.claimed(key(r.Addr, r.Namespace, toldAs(e)), now); b.twin {
			return nil
		}
		one.exchange(e)
		one.age(e)
		if e.Kind == Prompt && !IsNoise(e.Prompt) {
			one.Prompt, one.Pending = clip(e.Prompt, maxQuery), !e.Injects
		}
		if !e.Injects {
			return nil
		}
		if b.ask = query(e, one); b.ask != "" && e.Kind != ToolFailed {
			one.Pending = false
		}
		b.given, b.said, b.summary, b.alone = slices.Clone(one.Given), slices.Clone(one.Said), one.Summary, s.leftAlone(r.Addr, now)
		return nil
	})
	if err != nil {
		r.Note("the state of hooks was not kept: %v%s", err, hintOf(err))
		b.crowded = errors.Is(err, errLocked)
		if e.Injects {
			b.ask = query(e, &session{})
		}
	}
	return b
}

// search asks the node, and leaves out what the conversation has already.
func (r *Runner) search(ctx context.Context, e *Event, b *begun, made *Recalled) recall.Block {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, r.silent(patience))
	defer cancel()
	began := time.Now()
	hits, refused, err := r.find(ctx, e, b.ask, len(b.given)+len(b.said)+1)
	made.TookMS, made.BestRefused = float64(time.Since(began).Microseconds())/1000, refused
	if err, own := whose(ctx, err); own {
		r.Note("recall: the hook's own time ended before the node had answered")
		made.Outcome = "out of time"
		return recall.Block{}
	} else if err != nil {
		r.failed(ctx, "recall", err, time.Since(began))
		made.Outcome = "failed: " + string(memory.CodeOf(err))
		return recall.Block{}
	}
	found, said := len(hits), justSaid(e, b.ask)
	hits = slices.DeleteFunc(hits, func(h memory.Hit) bool {
		return slices.Contains(b.given, h.ID) || slices.Contains(b.said, markOf(h.Text)) || b.summary != "" && b.summary == markOf(h.Text) || said(h)
	})
	fresh := len(hits)
	block := recall.Compose(hits, recall.DefaultLimit, r.Settings.Budget)
	made.Tokens = block.Tokens
	for _, u := range block.Used {
		made.Hits = append(made.Hits, RecalledHit(u))
	}
	switch {
	case block.Text != "":
		made.Outcome = "injected"
	case found == 0:
		made.Outcome = "nothing found"
	case fresh == 0:
		made.Outcome = "given before"
	default:
		made.Outcome = "no room"
	}
	return block
}

// find searches for the words, and behind what it finds puts what stands at the beginning of a
// conversation. given is how many memories may be left out of what it returns.
func (r *Runner) find(ctx context.Context, e *Event, ask string, given int) (hits []memory.Hit, refused float64, err error) {
	if words := bearing(ask); says(words) {
		limit, text := min(recall.Ask(recall.DefaultLimit)+given, 2*recall.Ask(recall.DefaultLimit)), memory.MaxSnippetRunes
		resp, err := r.Node.Search(ctx, r.Namespace, memory.SearchRequest{Query: words, Syntax: memory.SyntaxPlain, As: r.Agent, Limit: &limit, Purpose: memory.PurposeInject, Fit: memory.Fit{
			MaxText: &text, Fields: []string{"id", "uri", "text", "truncated", "snippet", "score", "occurred_at"}}})
		if err != nil {
			return nil, 0, err
		}
		hits, refused = resp.Results, resp.BestRefused
	}
	if standing(e) {
		more, err := r.stands(ctx)
		if err != nil {
			return nil, 0, err
		}
		for _, h := range more {
			if !slices.ContainsFunc(hits, func(have memory.Hit) bool { return have.ID == h.ID }) {
				hits = append(hits, h)
			}
		}
	}
	return hits, refused, nil
}

// remember writes the recall into the journal, and what it gave into the conversation.
func (r *Runner) remember(ctx context.Context, e *Event, made *Recalled, block recall.Block) {
	err := r.Disk.change(ctx, made.At, func(s *state) error {
		one := s.session(e, made.At)
		for _, u := range block.Used {
			one.give(append(u.Same, u.RecordID))
		}
		return r.Disk.journalLocked(*made)
	})
	if err != nil && r.Disk.unusable == nil { // which was said
		r.Note("the recall was not noted: %v", err)
	}
}

// errSilent is why a node was given up that did not answer.
var errSilent = errors.New("no answer")

func (r *Runner) silent(within time.Duration) error {
	return memory.Errorf(memory.CodeTimeout, "the node at %s did not answer within %s", r.Addr, within).WithCause(errSilent)
}

// whose tells why a call of a node failed: as it says where it answered or nobody was there to, that it
// did not answer in time, or that the time of who asked ended, which says nothing about the node.
func whose(ctx context.Context, err error) (reason error, own bool) {
	cause := context.Cause(ctx)
	switch {
	case err == nil, cause == nil:
		return err, false
	case errors.Is(cause, errSilent):
		return cause, false
	}
	return err, true
}

// hintOf is what a person may do about an error, as the log has it.
func hintOf(err error) string {
	if hint := memory.AsError(err).Hint; hint != "" {
		return " (" + hint + ")"
	}
	return ""
}

// failed notes that the node did not answer.
func (r *Runner) failed(ctx context.Context, what string, err error, took time.Duration) {
	r.Note("%s: %v%s", what, err, hintOf(err))
	r.LeaveAlone(ctx, err, took)
}

// LeaveAlone has a node that was slow to fail left alone for a while.
func (r *Runner) LeaveAlone(ctx context.Context, err error, took time.Duration) {
	if took < slow || memory.CodeOf(err) == memory.CodeInvalid {
		return
	}
	_ = r.Disk.change(context.WithoutCancel(ctx), r.Now(), func(s *state) error {
		s.Alone[nodeKey(r.Addr)] = r.Now().Add(aloneFor)
		return nil
	})
}

// Keep spools what is kept of an event, or has the node take what cannot be spooled, before anything else
// is waited for: a host that is gone when it is answered loses nothing.
func (r *Runner) Keep(ctx context.Context, e *Event) {
	r.begin(ctx, e)
	if !r.Settings.Capture {
		return
	}
	if all := keeps(e, r.Settings.Tools); len(all) > 0 {
		r.spool(ctx, e, all)
	}
}

func (r *Runner) clean(e *Event) {
	if found := clean(e, r.Settings.Emails); len(found) > 0 {
		slices.Sort(found)
		r.Note("%s %s: taken out: %s", e.Agent, e.Name, strings.Join(slices.Compact(found), ", "))
	}
}

// spool decides, together with what other hooks did, which texts are kept, and puts those into
// the spool; what cannot be spooled goes to the node. Where other hooks do not let go of the state, or it
// cannot be had at all, it is taken as it is: what happens at the same time may be kept twice, and counts as
// said twice then.
func (r *Runner) spool(ctx context.Context, e *Event, all []keep) {
	now, noted, err := r.Now(), false, errLocked
	var left []unspooled
	var why error
	if !r.begun.crowded {
		err = r.Disk.change(ctx, now, func(s *state) error {
			noted = true
			left, why = r.decide(s, e, all, now, r.Disk.spoolLocked)
			return nil
		})
	}
	if !noted {
		s := r.Disk.state()
		s.session(e, now).exchange(e)
		left, why = r.decide(s, e, all, now, r.Disk.spoolAlone)
	} else if err != nil {
		r.Note("the state of hooks was not kept: %v", err)
	}
	if len(left) > 0 {
		r.direct(ctx, left, why, noted)
	}
}

// decide has put spool what is kept of an event, and notes that in the state. It returns what was not
// spooled, and why.
func (r *Runner) decide(s *state, e *Event, all []keep, now time.Time, put func(*state, []Entry) (kept int, err error)) (left []unspooled, why error) {
	one := s.session(e, now)
	var entries []Entry
	over := 0
	for _, k := range all {
		id := r.keyOf(k.text)
		if k.class == summaryClass {
			one.Summary = markOf(k.text)
			r.begun.summary = one.Summary
		} else if e.Session != "" { // else it may be another conversation of the folder
			one.say(k.text)
		}
		switch {
		case slices.Contains(one.Kept, id): // the host told it twice
			continue
		case k.exchange && one.Captured >= maxCaptures:
			over++
			continue
		case s.cool(r.coolKey(e, &k), now):
			s.Counts.Cooled++
			continue
		}
		if k.exchange {
			one.Captured++
			one.Kept = append(one.Kept, id)
		}
		entry := r.entry(e, &k, now)
		entries = append(entries, entry)
		left = append(left, unspooled{entry, func(s *state) {
			delete(s.Cooling, r.coolKey(e, &k))
			if one := s.session(e, now); k.exchange && slices.Contains(one.Kept, id) {
				one.Captured--
				one.Kept = slices.DeleteFunc(one.Kept, func(is string) bool { return is == id })
			}
		}})
	}
	if over > 0 {
		s.Counts.Over += over
		r.Note("%s %s: %d texts beyond the %d of an exchange were not kept", e.Agent, e.Name, over, maxCaptures)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	kept, err := put(s, entries)
	if err == nil {
		return nil, nil
	}
	return left[kept:], err
}

// coolKey is what makes two events the same: of a tool its command, else the text.
func (r *Runner) coolKey(e *Event, k *keep) string {
	if k.role == "tool" {
		return r.keyOf(string(e.Kind), e.Command)
	}
	return r.keyOf(k.role, k.text)
}

// keyOf is the key of what would be the same memory: one for the team is not a private one.
func (r *Runner) keyOf(parts ...string) string {
	return key(append([]string{r.Addr, where(r.Namespace, r.Place), string(r.Settings.Scope)}, parts...)...)
}

// rememberTag is the class of what somebody asked to remember, and the tag of such memories.
const rememberTag = "remember"

// summaryClass is the class of what a compaction left.
const summaryClass = "summary"

// marks is what the metadata of a capture says, below "hook"; below "said" it says how often.
type marks struct {
	Host     string `json:"host"`
	Event    string `json:"event"`
	Trigger  string `json:"trigger"`
	Category string `json:"category"`
	Project  string `json:"project,omitempty"`
}

func (r *Runner) entry(e *Event, k *keep, now time.Time) Entry {
	at := now.UTC()
	nonce := r.NewID()
	tags := []string{"hook"}
	if k.class == rememberTag {
		tags = append(tags, rememberTag)
	}
	if k.category == "entity" {
		tags = append(tags, "entity")
	}
	item := memory.Capture{
		ID: firstID(r.Settings.Scope, k.kind, k.text), Agent: r.Agent, Text: k.text, Kind: k.kind, Role: k.role, Tags: tags,
		Conversation: conversation(e), Scope: r.Settings.Scope, OccurredAt: &at,
	}
	item.Metadata = likeness.Put(nil, "hook", marks{Host: e.Agent, Event: clip(e.Name, 64), Trigger: k.class, Category: k.category, Project: clip(projectName(e.Dir), 128)})
	item.Metadata = likeness.Said{Nonce: nonce}.In(item.Metadata)
	return Entry{Addr: r.Addr, Namespace: r.Namespace, Place: r.Place, Item: item, Nonce: nonce, At: at, Unread: r.Settings.unread}
}

// firstID is the id of what says a text first.
func firstID(scope memory.Scope, kind memory.Kind, text string) string {
	return "hook-" + key(string(scope), string(kind), text)
}

// conversation is the session as captures name it, without what they may not hold.
func conversation(e *Event) string {
	if e.Session == "" {
		return ""
	}
	s := strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || c == 0xfffd {
			return -1
		}
		return c
	}, e.Agent+"/"+e.Session)
	for len(s) > memory.MaxConversation {
		s = s[:memory.MaxConversation]
		s = strings.ToValidUTF8(s, "")
	}
	return s
}
