package verbs

import (
	"cmp"
	"context"
	"errors"

	"mneme/internal/agentsync"
	"mneme/internal/project"
	"mneme/memory"
)

// beside is where memories are kept that are no project's, as an integration for all of a user's work finds it.
type beside struct {
	remembered string // by memctl use
	sole       string // the only namespace that there is
	several    bool   // there is none, or more than one
	sure       bool   // the sole one is that of the node that calls without flags reach
}

// besideProjects looks for it. Others that want the mapping of projects do not wait for that.
func besideProjects(ctx context.Context, a *app, in *integration) (beside, error) {
	if in.Scope != agentsync.User || in.Removed {
		return beside{}, nil
	}
	rem, err := a.remembered()
	if err != nil || rem.Namespace != "" {
		return beside{remembered: rem.Namespace}, err
	}
	only, err := soleNamespace(ctx, a)
	return beside{
		sole:    only,
		several: memory.CodeOf(err) == memory.CodeInvalid && !errors.As(err, new(unaskedError)),
		sure:    a.flags.addr == "",
	}, nil
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

// unknown says that nothing was remembered, and that the node did not say which namespaces there are.
func (b beside) unknown() bool { return b.remembered == "" && b.sole == "" && !b.several }

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
// the tools may not know the project, its hooks had better keep where those look.
func (in *integration) own(a *app) (changed project.Mapping, err error) {
	if in.project == nil || in.beside.unknown() || in.host.Apart {
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
		}
	}
	if err != nil { // it is the project's trouble, and these entries are for all of them
		in.Warnings = append(in.Warnings, oneLine(err.Error())+remedy(err))
		return project.Mapping{}, nil
	}
	in.project, in.why = at, choice.Why(mapping, at)
	in.Project, in.Namespace = cmp.Or(choice.ID, at.IDs()[0]), choice.Namespace
	return changed, nil
}
