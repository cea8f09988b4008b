package ingest

import (
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// A client id that was used is answered from what it was used for, for ever:
// whatever became of the record, its sources or its uri since.

// sealAsUsed gives a draft whose client id was used before the key that the
// first use was sealed under, so that their bodies can be compared. It reports
// false where the id was not used. What names no subject and no source is not looked
// for: it is sealed under the namespace's own key, and so was the same request before.
func (a *admission) sealAsUsed(d *draft, clientID string) (bool, error) {
	if clientID == "" || d.content.Subject == "" && len(d.content.DerivedFrom) == 0 {
		return false, nil
	}
	spent, ok, err := a.view.UsedKey(a.ns.ID, a.clientMAC(clientID), d.header.Agent)
	if err != nil || !ok {
		return false, err
	}
	env, _, err := a.view.Envelope(spent.At)
	if err != nil {
		return false, err
	}
	key, err := a.writer.opt.Keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return false, usedForErased(clientID, spent.Record)
	}
	if err != nil {
		return false, err
	}
	d.key = key
	return true, nil
}

func usedForErased(clientID string, record events.ID) error {
	what := "record " + record.String()
	if record == (events.ID{}) {
		what = "a change of the graph"
	}
	return memory.Errorf(memory.CodeGone, "id %q was used for %s, which was erased", clientID, what).WithHint("use a new id")
}

// usedResult is the verdict on a request whose client id was used before.
func (s *sequencer) usedResult(v *projections.View, spent projections.UsedKey, d *draft) (projections.EventResult, error) {
	res := projections.EventResult{Outcome: projections.OutcomeConflict, Record: spent.Record, Position: v.PositionOf(spent.At)}
	env, _, err := v.Envelope(spent.At)
	if err != nil {
		return res, err
	}
	if spent.Body != d.header.Body {
		if _, err := s.keys.KeyByID(env.Key); settings.IsErased(err) && d.clientID() != "" {
			return res, usedForErased(d.clientID(), spent.Record)
		}
		return res, nil
	}
	res.Outcome, res.Version = projections.OutcomeDuplicate, 1
	if env.Type == events.TypeRevised {
		res.Version = env.BaseVersion + 1
	}
	return res, nil
}

// revisedBefore answers a revision whose client id was used before. It is the
// same request if the version made then holds all that it asks for: versions
// made since, and the version it was to build on, no longer matter. The draft
// is nil where the id was not used.
func (a *admission) revisedBefore(record events.ID, as string, rev memory.Revision, clientID string) (*draft, error) {
	if clientID == "" {
		return nil, nil
	}
	spent, ok, err := a.view.UsedKey(a.ns.ID, a.clientMAC(clientID), as)
	if err != nil || !ok {
		return nil, err
	}
	if spent.Record == (events.ID{}) {
		return nil, memory.Errorf(memory.CodeConflict, "id %q was used for a change of the graph", clientID).WithHint("use a new id")
	}
	c, _, env, err := a.openContent(projections.Doc{Record: spent.Record, At: spent.At})
	if err != nil {
		return nil, err
	}
	present := captureOf(c, &env, as)
	applyRevision(&present, rev)
	present.ID = clientID
	d, err := a.revisionOf(&present, c) // sealed as the first one was: see sealAsUsed
	if err != nil {
		return nil, err
	}
	if spent.Record != record || env.Type != events.TypeRevised {
		d.header.Body = events.MAC{} // another request, whatever it says
	}
	d.header.Target, d.header.BaseVersion = record, env.BaseVersion
	return d, nil
}
