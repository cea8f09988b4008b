package storage

import (
	"context"
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// CheckTables reads every block of the tables that hold the database and compares it
// with its checksum. What is damaged in rows that nobody reads shows here only. Errors:
// ErrDamaged, which names the table, ctx's, of I/O.
func (d *DB) CheckTables(ctx context.Context) error {
	levels, err := d.DB.SSTables()
	if err != nil {
		return typed("check", d.dir, err)
	}
	po := d.opt.pebbleOptions(d.opt.FS, nil, &logger{to: d.opt.Logger, faults: d.faults}, d.faults.listener())
	po.EnsureDefaults()
	for _, tables := range levels {
		for _, table := range tables {
			if err := ctx.Err(); err != nil {
				return err
			}
			name := d.opt.FS.PathJoin(d.dir, table.BackingSSTNum.String()+".sst")
			// One that is gone was compacted meanwhile: an Open misses those that should be there.
			if err := d.checkTable(ctx, name, po); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return typed("check table", name, err)
			}
		}
	}
	return nil
}

func (d *DB) checkTable(ctx context.Context, name string, po *pebble.Options) error {
	file, err := d.opt.FS.Open(name)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r, err := sstable.NewReader(ctx, readable, po.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
