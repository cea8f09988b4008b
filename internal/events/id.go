package events

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID is a ULID: 48 bits of milliseconds, 80 bits that make it unique.
type ID = ulid.ULID

// MAC is a truncated HMAC-SHA-256 that stands for a value nobody may read.
type MAC [16]byte

// Hash is a SHA-256 digest.
type Hash [32]byte

func (m MAC) String() string  { return hex.EncodeToString(m[:]) }
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether the MAC is absent.
func (m MAC) IsZero() bool { return m == MAC{} }

// Labels of the two keyed hashes that a header carries, so that equal values
// under different names differ. LabelClient is under the namespace's index key,
// LabelBody under the data key that the payload is sealed under.
const (
	LabelClient = "client"
	LabelBody   = "body"
)

// TruncateMAC shortens a full HMAC to the form that headers carry.
func TruncateMAC(full [32]byte) MAC { return MAC(full[:16]) }

// ParseID parses the 26 characters of an ID.
func ParseID(s string) (ID, error) {
	id, err := ulid.ParseStrict(s)
	if err != nil || id.String() != s {
		return ID{}, fmt.Errorf("id %.30q: %w", s, ErrMalformed)
	}
	return id, nil
}

// IDSource makes event ids from a clock and a source of randomness. It is safe
// for concurrent use.
type IDSource struct {
	now  func() time.Time
	mu   sync.Mutex
	rand io.Reader
	buf  [640]byte // one read of randomness serves 64 ids
	left int
}

// NewIDSource returns a source; nil random means crypto/rand.
func NewIDSource(now func() time.Time, random io.Reader) *IDSource {
	if random == nil {
		random = rand.Reader
	}
	return &IDSource{now: now, rand: random}
}

// New returns a fresh id. It panics only if the system has no randomness.
func (s *IDSource) New() ID {
	ms := ulid.Timestamp(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		if _, err := io.ReadFull(s.rand, s.buf[:]); err != nil {
			panic(fmt.Sprintf("no randomness: %v", err))
		}
		s.left = len(s.buf)
	}
	var id ID
	if err := id.SetTime(ms); err != nil {
		_ = id.SetTime(ulid.MaxTime())
	}
	copy(id[6:], s.buf[s.left-10:s.left])
	s.left -= 10
	return id
}

// RecordID is the identity of the memory that an event creates: a function of
// the event's id, so that it is known as soon as the event is accepted. It
// keeps the event's time and so sorts with it.
func RecordID(event ID) ID { return derivedID("record", event) }

// CausedID is the id of an event of the given kind that follows from another
// one: the same cause and kind give the same id, so a repeat is a duplicate.
func CausedID(kind string, cause ID) ID { return derivedID("caused:"+kind, cause) }

func derivedID(domain string, from ID) ID {
	h := sha256.New()
	h.Write([]byte(domain))
	h.Write([]byte{0})
	h.Write(from[:])
	var id ID
	copy(id[:], from[:6])
	copy(id[6:], h.Sum(nil))
	return id
}
