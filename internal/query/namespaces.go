package query

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/internal/settings"
	"mneme/memory"
)

// Namespaces gives one page of the namespaces by name. It tells of them, not of what
// is in them; who may see the list is decided before. The cursor is the last name of
// the page before, which may have been deleted since.
func (s *Service) Namespaces(ctx context.Context, req memory.NamespacesRequest) (out memory.NamespaceList, err error) {
	if bad := req.Validate(); bad != nil {
		return out, bad
	}
	v, err := s.opt.Views.State()
	if err != nil {
		return out, err
	}
	defer func() { err = views.Failed("namespaces", errors.Join(err, v.Close())) }()
	infos := v.Namespaces()
	from, found := slices.BinarySearchFunc(infos, req.Cursor, func(ns projections.NamespaceInfo, name string) int { return strings.Compare(ns.Name, name) })
	if found {
		from++
	}
	infos = infos[from:]
	if limit := cmp.Or(req.Limit, memory.DefaultPage); len(infos) > limit {
		infos = infos[:limit]
		out.Cursor = infos[limit-1].Name
	}
	out.Namespaces = make([]memory.Namespace, 0, len(infos))
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return memory.NamespaceList{}, err
		}
		ns, err := s.namespace(v, info)
		if err != nil {
			return memory.NamespaceList{}, err
		}
		out.Namespaces = append(out.Namespaces, ns)
	}
	return out, nil
}

// Namespace describes one namespace. Errors: invalid, not_found.
func (s *Service) Namespace(ctx context.Context, name string) (ns memory.Namespace, err error) {
	if err := ctx.Err(); err != nil {
		return ns, views.Failed("namespace", err)
	}
	v, err := s.opt.Views.State()
	if err != nil {
		return ns, err
	}
	defer func() { err = views.Failed("namespace", errors.Join(err, v.Close())) }()
	_, info, err := views.OpenCapability(v, name, "")
	if err != nil {
		return ns, err
	}
	return s.namespace(v, info)
}

// namespace describes a namespace; of one that lives on another shard what the directory
// has.
func (s *Service) namespace(v *projections.View, info projections.NamespaceInfo) (memory.Namespace, error) {
	if !info.Here(v) {
		return memory.Namespace{Name: info.Name, ID: info.ID.String(), CreatedAt: timeOf(info.Created), Position: v.Position().String()}, nil
	}
	eff, err := s.opt.Settings.Of(v, info)
	if err != nil {
		return memory.Namespace{}, err
	}
	set := maps.Clone(eff.Raw)
	maps.DeleteFunc(set, func(name, _ string) bool { return settings.Internal(name) }) // shown as Embedder and Space
	e, totals := eff.Info(), v.NamespaceTotals(info.ID)
	return memory.Namespace{Name: info.Name, ID: info.ID.String(), CreatedAt: timeOf(info.Created), Settings: set, Embedder: e, Space: e.Space,
		Records: totals.Records, PendingVectors: totals.Pending, StateHash: totals.Hash.String(), Position: v.Position().String()}, nil
}
