package storage

import (
	"fmt"
	"io"

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

// MergeTable maps the first byte of a key to how operands under it combine.
// Keys without an entry must not be merged: reading one gives ErrMerge.
type MergeTable map[byte]MergeFunc

// AppendMerge is the MergeFunc that concatenates, oldest first.
func AppendMerge(acc, operand []byte) ([]byte, error) { return append(acc, operand...), nil }

// mergerName is stored in each database. The table may gain prefixes under it.
const mergerName = "mneme.merge.1"

func (t MergeTable) merger() *pebble.Merger {
	return &pebble.Merger{
		Name: mergerName,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			if len(key) == 0 || t[key[0]] == nil {
				return nil, fmt.Errorf("%w: no function for key %x", ErrMerge, key)
			}
			m := &operands{fold: t[key[0]]}
			m.add(value)
			return m, nil
		},
	}
}

// operands collects what is to be merged, back to back in one buffer, and folds
// once at the end. Pebble hands them oldest to newest (compaction) or newest to
// oldest (reads); folding at once would cost O(n²) copies in the second case.
type operands struct {
	fold  MergeFunc
	buf   []byte
	ends  []int
	older bool // added newest first
}

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
	if i == 0 {
		return m.buf[:m.ends[0]]
	}
	return m.buf[m.ends[i-1]:m.ends[i]]
}

func (m *operands) Finish(bool) ([]byte, io.Closer, error) {
	acc := make([]byte, 0, len(m.buf))
	var err error
	for i := range m.ends {
		op := m.at(i)
		if m.older {
			op = m.at(len(m.ends) - 1 - i)
		}
		if acc, err = m.fold(acc, op); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrMerge, err)
		}
	}
	return acc, nil, nil
}
