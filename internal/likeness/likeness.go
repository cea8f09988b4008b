// Package likeness finds the memory that says what another one is about to say, and has it count
// how often that was said.
//
// Invariants: it looks at what the agent that speaks may read, and nothing else; finding costs one
// search where the agent has said it before and two where not, and counting a read and a revision, again
// where others revised meanwhile; it has a memory of the team name no private one; a count changes no word of a memory.
//
// Not its job: storing, and what to do where a node cannot be asked.
package likeness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mneme/client"
	"mneme/internal/recall"
	"mneme/memory"
)

// Node is what is asked of a node.
type Node interface {
	Search(ctx context.Context, namespace string, req memory.SearchRequest) (memory.SearchResponse, error)
	Get(ctx context.Context, namespace, id string, opts client.GetOptions) (memory.Record, error)
	Revise(ctx context.Context, namespace, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error)
}

// Other is a memory that is there already.
type Other struct {
	ID, Agent string
	// Same: it is the agent's own, of the same scope, says the very same, and may count it. Equal: it
	// says the same but for space and case, whosever it is.
	Same, Equal bool
	Similarity  float64 // recall.Nearly to 1
	metadata    json.RawMessage
}

// own and few are how many hits are looked at: what says the same is among the best. An agent may have
// said it of several times and conversations.
const (
	own = 20
	few = 5
)

// Find finds the memory that says the same as an item, or else the one that says nearly the same, by
// its vector or by its words: a model may place a text as a query elsewhere than the same text as a
// memory. It is nil where there is none. counts tells which memory of the very same text may count the
// item, and which is about something else; nil: each may. One that a file was imported as counts none, but under its
// very address: it is taken away with the import. It looks among the agent's own first: of
// many who say the same, its own may stand behind all others.
func Find(ctx context.Context, node Node, namespace string, item *memory.Capture, counts func(h *memory.Hit) bool) (*Other, error) {
	scope := cmp.Or(item.Scope, memory.ScopeTeam)
	hits, err := look(ctx, node, namespace, item, own, memory.Filter{Agents: []string{item.Agent}, Scope: scope})
	if err != nil {
		return nil, err
	}
	for _, h := range hits {
		if h.Text == item.Text && !h.Truncated && h.Agent == item.Agent && h.Scope == scope && (item.URI != "" || !imported(h.Metadata)) && (counts == nil || counts(&h)) {
			return &Other{ID: h.ID, Agent: h.Agent, Same: true, Equal: true, Similarity: 1, metadata: h.Metadata}, nil
		}
	}
	seen := memory.Filter{}
	if scope == memory.ScopeTeam {
		seen.Scope = scope
	}
	others, err := look(ctx, node, namespace, item, few, seen)
	if err != nil {
		return nil, err
	}
	var near *Other
	alike, looked := newAlike(item.Text), map[string]bool{}
	for _, h := range append(hits, others...) {
		if looked[h.ID] || h.Truncated || h.Scope == memory.ScopeAgent && scope == memory.ScopeTeam { // it is much longer, or private
			continue
		}
		looked[h.ID] = true
		if err := ctx.Err(); err != nil { // long texts take their time
			return nil, memory.Errorf(memory.CodeTimeout, "what is like the text was not found in time: %w", err)
		}
		one := &Other{ID: h.ID, Agent: h.Agent, Equal: alike.equal(h.Text), Similarity: 1, metadata: h.Metadata}
		if !one.Equal {
			one.Similarity = min(1, max(h.VectorScore, alike.words(h.Text)))
		}
		if one.Similarity >= recall.Nearly && (near == nil || one.nearer(near)) {
			near = one
		}
	}
	return near, nil
}

// look searches for what an item says, as the agent that says it.
func look(ctx context.Context, node Node, namespace string, item *memory.Capture, limit int, f memory.Filter) ([]memory.Hit, error) {
	longest := min(2*utf8.RuneCountInString(item.Text)+1, memory.MaxTextBytes)
	resp, err := node.Search(ctx, namespace, memory.SearchRequest{
		Query: beginning(item.Text), Syntax: memory.SyntaxPlain, As: item.Agent, Limit: &limit, All: true, Filter: &f,
		Fit: memory.Fit{MaxText: &longest, Fields: []string{"id", "uri", "scope", "agent", "text", "truncated", "vector_score", "metadata", "tags", "conversation", "occurred_at"}},
	})
	return resp.Results, err
}

func (o *Other) nearer(than *Other) bool {
	return o.Similarity > than.Similarity || o.Equal && !than.Equal
}

// imported reports whether metadata say of which import a memory is. One of lines does not say it.
func imported(metadata json.RawMessage) bool {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(metadata, &m)
	return m["imported"] != nil
}

// Taken reports whether metadata say that an import forgot a memory that it had brought, and no person: it was
// taken back, or was no longer in its source.
func Taken(metadata json.RawMessage) bool {
	var m struct {
		Imported struct {
			Taken bool `json:"taken"`
		} `json:"imported"`
	}
	return json.Unmarshal(metadata, &m) == nil && m.Imported.Taken
}

// alike compares an item's text with others.
type alike struct {
	text, plain string
	counted     *recall.Words // nil until it is needed
}

func newAlike(text string) *alike { return &alike{text: text, plain: plain(text)} }

func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

// equal reports whether another text is the same but for space and case.
func (a *alike) equal(other string) bool {
	return a.text == other || strings.EqualFold(a.plain, plain(other))
}

// words is how alike the words of another text are; 0 where that is much shorter. One that is much
// longer is not looked at: its hit is truncated.
func (a *alike) words(other string) float64 {
	const least = 64 // bytes, of which a few signs may make half
	if len(a.text) > 2*len(other)+least {
		return 0
	}
	if a.counted == nil {
		a.counted = recall.NewWords(a.text)
	}
	return a.counted.Alike(other)
}

// beginning is as much of a text as a query may have.
func beginning(text string) string {
	if len(text) <= memory.MaxQueryBytes {
		return text
	}
	return strings.ToValidUTF8(text[:memory.MaxQueryBytes], "")
}

// Link has an item name the memory that says nearly the same, and counts on.
func (o *Other) Link(item *memory.Capture) {
	s := SaidOf(item.Metadata)
	s.Near, s.Similarity, s.Repeats = o.ID, math.Round(o.Similarity*1000)/1000, SaidOf(o.metadata).Repeats+1
	item.Metadata = s.In(item.Metadata)
	if from := item.DerivedFrom; !slices.Contains(from, o.ID) && len(from) < memory.MaxDerivedFrom {
		item.DerivedFrom = append(slices.Clone(from), o.ID)
	}
}

// Counted is what became of a repetition.
type Counted struct {
	Times    int    // that it was said, this time among them; 0 where its metadata have no room for a count
	Again    bool   // it was counted now, and not before
	Position string // of the count; "" if it was counted before
}

// Of many who count at once, each but one is overtaken. It tries again after a pause, which is chosen
// by chance and grows, until patience ends.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
	patience     = 5 * time.Second
)

// ErrRevised says that a memory says something else by now.
var ErrRevised = errors.New("the memory was revised, and says something else")

// Count counts on the memory that says the same as item. nonce names this time that it was said, so
// that it counts once however often it is told; "" names none. also may change more of the
// memory, refuse it by an error, or be nil. What others change meanwhile is read again; the error is
// memory.CodeConflict if they do so until patience, or the context, ends.
func Count(ctx context.Context, node Node, namespace, id, nonce string, item *memory.Capture, also func(rec *memory.Record, rev *memory.Revision) error) (Counted, error) {
	began := time.Now()
	for longest := firstPause; ; longest = min(2*longest, longestPause) {
		counted, err := count(ctx, node, namespace, id, nonce, item, also)
		if client.Said(err) != memory.CodeConflict || time.Since(began) >= patience {
			return counted, err
		}
		select {
		case <-ctx.Done():
			return Counted{}, err
		case <-time.After(rand.N(longest)):
		}
	}
}

// count tries it once. It reads what the leader has: an older version would be overtaken already.
func count(ctx context.Context, node Node, namespace, id, nonce string, item *memory.Capture, also func(rec *memory.Record, rev *memory.Revision) error) (Counted, error) {
	rec, err := node.Get(ctx, namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: item.Agent, Consistency: memory.ConsistencyLinearizable}})
	if err != nil {
		return Counted{}, err
	}
	s := SaidOf(rec.Metadata)
	if nonce != "" && (s.Nonce == nonce || s.Last == nonce) { // whatever it says by now
		return Counted{Times: s.Repeats + 1}, nil
	}
	if rec.Text != item.Text {
		return Counted{}, ErrRevised
	}
	s.Repeats++
	s.Last = nonce
	var rev memory.Revision
	metadata := s.In(rec.Metadata)
	if len(metadata) <= memory.MaxMetadataBytes {
		rev.Metadata = &metadata
	}
	if also != nil {
		if err := also(&rec, &rev); err != nil {
			return Counted{}, err
		}
	}
	if rev == (memory.Revision{}) {
		return Counted{}, nil
	}
	done, err := node.Revise(ctx, namespace, id, rev, client.WriteOptions{As: item.Agent, IfVersion: rec.Version})
	switch {
	case err != nil:
		return Counted{}, err
	case rev.Metadata == nil:
		return Counted{Position: done.Position}, nil
	}
	return Counted{Times: s.Repeats + 1, Again: true, Position: done.Position}, nil
}
