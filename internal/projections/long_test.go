package projections_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
	"mneme/internal/projections"
)

// longLog is a log of long captures with short ones between; some are forgotten. One
// that is longer than a tail of the text index stands among them.
func longLog(t *testing.T) *world {
	w := newWorld(t, 5)
	team := w.created("team", builtinSpace)
	w.frame(team)
	words := func(i, n int) string {
		b := []byte(fmt.Sprintf("capture %d:", i))
		for k := range n {
			b = fmt.Appendf(b, " w%099d", i*50_000+k)
		}
		return string(b)
	}
	var made []events.Envelope
	for i := range 100 {
		n := 5
		switch {
		case i == 50:
			n = 3000
		case i%8 == 0:
			n = 300 + i%3*500
		}
		ev := w.content(events.Header{Namespace: team.Namespace, Agent: "ann"}, events.Content{Text: words(i, n), Subject: fmt.Sprint("of ", i%9)})
		made = append(made, ev)
		if w.frame(ev); i%10 == 9 {
			target := made[i-3]
			w.frame(w.forgotten(events.Header{Namespace: team.Namespace, Agent: "ann", Scope: target.Scope, Target: target.Record, BaseVersion: 1}))
		}
	}
	return w
}

// commandsOf encodes the log, so many frames a command.
func (w *world) commandsOf(s *projections.State, frames int) (all []projections.Command) {
	d, c := deriver(w.t, w.keys, s), s.Cursor()
	for part := range slices.Chunk(w.log, frames) {
		var r *projections.Range
		r, c = rangeOf(w.t, d, c, part)
		r.Applied = projections.Mark{}
		all = append(all, projections.Command{Index: uint64(len(all)) + 1, Term: 1, Data: r.Encode()})
	}
	return all
}

// everyRow gives all rows but the cursor. Of what is merged, which is stored as several
// operands until it is compacted, it gives the bitmaps, and how many documents have each
// term.
func everyRow(t *testing.T, s *projections.State) (rows []string) {
	t.Helper()
	view(t, s, func(v *projections.View) {
		attrs := map[string]bool{}
		must(t, projections.Rows(v, func(key, value []byte) {
			if key[0] > 1 && key[0] != text.PrefixPostings && key[0] != 0x30 {
				rows = append(rows, fmt.Sprintf("%x %x", key, value))
			}
			if key[0] == projections.PrefixAttrs {
				for _, k := range projections.CutAttrs(value) {
					attrs[string(key[1:5])+string(k)] = true
				}
			}
		}))
		for _, k := range slices.Sorted(maps.Keys(attrs)) {
			bm, err := v.Bitmap(u32([]byte(k)), projections.AttrKey(k[4:]))
			must(t, err)
			rows = append(rows, fmt.Sprintf("bitmap %x %v", k, bm.ToArray()))
		}
		for part := range v.Cursor().Partitions {
			for f := range text.Field(text.NumFields) {
				must(t, text.Vocabulary(v.Reader(), part, f, "", func(term []byte, docs uint64) bool {
					rows = append(rows, fmt.Sprintf("%s in %d of %d, field %d", term, docs, part, f))
					return true
				}))
			}
		}
	})
	return rows
}

// openRoomy opens a state whose cache holds the blocks that each term is looked up in: with
// the race detector Pebble overwrites each block that leaves it.
func openRoomy(t *testing.T, dir string) *projections.State {
	t.Helper()
	s, err := projections.Open(projections.Options{Dir: dir, CacheBytes: 64 << 20, ReserveBytes: -1})
	must(t, err)
	return s
}

// TestLongCapturesInAnyBatches: where the tails of the text index end, and what that
// writes, does not depend on batches and restarts, to the byte.
func TestLongCapturesInAnyBatches(t *testing.T) {
	w := longLog(t)
	var want []string
	var hash projections.StateHash
	for _, name := range []string{"frame by frame", "in threes", "one range", "one Apply", "one Apply of long commands", "restarts"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openRoomy(t, dir)
			switch name {
			case "frame by frame":
				fold(t, w.keys, s, w.log, 1)
			case "in threes":
				fold(t, w.keys, s, w.log, 3)
			case "one range":
				fold(t, w.keys, s, w.log, len(w.log))
			case "one Apply", "one Apply of long commands":
				frames := map[string]int{"one Apply": 1, "one Apply of long commands": 20}[name]
				_, err := s.Apply(w.commandsOf(s, frames))
				must(t, err)
			case "restarts":
				for to := 0; to < len(w.log); {
					to = min(to+7, len(w.log))
					fold(t, w.keys, s, w.log[:to], 2)
					must(t, s.Close())
					s = openRoomy(t, dir)
				}
			}
			defer s.Close()
			rows, h := everyRow(t, s), hashOf(t, s)
			if want == nil {
				want, hash = rows, h
			}
			if h != hash || !slices.Equal(rows, want) {
				t.Errorf("another state: hash %v, want %v; %d rows, want %d", h, hash, len(rows), len(want))
				for i := range min(len(rows), len(want)) {
					if rows[i] != want[i] {
						t.Fatalf("row %d: %.200s, want %.200s", i, rows[i], want[i])
					}
				}
			}
		})
	}
}

// TestOneApplyHeldEverythingThatWaited: all commands that waited for the state went into
// one batch, so that eight senders of long captures made one of gigabytes.
func TestOneApplyHeldEverythingThatWaited(t *testing.T) {
	w := longLog(t)
	var seqs []uint64
	s, err := projections.Open(projections.Options{Dir: t.TempDir(), ReserveBytes: -1, OnApply: func(a *projections.Applied) { seqs = append(seqs, a.Cursor.Seq) }})
	must(t, err)
	defer s.Close()
	all := w.commandsOf(s, 1)
	results, err := s.Apply(all)
	must(t, err)
	if len(results) != len(all) {
		t.Fatalf("%d results of %d commands", len(results), len(all))
	}
	for i, r := range results {
		if r, ok := r.(projections.RangeResult); !ok || r.Answer != projections.AnswerApplied || r.Cursor.Seq != uint64(i)+1 {
			t.Fatalf("command %d: %+v", i, r)
		}
	}
	from, sum := 0, 0
	for _, seq := range seqs { // a frame is a command
		size := 0
		for ; from < int(seq); from++ {
			size += len(all[from].Data)
		}
		if sum += size; size > 1<<20 {
			t.Errorf("one batch of %d bytes of commands, up to frame %d", size, seq)
		}
	}
	if least := sum>>20 + 1; len(seqs) < least || len(seqs) > 3*least {
		t.Errorf("%d batches for %d bytes of commands", len(seqs), sum)
	}
}

// TestApplyKeepsWhatItCommitted: where a later batch of one call fails, the results of
// those before it are there, and what is behind them goes on.
func TestApplyKeepsWhatItCommitted(t *testing.T) {
	w := longLog(t)
	s := openState(t, t.TempDir())
	defer s.Close()
	all := w.commandsOf(s, 1)
	broken := slices.Clone(all)
	broken[60].Data = []byte{77}
	results, err := s.Apply(broken)
	if at := (*projections.CommandError)(nil); !errors.As(err, &at) || at.Index != 61 {
		t.Fatalf("got %v, want an error of command 61", err)
	}
	if n := uint64(len(results)); n == 0 || n > 60 || s.Cursor().RaftIndex != n || s.Cursor().Seq != n {
		t.Fatalf("%d results, the state stands at command %d, frame %d", n, s.Cursor().RaftIndex, s.Cursor().Seq)
	}
	rest, err := s.Apply(all[len(results):])
	must(t, err)
	for i, r := range append(results, rest...) {
		if r == nil {
			t.Fatalf("command %d has no result", i+1)
		}
	}
	if got := s.Cursor().Seq; got != w.seq() {
		t.Errorf("the state stands at %d of %d", got, w.seq())
	}
}
