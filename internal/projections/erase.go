package projections

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/index/text"
	"mneme/internal/storage"
	"slices"
)

// What erasing needs of a state. The fold of an event that destroys keys deletes
// rows; here they leave the files. The order is: AwaitViews, Purge, Renew.

var metaErasedKey = []byte{prefixMeta, 'e'}

// Erased is the sequence of the last event that deleted rows for good; 0 = there
// was none.
func (v *View) Erased() (uint64, error) {
	raw, err := v.get(metaErasedKey)
	if err != nil || raw == nil {
		return 0, err
	}
	if len(raw) != 8 {
		return 0, fmt.Errorf("erased row: %w", errErasedRow)
	}
	return binary.BigEndian.Uint64(raw), nil
}

var errErasedRow = errors.New("not a sequence")

// AwaitViews returns when every view that is open now has been closed. What they
// see stays in the files.
func (s *State) AwaitViews(ctx context.Context) error {
	s.mu.RLock()
	before := s.opened
	s.mu.RUnlock()
	for {
		s.mu.RLock()
		open, closed := false, s.viewClosed
		for _, n := range s.views {
			open = open || n <= before
		}
		s.mu.RUnlock()
		if !open {
			return nil
		}
		select {
		case <-closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Purge returns when no table of the state holds a row that was deleted before
// the call, nor what rows that versions share held before they were erased from
// the partitions parts. The log's frames and envelopes, the largest part, and the audit rows lie
// outside: no event deletes any. No view may be open that was opened before they were deleted.
func (s *State) Purge(ctx context.Context, parts ...uint32) error {
	var spans []pebble.KeyRange
	for _, part := range parts {
		for _, span := range append(text.Spans(part), [2][]byte{bitmapPrefix(part, ""), storage.PrefixEnd(bitmapPrefix(part, ""))}) {
			spans = append(spans, pebble.KeyRange{Start: span[0], End: span[1]})
		}
	}
	g := s.use()
	defer s.unuse(g)
	if err := g.db.PurgeDeleted(ctx, []byte{prefixEpoch}, []byte{prefixAudit}, spans...); err != nil {
		return fmt.Errorf("purge state: %w", err)
	}
	return nil
}

// Generation names the tables that the state has now: another name says that others
// have taken their place, as a restored snapshot does.
func (s *State) Generation() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gen.name
}

// Generation names the tables that the view reads, as State.Generation does.
func (v *View) Generation() string { return v.gen.name }

// Renew puts a copy of the state with the same rows in its place: the tables are
// shared, everything else (write-ahead logs, manifests, tables that Pebble has not
// removed yet) begins anew, and the former folder goes with what it holds. It
// returns a function that waits until it has gone, which takes as long as a view
// of it is open. Renew is called as Swap is.
func (s *State) Renew() (gone func(context.Context) error, err error) {
	name, err := nextName(s.opt.FS, s.opt.Dir)
	if err != nil {
		return nil, err
	}
	dir := s.opt.FS.PathJoin(s.opt.Dir, name)
	s.mu.RLock()
	old := s.gen
	s.mu.RUnlock()
	if err := old.db.Flush(); err != nil { // the copy needs no log then
		return nil, err
	}
	if err := old.db.Checkpoint(dir); err != nil {
		return nil, err
	}
	if err := s.swapTo(name); err != nil {
		return nil, errors.Join(err, s.opt.FS.RemoveAll(dir))
	}
	if err := s.gen.db.DropFormerManifests(); err != nil {
		return nil, err
	}
	return s.dropFormer, nil
}

// dropFormer waits until nobody reads a generation that has been replaced, and
// removes what is left of it. It leaves a sibling alone, which may be under way.
func (s *State) dropFormer(ctx context.Context) error {
	s.mu.RLock()
	former := slices.Clone(s.former)
	s.mu.RUnlock()
	for _, g := range former {
		select {
		case <-g.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.removeFormer(g); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) removeFormer(g *generation) error {
	if err := s.opt.FS.RemoveAll(s.opt.FS.PathJoin(s.opt.Dir, g.name)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.former = slices.DeleteFunc(s.former, func(f *generation) bool { return f == g })
	return nil
}
