package cluster

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var (
	robustSeed  = flag.Uint64("robust.seed", 0, "seed of TestRobustness; 0 is another one each time with -robust.for, else 1")
	robustFor   = flag.Duration("robust.for", 0, "how long TestRobustness goes on; 0 is one round of a few faults")
	robustOnly  = flag.String("robust.only", "", "regexp of the faults that TestRobustness takes")
	robustNot   = flag.String("robust.not", "^$", "regexp of the faults that it leaves out")
	robustNodes = flag.Int("robust.nodes", 3, "how many nodes TestRobustness has: 3 or 5")
	robustParts = flag.Int("robust.shards", 1, "how many shards the nodes of TestRobustness have")
	robustDrops = flag.Bool("robust.packets", false, "have the nodes of TestRobustness run in network namespaces, where packets are dropped, instead of behind relays; needs root")
	robustNATS  = flag.Bool("robust.external", false, "have TestRobustness keep the log on three servers of an external NATS")
	robustOut   = flag.String("robust.out", "", "file to add the table of TestRobustness to")
)

// tally is what came of the runs of one nemesis.
type tally struct {
	cannot           string // why it did not run
	runs, undecided  int
	took, gap, worst time.Duration
	done, other      int
}

// Clients write and read while faults happen, one after the other in an order by chance.
// After each the nodes must hold what the clients were told, and after a round of all
// faults the log must fold to the same state. The same seed makes the same faults; what
// they meet is another thing each time.
func TestRobustness(t *testing.T) {
	if *robustDrops && !inNamespace(t) {
		return
	}
	seed := *robustSeed
	if seed == 0 {
		if seed = 1; *robustFor > 0 {
			seed = rand.Uint64N(1 << 32)
		}
	}
	only, err := regexp.Compile(*robustOnly)
	must(t, err)
	not, err := regexp.Compile(*robustNot)
	must(t, err)
	chosen := slices.DeleteFunc(slices.Clone(nemeses), func(n nemesis) bool { return !only.MatchString(n.name) || not.MatchString(n.name) })
	if *robustFor == 0 && *robustOnly == "" {
		chosen = slices.DeleteFunc(chosen, func(n nemesis) bool { return !slices.Contains(everyTime, n.name) })
	}
	again := *robustOnly
	if again == "" && *robustFor > 0 {
		again = "." // all of them, in one round
	}
	began, tallies := time.Now(), map[string]*tally{}
	defer func() { report(t, tallies, time.Since(began), seed) }()
	for round := uint64(0); round == 0 || time.Since(began) < *robustFor; round++ {
		ok := t.Run(fmt.Sprintf("seed=%d", seed+round), func(t *testing.T) {
			t.Logf("again: go test ./test/cluster -run '^TestRobustness$' -robust.nodes=%d -robust.shards=%d -robust.external=%t -robust.packets=%t -robust.seed=%d -robust.only=%q -robust.not=%q",
				*robustNodes, *robustParts, *robustNATS, *robustDrops, seed+round, again, *robustNot)
			robustRound(t, seed+round, chosen, tallies)
		})
		if !ok {
			return
		}
	}
}

// everyTime are the faults that each run of all tests has.
var everyTime = []string{"kill the leader", "cut what the leader sends"}

// robustRound has one team meet each fault once.
func robustRound(t *testing.T, seed uint64, chosen []nemesis, tallies map[string]*tally) {
	var tm *team
	if *robustDrops {
		tm = newTeamInNamespaces(t, *robustNodes)
	} else {
		tm = newRelayedTeam(t, *robustNodes, seed)
	}
	if *robustFor > 0 || *robustOnly != "" {
		program, err := faultyMemnode()
		if tm.faulty = err; err == nil {
			tm.program = program
		}
	}
	if *robustNATS {
		tm.onExternalNATS()
	}
	for _, p := range tm.nodes {
		p.args = append(p.args, "--shards", fmt.Sprint(*robustParts))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	tm.start(within(t, patience))
	for i, at := range random.Perm(len(chosen)) {
		n := chosen[at]
		if n.cannot != nil {
			if why := n.cannot(tm); why != "" {
				t.Logf("SKIPPED: %s: %s", n.name, why)
				tallies[n.name] = &tally{cannot: why}
				continue
			}
		}
		ctx := within(t, 3*patience)
		began := time.Now()
		l := tm.startLoad(ctx, fmt.Sprintf("load-%d", i), seed+uint64(i)<<32)
		f := &fault{tm: tm, random: random, shard: l.shard}
		f.lead, f.term = tm.led(ctx, f.shard, nil)
		pause(ctx, time.Second)
		bit := n.does(ctx, f)
		if t.Failed() { // a node may not run
			l.end()
			return
		}
		pause(ctx, time.Second)
		tm.serves(ctx)
		l.end()
		tm.serves(ctx) // what was accepted before is applied now
		verifying := time.Now()
		undecided := l.verify(ctx, tm.nodes[random.IntN(len(tm.nodes))])
		t.Logf("%s: %s; longest without an acknowledgement %v; took %v and %v to verify; done/refused/unknown: %s", n.name, bit, l.gap.Round(time.Millisecond),
			verifying.Sub(began).Round(time.Millisecond), time.Since(verifying).Round(time.Millisecond), l.summary())
		if bit == "" {
			t.Errorf("%s: nothing shows that the fault was there", n.name)
		}
		if t.Failed() {
			return
		}
		tallies[n.name] = tallies[n.name].with(l, time.Since(began), undecided)
	}
	tm.verifyLogs(within(t, 3*patience), tm.nodes[random.IntN(len(tm.nodes))])
	if n := tm.net.strangers(); n > 0 {
		t.Logf("%d connections came from processes that were killed", n)
	}
}

// within is the test's context for so long at most.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// serves waits until a write through every node is acknowledged.
func (tm *team) serves(ctx context.Context) {
	tm.t.Helper()
	for _, p := range tm.nodes {
		select {
		case <-p.exited:
			tm.t.Fatalf("%s ended by itself: %s", p.id, p.cmd.ProcessState)
		default:
		}
		p.capture(ctx, fmt.Sprintf("%s-%d", p.id, time.Now().UnixNano()), "the faults are over")
	}
}

// with adds one run.
func (n *tally) with(l *load, took time.Duration, undecided int) *tally {
	if n == nil {
		n = &tally{}
	}
	n.runs++
	n.took += took
	n.gap += l.gap
	n.worst = max(n.worst, l.gap)
	n.undecided += undecided
	for what, count := range l.counts {
		if strings.HasSuffix(what, "done") {
			n.done += count
		} else {
			n.other += count
		}
	}
	return n
}

// report prints the table of faults.
func report(t *testing.T, tallies map[string]*tally, took time.Duration, seed uint64) {
	if len(tallies) == 0 {
		return
	}
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 8, 1, ' ', 0)
	fmt.Fprintf(w, "| fault\t| runs\t| minutes\t| operations done\t| not done, or unknown\t| mean gap, s\t| longest, s\t| undecided\t|\n|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|\n")
	for _, n := range nemeses {
		y := tallies[n.name]
		switch {
		case y == nil:
		case y.cannot != "":
			fmt.Fprintf(w, "| %s\t| not run: %s\t|\t|\t|\t|\t|\t|\t|\n", n.name, y.cannot)
		default:
			fmt.Fprintf(w, "| %s\t| %d\t| %.1f\t| %d\t| %d\t| %.1f\t| %.1f\t| %d\t|\n", n.name, y.runs, y.took.Minutes(), y.done, y.other,
				(y.gap / time.Duration(y.runs)).Seconds(), y.worst.Seconds(), y.undecided)
		}
	}
	_ = w.Flush()
	verdict := "no violation"
	if t.Failed() {
		verdict = "VIOLATED"
	}
	on := fmt.Sprintf("%d nodes, %d shards", *robustNodes, *robustParts)
	if *robustNATS {
		on += ", an external NATS"
	}
	if *robustDrops {
		on += ", packets that are dropped"
	}
	text := fmt.Sprintf("%s with %s in %.1f minutes, from seed %d on\n\n%s", verdict, on, took.Minutes(), seed, sb.String())
	t.Log("\n" + text)
	if *robustOut != "" {
		f, err := os.OpenFile(*robustOut, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		fmt.Fprintln(f, text)
	}
}
