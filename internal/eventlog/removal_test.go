package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// repairedDir is a stopped server's directory with a stream and the copy of it that
// a repair made: so many of its frames, and then the epoch or not.
func repairedDir(t *testing.T, copied uint64, begun bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0", Logger: logTo(t)})
	must(t, err)
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{})
	old, err := log.Create(testContext(t), events.StreamRef{Epoch: 0, Identity: "old"})
	must(t, err)
	next, err := log.Create(testContext(t), events.StreamRef{Epoch: 1, Identity: "next"})
	must(t, err)
	at := eventlog.Tail{Term: 3}
	frame := func(epoch uint32) []byte {
		f := events.Frame{Epoch: epoch, Term: 3, Seq: at.Seq + 1, Previous: at.Chain, Events: [][]byte{capture(byte(at.Seq), 1)}}
		b := f.Encode()
		at.Seq, at.Chain = at.Seq+1, events.NextChain(at.Chain, at.Seq+1, b)
		return b
	}
	for seq := range uint64(damagedFrames) {
		b := frame(0)
		must(t, old.Append(testContext(t), b, seq))
		if seq < copied {
			must(t, next.Append(testContext(t), b, seq))
		}
	}
	if begun {
		must(t, next.Append(testContext(t), frame(1), copied))
	}
	must(t, srv.Shutdown(context.Background()))
	return dir
}

// TestHalfFilledStreamRemovedTheOldOne: an old stream without meta.inf was taken for
// one that had been replaced as soon as a later one was there, also if that held half
// of it. And the copy that a repair had given up kept the server from starting when
// its removal was cut short.
func TestHalfFilledStreamRemovedTheOldOne(t *testing.T) {
	const old, next = "mneme-0", "mneme-0-1"
	for _, c := range []struct {
		name    string
		copied  uint64
		begun   bool
		without string   // has no meta.inf
		left    []string // streams; nil = the start is refused and removes nothing
	}{
		{"replaced", damagedFrames, true, old, []string{next}},
		{"half a copy", damagedFrames / 2, false, old, nil},
		{"a copy whose epoch has not begun", damagedFrames, false, old, nil},
		{"an empty copy", 0, false, old, nil},
		{"half a copy was given up", damagedFrames / 2, false, next, []string{old}},
		{"the stream that took the place", damagedFrames, true, next, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := repairedDir(t, c.copied, c.begun)
			streams := filepath.Join(dir, "jetstream", "NODE", "streams")
			must(t, os.Remove(filepath.Join(streams, c.without, "meta.inf")))
			starts(t, dir, streams, c.without, c.left)
		})
	}
	t.Run("an unreadable copy was given up, or more", func(t *testing.T) {
		dir := repairedDir(t, damagedFrames/2, false)
		streams := filepath.Join(dir, "jetstream", "NODE", "streams")
		must(t, os.Remove(filepath.Join(streams, next, "meta.inf")))
		block := filepath.Join(streams, next, "msgs", "1.blk")
		b, err := os.ReadFile(block)
		must(t, err)
		must(t, os.WriteFile(block, flip(8*(len(b)-100))(b), 0o600))
		starts(t, dir, streams, next, nil)
	})
}

func starts(t *testing.T, dir, streams, damaged string, left []string) {
	t.Helper()
	srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0", Logger: logTo(t)})
	if left == nil {
		var d *eventlog.DamageError
		if err == nil {
			must(t, srv.Shutdown(context.Background()))
		}
		if !errors.As(err, &d) || !slices.Equal(d.Streams, []string{damaged}) {
			t.Fatalf("the start: %v", err)
		}
		for _, name := range []string{"mneme-0", "mneme-0-1"} {
			if _, err := os.Stat(filepath.Join(streams, name, "msgs")); err != nil {
				t.Errorf("what is left of it is gone: %v", err)
			}
		}
		return
	}
	must(t, err)
	nc, err := srv.NodeConn(testContext(t))
	must(t, err)
	refs, err := eventlog.NewLog(nc, eventlog.StreamConfig{}).Present(testContext(t))
	must(t, err)
	var names []string
	for _, ref := range refs {
		names = append(names, events.StreamName(0, ref.Epoch))
	}
	if !slices.Equal(names, left) {
		t.Errorf("%v are left, want %v", names, left)
	}
	s := openStream(t, srv, eventlog.StreamConfig{Ref: refs[0], MustExist: true})
	if info, err := s.Info(testContext(t)); err != nil || info.Last < damagedFrames {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, srv.Shutdown(context.Background()))
}

// A kill while the server made the first stream left an empty block without meta.inf,
// and one while it sealed a stream left the checksum of what meta.inf had said before:
// the next start called either a damaged log.
func TestKillWhileAStreamIsMadeOrSealedWasDamage(t *testing.T) {
	type files map[string][]byte
	read := func(dir string) files {
		out := files{}
		for _, name := range []string{"meta.inf", "meta.sum"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			must(t, err)
			out[name] = b
		}
		return out
	}
	dir := t.TempDir()
	streams := filepath.Join(dir, "jetstream", "NODE", "streams")
	stream := filepath.Join(streams, "mneme-0")
	srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0", Logger: logTo(t)})
	must(t, err)
	s := openStream(t, srv, eventlog.StreamConfig{})
	for seq := range uint64(damagedFrames) {
		must(t, s.Append(testContext(t), []byte{byte(seq)}, seq))
	}
	before := read(stream)
	must(t, s.Seal(testContext(t)))
	sealed := read(stream)
	must(t, srv.Shutdown(context.Background()))

	starts := func(t *testing.T, dir string) error {
		srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0", Logger: logTo(t)})
		if err != nil {
			return err
		}
		s := openStream(t, srv, eventlog.StreamConfig{})
		info, err := s.Info(testContext(t))
		return errors.Join(err, srv.Shutdown(context.Background()), func() error {
			if _, err := os.Stat(filepath.Join(dir, "jetstream", "NODE", "streams", "mneme-0", "meta.sum")); err != nil || info.Last != 0 && info.Last != damagedFrames {
				return fmt.Errorf("%+v, %w", info, err)
			}
			return nil
		}())
	}
	for name, left := range map[string]files{
		"block made":                    {},
		"meta.inf begun":                {"meta.inf": nil},
		"meta.inf written":              {"meta.inf": before["meta.inf"]},
		"meta.inf written, not its sum": {"meta.inf": before["meta.inf"], "meta.sum": nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			half := filepath.Join(dir, "jetstream", "NODE", "streams", "mneme-0")
			must(t, os.MkdirAll(filepath.Join(half, "msgs"), 0o700))
			must(t, os.WriteFile(filepath.Join(half, "msgs", "1.blk"), nil, 0o600))
			for name, b := range left {
				must(t, os.WriteFile(filepath.Join(half, name), b, 0o600))
			}
			if err := starts(t, dir); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a block that holds something", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(filepath.Dir(filepath.Dir(streams))))))
		must(t, os.Remove(filepath.Join(dir, "jetstream", "NODE", "streams", "mneme-0", "meta.inf")))
		if err := starts(t, dir); !errors.Is(err, eventlog.ErrStoreDamaged) {
			t.Errorf("the start: %v", err)
		}
	})
	t.Run("sealed without the sum", func(t *testing.T) {
		must(t, os.WriteFile(filepath.Join(stream, "meta.sum"), before["meta.sum"], 0o600))
		if err := starts(t, dir); err != nil {
			t.Fatal(err)
		}
		if got := read(stream); !bytes.Equal(got["meta.sum"], sealed["meta.sum"]) {
			t.Errorf("meta.sum is %s, want %s", got["meta.sum"], sealed["meta.sum"])
		}
	})
	t.Run("another change", func(t *testing.T) {
		flipped := bytes.Replace(sealed["meta.inf"], []byte("limits"), []byte("limitz"), 1)
		must(t, os.WriteFile(filepath.Join(stream, "meta.inf"), flipped, 0o600))
		must(t, os.WriteFile(filepath.Join(stream, "meta.sum"), before["meta.sum"], 0o600))
		if err := starts(t, dir); !errors.Is(err, eventlog.ErrStoreDamaged) {
			t.Errorf("the start: %v", err)
		}
	})
}
