package raftfsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// logReport is what a scan of raft.db found.
type logReport struct {
	exists      bool
	first, last uint64 // 0 if the log is empty
	lastTerm    uint64
	currentTerm uint64
	voteTerm    uint64
	// termAt holds the term of each entry whose index was asked for.
	termAt map[uint64]uint64
	// conf is the newest membership entry; confIndex is 0 if there is none.
	conf      raft.Configuration
	confIndex uint64
	// command is the last command that went to the machine, nil if there is none.
	command []byte
	// damage is set when the file cannot be trusted; what was read until then
	// stands in the other fields.
	damage error

	frames framer
}

// maxTerm is the highest term the file is known to have seen.
func (r *logReport) maxTerm() uint64 { return max(r.lastTerm, r.currentTerm, r.voteTerm) }

func (r *logReport) empty() bool { return r.last == 0 }

// covers tells whether the entry at index is in the log.
func (r *logReport) covers(index uint64) bool {
	return !r.empty() && r.first <= index && index <= r.last
}

// checkLog reads the whole file, without bbolt, and checks its pages, every
// checksum, that indexes have no gap and that terms do not fall. The caller
// holds the directory's lock. An error means that the file could not be read
// (permission, I/O); damage is reported in the result.
func checkLog(fsys vfs.FS, path string, frames framer, termsOf ...uint64) (*logReport, error) {
	rep := &logReport{termAt: make(map[uint64]uint64), frames: frames}
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rep, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check raft log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("check raft log: %w", err)
	}
	if info.Size() == 0 { // bbolt initialises an empty file like a missing one
		return rep, nil
	}
	rep.exists = true
	rep.damage = guard(func() error {
		return checkPages(f, info.Size(), func(bucket string, key, value []byte) error {
			return rep.visit(bucket, key, value, termsOf)
		})
	})
	return rep, nil
}

// entriesBehind visits the entries of a sound log behind an index, in order. The
// caller holds the directory's lock.
func (r *logReport) entriesBehind(opt Options, index uint64, visit func(*raft.Log) error) error {
	if r.last <= index {
		return nil
	}
	f, err := opt.dbFS.Open(opt.dbPath())
	if err != nil {
		return fmt.Errorf("read raft log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read raft log: %w", err)
	}
	return guard(func() error {
		return checkPages(f, info.Size(), func(bucket string, key, value []byte) error {
			if bucket != "logs" || len(key) != 8 || binary.BigEndian.Uint64(key) <= index {
				return nil
			}
			var l raft.Log
			if err := errors.Join(decodeLog(value, &l), r.frames.openEntry(&l)); err != nil {
				return err
			}
			return visit(&l)
		})
	})
}

func (r *logReport) visit(bucket string, key, value []byte, termsOf []uint64) error {
	switch bucket {
	case "logs":
		return r.visitEntry(key, value, termsOf)
	case "conf":
		return r.visitValue(key, value)
	default:
		return shapef("unknown bucket %q", bucket)
	}
}

func (r *logReport) visitEntry(key, value []byte, termsOf []uint64) error {
	if len(key) != 8 {
		return shapef("log key of %d bytes", len(key))
	}
	index := binary.BigEndian.Uint64(key)
	var l raft.Log
	if err := decodeLog(value, &l); err != nil {
		return fmt.Errorf("entry %d: %w: %w", index, ErrCorruptLog, err)
	}
	if err := r.frames.openEntry(&l); err != nil {
		return err
	}
	switch {
	case l.Index != index:
		return fmt.Errorf("entry %d: %w: it calls itself %d", index, ErrCorruptLog, l.Index)
	case r.last != 0 && index != r.last+1:
		return fmt.Errorf("%w: a gap between %d and %d", ErrCorruptLog, r.last, index)
	case l.Term < r.lastTerm:
		return fmt.Errorf("entry %d: %w: term falls", index, ErrCorruptLog)
	}
	if r.first == 0 {
		r.first = index
	}
	r.last, r.lastTerm = index, l.Term
	switch {
	case l.Type == raft.LogConfiguration:
		r.conf, r.confIndex = raft.DecodeConfiguration(l.Data), index
	case l.Type == raft.LogCommand && !isMarker(&l):
		r.command = l.Data
	}
	for _, want := range termsOf {
		if want == index {
			r.termAt[index] = l.Term
		}
	}
	return nil
}

func (r *logReport) visitValue(key, frame []byte) error {
	value, err := r.frames.openValue(key, frame)
	if err != nil {
		return err
	}
	switch string(key) {
	case keyCurrentTerm:
		if len(value) != 8 {
			return fmt.Errorf("value %q: %w: %d bytes", key, ErrCorruptLog, len(value))
		}
		r.currentTerm = binary.BigEndian.Uint64(value)
	case keyVote:
		v, err := decodeVote(value)
		if err != nil {
			return err
		}
		r.voteTerm = v.term
	}
	return nil
}

// decodeLog reads an entry as raft-boltdb writes it. A panic of the codec comes
// back through guard, under which every caller runs.
func decodeLog(value []byte, l *raft.Log) error {
	var h codec.MsgpackHandle
	return codec.NewDecoder(bytes.NewReader(value), &h).Decode(l)
}
