package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	// ErrNewerFormat: a newer program wrote this directory.
	ErrNewerFormat = errors.New("storage: written in a newer format")
	// ErrDamaged: files are missing, cut or changed.
	ErrDamaged = errors.New("storage: damaged")
	// ErrMissingKey: a file is encrypted under a key that this node does not have.
	ErrMissingKey = errors.New("storage: key missing")
	// ErrInUse: another process, or another DB of this process, has the directory open.
	ErrInUse = errors.New("storage: directory in use")
	// ErrNoSpace: the disk is full, or fuller than Options.ReserveBytes allows.
	ErrNoSpace = errors.New("storage: no space left")
	// ErrHalted: Pebble met a fatal error earlier; writes are refused.
	ErrHalted = errors.New("storage: halted")
	// ErrReadOnly: a write to a database that was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("storage: opened read-only")
	// ErrNoDatabase: Options.ReadOnly, and the directory holds no database.
	ErrNoDatabase = errors.New("storage: no database")
	// ErrClosed: the database has been closed.
	ErrClosed = errors.New("storage: closed")
	// ErrOptions: the options contradict themselves.
	ErrOptions = errors.New("storage: invalid options")
	// ErrMerge: a merge operand under a key whose first byte is not in the MergeTable, or
	// operands that its functions refused.
	ErrMerge = errors.New("storage: cannot merge")
)

// IsNoSpace reports whether a full disk caused err, whoever returned it.
func IsNoSpace(err error) bool {
	return err != nil && (errors.Is(err, ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || vfs.IsNoSpaceError(err))
}

// IsCorrupt reports whether damaged files caused err, whoever returned it.
func IsCorrupt(err error) bool {
	return err != nil && (errors.Is(err, ErrDamaged) || pebble.IsCorruptionError(err))
}

// typed adds the sentinel of this package that fits err, if one does.
func typed(op, subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case IsNoSpace(err) && !errors.Is(err, ErrNoSpace):
		return fmt.Errorf("%s %s: %w: %w", op, subject, ErrNoSpace, err)
	case IsCorrupt(err) && !errors.Is(err, ErrDamaged):
		return fmt.Errorf("%s %s: %w: %w", op, subject, ErrDamaged, err)
	case errors.Is(err, pebble.ErrReadOnly):
		return fmt.Errorf("%s %s: %w", op, subject, ErrReadOnly)
	}
	return fmt.Errorf("%s %s: %w", op, subject, err)
}

// openError types an error of pebble.Open. Pebble marks only some damage as
// corruption (a torn OPTIONS file is a plain error), so that whatever the
// operating system did not cause is taken for damage.
func openError(dir string, err error) error {
	switch {
	case IsNoSpace(err), IsCorrupt(err):
		return typed("open", dir, err)
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("open %s: %w", dir, ErrNoDatabase)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, ErrMerge), errors.Is(err, ErrOptions),
		errors.Is(err, ErrMissingKey), errors.Is(err, ErrNewerFormat):
		return fmt.Errorf("open %s: %w", dir, err)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	return fmt.Errorf("open %s: %w: %w", dir, ErrDamaged, err)
}

// sharingViolation is ERROR_SHARING_VIOLATION, how Windows says that a file is
// open elsewhere.
const sharingViolation = syscall.Errno(32)

// lockError types an error of locking the directory. A refused lock arrives as
// a bare errno or as an untyped "lock held by current process"; a file that
// cannot be created is an *fs.PathError.
func lockError(dir string, err error) error {
	var path *fs.PathError
	var errno syscall.Errno
	switch {
	case IsNoSpace(err):
		return typed("open", dir, err)
	case errors.As(err, &path):
	case runtime.GOOS == "windows" && (!errors.As(err, &errno) || errno == sharingViolation),
		runtime.GOOS != "windows" && (!errors.As(err, &errno) || errno == syscall.EAGAIN || errno == syscall.EACCES):
		return fmt.Errorf("open %s: %w: %w", dir, ErrInUse, err)
	}
	return fmt.Errorf("open %s: lock: %w", dir, err)
}
