package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"mneme/internal/backup"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/memory"
)

// BackupLog writes the logs up to their present ends: the whole of them, or, where marks are
// given, one for each shard, separated by commas, what follows those. It says which states
// hold that, if it can.
func (u *upkeep) BackupLog(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	var report memory.BackupReport
	marks, err := u.n.marks(after)
	if err != nil {
		return report, err
	}
	for i, s := range slices.Backward(u.n.served) {
		one, err := s.backup(ctx, w, marks[i])
		if err != nil {
			return memory.BackupReport{}, err
		}
		report = together(one, report)
	}
	return report, nil
}

// marks reads marks, one for each shard, in order; none are the beginnings.
func (c *core) marks(list string) ([]backup.Mark, error) {
	marks, err := backup.ParseMarks(list)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("give the marks as the manifest of a backup has them")
	}
	if len(marks) == 0 {
		for _, s := range c.shards {
			marks = append(marks, backup.Mark{Shard: s.id})
		}
	}
	for i, m := range marks {
		if int(m.Shard) != i || len(marks) != len(c.shards) {
			return nil, memory.Errorf(memory.CodeConflict, "the backup to go on from has %d shards, this node has %d", len(marks), len(c.shards)).
				WithHint("back up all of it with memctl backup --full")
		}
	}
	return marks, nil
}

// appliedWait bounds how long a backup waits for the state to have applied what the log holds.
const appliedWait = 10 * time.Second

func (s *served) backup(ctx context.Context, w io.Writer, after backup.Mark) (memory.BackupReport, error) {
	if s.peers != nil {
		streams{s.shard}.takeUp() // as for verify
	}
	if d := s.replica.Diverged(); d != nil {
		return memory.BackupReport{}, memory.Errorf(memory.CodeLogDiverged, "backup: the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
	}
	info, err := s.stream.Info(ctx)
	if err != nil {
		return memory.BackupReport{}, notNow(fmt.Errorf("backup: %w", err))
	}
	if err := s.awaitApplied(ctx, info.Last); err != nil {
		return memory.BackupReport{}, err
	}
	v := s.state.View()
	report, err := s.backupLog(ctx, v, info.Last, after, w, nil)
	return report, notNow(errors.Join(err, v.Close()))
}

// awaitApplied waits until the state has applied a message of the log. One that is halted
// does not get there, and its log is backed up all the same.
func (s *served) awaitApplied(ctx context.Context, seq uint64) error {
	late := time.NewTimer(appliedWait)
	defer late.Stop()
	for {
		moved := s.state.Moved()
		if at := s.state.Cursor(); at.Seq >= seq || s.replica.Group().Halted() != nil {
			return nil
		}
		select {
		case <-moved:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// together adds the report of a shard to those of the shards that follow it.
func together(first, rest memory.BackupReport) memory.BackupReport {
	first.Bytes, first.Frames, first.Events = first.Bytes+rest.Bytes, first.Frames+rest.Frames, first.Events+rest.Events
	if rest.Position != "" {
		first.Position += "," + rest.Position
		first.StateHash = bothOrNone(first.StateHash, rest.StateHash)
	}
	return first
}

// bothOrNone joins the hashes of two states; one alone says nothing of a backup.
func bothOrNone(first, rest string) string {
	if first == "" || rest == "" {
		return ""
	}
	return first + "," + rest
}

// keysWait bounds how long a backup waits for the keys that other nodes have.
const keysWait = 10 * time.Second

// BackupKeys writes the keyring; with its master key if asked. Of several nodes one may lack
// a key under which others have sealed what is in the log: it takes it in before.
func (u *upkeep) BackupKeys(ctx context.Context, w io.Writer, withMaster bool) (memory.BackupReport, error) {
	var r memory.BackupReport
	if err := u.allKeysHere(ctx); err != nil {
		return r, err
	}
	for _, s := range slices.Backward(u.n.served) {
		r = together(memory.BackupReport{Position: s.stands()}, r)
	}
	if withMaster {
		return r, u.n.keys.ExportWithMaster(w)
	}
	return r, u.n.keys.Export(w)
}

// allKeysHere waits until this node has what the other nodes have done with the keys.
func (u *upkeep) allKeysHere(ctx context.Context) error {
	p := u.n.peers
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keysWait)
	defer cancel()
	if err := p.keys.CatchUp(ctx); err != nil {
		return memory.Errorf(memory.CodeUnavailable, "the keys of the cluster are not known to be all here: %v", err).
			WithHint("try again once most nodes are there; where they are lost for ever, stop this node: memctl backup --data-dir DIR takes what it has").WithCause(err)
	}
	return nil
}

// DestroyedKeys lists the ids of all keys that were destroyed, in the whole cluster.
func (u *upkeep) DestroyedKeys(ctx context.Context) (memory.DestroyedKeys, error) {
	if err := u.allKeysHere(ctx); err != nil {
		return memory.DestroyedKeys{}, err
	}
	return u.n.destroyedKeys()
}

func (c *core) destroyedKeys() (memory.DestroyedKeys, error) {
	out := memory.DestroyedKeys{ClusterID: c.dir.node.ClusterID, Former: c.dir.former(), Keys: []string{}, Namespaces: []string{}}
	keys, spaces, err := keyring.Destroyed(c.keys)
	for _, id := range keys {
		out.Keys = append(out.Keys, id.String())
	}
	for _, ns := range spaces {
		out.Namespaces = append(out.Namespaces, events.ID(ns).String())
	}
	return out, err
}

// backupLog writes a log that is sound, from behind a mark up to where the state stands, or
// to least if that is further: it is read before anything is written, against the state where
// v is not nil, so that a backup never holds less than the state. Where the two end at one
// place it tells the state's hash.
func (s *shard) backupLog(ctx context.Context, v *projections.View, least uint64, after backup.Mark, w io.Writer, progress func(done, total uint64)) (memory.BackupReport, error) {
	if err := s.soundLog(ctx, v, after); err != nil {
		return memory.BackupReport{}, err
	}
	info, err := s.stream.Info(ctx)
	if err != nil {
		return memory.BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	last := min(least, info.Last)
	if v != nil && info.Last < v.Cursor().Seq {
		return memory.BackupReport{}, toldLess("backup", info.Last, v.Cursor().Seq)
	} else if v != nil {
		last = max(last, v.Cursor().Seq)
	}
	report, err := s.writeLog(w, after, last, func(message func(eventlog.Message) error) error {
		if last <= after.Seq {
			return nil
		}
		return backupError(s.stream.Read(ctx, after.Seq+1, last, message))
	}, progress)
	if v != nil && err == nil && v.Cursor().Seq == last {
		report.StateHash, report.PipelineVersion = v.Hash().String(), projections.PipelineVersion
	}
	return report, err
}

// writeLog writes the shard's section, of the messages behind a mark and up to last that
// read hands out.
func (s *shard) writeLog(w io.Writer, after backup.Mark, last uint64, read func(message func(eventlog.Message) error) error, progress func(done, total uint64)) (memory.BackupReport, error) {
	var report memory.BackupReport
	cluster16, err := events.ParseID(s.dir.node.ClusterID)
	if err != nil {
		return report, err
	}
	section, err := backup.BeginSection(w, cluster16, uint16(len(s.shards)), after)
	if err != nil {
		return report, err
	}
	at := projections.Cursor{Shard: s.id, Seq: after.Seq, Epoch: after.Epoch, Term: after.Term, Chain: after.Chain}
	end := events.Position{Shard: s.id, Epoch: after.Epoch, Seq: after.Seq}
	err = read(func(m eventlog.Message) error {
		report.Frames++
		end = events.Position{Shard: s.id, Epoch: end.Epoch, Seq: m.Seq}
		f, _, err := at.Follow(m.Data)
		if err != nil {
			return err
		}
		if len(f.Events) > 0 {
			report.Events += uint64(len(f.Events))
			end.Epoch, end.Index = f.Epoch, uint32(len(f.Events)-1)
		}
		if progress != nil {
			progress(m.Seq, last)
		}
		return section.Message(m.Seq, m.Data)
	})
	if err != nil {
		return report, err
	}
	report.Position = end.String()
	report.Bytes, err = section.Close(at.Epoch, at.Term)
	return report, err
}

func backupError(err error) error {
	if err == nil {
		return nil
	}
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		return memory.Errorf(memory.CodeLogDiverged, "backup: the log is damaged: %v", gap).WithHint("memctl log repair writes it again from the state").WithCause(err)
	}
	return fmt.Errorf("backup: %w", err)
}

// soundLog refuses a log in which something is wrong behind a mark, or one that does not go
// on from it.
func (s *shard) soundLog(ctx context.Context, v *projections.View, after backup.Mark) error {
	if v != nil && after.Seq > 0 {
		return s.goesOn(ctx, v, after)
	}
	if v != nil {
		report, _, err := s.verifyLog(ctx, v, nil)
		if err == nil && !report.OK {
			return damagedLog("backup", report)
		}
		return err
	}
	r, err := eventlog.Scrub(ctx, s.stream, eventlog.Tail{Shard: s.id, Seq: after.Seq, Chain: after.Chain, Term: after.Term, Epoch: after.Epoch}, nil, nil)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if d := r.Diverged(); d != nil {
		return memory.Errorf(memory.CodeLogDiverged, "backup: the log is damaged: %v", d).WithHint("%s", d.Hint)
	}
	return nil
}

// goesOn reads what the log holds behind a mark, up to where the state stands. It has to be
// what the state applied, and to end in its chain: then the mark is one of this log.
func (s *shard) goesOn(ctx context.Context, v *projections.View, after backup.Mark) error {
	at, chain, hashes := v.Cursor(), after.Chain, ingest.FrameHashes(v)
	if info, err := s.stream.Info(ctx); err != nil {
		return fmt.Errorf("backup: %w", err)
	} else if info.Last < at.Seq {
		return toldLess("backup", info.Last, at.Seq)
	}
	if at.Seq > after.Seq {
		err := s.stream.Read(ctx, after.Seq+1, at.Seq, func(m eventlog.Message) error {
			chain = events.NextChain(chain, m.Seq, m.Data)
			if want, ok := hashes(m.Seq); ok && want != events.HashEnvelope(m.Data) {
				return memory.Errorf(memory.CodeLogDiverged, "backup: the log is damaged: message %d is not the one that the state applied", m.Seq).
					WithHint("memctl log verify says more, memctl log repair writes it again from the state")
			}
			return nil
		})
		if err != nil {
			return backupError(err)
		}
	}
	if at.Seq < after.Seq || chain != at.Chain {
		return memory.Errorf(memory.CodeConflict, "the log of shard %d does not go on from message %d of the backup: it ends at %d, or was another one there, as after a restore of an older backup", s.id, after.Seq, at.Seq).
			WithHint("memctl backup --full writes all of it; the backups before stay what they are")
	}
	return nil
}
