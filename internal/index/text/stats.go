package text

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// A statistics value is a row of counters:
//
//	04 | documents 8 | tail 8 | next id 8 | tail's bytes 8 | length of field 0 8 | length of field 1 8 | …
//
// A value with fewer counters counts zero for the others. tail is where the
// documents begin that have no postings yet, and tail's bytes how many they had in
// clear, also those that were erased since; the next new term gets next id.
const (
	statsVersion = 0x04
	lengthsAt    = 4 // the first counter of a length
	maxCounters  = lengthsAt + 256
)

// counters are those of a partition that the Writer needs.
type counters struct {
	start  uint32 // documents below have postings
	nextID uint32 // of the next new term
	size   uint64 // bytes in clear of the documents from start on
}

// Stats are the counters of one or more partitions: documents added and not
// removed, and the sums of their lengths.
type Stats struct {
	Docs   uint64
	Length [NumFields]uint64
}

// Add adds another partition's counters.
func (s *Stats) Add(o Stats) {
	s.Docs += o.Docs
	for f := range s.Length {
		s.Length[f] += o.Length[f]
	}
}

func (s *Stats) addDoc(lengths [NumFields]uint32) {
	s.Docs++
	for f, n := range lengths {
		s.Length[f] += uint64(n)
	}
}

func (s *Stats) dropDoc(lengths [NumFields]uint32) {
	s.Docs--
	for f, n := range lengths {
		s.Length[f] -= uint64(n)
	}
}

func appendStats(dst []byte, s Stats, c counters) []byte {
	dst = append(dst, statsVersion)
	dst = binary.BigEndian.AppendUint64(dst, s.Docs)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.start))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.nextID))
	dst = binary.BigEndian.AppendUint64(dst, c.size)
	for _, n := range s.Length {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return dst
}

func checkStats(v []byte) error {
	if len(v) < 9 || v[0] != statsVersion || (len(v)-1)%8 != 0 || len(v) > 1+8*maxCounters {
		return fmt.Errorf("%w: statistics row of %d bytes", ErrCorrupt, len(v))
	}
	return nil
}

func decodeStats(v []byte) (s Stats, c counters, err error) {
	if err := checkStats(v); err != nil {
		return s, c, err
	}
	for i := 0; 1+8*i < len(v); i++ {
		n := binary.BigEndian.Uint64(v[1+8*i:])
		switch {
		case int64(n) < 0:
			return s, c, fmt.Errorf("%w: negative counter %d", ErrCorrupt, i)
		case i == 0:
			s.Docs = n
		case i == 1 && n <= math.MaxUint32:
			c.start = uint32(n)
		case i == 2 && n <= maxTermID+1:
			c.nextID = uint32(n)
		case i == 3:
			c.size = n
		case i >= lengthsAt && i-lengthsAt < NumFields:
			s.Length[i-lengthsAt] = n
		case n != 0:
			return s, c, fmt.Errorf("%w: counter %d is %d", ErrCorrupt, i, n)
		}
	}
	return s, c, nil
}

// ReadStats reads a partition's counters, zero for an unknown one. Errors:
// ErrCorrupt, the database's.
func ReadStats(r pebble.Reader, partition uint32) (Stats, error) {
	s, _, err := readStats(r, partition)
	return s, err
}

func readStats(r pebble.Reader, partition uint32) (s Stats, c counters, err error) {
	err = view(r, appendPartition(nil, PrefixStatistics, partition), func(v []byte) (err error) {
		s, c, err = decodeStats(v)
		return err
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Stats{}, counters{}, fmt.Errorf("read statistics of partition %d: %w", partition, err)
	}
	return s, c, nil
}
