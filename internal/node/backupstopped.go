package node

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/storage"
	"mneme/memory"
)

// A stopped node of a cluster has the log in three places: its state keeps every frame up
// to where it stands; behind it Raft's log has those that were proposed, which the log had
// acknowledged before, and the node's copy of the log those that its server knew to be
// agreed on. A backup puts them together by the chain that each frame continues, and changes
// nothing: what stands in Raft's log may yet be given up by the group, and a server that
// opens the copy alone deletes it. What the other nodes acknowledged behind that is not in it.

// remains is what a stopped node of a cluster holds of the log of one shard.
type remains struct {
	*shard
	view *projections.View
	raft [][]byte        // frames behind the state
	own  eventlog.Stream // the node's copy of the log; nil where there is none
	last uint64          // as far as the frames continue each other and can be opened
	made []events.Header // namespaces that the frames behind the state make
}

// notHere is what helps where a stopped node of a cluster cannot be backed up.
const notHere = "back up another node, one that runs if there is one; where none can be, memctl restore an earlier backup"

// remains opens what the node holds of the shard's log, and tells what is left out of it.
func (s recovered) remains(ctx context.Context, lacks func(what string, err error)) (*remains, error) {
	state, err := projections.Open(projections.Options{Dir: s.dir.state(s.id), FS: s.files, Logger: s.cfg.Logger, ReadOnly: true})
	if err != nil {
		return nil, memory.Errorf(memory.CodeLogDiverged, "the state of shard %d cannot be used: %v", s.id, err).WithHint("%s", notHere).WithCause(err)
	}
	s.onClose("state", func(context.Context) error { return state.Close() })
	if err := s.checkKeys(state); storage.IsCorrupt(err) {
		lacks(fmt.Sprintf("a look at whether the keyring has all keys of shard %d", s.id), err)
	} else if err != nil {
		return nil, err
	}
	r := &remains{shard: s.shard, view: state.View()}
	s.onClose("view", func(context.Context) error { return r.view.Close() })
	at := r.view.Cursor()
	found, reaches, err := s.survivor().Inspect()
	if err == nil {
		r.raft, err = s.survivor().Frames(at)
	}
	if err = errors.Join(err, found.Damage); err != nil {
		lacks(fmt.Sprintf("the newest entries of Raft's log of shard %d", s.id), err)
	}
	if r.own, err = s.log(&at); err != nil {
		lacks(fmt.Sprintf("the node's copy of the log of shard %d", s.id), err)
	}
	if r.own != nil {
		info, _ := r.own.Info(ctx) // it does not fail
		reaches = max(reaches, info.Last)
	}
	if err := r.extend(ctx); err != nil || r.last < reaches {
		lacks(fmt.Sprintf("shard %d behind %d, of which the node knows up to %d", s.id, r.last, max(reaches, r.last)), err)
	}
	if r.last == 0 {
		return nil, memory.Errorf(memory.CodeInvalid, "the node has nothing of shard %d yet", s.id).WithHint("%s", notHere)
	}
	return r, nil
}

// extend finds how far the frames go on behind the state. One is left out whose keys the
// keyring lacks: with it the backup could not be restored.
func (r *remains) extend(ctx context.Context) error {
	at := r.view.Cursor()
	r.last = at.Seq
	d, err := derive.New(r.keys, r.view)
	for err == nil {
		var b []byte
		b, err = r.frame(ctx, at.Seq+1)
		if errors.Is(err, eventlog.ErrNotFound) {
			return nil
		}
		if err == nil && len(r.raft) == 0 && at.Seq == r.view.Cursor().Seq {
			err = continued(b, &at)
		}
		var f events.Frame
		var valid bool
		if err == nil {
			f, valid, err = at.Follow(b)
		}
		if err == nil && valid {
			_, err = d.Frame(&f, nil)
		}
		if err == nil && valid {
			err = r.takes(&f)
		}
		if err == nil {
			r.last = at.Seq
		}
	}
	return err
}

// takes refuses a frame that tells of a key, or of a namespace, whose keys the keyring lacks:
// a state that has folded it would not open beside that keyring, though nothing in the frame
// is sealed under them. It notes which namespaces the frame makes.
func (r *remains) takes(f *events.Frame) error {
	for _, b := range f.Events {
		e, err := events.DecodeEnvelope(b)
		if err != nil {
			continue // the fold passes over it
		}
		switch e.Type {
		case events.TypeKeyCreated:
			_, err = r.keys.KeyByID(e.Key)
		case events.TypeNamespaceCreated, events.TypeNamespacePlaced:
			_, err = r.keys.Namespace(e.Namespace)
			r.made = append(r.made, e.Header)
		}
		if errors.Is(err, keyring.ErrNoKey) {
			return fmt.Errorf("frame %d: %s: %w", f.Seq, e.Header.String(), err)
		}
	}
	return nil
}

// frame is a message of the log. One that the state can no longer give may be in the copy.
func (r *remains) frame(ctx context.Context, seq uint64) (b []byte, err error) {
	at := r.view.Cursor().Seq
	if seq <= at {
		if b, err = stateFrames(r.view)(seq); err == nil {
			return b, nil
		}
	} else if seq <= at+uint64(len(r.raft)) {
		return r.raft[seq-at-1], nil
	}
	if r.own != nil {
		if m, missing := r.own.Get(ctx, seq); missing == nil {
			return m.Data, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("frame %d: %w", seq, eventlog.ErrNotFound)
	}
	return nil, err
}

// read hands out all messages. Those of the state have to be what it applied, or none of
// them counts.
func (r *remains) read(ctx context.Context, message func(eventlog.Message) error) error {
	at, chain := r.view.Cursor(), events.Chain{}
	for seq := uint64(1); seq <= r.last; seq++ {
		b, err := r.frame(ctx, seq)
		if err == nil {
			chain = events.NextChain(chain, seq, b)
			if seq == at.Seq && chain != at.Chain {
				err = errors.New("the state does not hold the messages that it was made of")
			}
		}
		if err != nil {
			return memory.Errorf(memory.CodeLogDiverged, "backup: message %d of shard %d: %v", seq, r.id, err).WithHint("%s", notHere).WithCause(err)
		}
		if err := errors.Join(message(eventlog.Message{Seq: seq, Data: b}), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// unplaced are the namespaces that live in a shard, and of which what the node holds of the
// directory's says nothing: it stopped between the two.
func (r *remains) unplaced(directory *remains) (names []string) {
	placed := map[events.ID]bool{}
	for _, h := range directory.made {
		placed[h.Namespace] = true
	}
	look := func(ns events.ID, name string) {
		if _, ok := directory.view.NamespaceByID(ns); !ok && !placed[ns] {
			names = append(names, name)
		}
	}
	for _, ns := range r.view.Namespaces() {
		look(ns.ID, ns.Name)
	}
	for _, h := range r.made {
		look(h.Namespace, h.Name)
	}
	return names
}

// backupMember backs up a stopped node of a cluster.
func (o Offline) backupMember(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.BackupReport, error) {
	c, err := o.openClusterDir(dir)
	if err != nil {
		return memory.BackupReport{}, publicError(errors.Join(err, c.close(ctx)))
	}
	out, err := c.backupMember(ctx, logPath, keysPath, progress)
	return out, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

func (c *core) backupMember(ctx context.Context, logPath, keysPath string, progress func(done, total uint64)) (memory.BackupReport, error) {
	stopped := &memory.StoppedMember{Node: c.dir.node.NodeID, Lacks: []string{}}
	lacks := func(what string, err error) {
		if err != nil {
			what = fmt.Sprintf("%s: %v", what, err)
		}
		stopped.Lacks = append(stopped.Lacks, what)
	}
	held := make([]*remains, len(c.shards))
	for i, s := range c.shards {
		var err error
		if held[i], err = (recovered{s}).remains(ctx, lacks); err != nil {
			return memory.BackupReport{}, err
		}
		for _, name := range held[i].unplaced(held[shard0]) {
			lacks(fmt.Sprintf("the directory's entry of namespace %s, whose memories in shard %d nobody finds without it", name, s.id), nil)
		}
	}
	out, err := c.writeBackup(logPath, keysPath, func(s *shard, w io.Writer) (memory.BackupReport, error) {
		r := held[s.id]
		return s.writeLog(w, backup.Mark{Shard: s.id}, r.last, func(f func(eventlog.Message) error) error { return r.read(ctx, f) }, progress)
	})
	out.Stopped = stopped
	return out, err
}

// memberOf is the id of the cluster's node to which a data directory belongs; "" if it is
// not one's, or cannot be read.
func memberOf(fsys vfs.FS, path string) (id string) {
	for _, name := range []string{nodeCopy, nodeJSON} {
		if node, err := readNodeFile(fsys, fsys.PathJoin(path, name)); err == nil && node.Mode == modeCluster {
			id = node.NodeID
		}
	}
	return id
}
