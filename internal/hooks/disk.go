package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockPatience = 2 * time.Second // for other hooks, which hold the lock for some milliseconds
	lockRetry    = 3 * time.Millisecond
)

// Disk is the folder where hooks keep what one leaves to the next: keys, and sealed under one
// the spool, a state, and the last recalls. Several processes may have it open. What the state
// and the recalls lose in a power failure is not missed; the spool loses nothing that was settled.
type Disk struct {
	dir   string
	keys  keys
	files files

	unsettled []string // entries of the spool that this one wrote and has not synced
	strangers int      // entries that were there when this one made a key, because there was none
	damaged   string   // where this one set aside what was written over the key
	unusable  error    // why there is none
}

// OpenDisk opens the folder, and makes it and its key if they are missing.
func OpenDisk(dir string) (*Disk, error) { return openDisk(dir, systemFiles{}) }

// Unusable stands for a folder that cannot be opened: it keeps nothing, for the reason why. What hooks keep goes
// to the node directly.
func Unusable(why error) *Disk { return &Disk{unusable: why} }

func openDisk(dir string, fs files) (*Disk, error) {
	d := &Disk{dir: dir, files: fs}
	if err := makeDir(fs, filepath.Join(dir, spoolDir)); err != nil {
		return nil, fmt.Errorf("make the hooks' folder: %w", err)
	}
	var err error
	d.keys, err = d.readKeys()
	return d, err
}

// errLocked says that others held the lock all the time, so that nothing was done.
var errLocked = errors.New("wait for other hooks")

// locked runs f while no other hook does the same.
func (d *Disk) locked(ctx context.Context, f func() error) error {
	if d.unusable != nil {
		return d.unusable
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock := flock.New(filepath.Join(d.dir, "lock"), flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, lockRetry); !ok && ctx.Err() == nil {
		return fmt.Errorf("lock the hooks' folder: %w", err)
	} else if !ok {
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	defer func() { _ = lock.Unlock() }()
	return f()
}

// load reads a sealed document into v, and leaves v as it is where there is none that opens.
func (d *Disk) load(name string, v any) error {
	if d.unusable != nil {
		return d.unusable
	}
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		return err
	}
	if b, err = d.open(name, b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return json.Unmarshal(b, v)
}

func (d *Disk) save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(d.files, filepath.Join(d.dir, name), d.seal(name, b), false)
}
