package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/memory"
)

type storeIn struct {
	Text         string   `json:"text" jsonschema:"what to remember: one thing, in words that can be understood alone, at most 256 KiB"`
	Kind         string   `json:"kind,omitempty" jsonschema:"what sort of thing it is; other unless said"`
	Tags         []string `json:"tags,omitempty" jsonschema:"words to find and group it by"`
	URI          string   `json:"uri,omitempty" jsonschema:"a path that names it, such as decisions/database: at most one living memory has it"`
	Conversation string   `json:"conversation,omitempty" jsonschema:"the conversation that it comes from"`
	Private      bool     `json:"private,omitempty" jsonschema:"only you can read it, not the team"`
	Importance   *float64 `json:"importance,omitempty" jsonschema:"0 to 1"`
	OccurredAt   string   `json:"occurred_at,omitempty" jsonschema:"when it happened, RFC 3339 or a day (2026-03-01); now unless said"`
	DerivedFrom  []string `json:"derived_from,omitempty" jsonschema:"ids of the memories that it was made from; whoever reads it sees them, also that of a private one"`
	ID           string   `json:"id,omitempty" jsonschema:"an id of your own: the same one is stored once, however often it is sent"`
}

// lookPatience is how long a store waits to hear whether the same is there already.
const lookPatience = 5 * time.Second

// store keeps a memory, or counts on the one that the agent has stored in the same words. An id of
// the caller's own says by itself what is the same, each time that it is sent: then nothing else is
// counted, nor changed. What is said of the text, and a memory there cannot take, makes one of its own.
func store(ctx context.Context, c Caller, in storeIn) (stored, string, error) {
	at, err := when("occurred_at", in.OccurredAt)
	if err != nil {
		return stored{}, "", err
	}
	item := memory.Capture{ID: in.ID, Agent: c.Agent, Text: in.Text, Kind: memory.Kind(in.Kind), URI: in.URI, Tags: in.Tags,
		Conversation: in.Conversation, Importance: in.Importance, OccurredAt: at}
	if from := added(nil, in.DerivedFrom, ""); from != nil {
		item.DerivedFrom = *from
	}
	if in.Private {
		item.Scope = memory.ScopeAgent
	}
	looked, cancel := context.WithTimeout(ctx, lookPatience)
	other, unknown := likeness.Find(looked, c.Client, c.Namespace, &item, func(h *memory.Hit) bool {
		return takes(c.Namespace, &memory.Record{URI: h.URI, Conversation: h.Conversation, OccurredAt: h.OccurredAt, Tags: h.Tags}, &item)
	})
	cancel()
	var out stored
	if in.ID == "" {
		out, err = say(ctx, c, item, other)
	} else {
		out, err = capture(ctx, c, &item)
		out.Like = likeOf(other, &item, out.ID)
	}
	if err != nil {
		return stored{}, "", err
	}
	text := out.text()
	if unknown != nil && out.Status == string(memory.StatusCreated) {
		text += fmt.Sprintf(" Whether the same was there already is not known: the search failed (%s).", memory.CodeOf(unknown))
	}
	return out, text, nil
}

// spentPatience is how long ids are looked through that were used for what is there no more.
const spentPatience = 20 * time.Second

// say counts an item on other, if that says the same, or stores it under an id that is made of what it
// says: of many who say it at once, and find nothing, one stores it, and the rest count on that. An
// id is spent for ever on what it was first used for. Where that was forgotten, says something else
// by now, or cannot take the item, the next id is made of it, the same one for all who come. An id
// by chance, which may store it twice, is for what has no end of them.
func say(ctx context.Context, c Caller, item memory.Capture, other *likeness.Other) (stored, error) {
	nonce := rand.Text()
	if other != nil && other.Same {
		out, err := again(ctx, c, other.ID, nonce, &item)
		switch {
		case errors.Is(err, errTakesNot):
		case isLost(err):
			other = nil // meanwhile
		default:
			return out, err
		}
	}
	k := keeping{Caller: c, plain: item, other: other}
	k.plain.Metadata = likeness.Said{Nonce: nonce}.In(nil)
	k.plain.ID = idOf(c.Namespace, &item)
	for began := time.Now(); time.Since(began) < spentPatience; {
		out, err := k.capture(ctx)
		switch {
		case client.Said(err) == memory.CodeGone:
			if k.erasedSource(ctx) {
				return out, err
			}
		case errors.Is(err, errSpent):
			if out, err := again(ctx, c, out.ID, nonce, &item); !errors.Is(err, errTakesNot) && !isLost(err) {
				return out, err
			}
		default:
			return out, err
		}
		k.plain.ID = hashed(k.plain.ID, out.ID)
	}
	k.plain.ID = nonce
	return k.capture(ctx)
}

// keeping is a memory that is stored, and the one that it is like, which its agent did not name.
type keeping struct {
	Caller
	plain memory.Capture // with what its agent said alone
	other *likeness.Other
}

// capture stores it, with a link to the other. Of an other that was forgotten since it was found
// nothing is said: an agent is refused only for sources that it named itself.
func (k *keeping) capture(ctx context.Context) (stored, error) {
	item := k.plain
	if k.other != nil {
		k.other.Link(&item)
	}
	out, err := capture(ctx, k.Caller, &item)
	code := client.Said(err)
	if len(item.DerivedFrom) > len(k.plain.DerivedFrom) && (code == memory.CodeInvalid || code == memory.CodeGone) {
		item = k.plain
		if out, err = capture(ctx, k.Caller, &item); client.Said(err) != memory.CodeGone { // which the id would be with the link, too
			k.other = nil
		}
	}
	out.Like = likeOf(k.other, &item, out.ID)
	return out, err
}

// erasedSource reports whether a source that the agent named was erased; if not, the id was used for
// what was.
func (k *keeping) erasedSource(ctx context.Context) bool {
	return slices.ContainsFunc(k.plain.DerivedFrom, func(id string) bool {
		_, err := k.Client.Get(ctx, k.Namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: k.Agent}})
		return client.Said(err) == memory.CodeGone
	})
}

// idOf is the id of an item that has none: of each thing in which memories of one text by one agent differ.
func idOf(namespace string, item *memory.Capture) string {
	uri, err := memory.FullURI(namespace, item.URI)
	if err != nil {
		uri = item.URI // it is refused
	}
	at := ""
	if item.OccurredAt != nil {
		at = item.OccurredAt.UTC().Format(time.RFC3339Nano)
	}
	return hashed(string(item.Scope), uri, item.Conversation, at, item.Text)
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return "said-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// errSpent says that an id was used for the memory that comes with it.
var errSpent = errors.New("the id was used for another memory")

// capture stores an item.
func capture(ctx context.Context, c Caller, item *memory.Capture) (stored, error) {
	resp, err := c.Client.CaptureBatch(ctx, c.Namespace, []memory.Capture{*item}, client.CaptureOptions{})
	if memory.CodeOf(err) == memory.CodeOutcomeUnknown {
		return stored{}, memory.AsError(err).WithHint("store it again: it is kept once")
	}
	if err != nil {
		return stored{}, err
	}
	r := resp.Results[0]
	out := stored{ID: r.RecordID, Status: string(r.Status), Position: r.Position}
	if r.Error == nil {
		return out, nil
	}
	e := memory.Errorf(r.Error.Code, "%s", r.Error.Detail).WithHint("%s", r.Error.Hint)
	if r.Status == memory.StatusConflict && r.Position != "" { // which an address that is taken does not have
		e = e.WithCause(errSpent)
	}
	return out, e
}

// takes reports whether a memory can take what is said of an item that has its text: one has one
// address, one time and one conversation, and so many tags and sources.
func takes(namespace string, rec *memory.Record, item *memory.Capture) bool {
	uri, err := memory.FullURI(namespace, item.URI)
	if err != nil || uri != "" && uri != rec.URI {
		return false
	}
	if item.Conversation != "" && item.Conversation != rec.Conversation || item.OccurredAt != nil && !item.OccurredAt.Equal(rec.OccurredAt) {
		return false
	}
	tags, from := added(rec.Tags, item.Tags, ""), added(rec.DerivedFrom, item.DerivedFrom, rec.RecordID)
	return (tags == nil || len(*tags) <= memory.MaxTags) && (from == nil || len(*from) <= memory.MaxDerivedFrom)
}

// errTakesNot says that a memory of the same text cannot take what is said of it now.
var errTakesNot = errors.New("the memory cannot take what is said of it")

// isLost reports whether an error says that a memory is not what it was when it was found.
func isLost(err error) bool {
	code := client.Said(err)
	return errors.Is(err, likeness.ErrRevised) || code == memory.CodeNotFound || code == memory.CodeGone
}

// again counts on a memory that says the same, and adds what is said of it now: an agent finds by its
// tags what it has stored with them. Errors: errTakesNot, and those for which isLost reports true.
func again(ctx context.Context, c Caller, id, nonce string, item *memory.Capture) (stored, error) {
	adds, sourced := false, false
	counted, err := likeness.Count(ctx, c.Client, c.Namespace, id, nonce, item, func(rec *memory.Record, rev *memory.Revision) error {
		// An import that is taken back, or has changed, would take with it what the agent stored. Only
		// what is stored under its very address has no other place.
		if rec.Origin == memory.OriginImport && item.URI == "" || !takes(c.Namespace, rec, item) {
			return errTakesNot
		}
		if item.Kind != "" && item.Kind != rec.Kind {
			rev.Kind = &item.Kind
		}
		if item.Importance != nil && (rec.Importance == nil || *item.Importance != *rec.Importance) {
			rev.Importance = item.Importance
		}
		rev.Tags = added(rec.Tags, item.Tags, "")
		rev.DerivedFrom = added(rec.DerivedFrom, item.DerivedFrom, id)
		sourced = rev.DerivedFrom != nil
		adds = sourced || rev.Kind != nil || rev.Importance != nil || rev.Tags != nil
		return nil
	})
	out := stored{ID: id, Status: string(memory.StatusDuplicate), Times: counted.Times, Position: counted.Position}
	switch code := client.Said(err); {
	case code == memory.CodeConflict && !adds: // it is there, and says all that it should
		out.uncounted, err = true, nil
	case code == memory.CodeConflict:
		err = memory.Errorf(memory.CodeOverloaded, "memory %s says the same already, and others changed it each time that something was to be added to it", id).
			WithHint("store it again in a moment").WithCause(err)
	case code == memory.CodeInvalid && sourced: // a source that it has was forgotten, and is not found again
		err = errTakesNot
	}
	return out, err
}

// added are values with those that are new; nil if none is.
func added(there, more []string, but string) *[]string {
	all := slices.Clone(there)
	for _, v := range more {
		if v != but && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	if len(all) == len(there) {
		return nil
	}
	return &all
}

type stored struct {
	ID       string `json:"id"`
	Status   string `json:"status" jsonschema:"created, or duplicate if it was there already: under the same id, or in the same words by you"`
	Times    int    `json:"times,omitempty" jsonschema:"how often it was said by now, if it was there in the same words"`
	Like     *like  `json:"like,omitempty" jsonschema:"a memory that says the same or nearly the same; both are kept"`
	Position string `json:"position,omitempty"`

	uncounted bool // it was there, and others changed it each time that it was to be counted
}

type like struct {
	ID         string  `json:"id"`
	Agent      string  `json:"agent" jsonschema:"who stored it"`
	Similarity float64 `json:"similarity" jsonschema:"0.95 to 1"`
	Same       bool    `json:"same" jsonschema:"the words are the same, but for space and case; if not, what differs may matter"`
	Linked     bool    `json:"linked" jsonschema:"the new memory names it in derived_from"`
}

// likeOf tells of the memory that an item is like, which was stored as id; nil if there is none.
func likeOf(other *likeness.Other, item *memory.Capture, id string) *like {
	if other == nil || other.ID == id {
		return nil
	}
	return &like{ID: other.ID, Agent: other.Agent, Similarity: other.Similarity, Same: other.Equal, Linked: slices.Contains(item.DerivedFrom, other.ID)}
}

func (s *stored) text() string {
	if s.Status == string(memory.StatusDuplicate) {
		text := fmt.Sprintf("It was there already, as %s.", s.ID)
		switch {
		case s.uncounted:
			text += " That it was said again could not be counted: others changed it each time."
		case s.Times > 0:
			text += fmt.Sprintf(" It has been said %d times now.", s.Times)
		}
		return text
	}
	text := fmt.Sprintf("Remembered as %s.", s.ID)
	if l := s.Like; l != nil {
		how, names := "nearly the same", ""
		if l.Same {
			how = "the same"
		}
		if l.Linked {
			names = ", and the new one names it"
		}
		text += fmt.Sprintf(" %s, by %s, says %s: both are kept%s.", l.ID, l.Agent, how, names)
	}
	return text
}
