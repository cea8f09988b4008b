package storage

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Defaults of Options.
const (
	DefaultCacheBytes    = 160 << 20
	DefaultMemTableBytes = 8 << 20
	DefaultReserveBytes  = 128 << 20

	// FillingMemTableBytes is DefaultMemTableBytes of a database that is filled.
	FillingMemTableBytes = 32 << 20
)

// While a database is filled, its flushed tables are rewritten when so many layers of
// them overlap, and writes wait at the second number. A read looks into each layer,
// and rewriting them costs more than a third of the filling.
const (
	fillingLayers     = 24
	fillingStopLayers = 64
)

// pebbleFormat is pinned: a newer one is a decision, since it locks out the
// program that ran before. TableFormatV6 checks each sstable's own header.
const pebbleFormat = pebble.FormatTableFormatV6

// Options of Open. The zero value, with Dir set, is good.
type Options struct {
	Dir    string       // created when missing, unless ReadOnly
	FS     vfs.FS       // nil: the operating system's
	Logger *slog.Logger // nil: nothing is logged

	// CacheBytes is for blocks and memtables together: Pebble takes the room of
	// a memtable out of the block cache, so it must be several of them. 0:
	// DefaultCacheBytes.
	CacheBytes    int64
	MemTableBytes uint64 // the largest memtable; 0: DefaultMemTableBytes, or FillingMemTableBytes. They begin at 256 KiB and double.
	// ReserveBytes is what must stay free on the disk, so that flushes and
	// compactions can still finish: writes below it are refused with ErrNoSpace
	// before they change anything. 0: DefaultReserveBytes; negative: no check.
	ReserveBytes int64

	// Filling is for a database that is built as a whole from what lies elsewhere. It
	// has no write-ahead log: a crash loses what was not flushed, always from the end,
	// and Sync and Close flush. Its tables are left as they are flushed, unless so many
	// of them overlap that reads would be slow; the next Open without Filling begins to
	// sort them.
	Filling bool

	ReadOnly bool       // writes nothing; the directory is locked all the same
	Merge    MergeTable // by first key byte; must not change under existing rows

	// OnFault hears errors of background work (disk full, corruption) and the
	// fatal one that halts the database (ErrHalted). It is called with locks
	// of Pebble held, on any goroutine, possibly often: it must not block and
	// must not call the DB. nil: DB.Fault is the only trace.
	OnFault func(error)
}

// Validate says what contradicts itself, as ErrOptions.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return fmt.Errorf("%w: no directory", ErrOptions)
	case o.CacheBytes < 0:
		return fmt.Errorf("%w: negative cache", ErrOptions)
	case o.MemTableBytes != 0 && o.MemTableBytes < 64<<10, o.MemTableBytes > 1<<30:
		return fmt.Errorf("%w: memtable of %d bytes, want 64 KiB to 1 GiB", ErrOptions, o.MemTableBytes)
	}
	if _, ok := o.Merge[reservedPrefix]; ok {
		return fmt.Errorf("%w: merge under the reserved prefix 0x00", ErrOptions)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.FS = orDefault(o.FS)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	switch {
	case o.MemTableBytes != 0:
	case o.Filling:
		o.MemTableBytes = FillingMemTableBytes
	default:
		o.MemTableBytes = DefaultMemTableBytes
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = DefaultReserveBytes
	}
	return o
}

// cleaner removes each file that the database no longer needs. Pebble's own one
// keeps up to four former logs of a memtable's size, so that later ones may overwrite
// them. An encrypted file is never overwritten: they would only take room.
type cleaner struct {
	pebble.DeleteCleaner
	keepsNoLogs
}

// keepsNoLogs has the unexported method by which Pebble knows a cleaner that needs
// the files' contents. For such a one it keeps no log for overwriting.
type keepsNoLogs struct{ pebble.ArchiveCleaner }

// pebbleOptions tunes for many small keys in large batches on few cores: bloom
// filters in all levels (Gets of idempotency keys mostly miss), one compaction
// and a second one only when it falls behind. Compression is the fast one in all
// levels: values are sealed and keys are HMACs, which zstd does not shrink either,
// while its decoder took a third of a text search.
func (o Options) pebbleOptions(fs vfs.FS, lock *pebble.Lock, log *logger, ev *pebble.EventListener) *pebble.Options {
	po := &pebble.Options{
		FS:                          namesFirst{fs},
		Lock:                        lock,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: 3,
		L0CompactionThreshold:       12, // half as many flushes go into one compaction
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               64 << 20,
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             1 << 20,
		MaxOpenFiles:                512,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		FormatMajorVersion:          pebbleFormat,
		ReadOnly:                    o.ReadOnly,
		Merger:                      o.Merge.merger(),
		Cleaner:                     cleaner{},
		Logger:                      log,
		EventListener:               ev,
	}
	po.Experimental.CompactionScheduler = &compactions{}
	if o.Filling {
		po.DisableWAL = true
		po.L0CompactionThreshold = 2 * fillingLayers // Pebble counts a layer twice
		po.L0StopWritesThreshold = fillingStopLayers
		po.LBaseMaxBytes = 1 << 30 // what is rewritten goes to the last level at once
	}
	po.TargetFileSizes[0] = 4 << 20
	// Terms and dictionary rows are in clear and compress well: the last level, where
	// most bytes lie, is worth Zstandard's level 3.
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionGood })
	for i := range po.Levels {
		po.Levels[i].BlockSize = 16 << 10
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].FilterType = pebble.TableFilter
	}
	return po
}
