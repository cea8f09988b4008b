package node

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/backup"
	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// filled makes a stopped node's directory with a few memories and returns its
// state hash.
func filled(t *testing.T) (dir string, want memory.ShardStatus) {
	t.Helper()
	dir = t.TempDir()
	n := open(t, quiet(dir))
	for i := range 5 {
		must(t, n, fmt.Sprint("memory of the harbour, number ", i))
	}
	want = shardOf(t, n)
	shut(t, n)
	return dir, want
}

func TestOfflineWorkOnAStoppedNode(t *testing.T) {
	dir, want := filled(t)
	off := Offline{Config: quiet("")}
	doctor, err := off.Doctor(t.Context(), dir)
	if err != nil || !doctor.OK || len(doctor.Checks) != 6 {
		t.Errorf("doctor: %+v, %v", doctor, err)
	}
	calls := 0
	verify, err := off.VerifyLog(t.Context(), dir, func(done, total uint64) { calls++ })
	if err != nil || !verify.Shards[0].OK || calls == 0 {
		t.Errorf("verify: %+v, %v, %d calls", verify, err, calls)
	}
	out := t.TempDir()
	log, keys := filepath.Join(out, "log"), filepath.Join(out, "keys")
	report, err := off.Backup(t.Context(), dir, log, keys, func(uint64, uint64) {})
	if err != nil || report.Frames != verify.Shards[0].Frames || report.Events != verify.Shards[0].Events {
		t.Errorf("backup: %+v, %v", report, err)
	}
	if again, err := off.Backup(t.Context(), dir, log, keys, nil); err != nil || again.Frames != report.Frames {
		t.Errorf("over files that are there: %+v, %v", again, err)
	}
	again := filepath.Join(t.TempDir(), "new")
	restored, err := off.Restore(t.Context(), again, log, keys, func(done, total uint64) {})
	if err != nil || restored.Shards[0].StateHash != want.StateHash {
		t.Errorf("restore: %+v, %v; want %s", restored, err, want.StateHash)
	}
	n := open(t, quiet(again))
	if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := off.VerifyLog(t.Context(), again, nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("a directory in use: %v", err)
	}
	if _, err := off.Doctor(t.Context(), again); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("doctor on a directory in use: %v", err)
	}
	for _, none := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if r, err := off.Doctor(t.Context(), none); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("no data directory: %+v, %v", r, err)
		}
	}
	if _, err := off.Restore(t.Context(), again, log, keys, nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("restore over something: %v", err)
	}
	for _, missing := range [][2]string{{log + "x", keys}, {log, keys + "x"}, {keys, keys}, {log, log}} {
		to := filepath.Join(t.TempDir(), "new")
		if _, err := off.Restore(t.Context(), to, missing[0], missing[1], nil); err == nil {
			t.Errorf("restored from %v", missing)
		}
		if left, err := filepath.Glob(filepath.Join(to, "[^L]*")); err != nil || len(left) > 0 { // all but LOCK
			t.Errorf("%v left %v", missing, left)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "shards")); err != nil {
		t.Fatal(err)
	}
	if r, err := off.Doctor(t.Context(), dir); err != nil || !r.OK {
		t.Errorf("without a state, which is built again: %+v, %v", r, err)
	}
}

// TestSwappedBackupFilesWereCalledDamaged, with the advice to use another copy.
func TestSwappedBackupFilesWereCalledDamaged(t *testing.T) {
	log, keys, _ := backedUp(t)
	off := Offline{Config: quiet("")}
	for _, tc := range [][3]string{
		{keys, log, "--log " + log + " --keys " + keys},
		{keys, keys, "the log's file"},
		{log, log, "the keys' file"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		_, err := off.Restore(t.Context(), dir, tc[0], tc[1], nil)
		e := memory.AsError(err)
		if e.Code != memory.CodeInvalid || !strings.Contains(e.Message, "is the backup of the") || !strings.Contains(e.Hint, tc[2]) {
			t.Errorf("%s and %s: %s: %s; %s", filepath.Base(tc[0]), filepath.Base(tc[1]), e.Code, e.Message, e.Hint)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something was made: %v", err)
		}
	}
}

func TestBackupFileIsCheckedWhole(t *testing.T) {
	dir, _ := filled(t)
	log := filepath.Join(t.TempDir(), "log")
	if _, err := (Offline{Config: quiet("")}).Backup(t.Context(), dir, log, "", nil); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) error {
		_, err := backup.ReadLog(bytes.NewReader(b), func(uint16, uint64, []byte) error { return nil })
		return err
	}
	if err := read(b); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"\x00", string(b)} {
		if read(append(bytes.Clone(b), more...)) == nil {
			t.Errorf("%d bytes behind its end are not noticed", len(more))
		}
	}
	for n := 0; n < len(b); n += 13 {
		if read(b[:n]) == nil {
			t.Errorf("cut to %d of %d bytes it is taken for whole", n, len(b))
		}
		bad := bytes.Clone(b)
		bad[n] ^= 4
		if read(bad) == nil {
			t.Errorf("a flipped bit at %d is not noticed", n)
		}
	}
}

// TestOlderBackupIsRestored: a file of version 2, with keys of the same time.
func TestOlderBackupIsRestored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r, err := (Offline{Config: quiet("")}).Restore(t.Context(), dir, filepath.Join("testdata", "backup-2.log"), filepath.Join("testdata", "backup-2.keys"), nil)
	if err != nil || r.Shards[0].Events != 6 { // five, and the start of the new epoch
		t.Fatalf("%+v, %v", r, err)
	}
	n := open(t, quiet(dir))
	if got := find(t, n, "harbour"); len(got) == 0 || got[0] != "the harbour of Genoa opens at six" || shardOf(t, n).Records != 2 {
		t.Errorf("found %q", got)
	}
	shut(t, n)
}

func TestLostLogIsRepairedInPlace(t *testing.T) {
	dir, want := filled(t)
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a write: %v", err)
	}
	if _, err := n.operator.Rebuild(t.Context(), nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a rebuild: %v", err)
	}
	if ok, checks := n.doctor.Ready(); !ok || !strings.Contains(fmt.Sprint(checks), "writes are stopped") {
		t.Errorf("ready %v %v", ok, checks)
	}
	if r, err := n.operator.Doctor(t.Context()); err != nil || r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	report, err := n.operator.RepairLog(t.Context(), nil)
	if err != nil || report.Shards[0].Epoch != 1 || report.Shards[0].StateHash != want.StateHash || report.Shards[0].Restored == 0 {
		t.Errorf("%+v, %v; want %s", report, err, want.StateHash)
	}
	must(t, n, "life goes on")
	if _, err := n.operator.RepairLog(t.Context(), nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("nothing to repair: %v", err)
	}
	r, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default", AtLeast: want.Position}, memory.SearchRequest{Query: "harbour"})
	if err != nil || len(r.Results) == 0 {
		t.Errorf("at a position of before: %+v, %v", r, err)
	}
	var b bytes.Buffer
	if rep, err := n.operator.BackupLog(t.Context(), &b, ""); err != nil || rep.Bytes != int64(b.Len()) {
		t.Errorf("%+v, %v, %d bytes", rep, err, b.Len())
	}
	for _, master := range []bool{false, true} {
		if _, err := n.operator.BackupKeys(t.Context(), &b, master); err != nil {
			t.Error(err)
		}
	}
}

// A log that contradicts the state is left alone: nothing says which is right.
func TestRepairRefusesAForeignLog(t *testing.T) {
	dir, _ := filled(t)
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	foreign := events.Frame{Term: 1, Seq: 1, Events: [][]byte{[]byte("not what the state holds")}}
	stream, err := eventlog.OpenStream(t.Context(), n.nc, eventlog.StreamConfig{ClusterID: n.dir.node.ClusterID})
	if err := errors.Join(err, stream.Append(t.Context(), foreign.Encode(), 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.operator.RepairLog(t.Context(), nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
	if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a write after the refused repair: %v", err)
	}
	if got := find(t, n, "harbour"); len(got) == 0 {
		t.Error("reads are down")
	}
}

func TestDamagedStateIsBuiltAgain(t *testing.T) {
	dir, want := filled(t)
	gens, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state", "gen-*", "marker.manifest.*"))
	if err != nil || len(gens) == 0 {
		t.Fatal(gens, err)
	}
	if err := os.Remove(gens[0]); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records {
		t.Errorf("%+v, want %+v", got, want)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state.damaged-*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("the damaged state was not kept: %v", kept)
	}
}

func TestKeysWithoutLogAndStateAreNoFirstStart(t *testing.T) {
	dir, _ := filled(t)
	for _, d := range []string{"nats", "shards"} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, quiet(dir), StartDamaged)
}

func TestDoctorAsksExternalEmbedders(t *testing.T) {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "{}", http.StatusBadRequest) }))
	defer down.Close()
	cfg := quiet(t.TempDir())
	cfg.Embedder = embed.Config{Provider: "openai", BaseURL: down.URL, Model: "toy", Dimensions: 4}
	n := open(t, cfg)
	must(t, n, "found by text")
	r, err := n.operator.Doctor(t.Context())
	if err != nil || !strings.Contains(fmt.Sprint(r.Checks), "embedder of default") {
		t.Errorf("%+v, %v", r, err)
	}
	s, err := n.operator.Status(t.Context(), true)
	if err != nil || s.Embedder.Provider != "openai" || s.Shards[0].PendingVectors != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestFeedDropsWhatNobodyTakes(t *testing.T) {
	f := newFeed(nil, func(string) bool { return true })
	f.push(&projections.Applied{Events: make([]projections.AppliedEvent, 2)}) // of a follower
	if len(f.queue) != 0 {
		t.Error("a follower announces what the leader does")
	}
	f.leads.Store(true)
	for range cap(f.queue) + 3 {
		f.push(&projections.Applied{Events: make([]projections.AppliedEvent, 2)})
	}
	if got := f.dropped.Load(); got != 6 {
		t.Errorf("%d dropped", got)
	}
}

func TestPublicErrorOfEachKind(t *testing.T) {
	for kind, code := range map[string]memory.Code{StartUsage: memory.CodeInvalid, StartReadOnly: memory.CodeInvalid, StartInUse: memory.CodeConflict, StartUnreachable: memory.CodeUnavailable,
		StartDamaged: memory.CodeLogDiverged, StartLostKey: memory.CodeLogDiverged, StartOther: memory.CodeInternal} {
		if got := memory.CodeOf(publicError(&StartError{Kind: kind, Message: "m"})); got != code {
			t.Errorf("%s: %s", kind, got)
		}
	}
	plain := errors.New("plain")
	if publicError(plain) != plain || publicError(nil) != nil {
		t.Error("other errors are changed")
	}
}

// Lost storage keys cost nothing but time: the hint says how.
func TestLostStorageKeysHaveAWayOut(t *testing.T) {
	dir, want := filled(t)
	for _, name := range []string{"storage.keys", "storage.keys.copy"} {
		if err := os.Remove(filepath.Join(dir, "keys", name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(t.Context(), quiet(dir))
	var s *StartError
	if !errors.As(err, &s) || s.Kind != StartLostKey || !strings.Contains(s.Hint, "shards/ out of the data directory") {
		t.Fatalf("%v", err)
	}
	if err := os.Rename(filepath.Join(dir, "shards"), filepath.Join(t.TempDir(), "shards")); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	if got := shardOf(t, n); got.StateHash != want.StateHash {
		t.Fatalf("state %s, want %s", got.StateHash, want.StateHash)
	}
}
