package keygroup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// A command that destroys keys leaves older ones in the group's files, which carry the
// keys: sealed under the command key that it ended, but the snapshots before it have
// that. So each replica renews its files after each destruction, by itself. How far it
// has come lies in a file of the group's folder:
//
//	u8 version ‖ u64 index of the last destruction after which the files were renewed
//
// A file that is missing says 0, and one that is behind costs a renewal too many.
const (
	renewedName    = "renewed"
	renewedVersion = 1
)

// renewal is how far the group's files are renewed. It is safe for concurrent use.
type renewal struct {
	fs   vfs.FS
	path string

	mu      sync.Mutex
	through uint64
	changed chan struct{} // closed and replaced when through rises
}

func openRenewal(fsys vfs.FS, path string) (*renewal, error) {
	r := &renewal{fs: fsys, path: path, changed: make(chan struct{})}
	b, err := storage.ReadFile(fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read how far keys are gone from the files: %w", err)
	case len(b) == 9 && b[0] == renewedVersion:
		r.through = binary.BigEndian.Uint64(b[1:])
	}
	return r, nil
}

func (r *renewal) now() (through uint64, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.through, r.changed
}

func (r *renewal) save(through uint64) error {
	b := binary.BigEndian.AppendUint64([]byte{renewedVersion}, through)
	if err := storage.ReplaceFile(r.fs, r.path, b, 0o600); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.through = through
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// Renewed waits until no file of the group on this node holds what was destroyed before
// the call, as far as this replica has applied it. Errors: ctx's, and what ended the
// replica.
func (g *Group) Renewed(ctx context.Context) error {
	want := g.machine.keys.EndedAt()
	for {
		through, changed := g.renewal.now()
		if through >= want {
			return nil
		}
		select {
		case <-changed:
		case <-g.raft.HaltedCh():
			return g.raft.Halted()
		case <-g.running.Done():
			return fmt.Errorf("destroyed keys leave the files at the next start: %w", errClosed)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// How long a renewal that failed waits for its next try.
const (
	renewMin = 50 * time.Millisecond
	renewMax = 30 * time.Second
)

// renewWhenOwed renews the group's files after each destruction until the replica is
// closed.
func (g *Group) renewWhenOwed() {
	for pause := renewMin; ; {
		owed := g.machine.keys.EndedAt()
		through, _ := g.renewal.now()
		var again <-chan time.Time
		if owed > through {
			if err := g.renewOnce(owed); err == nil {
				pause = renewMin
				continue
			} else if g.running.Err() == nil {
				g.log.Warn("destroyed keys are still in files of their group; it is tried again", "err", err)
			}
			again = time.After(pause)
			pause = min(2*pause, renewMax)
		}
		select {
		case <-g.machine.applied:
		case <-again:
		case <-g.raft.HaltedCh():
			return
		case <-g.running.Done():
			return
		}
	}
}

// renewOnce renews the files of a replica that has applied the destruction at an index.
func (g *Group) renewOnce(index uint64) error {
	if err := g.raft.Renew(g.running); err != nil {
		return err
	}
	g.opt.step("renewed")
	return g.renewal.save(index)
}
