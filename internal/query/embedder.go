package query

import (
	"context"
	"errors"
	"time"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/internal/settings"
	"mneme/memory"
)

// Embedder tells which vector spaces a namespace has and what is in them; how a
// building goes beyond its counts is known to who builds. Errors: invalid,
// not_found.
func (s *Service) Embedder(ctx context.Context, name string) (st memory.EmbedderStatus, ns events.ID, err error) {
	if err := ctx.Err(); err != nil {
		return st, ns, views.Failed("embedder", err)
	}
	v, err := s.opt.Views.State()
	if err != nil {
		return st, ns, err
	}
	defer func() { err = views.Failed("embedder", errors.Join(err, v.Close())) }()
	_, info, err := views.OpenCapability(v, name, "")
	if err != nil {
		return st, ns, err
	}
	set, err := s.opt.Settings.Of(v, info)
	if err != nil {
		return st, ns, err
	}
	totals := v.NamespaceTotals(info.ID)
	st = memory.EmbedderStatus{Namespace: info.Name, State: memory.EmbedderReady, Embedder: set.Info(), Records: totals.Records,
		Pending: totals.Pending, Kept: []memory.SpaceKept{}, LastSwitch: set.Compared, Position: v.Position().String()}
	if st.Vectors, err = v.SpaceRecords(info.ID, set.SpaceKey()); err != nil {
		return st, ns, err
	}
	if set.IsBuilding() {
		b := &memory.SpaceBuilding{Embedder: settings.InfoOf(set.Next), Phase: memory.PhaseFilling, Total: totals.Records}
		if b.Done, err = v.SpaceRecords(info.ID, settings.KeyOf(set.Next)); err != nil {
			return st, ns, err
		}
		st.State, st.Building = memory.EmbedderBuilding, b
	}
	for _, k := range set.Kept {
		kept := memory.SpaceKept{Embedder: settings.InfoOf(k.Space), Until: time.Unix(0, k.Since).Add(set.KeepOld).UTC()}
		if kept.Records, err = v.SpaceRecords(info.ID, settings.KeyOf(k.Space)); err != nil {
			return st, ns, err
		}
		st.Kept = append(st.Kept, kept)
	}
	return st, info.ID, nil
}
