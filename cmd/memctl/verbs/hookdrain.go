package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/internal/hooks"
	"mneme/memory"
)

// drainAnswer is the document of `memctl hook drain`.
type drainAnswer struct {
	hooks.Drained
	Elsewhere []hooks.Queue `json:"elsewhere"` // waits for other nodes
}

// add counts what another turn sent.
func (d *drainAnswer) add(now hooks.Drained) {
	d.Sent, d.Refused, d.Aside, d.Waiting, d.Why = d.Sent+now.Sent, d.Refused+now.Refused, d.Aside+now.Aside, now.Waiting, now.Why
}

func hookDrainCmd(a *app) *cobra.Command {
	var was []string
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Send what hooks could not send",
		Long: `Sends the captures that wait because the node was away, oldest first. Each hook that
runs does so, too, for two seconds. What waits for a node goes to that node and to no
other: --addr says which, and --was that it had another address before.`,
		Example: "  memctl hook drain\n  memctl hook drain --addr node.example:8787 --was 127.0.0.1:8787",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := hookRunner(cmd.Context(), a, "", "", hookNote(a))
			if err != nil {
				return err
			}
			for _, addr := range was {
				if addr, err = nodeNamed(addr); err != nil {
					return err
				}
				r.Was = append(r.Was, addr)
			}
			var answer drainAnswer
			for next := true; next && cmd.Context().Err() == nil; {
				now := r.Drain(cmd.Context())
				answer.add(now)
				next = now.Cut && now.Sent+now.Refused+now.Aside > 0
			}
			if answer.Waiting > 0 {
				wait := fmt.Sprintf("%s of %d wait still", count(answer.Waiting, "capture", "captures"), answer.Waiting+answer.Sent+answer.Refused+answer.Aside)
				if answer.Why != nil { // which knows what to do about it
					return fmt.Errorf("%s: %w", wait, answer.Why)
				}
				return memory.Errorf(memory.CodeUnavailable, "%s", wait).WithHint("hooks/log in the configuration directory says why")
			}
			answer.Elsewhere = r.Disk.Elsewhere(append(r.Was, r.Addr)...)
			return a.emit(answer, nil, func() {
				a.printf("%s sent\n", count(answer.Sent, "capture", "captures"))
				if answer.Refused > 0 {
					a.printf("%s refused for good\n", count(answer.Refused, "capture was", "captures were"))
				}
				if answer.Aside > 0 {
					a.printf("%s set aside\n", count(answer.Aside, "file that does not open was", "files that do not open were"))
				}
				printElsewhere(a, answer.Elsewhere)
			})
		},
	}
	cmd.Flags().StringArrayVar(&was, "was", nil, "an address that the node had before; what waits for that one is sent, too (repeatable)")
	return cmd
}

// printElsewhere says what waits for other nodes.
func printElsewhere(a *app, queues []hooks.Queue) {
	for _, q := range queues {
		a.println(count(q.Captures, "capture waits", "captures wait") + " for the node at " + q.Addr)
		a.next("memctl hook drain --addr %s", q.Addr)
	}
}
