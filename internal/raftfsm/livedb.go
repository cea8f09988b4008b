package raftfsm

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// liveDB is the open raft.db, which may be replaced by another file while the
// stores use it. It is safe for concurrent use.
type liveDB struct {
	mu sync.RWMutex
	kv boltKV
}

var _ boltKV = (*liveDB)(nil)

// replace calls f while nothing else uses the file, and goes on with what f
// returns. If f returns nil, the file stays.
func (d *liveDB) replace(f func(old boltKV) (boltKV, error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := f(d.kv)
	if next != nil {
		d.kv = next
	}
	return err
}

func (d *liveDB) FirstIndex() (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.FirstIndex()
}

func (d *liveDB) LastIndex() (uint64, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.LastIndex()
}

func (d *liveDB) GetLog(index uint64, l *raft.Log) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.GetLog(index, l)
}

func (d *liveDB) StoreLogs(logs []*raft.Log) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.StoreLogs(logs)
}

func (d *liveDB) DeleteRange(from, to uint64) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.DeleteRange(from, to)
}

func (d *liveDB) Set(key, value []byte) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.Set(key, value)
}

func (d *liveDB) Get(key []byte) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.Get(key)
}

func (d *liveDB) Sync() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.Sync()
}

func (d *liveDB) Close() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.kv.Close()
}

// copyBatch is how many entries copyDB writes in one transaction.
const copyBatch = 256

// copyDB writes every value of from to to, each opened and framed anew, and so
// sealed under the sealer's present key, and puts them on stable storage.
func copyDB(from, to boltKV, frames framer) error {
	for _, key := range [][]byte{[]byte(keyCurrentTerm), []byte(keyVote)} {
		frame, err := from.Get(key)
		if errors.Is(err, raftboltdb.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("copy value %q: %w", key, err)
		}
		value, err := frames.openValue(key, frame)
		if err != nil {
			return err
		}
		if err := to.Set(key, frames.sealValue(key, value)); err != nil {
			return fmt.Errorf("copy value %q: %w", key, err)
		}
	}
	first, err := from.FirstIndex()
	if err != nil {
		return err
	}
	last, err := from.LastIndex()
	if err != nil {
		return err
	}
	var batch []*raft.Log
	for i := first; i != 0 && i <= last; i++ {
		l := new(raft.Log)
		if err := from.GetLog(i, l); err != nil {
			return fmt.Errorf("copy entry %d: %w", i, err)
		}
		if err := frames.openEntry(l); err != nil {
			return err
		}
		l.Data = frames.sealEntry(l)
		if batch = append(batch, l); len(batch) == copyBatch || i == last {
			if err := to.StoreLogs(batch); err != nil {
				return fmt.Errorf("copy entries to %d: %w", i, err)
			}
			batch = nil
		}
	}
	return to.Sync()
}
