// Package likeness finds the memory that says what another one is about to say, and has it count
// how often that was said.
//
// Invariants: it looks at what the agent that speaks may read, and nothing else; finding costs one
// search, and counting a read and a revision, again where others revised meanwhile; a memory of the
// team never names a private one; a count changes no word of a memory.
//
// Not its job: storing, and what to do where a node cannot be asked.
package likeness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
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
	ID, URI, Agent string
	// Same: it is the agent's own, of the same scope, says the very same, and may count it. Equal: it
	// says the same but for space and case, whosever it is.
	Same, Equal bool
	Similarity  float64 // recall.Nearly to 1
	metadata    json.RawMessage
}

// few is how many hits are looked at: what says the same is among the best. Of some only one may count
// what is said, so that there may be more that say the same.
const (
	few  = 5
	some = 20
)

// Find finds the memory that says the same as an item, or else the one that says nearly the same, by
// its vector or by its words: a model may place a text as a query elsewhere than the same text as a
// memory. It is nil where there is none. counts tells which memory of the very same text may count the
// item, and which is about something else; nil: each may.
func Find(ctx context.Context, node Node, namespace string, item *memory.Capture, counts func(h *memory.Hit) bool) (*Other, error) {
	limit := few
	if counts != nil {
		limit = some
	}
	longest := min(2*utf8.RuneCountInString(item.Text)+1, memory.MaxTextBytes)
	resp, err := node.Search(ctx, namespace, memory.SearchRequest{
		Query: beginning(item.Text), Syntax: memory.SyntaxPlain, As: item.Agent, Limit: &limit, All: true,
		Fit: memory.Fit{MaxText: &longest, Fields: []string{"id", "uri", "scope", "agent", "text", "truncated", "vector_score", "metadata", "tags", "conversation", "occurred_at"}},
	})
	if err != nil {
		return nil, err
	}
	scope := cmp.Or(item.Scope, memory.ScopeTeam)
	var near *Other
	for _, h := range resp.Results {
		if h.Scope == memory.ScopeAgent && scope == memory.ScopeTeam {
			continue
		}
		one := &Other{ID: h.ID, URI: h.URI, Agent: h.Agent, Similarity: h.VectorScore, metadata: h.Metadata}
		switch one.Equal = !h.Truncated && equal(h.Text, item.Text); {
		case h.Truncated: // it is much longer
		case !one.Equal:
			one.Similarity = min(1, max(h.VectorScore, recall.Alike(h.Text, item.Text)))
		case h.Text == item.Text && h.Agent == item.Agent && h.Scope == scope && (counts == nil || counts(&h)):
			one.Same, one.Similarity = true, 1
			return one, nil
		default:
			one.Similarity = 1
		}
		if one.Similarity >= recall.Nearly && (near == nil || one.nearer(near)) {
			near = one
		}
	}
	return near, nil
}

func (o *Other) nearer(than *Other) bool {
	return o.Similarity > than.Similarity || o.Similarity == than.Similarity && o.Equal && !than.Equal
}

// equal reports whether two texts are the same but for space and case.
func equal(a, b string) bool {
	return a == b || strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
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

// tries is how often a memory is read and counted on: of a few at once each counts.
const tries = 4

// ErrRevised says that a memory says something else by now.
var ErrRevised = errors.New("the memory was revised, and says something else")

// Count counts on the memory that says the same as item. nonce names this time that it was said, so
// that it counts once however often it is told; "" names none. also may change more of the
// memory, or be nil. What others change meanwhile is read again; the error is memory.CodeConflict if
// they do so each time.
func Count(ctx context.Context, node Node, namespace, id, nonce string, item *memory.Capture, also func(rec *memory.Record, rev *memory.Revision)) (Counted, error) {
	var err error
	for range tries {
		var rec memory.Record
		if rec, err = node.Get(ctx, namespace, id, client.GetOptions{ReadOptions: client.ReadOptions{As: item.Agent}}); err != nil {
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
			also(&rec, &rev)
		}
		if rev == (memory.Revision{}) {
			return Counted{}, nil
		}
		var done memory.RevisionResponse
		if done, err = node.Revise(ctx, namespace, id, rev, client.WriteOptions{As: item.Agent, IfVersion: rec.Version}); err == nil {
			if rev.Metadata == nil {
				return Counted{Position: done.Position}, nil
			}
			return Counted{Times: s.Repeats + 1, Again: true, Position: done.Position}, nil
		}
		if memory.CodeOf(err) != memory.CodeConflict {
			return Counted{}, err
		}
	}
	return Counted{}, err
}
