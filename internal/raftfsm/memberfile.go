package raftfsm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// memberFile keeps the newest membership that this replica has seen, outside
// raft.db, so that after a loss of raft.db it is still known whether other
// voters exist. It is written before the entry that carries the membership is
// stored, and by a snapshot if that is newer. Two sources that disagree (this
// file and the newest snapshot) count as several voters.
type memberFile struct {
	fs   vfs.FS
	path string

	mu    sync.Mutex
	index uint64
	conf  raft.Configuration
	known bool
}

type memberServer struct {
	Suffrage int    `json:"suffrage"` // 0 voter, 1 non-voter, 2 staging
	ID       string `json:"id"`
	Address  string `json:"address"`
}

type memberRecord struct {
	Index   uint64         `json:"index"`
	Servers []memberServer `json:"servers"`
}

// openMemberFile reads the file; a damaged one counts as unknown and is reported
// in the error together with a usable value.
func openMemberFile(fsys vfs.FS, path string) (*memberFile, error) {
	m := &memberFile{fs: fsys, path: path}
	b, err := storage.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read membership: %w", err)
	}
	body, err := openDocument(magicMembers, b)
	if err != nil {
		return m, fmt.Errorf("read membership: %w", err)
	}
	var rec memberRecord
	if err := json.Unmarshal(body, &rec); err != nil {
		return m, fmt.Errorf("read membership: %w: %w", ErrCorruptLog, err)
	}
	m.index, m.conf, m.known = rec.Index, toConfiguration(rec.Servers), true
	return m, nil
}

// save stores the membership that is about to be appended to the log.
func (m *memberFile) save(index uint64, conf raft.Configuration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := json.Marshal(memberRecord{Index: index, Servers: fromConfiguration(conf)})
	if err != nil {
		return fmt.Errorf("save membership: %w", err)
	}
	// Under the lock: memberships are rare, and the file follows their order.
	if err := storage.ReplaceFile(m.fs, m.path, sealDocument(magicMembers, body), 0o600); err != nil {
		return fmt.Errorf("save membership: %w", err)
	}
	m.index, m.conf, m.known = index, conf.Clone(), true
	return nil
}

// saveNewer stores a snapshot's membership unless that index is known already.
func (m *memberFile) saveNewer(index uint64, conf raft.Configuration) error {
	if have, _, known := m.get(); known && index <= have {
		return nil
	}
	return m.save(index, conf)
}

func (m *memberFile) get() (index uint64, conf raft.Configuration, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index, m.conf.Clone(), m.known
}

// onlyVoter tells whether id is the one voter and nobody else is in the group.
func onlyVoter(conf raft.Configuration, id raft.ServerID) bool {
	return len(conf.Servers) == 1 && conf.Servers[0].ID == id && conf.Servers[0].Suffrage == raft.Voter
}

func fromConfiguration(conf raft.Configuration) []memberServer {
	out := make([]memberServer, len(conf.Servers))
	for i, s := range conf.Servers {
		out[i] = memberServer{Suffrage: int(s.Suffrage), ID: string(s.ID), Address: string(s.Address)}
	}
	return out
}

func toConfiguration(servers []memberServer) raft.Configuration {
	var conf raft.Configuration
	for _, s := range servers {
		conf.Servers = append(conf.Servers, raft.Server{
			Suffrage: raft.ServerSuffrage(s.Suffrage), ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address),
		})
	}
	return conf
}
