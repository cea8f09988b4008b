package verbs

import (
	"cmp"
	"context"

	"mneme/internal/agentsync"
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
	w, err := hostsWhere(a)
	if err != nil {
		return err
	}
	p, err := projectsOf(a).find("")
	if err == nil {
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
		if path, err := gitHookPath(ctx, p); err == nil && agentsync.HasGitHook(path) {
			one.Project = agentsync.State{Hooks: true, Files: []string{path}}
		}
		list = append(list, one)
	}
	return a.emit(map[string]any{"agents": list}, nil, func() { tellIntegrations(a, list) })
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
	a.next("memctl integrate AGENT")
}
