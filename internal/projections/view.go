package projections

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
)

// View is a consistent read of the state at one position. It owns what it reads:
// the rows, and what of them is kept in memory. It is safe for concurrent use and
// must be closed. Each projection has its own reads.
type View struct {
	state *State
	gen   *generation
	*published
	logReads
	directoryReads
	homeReads
	partitionReads
	recordReads
	attributeReads
	auditReads
	dataKeyReads
	vectorReads
	graphReads
	readLogReads
}

// View opens a view of the present state. It reads nothing.
func (s *State) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, p := s.gen, s.gen.hold()
	g.refs++
	v := &View{state: s, gen: g, published: p, logReads: logReads{p}, directoryReads: directoryReads{p}, homeReads: homeReads{p},
		partitionReads: partitionReads{p}, recordReads: recordReads{p}, attributeReads: attributeReads{p}, auditReads: auditReads{p}, dataKeyReads: dataKeyReads{p}, vectorReads: vectorReads{p},
		graphReads: graphReads{p}, readLogReads: readLogReads{p}}
	s.opened++
	s.views[v] = s.opened
	return v
}

// Close releases the view.
func (v *View) Close() error {
	v.state.mu.Lock()
	err := v.published.release()
	delete(v.state.views, v)
	closed := v.state.viewClosed
	v.state.viewClosed = make(chan struct{})
	v.state.mu.Unlock()
	close(closed)
	v.state.unuse(v.gen)
	return err
}

// use keeps the present generation open, also if another one takes its place, until
// unuse. It holds no rows, unlike a view.
func (s *State) use() *generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen.refs++
	return s.gen
}

// unuse ends what use, or a view, began.
func (s *State) unuse(g *generation) {
	s.mu.Lock()
	g.refs--
	retire := g.stale && g.refs == 0
	s.mu.Unlock()
	if retire {
		s.retire(g)
	}
}

// Cursor is where the view stands.
func (v *View) Cursor() Cursor { return v.cursor }

// Position is the view's position.
func (v *View) Position() events.Position { return v.cursor.Position() }

// Reader gives index packages the rows.
func (v *View) Reader() pebble.Reader { return v.snap }

// get reads a row; nil when it is not there.
func (p *published) get(key []byte) ([]byte, error) { return getRow(p.snap, key) }

// walk visits the rows from a key up to another, which is not among them, in order or backwards,
// until visit returns false. Key and value are valid during the call only.
func (p *published) walk(lower, upper []byte, backwards bool, visit func(key, value []byte) (bool, error)) error {
	it, err := p.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan rows %#x: %w", lower[0], err)
	}
	first, next := it.First, it.Next
	if backwards {
		first, next = it.Last, it.Prev
	}
	for more := first(); more; more = more && next() {
		value, err := it.ValueAndErr()
		if err == nil {
			more, err = visit(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}
