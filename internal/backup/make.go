package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// Source is the node that is backed up.
type Source interface {
	// Log writes what follows marks, one for each shard in order, separated by commas; ""
	// is all of the log.
	Log(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error)
	// Keys writes the keyring, with its master key if asked.
	Keys(ctx context.Context, w io.Writer, withMaster bool) error
	Destroyed(ctx context.Context) (memory.DestroyedKeys, error)
}

// Options say how a backup is made.
type Options struct {
	Full bool // all of the log, though there is a backup to go on from
	// WithoutMaster leaves the master key out of the keys: they open beside it only.
	WithoutMaster bool
	// WithoutUnreadable passes over manifests and lists that cannot be read: what they alone
	// know as destroyed comes back.
	WithoutUnreadable bool
	Now               func() time.Time
	Version           string // of the program
}

// Make makes a backup in two places, for the log and for the keys, and removes there what no
// backup needs. In a place of a cluster that this one was made of it begins an era, with all of
// the log. Errors: CodeConflict where a place holds backups of any other cluster, or the node's log does not go on from the newest one; those of the source and of the places.
func Make(ctx context.Context, src Source, to, keysTo Place, opt Options) (memory.BackupMade, error) {
	started := time.Now()
	set, err := ReadSet(ctx, to)
	if err != nil {
		return memory.BackupMade{}, err
	}
	r := &run{src: src, to: to, keysTo: keysTo, opt: opt, set: set}
	defer func() { r.head.Wipe() }()
	if err := r.make(ctx); err != nil {
		return memory.BackupMade{}, err
	}
	m := &r.m
	out := memory.BackupMade{ID: m.ID, Parent: m.Parent, Cluster: m.Cluster, MadeAt: m.MadeAt, Position: m.Position(), Frames: r.frames, Events: m.Events(),
		Bytes: m.Log.Bytes, Destroyed: r.destroyed.Count(), Unknown: r.unknown, Begun: r.begun}
	w, err := r.set.waste(ctx, keysTo, opt.Now(), false)
	if err == nil {
		out.Removed, err = r.set.tidy(ctx, w, keysTo, opt.Now())
	}
	out.KeysKept = w.kept
	out.TookMS = time.Since(started).Milliseconds()
	if err != nil {
		return out, fmt.Errorf("the backup %s is made; what no backup needs could not be removed: %w", m.ID, err)
	}
	return out, nil
}

// run is a backup being made.
type run struct {
	src        Source
	to, keysTo Place
	opt        Options
	set        *Set

	m         Manifest
	head      *keyring.BackupHead // of the keys that were written
	former    []string            // clusters that the node knows as former
	begun     string              // why it goes on from nothing
	frames    uint64
	destroyed Destroyed
	unknown   int // of them, what the node does not know as destroyed
}

func (r *run) make(ctx context.Context) error {
	before, err := r.src.Destroyed(ctx)
	if err != nil {
		return err
	}
	if err := r.set.whole(r.opt.WithoutUnreadable); err != nil {
		return err
	}
	r.m = Manifest{ID: newID(r.opt.Now()), Cluster: before.ClusterID, Version: r.opt.Version}
	r.former = before.Former
	if err := r.goesOn(); err != nil {
		return err
	}
	base, err := r.base(ctx)
	if err != nil {
		return err
	}
	if err := r.log(ctx, base); err != nil {
		return err
	}
	if err := r.keys(ctx); err != nil {
		return err
	}
	// What other runs have made or removed meanwhile counts.
	if r.set, err = ReadSet(ctx, r.to); err != nil {
		return err
	}
	r.set.authenticate(r.head)
	if err := r.goesOn(); err != nil {
		return err
	}
	if base != nil && r.set.damaged(base.ID) {
		return memory.Errorf(memory.CodeLogDiverged, "%s in %s cannot be gone on from: %v", base.name(), r.to, errForged).
			WithHint("look who may write to %s, and put it back or remove it; with --full and --without-unreadable a backup does without it", r.to)
	}
	if err := r.set.whole(r.opt.WithoutUnreadable); err != nil {
		return err
	}
	after, err := r.src.Destroyed(ctx)
	if err != nil {
		return err
	}
	known, err := r.set.destroyed(ctx, r.opt.WithoutUnreadable)
	if err != nil {
		return err
	}
	// A node that came back from an older copy of itself has forgotten what it destroyed.
	r.destroyed = Destroyed(after).with(known)
	r.unknown = r.destroyed.Count() - Destroyed(after).Count()
	if !r.destroyed.equal(Destroyed(before).with(Destroyed{})) {
		for i := range r.m.Shards {
			r.m.Shards[i].StateHash = "" // it may be that of a state with what a restore destroys
		}
	}
	r.m.MadeAt = r.opt.Now().UTC().Truncate(time.Second)
	if last := r.set.newest(); last != nil && !r.m.MadeAt.After(last.MadeAt) {
		r.m.MadeAt = last.MadeAt.Add(time.Second) // a clock that went back does not change which is the newest
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	if err := r.manifest(ctx); err != nil {
		return err
	}
	return r.stands(ctx)
}

// goesOn refuses a place that holds backups of a cluster that is neither this one nor one that
// it goes on from, as it says itself or as backups of those there do.
func (r *run) goesOn() error {
	r.m.Former = r.set.ancestors(r.m.Cluster, r.former)
	for i := range r.set.Backups {
		m := &r.set.Backups[i]
		if m.Cluster == r.m.Cluster || slices.Contains(r.m.Former, m.Cluster) {
			continue
		}
		err := memory.Errorf(memory.CodeConflict, "%s holds backups of the cluster %s, and this one is %s", r.to, m.Cluster, r.m.Cluster)
		if r.set.goesOnFrom(m.Cluster, r.m.Cluster) {
			return err.WithHint("%s was made of this one and took its place: stop the nodes that still are this one, or give it a place of its own", m.Cluster)
		}
		return err.WithHint("give each cluster a place of its own")
	}
	return nil
}

// stands looks whether all is there that a backup goes on from, once its manifest is: from
// then on nobody prunes that. A backup of which it is not there is taken back.
func (r *run) stands(ctx context.Context) error {
	set, err := ReadSet(ctx, r.to)
	if err != nil {
		return err
	}
	r.set = set
	err = r.goesOn()
	if err == nil {
		err = r.parentsThere(ctx)
	}
	if err != nil {
		err = errors.Join(err, r.to.Remove(ctx, r.m.name()))
	}
	return err
}

// parentsThere fails where what the backup goes on from was removed while it was made.
func (r *run) parentsThere(ctx context.Context) error {
	if r.m.Parent == "" {
		return nil
	}
	chain, problem := r.set.chain(&r.m)
	if problem == nil {
		files, err := r.to.List(ctx, folderLog)
		if err != nil {
			return err
		}
		problem = missing(chain, sizes(files))
	}
	if problem == nil {
		return nil
	}
	return memory.Errorf(memory.CodeConflict, "the backup that this one goes on from was removed while it was made, and no backup was made: %s: %s", problem.Backup, problem.Detail).
		WithHint("run it again")
}

// base is the backup to go on from: the newest one, if all of its chain is there.
func (r *run) base(ctx context.Context) (*Manifest, error) {
	m := r.set.newest()
	if m == nil || r.opt.Full {
		return nil, nil
	}
	if m.Cluster != r.m.Cluster {
		r.begun = fmt.Sprintf("the backups before are of the cluster %s, of which this one, %s, was made: an era begins with all of the log", m.Cluster, r.m.Cluster)
		return nil, nil
	}
	chain, problem := r.set.chain(m)
	if problem == nil {
		files, err := r.to.List(ctx, folderLog)
		if err != nil {
			return nil, err
		}
		problem = missing(chain, sizes(files))
	}
	if problem != nil {
		r.begun = fmt.Sprintf("%s cannot be gone on from: %s: %s", m.ID, problem.Backup, problem.Detail)
		return nil, nil
	}
	return m, nil
}

func sizes(files []Info) map[string]int64 {
	out := map[string]int64{}
	for _, f := range files {
		out[f.Name] = f.Size
	}
	return out
}

// missing finds a link of a chain whose range of the log is not there, or has another size.
func missing(chain []*Manifest, files map[string]int64) *memory.BackupProblem {
	for _, m := range chain {
		size, there := files[m.logName()]
		if !there {
			return &memory.BackupProblem{Backup: m.ID, Kind: memory.BackupMissing, Detail: m.logName() + " is not there"}
		}
		if size != m.Log.Bytes {
			kind := memory.BackupChanged
			if size < m.Log.Bytes {
				kind = memory.BackupTruncated
			}
			return &memory.BackupProblem{Backup: m.ID, Kind: kind, Detail: fmt.Sprintf("%s has %d bytes, and had %d", m.logName(), size, m.Log.Bytes)}
		}
	}
	return nil
}

func (r *run) log(ctx context.Context, base *Manifest) error {
	after := ""
	if base != nil {
		r.m.Parent, after = base.ID, JoinMarks(base.ends())
	}
	var report memory.BackupReport
	ref, err := put(ctx, r.to, r.m.logName(), func(w io.Writer) (err error) {
		report, err = r.src.Log(ctx, w, after)
		return err
	})
	if err != nil {
		return err
	}
	r.m.Log, r.m.Pipeline, r.frames = ref, report.PipelineVersion, report.Frames
	counts, sections, err := r.readBack(ctx)
	if err != nil {
		return err
	}
	positions, hashes := strings.Split(report.Position, ","), strings.Split(report.StateHash, ",")
	if len(positions) != len(sections) || base != nil && len(base.Shards) != len(sections) {
		return fmt.Errorf("the node wrote %d shards and told the positions %q", len(sections), report.Position)
	}
	for i, s := range sections {
		if s.Cluster.String() != r.m.Cluster {
			return fmt.Errorf("the node is of the cluster %s and wrote a log of %s", r.m.Cluster, s.Cluster)
		}
		one := Range{After: s.After, End: s.End, Position: positions[i], Events: counts[i]}
		if s.Frames == 0 && base != nil {
			one.Position = base.Shards[i].Position
		}
		if len(hashes) == len(sections) {
			one.StateHash = hashes[i]
		}
		r.m.Shards = append(r.m.Shards, one)
	}
	if p := meet(base, &r.m); p != nil {
		return fmt.Errorf("the node did not write what was asked for: %s", p.Detail)
	}
	return nil
}

// readBack reads the range of the log that was written, and says what is in it.
func (r *run) readBack(ctx context.Context) (counts []uint64, found []Section, err error) {
	in, err := openAs(ctx, r.to, r.m.logName(), r.m.Log)
	if err == nil {
		counted := map[uint16]uint64{}
		found, err = ReadLog(in, func(shard uint16, _ uint64, data []byte) error {
			if f, err := events.DecodeFrame(data); err == nil {
				counted[shard] += uint64(len(f.Events))
			}
			return ctx.Err()
		})
		err = errors.Join(err, in.Close())
		for i := range found {
			counts = append(counts, counted[uint16(i)])
		}
	}
	return counts, found, notKept(r.to, r.m.logName(), err)
}

// notKept says that a place does not give back what it took.
func notKept(to Place, name string, err error) error {
	if errors.Is(err, ErrNotIntact) || errors.Is(err, fs.ErrNotExist) {
		return memory.Errorf(memory.CodeLogDiverged, "%s does not hold what was written there, and no backup was made: %s: %v", to, name, err).
			WithHint("look at its disk, or at what stands before the bucket; then run it again").WithCause(err)
	}
	return err
}

func (r *run) keys(ctx context.Context) (err error) {
	name := r.m.keysName()
	if r.m.Keys, err = put(ctx, r.keysTo, name, func(w io.Writer) error { return r.src.Keys(ctx, w, !r.opt.WithoutMaster) }); err != nil {
		return err
	}
	b, err := readAs(ctx, r.keysTo, name, r.m.Keys)
	if err == nil {
		r.head, err = keyring.ReadBackupHead(b)
	}
	clear(b)
	if err != nil {
		return notKept(r.keysTo, name, err)
	}
	if !r.head.Complete() {
		return memory.Errorf(memory.CodeInvalid, "the node gave keys that do not tell what they hold: it runs an earlier program").
			WithHint("upgrade memnode, then run it again")
	}
	return nil
}

// list writes the list of what was destroyed, if it is not there.
func (r *run) list(ctx context.Context) error {
	b, err := r.destroyed.encode()
	if err != nil {
		return err
	}
	s := newSummer()
	_, _ = s.Write(b)
	r.m.Destroyed = s.ref()
	name := r.m.destroyedName()
	if _, err = readAs(ctx, r.to, name, r.m.Destroyed); err == nil {
		return nil
	}
	return r.write(ctx, name, b)
}

func (r *run) manifest(ctx context.Context) error {
	if err := r.parentsThere(ctx); err != nil {
		return err
	}
	b, err := r.m.encode(r.head)
	if err != nil {
		return err
	}
	if err := r.write(ctx, r.m.name(), b); err != nil {
		return errors.Join(err, r.to.Remove(context.WithoutCancel(ctx), r.m.name()))
	}
	return nil
}

// write makes a small file and reads it back.
func (r *run) write(ctx context.Context, name string, b []byte) error {
	ref, err := put(ctx, r.to, name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	_, err = readAs(ctx, r.to, name, ref)
	return notKept(r.to, name, err)
}
