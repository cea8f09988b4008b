package query

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// Get opens a living record by its id, by the beginning of it that no other living
// record has which the reader may see, or by its uri (mem://namespace/path, or the
// path alone). version 0 is the present one. Errors: invalid, not_found, also for what
// the reader may not see, gone.
func (r *Reader) Get(ctx context.Context, idOrURI string, version int) (memory.Record, error) {
	if version < 0 {
		return memory.Record{}, memory.Errorf(memory.CodeInvalid, "version %d is negative", version)
	}
	if err := ctx.Err(); err != nil {
		return memory.Record{}, views.Failed("get", err)
	}
	id, h, p, err := r.find(ctx, idOrURI)
	if err != nil {
		return memory.Record{}, views.Failed("get", err)
	}
	if p != nil && h.Erased {
		return memory.Record{}, errGone(id)
	}
	if p == nil || !h.Living {
		return memory.Record{}, noRecord(idOrURI)
	}
	at, err := r.versionAt(id, h, uint32(version))
	if err != nil {
		return memory.Record{}, views.Failed("get", err)
	}
	if version == 0 {
		version = int(h.Versions)
	}
	rec, err := r.record(id, uint32(version), at)
	if errors.Is(err, views.ErrErased) {
		return memory.Record{}, errGone(id)
	}
	return rec, views.Failed("get", err)
}

func errGone(id events.ID) error {
	return memory.Errorf(memory.CodeGone, "record %s was erased", id)
}

// find resolves an id, a uri or the beginning of an id in the open partitions; the
// partition is nil if nothing is there.
func (r *Reader) find(ctx context.Context, idOrURI string) (events.ID, projections.Head, *views.Partition, error) {
	name := idOrURI
	path, isURI := strings.CutPrefix(name, "mem://"+r.view.Capability.Namespace()+"/")
	if isURI || !memory.ValidULID(name) {
		if err := memory.CheckURIPath(name); err != nil {
			return events.ID{}, projections.Head{}, nil, err
		}
		full, err := memory.FullURI(r.view.Capability.Namespace(), name)
		if err != nil || full == "" {
			return events.ID{}, projections.Head{}, nil, noRecord(name)
		}
		for i := range r.view.Partitions {
			id, ok, err := r.view.State.URI(r.view.Partitions[i].ID, memory.URIPath(full))
			if err != nil {
				return id, projections.Head{}, nil, err
			}
			if ok {
				h, p, err := r.view.Head(id)
				return id, h, p, err
			}
		}
		if beginning, ok := memory.IDBeginning(name); ok && !isURI {
			id, err := r.begun(ctx, beginning)
			if err != nil || id == zeroID {
				return id, projections.Head{}, nil, err
			}
			h, p, err := r.view.Head(id)
			return id, h, p, err
		}
		name = path // a record without a uri is named by its id
	}
	id, err := events.ParseID(name)
	if err != nil {
		return id, projections.Head{}, nil, nil
	}
	h, p, err := r.view.Head(id)
	return id, h, p, err
}

// versionAt finds the event that made a version; 0 is the present one.
func (r *Reader) versionAt(id events.ID, h projections.Head, version uint32) (projections.Ref, error) {
	if version == 0 || version == h.Versions {
		d, ok, err := r.view.State.Doc(h.Partition, h.Doc)
		if err == nil && !ok {
			err = events.ErrMalformed
		}
		return d.At, err
	}
	history, err := r.view.State.History(r.view.Capability.NamespaceID(), id)
	if err != nil {
		return projections.Ref{}, err
	}
	for _, e := range history {
		if e.Version == version {
			return e.At, nil
		}
	}
	return projections.Ref{}, memory.Errorf(memory.CodeNotFound, "record %s has no version %d, the newest is %d", id, version, h.Versions)
}

// History lists what happened to a record, oldest first, also of a forgotten
// one, whose versions are marked. Of an erased version only that it was there
// is said. It ends with the newest; of older ones that would make it too long, only
// their number is told. Errors: not_found.
func (r *Reader) History(ctx context.Context, idOrURI string) (memory.History, error) {
	id, h, p, err := r.find(ctx, idOrURI)
	if err != nil {
		return memory.History{}, views.Failed("history", err)
	}
	if p == nil {
		return memory.History{}, noRecord(idOrURI)
	}
	entries, err := r.view.State.History(r.view.Capability.NamespaceID(), id)
	if err != nil {
		return memory.History{}, views.Failed("history", err)
	}
	out := memory.History{RecordID: id.String(), Versions: []memory.Record{}, Events: []memory.HistoryEvent{}, Position: r.view.Position()}
	size := 0
	for i, e := range slices.Backward(entries) {
		if size >= maxAnswer || len(out.Events) == maxHistory {
			out.Omitted = i + 1
			break
		}
		if err := ctx.Err(); err != nil {
			return memory.History{}, views.Failed("history", err)
		}
		env, _, err := r.view.State.Envelope(e.At)
		if err != nil {
			return memory.History{}, views.Failed("history", err)
		}
		out.Events = append(out.Events, memory.HistoryEvent{Type: env.Type.String(), EventID: env.Event.String(), Agent: env.Agent,
			At: timeOf(env.SealedAt), Version: int(e.Version), Position: r.view.Positions.Of(e.At)})
		if e.Version == 0 {
			continue
		}
		rec, err := r.record(id, e.Version, e.At)
		if err != nil && !errors.Is(err, views.ErrErased) {
			return memory.History{}, views.Failed("history", err)
		}
		rec.Forgotten = !h.Living
		size += answerBytes(&rec)
		out.Versions = append(out.Versions, rec)
	}
	slices.Reverse(out.Events)
	slices.Reverse(out.Versions)
	return out, nil
}
