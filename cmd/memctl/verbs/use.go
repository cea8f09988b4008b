package verbs

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func useCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "use [NAMESPACE]",
		Short: "Remember a namespace, and with --addr, --as, --token-file, --tls-… also those",
		Long:  "Remember a namespace for the next calls, and the address, agent and token file\nif they are given. Without arguments: show what is remembered.",
		Example: `  memctl use team-a
  memctl use team-a --addr http://10.0.0.7:8787 --as agent-7`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: completeFirst(completeNamespaces(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			rem, err := a.remembered()
			if err != nil {
				return err
			}
			if len(args) == 0 && a.flags.addr == "" && a.flags.as == "" && a.flags.tokenFile == "" && a.flags.tlsCA+a.flags.tlsCert+a.flags.tlsKey == "" {
				return showRemembered(a, rem)
			}
			if len(args) == 1 {
				if bad := memory.CheckName("namespace", args[0]); bad != nil {
					return bad
				}
				rem.Namespace = args[0]
			}
			if rem, err = mergeFlags(a, rem); err != nil {
				return err
			}
			if len(args) == 1 {
				if err := checkNamespace(a, cmd, args[0]); err != nil {
					return err
				}
			}
			if err := a.remember(rem); err != nil {
				return err
			}
			if elsewhere := a.tokenElsewhere(); elsewhere != "" {
				a.note("note: %s", elsewhere)
			}
			if ns, from, err := namespaceIn(a, ""); err == nil && from == fromProject && ns != rem.Namespace {
				a.note("note: this folder's project has a namespace of its own, %s, which counts here: `memctl project use %s` changes that", ns, rem.Namespace)
			}
			return a.emit(rem, []string{rem.Namespace}, func() {
				a.printf("using namespace %s\n", first(rem.Namespace, "(none)"))
				if ns, _, err := namespaceIn(a, ""); err == nil && ns == "" {
					a.next("memctl namespace list, memctl use NAMESPACE")
					return
				}
				a.next("memctl capture \"…\", memctl search \"…\"")
			})
		},
	}
}

func mergeFlags(a *app, rem remembered) (remembered, error) {
	if _, err := a.dial(); err != nil { // checks address, agent and token
		return rem, err
	}
	rem.Addr = first(a.flags.addr, rem.Addr)
	rem.Agent = first(a.flags.as, rem.Agent)
	for kept, given := range map[*string]string{&rem.TokenFile: a.flags.tokenFile, &rem.TLSCA: a.flags.tlsCA, &rem.TLSCert: a.flags.tlsCert, &rem.TLSKey: a.flags.tlsKey} {
		if given == "" {
			continue
		}
		path, err := filepath.Abs(given)
		if err != nil {
			return rem, err
		}
		*kept = path
	}
	if a.flags.tokenFile != "" {
		whole, err := wholeAddr(a.addr(rem))
		if err != nil {
			return rem, err
		}
		rem.TokenFor = whole
	}
	return rem, nil
}

// checkNamespace refuses a namespace that the node does not have. A node that
// is away is no reason not to remember.
func checkNamespace(a *app, cmd *cobra.Command, name string) error {
	c, err := a.dial()
	if err != nil {
		return err
	}
	_, err = c.Namespace(cmd.Context(), name)
	if errors.Is(err, client.ErrForeign) && !memory.CodeOf(err).Transient() {
		return err // of the namespace nothing was said
	}
	switch memory.CodeOf(err) {
	case "":
		return nil
	case memory.CodeUnavailable, memory.CodeTimeout:
		a.note("note: could not check whether %s exists: %s; when the node is there, `memctl namespace create %s` makes it if it is missing", name, oneLine(err.Error()), name)
		return nil
	case memory.CodeNotFound:
		return memory.AsError(err).WithHint("create it with `memctl namespace create %s`", name)
	}
	return err
}

func showRemembered(a *app, rem remembered) error {
	return a.emit(rem, []string{rem.Namespace}, func() {
		a.printf("namespace   %s\n", first(rem.Namespace, "-"))
		a.printf("address     %s\n", first(rem.Addr, "-"))
		a.printf("agent       %s\n", first(rem.Agent, "-"))
		if rem.TokenFile == "" {
			a.printf("token file  -\n")
		} else {
			a.printf("token file  %s, for %s\n", rem.TokenFile, rem.tokenFor())
		}
		if rem.TLSCA != "" {
			a.printf("authority   %s\n", rem.TLSCA)
		}
		if rem.TLSCert != "" {
			a.printf("certificate %s, key %s\n", rem.TLSCert, first(rem.TLSKey, "-"))
		}
		if rem.Namespace == "" {
			a.next("memctl use NAMESPACE")
		}
	})
}
