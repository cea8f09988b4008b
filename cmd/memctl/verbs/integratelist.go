package verbs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"mneme/internal/agentsync"
	"mneme/internal/project"
)

// integrated is one line of the list.
type integrated struct {
	Agent     string          `json:"agent"`
	Installed bool            `json:"installed"`
	User      agentsync.State `json:"user"`
	Project   agentsync.State `json:"project"`
	Problem   string          `json:"problem,omitempty"`
}

func listIntegrations(ctx context.Context, a *app) error {
	p, _ := projectsOf(a).locate("", project.Mapping{})
	list, err := integrations(ctx, a, p)
	if err != nil {
		return err
	}
	w, _ := workIn(a, "", projects.find) // where it cannot be told, no entry names another one
	return a.emit(map[string]any{"agents": list}, nil, func() {
		tellIntegrations(a, list)
		if w.from == fromProject {
			tellOthers(a, othersThan(w.namespace, list), w.namespace)
		}
		a.next("memctl integrate AGENT")
	})
}

// integrations looks into the files of all agents, for the user and for the project in this folder.
func integrations(ctx context.Context, a *app, p *project.Project) ([]integrated, error) {
	w, err := hostsWhere(a)
	if err != nil {
		return nil, err
	}
	if p != nil {
		w.Project = p.Top
	} else if a.sys.workDir != nil {
		w.Project, _ = a.sys.workDir()
	}
	w.Project = notHome(w)
	list := []integrated{}
	for _, h := range agentsync.Hosts() {
		one := integrated{Agent: h.Name, Installed: h.Installed(w)}
		var user, project error
		if one.User, user = h.State(agentsync.User, w); w.Project != "" {
			one.Project, project = h.State(agentsync.Project, w)
		}
		if bad := cmp.Or(project, user); bad != nil {
			one.Problem = oneLine(bad.Error())
		}
		list = append(list, one)
	}
	if p != nil {
		one := integrated{Agent: gitHost, Installed: true}
		if path, err := gitHookPath(ctx, p); err == nil {
			one.Project = agentsync.GitHookState(path)
		}
		list = append(list, one)
	}
	return list, nil
}

// otherEntry is what an agent has that names another namespace than the project's.
type otherEntry struct {
	Agent     string          `json:"agent"`
	Scope     agentsync.Scope `json:"scope"`
	Namespace string          `json:"namespace"`
	Files     []string        `json:"files"`
}

// othersThan lists what names another namespace than ns, that of the project. Where it has none, only
// its own entries count.
func othersThan(ns string, list []integrated) []otherEntry {
	var out []otherEntry
	for _, one := range list {
		for scope, state := range map[agentsync.Scope]agentsync.State{agentsync.Project: one.Project, agentsync.User: one.User} {
			for _, has := range state.Namespaces {
				if has != ns && (ns != "" || scope == agentsync.Project) {
					out = append(out, otherEntry{one.Agent, scope, has, state.Files})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b otherEntry) int { return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Scope, b.Scope)) })
	return out
}

// others is othersThan for the project p. What cannot be looked into names nothing.
func others(ctx context.Context, a *app, p *project.Project, ns string) []otherEntry {
	list, err := integrations(ctx, a, p)
	if err != nil {
		return nil
	}
	return othersThan(ns, list)
}

// tellOthers says which entries name another namespace, and what has them name ns, "" if there is
// none.
func tellOthers(a *app, entries []otherEntry, ns string) {
	for _, e := range entries {
		whose, again := "in this project", "memctl integrate "+e.Agent
		if e.Scope == agentsync.User {
			whose, again = "for all your work", again+" --scope user"
		} else if e.Agent != gitHost {
			again += " --scope project"
		}
		said := "the entries of " + e.Agent + " " + whose + " name namespace " + e.Namespace + " (" + strings.Join(e.Files, ", ") + ")"
		switch {
		case ns == "":
			a.printf("%s: `memctl project use %s` has every call here use it\n", said, e.Namespace)
		case e.Scope == agentsync.User:
			a.printf("%s, and keep to it: `%s` leaves that to each project\n", said, again)
		default:
			a.printf("%s, and keep to it: `%s` has them name %s\n", said, again, ns)
		}
	}
}

func tellIntegrations(a *app, list []integrated) {
	say := func(s agentsync.State) string {
		switch {
		case s.Server && s.Hooks:
			return "tools, hooks"
		case s.Server:
			return "tools"
		case s.Hooks:
			return "hooks"
		}
		return "-"
	}
	var rows [][]string
	for _, one := range list {
		there := "-"
		if one.Installed {
			there = "yes"
		}
		rows = append(rows, []string{one.Agent, there, say(one.Project), say(one.User), one.Problem})
	}
	a.table([]column{{name: "AGENT"}, {name: "INSTALLED"}, {name: "THIS PROJECT"}, {name: "USER"}, {name: "", flex: true}}, rows)
}

// tellShared names the other projects that have the namespace: each is given what the others remember.
func tellShared(a *app, m project.Mapping, p *project.Project, namespace string) {
	own := append(p.Known(), p.IDs()...)
	for _, id := range slices.Sorted(maps.Keys(m.Projects)) {
		if m.Projects[id] == namespace && !slices.Contains(own, id) {
			a.printf("project %s has it, too: each finds what the other keeps\n", id)
		}
	}
}
