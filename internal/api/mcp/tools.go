package mcp

import (
	"cmp"
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/recall"
	"mneme/memory"
)

// narrowed is how a search or a list is narrowed.
type narrowed struct {
	Kinds        []string `json:"kinds,omitempty" jsonschema:"only these kinds"`
	Tags         []string `json:"tags,omitempty" jsonschema:"only with all of these tags"`
	Agents       []string `json:"agents,omitempty" jsonschema:"only what these agents stored"`
	Since        string   `json:"since,omitempty" jsonschema:"only what happened at this time or later, RFC 3339 or a day (2026-03-01)"`
	Until        string   `json:"until,omitempty" jsonschema:"only what happened before this time, RFC 3339 or a day"`
	Conversation string   `json:"conversation,omitempty" jsonschema:"only of this conversation"`
}

func (n *narrowed) filter() (memory.Filter, error) {
	f := memory.Filter{Agents: n.Agents, Tags: n.Tags, Conversation: n.Conversation}
	var noSince, noUntil error
	f.Since, noSince = when("since", n.Since)
	f.Until, noUntil = when("until", n.Until)
	for _, k := range n.Kinds {
		f.Kinds = append(f.Kinds, memory.Kind(k))
	}
	return f, cmp.Or(noSince, noUntil)
}

type searchIn struct {
	Query string `json:"query" jsonschema:"what you want to know, as a question or in a few words"`
	Limit *int   `json:"limit,omitempty" jsonschema:"at most so many memories, 1 to 50; 6 unless said"`
	narrowed
}

// maxFound is how many hits a tool answers with at most: what a model reads is its context.
const maxFound = 50

func (s *surface) addTools(server *mcp.Server) {
	s.addReads(server)
	s.addWrites(server)
}

const (
	findThem = "Find memories by meaning and by words, best first: what the team decided, prefers, fixed and learned. Start here, before you begin a task and when something seems to have come up before. " +
		"Each hit is a short excerpt with an id; "
	madeUp = "Nothing found means that nothing fits: do not make it up."
	keepIt = "Remember one thing for yourself and the team: a decision and its reason, a preference, a fact, a fix, how something works, what to do next time. Store it when it is settled, not while it is being discussed, one call for each thing; not what stands in the code or in a commit, and no secrets. " +
		"What you have stored in the same words already counts once more instead, and of what says nearly the same you are told. "
)

func (s *surface) addReads(server *mcp.Server) {
	add(s, server, tool[searchIn, found]{of: ProfileMicro, name: "memory_search", title: "Search memories", reads: true,
		about: findThem + "read the whole of the few that matter with memory_get, and what happened around one with memory_timeline. " + madeUp,
		alone: findThem + "read the whole of the few that matter with memory_get. " + madeUp,
		do:    search})
	add(s, server, tool[getIn, gotten]{of: ProfileMicro, name: "memory_get", title: "Read memories", reads: true,
		about: "Read whole memories by the ids that memory_search, memory_list or memory_timeline gave, up to 20 at once.",
		alone: "Read whole memories by the ids that memory_search gave, up to 20 at once.",
		do:    get})
	add(s, server, tool[timelineIn, around]{of: ProfileLite, name: "memory_timeline", title: "What happened around a memory", reads: true,
		about: "See what was remembered before and after one memory: in its conversation if it is of one, else in time. Use it when an excerpt needs its context.",
		do:    timeline})
	add(s, server, tool[listIn, listed]{of: ProfileLite, name: "memory_list", title: "List memories", reads: true,
		about: "List memories, newest first, without a question: what was stored lately, all of a kind or with a tag. For a question use memory_search.",
		do:    listMemories})
	add(s, server, tool[recallIn, recalled]{of: ProfileLite, name: "memory_recall", title: "Recall for a prompt", reads: true,
		about: "Get the few memories that fit a task as one short block of notes that stays under a budget of tokens. Take it once, at the start of a task, to have in front of you what is known; " +
			"take memory_search where you look for one thing, or want ids, dates or a filter. Empty if nothing fits.",
		do: recallFor})
}

func search(ctx context.Context, c Caller, in searchIn) (found, string, error) {
	limit := memory.DefaultLimit
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 || limit > maxFound {
		return found{}, "", memory.Errorf(memory.CodeInvalid, "limit is %d, it must lie between 1 and %d", limit, maxFound)
	}
	f, err := in.filter()
	if err != nil {
		return found{}, "", err
	}
	none := 0
	resp, err := c.Client.Search(ctx, c.Namespace, memory.SearchRequest{Query: in.Query, As: c.Agent, Limit: &limit, Filter: &f, Fit: memory.Fit{MaxText: &none}})
	if err != nil {
		return found{}, "", err
	}
	out := found{Results: make([]hit, len(resp.Results)), Position: resp.Position}
	for i := range resp.Results {
		out.Results[i] = hitOf(&resp.Results[i])
	}
	if len(out.Results) == 0 {
		out.BestRefused = resp.BestRefused
	}
	return out, out.text(), nil
}

type getIn struct {
	IDs []string `json:"ids" jsonschema:"ids of memories, or their first 6 characters or more"`
}

// maxGets is how many memories are read at once.
const maxGets = 20

func get(ctx context.Context, c Caller, in getIn) (gotten, string, error) {
	if len(in.IDs) == 0 || len(in.IDs) > maxGets {
		return gotten{}, "", memory.Errorf(memory.CodeInvalid, "ids has %d values, it must have 1 to %d", len(in.IDs), maxGets)
	}
	out := gotten{Memories: []whole{}}
	for _, id := range in.IDs {
		if err := anyID(id); err != nil {
			out.Missing = append(out.Missing, missing{ID: id, Why: memory.AsError(err).Message})
			continue
		}
		rec, err := c.Client.Get(ctx, c.Namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: c.Agent}})
		switch client.Said(err) {
		case "":
			out.Memories = append(out.Memories, wholeOf(&rec))
		case memory.CodeNotFound, memory.CodeGone, memory.CodeInvalid, memory.CodeConflict:
			out.Missing = append(out.Missing, missing{ID: clean(id), Why: clean(memory.AsError(err).Message)})
		default:
			return gotten{}, "", err
		}
	}
	if len(out.Memories) == 0 {
		return gotten{}, "", memory.Errorf(memory.CodeNotFound, "none of the ids names a memory: %s", out.Missing[0].Why).
			WithHint("memory_search gives ids")
	}
	return out, out.text(), nil
}

type timelineIn struct {
	ID     string `json:"id" jsonschema:"id of a memory"`
	Before *int   `json:"before,omitempty" jsonschema:"how many memories before it, 0 to 50; 3 unless said"`
	After  *int   `json:"after,omitempty" jsonschema:"how many memories after it, 0 to 50; 3 unless said"`
}

func timeline(ctx context.Context, c Caller, in timelineIn) (around, string, error) {
	for _, n := range []*int{in.Before, in.After} {
		if n != nil && (*n < 0 || *n > maxFound) {
			return around{}, "", memory.Errorf(memory.CodeInvalid, "before and after must lie between 0 and %d", maxFound)
		}
	}
	if err := anyID(in.ID); err != nil {
		return around{}, "", err
	}
	t, err := c.Client.Timeline(ctx, c.Namespace, in.ID, client.TimelineOptions{ReadOptions: client.ReadOptions{As: c.Agent}, Before: in.Before, After: in.After, Fit: brief})
	if err != nil {
		return around{}, "", err
	}
	out := around{Before: linesOf(t.Before), Anchor: lineOf(&t.Anchor), After: linesOf(t.After)}
	return out, out.text(), nil
}

// brief is how much of a text a line of a list has.
var brief = func() memory.Fit { n := memory.MaxSnippetRunes; return memory.Fit{MaxText: &n} }()

type listIn struct {
	narrowed
	Limit  *int   `json:"limit,omitempty" jsonschema:"at most so many memories, 1 to 50; 20 unless said"`
	Cursor string `json:"cursor,omitempty" jsonschema:"goes on where the answer before ended"`
}

func listMemories(ctx context.Context, c Caller, in listIn) (listed, string, error) {
	limit := 20
	if in.Limit != nil {
		limit = *in.Limit
	}
	if limit < 1 || limit > maxFound {
		return listed{}, "", memory.Errorf(memory.CodeInvalid, "limit is %d, it must lie between 1 and %d", limit, maxFound)
	}
	f, err := in.filter()
	if err != nil {
		return listed{}, "", err
	}
	l, err := c.Client.List(ctx, c.Namespace, client.ListOptions{ReadOptions: client.ReadOptions{As: c.Agent},
		ListRequest: memory.ListRequest{Cursor: in.Cursor, Limit: limit, Filter: f, Fit: brief}})
	if err != nil {
		return listed{}, "", err
	}
	out := listed{Memories: linesOf(l.Records), Cursor: l.Cursor}
	return out, out.text(), nil
}

type recallIn struct {
	Query     string `json:"query" jsonschema:"the task or question at hand"`
	MaxTokens *int   `json:"max_tokens,omitempty" jsonschema:"at most so many tokens, 100 to 8000; 600 unless said"`
}

func recallFor(ctx context.Context, c Caller, in recallIn) (recalled, string, error) {
	budget := recall.DefaultBudget
	if in.MaxTokens != nil {
		budget = *in.MaxTokens
	}
	if budget < 100 || budget > 8000 {
		return recalled{}, "", memory.Errorf(memory.CodeInvalid, "max_tokens is %d, it must lie between 100 and 8000", budget)
	}
	limit := max(recall.DefaultLimit, budget/100)
	asked := recall.Ask(limit)
	resp, err := c.Client.Search(ctx, c.Namespace, memory.SearchRequest{Query: in.Query, Syntax: memory.SyntaxPlain, As: c.Agent, Limit: &asked, Purpose: memory.PurposeInject})
	if err != nil {
		return recalled{}, "", err
	}
	b := recall.Compose(resp.Results, limit, budget)
	out := recalled{Block: b.Text, Tokens: b.Tokens, Used: make([]used, len(b.Used))}
	for i, u := range b.Used {
		out.Used[i] = used{ID: u.RecordID, Score: u.Score}
	}
	if b.Text == "" {
		return out, nothingFits, nil
	}
	return out, b.Text, nil
}

func (s *surface) addWrites(server *mcp.Server) {
	add(s, server, tool[storeIn, stored]{of: ProfileMicro, name: "memory_store", title: "Remember something", repeats: false,
		about: keepIt + "What has changed since it was stored is better corrected than stored beside the old one: memory_forget the one that is wrong.",
		alone: keepIt + "Where it has changed since it was stored, say so in the new one.",
		do:    store})
	add(s, server, tool[forgetIn, forgotten]{of: ProfileLite, name: "memory_forget", title: "Forget a memory", destroys: true, repeats: true,
		about: "Take a memory that is wrong or out of date out of every answer, by its id. It does not come back.",
		do:    forget})
	add(s, server, tool[reviseIn, revised]{of: ProfileFull, name: "memory_revise", title: "Correct a memory", destroys: true,
		about: "Make a new version of a memory: what is left out stays as it is, and the versions before are kept as its history.",
		do:    revise})
}

type forgetIn struct {
	ID string `json:"id" jsonschema:"the whole id of the memory"`
}

func forget(ctx context.Context, c Caller, in forgetIn) (forgotten, string, error) {
	id, err := wholeID(in.ID)
	if err != nil {
		return forgotten{}, "", err
	}
	resp, err := c.Client.Forget(ctx, c.Namespace, id, client.WriteOptions{As: c.Agent})
	if err != nil {
		return forgotten{}, "", err
	}
	return forgotten{ID: resp.RecordID, Position: resp.Position}, fmt.Sprintf("%s is forgotten.", resp.RecordID), nil
}

type reviseIn struct {
	ID         string    `json:"id" jsonschema:"the whole id of the memory"`
	Text       *string   `json:"text,omitempty" jsonschema:"what it says from now on"`
	Kind       *string   `json:"kind,omitempty" jsonschema:"what sort of thing it is"`
	Tags       *[]string `json:"tags,omitempty" jsonschema:"its tags, all of them"`
	URI        *string   `json:"uri,omitempty" jsonschema:"the path that names it"`
	Importance *float64  `json:"importance,omitempty" jsonschema:"0 to 1"`
	Version    int       `json:"version,omitempty" jsonschema:"the version that you read: if it has another one by now, nothing is changed"`
}

func revise(ctx context.Context, c Caller, in reviseIn) (revised, string, error) {
	rev := memory.Revision{Text: in.Text, Tags: in.Tags, URI: in.URI, Importance: in.Importance}
	if in.Kind != nil {
		k := memory.Kind(*in.Kind)
		rev.Kind = &k
	}
	id, err := wholeID(in.ID)
	if err != nil {
		return revised{}, "", err
	}
	if in.Version < 0 {
		return revised{}, "", memory.Errorf(memory.CodeInvalid, "version is %d, it must be 1 or more", in.Version)
	}
	if rev == (memory.Revision{}) {
		return revised{}, "", memory.Errorf(memory.CodeInvalid, "nothing was given that changes it").WithHint("give text, kind, tags, uri or importance")
	}
	resp, err := c.Client.Revise(ctx, c.Namespace, id, rev, client.WriteOptions{As: c.Agent, IfVersion: in.Version})
	if err != nil {
		return revised{}, "", err
	}
	return revised{ID: resp.RecordID, Version: resp.Version, Position: resp.Position}, fmt.Sprintf("%s is at version %d.", resp.RecordID, resp.Version), nil
}
