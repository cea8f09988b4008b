package verbs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"mneme/client"
	"mneme/internal/hooks"
	"mneme/internal/project"
	"mneme/memory"
)

// hookWorks tells a hook where the agent keeps its memories, or in which place it works where the node cannot be
// asked that now.
func hookWorks(ctx context.Context, a *app, r *hooks.Runner, dir string) error {
	w, err := hookWork(ctx, a, dir, func(ctx context.Context) (string, error) {
		if r.LeftAlone() {
			return "", unaskedError{memory.Errorf(memory.CodeUnavailable, "the node at %s was slow to fail a moment ago, and is left alone", r.Addr)}
		}
		began := time.Now()
		ns, err := soleNamespace(ctx, a)
		if err != nil {
			r.LeaveAlone(ctx, err, time.Since(began))
		}
		return ns, err
	})
	if errors.As(err, new(unaskedError)) {
		r.Place = hookPlace(a, dir)
		r.Note("memctl hook: the node cannot be asked where memories of %s go, what is kept waits for that: %v", placeName(*r.Place), err)
		return nil
	}
	if err != nil {
		_, unread := a.remembered()
		if unread == nil {
			_, unread = projectsOf(a).mapping()
		}
		if unread == nil {
			return err
		}
		r.Place = hookPlace(a, dir)
		r.Note("memctl hook: where memories of %s go cannot be read, what is kept waits for that: %v%s", placeName(*r.Place), err, remedy(err))
		return nil
	}
	r.Namespace = w.namespace
	if r.Told, err = projectsOf(a).arrive(ctx, w); err != nil {
		r.Note("memctl hook: where the project is worked on was not noted: %v", err)
	}
	if r.Told != "" {
		r.Note("%s", r.Told)
	}
	return nil
}

// hookWork is where an agent that works in dir keeps its memories. ask is asked where nothing else says it.
func hookWork(ctx context.Context, a *app, dir string, ask func(context.Context) (string, error)) (work, error) {
	dir = hookFolder(dir)
	ctx, cancel := context.WithTimeout(ctx, hookAsking)
	defer cancel()
	w, err := workIn(a, dir, projects.find)
	switch {
	case err != nil:
	case w.from == fromFlag:
		w = projectsOf(a).placed(w, dir)
	case w.namespace == "":
		w.namespace, err = ask(ctx)
	}
	if err != nil {
		return work{}, err
	}
	if bad := memory.CheckName("namespace", w.namespace); bad != nil {
		return work{}, bad
	}
	return w, nil
}

// hookFolder is the folder in which an agent works, "" where it is on another machine, or its host did not say.
func hookFolder(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// hookPlace is what is noted of the folder in which an agent works, for hookChoose.
func hookPlace(a *app, dir string) *project.Seen {
	dir = hookFolder(dir)
	if dir == "" && a.sys.workDir != nil {
		dir, _ = a.sys.workDir()
	}
	see := project.See
	at, err := projectsOf(a).find(dir)
	if err != nil { // the mapping may be unreadable
		see = project.SeeUnread
		at, err = projectsOf(a).locate(dir, project.Mapping{})
	}
	if err != nil {
		at = nil // nor is it a project later, until Git takes it for one
	}
	if whole, err := filepath.Abs(dir); err == nil && dir != "" {
		dir = whole
	}
	seen := see(dir, at)
	return &seen
}

// hookChoose tells where memories go that were said at a place, by the rule that hookWork has; what this call
// names is none of theirs.
func hookChoose(ctx context.Context, a *app, seen project.Seen) (string, error) {
	if _, err := a.dial(); err != nil { // a file that the call needs cannot be read
		return "", newUnasked(err).why
	}
	lost := false
	w, err := chosenIn(a, func() (*project.Project, error) {
		var there *project.Project
		if dir := hookFolder(seen.Dir); dir != "" {
			var err error
			if there, err = projectsOf(a).find(dir); err != nil && !errors.Is(err, project.ErrNone) {
				return nil, err
			}
		}
		p := seen.Again(there)
		lost = seen.Unread && (there == nil || p != there)
		return p, nil
	})
	if err == nil && lost && w.from != fromProject { // what has no namespace of its own is not known of it
		err = memory.Errorf(memory.CodeConflict, "when it was said the namespaces of projects could not be read, and that project is not there any more")
	}
	if bad := memory.CheckName("namespace", w.namespace); err == nil && w.namespace != "" && bad != nil {
		err = bad
	}
	switch {
	case err != nil:
		return "", undecided(a, seen, err)
	case w.namespace != "":
		return w.namespace, nil
	}
	all, err := namespaces(ctx, a)
	if err == nil && len(all) != 1 {
		err = undecided(a, seen, memory.Errorf(memory.CodeConflict, "there are %d namespaces, and none was chosen", len(all)))
	}
	if err != nil {
		return "", err
	}
	return all[0].Name, nil
}

// undecided says where the memories of which place go nowhere yet, and what decides it.
func undecided(a *app, seen project.Seen, why error) error {
	var there *project.Project
	if dir := hookFolder(seen.Dir); dir != "" {
		there, _ = projectsOf(a).find(dir)
	}
	said := memory.Errorf(memory.CodeConflict, "it is not decided where memories of %s go: %w", placeName(seen), why)
	switch hint := memory.AsError(why).Hint; {
	case memory.CodeOf(why) != memory.CodeConflict && hint != "": // a file that is damaged, say
		said.Hint = hint
	case there != nil && seen.Again(there) == there:
		said.Hint = "`memctl project use NAMESPACE` in " + seen.Dir + " decides"
	case seen.Unread && len(seen.Remotes) == 0:
		said.Hint = "it is sent once the project lies in " + seen.Dir + " again"
	case len(seen.Remotes) > 0:
		said.Hint = "`memctl project use NAMESPACE` in a clone of " + string(seen.Remotes[0].ID) + " decides"
	default:
		said.Hint = "`memctl use NAMESPACE` decides, for all that has no namespace of its own"
	}
	return hooks.Undecided{Why: said}
}

// placeName is a place, as people call it.
func placeName(seen project.Seen) string {
	if seen.Dir == "" {
		return "a folder that is not known"
	}
	return seen.Dir
}

// hookGone tells the user at the beginning of a conversation in a project that the node has no namespace of the name that
// counts there, as in the clone of a colleague whose entries name one: each hook would fail, and only the log say so. It is
// asked behind the recall, so that a node which did not answer that one is not waited for again.
func hookGone(ctx context.Context, a *app, e *hooks.Event, r *hooks.Runner) {
	node, asks := r.Node.(*client.Client)
	if !asks || e.Kind != hooks.SessionStart || r.Namespace == "" || r.Told != "" || !r.Answers() || r.LeftAlone() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hookAsking)
	defer cancel()
	began := time.Now()
	_, err := node.Namespace(ctx, r.Namespace)
	switch {
	case memory.CodeOf(err) == memory.CodeNotFound && !errors.Is(err, client.ErrForeign):
		if hookInProject(a, e) {
			r.Told = "Mneme: nothing is recalled here, and what is kept waits for a week: " + oneLine(err.Error()) + remedy(err)
			r.Note("%s", r.Told)
		}
	case err != nil:
		r.LeaveAlone(ctx, err, time.Since(began))
	}
}
