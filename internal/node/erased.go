package node

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"mneme/internal/events"
	"mneme/internal/storage"
)

const erasedFormat = 4

// erasedFile is erased.json: through which sequence of each shard a plan has covered what
// was erased. It may be lost: then the plan runs once more.
type erasedFile struct {
	Format int `json:"format"`
	// StorageKey is the id of the storage key that the last plan made.
	StorageKey uint32        `json:"storage_key,omitempty"`
	Shards     []erasedShard `json:"shards"` // by number
}

// erasedShard is how far a plan has come in one shard.
type erasedShard struct {
	Through uint64 `json:"through"`
	// Frame is the hash of the log's message at Through.
	Frame string `json:"frame,omitempty"`
	// State names the tables that the plan left. Others, from a snapshot of another
	// node or a rebuild, may hold what was erased.
	State string `json:"state,omitempty"`
}

func (f *erasedFile) of(shard uint16) erasedShard {
	if int(shard) < len(f.Shards) {
		return f.Shards[shard]
	}
	return erasedShard{}
}

func (f *erasedFile) set(shard uint16, to erasedShard) {
	for len(f.Shards) <= int(shard) {
		f.Shards = append(f.Shards, erasedShard{})
	}
	f.Shards[shard] = to
}

// readErased reads erased.json; a zero value if there is none that says anything.
func (d *dataDir) readErased() (erasedFile, error) {
	var f erasedFile
	b, err := storage.ReadFile(d.fs, d.erased())
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if json.Unmarshal(b, &f) != nil || f.Format != erasedFormat { // an erasure may be repeated
		return erasedFile{}, nil
	}
	return f, nil
}

func (d *dataDir) writeErased(f erasedFile) error {
	f.Format = erasedFormat
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return storage.ReplaceFile(d.fs, d.erased(), append(b, '\n'), 0o600)
}

// debt is what the shards that owe something owe.
type debt []owes

// owes is what one shard owes: to take out of its files what was erased up to a sequence.
type owes struct {
	of      *served
	through uint64
	purged  string // the tables without what was deleted, once there are such
}

func (o owes) String() string { return fmt.Sprintf("%d of shard %d", o.through, o.of.id) }

// owed is what is owed, nil if plans have covered all that was erased.
func (e *eraser) owed() (debt, error) {
	var out debt
	for _, s := range e.n.served {
		done, err := e.done(s)
		if err != nil {
			return nil, err
		}
		v := s.state.View()
		last, err := v.Erased()
		if err = errors.Join(err, v.Close()); err != nil {
			return nil, err
		}
		if last > done {
			out = append(out, owes{of: s, through: last})
		}
	}
	return out, nil
}

// done is through which sequence a plan has covered what was erased in a shard. A plan in
// another log, from before the storage key of today, or of other tables than the state
// has, counts for nothing: then older folders were put back, or others, beside
// erased.json, or a snapshot or a rebuilt state took the state's place. It is forgotten at
// once, for log and keys grow, and might come to fit what it says.
func (e *eraser) done(s *served) (uint64, error) {
	f, err := e.n.dir.readErased()
	if err != nil {
		return 0, err
	}
	was := f.of(s.id)
	if was.Through == 0 {
		return 0, nil
	}
	frame, err := s.frameHash(was.Through)
	if err != nil {
		return 0, err
	}
	if id, _ := e.n.keys.Storage().Current(); frame != "" && frame == was.Frame && id >= f.StorageKey && was.State == s.state.Generation() {
		return was.Through, nil
	}
	e.n.cfg.Logger.Warn("erased.json is of another log, of newer files, or of a state that was replaced; what was deleted is taken out of the files once more", "shard", s.id, "through", was.Through)
	f.set(s.id, erasedShard{})
	return 0, e.n.dir.writeErased(f)
}

// frameHash names what the log holds up to a sequence: the frame's hash covers the
// chain before it. It is "" if the state has no such frame.
func (s *shard) frameHash(seq uint64) (string, error) {
	v := s.state.View()
	b, err := v.Frame(seq)
	if err = errors.Join(err, v.Close()); err != nil || b == nil {
		return "", err
	}
	hash := events.HashEnvelope(b)
	return hex.EncodeToString(hash[:]), nil
}
