package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/files"
	"mneme/internal/project"
	"mneme/memory"
)

// Where the namespace came from, as `memctl project` says it.
const (
	fromFlag       = "-n"
	fromVariable   = "MNEME_NAMESPACE"
	fromProject    = "project"
	fromRemembered = "memctl use"
)

// work is the namespace for work in a folder, and where that was said: by a flag, the environment, the
// project, or what was remembered.
type work struct {
	namespace, from string
	project         *project.Project // that has the namespace, and by which identity
	id              project.ID
	known           bool // it was used there before
}

// namespaceIn is workIn without the project.
func namespaceIn(a *app, dir string) (ns, from string, err error) {
	w, err := workIn(a, dir, projects.find)
	return w.namespace, w.from, err
}

// workIn tells what names the namespace for work in a folder; it is "" if nothing does.
func workIn(a *app, dir string, find func(projects, string) (*project.Project, error)) (work, error) {
	if a.flags.namespace != "" {
		return work{namespace: a.flags.namespace, from: fromFlag}, nil
	}
	if ns := a.sys.getenv("MNEME_NAMESPACE"); ns != "" {
		return work{namespace: ns, from: fromVariable}, nil
	}
	return chosenIn(a, func() (*project.Project, error) { return find(projectsOf(a), dir) })
}

// chosenIn tells what was chosen for a project, or for all others, whatever a call names.
func chosenIn(a *app, find func() (*project.Project, error)) (work, error) {
	rem, err := a.remembered()
	if err != nil {
		return work{}, err
	}
	mapping, err := projectsOf(a).mapping()
	if err != nil {
		return work{}, err
	}
	if len(mapping.Projects) > 0 { // else there is no need to look
		p, err := find()
		if err != nil && !errors.Is(err, project.ErrNone) {
			return work{}, err
		}
		if p != nil {
			if mapping, err = projectsOf(a).mapping(); err != nil { // find may have settled a move
				return work{}, err
			}
			choice, err := mapping.Choose(p)
			if err != nil || choice.Namespace != "" {
				return work{choice.Namespace, fromProject, p, choice.ID, mapping.Knows(choice.ID, p)}, err
			}
		}
	}
	if rem.Namespace != "" {
		return work{namespace: rem.Namespace, from: fromRemembered}, nil
	}
	return work{}, nil
}

// placed is work in a folder that an entry names the namespace for: where that is the one of the
// project, too, it is used at its place.
func (p projects) placed(w work, dir string) work {
	at, mapping, err := p.found(dir)
	if err != nil {
		return w // what was named counts whatever is wrong with the rest
	}
	if choice, err := mapping.Choose(at); err == nil && choice.Namespace == w.namespace {
		w.project, w.id, w.known = at, choice.ID, mapping.Knows(choice.ID, at)
	}
	return w
}

// arrivePatience is how long a hook waits to note where a project is worked on.
const arrivePatience = 200 * time.Millisecond

// arrive notes that a project's namespace is used at its place, and says so where it was used
// elsewhere before: once for each place.
func (p projects) arrive(ctx context.Context, w work) (told string, err error) {
	if w.project == nil || w.known {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, arrivePatience)
	defer cancel()
	letGo, err := p.hold(ctx)
	if err != nil {
		return "", err
	}
	defer letGo()
	mapping, err := p.mapping()
	if err != nil || mapping.Projects[w.id] != w.namespace || mapping.Knows(w.id, w.project) {
		return "", err
	}
	before := mapping.Arrive(w.id, w.project)
	if err := p.keep(mapping); err != nil || before == "" {
		return "", err
	}
	return fmt.Sprintf("Mneme: %s is another place of the project %s, so memories are those of its namespace %s, as in %s; `memctl project` shows its places", w.project.Top, w.id, w.namespace, before), nil
}

// projects are those of this user, with their namespaces.
type projects struct{ a *app }

func projectsOf(a *app) projects { return projects{a} }

// locate is the one that a folder belongs to, as a mapping knows it; "" is where memctl was called.
func (p projects) locate(dir string, as project.Mapping) (*project.Project, error) {
	if dir == "" {
		if p.a.sys.workDir == nil {
			return nil, project.ErrNone
		}
		var err error
		if dir, err = p.a.sys.workDir(); err != nil {
			return nil, project.ErrNone // a folder that was removed
		}
	}
	return project.Find(context.Background(), dir, as) // it asks Git for five seconds at most
}

// find is the one that a folder belongs to, as what its user chose knows it.
func (p projects) find(dir string) (*project.Project, error) {
	at, _, err := p.found(dir)
	return at, err
}

// found is find with what the user chose. It settles a project that was moved: where that cannot be
// written it is known as before, until a later call.
func (p projects) found(dir string) (*project.Project, project.Mapping, error) {
	mapping, err := p.mapping()
	if err != nil {
		return nil, mapping, err
	}
	at, err := p.locate(dir, mapping)
	if err != nil || at.Settled() {
		return at, mapping, err
	}
	if settled, changed, err := p.settle(at.Top); err == nil {
		return settled, changed, nil
	}
	return at, mapping, nil
}

// settle has the project at top, which was moved, be known by its new place from now on.
func (p projects) settle(top string) (*project.Project, project.Mapping, error) {
	ctx, cancel := context.WithTimeout(context.Background(), arrivePatience)
	defer cancel()
	letGo, err := p.hold(ctx)
	if err != nil {
		return nil, project.Mapping{}, err
	}
	defer letGo()
	at, mapping, err := p.held(top)
	if err == nil && !at.Settled() { // else another call has done it
		mapping.Settle(at)
		err = p.save(mapping, at)
	}
	return at, mapping, err
}

// held is found for who holds the mapping, and settles nothing.
func (p projects) held(dir string) (*project.Project, project.Mapping, error) {
	mapping, err := p.mapping()
	if err != nil {
		return nil, mapping, err
	}
	at, err := p.locate(dir, mapping)
	return at, mapping, err
}

func (p projects) path() (string, error) {
	path, err := p.a.rememberedPath()
	return filepath.Join(filepath.Dir(path), "projects.json"), err
}

// mapping reads which namespaces projects have; without a place for it there are none.
func (p projects) mapping() (project.Mapping, error) {
	path, err := p.path()
	if err != nil {
		return project.ParseMapping("", nil)
	}
	return project.ReadMapping(path)
}

// holdPatience is how long a verb waits for others that change what this user chose.
const holdPatience = 30 * time.Second

// hold keeps other calls from changing the namespaces of projects and the files of agents, from
// before they are read until letGo, which may be called twice.
func (p projects) hold(ctx context.Context) (letGo func(), err error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if err := files.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the configuration directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); !ok {
		return nil, memory.Errorf(memory.CodeUnavailable, "another memctl is changing projects or agents: %w", err).
			WithHint("run it again when that one has ended; it holds %s", path+".lock")
	}
	return func() { _ = lock.Unlock() }, nil
}

// save keeps the mapping, and where the project lies that it was changed for.
func (p projects) save(m project.Mapping, of *project.Project) error {
	if place, text := of.Place(); text != "" {
		if err := replaceFile(place, 0o644, func(f *os.File) error { _, err := f.WriteString(text); return err }); err != nil {
			return memory.Errorf(memory.CodeInvalid, "the repository %s cannot be told from others: %w", of.Top, err).WithHint("make its .git writable, or give -n NAMESPACE")
		}
	}
	return p.keep(m)
}

func (p projects) keep(m project.Mapping) error {
	path, err := p.path()
	if err != nil {
		return err
	}
	b, err := m.Encode()
	if err != nil {
		return err
	}
	return writeConfig(path, b)
}

func projectCmd(a *app) *cobra.Command {
	show := projectShowCmd(a)
	cmd := &cobra.Command{
		Use:   "project",
		Short: "Show or choose the namespace of the project in this folder",
		Long: `A project is a Git repository, known by its remote: clones, worktrees and folders of it
are the same project. Without a remote it is known by its folder, and keeps its namespace
when it is moved or gets a remote. It may have a namespace
of its own, which counts for every call in it: -n wins over MNEME_NAMESPACE, that over the
project's, and that over what 'memctl use' remembered.`,
		Example: `  memctl project
  memctl project use team-a
  memctl project use shop --create
  memctl project list
  memctl project forget`,
		Args: wantArgs(0, 0),
		RunE: show.RunE,
	}
	cmd.AddCommand(show, projectUseCmd(a), projectListCmd(a), projectForgetCmd(a))
	return cmd
}

// projectShown is what `memctl project` answers.
type projectShown struct {
	Top       string           `json:"top"`
	Projects  []project.ID     `json:"projects"`
	Remotes   []project.Remote `json:"remotes"`
	Namespace string           `json:"namespace,omitempty"`
	From      string           `json:"from,omitempty"`
	CopyOf    string           `json:"copy_of,omitempty"` // where another one lies, whose namespace it has not
	Why       string           `json:"why,omitempty"`     // of a project that is known in several ways
	Places    []string         `json:"places,omitempty"`  // where its namespace was used, the latest last
	Others    []otherEntry     `json:"others,omitempty"`  // entries of agents that name another namespace
}

func projectShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show the project of this folder and its namespace",
		Example: "  memctl project show",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, mapping, err := projectsOf(a).found("")
			if err != nil {
				return err
			}
			w, err := workIn(a, "", projects.find)
			if err != nil {
				return err
			}
			ns, from, why := w.namespace, w.from, ""
			var places []string
			if from == fromProject {
				if choice, err := mapping.Choose(p); err == nil {
					why, places = choice.Why(mapping, p), mapping.Places[choice.ID]
				}
			}
			doc := projectShown{Top: p.Top, Projects: p.IDs(), Remotes: p.Remotes, Namespace: ns, From: from, Why: why, Places: places}
			own := ""
			if from == fromProject {
				own = ns
			}
			if from != fromFlag && from != fromVariable { // which say it for this call alone
				doc.Others = others(cmd.Context(), a, p, own)
			}
			if from != fromProject {
				doc.CopyOf = p.CopyOf
			}
			if doc.Remotes == nil {
				doc.Remotes = []project.Remote{}
			}
			return a.emit(doc, []string{ns}, func() {
				a.printf("folder     %s\n", p.Top)
				for _, r := range p.Remotes {
					a.printf("project    %s (remote %s)\n", r.ID, r.Name)
				}
				if len(p.Remotes) == 0 {
					a.printf("project    %s (it has no remote)\n", p.Local)
				}
				switch from {
				case "":
					a.printf("namespace  -\n")
				case fromProject:
					if why != "" {
						why = " (" + why + ")"
					}
					a.printf("namespace  %s%s\n", ns, why)
					for _, place := range places {
						if place != p.Top {
							a.printf("used in    %s\n", place)
						}
					}
				default:
					a.printf("namespace  %s (by %s; the project has none of its own)\n", ns, from)
				}
				if doc.CopyOf != "" {
					a.printf("copy of    %s, whose namespace it does not have\n", doc.CopyOf)
				}
				if own != "" {
					tellShared(a, mapping, p, own)
				}
				tellOthers(a, doc.Others, own)
				if from != fromProject && from != fromFlag {
					a.next("memctl project use NAMESPACE")
				}
			})
		},
	}
}

func projectUseCmd(a *app) *cobra.Command {
	create := false
	cmd := &cobra.Command{
		Use:               "use NAMESPACE",
		Short:             "Have the project of this folder use a namespace",
		Example:           "  memctl project use team-a\n  memctl project use shop --create",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: completeFirst(completeNamespaces(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bad := memory.CheckName("namespace", args[0]); bad != nil {
				return bad
			}
			if _, err := projectsOf(a).locate("", project.Mapping{}); err != nil {
				return err
			}
			err := checkNamespace(a, cmd, args[0])
			made := ""
			switch {
			case client.Said(err) == memory.CodeNotFound && create:
				made = ensureNamespace(cmd.Context(), a, args[0])
			case client.Said(err) == memory.CodeNotFound:
				return memory.AsError(err).WithHint("`memctl project use %s --create` makes it", args[0])
			case err != nil:
				return err
			}
			letGo, err := projectsOf(a).hold(cmd.Context())
			if err != nil {
				return err
			}
			defer letGo()
			p, mapping, err := projectsOf(a).held("")
			if err != nil {
				return err
			}
			mapping.Use(p, args[0])
			if err := projectsOf(a).save(mapping, p); err != nil {
				return err
			}
			doc := projectShown{Top: p.Top, Projects: p.IDs(), Remotes: p.Remotes, Namespace: args[0], From: fromProject, Others: others(cmd.Context(), a, p, args[0])}
			return a.emit(doc, []string{args[0]}, func() {
				for _, id := range p.Known() {
					if mapping.Projects[id] != "" {
						a.printf("%s uses namespace %s\n", id, args[0])
					}
				}
				if made != "" {
					a.println(made)
				}
				tellShared(a, mapping, p, args[0])
				tellOthers(a, doc.Others, args[0])
				a.next("memctl integrate AGENT")
			})
		},
	}
	cmd.Flags().BoolVar(&create, "create", false, "make the namespace if it is missing")
	return cmd
}

func projectListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the projects that have a namespace",
		Example: "  memctl project list",
		Args:    wantArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			mapping, err := projectsOf(a).mapping()
			if err != nil {
				return err
			}
			list := []project.Choice{}
			var rows [][]string
			var ids []string
			for _, id := range slices.Sorted(maps.Keys(mapping.Projects)) {
				list = append(list, project.Choice{ID: id, Namespace: mapping.Projects[id]})
				rows = append(rows, []string{string(id), mapping.Projects[id]})
				ids = append(ids, string(id))
			}
			return a.emit(map[string]any{"projects": list}, ids, func() {
				if len(rows) == 0 {
					a.println("no project has a namespace of its own")
					a.next("memctl project use NAMESPACE, in a project's folder")
					return
				}
				a.table([]column{{name: "PROJECT"}, {name: "NAMESPACE"}}, rows)
			})
		},
	}
}

func projectForgetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "forget [PROJECT]",
		Short: "Forget which namespace a project has; its memories stay",
		Example: `  memctl project forget
  memctl project forget github.com/acme/shop`,
		Args: wantArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			letGo, err := projectsOf(a).hold(cmd.Context())
			if err != nil {
				return err
			}
			defer letGo()
			mapping, err := projectsOf(a).mapping()
			if err != nil {
				return err
			}
			var known []project.ID
			which := ""
			if len(args) == 1 {
				id := project.ID(args[0])
				if which = args[0]; mapping.Projects[id] != "" {
					known = []project.ID{id}
					mapping.Drop(id)
				}
			} else {
				p, err := projectsOf(a).locate("", mapping)
				if err != nil {
					return err
				}
				which, known = string(p.IDs()[0]), mapping.Forget(p)
			}
			if len(known) == 0 {
				return memory.Errorf(memory.CodeNotFound, "%s has no namespace of its own", which).WithHint("`memctl project list` shows those that have")
			}
			if err := projectsOf(a).keep(mapping); err != nil {
				return err
			}
			return a.emit(map[string]any{"forgotten": known}, nil, func() {
				for _, id := range known {
					a.printf("%s has no namespace of its own any more\n", id)
				}
			})
		},
	}
}
