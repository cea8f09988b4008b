package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mneme/internal/hooks"
	"mneme/internal/project"
	"mneme/memory"
)

// Bounds of one hook. The host of the agent waits for it.
const (
	hookInput    = 4 << 20
	hookReading  = 3 * time.Second
	hookPatience = 4 * time.Second // for the rest
	hookAsking   = time.Second     // for which namespaces there are
	hookDraining = time.Second     // of what waits, where no other process can

	// hookMemory is what a hook may take before it collects garbage: it takes some 15 MB, and
	// collecting them would cost a tenth of its time.
	hookMemory = 128 << 20
)

// hookFlags are what the configuration of a host says.
type hookFlags struct {
	agent, event, start string
	notify              bool
}

func hookCmd(a *app) *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:   "hook --agent NAME [--event EVENT]",
		Short: "Keep and recall memories for an agent's host, which calls this",
		Long: `Reads from standard input what the host of an agent tells of an event, keeps what is
worth it, and answers with memories where the host puts them into the prompt.

It always ends with 0 and never holds the agent up: it reads for three seconds at
most, and what cannot be sent to the node waits in the user's configuration
directory. What went wrong stands in hooks/log there. Where no node listens at the
default address, the memnode that is installed is started for the next ones.

Agents are ` + strings.Join(hooks.Agents, ", ") + `.`,
		Example: `  memctl hook --agent claude-code < payload.json
  memctl hook settings emails=off tools=off
  memctl hook drain
  memctl recalls`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			runHook(cmd.Context(), a, f, args)
			// A host that reads no answer is noted, and is no error.
			a.out.Reset(io.Discard)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "the host of the agent (default: told by what it sends)")
	fl.StringVar(&f.event, "event", "", "the event, as the host calls it (default: told by what it sends)")
	fl.BoolVar(&f.notify, "notify", false, "what happened is the last argument, and not standard input")
	fl.StringVar(&f.start, "start", startAuto, "have a node started where none runs: auto (at the default address), always or never")
	completeFlag(cmd, "agent", completeWords(hooks.Agents...))
	completeFlag(cmd, "start", completeWords(startAuto, startAlways, startNever))
	// A host takes an exit code for an order to stop the agent: none of its calls may fail.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		a.sys.process.outlivePipes()
		hookNote(a)("memctl hook: %s", hookFlagError(err))
		return nil
	})
	for _, sub := range []*cobra.Command{hookSettingsCmd(a), hookDrainCmd(a), hookCommitsCmd(a), hookNodeCmd(a)} { // which people call
		sub.SetFlagErrorFunc(flagError)
		cmd.AddCommand(sub)
	}
	return cmd
}

// runHook does what can be done, and notes what cannot.
func runHook(ctx context.Context, a *app, f hookFlags, args []string) {
	a.sys.process.outlivePipes()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(hookMemory))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	note := hookNote(a)
	defer hookRecovers(note)
	if a.sys.getenv("MNEME_HOOKS") == "off" {
		return
	}
	if !f.notify && a.sys.isTerminal(a.sys.in) && hookTyped(a, args) {
		return
	}
	payload, err := hookPayload(ctx, a, f, args)
	if err != nil {
		note("memctl hook: %v", err)
		return
	}
	e, err := hooks.Normalise(f.agent, f.event, payload)
	if err != nil {
		if len(args) > 0 && !f.notify {
			err = fmt.Errorf("%w; and "+noHookCommand, err, plainWord(args[0]))
		}
		note("memctl hook: %v", err)
		return
	}
	if !slices.Contains([]string{startAuto, startAlways, startNever}, f.start) {
		note("memctl hook: no node is started: the value of --start is not valid: it is %s, %s or %s", startAuto, startAlways, startNever)
		f.start = startNever
	}
	if err := hookFlagValues(a); err != nil {
		note("memctl hook: nothing is kept or recalled: %v", err)
		_, _ = a.out.Write(hooks.Output(e, "", ""))
		return
	}
	wake := hookWakes(a, f.start, note)
	hookAnswer(ctx, a, &e, f.start, note)
	wake()
}

// plainWord is a word that somebody typed, as a message may repeat it. Whatever else a host passes may be the
// text of an event, which no log holds.
func plainWord(s string) string {
	if len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
		return "…"
	}
	return s
}

// hookFlagError says what is wrong with a flag, without its value.
func hookFlagError(err error) string {
	var missing *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing):
		return fmt.Sprintf("there is no flag %q", plainWord(missing.GetSpecifiedName()))
	case errors.As(err, &bare):
		return fmt.Sprintf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &bad):
		return fmt.Sprintf("the value of --%s is not valid", bad.GetFlag().Name)
	}
	return "its flags cannot be read"
}

// hookFlagValues says which flag of a hook has a value that is not valid, without the value.
func hookFlagValues(a *app) error {
	_, bad := nodeNamed(a.flags.addr)
	const name = "it is 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit"
	for _, one := range []struct {
		flag    string
		invalid bool
		rule    string
	}{
		{"namespace", a.flags.namespace != "" && !memory.ValidName(a.flags.namespace), name},
		{"as", a.flags.as != "" && !memory.ValidName(a.flags.as), name},
		{"addr", a.flags.addr != "" && bad != nil, "it is like http://127.0.0.1:8787"},
	} {
		if one.invalid {
			return memory.Errorf(memory.CodeInvalid, "the value of --%s is not valid: %s", one.flag, one.rule)
		}
	}
	return nil
}

const noHookCommand = "%q is no command of memctl hook, which has settings, drain and commits"

// hookTyped tells who typed the call by hand what is expected, and whether that is all: behind
// a word that is no command nothing is waited for.
func hookTyped(a *app, args []string) (done bool) {
	if done = len(args) > 0; done {
		_, _ = fmt.Fprintf(a.sys.err, "memctl hook: "+noHookCommand+"\n", args[0])
	}
	_, _ = fmt.Fprint(a.sys.err, `memctl hook: the host of an agent calls it, and sends what happened as JSON on standard input.
  memctl hook --help        says more
  memctl integrate --list   which agents call it
  memctl recalls            what went into prompts
  memctl hook settings      what is kept and recalled
`)
	return done
}

// hookAnswer keeps, then recalls and answers the host, and sends meanwhile. The host waits for both,
// and may be gone when it has its answer: what is kept is in the spool before that. It does not wait
// for what other hooks left there.
func hookAnswer(ctx context.Context, a *app, e *hooks.Event, start string, note func(string, ...any)) {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	say := func(block, told string) {
		_, _ = a.out.Write(hooks.Output(*e, block, told))
		if err := a.flush(); err != nil {
			note("memctl hook: %v", err)
		}
	}
	if e.Kind == hooks.Other {
		say("", "")
		return
	}
	r, err := hookRunner(ctx, a, e.Agent, e.Dir, note)
	if err != nil {
		note("memctl hook: nothing is kept or recalled: %v%s", err, remedy(err))
		say("", hookOff(a, e, err))
		return
	}
	r.Keep(ctx, e)
	var sent sync.WaitGroup
	more := false
	sent.Go(func() {
		defer hookRecovers(note)
		more = r.Send(ctx)
	})
	defer func() { // also behind a defect of the recall
		sent.Wait()
		if more && !r.LeftAlone() {
			hookDrains(ctx, a, r, start, note)
		}
	}()
	block := r.Recall(ctx, e)
	hookGone(ctx, a, e, r)
	say(block, r.Told)
}

// hookInProject reports whether the agent works in a project. Folders that are none may be meant to keep nothing.
func hookInProject(a *app, e *hooks.Event) bool {
	_, err := projectsOf(a).locate(hookFolder(e.Dir), project.Mapping{})
	return err == nil
}

// hookOff tells the user at the beginning of a conversation in a project that nothing of it is kept or recalled, since
// nobody looks into a log of what seems to work; "" is nothing.
func hookOff(a *app, e *hooks.Event, why error) string {
	if e.Kind != hooks.SessionStart || !hookInProject(a, e) {
		return ""
	}
	return "Mneme: nothing is kept or recalled here: " + oneLine(why.Error()) + remedy(why)
}

// remedy is what a person may do about an error, as the log has it.
func remedy(err error) string {
	if hint := asError(err).Hint; hint != "" {
		return " (" + hint + ")"
	}
	return ""
}

// hookRecovers notes a defect, which must not stop the agent.
func hookRecovers(note func(string, ...any)) {
	if p := recover(); p != nil {
		note("memctl hook: defect: %v\n%s", p, debug.Stack())
	}
}

// hookWakes has the calls of a hook notice where no node listens. What it returns has one
// started then, for later hooks: this one does not wait for it.
func hookWakes(a *app, when string, note func(string, ...any)) (wake func()) {
	settings, err := hookSettings(a)
	if err != nil || !settings.Start || a.sys.again == nil || a.sys.http != nil {
		return func() {}
	}
	s, err := startable(a, when)
	if err != nil {
		note("memctl hook: %v", err)
	}
	if s == nil {
		return func() {}
	}
	a.reach = s.notice
	return func() {
		woken, err := s.wake(a.sys.now(), func() error {
			return a.sys.again([]string{"hook", "node", "--start", startAlways, "--addr", "http://" + s.addr})
		})
		switch {
		case err != nil:
			note("memctl hook: no node listens at %s, and none was started: %v", s.addr, err)
		case woken:
			note("memctl hook: no node listens at %s: one is being started", s.addr)
		}
	}
}

// hookNodeCmd is what a hook starts to start a node.
func hookNodeCmd(a *app) *cobra.Command {
	when := ""
	cmd := &cobra.Command{
		Use:     "node",
		Hidden:  true,
		Short:   "Start a node where none runs",
		Long:    "A hook that finds no node at the default address has this start one.",
		Example: "  memctl hook node",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := startable(a, when)
			if err != nil || s == nil {
				return err
			}
			if err := s.start(cmd.Context()); err != nil {
				hookNote(a)("memctl hook: no node was started: %v", err)
				return err
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&when, "start", startAuto, "as that of mcp")
	return cmd
}

// hookPayload reads what the host sent.
func hookPayload(ctx context.Context, a *app, f hookFlags, args []string) ([]byte, error) {
	if f.notify {
		if len(args) == 0 {
			return nil, errors.New("--notify needs what happened as its last argument")
		}
		return []byte(args[len(args)-1]), nil
	}
	ctx, cancel := context.WithTimeout(ctx, hookReading)
	defer cancel()
	in := &ctxReader{ctx: ctx, r: a.sys.in}
	b, err := io.ReadAll(io.LimitReader(in, hookInput+1))
	if len(b) > hookInput {
		_, _ = io.Copy(io.Discard, in) // the host may not like a pipe that closes
		return nil, fmt.Errorf("the host sent more than %d bytes, which are ignored", hookInput)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("the host did not end what it sends within %s, and nothing of it counts", hookReading)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the host sent: %w", err)
	}
	return b, nil
}

// hookRunner puts together what a hook, or a drain that a person calls, needs. host is "" where
// no host calls.
func hookRunner(ctx context.Context, a *app, host, dir string, note func(string, ...any)) (*hooks.Runner, error) {
	settings, err := hookSettings(a)
	switch {
	case err != nil && host == "":
		return nil, err
	case err != nil:
		note("memctl hook: nothing is recalled, and what is kept waits: %v%s", err, remedy(err))
		settings = hooks.UnreadSettings()
	}
	disk, err := hookDisk(a, note)
	switch {
	case err != nil && host == "": // it is about what lies there
		return nil, err
	case err != nil:
		disk = hooks.Unusable(err)
	}
	r := &hooks.Runner{Disk: disk, Settings: settings, Now: a.sys.now, NewID: func() string { return ulid.Make().String() }, Note: note,
		Choose: func(ctx context.Context, place project.Seen) (string, error) { return hookChoose(ctx, a, place) }}
	if r.Addr, err = hookAddr(a); err != nil {
		return nil, err
	}
	switch c, err := a.dial(); {
	case err == nil:
		r.Node = c
	case host == "": // there is nothing to keep
		return nil, err
	default:
		r.Node = newUnasked(err)
	}
	if host == "" {
		return r, nil
	}
	// The host is the agent that acts, unless this very call says otherwise.
	if r.Agent = first(a.flags.as, a.sys.getenv("MNEME_AGENT"), host); !memory.ValidName(r.Agent) {
		return nil, memory.CheckName("agent", r.Agent)
	}
	return r, hookWorks(ctx, a, r, dir)
}

// hookAddr names the node that hooks of this call talk to, the same each time.
func hookAddr(a *app) (string, error) {
	rem, err := a.remembered()
	if err != nil && a.addr(remembered{}) == "" {
		return "", err
	}
	return nodeNamed(a.addr(rem))
}

// nodeNamed names the node at an address, or the nodes of a cluster in whatever order.
func nodeNamed(addr string) (string, error) {
	whole, err := wholeAddr(addr)
	several := strings.Split(whole, ",")
	slices.Sort(several)
	return strings.Join(several, ","), err
}

// hookDir is where hooks keep what one leaves to the next.
func hookDir(a *app) (string, error) {
	path, err := a.rememberedPath()
	return filepath.Join(filepath.Dir(path), "hooks"), err
}

// hookDisk opens that folder.
func hookDisk(a *app, note func(string, ...any)) (*hooks.Disk, error) {
	dir, err := hookDir(a)
	if err != nil {
		return nil, err
	}
	disk, err := hooks.OpenDisk(dir)
	if err != nil {
		return nil, err
	}
	if lost := disk.KeyLost(); lost != nil {
		note("memctl hook: %v%s", lost, remedy(lost))
	}
	return disk, nil
}

func hookSettingsPath(a *app) (string, error) {
	path, err := a.rememberedPath()
	return filepath.Join(filepath.Dir(path), "hooks.json"), err
}

func hookSettings(a *app) (hooks.Settings, error) {
	path, err := hookSettingsPath(a)
	if err != nil {
		return hooks.Settings{}, err
	}
	return hooks.LoadSettings(path)
}

// hookNote tells people on standard error and in a log of bounded size. Lines hold no text of
// an event. It may be called concurrently.
func hookNote(a *app) func(string, ...any) {
	var one sync.Mutex
	return func(format string, args ...any) {
		one.Lock()
		defer one.Unlock()
		said := oneLine(fmt.Sprintf(format, args...))
		_, _ = fmt.Fprintln(a.sys.err, said)
		if dir, err := hookDir(a); err == nil {
			hooks.AppendLog(dir, said, a.sys.now())
		}
	}
}

func hookSettingsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "settings [NAME=VALUE]...",
		Short: "Show or change what hooks keep and recall",
		Long: `Shows what hooks do for this user, or changes it:

  capture on|off   keep what is worth it
  recall on|off    put memories into prompts
  tools on|off     keep failures and changes of tools, too
  budget TOKENS    of memories in one prompt
  emails on|off    keep addresses; off takes them out like secrets
  scope team|agent who sees what is kept
  start on|off     have the installed node started where none runs

MNEME_HOOKS=off switches hooks off for a process and what it starts.`,
		Example: "  memctl hook settings capture=off",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := hookSettings(a)
			if err != nil && len(args) == 0 {
				return err
			}
			if err != nil {
				s = hooks.DefaultSettings()
				s.Capture, s.Recall = false, false
			}
			for _, arg := range args {
				name, value, _ := strings.Cut(arg, "=")
				if err := s.Set(name, value); err != nil {
					return err
				}
			}
			path, err := hookSettingsPath(a)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := hooks.SaveSettings(path, s); err != nil {
					return err
				}
			}
			return a.emit(s, nil, func() {
				word := map[bool]string{true: "on", false: "off"}
				a.printf("capture  %s\nrecall   %s\ntools    %s\nbudget   %d tokens\nemails   %s\nscope    %s\nstart    %s\n",
					word[s.Capture], word[s.Recall], word[s.Tools], s.Budget, word[s.Emails], s.Scope, word[s.Start])
			})
		},
	}
}
