package verbs

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/agentsync"
	"mneme/internal/api/mcp"
	"mneme/internal/project"
	"mneme/memory"
)

// integrateFlags are the flags of integrate.
type integrateFlags struct {
	remove, dryRun, list  bool
	scope, profile, since string
}

func integrateCmd(a *app) *cobra.Command {
	var f integrateFlags
	var names []string
	for _, h := range agentsync.Hosts() {
		names = append(names, h.Name)
	}
	names = append(names, gitHost)
	cmd := &cobra.Command{
		Use:   "integrate AGENT",
		Short: "Connect an agent: write Mneme into its configuration",
		Long: `Writes the server (memctl mcp) and the hooks (memctl hook) into the files of an agent's
program, for the project in this folder or for all that its user does. Comments, order and
what others wrote stay; what was there is kept in mneme/backups of the user's configuration
directory. If one file cannot be edited, none is. The same call again changes nothing, and --remove takes out what was put in.

In a project the namespace is that of the project, which is named after its Git remote if it
has none yet ('memctl project'). For all of a user's work it is the project's wherever it has
one, and else what 'memctl use' remembered. The project in this folder gets one then, too, where
the agent's program starts the tools in the project; where nothing was remembered, the only
namespace that there is gets remembered, unless it is a project's. -n fixes it.

Agents are ` + strings.Join(names, ", ") + `; git makes commits memories.`,
		Example: `  memctl integrate claude-code
  memctl integrate codex --scope user -n team-a
  memctl integrate cursor --dry-run
  memctl integrate git --since 90d
  memctl integrate --list
  memctl integrate claude-code --remove`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: completeFirst(completeWords(names...)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list && len(args) == 0:
				return listIntegrations(cmd.Context(), a)
			case len(args) != 1 || f.list:
				return usage(cmd, "name one agent, or give --list")
			case f.since != "" && args[0] != gitHost:
				return usage(cmd, "--since is for git")
			case args[0] == gitHost && (f.scope != "" || f.profile != ""):
				return usage(cmd, "git has neither --scope nor --profile")
			case args[0] == gitHost:
				return integrateGit(cmd.Context(), a, f)
			}
			return integrate(cmd, a, args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.remove, "remove", false, "take out what was put in")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would change, as a diff")
	fl.BoolVar(&f.list, "list", false, "show which agents are there and which are connected")
	fl.StringVar(&f.scope, "scope", "", "project or user (default: project in a Git repository, if the agent has files there)")
	fl.StringVar(&f.profile, "profile", "", "which tools to offer: micro, lite, full, or graph, those of the official memory server alone (default: lite)")
	fl.StringVar(&f.since, "since", "", "with git: make memories of the commits since then, too")
	completeFlag(cmd, "scope", completeWords("project", "user"))
	completeFlag(cmd, "profile", completeWords("micro", "lite", "full", "graph"))
	return cmd
}

// hostsWhere tells where hosts keep their configuration.
func hostsWhere(a *app) (agentsync.Where, error) {
	w := agentsync.Where{Windows: runtime.GOOS == "windows", Claude: a.sys.getenv("CLAUDE_CONFIG_DIR"), Codex: a.sys.getenv("CODEX_HOME"), Copilot: a.sys.getenv("COPILOT_HOME")}
	home, err := homeOf(a.sys)
	if err != nil {
		return w, err
	}
	w.Home = home
	w.Config = first(a.sys.getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	switch runtime.GOOS {
	case "windows":
		w.AppData = first(a.sys.getenv("APPDATA"), filepath.Join(home, "AppData", "Roaming"))
	case "darwin":
		w.AppData = filepath.Join(home, "Library", "Application Support")
	default:
		w.AppData = w.Config
	}
	return w, nil
}

// integration is one call of integrate, and what it answers.
type integration struct {
	Agent     string            `json:"agent"`
	Scope     agentsync.Scope   `json:"scope"`
	Project   project.ID        `json:"project,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Files     []integrationFile `json:"files"`
	Before    []string          `json:"before,omitempty"` // other namespaces that the entries named
	Warnings  []string          `json:"warnings,omitempty"`
	Removed   bool              `json:"removed,omitempty"`
	DryRun    bool              `json:"dry_run,omitempty"`

	host    agentsync.Host
	where   agentsync.Where
	project *project.Project // nil outside Git
	options agentsync.Options
	hook    string // of Git, else ""
	fixed   bool   // the entries name the namespace
	why     string // the project has it
	apart   string // it is another one than the project's, by this
	beside  beside // where memories are kept that no project has, where the entries name none
}

// integrationFile is what became of one file.
type integrationFile struct {
	Path   string `json:"path"`
	Did    string `json:"did"` // created, changed, removed, unchanged
	Backup string `json:"backup,omitempty"`
	Diff   string `json:"diff,omitempty"` // of a dry run
}

func integrate(cmd *cobra.Command, a *app, agent string, f integrateFlags) error {
	in, err := newIntegration(a, agent, f)
	if err != nil {
		return err
	}
	if in.beside, err = besideProjects(cmd.Context(), a, in); err != nil {
		return err
	}
	if err := in.write(cmd.Context(), a, f); err != nil {
		return err
	}
	if !f.remove {
		in.warnTwice()
	}
	made := ""
	if !f.remove && in.Namespace != "" {
		made = in.ensure(cmd.Context(), a)
	}
	return a.emit(in, nil, func() { in.tell(a, made) })
}

// write decides, and changes the files and the namespace of the project. Others wait so long.
func (in *integration) write(ctx context.Context, a *app, f integrateFlags) error {
	if !f.dryRun {
		letGo, err := projectsOf(a).hold(ctx)
		if err != nil {
			return err
		}
		defer letGo()
	}
	var mapping project.Mapping
	if !f.remove {
		var err error
		if mapping, err = in.choose(ctx, a); err != nil {
			return err
		}
	}
	changes, err := in.plan(a, f)
	if err != nil {
		return err
	}
	if !f.dryRun {
		path, err := projectsOf(a).path()
		if err != nil {
			return err
		}
		if err := agentsync.Apply(changes, filepath.Join(filepath.Dir(path), "backups"), func() error { return in.save(a, mapping) }); err != nil {
			return err
		}
	}
	in.Files = described(changes, f.dryRun)
	in.named(changes)
	return nil
}

// save keeps what was chosen, for the project and for all others. Entries that do without what is chosen for the project,
// or name what was given for them, are there without it.
func (in *integration) save(a *app, mapping project.Mapping) error {
	if !in.fixed {
		if err := in.beside.remember(a); err != nil {
			return err
		}
	}
	if mapping.Projects == nil {
		return nil
	}
	err := projectsOf(a).save(mapping, in.project)
	switch {
	case err == nil:
	case !in.fixed:
		in.disown(err)
	case a.flags.namespace != "":
		in.warnOf(err)
		in.apart = fromFlag
	default:
		return err
	}
	return nil
}

// plan says what the files become.
func (in *integration) plan(a *app, f integrateFlags) ([]*agentsync.Change, error) {
	if in.hook != "" {
		return in.planGit(a, f)
	}
	if !f.remove {
		if err := in.call(a, f); err != nil {
			return nil, err
		}
	}
	return in.host.Plan(in.Scope, in.where, in.options, f.remove)
}

// newIntegration finds the host, the project and the scope.
func newIntegration(a *app, agent string, f integrateFlags) (*integration, error) {
	host, err := findHost(agent)
	if err != nil {
		return nil, err
	}
	in := &integration{Agent: agent, host: host, Removed: f.remove, DryRun: f.dryRun}
	if in.where, err = hostsWhere(a); err != nil {
		return nil, err
	}
	in.project, err = projectsOf(a).locate("", project.Mapping{})
	switch {
	case errors.Is(err, project.ErrNone):
		if a.sys.workDir != nil {
			in.where.Project, err = a.sys.workDir()
		}
		if err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		in.where.Project = in.project.Top
	}
	in.where.Project = notHome(in.where)
	switch in.Scope = agentsync.Scope(f.scope); in.Scope {
	case agentsync.User, agentsync.Project:
	case "":
		in.Scope = agentsync.User
		if in.project != nil && host.Has(agentsync.Project, in.where) {
			in.Scope = agentsync.Project
		}
	default:
		return nil, memory.Errorf(memory.CodeInvalid, "--scope is %q", f.scope).WithHint("it is project or user")
	}
	return in, nil
}

// choose decides on the namespace. It returns the mapping of projects if that changes, too.
func (in *integration) choose(ctx context.Context, a *app) (changed project.Mapping, err error) {
	rem, err := a.remembered()
	if err != nil {
		return changed, err
	}
	ns, from := rem.Namespace, fromRemembered
	if in.Scope == agentsync.Project || a.flags.namespace != "" || a.sys.getenv("MNEME_NAMESPACE") != "" {
		w, err := workIn(a, "", func(p projects, dir string) (*project.Project, error) { // one that was moved is noted with what is chosen
			at, _, err := p.held(dir)
			return at, err
		})
		if err != nil {
			return changed, err
		}
		ns, from = w.namespace, w.from
	}
	in.fixed = in.Scope == agentsync.Project || from == fromFlag || from == fromVariable
	if in.Scope == agentsync.Project && in.project != nil {
		var mapping project.Mapping
		if in.project, mapping, err = projectsOf(a).held(""); err != nil {
			return changed, err
		}
		choice, unsure := mapping.Choose(in.project)
		switch {
		case from == fromProject:
			in.why = choice.Why(mapping, in.project)
			if !in.project.Settled() || choice.Carried(in.project) {
				choice.ID = ""
				mapping.Use(in.project, ns)
				changed = mapping
			}
		case from == fromVariable, from == fromFlag && (unsure != nil || choice.Namespace != ""): // for this agent alone
			if choice.Namespace != ns {
				in.apart = from
			}
		case from == fromFlag:
			mapping.Use(in.project, ns)
			changed = mapping
		default:
			if choice, err = mapping.Propose(in.project); err != nil {
				return changed, err
			}
			ns = choice.Namespace
			mapping.Use(in.project, ns)
			changed = mapping
		}
		in.Project = cmp.Or(choice.ID, in.project.IDs()[0])
	}
	if !in.fixed {
		in.Namespace = ns // that is where nothing else says it
		return in.own(ctx, a)
	}
	if err := errOr(nil, ns); err != nil {
		return changed, err
	}
	if bad := memory.CheckName("namespace", ns); bad != nil {
		return changed, bad
	}
	in.Namespace = ns
	return changed, nil
}

// call makes what the entries call.
func (in *integration) call(a *app, f integrateFlags) error {
	if f.profile != "" {
		if _, err := mcp.ParseProfile(f.profile); err != nil {
			return err
		}
	}
	more, err := givenFlags(a)
	if err != nil {
		return err
	}
	program, found, err := programFor(a)
	if err != nil {
		return err
	}
	if in.Scope == agentsync.Project { // its files are for other machines, too
		in.warn(program, found, more)
		program = "memctl"
	}
	in.options = agentsync.Options{Memctl: program, Profile: f.profile, More: more}
	if in.fixed {
		in.options.Namespace = in.Namespace
	}
	return nil
}

// programFor is memctl as a host can call it, and whether a shell finds it by its name. Entries
// are known by that name.
func programFor(a *app) (path string, found bool, err error) {
	if a.sys.program == nil {
		return "memctl", true, nil
	}
	path, found = a.sys.program()
	switch {
	case strings.Contains(path, "go-build"):
		return "", false, memory.Errorf(memory.CodeInvalid, "this memctl is gone when it ends: %s", path).WithHint("install it with `go install ./cmd/...`, and run that one")
	case !strings.HasPrefix(filepath.Base(path), "memctl"):
		return "", false, memory.Errorf(memory.CodeInvalid, "this program is %s, and entries of Mneme are known by the name memctl", path).WithHint("give it that name again")
	}
	return path, found, nil
}

// givenFlags are the flags of this call that later calls need as well. What is remembered or
// stands in the environment they find themselves; a token is in none of them.
func givenFlags(a *app) ([]string, error) {
	var out []string
	if a.flags.addr != "" {
		if strings.Contains(a.flags.addr, "@") {
			return nil, memory.Errorf(memory.CodeInvalid, "the address has a user name or a password, which the files of agents must not have").
				WithHint("give --addr without it; a token stands in a file of its own, which --token-file names")
		}
		if _, err := wholeAddr(a.flags.addr); err != nil {
			return nil, err
		}
		out = append(out, "--addr", a.flags.addr)
	}
	for _, f := range [][2]string{{"--token-file", a.flags.tokenFile}, {"--tls-ca", a.flags.tlsCA}, {"--tls-cert", a.flags.tlsCert}, {"--tls-key", a.flags.tlsKey}} {
		if f[1] == "" {
			continue
		}
		path, err := filepath.Abs(f[1])
		if err != nil {
			return nil, err
		}
		out = append(out, f[0], path)
	}
	return out, nil
}

// ensure makes the namespace if it is missing, or says that it would.
func (in *integration) ensure(ctx context.Context, a *app) string {
	if !in.DryRun {
		return ensureNamespace(ctx, a, in.Namespace)
	}
	c, err := a.dial()
	if err == nil {
		_, err = c.Namespace(ctx, in.Namespace)
	}
	if client.Said(err) != memory.CodeNotFound {
		return ""
	}
	return "namespace " + in.Namespace + " would be created"
}

// ensureNamespace makes the namespace if it is missing and a node answers. It returns what to
// tell.
func ensureNamespace(ctx context.Context, a *app, ns string) string {
	c, err := a.dial()
	if err == nil {
		_, err = c.Namespace(ctx, ns)
		if client.Said(err) == memory.CodeNotFound {
			if _, err = c.CreateNamespace(ctx, memory.CreateNamespace{Name: ns}); err == nil {
				return "namespace " + ns + " created"
			}
			if client.Said(err) == memory.CodeConflict { // by somebody at the same time
				err = nil
			}
		}
	}
	if err == nil {
		return ""
	}
	unknown := "whether namespace " + ns + " is there is not known: " + oneLine(err.Error()) + "\n"
	create := ", then run `memctl namespace create " + ns + "` if it is missing"
	e := asError(err)
	switch remedy := oneLine(hintOf(a, e)); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return unknown + a.here("start a node with `memnode`"+create)
	case e.Code == memory.CodeInvalid || e.Code == memory.CodeUnauthenticated: // what the entries call is, too
		return unknown + remedy + "; then run this again"
	case remedy != "":
		return unknown + remedy + create
	}
	return unknown + "have somebody who may do so run `memctl namespace create " + ns + "` if it is missing"
}
