package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run is memnode without the process around it: it returns the exit code.
func run(ctx context.Context, sys system, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			f := panicked(p)
			report(sys.err, f)
			code = f.code
		}
	}()
	root := rootCmd(sys, args)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for those of the process
	root.SetOut(sys.out)
	root.SetErr(sys.err)
	addCompletion(root)
	if err := root.ExecuteContext(ctx); err != nil {
		f := asFailure(err)
		report(sys.err, f)
		return f.code
	}
	return exitFinished
}

// panicked turns a panic into a failure. Its err holds the stack.
func panicked(p any) *failure {
	return &failure{
		code: exitOther, message: fmt.Sprintf("internal error: %v", p),
		hint: "this is a defect in Mneme; --log-level debug logs where it happened",
		err:  errors.New(string(debug.Stack())),
	}
}

func rootCmd(sys system, args []string) *cobra.Command {
	opts := options()
	root := &cobra.Command{
		Use:   "memnode",
		Short: "Run a node of Mneme, a memory for teams of AI agents",
		Long: `memnode runs a node of Mneme: log, store, search and API in one process.

Every setting has one name: the flag --http-addr is the variable
MNEME_HTTP_ADDR and the line "http-addr: …" in <data-dir>/config.yaml. A flag
wins over the environment, which wins over the file. (--namespace is
MNEME_NAMESPACES, since MNEME_NAMESPACE is memctl's; the operator token is
MNEME_AUTH_TOKEN only, API keys are OPENAI_API_KEY and GEMINI_API_KEY.)

SIGTERM or Ctrl-C drains and stops; a second one stops at once. SIGHUP reads the
settings, certificates and token again, as memctl reload does.
Exit codes: 0 stopped, 1 other, 2 usage, configuration or read-only directory,
5 data directory in use, 6 address taken or log unreachable, 7 damaged, newer
format or lost key.`,
		Example: `  memnode
  memnode --data-dir ./mneme --http-addr 127.0.0.1:0 --nats-addr 127.0.0.1:0
  memnode --http-addr 0.0.0.0:8787 --nats-addr 0.0.0.0:4222 --auth token --tls-cert mneme.crt --tls-key mneme.key
  memnode --nats-url nats://log.example:4222 --nats-monitor http://log.example:8222
  MNEME_EMBEDDER=ollama memnode --namespace team-a --namespace team-b`,
		Version:       versionLine(sys.version),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
	}
	root.SetVersionTemplate("memnode {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	flags := addFlags(root, opts)
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := load(sys, opts, flags)
		if err != nil {
			return err
		}
		return serve(cmd.Context(), sys, s, args)
	}
	root.AddCommand(configCmd(sys, opts, flags), versionCmd(sys))
	return root
}

// addCompletion adds cobra's own verb, which takes a shell that it does not know
// for a question for help.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return noArgs(cmd, args)
		}
	}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return misuse(unknownHint(args[0], names, "`"+cmd.CommandPath()+" --help` shows what it takes"), "%s does not take the argument %q", cmd.CommandPath(), args[0])
}

func flagError(cmd *cobra.Command, err error) error {
	otherwise := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) {
			return misuse("", "--%s: %v", invalid.GetFlag().Name, errors.Unwrap(invalid))
		}
		return misuse(otherwise, "%v", err)
	}
	name := missing.GetSpecifiedName()
	if missing.GetSpecifiedShortnames() != "" {
		return misuse(otherwise, "%s has no flag -%s", cmd.CommandPath(), name)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := unknownHint(name, names, "")
	if hint != "" {
		hint = strings.Replace(hint, "did you mean ", "did you mean --", 1)
	} else {
		hint = otherwise
	}
	return misuse(hint, "%s has no flag --%s", cmd.CommandPath(), name)
}

// unknownHint proposes the candidate that word is nearest to, within a third of
// its letters.
func unknownHint(word string, candidates []string, otherwise string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := editDistance(strings.ReplaceAll(word, "_", "-"), strings.ReplaceAll(c, "_", "-")); d < least {
			best, least = c, d
		}
	}
	if best == "" {
		return otherwise
	}
	return "did you mean " + best + "?"
}

// editDistance counts insertions, deletions and substitutions (Levenshtein),
// whatever the case.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
