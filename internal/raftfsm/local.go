package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

// Local is what of a group needs no peer, no time and no goroutine: its store of
// entries, term and vote, its snapshots, and what stands between Raft and the
// machine. A Group opens the same parts in its recovery and puts the raft library
// above them. Package raftmodel puts its model there, so that a simulation runs
// the code that decides what counts after an error of the disk, and what becomes
// of a snapshot that comes late. It is not safe for concurrent use.
type Local struct {
	fsm   *fsm
	snaps *snapshotStore
	store *logStore
}

// LogEntry is an entry of a Local's log. A marker begins a term and is no command, and
// neither is what changes the membership.
type LogEntry struct {
	Entry
	Marker  bool
	Members []Member // from this entry on; nil = it changes nothing
}

// Membership is who is in a group from the entry at Index on.
type Membership struct {
	Index   uint64
	Members []Member
}

// OpenLocal opens what lies in dir of fsys and on disk. A machine that lies behind
// the newest snapshot is brought to it; with nil the files can be looked at.
func OpenLocal(machine Machine, fsys vfs.FS, dir string, disk *MemDisk) (*Local, error) {
	log := slog.New(slog.DiscardHandler)
	members, err := openMemberFile(fsys, fsys.PathJoin(dir, "membership"))
	if err != nil {
		return nil, err
	}
	snaps, err := openSnapshotStore(fsys, fsys.PathJoin(dir, "snapshots"), members, log)
	if err != nil {
		return nil, err
	}
	kv := &liveDB{kv: disk}
	stable := &stableStore{kv: kv, noSync: disk.NoSync, failed: func(error) {}}
	store, err := newLogStore(kv, framer{}, stable, members, noEvents{}, func() time.Time { return time.Time{} })
	if err != nil {
		return nil, err
	}
	l := &Local{snaps: snaps, store: store,
		fsm: &fsm{machine: machine, snaps: snaps, dir: fsys.PathJoin(dir, "restore"), log: log, progress: newProgress(0), kept: store.GetLog}}
	if machine == nil {
		return l, nil
	}
	if applied, _ := machine.AppliedIndex(); snaps.latest() != nil && applied < snaps.latest().man.AppliedIndex {
		err = restoreSnapshot(l.fsm, snaps, snaps.latest().id)
	}
	return l, err
}

// noEvents hears nothing.
type noEvents struct{}

func (noEvents) storeFailed(uint64, error)          {}
func (noEvents) entryUnreadable(uint64, error) bool { return false }
func (noEvents) logGrew(uint64, int64)              {}

// Term returns the term on stable storage, or the one that could not be written.
func (l *Local) Term() (uint64, error) {
	term, err := l.store.stable.GetUint64([]byte(keyCurrentTerm))
	if errors.Is(err, errNotFound) {
		return 0, nil
	}
	return term, err
}

// SetTerm stores the term.
func (l *Local) SetTerm(term uint64) error {
	return l.store.stable.SetUint64([]byte(keyCurrentTerm), term)
}

// Leap stores the term of a log that is begun anew. After an error nothing may start
// on it.
func (l *Local) Leap(term uint64) error { return l.store.stable.leap(term) }

// Voted returns whom the replica has voted for in a term, as the raft library asks
// before it grants a vote; "" is nobody.
func (l *Local) Voted(term uint64) (candidate string, err error) {
	last, err := l.store.stable.GetUint64([]byte(keyLastVoteTerm))
	if errors.Is(err, errNotFound) || err == nil && last != term {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, err := l.store.stable.Get([]byte(keyLastVoteCand))
	return string(name), err
}

// Vote stores a vote in the two steps of the raft library. Without error it may be
// given.
func (l *Local) Vote(term uint64, candidate string) error {
	if err := l.store.stable.SetUint64([]byte(keyLastVoteTerm), term); err != nil {
		return err
	}
	return l.store.stable.Set([]byte(keyLastVoteCand), []byte(candidate))
}

// Entries reads the log.
func (l *Local) Entries() ([]LogEntry, error) {
	first, _ := l.store.FirstIndex()
	last, _ := l.store.LastIndex()
	var out []LogEntry
	for i := first; i != 0 && i <= last; i++ {
		var e raft.Log
		if err := l.store.GetLog(i, &e); err != nil {
			return nil, err
		}
		next := LogEntry{Entry: Entry{Index: e.Index, Term: e.Term}}
		if e.Type == raft.LogConfiguration {
			next.Members = toMembers(raft.DecodeConfiguration(e.Data))
		} else {
			next.Data, next.Marker = e.Data, isMarker(&e)
		}
		out = append(out, next)
	}
	return out, nil
}

// Store appends entries; from the first one's index on they replace the log.
func (l *Local) Store(entries ...LogEntry) error { return l.store.StoreLogs(asLogs(entries)) }

// Delete removes the entries from..to, at the beginning or the end of the log.
func (l *Local) Delete(from, to uint64) error { return l.store.DeleteRange(from, to) }

func asLogs(entries []LogEntry) []*raft.Log {
	logs := make([]*raft.Log, len(entries))
	for i, e := range entries {
		logs[i] = &raft.Log{Index: e.Index, Term: e.Term, Type: raft.LogCommand, Data: e.Data}
		if e.Marker {
			logs[i].Extensions = markerExtension
		}
		if e.Members != nil {
			logs[i].Type, logs[i].Data = raft.LogConfiguration, raft.EncodeConfiguration(fromMembers(e.Members))
		}
	}
	return logs
}

// Apply hands committed entries to the machine. The results are one for each
// entry. The error is a *HaltError: nothing is applied any more.
func (l *Local) Apply(entries []LogEntry) ([]any, error) {
	results := l.fsm.ApplyBatch(asLogs(entries))
	for i, r := range results {
		o := r.(outcome)
		if o.err != nil {
			return nil, o.err
		}
		results[i] = o.result
	}
	return results, nil
}

func fromMembers(members []Member) (conf raft.Configuration) {
	for _, m := range members {
		s := raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Addr), Suffrage: raft.Nonvoter}
		if m.Voter {
			s.Suffrage = raft.Voter
		}
		conf.Servers = append(conf.Servers, s)
	}
	return conf
}

// Promise is what the files tell that the replica has promised, see Promise.
func (l *Local) Promise() (Promise, error) {
	var p filesPromise
	var err error
	if p.term, err = l.Term(); err != nil {
		return Promise{}, err
	}
	if p.voteTerm, err = l.store.stable.GetUint64([]byte(keyLastVoteTerm)); err != nil && !errors.Is(err, errNotFound) {
		return Promise{}, err
	}
	entries, err := l.Entries()
	if n := len(entries); n > 0 {
		p.last, p.lastTerm = entries[n-1].Index, entries[n-1].Term
	}
	return p.promise(l.snaps), err
}

// Snapshot takes a snapshot of the machine, which has applied the entry at index, with
// the membership there.
func (l *Local) Snapshot(index, term uint64, members Membership) error {
	cp, err := l.fsm.Snapshot()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCaughtUp, err)
	}
	defer cp.Release()
	return l.persist(cp, index, term, members)
}

// SnapshotAnew is the first snapshot of a log that begins at the machine's cursor.
func (l *Local) SnapshotAnew() error {
	index, term := l.fsm.machine.AppliedIndex()
	cp, err := l.fsm.checkpoint(index, term)
	if err != nil {
		return err
	}
	defer cp.Release()
	return l.persist(cp, index, term, Membership{})
}

func (l *Local) persist(cp raft.FSMSnapshot, index, term uint64, members Membership) error {
	sink, err := l.snaps.Create(1, index, term, fromMembers(members.Members), max(1, members.Index), nil)
	if err != nil {
		return err
	}
	if err := cp.Persist(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return nil
}

// Newest returns the last entry that the newest snapshot holds, and the membership
// there if it has one; zeroes if there is no snapshot.
func (l *Local) Newest() (index, term uint64, members Membership) {
	s := l.snaps.latest()
	if s == nil {
		return 0, 0, members
	}
	if len(s.man.Servers) > 0 {
		members = Membership{Index: s.man.ConfIndex, Members: toMembers(toConfiguration(s.man.Servers))}
	}
	return s.man.Index, s.man.Term, members
}

// Read returns the newest snapshot in the form in which it is sent to a peer.
func (l *Local) Read() (data []byte, err error) {
	_, r, err := l.snaps.Open(l.snaps.latest().id)
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// Install takes a snapshot that a peer sent, keeps it and hands it to the machine,
// as the raft library does.
func (l *Local) Install(index, term uint64, members Membership, data []byte) error {
	sink, err := l.snaps.Create(1, index, term, fromMembers(members.Members), max(1, members.Index), nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sink, bytes.NewReader(data)); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	return restoreSnapshot(l.fsm, l.snaps, sink.ID())
}

// restoreSnapshot hands a stored snapshot to the machine.
func restoreSnapshot(f *fsm, snaps *snapshotStore, id string) error {
	_, source, err := snaps.Open(id)
	if err != nil {
		return err
	}
	return errors.Join(f.Restore(source), source.Close())
}
