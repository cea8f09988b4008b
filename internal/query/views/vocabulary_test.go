package views

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/words"
	"mneme/internal/projections"
	"mneme/internal/query/querytest"
	"mneme/memory"
)

// words gives the vocabulary of an open partition of an agent.
func (w *world) words(ns, as string, partition int) *words.Vocabulary {
	w.T.Helper()
	v, err := w.views.Open(context.Background(), ns, as, Freshness{})
	w.OK(err)
	out, err := v.Vocabulary(&v.Partitions[partition])
	w.OK(err)
	w.OK(v.Close())
	return out
}

// waitWords waits for what is read in the background.
func (w *world) waitWords() {
	w.views.words.wg.Wait()
}

// TestVocabularyFollowsCaptures: whatever was in the rows when it was first read, what
// came since is there, once in the tail and once with postings.
func TestVocabularyFollowsCaptures(t *testing.T) {
	for _, inline := range []uint32{1, inlineTerms} {
		w := newWorld(t)
		w.views.words.inline = inline
		w.Namespace("team", nil)
		for i := range 300 {
			w.One("team", "ann", fmt.Sprintf("word%dx of river", i))
			if i%7 > 0 && i < 290 {
				continue
			}
			v := w.words("team", "", 0)
			if w.waitWords(); v == nil {
				if v = w.words("team", "", 0); v == nil {
					t.Fatalf("after %d captures: no vocabulary", i+1)
				}
			}
			for _, n := range []int{0, i / 2, i} {
				if term := fmt.Sprintf("word%dx", n); !v.Has(term) {
					t.Fatalf("after %d captures there is no %s", i+1, term)
				}
			}
			if v.Has(fmt.Sprintf("word%dx", i+1)) {
				t.Fatalf("word%dx is there already", i+1)
			}
		}
	}
}

// TestNewTermsAreReadIntoTheTransducer: what is beside it stays small.
func TestNewTermsAreReadIntoTheTransducer(t *testing.T) {
	for _, inline := range []uint32{1, inlineTerms} {
		w := newWorld(t)
		w.views.words.inline = inline
		w.Namespace("team", nil)
		for i := range 6 {
			var b strings.Builder
			for k := range 1100 {
				fmt.Fprintf(&b, "w%dx%d ", i, k)
			}
			for k := range 64 {
				w.One("team", "ann", fmt.Sprintf("%sand z%dz%d", b.String()[:k/63*b.Len()], i, k))
			}
			w.words("team", "", 0)
			w.waitWords()
		}
		w.words("team", "", 0)
		w.waitWords()
		if built, fresh := w.words("team", "", 0).Len(); built < 2000 || fresh > minNewer+2500 {
			t.Errorf("%d terms in the transducer, %d beside", built, fresh)
		}
	}
}

// TestErasedWordLeavesTheVocabulary: it is neither answered nor kept, and neither are
// those of a namespace that was deleted.
func TestErasedWordLeavesTheVocabulary(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	w.One("other", "ann", "xylocarp river")
	w.Capture("team", memory.Capture{Agent: "ann", Text: "xylocarp river", Subject: "eve"}, memory.Capture{Agent: "ann", Text: "harbour crane"})
	if v := w.words("team", "", 0); !v.Has("xylocarp") || !v.Has("harbour") {
		t.Fatal("words are missing")
	}
	before, err := w.views.Open(context.Background(), "team", "", Freshness{}) // a reader that goes on
	w.OK(err)
	defer before.Close()
	key, err := w.Keys.DataKey(w.Space["team"], "eve")
	w.OK(err)
	erased := w.Apply(&querytest.Item{Header: events.Header{Type: events.TypeKeyDestroyed, Namespace: w.Space["team"]}, Payload: events.EncodeKeys([][16]byte{key.ID()})})
	if erased[0].Outcome != projections.OutcomeApplied {
		t.Fatalf("the key was not destroyed: %v", erased[0].Outcome)
	}
	if v, err := before.Vocabulary(&before.Partitions[0]); err != nil || !v.Has("xylocarp") {
		t.Errorf("a view of before does not know its word: %v", err)
	}
	if n := len(w.views.words.parts); n > 0 {
		t.Errorf("%d vocabularies are kept that may hold an erased word", n)
	}
	if v := w.words("team", "", 0); v.Has("xylocarp") || !v.Has("harbour") {
		t.Errorf("an erased word is there: %v, another one: %v", v.Has("xylocarp"), v.Has("harbour"))
	}
	if !w.words("other", "", 0).Has("xylocarp") {
		t.Error("a word of another namespace was erased")
	}
	w.Drop("other")
	for _, v := range w.views.words.parts {
		if v.ns == w.Space["other"] {
			t.Error("words of a deleted namespace are kept")
		}
	}
}

// TestVocabularyIsOfOnePartition: what others wrote for themselves is not in it.
func TestVocabularyIsOfOnePartition(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "harbour crane")
	w.Capture("team", memory.Capture{Agent: "eve", Text: "xylocarp", Scope: memory.ScopeAgent}, memory.Capture{Agent: "ann", Text: "pomegranate", Scope: memory.ScopeAgent})
	v, err := w.views.Open(context.Background(), "team", "ann", Freshness{})
	w.OK(err)
	defer v.Close()
	var known []string
	for i := range v.Partitions {
		words, err := v.Vocabulary(&v.Partitions[i])
		w.OK(err)
		for _, term := range []string{"harbour", "xylocarp", "pomegran"} {
			if words.Has(term) {
				known = append(known, term)
			}
		}
	}
	if !slices.Equal(known, []string{"harbour", "pomegran"}) {
		t.Errorf("ann knows %v", known)
	}
}

// TestVocabulariesOfUntouchedPartitionsAreNotRead: a look-up costs what its own partitions have,
// however many others there are.
func TestVocabulariesOfUntouchedPartitionsAreNotRead(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "harbour crane")
	for i := range 50 {
		w.Capture("team", memory.Capture{Agent: fmt.Sprintf("agent-%d", i), Text: fmt.Sprintf("xylocarp%d", i), Scope: memory.ScopeAgent})
	}
	v, err := w.views.Open(context.Background(), "team", "agent-7", Freshness{})
	w.OK(err)
	defer v.Close()
	for i := range v.Partitions {
		_, err := v.Vocabulary(&v.Partitions[i])
		w.OK(err)
	}
	if n := len(w.views.words.parts); n != 2 {
		t.Errorf("%d vocabularies are kept for a reader of two partitions", n)
	}
	// A second search read them again, where nothing was captured between the two.
	for i := range v.Partitions {
		p := &v.Partitions[i]
		kept := w.views.words.parts[p.ID].whole
		if again, err := v.Vocabulary(p); err != nil || again != kept {
			t.Errorf("the vocabulary of partition %d was read again: %v", p.ID, err)
		}
	}
}

// TestClosedViewsReadNoVocabulary: what is read in the background ends with them.
func TestClosedViewsReadNoVocabulary(t *testing.T) {
	w := newWorld(t)
	w.views.words.inline = 0
	w.Namespace("team", nil)
	for i := range 70 {
		w.One("team", "ann", fmt.Sprintf("word%d", i))
	}
	v, err := w.views.Open(context.Background(), "team", "", Freshness{})
	w.OK(err)
	defer v.Close()
	w.OK(w.views.Close())
	if got, err := v.Vocabulary(&v.Partitions[0]); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
