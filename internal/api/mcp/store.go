package mcp

import (
	"context"
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
	DerivedFrom  []string `json:"derived_from,omitempty" jsonschema:"ids of the memories that it was made from"`
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
		Conversation: in.Conversation, Importance: in.Importance, OccurredAt: at, DerivedFrom: in.DerivedFrom}
	if in.Private {
		item.Scope = memory.ScopeAgent
	}
	looked, cancel := context.WithTimeout(ctx, lookPatience)
	other, unknown := likeness.Find(looked, c.Client, c.Namespace, &item, func(h *memory.Hit) bool { return takes(c.Namespace, h, &item) })
	cancel()
	linked := other != nil && in.ID == ""
	if linked && other.Same {
		out, err := again(ctx, c, other.ID, &item)
		switch code := memory.CodeOf(err); {
		case errors.Is(err, likeness.ErrRevised), code == memory.CodeNotFound, code == memory.CodeGone:
			other, linked = nil, false // meanwhile
		case err != nil:
			return stored{}, "", err
		default:
			return out, out.text(), nil
		}
	}
	if linked {
		other.Link(&item)
	}
	resp, err := c.Client.Capture(ctx, c.Namespace, item, client.CaptureOptions{})
	if err != nil {
		return stored{}, "", err
	}
	if len(resp.Results) != 1 {
		return stored{}, "", errors.New("the node answered without a result")
	}
	r := resp.Results[0]
	out := stored{ID: r.RecordID, Status: string(r.Status), Position: r.Position}
	if other != nil && other.ID != r.RecordID {
		out.Like = &like{ID: other.ID, Agent: other.Agent, Similarity: other.Similarity, Same: other.Equal, Linked: linked}
	}
	text := out.text()
	if unknown != nil {
		text += fmt.Sprintf(" Whether the same was there already is not known: the search failed (%s).", memory.CodeOf(unknown))
	}
	return out, text, nil
}

// takes reports whether a memory can take what is said of an item that has its text: one has one
// address, one time and one conversation, and so many tags.
func takes(namespace string, h *memory.Hit, item *memory.Capture) bool {
	uri, err := memory.FullURI(namespace, item.URI)
	if err != nil || uri != "" && uri != h.URI {
		return false
	}
	if item.Conversation != "" && item.Conversation != h.Conversation || item.OccurredAt != nil && !item.OccurredAt.Equal(h.OccurredAt) {
		return false
	}
	tags := added(h.Tags, item.Tags, "")
	return tags == nil || len(*tags) <= memory.MaxTags
}

// again counts on a memory that says the same, and adds what is said of it now: an agent finds by its
// tags what it has stored with them.
func again(ctx context.Context, c Caller, id string, item *memory.Capture) (stored, error) {
	more := false
	counted, err := likeness.Count(ctx, c.Client, c.Namespace, id, "", item, func(rec *memory.Record, rev *memory.Revision) {
		if item.Kind != "" && item.Kind != rec.Kind {
			rev.Kind = &item.Kind
		}
		if item.Importance != nil && (rec.Importance == nil || *item.Importance != *rec.Importance) {
			rev.Importance = item.Importance
		}
		rev.Tags = added(rec.Tags, item.Tags, "")
		rev.DerivedFrom = added(rec.DerivedFrom, item.DerivedFrom, id)
		more = rev.Kind != nil || rev.Importance != nil || rev.Tags != nil || rev.DerivedFrom != nil
	})
	if memory.CodeOf(err) == memory.CodeConflict && !more { // it is there, whoever counts
		err = nil
	}
	return stored{ID: id, Status: string(memory.StatusDuplicate), Times: counted.Times, Position: counted.Position}, err
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
}

type like struct {
	ID         string  `json:"id"`
	Agent      string  `json:"agent" jsonschema:"who stored it"`
	Similarity float64 `json:"similarity" jsonschema:"0.95 to 1"`
	Same       bool    `json:"same" jsonschema:"the words are the same, but for space and case; if not, what differs may matter"`
	Linked     bool    `json:"linked" jsonschema:"the new memory names it in derived_from"`
}

func (s *stored) text() string {
	if s.Status == string(memory.StatusDuplicate) {
		text := fmt.Sprintf("It was there already, as %s.", s.ID)
		if s.Times > 0 {
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
