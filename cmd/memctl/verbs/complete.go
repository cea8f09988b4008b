package verbs

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mneme/memory"
)

// completionTimeout bounds how long a press of Tab may wait for the node.
const completionTimeout = time.Second

type completeFunc = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeNamespaces asks the node for its namespaces.
func completeNamespaces(a *app) completeFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := completing(cmd)
		defer cancel()
		c, err := a.dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		before := "" // of a list, for a search
		if cmd.Name() == "search" {
			before = begun[:strings.LastIndexByte(begun, ',')+1]
		}
		list, err := c.Namespaces(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, ns := range list.Namespaces {
			names = append(names, before+ns.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNodes asks the node for those of its cluster.
func completeNodes(a *app) completeFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := completing(cmd)
		defer cancel()
		c, err := a.dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		st, err := c.Cluster().Status(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(st.Nodes, clusterName), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeStopped asks the node for the events at which its shards have stopped.
func completeStopped(a *app) completeFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := completing(cmd)
		defer cancel()
		c, err := a.dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		st, err := c.Status(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var at []string
		for _, s := range st.Shards {
			if s.StoppedAt != "" {
				at = append(at, s.StoppedAt)
			}
		}
		return at, cobra.ShellCompDirectiveNoFileComp
	}
}

// completing bounds what one press of Tab asks.
func completing(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	return context.WithTimeout(parent, completionTimeout)
}

// completeFirst completes only the first argument.
func completeFirst(f completeFunc) completeFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

func completeKinds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range memory.Kinds {
		names = append(names, string(k))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeWords(words ...string) completeFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag registers a completion; it only fails for a flag that does not
// exist, which the tests would notice as a missing completion.
func completeFlag(cmd *cobra.Command, flag string, f completeFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}
