package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// keysOrder says how far a keyring is among those of its group. keyring.Machine is one.
type keysOrder interface {
	AppliedIndex() (index, term uint64)
	ChangedAt() uint64
	Wait(ctx context.Context, index uint64) error
}

// keysPatience is how long a replica waits for keys before it says so.
const keysPatience = 2 * time.Second

// awaitKeys waits until the keyring here has the keys that the commands' frames are
// sealed under: what is applied is read, and a key that is missing then is taken for a
// lost one. It says nothing about what the commands come to. They are a majority's
// already, so they come; only closing ends the wait before.
func (m *machine) awaitKeys(entries []raftfsm.Entry) error {
	if m.keys == nil {
		return nil
	}
	return m.awaitKeysAt(context.Background(), KeysNeeded(entries))
}

// KeysNeeded is the index that a keyring has to stand at before commands are applied.
func KeysNeeded(entries []raftfsm.Entry) (index uint64) {
	for _, e := range entries {
		index = max(index, projections.KeysOf(e.Data))
	}
	return index
}

func (m *machine) awaitKeysAt(ctx context.Context, need uint64) error {
	if m.keys == nil {
		return nil
	}
	if has, _ := m.keys.AppliedIndex(); has >= need {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	tell := time.AfterFunc(keysPatience, func() {
		has, _ := m.keys.AppliedIndex()
		m.log.Warn("what was agreed on waits for keys that this node does not have yet", "needs", need, "has", has)
	})
	defer tell.Stop()
	assert.Reachable("what was agreed on waits for its keys", nil)
	return m.keys.Wait(ctx, need)
}

// keysName is the file of a checkpoint that names the keys which its state needs: u8
// version ‖ u64 index of the keyring. A replica on its own makes none.
const (
	keysName    = "KEYS"
	keysVersion = 1
)

// WriteKeys writes that file.
func WriteKeys(fsys vfs.FS, dir string, index uint64) error {
	f, err := fsys.Create(fsys.PathJoin(dir, keysName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(binary.BigEndian.AppendUint64([]byte{keysVersion}, index))
	return errors.Join(err, f.Close())
}

// restoreWaits bounds how long a snapshot waits for its keys. Raft brings it again.
const restoreWaits = 10 * time.Second

// awaitKeysOf waits for the keys of a checkpoint, and leaves only the state in it.
// Errors: ctx's after restoreWaits. For a start that goes on with a peer's snapshot must
// not wait for ever.
func (m *machine) awaitKeysOf(dir string) error {
	need, err := ReadKeys(m.fs, dir)
	if err != nil || need == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreWaits)
	defer cancel()
	if err := m.awaitKeysAt(ctx, need); err != nil {
		return fmt.Errorf("keys of a snapshot: %w", err)
	}
	return RemoveKeys(m.fs, dir)
}

// ReadKeys is the index that a keyring has to stand at before a checkpoint is taken for
// the state; 0 = none is named.
func ReadKeys(fsys vfs.FS, dir string) (index uint64, err error) {
	b, err := storage.ReadFile(fsys, fsys.PathJoin(dir, keysName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case len(b) != 9 || b[0] != keysVersion:
		return 0, fmt.Errorf("%s of a snapshot: %w", keysName, storage.ErrNewerFormat)
	}
	return binary.BigEndian.Uint64(b[1:]), nil
}

// RemoveKeys leaves only the state in a checkpoint.
func RemoveKeys(fsys vfs.FS, dir string) error { return fsys.Remove(fsys.PathJoin(dir, keysName)) }
