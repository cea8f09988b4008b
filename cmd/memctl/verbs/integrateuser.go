package verbs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"mneme/client"
	"mneme/internal/agentsync"
	"mneme/internal/project"
	"mneme/memory"
)

// beside is where memories are kept that are no project's, as an integration for all of a user's work finds it.
type beside struct {
	remembered string // by memctl use
	sole       string // the only namespace that there is
	several    bool   // there is none, or more than one
	away       bool   // the node did not say which there are
	given      bool   // this project has one from now on
	left       string // where stays what was kept for this project so far
	sure       bool   // the sole one is that of the node that hosts reach, and no project's
}

// besideProjects looks for it. Others that want the mapping of projects do not wait for that.
func besideProjects(ctx context.Context, a *app, in *integration) (beside, error) {
	if in.Scope != agentsync.User || in.Removed {
		return beside{}, nil
	}
	rem, err := a.remembered()
	if err != nil {
		return beside{}, err
	}
	mapping, unread := projectsOf(a).mapping() // who needs it says why it cannot be read
	only, err := soleNamespace(ctx, a)
	away := err != nil && errors.As(err, new(unaskedError))
	if rem.Namespace != "" {
		return beside{remembered: rem.Namespace, away: away}, nil
	}
	return beside{
		sole:    only,
		several: memory.CodeOf(err) == memory.CodeInvalid && !away,
		away:    away,
		sure:    unread == nil && reachedLater(a, rem) && !slices.Contains(slices.Collect(maps.Values(mapping.Projects)), only),
	}, nil
}

// reachedLater reports whether a host that knows no flags or variables of this call reaches the same node.
func reachedLater(a *app, rem remembered) bool {
	env := a.sys.getenv("MNEME_ADDR")
	return a.flags.addr == "" && (env == "" || strings.TrimRight(env, "/") == strings.TrimRight(first(rem.Addr, client.DefaultAddr), "/"))
}

// remember has the only namespace that there is count from now on, as `memctl use` does: else memories would be kept
// nowhere as soon as there is another one, such as a project's.
func (b beside) remember(a *app) error {
	if b.sole == "" || !b.sure {
		return nil
	}
	rem, err := a.remembered()
	if err != nil || rem.Namespace != "" {
		return err
	}
	rem.Namespace = b.sole
	return a.remember(rem)
}

// String says it.
func (b beside) String() string {
	switch {
	case b.remembered != "":
		return "in " + b.remembered + " (memctl use)"
	case b.sole != "" && b.sure:
		return "in " + b.sole + ", the only namespace that there was (`memctl use` changes that)"
	case b.sole != "":
		return "in " + b.sole + ", as long as it is the only namespace that there is"
	case b.several:
		return "nowhere, until `memctl use NAMESPACE` says where"
	}
	return "in what `memctl use NAMESPACE` says, or in the only one that there is"
}

// own gives the project in this folder a namespace if it has none. Entries for all of a user's work do not name it: where
// the tools may not know the project, its hooks had better keep where those look. A node that is away could not make it, a
// home under Git is all of the user's work, and beside a sole namespace that is not remembered a second one would leave the
// rest without any.
func (in *integration) own(a *app) (changed project.Mapping, err error) {
	if in.project == nil || in.where.Project == "" || in.beside.away || in.host.Apart || in.beside.sole != "" && !in.beside.sure {
		return changed, nil
	}
	at, mapping, err := projectsOf(a).held("")
	if err != nil {
		return changed, err
	}
	choice, err := mapping.Choose(at)
	if err == nil && choice.Namespace == "" {
		if choice, err = mapping.Propose(at); err == nil {
			mapping.Use(at, choice.Namespace)
			changed = mapping
			in.beside.given = true
			if was := first(in.beside.remembered, in.beside.sole); was != choice.Namespace {
				in.beside.left = was
			}
		}
	}
	if err != nil {
		in.disown(err)
		return project.Mapping{}, nil
	}
	in.beside.sure = in.beside.sure && in.beside.sole != choice.Namespace // it is this project's from now on
	in.project, in.why = at, choice.Why(mapping, at)
	in.Project, in.Namespace = cmp.Or(choice.ID, at.IDs()[0]), choice.Namespace
	return changed, nil
}

// disown leaves the project where it was: what keeps it from having a namespace is its own trouble.
func (in *integration) disown(why error) {
	in.warnOf(why)
	in.Project, in.Namespace = "", in.beside.remembered
	in.beside.given, in.beside.left = false, ""
}
