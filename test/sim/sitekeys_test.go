package sim

import (
	"crypto/sha256"
	"errors"
	"slices"

	"mneme/internal/events"
	"mneme/internal/keygroup"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	shard "mneme/internal/replica"
	"mneme/memory"
)

func (m *member) openKeys(create, blank bool) {
	k, err := keyring.Open(keyring.Options{Dir: "/data", FS: m.r.fs, Rand: m.s.w.random, Group: true, Blank: blank, AllowCreate: create, AllowNewStorage: create})
	m.s.w.must(err)
	m.r.keys = k
	m.s.w.must(k.Machine().SetProposer(m))
	m.checked = 0
}

// keysMachine is the keyring as the machine of its group, which is watched.
func (m *member) keysMachine() raftfsm.Machine {
	return &watchedKeys{Machine: keygroup.Machine(m.r.keys, m.r.fs), m: m}
}

type watchedKeys struct {
	raftfsm.Machine
	m *member
}

func (k *watchedKeys) Apply(entries []raftfsm.Entry) ([]any, error) {
	out, err := k.Machine.Apply(entries)
	for _, a := range out {
		for _, id := range a.(keyring.Answer).Created {
			k.m.s.made[id] = true
		}
	}
	if err == nil {
		k.m.compareKeys()
	}
	return out, err
}

func (k *watchedKeys) Restore(dir string) error {
	err := k.Machine.Restore(dir)
	if err == nil {
		k.m.s.w.reach("snapshot of the keys installed")
		k.m.compareKeys()
	}
	return err
}

// compareKeys checks that keyrings at one index are one.
func (m *member) compareKeys() {
	plain, err := m.r.keys.Machine().Snapshot()
	m.s.w.must(err)
	index, _ := m.r.keys.Machine().AppliedIndex()
	sum := sha256.Sum256(plain)
	if have, ok := m.s.tables[index]; ok && have != sum {
		m.s.w.fail("the keyring of %s at %d is another than one before", m.name, index)
	}
	m.s.tables[index] = sum
}

// ready reports whether a keyring has what commands need, as package replica waits for.
func (m *member) ready(entries []raftfsm.Entry) bool {
	if has, _ := m.r.keys.Machine().AppliedIndex(); has < shard.KeysNeeded(entries) {
		m.s.w.reach("range waits for its keys")
		return false
	}
	return true
}

// Propose implements keyring.Proposer as package keygroup does: the command goes to the
// leader, and is applied here when it returns. Only the group of keys goes on meanwhile.
func (m *member) Propose(command []byte) (keyring.Answer, error) {
	s := m.s
	maybe := false
	for range 3 {
		lead := s.leader(s.model, m)
		if lead == nil {
			s.run(150, func() bool { return s.leader(s.model, m) != nil })
			continue
		}
		f := lead.member.keys.Propose(ctx, command)
		s.run(300, func() bool { return answered(f) })
		if !answered(f) {
			maybe = true
			continue
		}
		result, index, err := f.Wait(ctx)
		if errors.Is(err, raftfsm.ErrUnknownOutcome) {
			maybe = true
		}
		if err != nil {
			continue
		}
		if s.run(300, func() bool { return m.keys.Applied() >= index }); m.keys.Applied() < index {
			return keyring.Answer{}, memory.Errorf(memory.CodeOutcomeUnknown, "the keys were changed, but this node has not got them")
		}
		return result.(keyring.Answer), nil
	}
	if maybe {
		s.w.reach("change of the keys of unknown outcome")
		return keyring.Answer{}, memory.Errorf(memory.CodeOutcomeUnknown, "a change of the keys may have happened")
	}
	return keyring.Answer{}, memory.Errorf(memory.CodeUnavailable, "the keys cannot be changed")
}

// run lets the group of keys go on until something is so, or for so many steps.
func (s *site) run(steps int, done func() bool) {
	for range steps {
		if done() {
			return
		}
		s.w.must(s.model.Step())
	}
}

// opens checks that a keyring has the keys of all that its node's state holds.
func (m *member) opens() {
	c := m.r.state.Cursor()
	if c.Seq <= m.checked {
		return
	}
	v := m.r.state.View()
	defer v.Close()
	for ; m.checked < c.Seq; m.checked++ {
		frame, err := v.Frame(m.checked + 1)
		if err != nil {
			continue // a void one
		}
		for _, key := range keysOf(frame) {
			if _, err := m.r.keys.KeyByID(key); errors.Is(err, keyring.ErrNoKey) || errors.Is(err, keyring.ErrBlank) {
				m.s.w.fail("the state of %s at %d holds what is sealed under a key that its node does not have", m.name, m.checked+1)
			}
		}
	}
}

// keysOf lists the keys that a frame's events are sealed under.
func keysOf(frame []byte) (keys []keyring.KeyID) {
	f, err := events.DecodeFrame(frame)
	if err != nil {
		return nil
	}
	for _, raw := range f.Events {
		if e, err := events.DecodeEnvelope(raw); err == nil && e.Key != [16]byte{} {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// agreed checks that a frame is sealed under keys that the group agreed on.
func (s *site) agreed(frame []byte) {
	for _, key := range keysOf(frame) {
		if !s.made[key] {
			s.w.fail("a frame of the log is sealed under a key that no majority has")
		}
	}
}

// destroy follows the eraser of a node that leads: it destroys what the state says has
// ended.
func (m *member) destroy() {
	if m.r.host == nil || m.r.host.phase != "open" {
		return
	}
	v := m.r.state.View()
	var ids []keyring.KeyID
	m.s.w.must(v.EndedKeys(func(k projections.EndedKey) { ids = append(ids, k.Key) }))
	m.s.w.must(v.Close())
	if err := m.r.host.w.Erasing().DestroyEnded(); err != nil {
		m.s.w.event("%s: %v", m.name, err)
		return
	}
	m.owes = false
	for _, id := range ids {
		if !slices.Contains(m.s.ended, id) {
			m.s.ended = append(m.s.ended, id)
			m.s.w.reach("key destroyed")
		}
	}
}
