package query

import (
	"context"
	"errors"
	"maps"

	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/internal/settings"
	"mneme/memory"
)

// Namespaces lists the namespaces by name. It tells of them, not of what is in
// them; who may see the list is decided before.
func (s *Service) Namespaces(ctx context.Context) (list []memory.Namespace, err error) {
	v := s.opt.Views.State()
	defer func() { err = views.Failed("namespaces", errors.Join(err, v.Close())) }()
	infos := v.Namespaces()
	list = make([]memory.Namespace, 0, len(infos))
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ns, err := s.namespace(v, info)
		if err != nil {
			return nil, err
		}
		list = append(list, ns)
	}
	return list, nil
}

// Namespace describes one namespace. Errors: invalid, not_found.
func (s *Service) Namespace(ctx context.Context, name string) (ns memory.Namespace, err error) {
	if err := ctx.Err(); err != nil {
		return ns, views.Failed("namespace", err)
	}
	v := s.opt.Views.State()
	defer func() { err = views.Failed("namespace", errors.Join(err, v.Close())) }()
	_, info, err := views.OpenCapability(v, name, "")
	if err != nil {
		return ns, err
	}
	return s.namespace(v, info)
}

func (s *Service) namespace(v *projections.View, info projections.NamespaceInfo) (memory.Namespace, error) {
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
