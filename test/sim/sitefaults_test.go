package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/cluster"
	"mneme/internal/raftfsm"
	"mneme/internal/raftfsm/raftmodel"
)

func (s *site) powerLost(id int) bool {
	r := s.at(id)
	return r != nil && r.member.cam.picture != nil
}

// strike lets nodes come and go, lose what they have, and lose their power at the worst
// time.
func (s *site) strike() {
	w := s.w
	r := w.replicas[s.rng.IntN(len(w.replicas))]
	m := r.member
	switch s.rng.IntN(12) {
	case 0:
		if s.whole() && len(w.replicas) < s.most {
			w.bite("node added")
			s.enter(s.newNode(fmt.Sprint("n", s.nodes), 1, true), keyless)
			s.nodes++
		}
	case 1:
		if by := s.anyServing(m); s.whole() && len(w.replicas) > s.least && by != nil && by != r {
			r.crash()
			if s.mayRemove(by.member, m.name) {
				w.bite("node removed")
				s.leaving = r
			}
		}
	case 2:
		if s.whole() && w.apart == 0 && s.model.Whole() {
			w.bite("wiped")
			w.event("%s is wiped", m.name)
			r.crash()
			s.comeBack(r)
		}
	case 3, 4:
		if m.phase == serving && s.copies[m.name] == nil {
			s.copies[m.name] = m.copy()
		}
	case 5, 6:
		for _, r := range w.replicas {
			if s.copies[r.member.name] != nil {
				s.putBack(r.member)
				break
			}
		}
	case 7, 8:
		m.cam.after = 1 + s.rng.IntN(12)
	case 9, 10:
		if m.phase == serving && m.keys.Halted() == nil {
			s.w.reach("snapshot of the keys taken")
			_ = m.keys.Snapshot() // it may lose its power
		}
	default:
		w.bite("stepped down")
		m.keys.StepDown()
	}
}

// camera takes a picture of a node's disk in the middle of what is done to the files of a
// Raft group, for a loss of power then.
type camera struct {
	of      *replica
	after   int // so many changes
	picture *vfs.MemFS
}

// MaybeError implements errorfs.Injector.
func (c *camera) MaybeError(op errorfs.Op) error {
	if c.after == 0 || !strings.HasPrefix(op.Path, keysDir+"/snapshots") && !strings.HasPrefix(op.Path, "/raft/snapshots") || op.Kind != errorfs.OpOpenDir && op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	if c.after--; c.after == 0 {
		c.picture = c.of.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	return nil
}

func (c *camera) String() string { return "camera" }

// disk is where the node's Raft groups lie.
func (m *member) disk() vfs.FS { return errorfs.Wrap(m.r.fs, &m.cam) }

// crash ends the node's part of a process, and gives what is left of its disk.
func (m *member) crash() *vfs.MemFS {
	fs := m.cam.picture
	if fs == nil {
		fs = m.r.fs.CrashClone(vfs.CrashCloneCfg{})
	} else {
		m.s.w.reach("power lost while a snapshot was handled")
	}
	m.cam.after, m.cam.picture, m.phase, m.owes = 0, nil, stopped, false
	if m.keys != nil {
		m.keys.Crash()
	}
	m.s.w.must(m.r.keys.Close())
	return fs
}

// copied is an older copy of a node's disk.
type copied struct {
	fs          *vfs.MemFS
	keys, shard *raftfsm.MemDisk
	saw         map[string]map[string]raftfsm.Promise
}

func (m *member) copy() *copied {
	of, _ := m.saw.All()
	return &copied{m.r.fs.CrashClone(vfs.CrashCloneCfg{}), raftmodel.Membership{Replica: m.keys}.Disk(), raftmodel.Membership{Replica: m.r.raft}.Disk(), of}
}

// putBack puts an older copy in the place of what a node has. That takes longer than the
// others need to tell each other what they saw of it.
func (s *site) putBack(m *member) {
	w, old := s.w, s.copies[m.name]
	if old == nil || !s.whole() || w.apart != 0 || !s.model.Whole() {
		return
	}
	w.bite("older copy put back")
	w.event("%s is put back from a copy", m.name)
	delete(s.copies, m.name)
	m.r.crash()
	for _, r := range w.replicas {
		r.member.tell()
	}
	w.must(errors.Join(m.r.state.Close(), m.r.keys.Close()))
	m.r.fs = old.fs
	m.r.open()
	m.openKeys(false, false)
	raftmodel.Membership{Replica: m.keys}.PutBack(old.keys)
	raftmodel.Membership{Replica: m.r.raft}.PutBack(old.shard)
	m.saw = cluster.NewPromises()
	m.saw.Merge(old.saw, func(string) bool { return false })
	m.start()
}
