// Package pages writes what a shell and man know of a command line: man pages and
// completions, from its tree of verbs.
//
// Invariant: what is written follows from the tree and from SOURCE_DATE_EPOCH alone, where
// that is set.
//
// Only tests call it, which `make release` runs to write them into its archives: the programs
// do not carry what makes man pages.
package pages

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Folders below a prefix such as /usr/local where shells and man look. No shell looks for
// PowerShell's.
const (
	Man        = "share/man/man1"
	Bash       = "share/bash-completion/completions"
	Zsh        = "share/zsh/site-functions"
	Fish       = "share/fish/vendor_completions.d"
	PowerShell = "share/mneme/powershell"
)

// Write writes the pages and completions of a program below prefix. It changes the texts of
// root, which is for nothing else afterwards.
func Write(root *cobra.Command, prefix string) error {
	at := map[string]string{}
	for _, dir := range []string{Man, Bash, Zsh, Fish, PowerShell} {
		at[dir] = filepath.Join(prefix, filepath.FromSlash(dir))
		if err := os.MkdirAll(at[dir], 0o755); err != nil {
			return err
		}
	}
	name := root.Name()
	for _, write := range []func() error{
		func() error { return root.GenBashCompletionFileV2(filepath.Join(at[Bash], name), true) },
		func() error { return root.GenZshCompletionFile(filepath.Join(at[Zsh], "_"+name)) },
		func() error { return root.GenFishCompletionFile(filepath.Join(at[Fish], name+".fish"), true) },
		func() error {
			return root.GenPowerShellCompletionFileWithDesc(filepath.Join(at[PowerShell], name+".ps1"))
		},
	} {
		if err := write(); err != nil {
			return err
		}
	}
	escapeTree(root, map[*pflag.Flag]bool{})
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Source: "Mneme", Manual: "Mneme"}, at[Man])
}

// escapeTree makes the texts of all verbs Markdown, as doc reads them: it would take
// <data-dir> for a tag and leave it out. A flag is escaped once, for verbs share some.
func escapeTree(cmd *cobra.Command, done map[*pflag.Flag]bool) {
	cmd.Short, cmd.Long = escape(cmd.Short), escape(cmd.Long)
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !done[f] {
				done[f], f.Usage = true, escape(f.Usage)
			}
		})
	}
	for _, sub := range cmd.Commands() {
		escapeTree(sub, done)
	}
}

var markdown = strings.NewReplacer("<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`)

// escape keeps what is between backquotes, where Markdown takes letters as they are.
func escape(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = markdown.Replace(parts[i])
	}
	return strings.Join(parts, "`")
}
