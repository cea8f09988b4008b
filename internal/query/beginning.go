package query

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// maxCandidates is how many records an error names that share the beginning of an id.
const maxCandidates = 8

// sealingDelay is how far the time in a record's id may lie from when its event was
// sealed: a leader's clock may be a minute behind the log's, and events wait for their turn.
const sealingDelay = 2 * time.Minute

// maxAlike is how many documents are looked through for a beginning.
const maxAlike = 1 << 18

// begun finds the living record whose id begins with what is given, in upper case; zero
// if there is none. Ids begin with a time, so those documents are looked through that
// were sealed about then: of the open partitions only, so that nothing else shows in the
// answer or in how long it takes. Errors: invalid, if it begins several ids.
func (r *Reader) begun(ctx context.Context, beginning string) (events.ID, error) {
	low, high, err := idRange(beginning)
	if err != nil {
		return zeroID, err
	}
	from, to := sealedAbout(low, -sealingDelay), sealedAbout(high, sealingDelay)
	var found []events.ID
	looked := uint32(0)
	for i := range r.view.Partitions {
		p := &r.view.Partitions[i]
		first, err := r.firstDoc(p, func(d *projections.Doc) bool { return d.SealedAt < from })
		if err != nil {
			return zeroID, err
		}
		below, err := r.firstDoc(p, func(d *projections.Doc) bool { return d.SealedAt <= to })
		if err != nil {
			return zeroID, err
		}
		if looked += below - first; looked > maxAlike {
			return zeroID, memory.Errorf(memory.CodeInvalid, "%q may stand for any of %d memories of that time, too many to look through", beginning, looked).
				WithHint("use the whole id")
		}
		if err := r.view.State.Docs(p.ID, below, func(doc uint32, d projections.Doc) (bool, error) {
			if doc < first || ctx.Err() != nil {
				return false, ctx.Err()
			}
			if d.Version != 1 || bytes.Compare(d.Record[:], low[:]) < 0 || bytes.Compare(d.Record[:], high[:]) > 0 {
				return true, nil
			}
			if !d.Living() { // revised, or gone
				h, ok, err := r.view.State.Head(p.Namespace, d.Record)
				if err != nil || !ok || !h.Living {
					return err == nil, err
				}
			}
			found = append(found, d.Record)
			return len(found) <= maxCandidates, nil
		}); err != nil {
			return zeroID, err
		}
	}
	switch len(found) {
	case 0:
		return zeroID, nil
	case 1:
		return found[0], nil
	}
	return zeroID, errSeveral(beginning, found)
}

// idRange gives the first and the last id with a beginning.
func idRange(beginning string) (low, high events.ID, err error) {
	rest := len(zeroID.String()) - len(beginning)
	if low, err = events.ParseID(beginning + strings.Repeat("0", rest)); err == nil {
		high, err = events.ParseID(beginning + strings.Repeat("Z", rest))
	}
	return low, high, err
}

// sealedAbout is the time of an id, moved, as nanoseconds.
func sealedAbout(id events.ID, by time.Duration) int64 {
	const most = (math.MaxInt64 - int64(sealingDelay)) / int64(time.Millisecond)
	return min(int64(id.Time()), most)*int64(time.Millisecond) + int64(by)
}

func errSeveral(beginning string, found []events.ID) error {
	slices.SortFunc(found, func(a, b events.ID) int { return bytes.Compare(a[:], b[:]) })
	number, names := fmt.Sprint(len(found)), make([]string, 0, maxCandidates)
	if len(found) > maxCandidates {
		number = fmt.Sprintf("more than %d", maxCandidates)
	}
	for _, id := range found[:min(len(found), maxCandidates)] {
		names = append(names, id.String())
	}
	return memory.Errorf(memory.CodeInvalid, "%q begins the ids of %s memories: %s", beginning, number, strings.Join(names, ", ")).
		WithHint("give more characters of the one that you mean")
}
