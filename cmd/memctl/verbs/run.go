package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mneme/cmd/memctl/program"
	"mneme/memory"
)

// run is memctl without the process around it: it returns the exit code.
func run(ctx context.Context, sys system, args []string) int {
	a := newApp(ctx, sys)
	defer a.close()
	root := rootCmd(a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(sys.err)
	addCompletion(root)
	addHelp(root)
	err := root.ExecuteContext(ctx)
	if ferr := a.out.Flush(); err == nil && ferr != nil {
		err = fmt.Errorf("write answer: %w", ferr)
	}
	if err == nil {
		return 0
	}
	var other program.Ended
	if errors.As(err, &other) { // it has said what there is to say
		return other.Code
	}
	e := asError(err)
	a.report(err, e, a.flags.json || wantsJSON(args))
	return e.Code.ExitCode()
}

// asError gives any error a code and a hint. What a file of this machine refused
// is no failure of the node, and its log does not know of it.
func asError(err error) *memory.Error {
	e := memory.AsError(err)
	var path *fs.PathError
	if e.Code != memory.CodeInternal || !errors.As(err, &path) {
		return e
	}
	is := func(target error) bool { return errors.Is(path.Err, target) }
	switch {
	case is(syscall.ENOSPC):
		return memory.Errorf(memory.CodeNoSpace, "%w", err).WithHint("make room where %s lies and run it again", path.Path)
	case is(fs.ErrPermission), is(fs.ErrNotExist), is(syscall.EISDIR), is(syscall.ENOTDIR), is(syscall.EROFS), is(syscall.ELOOP), is(fs.ErrExist):
		return memory.Errorf(memory.CodeInvalid, "%w", err).WithHint("look at %s: whether it is what was meant, and who may use it", path.Path)
	}
	return e
}

// wantsJSON looks for --json where the flags could not be parsed.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json")
}

// report prints an error for people or for programs. The message is that of the
// whole chain, the code and hint those of the *memory.Error in it.
func (a *app) report(err error, e *memory.Error, asJSON bool) {
	msg := oneLine(err.Error())
	hint := hintOf(a, e)
	if asJSON {
		doc := map[string]any{"error": map[string]any{"code": e.Code, "message": msg, "hint": hint}}
		enc := json.NewEncoder(a.sys.err)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(doc) // there is nowhere left to report to
		return
	}
	_, _ = fmt.Fprintln(a.sys.err, a.paintErr("31", "memctl:")+" "+msg)
	if hint != "" {
		_, _ = fmt.Fprintln(a.sys.err, "hint: "+oneLine(hint))
	}
}

// hintOf is what a person may do about an error.
func hintOf(a *app, e *memory.Error) string {
	hint := e.Hint
	if hint == "" {
		hint = hintFor(e.Code)
	}
	if file := a.tokenFound(); e.Code == memory.CodeUnauthenticated && e.Unwrap() == nil && file != "" {
		hint = fmt.Sprintf("a node of this machine has its token in %[1]s: --token-file %[1]s, or `memctl use --token-file %[1]s` for all calls", file)
	}
	if elsewhere := a.tokenElsewhere(); e.Code == memory.CodeUnauthenticated && e.Unwrap() == nil && elsewhere != "" {
		hint = elsewhere
	}
	return a.here(hint)
}

// hintFor is what to do about a code when the error itself does not say.
func hintFor(code memory.Code) string {
	switch code {
	case memory.CodeUnauthenticated:
		return "give --token-file FILE or set MNEME_TOKEN; a node keeps its operator token in <data-dir>/keys/operator.token"
	case memory.CodeLogDiverged:
		return "`memctl log verify` shows what is wrong, `memctl log repair` mends it"
	case memory.CodeOverloaded, memory.CodeUnavailable:
		return "try again in a moment; `memctl doctor` says more"
	case memory.CodeOutcomeUnknown:
		return "look whether it happened before doing it again"
	case memory.CodeInternal:
		return "`memctl doctor` and the node's log say more"
	}
	return ""
}

// usage is a mistake in how memctl was called.
func usage(cmd *cobra.Command, format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeInvalid, format, args...).
		WithHint("usage: %s; see `%s --help`", cmd.UseLine(), cmd.CommandPath())
}

// group makes cmd, which only has sub-verbs, print help alone and refuse others.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownVerb(cmd, args[0])
	}
	return cmd
}

func unknownVerb(cmd *cobra.Command, verb string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
			names = append(names, sub.Aliases...)
		}
	}
	err := memory.Errorf(memory.CodeInvalid, "%q is not a verb of %s", verb, cmd.CommandPath())
	if best := nearest(verb, names); best != "" {
		return err.WithHint("did you mean `%s %s`?", cmd.CommandPath(), best)
	}
	return err.WithHint("`%s --help` lists them", cmd.CommandPath())
}

// flagError explains a flag that could not be parsed.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownVerb(cmd, args[0]) // its flags cannot be known either
	}
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		bad := usage(cmd, "%s", badValue(err))
		if why := memory.AsError(err); why.Hint != "" {
			bad.Hint = why.Hint
		}
		return bad
	}
	name := missing.GetSpecifiedName()
	if missing.GetSpecifiedShortnames() != "" {
		bad := usage(cmd, "%s has no flag -%s", cmd.CommandPath(), name)
		if takes := strings.Fields(cmd.Use); len(takes) > 1 && takes[1][0] != '-' {
			return bad.WithHint("what begins with - and is no flag stands behind --: %s -- %s", cmd.CommandPath(), takes[1])
		}
		return bad
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	bad := usage(cmd, "%s has no flag --%s", cmd.CommandPath(), name)
	if best := nearest(name, names); best != "" {
		return bad.WithHint("did you mean --%s?", best)
	}
	return bad
}

// badValue says of a value that is no number or duration that one is wanted; other errors of
// flags say what is wrong themselves.
func badValue(err error) string {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return fmt.Sprintf("--%s must be a duration such as 5s or 2m, not %q", invalid.GetFlag().Name, invalid.GetValue())
	}
	if !errors.As(err, &invalid) || !errors.As(err, &number) || invalid.GetFlag().Value.Type() == "bool" {
		return err.Error()
	}
	return fmt.Sprintf("--%s must be a number, not %q", invalid.GetFlag().Name, invalid.GetValue())
}

// nearest returns the candidate within a third of the letters, or "".
func nearest(word string, candidates []string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		d := editDistance(strings.ToLower(word), c)
		if len(word) >= 3 && strings.HasPrefix(c, word) {
			d = min(d, 1)
		}
		if d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment).
func editDistance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, cur
	}
	return prev[len(b)]
}

// wantArgs checks the number of arguments; hi < 0 means any number.
func wantArgs(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < lo:
			return usage(cmd, "%s needs more arguments", cmd.CommandPath())
		case hi >= 0 && len(args) > hi:
			return usage(cmd, "%s does not take the argument %q", cmd.CommandPath(), args[hi])
		}
		return nil
	}
}
