package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/stats"
	"mneme/memory"
)

// side is nodes that trace a share of their requests, one after the other.
type side struct {
	what  string
	flags []string
	node  *proc.Node
	took  []float64     // seconds of each turn
	used  time.Duration // of the processor, in all turns
}

// turn is how many captures a side gets before it is the next one's turn.
const turn = 500

// traces measures what traces cost captures that come one by one. The nodes run side by side and
// get the same captures in turns, so that a machine that slows down slows all of them down. Two of
// them trace nothing: how far they are apart is how far the others may be by chance, and the mean
// of both is what the others are compared with.
func (b *bench) traces(ctx context.Context) (err error) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // whoever broke off is told nothing
	}))
	defer collector.Close()
	flags := func(share string) []string {
		return []string{"--traces-endpoint", collector.URL, "--traces-share", share}
	}
	for _, way := range []struct {
		name    string
		capture func(ctx context.Context, n *proc.Node, first int) error
	}{{"NATS request", func(ctx context.Context, n *proc.Node, first int) error {
		return load.Requests(ctx, n.NATS, b.texts, first, turn)
	}}, {"REST", b.oneByOne}} {
		sides := []*side{{what: "nothing"}, {what: "nothing, again"}, {what: "1 %", flags: flags("0.01")}, {what: "everything", flags: flags("1")}}
		for range b.opt.runs {
			if err := b.compare(ctx, sides, way.capture); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
		}
		off, again := sides[0], sides[1]
		b.table.Info("captures by "+way.name+", tracing nothing", turn/stats.Median(off.took), "/s", fmt.Sprintf("median of %d turns of %d", len(off.took), turn))
		for _, s := range sides[1:] {
			ratios := make([]float64, len(s.took))
			for i := range s.took {
				ratios[i] = s.took[i] / (off.took[i] + again.took[i]) * 2
				if s == again {
					ratios[i] = s.took[i] / off.took[i]
				}
			}
			base := (off.used + again.used).Seconds() / 2
			if s == again {
				base = off.used.Seconds()
			}
			what, note := "… tracing "+s.what+", time", fmt.Sprintf("median of %d ratios; processor %.3f ×", len(ratios), s.used.Seconds()/base)
			if s == sides[2] {
				b.table.AtMost(what, 1.02, stats.Median(ratios), "×", note)
			} else {
				b.table.Info(what, stats.Median(ratios), "×", note)
			}
		}
	}
	return nil
}

// compare gives new nodes of the sides captures in turns, each time another one first.
func (b *bench) compare(ctx context.Context, sides []*side, capture func(ctx context.Context, n *proc.Node, first int) error) (err error) {
	for _, s := range sides {
		if s.node, err = proc.Start(ctx, b.bin, b.newDir(), s.flags...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.node.Stop()) }()
		if err := capture(ctx, s.node, 0); err != nil { // the first turn opens what is opened once
			return err
		}
	}
	for i := range max(b.opt.captures/turn, 1) {
		for k := range sides {
			s := sides[(i/2+k)%len(sides)]
			if i%2 == 1 { // back, so that nobody comes behind the same one each time
				s = sides[(i/2+len(sides)-1-k)%len(sides)]
			}
			before, err := s.node.CPU()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := capture(ctx, s.node, (i+1)*turn); err != nil {
				return err
			}
			s.took = append(s.took, time.Since(began).Seconds())
			after, err := s.node.CPU()
			if err != nil {
				return err
			}
			s.used += after - before
		}
	}
	return nil
}

// oneByOne sends captures as requests of their own, eight at a time.
func (b *bench) oneByOne(ctx context.Context, n *proc.Node, first int) error {
	c, done, err := load.NewClient(n.HTTP)
	if err != nil {
		return err
	}
	defer done()
	return load.Captures(ctx, c, 8, turn, 1, func(i int) memory.Capture {
		return memory.Capture{Agent: load.Agent, Text: b.texts.Sized(first+i, load.TextSize)}
	})
}
