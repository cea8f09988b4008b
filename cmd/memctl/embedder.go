package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"mneme/memory"
)

// embedderStatus is the default for new namespaces and what each one chose.
type embedderStatus struct {
	Default    memory.EmbedderInfo `json:"default"`
	Namespaces []namespaceEmbedder `json:"namespaces"`
}

type namespaceEmbedder struct {
	Name           string              `json:"name"`
	Embedder       memory.EmbedderInfo `json:"embedder"`
	PendingVectors uint64              `json:"pending_vectors"`
}

func embedderCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "embedder",
		Short:   "Show what turns text into vectors",
		Example: "  memctl embedder status",
	})
	cmd.AddCommand(&cobra.Command{
		Use:     "status",
		Short:   "Show the embedder of new namespaces and of each namespace",
		Example: "  memctl embedder status",
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
			list, err := c.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			out := embedderStatus{Default: st.Embedder, Namespaces: []namespaceEmbedder{}}
			var names []string
			var rows [][]string
			for _, ns := range list.Namespaces {
				out.Namespaces = append(out.Namespaces, namespaceEmbedder{ns.Name, ns.Embedder, ns.PendingVectors})
				names = append(names, ns.Name)
				rows = append(rows, []string{ns.Name, embedderLine(ns.Embedder), strconv.FormatUint(ns.PendingVectors, 10)})
			}
			return a.emit(out, names, func() {
				a.printf("new namespaces use %s\n", embedderLine(out.Default))
				if len(rows) > 0 {
					a.table([]column{{name: "NAMESPACE", sgr: "1"}, {name: "EMBEDDER", flex: true}, {name: "PENDING", right: true}}, rows)
				}
			})
		},
	})
	return cmd
}
