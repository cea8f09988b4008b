package verbs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"mneme/internal/hooks"
	"mneme/memory"
)

// drainAnswer is the document of `memctl hook drain`.
type drainAnswer struct {
	hooks.Drained
	Elsewhere []hooks.Queue `json:"elsewhere"` // waits for other nodes
}

func hookDrainCmd(a *app) *cobra.Command {
	var was []string
	var start string
	var alone bool
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Send what hooks could not send",
		Long: `Sends the captures that wait because the node was away, oldest first. A hook that finds
some has this done, too, beside it. What waits for a node goes to that node and to no
other: --addr says which, and --was that it had another address before. What was said where
no namespace was known goes to the one that was chosen for its folder since; -n names none.`,
		Example: "  memctl hook drain\n  memctl hook drain --addr node.example:8787 --was 127.0.0.1:8787",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if alone {
				hookDrainsAlone(cmd.Context(), a, start)
				return nil
			}
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
			answer := drainAnswer{Drained: r.Drain(cmd.Context(), hooks.DrainOptions{Wait: true})}
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
					a.printf("%s set aside\n", count(answer.Aside, "file that holds no capture was", "files that hold no capture were"))
				}
				printElsewhere(a, answer.Elsewhere)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&was, "was", nil, "an address that the node had before; what waits for that one is sent, too (repeatable)")
	fl.BoolVar(&alone, "alone", false, "called by a hook, and waited for by nobody")
	fl.StringVar(&start, "start", startNever, "as that of the hook")
	for _, name := range []string{"alone", "start"} {
		_ = fl.MarkHidden(name) // they are there
	}
	return cmd
}

// hookDrains has another process send what waits, for which no host waits. Where none can be started,
// this one does for as long as a hook may.
func hookDrains(ctx context.Context, a *app, r *hooks.Runner, start string, note func(string, ...any)) {
	if a.sys.again != nil {
		args := []string{"hook", "drain", "--alone", "--start", start}
		if a.flags.addr != "" {
			args = append(args, "--addr", a.flags.addr)
		}
		for _, f := range []struct{ name, path string }{{"token-file", a.flags.tokenFile}, {"tls-ca", first(a.flags.tlsCA, a.sys.getenv("MNEME_TLS_CA"))},
			{"tls-cert", first(a.flags.tlsCert, a.sys.getenv("MNEME_TLS_CLIENT_CERT"))}, {"tls-key", first(a.flags.tlsKey, a.sys.getenv("MNEME_TLS_CLIENT_KEY"))}} {
			if whole, err := filepath.Abs(f.path); f.path != "" && err == nil { // it works in another folder
				args = append(args, "--"+f.name, whole)
			}
		}
		err := a.sys.again(args)
		if err == nil {
			return
		}
		note("memctl hook: nothing could be started that sends what waits: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, hookDraining)
	defer cancel()
	r.Drain(ctx, hooks.DrainOptions{Yield: true})
}

// hookDrainsAlone is what hookDrains starts. What goes wrong stands in the log.
func hookDrainsAlone(ctx context.Context, a *app, start string) {
	note := hookNote(a)
	defer hookRecovers(note)
	wake := hookWakes(a, start, note)
	r, err := hookRunner(ctx, a, "", "", note)
	if err != nil {
		note("memctl hook: %v", err)
		return
	}
	r.Drain(ctx, hooks.DrainOptions{Yield: true})
	wake()
}

// printElsewhere says what waits for other nodes.
func printElsewhere(a *app, queues []hooks.Queue) {
	for _, q := range queues {
		a.println(count(q.Captures, "capture waits", "captures wait") + " for the node at " + q.Addr)
		a.next("memctl hook drain --addr %s", q.Addr)
	}
}
