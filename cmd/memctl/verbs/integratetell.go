package verbs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"mneme/internal/agentsync"
	"mneme/memory"
)

// findHost finds a host by its name, and says which ones are nearly called so.
func findHost(name string) (agentsync.Host, error) {
	host, err := agentsync.Find(name)
	if err == nil {
		return host, nil
	}
	lower := strings.ToLower(name)
	var near, all []string
	for _, h := range agentsync.Hosts() {
		all = append(all, h.Name)
		if len(lower) > 2 && (strings.HasPrefix(h.Name, lower) || strings.HasPrefix(lower, h.Name)) {
			near = append(near, h.Name)
		}
	}
	if best := nearest(lower, all); near == nil && best != "" {
		near = []string{best}
	}
	if near != nil {
		return host, memory.AsError(err).WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return host, err
}

// notHome is the project, "" where it is the folder of the user: the files there are those for
// all of the user's work.
func notHome(w agentsync.Where) string {
	home, err := os.Stat(w.Home)
	if err != nil || w.Project == "" {
		return w.Project
	}
	if at, err := os.Stat(w.Project); err == nil && os.SameFile(at, home) {
		return ""
	}
	return w.Project
}

// warn says what in the files of a project may not fit other machines, or this one.
func (in *integration) warn(program string, found bool, flags []string) {
	switch {
	case !found:
		in.Warnings = append(in.Warnings, "the entries call memctl by its name, since others have these files, too: put "+filepath.Dir(program)+" into PATH, or they find none")
	case !in.host.ByPath:
		in.Warnings = append(in.Warnings, "the entries call memctl by its name, since others have these files, too; if "+in.host.Title+" does not have the PATH of your shell, --scope user names the whole path")
	}
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i] != "--addr" {
			in.Warnings = append(in.Warnings, flags[i]+" "+flags[i+1]+" is a path of this machine, and stands in files that others have, too")
		}
	}
}

// warnOf says what went wrong beside the call, and what helps.
func (in *integration) warnOf(err error) {
	in.Warnings = append(in.Warnings, oneLine(err.Error())+remedy(err))
}

// warnTwice says that the other scope has hooks, too: the host runs those of both for each event.
func (in *integration) warnTwice() {
	other, whose := agentsync.Project, "in "+in.where.Project
	if in.Scope == agentsync.Project {
		other, whose = agentsync.User, "for all your work"
	}
	if other == agentsync.Project && in.where.Project == "" {
		return
	}
	if there, _ := in.host.State(other, in.where); there.Hooks { // what cannot be read is that scope's trouble
		in.Warnings = append(in.Warnings, in.host.Title+" has hooks "+whose+", too, and runs both for each event: one of them answers where both mean the same namespace. `memctl integrate "+
			in.Agent+" --scope "+string(other)+" --remove` takes those out")
	}
}

// named notes which other namespaces the entries had.
func (in *integration) named(changes []*agentsync.Change) {
	if !in.Removed {
		in.Before = slices.DeleteFunc(agentsync.Named(changes), func(ns string) bool { return in.fixed && ns == in.Namespace })
	}
}

// described says what became of each file.
func described(changes []*agentsync.Change, dryRun bool) []integrationFile {
	out := []integrationFile{}
	for _, c := range changes {
		f := integrationFile{Path: c.Path, Did: "changed"}
		switch {
		case !c.Changed():
			f.Did = "unchanged"
		case c.Before == nil:
			f.Did = "created"
		case c.After == nil:
			f.Did = "removed"
		}
		if c.Changed() && dryRun {
			f.Diff = string(diff.Diff(c.Path, c.Before, c.Path, c.After))
		} else if c.Changed() {
			f.Backup = c.Kept()
		}
		out = append(out, f)
	}
	return out
}

func (in *integration) tell(a *app, made string) {
	in.tellWarnings(a)
	whose := "for all your work"
	if in.Scope == agentsync.Project {
		whose = "in " + in.where.Project
	}
	if in.DryRun {
		same := true
		for _, f := range in.Files {
			a.printf("%s", safe(f.Diff))
			same = same && f.Did == "unchanged"
		}
		if in.beside.given {
			a.printf("project %s would be given namespace %s\n", in.Project, in.Namespace)
			same = false
		}
		if !in.fixed && in.beside.sole != "" && in.beside.sure {
			a.printf("namespace %s would be remembered for what is no project's\n", in.beside.sole)
			same = false
		}
		if made != "" {
			a.println(made)
			same = false
		}
		if same {
			a.printf("nothing would change for %s %s\n", in.host.Title, whose)
		}
		return
	}
	a.printf("%s, %s\n", in.host.Title, whose)
	printFiles(a, in.Files)
	if in.Removed {
		return
	}
	switch {
	case in.apart != "":
		a.printf("project %s: %s keeps its memories in namespace %s, by %s; `memctl project` shows which one other calls use\n", in.Project, in.host.Title, in.Namespace, in.apart)
	case in.Project != "":
		why := ""
		if in.why != "" {
			why = in.why + "; "
		}
		a.printf("project %s: its memories are kept in namespace %s (%s`memctl project` shows and changes that)\n", in.Project, in.Namespace, why)
	case in.fixed:
		a.printf("memories are kept in namespace %s\n", in.Namespace)
	}
	if in.beside.unread != nil && !in.fixed {
		a.println("nothing is kept, and what hooks keep waits, until it can be read which namespaces projects have")
	} else if in.apart == "" && !in.fixed {
		a.printf("memories are kept in the namespace of each project, and elsewhere %s\n", in.beside)
		if in.host.Apart {
			a.printf("%s starts its servers outside of the project: unless it tells them which folders are open, the tools work in what counts elsewhere; -n fixes one for all\n", in.host.Title)
		}
	}
	if in.beside.left != "" {
		a.printf("what was kept for it in %s before stays there; `memctl project use %[1]s` goes on there\n", in.beside.left)
	}
	if len(in.Before) > 0 {
		a.printf("the entries named namespace %s before: what was kept there stays there, and -n takes it again\n", strings.Join(in.Before, ", "))
	}
	if made != "" {
		a.println(made)
	}
	a.println(in.host.Told)
	then := "start %s, tell it something to remember, and ask for it in another conversation; memctl recalls shows what it was given"
	if !in.host.Recalls(in.Scope, in.where) {
		a.printf("no hook recalls for it: its model asks by itself, if its rules say this:\n\n%s\n", agentsync.Standing)
		then = "put that into the rules of %s, start it, tell it something to remember, and ask for it in another conversation"
	}
	switch elsewhere := in.Project == "" && !in.fixed; {
	case elsewhere && in.beside.none:
		then = "memctl namespace create NAME: until there is one, %s keeps and finds nothing"
	case elsewhere && in.beside.several:
		then = "memctl use NAMESPACE, or the same with -n NAMESPACE: until then %s keeps and finds nothing but in projects that have a namespace"
	}
	a.next(then, in.host.Title)
}

func (in *integration) tellWarnings(a *app) {
	for _, w := range in.Warnings {
		a.note("note: %s", w)
	}
}

func printFiles(a *app, files []integrationFile) {
	for _, f := range files {
		a.printf("  %-9s  %s\n", f.Did, f.Path)
		if f.Backup != "" {
			a.printf("  %-9s  %s\n", "kept", f.Backup)
		}
	}
}
