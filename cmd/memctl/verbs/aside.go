package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"mneme/memory"
)

const asideHelp = `A repair moves what it cannot use out of the way instead of removing it: what a node had
before it came back under another name, states and files of Raft that were built anew,
blocks of the log as they were. It is for a person to look at. Nothing uses it, nothing
erases in it but for states, and nothing removes it by itself.
`

func asideCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "aside",
		Short: "What repairs have set aside on a node",
		Long:  asideHelp,
		Example: `  memctl aside list
  memctl aside remove --older-than 30d --dry-run`,
	})
	cmd.AddCommand(asideListCmd(a), asideRemoveCmd(a))
	return cmd
}

func asideListCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what repairs have set aside, with its size, its age and why it is there",
		Long:  asideHelp + "\nIt is that of the node that is asked: ask each.\n",
		Example: `  memctl aside list
  memctl aside list --json | jq .bytes
  memctl aside list --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listAside(cmd.Context(), a)
			if err != nil {
				return err
			}
			return a.emit(list, pathsOf(list.Aside), func() { printAside(a, list) })
		},
	}
	dataDirFlag(a, cmd)
	return cmd
}

func listAside(ctx context.Context, a *app) (memory.AsideList, error) {
	if a.flags.dataDir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.AsideList{}, err
		}
		return off.Aside(a.flags.dataDir)
	}
	c, err := a.dialOperator(ctx)
	if err != nil {
		return memory.AsideList{}, err
	}
	return c.Process().Aside(ctx)
}

func asideRemoveCmd(a *app) *cobra.Command {
	var yes, dryRun bool
	older := timeFlag{now: a.sys.now}
	cmd := &cobra.Command{
		Use:   "remove --older-than AGE",
		Short: "Remove what repairs have set aside longer ago than that",
		Long: asideHelp + `
What was set aside longer ago is removed from the node that is asked, for ever. Nothing is
removed while the log of that node is known to be damaged: what it lost may lie there, so
memctl log repair comes first.
`,
		Example: `  memctl aside remove --older-than 30d --dry-run
  memctl aside remove --older-than 30d --yes
  memctl aside remove --older-than 2026-01-01 --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if older.t.IsZero() {
				return usage(cmd, "--older-than is missing")
			}
			req := memory.RemoveAside{Before: older.t, DryRun: true}
			removal, err := removeAside(cmd.Context(), a, req)
			if err == nil && !dryRun {
				if len(removal.Removed) > 0 {
					err = a.confirm(yes, "Remove "+count(len(removal.Removed), "thing", "things")+", "+sizeOf(removal.Bytes)+", for ever? [y/N]", "")
				}
				if req.DryRun = false; err == nil {
					removal, err = removeAside(cmd.Context(), a, req)
				}
			}
			if err != nil {
				return err
			}
			return a.emit(removal, pathsOf(removal.Removed), func() { printAsideRemoval(a, removal) })
		},
	}
	cmd.Flags().Var(&older, "older-than", "remove what was set aside before this `time`, such as 30d")
	destructiveFlags(cmd, &yes, &dryRun)
	dataDirFlag(a, cmd)
	return cmd
}

func removeAside(ctx context.Context, a *app, req memory.RemoveAside) (memory.AsideRemoval, error) {
	if a.flags.dataDir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.AsideRemoval{}, err
		}
		return off.RemoveAside(ctx, a.flags.dataDir, req)
	}
	c, err := a.dialOperator(ctx)
	if err != nil {
		return memory.AsideRemoval{}, err
	}
	return c.Process().RemoveAside(ctx, req)
}

func pathsOf(things []memory.Aside) (paths []string) {
	for _, one := range things {
		paths = append(paths, one.Path)
	}
	return paths
}

func printAside(a *app, list memory.AsideList) {
	if len(list.Aside) == 0 {
		a.println("nothing lies aside")
		return
	}
	var rows [][]string
	for _, one := range list.Aside {
		rows = append(rows, []string{one.Path, sizeOf(one.Bytes), a.age(one.At), one.Why})
	}
	a.table([]column{{name: "PATH"}, {name: "SIZE"}, {name: "AGE"}, {name: "WHY", flex: true}}, rows)
	a.printf("%s in all\n", sizeOf(list.Bytes))
	a.next("memctl aside remove --older-than 30d --dry-run")
}

func printAsideRemoval(a *app, r memory.AsideRemoval) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, one := range r.Removed {
		a.printf("%s %s, %s\n", verb, oneLine(one.Path), sizeOf(one.Bytes))
	}
	if len(r.Removed) == 0 {
		a.println("nothing that lies aside is so old")
	}
	a.printf("%s %s; kept %s\n", verb, sizeOf(r.Bytes), count(len(r.Kept), "thing that is younger", "things that are younger"))
}
