package verbs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func statusCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the node, its shards and their positions",
		Example: "  memctl status --json | jq '.shards[].state_hash'",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial()
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			var ids []string
			for _, n := range st.Nodes {
				ids = append(ids, n.ID)
			}
			return a.emit(st, ids, func() { printStatus(a, c.Addr(), st) })
		},
	}
}

// names are what nodes are called: by their ids, and in full where several have the same.
func names[N any](nodes []N, of func(N) (id, name string)) []string {
	times, out := map[string]int{}, make([]string, len(nodes))
	for _, n := range nodes {
		id, _ := of(n)
		times[id]++
	}
	for i, n := range nodes {
		id, name := of(n)
		if out[i] = id; times[id] > 1 {
			out[i] = first(name, id)
		}
	}
	return out
}

// scrubLine says how far the slow reading of the whole log is; "" before the
// first.
func scrubLine(s memory.ScrubStatus) string {
	switch {
	case s.Problem != "":
		return "the last reading of the whole log found: " + oneLine(s.Problem)
	case s.Running:
		return fmt.Sprintf("reading the whole log: %d of %d", s.Done, s.Total)
	case !s.FinishedAt.IsZero():
		return "the whole log was read and is sound, " + s.FinishedAt.Format(time.RFC3339)
	}
	return ""
}

// copyLine says how the files of the node's own copy of the log are.
func copyLine(a *app, c memory.CopyStatus) string {
	switch {
	case c.Damage != "" && c.Waits != "":
		return a.paint("31", "damaged: ") + oneLine(c.Damage) + "; not taken from the others yet: " + oneLine(c.Waits)
	case c.Damage != "":
		return a.paint("31", "damaged: ") + oneLine(c.Damage)
	case c.CheckedAt.IsZero():
		return "of the log, not read since the start"
	}
	return "of the log, read and sound " + c.CheckedAt.Format(time.RFC3339)
}

func printStatus(a *app, addr string, st memory.Status) {
	a.printf("cluster   %s at %s, auth %s\n", oneLine(st.ClusterID), addr, first(oneLine(st.Auth), "-"))
	called := names(st.Nodes, func(n memory.NodeStatus) (id, name string) { return n.ID, n.Name })
	for i, n := range st.Nodes {
		a.printf("node      %s  %s  %s  %s\n", a.paint("1", oneLine(called[i])), oneLine(n.Role), oneLine(n.Address), oneLine(n.Version))
	}
	there, silent := 0, 0
	for _, n := range st.Nodes {
		switch {
		case n.Learner:
		case n.Role == memory.RoleUnreachable:
			silent++
		default:
			there++
		}
	}
	if there <= silent {
		a.printf("          "+a.paint("31", "%d of %d nodes answer: ")+"nothing is written until most do\n", there, there+silent)
		a.next("memctl doctor")
	}
	for _, c := range st.Certificates {
		until := c.ExpiresAt.Format(time.DateOnly)
		if left := c.ExpiresAt.Sub(a.sys.now()); left < 14*24*time.Hour {
			until = a.paint("31", until)
		}
		a.printf("TLS       certificate for %s until %s\n", oneLine(c.For), until)
	}
	for _, s := range st.Shards {
		a.printf("shard %-3d %s at %s, epoch %d, leader %s\n", s.ID, count(int(s.Records), "memory", "memories"), first(s.Position, "-"), s.Epoch, first(oneLine(s.Leader), "-"))
		log := fmt.Sprintf("log %d to %d, %d lost", s.Log.First, s.Log.Last, s.Log.Lost)
		if s.Log.Unreachable != "" {
			log = a.paint("31", "the log is not reached: ") + oneLine(s.Log.Unreachable)
		}
		a.printf("          state %s (pipeline %d), %s\n", first(s.StateHash, "-"), s.PipelineVersion, log)
		if line := scrubLine(s.Log.Scrub); line != "" {
			a.println("          " + line)
		}
		if p := s.Log.Repair; p != nil && p.Total > 0 {
			a.printf("          writing the log from the state: %d of %d\n", p.Done, p.Total)
		} else if p != nil {
			a.println("          writing the log from the state has not begun yet")
		}
		if s.PendingVectors > 0 {
			a.printf("          %d vectors are still being made\n", s.PendingVectors)
		}
		if e := s.Erasing; e != nil {
			a.printf("          what was deleted is leaving the files since %s, step: %s\n", e.Since.Format(time.RFC3339), oneLine(e.Step))
			if e.Error != "" {
				a.println("          " + a.paint("31", "the last attempt failed: ") + oneLine(e.Error))
			}
		}
		if s.Log.Diverged != "" {
			a.println("          " + a.paint("31", "writes are stopped: ") + oneLine(s.Log.Diverged))
			if s.Log.Repair == nil { // else it ends by itself
				a.next("memctl log verify")
			}
		} else if s.StoppedAt == "" { // else that says it
			printStopped(a, s.WritesStopped)
		}
		if s.Lacks > 0 {
			a.printf("          "+a.paint("31", "not read: ")+"the state lacks %d frames of the log, for which the disk has no room\n", s.Lacks)
		}
		if s.Halted != "" {
			a.println("          " + a.paint("31", "halted: ") + oneLine(s.Halted))
		}
		if s.StoppedAt != "" {
			a.println("          reads go on; memctl quarantine " + oneLine(s.StoppedAt) + " has the shard go on without this event")
		}
	}
	if c := st.Copy; c != nil {
		a.printf("copy      %s\n", copyLine(a, *c))
	}
	a.printf("embedder  %s\n", embedderLine(st.Embedder))
	guard := first(oneLine(st.Vector.RecallGuard.State), "none")
	if guard != "none" {
		guard += fmt.Sprintf(" (recall %.3f)", st.Vector.RecallGuard.Recall)
	}
	a.printf("vectors   %s, recall guard %s\n", first(oneLine(st.Vector.Engine), "-"), guard)
}

// printStopped says why a shard takes no writes, and what helps, on one line.
func printStopped(a *app, s *memory.WritesStopped) {
	if s == nil {
		return
	}
	line := oneLine(s.Why)
	if s.Node != "" {
		line += " (" + oneLine(s.Node) + " leads)"
	}
	if s.Hint != "" {
		line += "; " + oneLine(s.Hint)
	}
	a.println("          " + a.paint("31", "writes are stopped: ") + line)
}

func embedderLine(e memory.EmbedderInfo) string {
	if e.Provider == "" || e.Provider == "none" {
		return "none"
	}
	return oneLine(fmt.Sprintf("%s %s, %d dimensions, space %s", e.Provider, e.Model, e.Dimensions, e.Space))
}
