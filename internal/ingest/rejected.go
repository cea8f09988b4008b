package ingest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/storage"
	"mneme/memory"
)

// Rejections is a node's ring of messages that were refused before the log. It
// is outside state: a file of sealed lines, kept for seven days. Each line is
// sealed under the data keys that the message was meant for, and so ends with each
// of the subjects or with the namespace; under the node's key only where there is
// neither.
//
// A refusal costs the same however many there are: beyond rejectedRate they are
// only counted, so that a flood keeps neither a processor nor the disk busy and
// does not push what came before it out of the list.
type Rejections struct {
	fs   vfs.FS
	path string
	keys *keyring.Keyring
	find func(namespace string) (events.ID, bool)
	now  func() time.Time
	ids  *events.IDSource

	counting  sync.Mutex // never held while a file is written
	counts    map[memory.Code]uint64
	notListed uint64
	allowed   float64 // refusals that may be listed now
	at        time.Time

	mu   sync.Mutex
	ring []rejection // oldest first
	// lines are in the file; at 2*rejectedKept it is written anew. So it is after a
	// start: the last line may be torn, and old ones may be there.
	lines int
}

// rejection is a message and the keys that it is sealed under, one after the other.
type rejection struct {
	memory.Rejected
	keys []*keyring.DataKey
}

const (
	rejectedKept  = 1000
	rejectedRate  = 10 // listed a second, after the first rejectedKept
	rejectedAge   = 7 * 24 * time.Hour
	rejectedBody  = 2048 // of a malformed body
	rejectedLabel = "rejected"
)

// OpenRejections reads the ring at path on fsys; nil is the system's. find gives
// the living namespace of a name. Lines that cannot be read are dropped, and so is
// a file that is damaged or whose key is gone: the list is a help, never a reason
// not to start.
func OpenRejections(fsys vfs.FS, path string, keys *keyring.Keyring, find func(namespace string) (events.ID, bool), now func() time.Time) (*Rejections, error) {
	if fsys == nil {
		fsys = vfs.Default
	}
	r := &Rejections{fs: fsys, path: path, keys: keys, find: find, now: now, ids: events.NewIDSource(now, nil),
		counts: map[memory.Code]uint64{}, allowed: rejectedKept, at: now()}
	r.lines = 2 * rejectedKept // the next message writes the file anew, or for the first time
	f, err := fsys.Open(path)
	if errors.Is(err, os.ErrNotExist) || storage.IsCorrupt(err) || errors.Is(err, storage.ErrMissingKey) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open rejected messages: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 64<<10)
	for sc.Scan() {
		if m, ok := r.open(sc.Bytes()); ok {
			r.ring = append(r.ring, m)
		}
	}
	r.trimLocked()
	return r, nil
}

// Reject counts and lists a refused message. Its body says under which keys: the
// reason may quote what is about a subject. It is kept only of malformed ones,
// clipped, and only if it ends with every subject that it names.
func (r *Rejections) Reject(m memory.Rejected) {
	if !r.count(m.Code, true) {
		return
	}
	keys, keepBody := r.keysFor(m.Namespace, m.Body)
	if m.Code != memory.CodeInvalid || m.WellFormed || !keepBody {
		m.Body = ""
	}
	m.Body = m.Body[:min(len(m.Body), rejectedBody)]
	m.Reason = m.Reason[:min(len(m.Reason), rejectedBody)] // a line must stay readable
	r.mu.Lock()
	defer r.mu.Unlock()
	m.ID, m.At = r.ids.New().String(), r.now().UTC()
	r.ring = append(r.ring, rejection{m, keys})
	r.dropOldLocked()
	_ = r.saveLocked(r.ring[len(r.ring)-1]) // the list is a help, never a reason to fail
}

// Count counts a refused message that is not listed. It never waits for the disk.
func (r *Rejections) Count(code memory.Code) { r.count(code, false) }

// count reports whether the message may be listed.
func (r *Rejections) count(code memory.Code, list bool) bool {
	r.counting.Lock()
	defer r.counting.Unlock()
	r.counts[code]++
	if list {
		now := r.now()
		r.allowed = min(rejectedKept, r.allowed+rejectedRate*max(0, now.Sub(r.at).Seconds()))
		r.at = now
		if r.allowed >= 1 {
			r.allowed--
			return true
		}
	}
	r.notListed++
	return false
}

// List returns the newest messages first, and counts by code since the start.
func (r *Rejections) List(limit int) memory.RejectedList {
	out := memory.RejectedList{Rejected: []memory.Rejected{}, Counts: map[string]uint64{}}
	r.counting.Lock()
	for code, n := range r.counts {
		out.Counts[string(code)] = n
	}
	out.NotListed = r.notListed
	r.counting.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trimLocked()
	for i := len(r.ring) - 1; i >= 0 && len(out.Rejected) < limit; i-- {
		out.Rejected = append(out.Rejected, r.ring[i].Rejected)
	}
	return out
}

// DropErased drops the messages whose keys are destroyed from the file; from the
// list they go with the key.
func (r *Rejections) DropErased() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trimLocked()
	if _, err := r.fs.Stat(r.path); len(r.ring) == 0 && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return r.rewriteLocked()
}

// trimLocked drops what has lost a key or is over.
func (r *Rejections) trimLocked() {
	r.ring = slices.DeleteFunc(r.ring, func(m rejection) bool {
		return slices.ContainsFunc(m.keys, func(key *keyring.DataKey) bool {
			_, err := r.keys.KeyByID(key.ID())
			return err != nil
		})
	})
	r.dropOldLocked()
}

// dropOldLocked drops from the front only.
func (r *Rejections) dropOldLocked() {
	oldest := r.now().Add(-rejectedAge)
	for len(r.ring) > 0 && (len(r.ring) > rejectedKept || r.ring[0].At.Before(oldest)) {
		if r.ring[0].At.Before(oldest) {
			r.lines = 2 * rejectedKept // its time is over in the file as well
		}
		r.ring = r.ring[1:]
	}
}

// saveLocked appends a message. It is not synced: whoever sends nonsense would
// make the disk busy, and a crash of the machine may take the newest lines.
func (r *Rejections) saveLocked(m rejection) error {
	if r.lines >= 2*rejectedKept {
		return r.rewriteLocked()
	}
	f, err := r.fs.OpenReadWrite(r.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	end, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(m.seal(), end.Size())
	}
	r.lines++
	return errors.Join(err, f.Close())
}

func (r *Rejections) rewriteLocked() error {
	var all []byte
	for _, m := range r.ring {
		all = append(all, m.seal()...)
	}
	if err := storage.MkdirAll(r.fs, filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	if err := storage.ReplaceFile(r.fs, r.path, all, 0o600); err != nil {
		return err
	}
	r.lines = len(r.ring)
	return nil
}

// seal gives the line of a message: the base64 of
// id 16 ‖ number of keys u8 ‖ each: key id 16 ‖ JSON, sealed under each in turn.
func (m *rejection) seal() []byte {
	sealed, err := json.Marshal(m.Rejected)
	if err != nil {
		return nil
	}
	id, err := events.ParseID(m.ID)
	if err != nil {
		return nil
	}
	head := append(id[:], byte(len(m.keys)))
	for _, key := range m.keys {
		keyID := key.ID()
		head = append(head, keyID[:]...)
		if sealed = key.Seal(nil, keyring.Identity{Event: id}, []byte(rejectedLabel), sealed); sealed == nil {
			return nil // it has just been destroyed
		}
	}
	return append([]byte(base64.StdEncoding.EncodeToString(append(head, sealed...))), '\n')
}

func (r *Rejections) open(line []byte) (m rejection, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(string(line))
	if err != nil || len(raw) < 17 {
		return m, false
	}
	id, n, plain := [16]byte(raw[:16]), int(raw[16]), raw[17:]
	if n == 0 || len(plain) < 16*n {
		return m, false
	}
	for ; n > 0; n, plain = n-1, plain[16:] {
		key, err := r.keys.KeyByID(keyring.KeyID(plain[:16]))
		if err != nil {
			return m, false
		}
		m.keys = append(m.keys, key)
	}
	for _, key := range slices.Backward(m.keys) {
		if plain, err = key.Open(nil, keyring.Identity{Event: id}, []byte(rejectedLabel), plain); err != nil {
			return m, false
		}
	}
	return m, json.Unmarshal(plain, &m.Rejected) == nil
}
