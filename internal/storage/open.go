package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// FormatVersion is the version of the shard's layout as a whole. It changes when
// an older program must not touch the directory; each row has versions of its own.
const FormatVersion = 1

// The format row, written and synced before any other:
//
//	key    00 'f' 'o' 'r' 'm' 'a' 't'
//	value  'M' 'N' 'E' 'M' 'E' | version, 4 bytes big endian
const (
	reservedPrefix = 0x00
	formatMagic    = "MNEME"
)

func formatKey() []byte { return append([]byte{reservedPrefix}, "format"...) }

// Open opens the database in opt.Dir, creating it if there is none. It locks the
// directory against other processes. Errors: ErrInUse, ErrNewerFormat, ErrDamaged,
// ErrNoSpace, ErrNoDatabase, ErrOptions, else the operating system's.
func Open(opt Options) (*DB, error) {
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("open %s: %w", opt.Dir, err)
	}
	opt = opt.withDefaults()
	if err := makeDir(opt); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(opt.Dir, opt.FS)
	if err != nil {
		return nil, lockError(opt.Dir, err)
	}
	d, err := openLocked(opt, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func openLocked(opt Options, lock *pebble.Lock) (*DB, error) {
	if err := inspect(opt.FS, opt.Dir); err != nil {
		return nil, err
	}
	f := &faults{onFault: opt.OnFault, stopped: make(chan struct{}), failed: make(chan error, 1)}
	d := &DB{dir: opt.Dir, opt: opt, faults: f, lock: lock}
	d.reserve = reserve{fs: opt.FS, dir: opt.Dir, keep: opt.ReserveBytes}
	po := opt.pebbleOptions(pacedFS{opt.FS, &d.pace}, lock, &logger{to: opt.Logger, faults: f}, f.listener())
	err := d.guard(func() (err error) {
		d.DB, err = pebble.Open(opt.Dir, po)
		return err
	})
	if err != nil {
		return nil, openError(opt.Dir, err)
	}
	if err := d.checkFormat(); err != nil {
		if d.faults.halted.Load() == nil {
			err = errors.Join(err, d.guard(d.DB.Close))
		}
		return nil, err
	}
	return d, nil
}

// makeDir creates the directory.
func makeDir(opt Options) error {
	_, err := opt.FS.Stat(opt.Dir)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return typed("open", opt.Dir, err)
	case opt.ReadOnly:
		return fmt.Errorf("open %s: %w", opt.Dir, ErrNoDatabase)
	}
	return typed("open", opt.Dir, MkdirAll(opt.FS, opt.Dir, 0o700))
}

// inspect finds what Pebble would take for something else: a database in a newer
// Pebble format (an untyped error there), one whose manifest marker is gone,
// in whose place Pebble would quietly begin an empty one, and one whose manifest has
// changed, of which Pebble would quietly open an earlier one.
func inspect(f vfs.FS, dir string) error {
	names, err := f.List(dir)
	if err != nil {
		return typed("open", dir, err)
	}
	marker, data := false, ""
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, "marker.manifest."):
			marker = true
		case strings.HasSuffix(n, ".sst"), strings.HasSuffix(n, ".log"):
			data = n
		}
	}
	if data != "" && !marker {
		return fmt.Errorf("open %s: %w: %s without a manifest marker", dir, ErrDamaged, data)
	}
	if err := checkManifest(f, dir); err != nil {
		return err
	}
	v, err := atomicfs.ReadMarker(f, dir, "format-version")
	if err != nil || v == "" {
		return nil // none yet, or damage that Pebble reports better
	}
	if n, err := strconv.ParseUint(v, 10, 64); err == nil && n > uint64(pebble.FormatNewest) {
		return fmt.Errorf("open %s: %w: Pebble format %d, know %d", dir, ErrNewerFormat, n, pebble.FormatNewest)
	}
	return nil
}

// checkFormat reads the format row, or writes it in an empty database.
func (d *DB) checkFormat() error {
	v, closer, err := d.DB.Get(formatKey())
	if err == nil {
		defer closer.Close()
		return d.judgeFormat(v)
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return openError(d.dir, err)
	}
	empty, err := d.isEmpty()
	switch {
	case err != nil:
		return openError(d.dir, err)
	case !empty:
		return fmt.Errorf("open %s: %w: rows without a format row", d.dir, ErrDamaged)
	case d.opt.ReadOnly:
		return fmt.Errorf("open %s: %w", d.dir, ErrNoDatabase)
	}
	row := binary.BigEndian.AppendUint32([]byte(formatMagic), FormatVersion)
	err = d.guard(func() error { return d.DB.Set(formatKey(), row, d.writeOptions(true)) })
	if err != nil {
		return typed("open", d.dir, err)
	}
	// Pebble began the first log in its oldest format, before it raised the format
	// to ours. In that log damage among synced rows looks like a torn end, and what
	// follows it is dropped without a word. A flush begins the next log.
	return d.Flush()
}

func (d *DB) judgeFormat(v []byte) error {
	rest, ok := bytes.CutPrefix(v, []byte(formatMagic))
	if !ok || len(rest) != 4 {
		return fmt.Errorf("open %s: %w: format row %x", d.dir, ErrDamaged, v)
	}
	switch n := binary.BigEndian.Uint32(rest); {
	case n > FormatVersion:
		return fmt.Errorf("open %s: %w: version %d, know %d", d.dir, ErrNewerFormat, n, FormatVersion)
	case n == 0:
		return fmt.Errorf("open %s: %w: format version 0", d.dir, ErrDamaged)
	}
	return nil
}

func (d *DB) isEmpty() (bool, error) {
	it, err := d.DB.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}
