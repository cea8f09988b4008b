package projections_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/keyring"
	"mneme/internal/projections"
)

// TestErasedVersionsAreAsIfTheirKeyWasGone: erasing versions leaves the facts, and
// everything else that is found, as a fold leaves them that does not have the key.
func TestErasedVersionsAreAsIfTheirKeyWasGone(t *testing.T) {
	eachSeed(t, 20, func(t *testing.T, h *history, rnd *rand.Rand) {
		erased := erasable(h, rnd)
		whole, shredded := openState(t, t.TempDir()), openState(t, t.TempDir())
		defer whole.Close()
		defer shredded.Close()
		fold(t, h.keys, whole, h.log, 1+rnd.IntN(20))
		if n := rowsWith(t, whole, "zebra"); n < 4 {
			t.Fatalf("the word stands in %d rows only", n)
		}
		hadVectors := projectionRows(t, whole, 0x50)
		must(t, projections.Erase(whole, func(at projections.Ref) bool { return erased[at] }))
		for ns := range namespacesOf(h) {
			must(t, h.keys.Destroy(keyring.KeyID(h.dataKey(ns, "zebra").ID())))
		}
		fold(t, h.keys, shredded, h.log, 7)
		compareHashes(t, whole, shredded)
		if a, b := findable(t, whole), findable(t, shredded); a != b {
			t.Errorf("erased is not as if the key was gone: %s", firstDifference(a, b))
		}
		if n := rowsWith(t, whole, "zebra"); n > 0 {
			t.Errorf("the word stands in %d rows yet", n)
		}
		if now := projectionRows(t, whole, 0x50); now >= hadVectors || now != projectionRows(t, shredded, 0x50) {
			t.Errorf("%d vectors of %d", now, hadVectors)
		}
		view(t, whole, func(v *projections.View) { checkFacts(t, v) })
	})
}

// erasable adds memories, some of which are about a subject, and says which
// events those are.
func erasable(h *history, rnd *rand.Rand) map[projections.Ref]bool {
	for i := range 3 {
		h.frame(h.made(fmt.Sprint("erase-", i), builtinSpace))
	}
	erased := map[projections.Ref]bool{}
	var all []events.Envelope
	for range 250 {
		header, c := h.about(h.ns[len(h.ns)-1-rnd.IntN(3)])
		subject := rnd.IntN(4) == 0
		if c.Subject = ""; subject {
			c.Subject, c.Tags, c.URI = "zebra", append(c.Tags, "zebra"), fmt.Sprint("mem://x/zebra/", rnd.IntN(9))
			c.Text += " zebra"
		}
		if len(all) > 0 && rnd.IntN(4) == 0 {
			of := all[rnd.IntN(len(all))]
			header.Namespace, header.Scope, header.Agent = of.Namespace, of.Scope, of.Agent
			if rnd.IntN(3) == 0 {
				h.frame(h.forgotten(events.Header{Namespace: of.Namespace, Scope: of.Scope, Agent: of.Agent, Target: of.Record}))
				continue
			}
			header.Type, header.Target, header.BaseVersion = events.TypeRevised, of.Record, 1
		}
		e := h.content(header, c)
		h.frame(e)
		if e.Type == events.TypeCaptured {
			all = append(all, e)
		}
		if subject {
			erased[projections.Ref{Seq: h.seq()}] = true
		}
	}
	return erased
}

func namespacesOf(h *history) map[events.ID]bool {
	out := map[events.ID]bool{}
	for _, ns := range h.ns[len(h.ns)-3:] {
		out[ns] = true
	}
	return out
}

// rowsWith counts the rows in which a word stands.
func rowsWith(t *testing.T, s *projections.State, word string) (n int) {
	view(t, s, func(v *projections.View) {
		must(t, projections.Rows(v, func(key, value []byte) {
			if bytes.Contains(key, []byte(word)) || bytes.Contains(value, []byte(word)) {
				n++
			}
		}))
	})
	return n
}

func projectionRows(t *testing.T, s *projections.State, prefix byte) (n int) {
	view(t, s, func(v *projections.View) { n = projections.RowCount(v, prefix) })
	return n
}

// findable gives all rows whose bytes do not depend on what was there before, what
// the text index counts and finds, and the bitmaps.
func findable(t *testing.T, s *projections.State) string {
	t.Helper()
	var out strings.Builder
	view(t, s, func(v *projections.View) {
		must(t, projections.Rows(v, func(key, value []byte) {
			switch key[0] {
			case 0x00, 0x01, 0x15, 0x30, text.PrefixPostings, text.PrefixStatistics, text.PrefixForward, text.PrefixDictionary, text.PrefixNames,
				0x50, 0x51, 0x53: // numbers that were given are not given again
			default:
				fmt.Fprintf(&out, "%x %x\n", key, value)
			}
		}))
		attrs := map[string]bool{}
		must(t, projections.Rows(v, func(key, _ []byte) {
			if key[0] == 0x30 {
				attrs[string(key[1:len(key)-2])] = true
			}
		}))
		for _, k := range slices.Sorted(maps.Keys(attrs)) {
			bm, err := v.Bitmap(u32([]byte(k)), projections.AttrKey(k[4:]))
			must(t, err)
			fmt.Fprintf(&out, "bitmap %x %v\n", k, bm.ToArray())
		}
		for _, ns := range v.Namespaces() {
			held, err := v.SpaceRecords(ns.ID, ns.Space)
			must(t, err)
			fmt.Fprintf(&out, "%s %+v %d\n", ns.Name, v.NamespaceTotals(ns.ID), held)
		}
		dumpText(t, &out, v)
	})
	return out.String()
}
