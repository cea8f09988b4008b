package eventlog_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// farm is a stopped server with many small streams of the same shape, so that
// one start tries a bit in each of them.
type farm struct {
	dir     string
	streams []stopped
}

const (
	farmStreams = 60
	farmFirst   = 100 // shards, with names of the same length
)

func newFarm(t *testing.T, frames int) farm {
	t.Helper()
	f := farm{dir: t.TempDir()}
	s, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: f.dir, Addr: "127.0.0.1:0"})
	must(t, err)
	for i := range farmStreams {
		shard := uint16(farmFirst + i)
		st := openStream(t, s, eventlog.StreamConfig{Shard: shard})
		f.streams = append(f.streams, stopped{shard: shard, k: writeSmall(t, st, shard, frames), id: identityOf(t, st)})
	}
	must(t, s.Shutdown(context.Background()))
	return f
}

// writeSmall appends frames of one control event.
func writeSmall(t *testing.T, s eventlog.Stream, shard uint16, n int) *known {
	t.Helper()
	k := newKnown(eventlog.Tail{Shard: shard, Term: 3})
	for i := range n {
		e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: 1, Event: events.ID{byte(i)}, SealedAt: int64(i)}}
		must(t, k.append(t, s, e.Encode()))
	}
	return k
}

// flipEach flips each of the bits [from, to) of a file of the streams, one a
// stream, before or after the server starts, and returns how many were noticed.
func (f farm) flipEach(t *testing.T, file string, from, to int, running bool) (noticed int) {
	t.Helper()
	for at := from; at < to; at += farmStreams {
		dir := filepath.Join(t.TempDir(), "farm")
		must(t, os.CopyFS(dir, os.DirFS(f.dir)))
		tried := f.streams[:min(farmStreams, to-at)]
		edit := func() {
			for i, s := range tried {
				s.dir = dir
				s.edit(t, file, flip(at+i))
			}
		}
		if !running {
			edit()
		}
		srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: dir, Addr: "127.0.0.1:0"})
		if err != nil {
			t.Fatalf("bits %d to %d: %v", at, at+farmStreams-1, err)
		}
		if running {
			edit()
		}
		for i, s := range tried {
			s.dir = dir
			if flipNoticed(t, srv, openStream(t, srv, eventlog.StreamConfig{Shard: s.shard}), s, at+i) {
				noticed++
			}
		}
		must(t, srv.Shutdown(context.Background()))
		must(t, os.RemoveAll(dir))
	}
	return noticed
}

// TestEveryBitOfAMessage flips each bit of one stored message. The length of its
// headers, which no checksum covers, used to make the log unreadable.
func TestEveryBitOfAMessage(t *testing.T) {
	const frames = 3
	f := newFarm(t, frames)
	s := f.streams[0]
	s.dir = f.dir
	fi, err := os.Stat(s.file("msgs", "1.blk"))
	must(t, err)
	record := int(fi.Size()) / frames * 8
	if int(fi.Size())%frames != 0 {
		t.Fatalf("the records of %d bytes are not of one size", fi.Size())
	}
	noticed := f.flipEach(t, "msgs/1.blk", record, 2*record, false)
	// Only what is mended does no harm: the 32 bits of the headers' length.
	if noticed != record-32 {
		t.Errorf("%d of %d bits did harm, want all but 32", noticed, record)
	}
}

// TestUnreadableAnswerIsDivergence: a length of headers that rots under a running
// server made it hand out what is no message, and every reader failed with an
// internal error. It is a divergence, and repair mends it.
func TestUnreadableAnswerIsDivergence(t *testing.T) {
	const frames = 3
	f := newFarm(t, frames)
	s := f.streams[0]
	s.dir = f.dir
	block, err := os.ReadFile(s.file("msgs", "1.blk"))
	must(t, err)
	second := len(block) / frames
	at := second + bytes.Index(block[second:], []byte("NATS/1.0")) - 4
	if n := f.flipEach(t, "msgs/1.blk", at*8, at*8+32, true); n != 32 {
		t.Errorf("%d of 32 flips were noticed", n)
	}
}

// TestEveryBitOfTheIndex flips each bit of the file in which the server keeps
// where its blocks and messages are. It has a checksum and can be made again
// from the blocks, so nothing may be lost.
func TestEveryBitOfTheIndex(t *testing.T) {
	f := newFarm(t, 3)
	s := f.streams[0]
	s.dir = f.dir
	fi, err := os.Stat(s.file("msgs", "index.db"))
	must(t, err)
	if n := f.flipEach(t, "msgs/index.db", 0, int(fi.Size())*8, false); n != 0 {
		t.Errorf("%d flips in the index lost messages", n)
	}
}
