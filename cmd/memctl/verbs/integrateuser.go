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

// beside is where memories are kept that are no project's, as an integration for all of a user's work finds it.
type beside struct {
	remembered string // by memctl use
	sole       string // the only namespace that there is
	none       bool   // there is none
	several    bool   // there is more than one
	away       error  // why the node did not say which there are
	unread     error  // why it is not known which namespaces projects have
	given      bool   // this project has one from now on
	left       string // where stays what was kept for this project so far
	sure       bool   // the sole one is that of the node that hosts reach, and no project's
	addr       string // of the node, where only this call names it
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
	mapping, unread := projectsOf(a).mapping() // entries that name a namespace do without
	all, away := namespaces(ctx, a)
	b := beside{remembered: rem.Namespace, away: away, unread: unread, addr: a.flags.addr}
	if rem.Namespace != "" || away != nil {
		return b, nil
	}
	switch len(all) {
	case 0:
		b.none = true
	case 1:
		b.sole = all[0].Name
		b.sure = unread == nil && reachedLater(a, rem) && !slices.Contains(slices.Collect(maps.Values(mapping.Projects)), b.sole)
	default:
		b.several = true
	}
	return b, nil
}

// reachedLater reports whether a host that knows no flags or variables of this call reaches the same node.
func reachedLater(a *app, rem remembered) bool {
	now, err := wholeAddr(a.addr(rem))
	later, bad := wholeAddr(rem.Addr)
	return err == nil && bad == nil && now == later
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
	case b.none:
		return "nowhere, as there is no namespace"
	case b.several:
		return "nowhere, until `memctl use NAMESPACE` says where"
	}
	return "in what `memctl use NAMESPACE` says, or in the only one that there is"
}

// own gives the project in this folder a namespace if it has none. Entries for all of a user's work do not name it: where
// the tools may not know the project, its hooks had better keep where those look, and a home under Git is all of the user's
// work.
func (in *integration) own(ctx context.Context, a *app) (changed project.Mapping, err error) {
	if in.beside.unread != nil {
		in.disown(in.beside.unread)
		return changed, nil
	}
	if in.project == nil || in.where.Project == "" || in.host.Apart {
		return changed, nil
	}
	at, mapping, err := projectsOf(a).held("")
	if err != nil {
		return changed, err
	}
	choice, err := mapping.Choose(at)
	if err == nil && choice.Namespace == "" {
		if choice, err = mapping.Propose(at); err == nil {
			why := in.beside.against(choice.Namespace)
			if why == "" {
				why = entriesAgainst(ctx, a, at, choice.Namespace)
			}
			if why != "" {
				in.Warnings = append(in.Warnings, "project "+string(choice.ID)+" gets no namespace of its own: "+why)
				return changed, nil
			}
			mapping.Use(at, choice.Namespace)
			changed = mapping
			in.beside.give(choice.Namespace)
		}
	}
	if err != nil {
		in.disown(err)
		return project.Mapping{}, nil
	}
	in.beside.sure = in.beside.sure && in.beside.sole != choice.Namespace // it is this project's from now on
	if in.beside.none {
		in.beside.sole = choice.Namespace // which this call makes
	}
	in.project, in.why = at, choice.Why(mapping, at)
	in.Project, in.Namespace = cmp.Or(choice.ID, at.IDs()[0]), choice.Namespace
	return changed, nil
}

// against says why a project without a namespace is not given this one, and what helps: a node that is away could not make
// it, and beside a sole one that is not remembered a second one would leave the rest without any. "" is nothing.
func (b beside) against(namespace string) string {
	switch {
	case b.away != nil && b.remembered == "":
		return oneLine(b.away.Error()) + remedy(b.away) + "; the same call gives it one once the node answers"
	case b.away != nil: // which is told of the remembered one
		return "the same call gives it one once the node answers"
	case b.sole != "" && !b.sure && b.sole != namespace:
		use := "memctl use " + b.sole
		if b.addr != "" {
			use += " --addr " + b.addr
		}
		return "with a second one nothing would be kept elsewhere; `" + use + "` keeps that in " + b.sole + ", and the same call gives the project one then"
	}
	return ""
}

// entriesAgainst is against for entries in the project, which came with its clone or name one for an agent alone: theirs
// fits, too.
func entriesAgainst(ctx context.Context, a *app, at *project.Project, namespace string) string {
	for _, e := range others(ctx, a, at, "") {
		if e.Namespace != namespace {
			return "the entries of " + e.Agent + " in it name " + e.Namespace + " (" + strings.Join(e.Files, ", ") + "); `memctl project use " + e.Namespace + "` has every call here use it"
		}
	}
	return ""
}

// give notes that the project has this one from now on.
func (b *beside) give(namespace string) {
	b.given = true
	if was := first(b.remembered, b.sole); was != namespace {
		b.left = was
	}
}

// disown leaves the project where it was: what keeps it from having a namespace is its own trouble.
func (in *integration) disown(why error) {
	in.warnOf(why)
	in.Project, in.Namespace = "", in.beside.remembered
	in.beside.given, in.beside.left = false, ""
	if in.beside.none {
		in.beside.sole = ""
	}
}
