package hooks

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"mneme/memory"
)

const (
	diskVersion = 1 // first byte of the key and of what is sealed
	keyBytes    = 32

	lockPatience = 2 * time.Second // for other hooks, which hold the lock for some milliseconds
	lockRetry    = 3 * time.Millisecond
)

// Disk is the folder where hooks keep what one leaves to the next: a key, and sealed under it
// the spool, a state, and the last recalls. Several processes may have it open. What the state
// and the recalls lose in a power failure is not missed; the spool loses nothing that was settled.
type Disk struct {
	dir   string
	aead  cipher.AEAD
	files files

	unsettled []string // entries of the spool that this one wrote and has not synced
	strangers int      // entries that were there when this one made a key, because there was none
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
	key, err := d.key()
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	d.aead, err = cipher.NewGCMWithRandomNonce(block)
	return d, err
}

// key reads the key, or makes one.
func (d *Disk) key() ([]byte, error) {
	path := d.keyPath()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = d.locked(context.Background(), func() error { return d.makeKey(path) })
		if err == nil || errors.Is(err, errLocked) { // one of those who held the lock made it
			b, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the hooks' key: %w", err)
	}
	if len(b) != 1+keyBytes || b[0] != diskVersion {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is no key of hooks", path).
			WithHint("restore it, or delete %s: what waits in it is lost then", d.dir)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		_ = ownOnly(path) // where a copy lost its mode; systems without modes have none
	}
	return b[1:], nil
}

// KeyLost says, where this one made the key anew, that captures wait under the one that was there before;
// nil where none do.
func (d *Disk) KeyLost() error {
	if d.strangers == 0 {
		return nil
	}
	return memory.Errorf(memory.CodeNotFound, "%s was not there and was made anew; what waited before (%d in the spool) does not open under it", d.keyPath(), d.strangers).
		WithHint("%s", d.keyHint())
}

// sealedElsewhere is said of captures that wait under another key.
func (d *Disk) sealedElsewhere() error {
	return memory.Errorf(memory.CodeConflict, "captures that wait do not open under %s: they were sealed under another key, and stay where they are", d.keyPath()).
		WithHint("%s", d.keyHint())
}

func (d *Disk) keyPath() string { return filepath.Join(d.dir, "key") }

func (d *Disk) keyHint() string {
	return "put the former key back, from a copy of " + d.dir + ", or delete what waits in " + filepath.Join(d.dir, spoolDir)
}

// makeKey writes a new key unless there is one.
func (d *Disk) makeKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	there, _ := os.ReadDir(filepath.Join(d.dir, spoolDir))
	d.strangers = len(there)
	key := make([]byte, 1+keyBytes)
	key[0] = diskVersion
	_, _ = rand.Read(key[1:]) // never fails
	return writeFile(d.files, path, key, true)
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

// seal encrypts b for one purpose: what was sealed for another does not open.
func (d *Disk) seal(purpose string, b []byte) []byte {
	return d.aead.Seal([]byte{diskVersion}, nil, b, []byte(purpose))
}

var (
	errSealed   = errors.New("it does not open under the hooks' key")
	errUnsealed = errors.New("it is not what hooks write")
)

func (d *Disk) open(purpose string, b []byte) ([]byte, error) {
	if len(b) == 0 || b[0] != diskVersion {
		return nil, errUnsealed
	}
	plain, err := d.aead.Open(nil, nil, b[1:], []byte(purpose))
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
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
