package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
)

const (
	wantedRatio  = 10 // at the largest size
	observations = 3  // of each entity
	longest      = 160
)

// knowledge is what both servers answer with.
type knowledge struct{ Entities []struct{ Name string } }

func (k knowledge) names() []string {
	var out []string
	for _, e := range k.Entities {
		out = append(out, e.Name)
	}
	slices.Sort(out)
	return out
}

// graph measures the tools of the knowledge graph beside the official server: both hold the
// same graph, and are called in turns.
func (b *bench) graph(ctx context.Context) error {
	if _, err := os.Stat(b.opt.official); err != nil {
		b.table.Note("the official memory server is not installed, so nothing was compared with it: `make bench-agents` does it, or `npm ci` in bench/agents")
		return nil
	}
	for i, n := range b.opt.sizes {
		if err := b.graphOf(ctx, n, i == len(b.opt.sizes)-1); err != nil {
			return fmt.Errorf("%d entities: %w", n, err)
		}
	}
	return b.twoWriters(ctx)
}

// officialOn is the official server on a file.
func (b *bench) officialOn(ctx context.Context, file string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.opt.official)
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+file)
	return cmd
}

func (b *bench) oursOn(ctx context.Context, namespace string) *exec.Cmd {
	return b.command(ctx, "mcp", "--start", "never", "--profile", "graph", "-n", namespace)
}

// graphOf measures at one size.
func (b *bench) graphOf(ctx context.Context, n int, largest bool) (err error) {
	file, ns := filepath.Join(b.dir, fmt.Sprintf("memory-%d.jsonl", n)), fmt.Sprintf("graph-%d", n)
	if err := b.writeGraph(file, n); err != nil {
		return err
	}
	if _, err := b.call(ctx, "namespace", "create", ns); err != nil {
		return err
	}
	if _, err := b.call(ctx, "import", "-n", ns, "--format", "mcp-memory", file); err != nil {
		return err
	}
	ours, err := connect(ctx, b.oursOn(ctx, ns))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	official, err := connect(ctx, b.officialOn(ctx, file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, official.Close()) }()
	both := []session{ours, official}
	took := map[string][2][]float64{}
	for i := range warmUps/4 + b.opt.calls {
		at := (i * 7919) % n // all over the graph
		add := map[string]any{"observations": []any{map[string]any{"entityName": entityName(at), "contents": []string{fmt.Sprintf("seen in round %d", i)}}}}
		find := map[string]any{"query": ticket(at)}
		for _, c := range []struct {
			tool string
			args any
		}{{"add_observations", add}, {"search_nodes", find}} {
			var answers [2]knowledge
			times := took[c.tool]
			for k, s := range both {
				d, err := s.call(ctx, c.tool, c.args, &answers[k])
				if err != nil {
					return err
				}
				if i >= warmUps/4 {
					times[k] = append(times[k], report.Millis(d))
				}
			}
			took[c.tool] = times
			if c.tool == "search_nodes" && (!slices.Equal(answers[0].names(), answers[1].names()) || len(answers[0].Entities) == 0) {
				return fmt.Errorf("search_nodes %v: %q here, %q there", c.args, answers[0].names(), answers[1].names())
			}
		}
	}
	for _, tool := range []string{"add_observations", "search_nodes"} {
		mine, theirs := stats.Median(took[tool][0]), stats.Median(took[tool][1])
		what := fmt.Sprintf("%s, %d entities: the official server's median ÷ ours", tool, n)
		detail := fmt.Sprintf("%s ms ÷ %s ms, %d calls of each in turns", report.Number(theirs), report.Number(mine), b.opt.calls)
		if largest {
			b.table.AtLeast(what, wantedRatio, theirs/mine, "", detail)
		} else {
			b.table.Info(what, theirs/mine, "", detail)
		}
	}
	b.say("%d entities compared", n)
	return nil
}

func entityName(i int) string { return fmt.Sprintf("service-%05d", i) }

func ticket(i int) string { return fmt.Sprintf("OPS-%05d", i) }

// writeGraph writes a graph of n entities in the official server's format: each with texts of
// the corpus and a ticket of its own as observations, and related to the next.
func (b *bench) writeGraph(file string, n int) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for i := range n {
		said := []string{"its ticket is " + ticket(i)}
		for k := 1; k < observations; k++ {
			text := strings.Join(strings.Fields(b.texts.Texts[(i*observations+k)%len(b.texts.Texts)]), " ")
			said = append(said, strings.ToValidUTF8(text[:min(len(text), longest)], ""))
		}
		if err := enc.Encode(map[string]any{"type": "entity", "name": entityName(i), "entityType": "service", "observations": said}); err != nil {
			return err
		}
	}
	for i := range n - 1 {
		if err := enc.Encode(map[string]any{"type": "relation", "from": entityName(i), "to": entityName(i + 1), "relationType": "calls"}); err != nil {
			return err
		}
	}
	return w.Flush()
}
