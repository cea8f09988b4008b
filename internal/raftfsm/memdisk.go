package raftfsm

import (
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// MemDisk is a raft.db in memory, for a Local: what is written is read back at
// once, and a loss of power leaves what had been synced. After an error of the
// device it goes on as a kernel does that has dropped the pages which it could not
// write: writes succeed, and nothing of them is ever kept.
type MemDisk struct {
	// NoSync: entries and values are kept from the next Sync on only.
	NoSync bool
	// Fails says whether the device fails now; nil = never.
	Fails func() bool

	now, kept diskImage
	broken    bool
}

type diskImage struct {
	logs   []raft.Log // without gaps
	values map[string]string
}

func (i diskImage) clone() diskImage { return diskImage{slices.Clone(i.logs), maps.Clone(i.values)} }

var _ boltKV = (*MemDisk)(nil)

// Copy is another disk with what this one keeps.
func (d *MemDisk) Copy() *MemDisk {
	return &MemDisk{NoSync: d.NoSync, Fails: d.Fails, now: d.kept.clone(), kept: d.kept.clone()}
}

// Crash takes what a loss of power takes, and mends the device.
func (d *MemDisk) Crash() { d.now, d.broken = d.kept.clone(), false }

// Broken reports whether the device has failed since it was mended.
func (d *MemDisk) Broken() bool { return d.broken }

// write runs one transaction.
func (d *MemDisk) write(f func()) error {
	if d.Fails != nil && d.Fails() {
		d.broken = true
		return fmt.Errorf("write raft.db: %w", syscall.EIO)
	}
	f()
	if !d.NoSync {
		return d.Sync()
	}
	return nil
}

// Sync implements boltKV.
func (d *MemDisk) Sync() error {
	if !d.broken {
		d.kept = d.now.clone()
	}
	return nil
}

// FirstIndex implements boltKV.
func (d *MemDisk) FirstIndex() (uint64, error) {
	if len(d.now.logs) == 0 {
		return 0, nil
	}
	return d.now.logs[0].Index, nil
}

// LastIndex implements boltKV.
func (d *MemDisk) LastIndex() (uint64, error) {
	if len(d.now.logs) == 0 {
		return 0, nil
	}
	return d.now.logs[len(d.now.logs)-1].Index, nil
}

// GetLog implements boltKV.
func (d *MemDisk) GetLog(index uint64, l *raft.Log) error {
	i := slices.IndexFunc(d.now.logs, func(l raft.Log) bool { return l.Index == index })
	if i < 0 {
		return raft.ErrLogNotFound
	}
	*l = d.now.logs[i]
	return nil
}

// StoreLogs implements boltKV.
func (d *MemDisk) StoreLogs(logs []*raft.Log) error {
	return d.write(func() {
		for _, l := range logs {
			d.now.logs = append(d.now.logs, *l)
		}
	})
}

// DeleteRange implements boltKV.
func (d *MemDisk) DeleteRange(from, to uint64) error {
	return d.write(func() {
		d.now.logs = slices.DeleteFunc(d.now.logs, func(l raft.Log) bool { return l.Index >= from && l.Index <= to })
	})
}

// Set implements boltKV.
func (d *MemDisk) Set(key, value []byte) error {
	return d.write(func() {
		if d.now.values == nil {
			d.now.values = map[string]string{}
		}
		d.now.values[string(key)] = string(value)
	})
}

// Get implements boltKV.
func (d *MemDisk) Get(key []byte) ([]byte, error) {
	v, ok := d.now.values[string(key)]
	if !ok {
		return nil, raftboltdb.ErrKeyNotFound
	}
	return []byte(v), nil
}

// Close implements boltKV.
func (d *MemDisk) Close() error { return nil }
