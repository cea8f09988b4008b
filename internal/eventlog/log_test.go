package eventlog_test

import (
	"errors"
	"slices"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// TestLaterStreamIsRemovedWithTheReplaced: every stream but the one that counts was
// deleted, also one that another leader had reserved and was filling, and also
// before the epoch of the one that counts had begun.
func TestLaterStreamIsRemovedWithTheReplaced(t *testing.T) {
	srv := startServer(t, eventlog.ServerOptions{Dir: t.TempDir()})
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{})
	refs := []events.StreamRef{{Epoch: 0, Identity: "a"}, {Epoch: 1, Identity: "b"}, {Epoch: 2, Identity: "c"}}
	var made []*eventlog.JetStream
	for _, ref := range refs {
		s, err := log.Create(testContext(t), ref)
		must(t, err)
		made = append(made, s)
	}
	log.Use(made[1])
	left := func(what string, begun events.StreamRef, want ...events.StreamRef) {
		t.Helper()
		must(t, log.RemoveReplaced(testContext(t), begun))
		if got, err := log.Present(testContext(t)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v are left, want %v, %v", what, got, want, err)
		}
	}
	left("not begun", refs[0], refs...)
	left("another of the same epoch has begun", events.StreamRef{Epoch: 1, Identity: "x"}, refs...)
	left("begun", refs[1], refs[1], refs[2])
}

// TestReplacedStreamThatGoesFurtherStays: what it holds beyond the log that counts is
// nowhere else.
func TestReplacedStreamThatGoesFurtherStays(t *testing.T) {
	srv := startServer(t, eventlog.ServerOptions{Dir: t.TempDir()})
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{})
	refs := []events.StreamRef{{Epoch: 0, Identity: "old"}, {Epoch: 1, Identity: "new"}}
	old, err := log.Create(testContext(t), refs[0])
	must(t, err)
	now, err := log.Create(testContext(t), refs[1])
	must(t, err)
	must(t, old.Append(testContext(t), []byte("both have it"), 0))
	must(t, now.Append(testContext(t), []byte("both have it"), 0))
	must(t, old.Append(testContext(t), []byte("only the old one has it"), 1))
	log.Use(now)
	if err := log.RemoveReplaced(testContext(t), refs[1]); err == nil {
		t.Error("nothing is said about a stream that goes further")
	}
	if got, err := log.Present(testContext(t)); err != nil || !slices.Equal(got, refs) {
		t.Fatalf("%v are left, %v", got, err)
	}
	must(t, now.Append(testContext(t), []byte("only the old one has it"), 1))
	must(t, log.RemoveReplaced(testContext(t), refs[1]))
	if got, err := log.Present(testContext(t)); err != nil || !slices.Equal(got, refs[1:]) {
		t.Errorf("%v are left, %v", got, err)
	}
}

// TestARepairTookAnotherClustersStreamForItsOwn, where that has the name of the one that it lost: it was compared with the state, and
// differs, or was sealed, and took nothing any more.
func TestARepairTookAnotherClustersStreamForItsOwn(t *testing.T) {
	srv := startServer(t, eventlog.ServerOptions{Dir: t.TempDir()})
	theirs := openStream(t, srv, eventlog.StreamConfig{ClusterID: "theirs", Ref: events.StreamRef{Identity: "theirs"}})
	k := write(t, theirs, 3)
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{ClusterID: "ours"})
	first, next := events.StreamRef{Identity: "ours"}, events.StreamRef{Epoch: 1, Identity: "next"}
	must(t, log.Assume(first))
	if kind := kindOf(t, eventlog.Check(testContext(t), log, eventlog.Expect{Identity: first.Identity, Seq: 2})); kind != eventlog.KindIdentity {
		t.Errorf("a check says %s", kind)
	}
	if info, err := log.Info(testContext(t)); err != nil || info.Identity != "theirs" || info.Last+info.Messages != 0 || info.First != 1 {
		t.Errorf("the log holds %+v, %v", info, err)
	}
	state := eventlog.Source{Last: 2, Frame: func(uint64) ([]byte, error) { return []byte("what the state applied"), nil }}
	if missing, err := eventlog.Compare(testContext(t), log, state); err != nil || !slices.Equal(missing, []eventlog.Span{{From: 1, To: 2}}) {
		t.Errorf("%v are missing, %v", missing, err)
	}
	must(t, log.Seal(testContext(t)))
	if !log.Sealed() {
		t.Error("the log is not sealed")
	}
	must(t, k.append(t, theirs, capture(9, 9)))
	now, err := log.Create(testContext(t), next)
	must(t, err)
	log.Use(now)
	must(t, log.RemoveReplaced(testContext(t), next))
	must(t, k.append(t, theirs, capture(9, 10)))
}

// TestAnotherClustersStreamOfTheSameLengthTookAWrite, which was acknowledged: its last message had the number that was expected.
func TestAnotherClustersStreamOfTheSameLengthTookAWrite(t *testing.T) {
	srv := startServer(t, eventlog.ServerOptions{Dir: t.TempDir()})
	write(t, openStream(t, srv, eventlog.StreamConfig{ClusterID: "theirs"}), 3)
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{ClusterID: "ours", Guard: func(string, []eventlog.Copy) error { return nil }})
	must(t, log.Assume(events.StreamRef{Identity: "ours"}))
	if err := log.Append(testContext(t), []byte("ours"), 3); !errors.Is(err, eventlog.ErrRefused) || !errors.Is(err, eventlog.ErrOtherCluster) {
		t.Error(err)
	}
}
