package raftfsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// The keys that raft v1.7.3 uses, and the one that stands for its two vote keys.
const (
	keyCurrentTerm  = "CurrentTerm"
	keyLastVoteTerm = "LastVoteTerm"
	keyLastVoteCand = "LastVoteCand"
	keyVote         = "Vote"
)

// errNotFound has the text by which raft knows that a key is missing.
var errNotFound = errors.New("not found")

// vote is what raft stores under LastVoteTerm and LastVoteCand.
//
//	bytes 0..7  term, big endian
//	bytes 8..   candidate, as the transport encodes it
type vote struct {
	term      uint64
	candidate []byte
}

func (v vote) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, v.term), v.candidate...)
}

func decodeVote(b []byte) (vote, error) {
	if len(b) < 8 {
		return vote{}, fmt.Errorf("value %q: %w: %d bytes", keyVote, ErrCorruptLog, len(b))
	}
	return vote{term: binary.BigEndian.Uint64(b), candidate: b[8:]}, nil
}

// stableStore is a raft.StableStore that keeps a vote in one value. raft writes
// LastVoteTerm and then LastVoteCand in two transactions; a crash in between
// would leave the new term with the old candidate, whose repeated request is
// then granted without looking at its log (hashicorp/raft#661). Here the term
// waits in memory for its candidate.
//
// raft panics when the current term cannot be written. So a failed write of the
// term is kept in memory and written before the next vote or entry, both of
// which fail until that works: a term in which this replica has voted for
// nobody and stored nothing may be forgotten.
//
// It is safe for concurrent use.
type stableStore struct {
	kv     boltKV
	frames framer
	noSync bool
	failed func(error) // told once, when the store begins to refuse for good

	mu          sync.Mutex
	pendingVote *uint64 // LastVoteTerm that waits for its candidate
	unsaved     *uint64 // CurrentTerm that could not be written
	broken      error
}

var _ raft.StableStore = (*stableStore)(nil)

// Set implements raft.StableStore.
func (s *stableStore) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(key) != keyLastVoteCand {
		return s.putLocked(string(key), value)
	}
	if s.pendingVote == nil {
		return fmt.Errorf("store vote: %w: a candidate without a term", ErrStorage)
	}
	if err := s.readyLocked(); err != nil {
		return err
	}
	v := vote{term: *s.pendingVote, candidate: value}
	s.pendingVote = nil
	return s.putLocked(keyVote, v.encode())
}

// SetUint64 implements raft.StableStore.
func (s *stableStore) SetUint64(key []byte, value uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyLastVoteTerm:
		s.pendingVote = &value
		return nil
	case keyCurrentTerm:
		s.pendingVote, s.unsaved = nil, &value
		_ = s.readyLocked() // kept in unsaved; votes and entries will say so
		return nil
	default:
		return s.putLocked(string(key), binary.BigEndian.AppendUint64(nil, value))
	}
}

// Get implements raft.StableStore. A missing key is an error with the text
// "not found", as raft expects.
func (s *stableStore) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(key) == keyLastVoteCand {
		v, err := s.voteLocked()
		return v.candidate, err
	}
	return s.getLocked(string(key))
}

// GetUint64 implements raft.StableStore.
func (s *stableStore) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyLastVoteTerm:
		v, err := s.voteLocked()
		return v.term, err
	case keyCurrentTerm:
		if s.unsaved != nil {
			return *s.unsaved, nil
		}
	}
	value, err := s.getLocked(string(key))
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("value %q: %w: %d bytes", key, ErrCorruptLog, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// leap stores a term before Raft starts. An error means that it may not start: a log
// begun anew that lacks its term would use terms again.
func (s *stableStore) leap(term uint64) error {
	if err := s.SetUint64([]byte(keyCurrentTerm), term); err != nil {
		return err
	}
	return s.ready()
}

// ready writes a term that is still unsaved. An error means that nothing may be
// voted or stored now.
func (s *stableStore) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyLocked()
}

// refuse makes every later write fail with err.
func (s *stableStore) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
}

func (s *stableStore) readyLocked() error {
	if s.broken != nil {
		return s.broken
	}
	if s.unsaved == nil {
		return nil
	}
	if err := s.putLocked(keyCurrentTerm, binary.BigEndian.AppendUint64(nil, *s.unsaved)); err != nil {
		return err
	}
	s.unsaved = nil
	return nil
}

func (s *stableStore) putLocked(key string, value []byte) error {
	if s.broken != nil {
		return s.broken
	}
	err := guard(func() error {
		if err := s.kv.Set([]byte(key), s.frames.sealValue([]byte(key), value)); err != nil {
			return err
		}
		if s.noSync { // elections are rare; a forgotten term is not worth the saving
			return s.kv.Sync()
		}
		return nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("store %s: %w: %w", key, ErrStorage, err)
	if !isFull(err) {
		s.broken = err
		s.failed(err)
	}
	return err
}

func (s *stableStore) getLocked(key string) ([]byte, error) {
	var out []byte
	err := guard(func() error {
		frame, err := s.kv.Get([]byte(key))
		if errors.Is(err, raftboltdb.ErrKeyNotFound) {
			return errNotFound
		}
		if err != nil {
			return err
		}
		out, err = s.frames.openValue([]byte(key), frame)
		return err
	})
	return out, err
}

func (s *stableStore) voteLocked() (vote, error) {
	b, err := s.getLocked(keyVote)
	if err != nil {
		return vote{}, err
	}
	return decodeVote(b)
}
