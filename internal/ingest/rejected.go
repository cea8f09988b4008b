package ingest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
// sealed under the data key that the message was meant for, and so dies with the
// subject or the namespace; under the node's key only where there is neither.
type Rejections struct {
	fs   vfs.FS
	path string
	keys *keyring.Keyring
	find func(namespace string) (events.ID, bool)
	now  func() time.Time
	ids  *events.IDSource

	mu     sync.Mutex
	ring   []rejection // oldest first
	counts map[string]uint64
	// lines are in the file; at 2*rejectedKept it is written anew. So it is after a
	// start: the last line may be torn, and old ones may be there.
	lines int
}

// rejection is a message and the key that it is sealed under.
type rejection struct {
	memory.Rejected
	key *keyring.DataKey
}

const (
	rejectedKept  = 1000
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
	r := &Rejections{fs: fsys, path: path, keys: keys, find: find, now: now, ids: events.NewIDSource(now, nil), counts: map[string]uint64{}}
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

// Reject counts and lists a refused message. The body is kept only of malformed
// ones, clipped.
func (r *Rejections) Reject(m memory.Rejected) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.ID, m.At = r.ids.New().String(), r.now().UTC()
	key := r.keyFor(m.Namespace, m.Body)
	if m.Code != memory.CodeInvalid {
		m.Body = ""
	}
	m.Body = m.Body[:min(len(m.Body), rejectedBody)]
	m.Reason = m.Reason[:min(len(m.Reason), rejectedBody)] // a line must stay readable
	r.counts[string(m.Code)]++
	r.ring = append(r.ring, rejection{m, key})
	r.trimLocked()
	_ = r.saveLocked(r.ring[len(r.ring)-1]) // the list is a help, never a reason to fail
}

// namesSubject finds the subject that a body names, well-formed or not.
var namesSubject = regexp.MustCompile(`"subject"\s*:\s*"([^"\\]+)"`)

// keyFor is the key of the subject that a body names, if there is such a subject,
// else of the namespace.
func (r *Rejections) keyFor(namespace, body string) *keyring.DataKey {
	id, ok := r.find(namespace)
	if !ok {
		return r.keys.Node()
	}
	if m := namesSubject.FindStringSubmatch(body); m != nil {
		if key, err := r.keys.DataKey(id, m[1]); err == nil {
			return key
		}
	}
	if key, err := r.keys.DataKey(id, ""); err == nil {
		return key
	}
	return r.keys.Node()
}

// List returns the newest messages first, and counts by code since the start.
func (r *Rejections) List(limit int) memory.RejectedList {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trimLocked()
	out := memory.RejectedList{Rejected: []memory.Rejected{}, Counts: map[string]uint64{}}
	for i := len(r.ring) - 1; i >= 0 && len(out.Rejected) < limit; i-- {
		out.Rejected = append(out.Rejected, r.ring[i].Rejected)
	}
	for k, v := range r.counts {
		out.Counts[k] = v
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

func (r *Rejections) trimLocked() {
	r.ring = slices.DeleteFunc(r.ring, func(m rejection) bool {
		_, err := r.keys.KeyByID(m.key.ID())
		return err != nil
	})
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

// seal gives the line of a message: the base64 of id 16 ‖ key id 16 ‖ sealed JSON.
func (m *rejection) seal() []byte {
	plain, err := json.Marshal(m.Rejected)
	if err != nil {
		return nil
	}
	id, err := events.ParseID(m.ID)
	if err != nil {
		return nil
	}
	key := m.key.ID()
	sealed := m.key.Seal(append(id[:], key[:]...), keyring.Identity{Event: id}, []byte(rejectedLabel), plain)
	if sealed == nil {
		return nil // its key has just been destroyed
	}
	return append([]byte(base64.StdEncoding.EncodeToString(sealed)), '\n')
}

func (r *Rejections) open(line []byte) (m rejection, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(string(line))
	if err != nil || len(raw) < 32 {
		return m, false
	}
	if m.key, err = r.keys.KeyByID(keyring.KeyID(raw[16:32])); err != nil {
		return m, false
	}
	plain, err := m.key.Open(nil, keyring.Identity{Event: [16]byte(raw[:16])}, []byte(rejectedLabel), raw[32:])
	if err != nil {
		return m, false
	}
	return m, json.Unmarshal(plain, &m.Rejected) == nil
}
