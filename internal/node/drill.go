package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mneme/internal/backup"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/memory"
)

// drillPrefix begins the names of the directories that drills work in. Each is locked as
// long as its drill runs.
const drillPrefix = "mneme-drill-"

// Drill restores a backup into a directory that it makes in scratch, opens it, reads its log
// against its state, compares state hashes with those that were backed up, and removes it
// whatever came of it, with what killed drills left there. It listens to nobody but itself
// and touches no other node. A master key that the keys carry is not written. A state that
// differs is reported; an error is a backup that cannot be restored.
func (o Offline) Drill(ctx context.Context, scratch string, from backup.Chosen, progress func(done, total uint64)) (out memory.BackupDrillReport, err error) {
	started := time.Now()
	o.Config.setDefaults()
	m := &from.Manifest
	out = memory.BackupDrillReport{Backup: m.ID, MadeAt: m.MadeAt, BackupErasOf: from.Eras()}
	if o.Config.MasterKey == nil {
		if o.Config.MasterKey, err = keyring.MasterInBackup(from.Keys); err != nil {
			return out, publicError(startError("keyring", err))
		}
	}
	if err := o.sweepDrills(scratch); err != nil {
		return out, err
	}
	place := filepath.Join(scratch, drillPrefix+strings.ToLower(rand.Text()[:10]))
	lock, err := lockDataDir(o.Config.FS, place)
	if err != nil {
		return out, publicError(err)
	}
	defer func() {
		err = errors.Join(err, lock.unlock(), o.Config.FS.RemoveAll(place))
	}()
	dir := filepath.Join(place, "data")
	restored, err := o.RestoreFrom(ctx, dir, RestoreSource{Log: from.Log, Keys: from.Keys, Destroyed: from.Destroyed, Place: &from}, progress)
	if err != nil {
		return out, drillError(scratch, err)
	}
	out.Destroyed, out.DestroyedLiving = restored.Destroyed, restored.DestroyedLiving
	out.NotCompared = notComparable(from, len(restored.Shards))
	out.OK = true
	for i, s := range restored.Shards {
		one := memory.BackupDrillShard{ID: s.ID, Position: s.Position, StateHash: s.StateHash, Events: s.Events}
		if out.NotCompared == "" {
			one.Want = m.Shards[i].StateHash
		}
		one.Same = one.Want == one.StateHash
		out.Shards = append(out.Shards, one)
	}
	err = o.with(ctx, dir, func(c *core) error {
		for i, s := range c.shards {
			records, ok, err := stopped{s}.inspect(ctx)
			if err != nil {
				return err
			}
			out.Records += records
			out.Shards[i].LogOK = ok
			out.OK = out.OK && ok && (out.Shards[i].Same || out.NotCompared != "")
		}
		return nil
	})
	out.TookMS = time.Since(started).Milliseconds()
	return out, err
}

// inspect opens the state and reads the log against it.
func (s stopped) inspect(ctx context.Context) (records uint64, ok bool, err error) {
	state, stateErr, err := s.open(ctx)
	if err = errors.Join(err, stateErr); err != nil {
		return 0, false, err
	}
	v := state.View()
	records, _ = v.Totals()
	report, _, err := s.verifyLog(ctx, v, nil)
	return records, report.OK, errors.Join(err, v.Close())
}

// notComparable says why a restored state may have another hash than the one that was backed
// up; "" where it may not.
func notComparable(from backup.Chosen, shards int) string {
	m := &from.Manifest
	for _, s := range m.Shards {
		if s.StateHash == "" {
			return "the backup has no state hash: the state was behind the log, or something was erased meanwhile"
		}
	}
	switch {
	case len(m.Shards) != shards:
		return fmt.Sprintf("the backup has %d shards, the log in it %d", len(m.Shards), shards)
	case m.Pipeline != projections.PipelineVersion:
		return fmt.Sprintf("the backup was made with pipeline version %d, this program has %d", m.Pipeline, projections.PipelineVersion)
	case from.Since > 0:
		return fmt.Sprintf("%d keys were destroyed since: the state is the one after that", from.Since)
	}
	return ""
}

func drillError(scratch string, err error) error {
	if memory.CodeOf(err) != memory.CodeNoSpace {
		return err
	}
	return memory.Errorf(memory.CodeNoSpace, "there is no room in %s to restore the backup: %v", scratch, err).
		WithHint("name a directory on a larger disk with --scratch").WithCause(err)
}

// sweepDrills removes what killed drills of this user have left: nobody holds its lock. What
// others put there under such a name, or a link, is left alone.
func (o Offline) sweepDrills(scratch string) error {
	names, err := o.Config.FS.List(scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return memory.Errorf(memory.CodeInvalid, "there is no directory %s", scratch).WithHint("make it, or name another one with --scratch")
	}
	for _, name := range names {
		place := filepath.Join(scratch, name)
		if !strings.HasPrefix(name, drillPrefix) || !ownFolder(place) {
			continue
		}
		lock, locked := lockDataDir(o.Config.FS, place)
		if locked != nil {
			continue // of a drill that runs
		}
		err = errors.Join(err, lock.unlock(), o.Config.FS.RemoveAll(place))
	}
	return err
}

// ownFolder reports whether a path is a folder of this user, and no link to one.
func ownFolder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	uid, _ := ownerOf(info)
	return uid == os.Geteuid() || os.Geteuid() < 0 // where there are no owners
}
