package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// logOf is a node in a test: logs of shards, and what was destroyed.
type logOf struct {
	cluster events.ID
	former  []string   // clusters that it knows as former
	frames  [][][]byte // by shard
	gone    []string
	spaces  []string                // namespaces that were destroyed
	fail    func(w io.Writer) error // instead of the log
	ring    *keyring.Keyring
}

func newLog(t *testing.T, name byte, shards int) *logOf {
	ring, err := keyring.Open(keyring.Options{Dir: "node", FS: vfs.NewMem(), AllowCreate: true, AllowNewStorage: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ring.Close() })
	l := &logOf{frames: make([][][]byte, shards), ring: ring}
	l.cluster[15] = name
	l.write(0, 3)
	return l
}

// head is that of the keys of a node.
func (l *logOf) head(t *testing.T) *keyring.BackupHead {
	t.Helper()
	var b bytes.Buffer
	if err := l.ring.Export(&b); err != nil {
		t.Fatal(err)
	}
	h, err := keyring.ReadBackupHead(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ringLike is a copy of a keyring that has a namespace more.
func ringLike(t *testing.T, of *keyring.Keyring, space events.ID) *keyring.Keyring {
	t.Helper()
	var b bytes.Buffer
	opt := keyring.Options{Dir: "node", FS: vfs.NewMem()}
	if err := errors.Join(of.ExportWithMaster(&b), keyring.Import(opt, &b)); err != nil {
		t.Fatal(err)
	}
	opt.AllowNewStorage = true
	ring, err := keyring.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ring.Close() })
	if err := ring.CreateNamespace(keyring.NamespaceID(space)); err != nil {
		t.Fatal(err)
	}
	return ring
}

// write appends frames to a shard.
func (l *logOf) write(shard, n int) {
	for range n {
		at := l.end(shard, len(l.frames[shard]))
		f := events.Frame{Shard: uint16(shard), Seq: at.Seq + 1, Term: 1, Previous: at.Chain,
			Events: [][]byte{fmt.Appendf(nil, "event %d of shard %d of %s, %s", at.Seq+1, shard, l.cluster, strings.Repeat("x", 100))}}
		l.frames[shard] = append(l.frames[shard], f.Encode())
	}
}

func (l *logOf) end(shard, n int) Mark {
	m := Mark{Shard: uint16(shard)}
	for _, b := range l.frames[shard][:n] {
		m.Seq++
		m.Term, m.Chain = 1, events.NextChain(m.Chain, m.Seq, b)
	}
	return m
}

// Log implements Source.
func (l *logOf) Log(_ context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	var r memory.BackupReport
	if l.fail != nil {
		return r, l.fail(w)
	}
	marks, err := ParseMarks(after)
	if err != nil {
		return r, err
	}
	var positions, hashes []string
	for shard := len(l.frames) - 1; shard >= 0; shard-- {
		from := Mark{Shard: uint16(shard)}
		if marks != nil {
			from = marks[shard]
		}
		if int(from.Seq) > len(l.frames[shard]) || l.end(shard, int(from.Seq)) != from {
			return r, memory.Errorf(memory.CodeConflict, "it does not go on")
		}
		s, err := BeginSection(w, l.cluster, uint16(len(l.frames)), from)
		if err != nil {
			return r, err
		}
		end := l.end(shard, len(l.frames[shard]))
		for i, b := range l.frames[shard][from.Seq:] {
			if err := s.Message(from.Seq+uint64(i)+1, b); err != nil {
				return r, err
			}
			r.Frames++
			r.Events++
		}
		if _, err := s.Close(0, end.Term); err != nil {
			return r, err
		}
		positions = append([]string{events.Position{Shard: uint16(shard), Seq: end.Seq}.String()}, positions...)
		hashes = append([]string{end.Chain.String()}, hashes...)
	}
	r.Position, r.StateHash, r.PipelineVersion = strings.Join(positions, ","), strings.Join(hashes, ","), 8
	return r, nil
}

// Keys implements Source.
func (l *logOf) Keys(_ context.Context, w io.Writer, master bool) error {
	if !master {
		return l.ring.Export(w)
	}
	return l.ring.ExportWithMaster(w)
}

// Destroyed implements Source.
func (l *logOf) Destroyed(context.Context) (memory.DestroyedKeys, error) {
	return memory.DestroyedKeys{ClusterID: l.cluster.String(), Former: slices.Clone(l.former), Keys: slices.Clone(l.gone), Namespaces: slices.Clone(l.spaces)}, nil
}

// becomes is a node whose data are made another cluster's, with the log and the keys that it
// has.
func (l *logOf) becomes(name byte) *logOf {
	next := *l
	next.former = append(slices.Clone(l.former), l.cluster.String())
	next.cluster[15] = name
	next.frames = make([][][]byte, len(l.frames))
	for i := range l.frames {
		next.frames[i] = slices.Clone(l.frames[i])
	}
	next.gone, next.spaces = slices.Clone(l.gone), slices.Clone(l.spaces)
	next.write(0, 1)
	return &next
}

func (l *logOf) destroy(n int) { l.gone = append(l.gone, fmt.Sprintf("%032x", n)) }

// mem is a place in memory, which may lie.
type mem struct {
	files map[string][]byte
	times map[string]time.Time
	now   time.Time
	lie   func(name string, b []byte) []byte // what is kept of what was sent
	away  error
}

func newMem(now time.Time) *mem {
	return &mem{files: map[string][]byte{}, times: map[string]time.Time{}, now: now}
}

func (m *mem) String() string { return "the place" }

func (m *mem) List(_ context.Context, folder string) (out []Info, err error) {
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if path.Dir(name) == folder {
			out = append(out, Info{name, int64(len(m.files[name])), m.times[name]})
		}
	}
	return out, m.away
}

func (m *mem) Put(_ context.Context, name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := errors.Join(m.away, write(&b)); err != nil {
		return err
	}
	kept := b.Bytes()
	if m.lie != nil {
		kept = m.lie(name, kept)
	}
	m.files[name], m.times[name] = kept, m.now
	return nil
}

func (m *mem) Open(_ context.Context, name string) (io.ReadCloser, error) {
	b, ok := m.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), m.away
}

func (m *mem) Remove(_ context.Context, name string) error {
	delete(m.files, name)
	return m.away
}

func (m *mem) Sweep(context.Context, time.Time) error { return nil }

func (m *mem) clone() *mem {
	out := newMem(m.now)
	maps.Copy(out.files, m.files)
	maps.Copy(out.times, m.times)
	return out
}

// rig makes backups in two places, an hour apart.
type rig struct {
	t        *testing.T
	log      *logOf
	to, keys *mem
	now      time.Time
}

var firstDay = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

func newRig(t *testing.T, shards int) *rig {
	return &rig{t: t, log: newLog(t, 'a', shards), to: newMem(firstDay), keys: newMem(firstDay), now: firstDay}
}

func (r *rig) try(full bool) (memory.BackupMade, error) {
	r.now = r.now.Add(time.Hour)
	r.to.now, r.keys.now = r.now, r.now
	return Make(r.t.Context(), r.log, r.to, r.keys, Options{Full: full, Now: func() time.Time { return r.now }, Version: "test"})
}

// of makes backups of another log in the places.
func (r *rig) of(log *logOf) *rig {
	r.log = log
	return r
}

func (r *rig) backup(full bool) memory.BackupMade {
	r.t.Helper()
	made, err := r.try(full)
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func (r *rig) verify() memory.BackupVerifyReport {
	r.t.Helper()
	v, err := Verify(r.t.Context(), r.to, r.keys, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// read gives the messages of a backup, by shard.
func (r *rig) read(id string) [][][]byte {
	r.t.Helper()
	c, err := Choose(r.t.Context(), r.to, r.keys, Which{ID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([][][]byte, len(r.log.frames))
	if _, err := c.Log.Read(r.t.Context(), func(shard uint16, seq uint64, data []byte) error {
		out[shard] = append(out[shard], data)
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return out
}
