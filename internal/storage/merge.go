package storage

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// MergeFunc adds one operand, the next newer one, to acc and returns the result;
// acc is nil or empty for the oldest. It may append to acc or write into it, and
// must not keep or change operand.
//
// It must be associative in the sense that a result may stand as an operand:
// f(f(f(nil,a),b),c) = f(f(nil,a), f(f(nil,b),c)). Pebble combines any
// neighbours, in any grouping, at any time. An error makes the key unreadable.
type MergeFunc func(acc, operand []byte) ([]byte, error)

// Merge says how the operands of one kind of key combine.
type Merge struct {
	Fold MergeFunc // nil: concatenation, oldest first
	// Pack rewrites a merged value that is to be stored: compactions call it,
	// reads do not. What it returns means the same, is shorter or quicker to
	// read, and may stand as an operand. It may write into value. nil: as it is.
	Pack func(value []byte) ([]byte, error)
}

// MergeTable maps the first byte of a key to how operands under it combine.
// Keys without an entry must not be merged: reading one gives ErrMerge.
type MergeTable map[byte]Merge

// mergerName is stored in each database. The table may gain prefixes under it.
const mergerName = "mneme.merge.1"

func (t MergeTable) merger() *pebble.Merger {
	pool := &sync.Pool{New: func() any { return new(operands) }}
	return &pebble.Merger{
		Name: mergerName,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			if len(key) == 0 {
				return nil, fmt.Errorf("%w: empty key", ErrMerge)
			}
			how, ok := t[key[0]]
			if !ok {
				return nil, fmt.Errorf("%w: no function for key %x", ErrMerge, key)
			}
			m := pool.Get().(*operands)
			*m = operands{how: how, pool: pool, buf: m.buf[:0], acc: m.acc[:0], ends: m.ends[:0]}
			m.add(value)
			return m, nil
		},
	}
}

// operands collects what is to be merged, back to back in one buffer, and folds
// once at the end. Pebble hands them oldest to newest or newest to oldest; folding
// at once would cost O(n²) copies in the second case. The memory of a result is
// used again when Pebble closes it.
type operands struct {
	how   Merge
	pool  *sync.Pool
	buf   []byte
	acc   []byte
	ends  []int
	older bool // added newest first
}

// Results larger than this leave their memory to the collector.
const keepMerged = 1 << 20

func (m *operands) add(v []byte) {
	m.buf = append(m.buf, v...)
	m.ends = append(m.ends, len(m.buf))
}

func (m *operands) MergeNewer(value []byte) error {
	m.add(value)
	return nil
}

func (m *operands) MergeOlder(value []byte) error {
	m.older = true
	m.add(value)
	return nil
}

func (m *operands) at(i int) []byte {
	if m.older {
		i = len(m.ends) - 1 - i
	}
	if i == 0 {
		return m.buf[:m.ends[0]]
	}
	return m.buf[m.ends[i-1]:m.ends[i]]
}

// Finish gives the merged value. Pebble says true to readers, and to a compaction
// only where the oldest operand was a plain value.
func (m *operands) Finish(includesBase bool) ([]byte, io.Closer, error) {
	v, err := m.merged()
	if err == nil && !includesBase && m.how.Pack != nil {
		v, err = m.how.Pack(v)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMerge, err)
	}
	return v, m, nil
}

func (m *operands) merged() (v []byte, err error) {
	if m.how.Fold == nil && (len(m.ends) == 1 || !m.older) {
		return m.buf, nil
	}
	m.acc = slices.Grow(m.acc[:0], len(m.buf))
	for i := range m.ends {
		if m.how.Fold == nil {
			m.acc = append(m.acc, m.at(i)...)
		} else if m.acc, err = m.how.Fold(m.acc, m.at(i)); err != nil {
			return nil, err
		}
	}
	return m.acc, nil
}

// Close takes back the memory of the value that Finish gave.
func (m *operands) Close() error {
	if pool := m.pool; pool != nil && cap(m.buf)+cap(m.acc) <= keepMerged {
		m.pool = nil // once
		pool.Put(m)
	}
	return nil
}
