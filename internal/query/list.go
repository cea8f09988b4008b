package query

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// A list cursor is the reference of the event that created the last record of
// the page: u8 version ‖ u64 sequence ‖ u32 index, in base64.
const listCursorVersion = 1

func encodeCursor(at projections.Ref) string {
	b := binary.BigEndian.AppendUint64([]byte{listCursorVersion}, at.Seq)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, at.Index))
}

func decodeCursor(s string) (projections.Ref, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 13 || b[0] != listCursorVersion {
		return projections.Ref{}, memory.Errorf(memory.CodeInvalid, "%q is not a cursor of this list", views.Clip(s))
	}
	return projections.Ref{Seq: binary.BigEndian.Uint64(b[1:]), Index: binary.BigEndian.Uint32(b[9:])}, nil
}

// birth is a living record by the event that created it. Its place in lists
// does not change when it is revised.
type birth struct {
	at     projections.Ref // of its first version
	record events.ID
	part   *views.Partition
	doc    uint32 // of its present version
	row    projections.Doc
}

// births visits the living records of a partition whose first version is among the
// documents from low to below (exclusive), newest first.
func (r *Reader) births(ctx context.Context, p *views.Partition, low, below uint32, allow *views.DocSet, visit func(birth) bool) error {
	return r.view.State.Docs(p.ID, below, func(doc uint32, d projections.Doc) (bool, error) {
		if doc < low || ctx.Err() != nil {
			return false, ctx.Err()
		}
		if d.Version != 1 {
			return true, nil
		}
		b := birth{at: d.At, record: d.Record, part: p, doc: doc, row: d}
		if !d.Living() {
			h, ok, err := r.view.State.Head(r.view.Capability.NamespaceID(), d.Record)
			if err != nil || !ok || !h.Living || !allow.Allows(h.Doc) {
				return err == nil, err
			}
			b.doc = h.Doc
			if b.row, ok, err = r.view.State.Doc(p.ID, h.Doc); err != nil || !ok {
				return err == nil, err
			}
		} else if !allow.Allows(doc) {
			return true, nil
		}
		return visit(b), nil
	})
}

// firstDoc is the first DocID of a partition that lies behind those for which before
// holds: it holds for all up to some document, and for none from there on.
func (r *Reader) firstDoc(p *views.Partition, before func(d *projections.Doc) bool) (uint32, error) {
	lo, hi := uint32(0), p.NextDoc
	for lo < hi {
		mid := lo + (hi-lo)/2
		d, ok, err := r.view.State.Doc(p.ID, mid)
		if err != nil || !ok {
			return 0, errors.Join(err, missing(ok))
		}
		if before(&d) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

func missing(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("a document's row is missing")
}

// List pages through the living records, newest first by creation. A record
// that is revised keeps its place, so pages neither repeat nor pass over
// anything that is there throughout. A page ends early when it holds maxAnswer
// bytes, or where the budget ends. Errors: invalid, also for a budget in which not one
// record fits.
func (r *Reader) List(ctx context.Context, req memory.ListRequest) (memory.RecordList, error) {
	out, err := r.list(ctx, req)
	return out, views.Failed("list", err)
}

func (r *Reader) list(ctx context.Context, req memory.ListRequest) (memory.RecordList, error) {
	out := memory.RecordList{Records: []memory.Record{}, Position: r.view.Position()}
	if err := req.Validate(); err != nil {
		return out, err
	}
	limit := cmp.Or(req.Limit, memory.DefaultPage)
	var before projections.Ref
	if req.Cursor != "" {
		var err error
		if before, err = decodeCursor(req.Cursor); err != nil {
			return out, err
		}
	}
	found, cut, err := r.page(ctx, &req, limit, before)
	if err != nil {
		return out, err
	}
	slices.SortFunc(found, func(a, b birth) int { return compareRef(b.at, a.at) })
	var room *window
	if req.Budget != nil {
		if room, err = newWindow(&req.Fit, memory.RecordList{Records: out.Records, Cursor: encodeCursor(projections.Ref{}), Position: out.Position,
			LeftOff: &memory.LeftOff{Count: limit, Hint: hintList}}); err != nil {
			return out, err
		}
	}
	size := 0
	for i, b := range found {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if len(out.Records) == limit || size >= maxAnswer || b.at.Before(cut) {
			out.Cursor = encodeCursor(found[i-1].at)
			break
		}
		rec, err := r.record(b.record, b.row.Version, b.row.At)
		if errors.Is(err, views.ErrErased) {
			continue
		}
		if err != nil {
			return out, err
		}
		rec.Text, rec.Truncated = req.Text(rec.Text)
		fits, err := room.holds(&rec)
		if err == nil && !fits && len(out.Records) == 0 {
			err = room.errNoRoom()
		}
		if err != nil {
			return out, err
		}
		if !fits {
			out.Cursor = encodeCursor(found[i-1].at)
			out.LeftOff = &memory.LeftOff{Count: ofThePage(found[i:], limit-len(out.Records), cut), Hint: hintList}
			break
		}
		size += answerBytes(&rec)
		out.Records = append(out.Records, rec)
	}
	return out, nil
}

// ofThePage counts those found, newest first, that are of a page which has room for n.
func ofThePage(found []birth, n int, cut projections.Ref) int {
	found = found[:min(n, len(found))]
	if i := slices.IndexFunc(found, func(b birth) bool { return b.at.Before(cut) }); i >= 0 {
		found = found[:i]
	}
	return len(found)
}

// page finds, unordered, the records of the next page and a few more. Where a
// partition was cut short, what lies before cut is for another page.
func (r *Reader) page(ctx context.Context, req *memory.ListRequest, limit int, before projections.Ref) (found []birth, cut projections.Ref, err error) {
	parts, err := r.view.InScope(req.Filter.Scope)
	if err != nil {
		return nil, cut, err
	}
	for i := range parts {
		allow, err := r.view.Allow(parts[i].ID, &req.Filter)
		if err != nil {
			return nil, cut, err
		}
		if allow != nil && allow.Len() == 0 {
			continue
		}
		n, below := 0, parts[i].NextDoc
		if before != (projections.Ref{}) {
			if below, err = r.firstDoc(&parts[i], func(d *projections.Doc) bool { return d.At.Before(before) }); err != nil {
				return nil, cut, err
			}
		}
		if err := r.births(ctx, &parts[i], 0, below, allow, func(b birth) bool {
			found = append(found, b)
			n++
			return n <= limit
		}); err != nil {
			return nil, cut, err
		}
		if last := len(found) - 1; n > limit && cut.Before(found[last].at) {
			cut = found[last].at
		}
	}
	return found, cut, nil
}

func compareRef(a, b projections.Ref) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// Export gives every living record that the reader may see, oldest first by
// creation, in a form that can be imported. An error of yield ends it.
func (r *Reader) Export(ctx context.Context, yield func(memory.ExportLine) error) error {
	sources := make([]oldestFirst, len(r.view.Partitions))
	for i := range sources {
		sources[i] = oldestFirst{r: r, part: &r.view.Partitions[i]}
	}
	for {
		b, ok, err := takeOldest(ctx, sources)
		if err != nil || !ok {
			return views.Failed("export", err)
		}
		env, c, err := r.view.Event(b.row.At)
		if errors.Is(err, views.ErrErased) {
			continue
		}
		if err != nil {
			return views.Failed("export", err)
		}
		if err := yield(memory.ExportLine{Capture: captureOf(env, c), RecordID: b.record.String(), Version: int(b.row.Version),
			Position: r.view.Positions.Of(b.row.At), CreatedAt: timeOf(b.row.SealedAt), Origin: c.Origin, Source: c.Source}); err != nil {
			return err
		}
	}
}

// exportBatch is how many documents of a partition an export looks at before it
// gives their records.
const exportBatch = 256

// oldestFirst gives the living records of a partition by creation. It holds those of
// one batch.
type oldestFirst struct {
	r     *Reader
	part  *views.Partition
	next  uint32  // from this document on nothing has been looked at
	found []birth // still to be given, newest first
}

// fill makes sure that a record is found, unless there is none any more.
func (o *oldestFirst) fill(ctx context.Context) error {
	for len(o.found) == 0 && o.next < o.part.NextDoc {
		low := o.next
		o.next += min(exportBatch, o.part.NextDoc-low)
		if err := o.r.births(ctx, o.part, low, o.next, nil, func(b birth) bool {
			o.found = append(o.found, b)
			return true
		}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// takeOldest takes the record that was created first; there is none at the end.
func takeOldest(ctx context.Context, sources []oldestFirst) (b birth, ok bool, err error) {
	var from *oldestFirst
	for i := range sources {
		if err := sources[i].fill(ctx); err != nil {
			return b, false, err
		}
		last := len(sources[i].found) - 1
		if last >= 0 && (from == nil || sources[i].found[last].at.Before(b.at)) {
			from, b = &sources[i], sources[i].found[last]
		}
	}
	if from == nil {
		return b, false, nil
	}
	from.found = from.found[:len(from.found)-1]
	return b, true, nil
}

// captureOf gives back the capture that made a version, as it was given: sent
// again it is the same request.
func captureOf(env *events.Envelope, c *events.Content) memory.Capture {
	out := memory.Capture{ID: c.ClientID, Agent: env.Agent, Text: c.Text, Kind: env.Kind.Public(), Role: c.Role, URI: c.URI, Tags: c.Tags,
		Conversation: c.Conversation, Subject: c.Subject, Scope: env.Scope.Public(), Importance: c.Importance, Metadata: c.Metadata}
	if c.OccurredSet {
		t := timeOf(env.OccurredAt)
		out.OccurredAt = &t
	}
	for _, id := range c.DerivedFrom {
		out.DerivedFrom = append(out.DerivedFrom, id.String())
	}
	return out
}
