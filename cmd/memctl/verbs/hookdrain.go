package verbs

import (
	"github.com/spf13/cobra"

	"mneme/internal/hooks"
	"mneme/memory"
)

// drainAnswer is the document of `memctl hook drain`.
type drainAnswer struct {
	Sent      int           `json:"sent"`
	Waiting   int           `json:"waiting"`   // for this node
	Elsewhere []hooks.Queue `json:"elsewhere"` // for others
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
			addrs := append([]string{r.Addr}, r.Was...)
			before := r.Disk.Waiting(addrs...)
			left := before
			for left > 0 && cmd.Context().Err() == nil {
				now := r.Drain(cmd.Context())
				if now >= left {
					break
				}
				left = now
			}
			if left > 0 {
				return memory.Errorf(memory.CodeUnavailable, "%s of %d wait still", count(left, "capture", "captures"), before).
					WithHint("is the node running, and is the namespace there? hooks/log in the configuration directory says more")
			}
			answer := drainAnswer{Sent: before - left, Waiting: left, Elsewhere: r.Disk.Elsewhere(addrs...)}
			return a.emit(answer, nil, func() {
				a.printf("%s sent\n", count(answer.Sent, "capture", "captures"))
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
